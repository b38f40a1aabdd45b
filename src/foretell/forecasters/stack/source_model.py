"""Partial pooling of yes/no outcomes: effects of series, players, days, each shrunk to nothing unless shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.rows import Days, Strings, sigmoid
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.questions.question import Question

NONE = ""
"""The label of a row that has no effect of a group."""
STEPS = 12
CLOSE = 1e-4
"""Log-odds by which the last step may move a coefficient."""
LONGEST = 3.0


@dataclass(frozen=True, kw_only=True)
class EffectPriors:
    """What is believed of the effects before anything is seen: slopes by column, group effects around zero."""

    slope: tuple[float, ...] = ()
    slope_sd: tuple[float, ...] = ()
    group_sd: Mapping[str, float]
    shared: frozenset[str] = frozenset()
    """Groups whose labels never come back (days): they soak up what a day did to all and add doubt to a forecast."""

    @property
    def shared_variance(self) -> float:
        """Doubt that a day yet to come adds."""
        return sum((self.group_sd[name] ** 2 for name in self.shared), 0.0)


@dataclass(frozen=True, kw_only=True)
class PooledCases:
    """Rows of a pooled regression: a starting log-odds, columns with slopes, and labels of groups."""

    start: Floats
    columns: Floats
    """rows × slopes."""
    labels: Mapping[str, Strings]

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Bools) -> "PooledCases":
        """Some of the rows."""
        labels = {name: label[rows] for name, label in self.labels.items()}
        return replace(self, start=self.start[rows], columns=self.columns[rows], labels=labels)


@dataclass(frozen=True, kw_only=True)
class PooledEffects:
    """Fitted effects with their joint doubt."""

    beliefs: EffectPriors
    index: Mapping[tuple[str, str], int]
    """Place of each group's labels behind the slopes."""
    effect: Floats
    doubt: Floats
    """Posterior covariance of the effects (Laplace)."""

    def chances(self, cases: PooledCases) -> Floats:
        """P(yes): the mean log-odds, drawn towards one half by its doubt v as σ(m / √(1 + πv/8)) (MacKay 1992)."""
        mean, variance = cases.start.copy(), np.full(len(cases), self.beliefs.shared_variance)
        rows = self._rows(cases)
        mean += rows @ self.effect
        variance += ((rows @ self.doubt) * rows).sum(axis=1) + self._unseen(cases)
        return sigmoid(mean / np.sqrt(1 + np.pi * variance / 8))

    def _rows(self, cases: PooledCases) -> Floats:
        rows = np.zeros((len(cases), len(self.effect)))
        rows[:, : cases.columns.shape[1]] = cases.columns
        for name, labels in cases.labels.items():
            for row, label in enumerate(labels):
                place = self.index.get((name, str(label)))
                if place is not None and name not in self.beliefs.shared:
                    rows[row, place] = 1.0
        return rows

    def _unseen(self, cases: PooledCases) -> Floats:
        """Variance of effects of labels that nothing was seen of."""
        total = np.zeros(len(cases))
        for name, labels in cases.labels.items():
            if name not in self.beliefs.shared:
                new = [label != NONE and (name, str(label)) not in self.index for label in labels]
                total += self.beliefs.group_sd[name] ** 2 * np.asarray(new, np.float64)
        return total


def pool(cases: PooledCases, outcome: Floats, weight: Floats, beliefs: EffectPriors) -> PooledEffects:
    """The most probable effects given the outcomes: logistic regression with normal priors, by Newton's method.

    Equals the mode of a mixed logistic model whose variances are `beliefs` (Breslow & Clayton 1993); with no rows it
    is the prior itself.

    >>> one = PooledCases(start=np.zeros(8), columns=np.zeros((8, 0)), labels={"series": np.repeat(["a", "b"], 4)})
    >>> fitted = pool(one, np.repeat([1.0, 0.0], 4), np.ones(8), EffectPriors(group_sd={"series": 1.0}))
    >>> fitted.chances(one.take(np.arange(8) % 4 == 0)).round(2).tolist()
    [0.72, 0.28]
    """
    problem = _PoolingProblem(cases=cases, outcome=outcome, weight=weight, beliefs=beliefs)
    effect, doubt = problem.solved()
    return PooledEffects(beliefs=beliefs, index=problem.index, effect=effect, doubt=doubt)


@dataclass(frozen=True, kw_only=True)
class LearntEffects:
    """Effects as known on a day, with the cases they come from."""

    cases: PooledCases
    outcome: Floats
    weight: float
    beliefs: EffectPriors

    @cached_property
    def pooled(self) -> PooledEffects:
        """Fitted when first asked for."""
        return pool(self.cases, self.outcome, np.full(len(self.outcome), self.weight), self.beliefs)


