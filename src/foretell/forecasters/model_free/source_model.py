"""The interface of a model for one kind of question, and partial pooling of yes/no outcomes, which most models use.

Pooling estimates effects of series, players or days, each shrunk to zero unless the data show otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past, PastTarget
from foretell.forecasters.combine.rows import Strings
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, group_sums
from foretell.metrics.transforms import sigmoid
from foretell.questions.question import Question, SeriesRef, Target


@frozen
class Estimate:
    """One probability per target, and an explanation of where they come from."""

    p: Floats
    rationale: str
    from_record: bool = False
    """Whether it uses the newest values of the question's own series; a base rate then adds nothing."""
    settled: Bools | None = None
    """Whether no new value of the series is due by each target's date; None if unknown."""


OtherSeries = Mapping[str, Series]
NO_OTHERS: OtherSeries = {}


class SourceModel(Protocol):
    """A model of one kind of question."""

    @property
    def name(self) -> str:
        """The name used in rationales."""
        ...

    def trust_in_auto(self, question: Question) -> float:
        """Weight of `auto` on the question's series against this model, if the series is fresh."""
        ...

    def record_of(self, question: Question) -> SeriesRef | None:
        """Return the series that the model reads for a question; None if it reads none."""
        ...

    def others_of(self, question: Question) -> tuple[SeriesRef, ...]:
        """Return other series that are informative about the question."""
        ...

    def covers(self, question: Question) -> bool:
        """Whether the model handles questions like this one."""
        ...

    def estimate(
        self, question: Question, past: Past, day: date, record: Series | None = None, others: OtherSeries = NO_OTHERS
    ) -> Estimate:
        """Estimate the targets' probabilities from what was known before the day.

        `record` is the question's series as far as known; `others` holds the available series of `others_of`, by id.
        """
        ...


class ReadsOwnSeries:
    """Default for models that read only the question's own series and interpret it themselves."""

    def trust_in_auto(self, question: Question) -> float:
        """Return 0, because the model reads the series itself."""
        return 0.0

    def record_of(self, question: Question) -> SeriesRef | None:
        """Return the question's own series."""
        return question.series

    def others_of(self, question: Question) -> tuple[SeriesRef, ...]:
        """Return no other series."""
        return ()


def horizons(question: Question) -> Floats:
    """Days until each target resolves; in a covered question, every target has a date."""
    return np.asarray([question.horizon_days(target) or 0 for target in question.targets], np.float64)


def dated(question: Question) -> bool:
    """Whether every target resolves on a known day after the due date."""
    return all((question.horizon_days(target) or 0) > 0 for target in question.targets)


def rises(question: Question) -> bool:
    """Whether the question asks if a series will be above its value on the due date."""
    ref = question.series
    return ref is not None and ref.comparison == "above" and ref.threshold is None and dated(question)


# Partial pooling.

NONE = ""
"""The label of a row that has no effect in a group."""
STEPS = 12
CLOSE = 1e-4
"""Convergence tolerance: largest change of a coefficient, in log-odds, in the last step."""
LONGEST = 3.0


@frozen
class EffectPriors:
    """Prior on the effects before any data: slopes by column, group effects around zero."""

    slope: tuple[float, ...] = ()
    slope_sd: tuple[float, ...] = ()
    group_sd: Mapping[str, float]
    shared: frozenset[str] = frozenset()
    """Groups whose labels never recur, such as days. They model common effects and widen the uncertainty."""


@frozen
class PooledCases:
    """Rows of a pooled regression: starting log-odds, columns with slopes, and group labels."""

    start: Floats
    columns: Floats
    """Matrix of rows × slopes."""
    labels: Mapping[str, Strings]

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Bools) -> "PooledCases":
        """Return only the selected rows."""
        labels = {name: label[rows] for name, label in self.labels.items()}
        return replace(self, start=self.start[rows], columns=self.columns[rows], labels=labels)

    def places(self, index: Mapping[tuple[str, str], int], group: str) -> Ints:
        """The column of each row's label in a group; −1 if it has none."""
        return np.asarray([index.get((group, str(label)), -1) for label in self.labels[group]], np.int64)


@frozen
class PooledEffects:
    """Fitted effects with their joint uncertainty."""

    beliefs: EffectPriors
    index: Mapping[tuple[str, str], int]
    """Column of each group's labels, after the slopes."""
    effect: Floats
    doubt: Floats
    """Posterior covariance of the effects (Laplace)."""

    def chances(self, cases: PooledCases) -> Floats:
        """Return P(yes) = σ(m / √(1 + πv/8)), with mean m and variance v of the log-odds (MacKay 1992)."""
        rows = np.zeros((len(cases), len(self.effect)))
        rows[:, : cases.columns.shape[1]] = cases.columns
        unseen = np.zeros(len(cases))
        for group, labels in cases.labels.items():
            variance = self.beliefs.group_sd[group] ** 2
            if group in self.beliefs.shared:
                unseen += variance
                continue
            place = cases.places(self.index, group)
            rows[np.flatnonzero(place >= 0), place[place >= 0]] = 1.0
            unseen += variance * ((place < 0) & (labels != NONE))
        mean = cases.start + rows @ self.effect
        return sigmoid(mean / np.sqrt(1 + np.pi * (unseen + ((rows @ self.doubt) * rows).sum(axis=1)) / 8))


