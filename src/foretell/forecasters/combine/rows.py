"""The data to combine: the trials on many targets, with the properties of the targets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.transforms import EDGE, logit, sigmoid
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question

if TYPE_CHECKING:
    from foretell.forecasters.base_rates.rates import Rates

Days = npt.NDArray[np.datetime64]
Strings = npt.NDArray[np.str_]
UNKNOWN_DAY = np.datetime64("9999-12-31", "D")
"""The day on which an undated answer became known: it never counts as past."""


@frozen
class TrialRows:
    """One entry per target: the trials' probabilities, and what was known when it was asked. Outcomes are not included.

    `trials` is K × n, with NaN for failed trials; everything else has length n.
    """

    trials: Floats
    question: Strings
    due: Days
    target: Strings
    source: Strings
    subtype: Strings
    kind: Strings
    """`market` or `dataset`."""
    horizon: Floats
    """Days from asking to resolution, as far as known beforehand; NaN if unknown."""
    price: Floats
    """The market probability when the question was asked; NaN without a market."""
    prior: Floats
    """The base rate of similar targets, counted strictly before `due`, or a model-free estimate; NaN if none."""
    cluster: Strings
    """Cluster shared by questions that depend on each other; usually the question's id."""
    liquidity: Floats = field(default_factory=lambda: np.empty(0))
    """Amount traded, in dollars; NaN if unknown, which is the default."""
    price_age: Floats = field(default_factory=lambda: np.empty(0))
    """Days from the price to the asking; NaN if unknown, which is the default."""

    def __post_init__(self) -> None:
        for name in ("liquidity", "price_age"):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(self.trials.shape[-1], np.nan))
        if self.trials.ndim != 2:
            raise ValueError(f"trials must be K × n, not of shape {self.trials.shape}")
        n = self.trials.shape[1]
        for column in fields(self):
            if len(getattr(self, column.name)) != n and column.name != "trials":
                raise ValueError(f"{column.name} has {len(getattr(self, column.name))} entries for {n} targets")
        answered = self.trials[~np.isnan(self.trials)]
        if answered.size and not ((answered >= 0) & (answered <= 1)).all():
            raise ValueError("a trial is outside [0, 1]")

    def __len__(self) -> int:
        return self.trials.shape[1]

    def take(self, which: Bools | Ints) -> "TrialRows":
        """Select rows, in the order given."""
        if which.dtype == bool and which.all():
            return self
        columns = {f.name: getattr(self, f.name)[which] for f in fields(self) if f.name != "trials"}
        return TrialRows(trials=self.trials[:, which], **columns)

    def with_trials(self, trials: npt.ArrayLike) -> "TrialRows":
        """The same targets with other probabilities; a vector counts as a single trial."""
        return replace(self, trials=np.atleast_2d(np.asarray(trials, np.float64)))

    @cached_property
    def raw(self) -> Floats:
        """The logit mean of the trials that answered, the input of every rule; NaN if none did.

        A single answer stays exactly as it is.
        """
        alone = (~np.isnan(self.trials)).sum(axis=0) == 1
        return np.where(alone, np.nansum(self.trials, axis=0), sigmoid(self.log_odds(EDGE)))

    def log_odds(self, edge: float) -> Floats:
        """Return the mean log-odds of the trials that answered, clipped to [edge, 1 − edge]; NaN if none did."""
        x = logit(self.trials, edge)
        answered = ~np.isnan(x)
        n = answered.sum(axis=0)
        return np.where(n > 0, np.where(answered, x, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)

    @cached_property
    def anchor(self) -> Floats:
        """The market price if there is one, else the base rate; NaN without either."""
        return np.where(np.isnan(self.price), self.prior, self.price)

    @cached_property
    def asking(self) -> Strings:
        """The asking that each row belongs to, as text: question@due, with NaT for a day that is not known."""
        return np.char.add(np.char.add(self.question.astype(str), "@"), np.datetime_as_string(self.due, "D"))


def stacked(parts: Sequence[TrialRows]) -> TrialRows:
    """Concatenate the rows of several questions; missing trials count as failed."""
    most = max(len(part.trials) for part in parts)
    trials = [
        part.trials
        if len(part.trials) == most
        else np.pad(part.trials, ((0, most - len(part.trials)), (0, 0)), constant_values=np.nan)
        for part in parts
    ]
    columns = {f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(TrialRows)[1:]}
    return TrialRows(trials=np.concatenate(trials, axis=1), **columns)


@frozen
class Examples:
    """Training data of a rule: rows with their outcomes and the days on which they became known."""

    rows: TrialRows
    outcome: Floats
    """The outcome, 0 or 1."""
    known_on: Days
    weight: Floats
    payoff: Floats = field(default_factory=lambda: np.empty(0))
    """The return of a dollar on each option; NaN if unknown, which is the default."""
    category: Strings = field(default_factory=lambda: np.empty(0, str))
    """What the question is about; empty if unknown, which is the default."""

    def __post_init__(self) -> None:
        if not len(self.payoff):
            object.__setattr__(self, "payoff", np.full(len(self.rows), np.nan))
        if not len(self.category):
            object.__setattr__(self, "category", np.full(len(self.rows), ""))
        lengths = {len(self.rows), len(self.outcome), len(self.known_on), len(self.weight)}
        if len(lengths) > 1:
            raise ValueError(f"rows, outcome, known_on and weight differ in length: {sorted(lengths)}")
        if not np.isin(self.outcome, (0.0, 1.0)).all():
            raise ValueError("outcome must be 0 or 1 in every row")
        if np.isnat(self.known_on).any():
            raise ValueError("known_on must be given in every row: training on an undated answer could leak")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dated(self) -> bool:
        """Whether every row has the day it was asked and the day its answer became known."""
        return not bool((np.isnat(self.rows.due) | (self.known_on == UNKNOWN_DAY)).any())

    def take(self, which: Bools | Ints) -> "Examples":
        """Select examples, in the order given."""
        columns = {name: getattr(self, name)[which] for name in ("outcome", "known_on", "weight", "payoff", "category")}
        return Examples(rows=self.rows.take(which), **columns)

    def known_before(self, day: np.datetime64) -> "Examples":
        """Return the examples whose outcomes were known before `day`."""
        return self.take(self.known_on < day)


def rows_of_question(
    question: Question, trials: Sequence[Mapping[str, float]], as_of: AsOf, rates: "Rates | None" = None
) -> TrialRows:
    """Return one row per target of a question, with prices and base rates as known at the cutoff."""
    targets, n = question.targets, len(question.targets)
    snapshots = [t.snapshot if t.snapshot and as_of.admits(t.snapshot.at) else None for t in targets]
    # A market price is more informative than the base rate of its platform.
    priors = [] if rates is None or question.kind == "market" else [rates.rate(question, t, as_of) for t in targets]

    def numbers(values: Iterable[float | None]) -> Floats:
        return np.array([np.nan if value is None else value for value in values], np.float64)

    return TrialRows(
        trials=np.array([[trial.get(t.id, np.nan) for t in targets] for trial in trials], np.float64),
        target=np.array([t.id for t in targets]),
        due=np.full(n, np.datetime64(question.due.date(), "D")),
        horizon=numbers(question.horizon_days(t) for t in targets),
        price=numbers(snapshot and snapshot.price for snapshot in snapshots),
        liquidity=numbers(snapshot and snapshot.volume for snapshot in snapshots),
        price_age=numbers(None if snapshot is None else float((as_of.at - snapshot.at).days) for snapshot in snapshots),
        prior=numbers(priors or [None] * n),
        question=np.full(n, question.id),
        **{name: np.full(n, getattr(question, name)) for name in ("source", "subtype", "kind", "cluster")},
    )