@dataclass(frozen=True, kw_only=True)
class PastCases:
    """Past cases with the day on which each answer became known, to be read up to a day."""

    cases: PooledCases
    outcome: Floats
    known_on: Days
    beliefs: EffectPriors
    weight: float = 1.0
    """What a case is worth beside the others of its asking: their dates overlap."""

    def before(self, day: date) -> LearntEffects:
        """What could be learnt from answers known before the day."""
        known = self.known_on < np.datetime64(day, "D")
        outcome = self.outcome[known]
        return LearntEffects(cases=self.cases.take(known), outcome=outcome, weight=self.weight, beliefs=self.beliefs)


@dataclass(frozen=True, kw_only=True)
class _PoolingProblem:
    cases: PooledCases
    outcome: Floats
    weight: Floats
    beliefs: EffectPriors

    @cached_property
    def index(self) -> dict[tuple[str, str], int]:
        width = self.cases.columns.shape[1]
        names = [(g, str(x)) for g, labels in self.cases.labels.items() for x in np.unique(labels) if x != NONE]
        return {name: width + place for place, name in enumerate(names)}

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Mean and precision of every effect."""
        sd = [*self.beliefs.slope_sd, *(self.beliefs.group_sd[group] for group, _ in self.index)]
        mean = np.zeros(len(sd))
        mean[: len(self.beliefs.slope)] = self.beliefs.slope
        return mean, 1.0 / np.asarray(sd, np.float64) ** 2

    @cached_property
    def design(self) -> Any:
        """The rows as a sparse matrix: slopes and a few ones each."""
        from scipy.sparse import csr_array

        n, width = self.cases.columns.shape
        rows: list[Ints] = [np.repeat(np.arange(n), width)]
        places: list[Ints] = [np.tile(np.arange(width), n)]
        values: list[Floats] = [self.cases.columns.ravel()]
        for name, labels in self.cases.labels.items():
            place = np.asarray([self.index.get((name, str(x)), -1) for x in labels], np.int64)
            rows.append(np.flatnonzero(place >= 0))
            places.append(place[place >= 0])
            values.append(np.ones(len(rows[-1])))
        shape = (n, len(self.prior[0]))
        return csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(places))), shape=shape)

    def solved(self) -> tuple[Floats, Floats]:
        """Mode and inverse curvature there."""
        from scipy.linalg import cho_factor, cho_solve

        mean, precision = self.prior
        effect, curvature = mean.copy(), np.diag(precision)
        for _ in range(STEPS if len(self.outcome) and len(mean) else 0):
            p = sigmoid(self.cases.start + self.design @ effect)
            slope = self.design.T @ (self.weight * (self.outcome - p)) - precision * (effect - mean)
            spread = self.design.multiply((self.weight * p * (1 - p))[:, None]).tocsr()
            curvature = (self.design.T @ spread).toarray() + np.diag(precision)
            step: Floats = cho_solve(cho_factor(curvature), slope)
            longest = float(np.abs(step).max())
            effect = effect + step * min(1.0, LONGEST / max(longest, 1e-300))
            if longest < CLOSE:
                break
        return effect, np.linalg.inv(curvature).astype(np.float64)


# What a model of one kind of question offers: it covers some, studies the past, and estimates as of a day.


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One probability per target, and where they come from in words."""

    p: Floats
    rationale: str


class Estimator(Protocol):
    """A model as it stood on one day."""

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """Probabilities of the question's targets; `record` is its series as far as known, perhaps an old one."""
        ...


class StudiedModel(Protocol):
    """A model with the past laid out; what it may use of it is settled by the day."""

    def as_of(self, day: date) -> Estimator:
        """The model from what was known before the day."""
        ...


class SourceModel(Protocol):
    """A model of one kind of question."""

    @property
    def name(self) -> str:
        """As named in rationales."""
        ...

    def covers(self, question: Question) -> bool:
        """Whether it is about questions like this one."""
        ...

    def study(self, past: Past) -> StudiedModel:
        """Take the past in, once; later it is read day by day."""
        ...


@dataclass(frozen=True, kw_only=True)
class PooledSourceModel:
    """A family whose models differ from day to day only in the effects learnt until then."""

    taught: PastCases
    make: Callable[[LearntEffects], Estimator]

    def as_of(self, day: date) -> Estimator:
        """The model with the effects known before the day."""
        return self.make(self.taught.before(day))


def horizons(question: Question) -> Floats:
    """Days to each target's resolution; a covered question has them all."""
    return np.asarray([question.horizon_days(target) or 0 for target in question.targets], np.float64)


def dated(question: Question) -> bool:
    """Whether every target resolves on a known day after the asking."""
    return all((question.horizon_days(target) or 0) > 0 for target in question.targets)


def rises(question: Question) -> bool:
    """Whether it asks if a series will stand above its value of the due date."""
    ref = question.series
    return ref is not None and ref.comparison == "above" and ref.threshold is None and dated(question)