def pool(cases: PooledCases, outcome: Floats, weight: float, beliefs: EffectPriors) -> PooledEffects:
    """Fit the most probable effects given the outcomes: logistic regression with normal priors, by Newton's method.

    Equals the mode of a mixed logistic model whose variances are `beliefs` (Breslow & Clayton 1993); with no rows it is
    the prior itself. Sparse, unlike `combine.logistic`, because a row has a few ones among hundreds of labels.

    >>> rows = PooledCases(start=np.zeros(8), columns=np.zeros((8, 0)), labels={"series": np.repeat(["a", "b"], 4)})
    >>> fitted = pool(rows, np.repeat([1.0, 0.0], 4), 1.0, EffectPriors(group_sd={"series": 1.0}))
    >>> fitted.chances(rows.take(np.arange(8) % 4 == 0)).round(2).tolist()
    [0.72, 0.28]
    """
    n, width = cases.columns.shape
    names = [(group, str(x)) for group, labels in cases.labels.items() for x in np.unique(labels) if x != NONE]
    index = {name: width + place for place, name in enumerate(names)}
    sd = np.asarray([*beliefs.slope_sd, *(beliefs.group_sd[group] for group, _ in names)], np.float64)
    mean, precision = np.zeros(len(sd)), 1.0 / sd**2
    mean[: len(beliefs.slope)] = beliefs.slope
    effect, curvature = mean.copy(), np.diag(precision)
    if n and len(sd):
        # A row has one number in each slope's column and in at most one column of each group.
        groups = [cases.places(index, group) for group in cases.labels]
        place = np.column_stack([np.tile(np.arange(width), (n, 1)), *(np.maximum(column, 0) for column in groups)])
        value = np.column_stack([cases.columns, *(column >= 0 for column in groups)])
        pairs = (place[:, :, None] * len(sd) + place[:, None, :]).ravel()
        for _ in range(STEPS):
            p = sigmoid(cases.start + (value * effect[place]).sum(axis=1))
            pull = value * (weight * (outcome - p))[:, None]
            slope = group_sums(place.ravel(), pull.ravel(), len(sd)) - precision * (effect - mean)
            spread = (value * (weight * p * (1 - p))[:, None])[:, :, None] * value[:, None, :]
            squares = group_sums(pairs, spread.ravel(), len(sd) ** 2)
            curvature = squares.reshape(len(sd), len(sd)) + np.diag(precision)
            step = np.linalg.solve(curvature, slope)
            longest = float(np.abs(step).max())
            effect = effect + step * min(1.0, LONGEST / max(longest, 1e-300))
            if longest < CLOSE:
                break
    return PooledEffects(beliefs=beliefs, index=index, effect=effect, doubt=np.linalg.inv(curvature).astype(np.float64))


@frozen
class LearntEffects:
    """Effects as known on a day, with the cases they are learnt from."""

    cases: PooledCases
    outcome: Floats
    beliefs: EffectPriors
    weight: float = 1.0
    """Weight of one case; below one if the dates of the same question overlap."""

    @cached_property
    def pooled(self) -> PooledEffects:
        """The fitted effects, computed on first access."""
        return pool(self.cases, self.outcome, self.weight, self.beliefs)


Case = tuple[Question, Target, date | None]
"""A target, and the day on which its answer became known; None if the target is to be forecast."""


class PooledModel(ReadsOwnSeries):
    """A model whose estimates depend on the effects learnt up to each day."""

    name: str
    beliefs: ClassVar[EffectPriors]
    weight: ClassVar[float] = 1.0

    def covers(self, question: Question) -> bool:
        """Whether the model handles questions like this one."""
        raise NotImplementedError

    def cases(self, targets: Sequence[Case]) -> PooledCases:
        """Turn targets into rows of the regression."""
        raise NotImplementedError

    def training_targets(self, past: Past) -> list[PastTarget]:
        """Return the past outcomes used for training."""
        return [x for x in past.resolved if self.covers(x.question)]

    def learnt(self, past: Past, day: date) -> LearntEffects:
        """Return effects learnt from answers known before the day; they are cached by day."""
        return past.cached((self.name, "effects", day), lambda: self._learn(past, day))

    def _learn(self, past: Past, day: date) -> LearntEffects:
        targets = past.cached((self.name, "lessons"), lambda: self.training_targets(past))
        cases = past.cached(
            (self.name, "cases"), lambda: self.cases([(x.question, x.target, x.known_on) for x in targets])
        )
        known = np.array([x.known_on < day for x in targets], np.bool_)
        outcome = np.array([x.outcome for x in targets], np.float64)[known]
        return LearntEffects(cases=cases.take(known), outcome=outcome, beliefs=self.beliefs, weight=self.weight)
