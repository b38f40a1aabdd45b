"""Base rates: how often questions of a kind came true before, from outcomes known at the cutoff."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target

RateCounts = Mapping[str, tuple[float, float]]
"""Counts of yes and of all by level, such as "fred", "fred/all" and "fred/all/2", in independent outcomes."""
HORIZON_EDGES = (14, 60, 135, 270, 730, 1460, 2700)
"""Boundaries in days between horizons of 7, 30, 90, 180 days and 1, 3, 5, 10 years, midway on a log scale."""


class Rates(Protocol):
    """Provides how often targets similar to a given one came true."""

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """Return the base rate as of a cutoff; None if there are no similar targets."""
        ...


@frozen
class FixedRates:
    """Rates from a table by (source, subtype); an empty subtype matches any."""

    table: Mapping[tuple[str, str], float]

    def __post_init__(self) -> None:
        for key, rate in self.table.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"rate of {key} is {rate}, not in [0, 1]")

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """Return the table's rate for the question's source and subtype, for any date."""
        exact = self.table.get((question.source, question.subtype))
        return exact if exact is not None else self.table.get((question.source, ""))


@frozen
class PastOutcomes:
    """Outcomes of other questions: one entry per target, with the day on which it became known."""

    known_on: npt.NDArray[np.datetime64]
    source: npt.NDArray[np.str_]
    subtype: npt.NDArray[np.str_]
    horizon_days: Ints
    outcome: Floats

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in vars(self).items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"past outcomes have columns of different length: {lengths}")
        if not np.isin(self.outcome, (0.0, 1.0)).all():
            raise ValueError("outcome must be 0 or 1 in every row")

    def __len__(self) -> int:
        return len(self.outcome)

    @cached_property
    def levels(self) -> tuple[tuple[list[str], Ints], ...]:
        """Names and codes of each row's source, of subtype within source, and of nearest usual horizon within both."""
        source = self.source.astype(str)
        subtype = np.char.add(np.char.add(source, "/"), self.subtype.astype(str))
        term = np.searchsorted(HORIZON_EDGES, self.horizon_days).astype(str)
        keys = (source, subtype, np.char.add(np.char.add(subtype, "/"), term))
        unique = (np.unique(level, return_inverse=True) for level in keys)
        return tuple((names.tolist(), codes.astype(np.int64)) for names, codes in unique)


@frozen
class BaseRates:
    """Rates by source, subtype and horizon, each level shrunk to the one above it.

    Only outcomes known before the cutoff's day count. Outcomes known on the same day are correlated: with
    `correlation` ρ between them, m of them count as m / (1 + (m−1)·ρ).
    """

    past: PastOutcomes
    strength: float = 10.0
    correlation: float = 0.1
    by_horizon: bool = True
    _by_day: dict[date, RateCounts] = field(default_factory=dict[date, RateCounts], repr=False, compare=False)

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """The rate among outcomes known before the day of the cutoff; None if the source has none."""
        horizon = question.horizon_days(target)
        levels = [question.source, f"{question.source}/{question.subtype}"]
        if self.by_horizon and horizon is not None:
            levels.append(f"{levels[-1]}/{int(np.searchsorted(HORIZON_EDGES, horizon))}")
        return shrunk_rate(self._counts(question, as_of), levels, self.strength)

    def cases(self, question: Question, as_of: AsOf) -> int:
        """Effective number of independent outcomes of the question's subtype, else of its source."""
        table = self._counts(question, as_of)
        _, n = table.get(f"{question.source}/{question.subtype}") or table.get(question.source, (0.0, 0.0))
        return round(n)

    def _counts(self, question: Question, as_of: AsOf) -> RateCounts:
        day = min(as_of.at.date(), question.due.date())
        if day not in self._by_day:
            self._by_day[day] = self._count(day)
        return self._by_day[day]

    def _count(self, day: date) -> RateCounts:
        known = self.past.known_on < np.datetime64(day, "D")
        days, outcome = self.past.known_on[known], self.past.outcome[known]
        table: dict[str, tuple[float, float]] = {}
        for names, codes in self.past.levels:
            code = codes[known]
            for level in np.unique(code):
                rows = code == level
                table[names[level]] = effective_counts(outcome[rows], days[rows], self.correlation)
        return table


def shrunk_rate(table: RateCounts, levels: Sequence[str], strength: float) -> float | None:
    """Return the rate at the narrowest level, each shrunk to the wider one; None if the widest has no outcomes.

    With k of n at a level and the rate r of the level above: (k + s·r) / (n + s), where s is `strength`; the top level
    is shrunk to one half (beta-binomial partial pooling).
    """
    if levels[0] not in table:
        return None
    rate = 0.5
    for level in levels:
        k, n = table.get(level, (0.0, 0.0))
        rate = (k + strength * rate) / (n + strength) if n + strength > 0 else rate
    return rate


def effective_counts(outcome: Floats, day: npt.NDArray[np.datetime64], correlation: float) -> tuple[float, float]:
    """Return counts of yes and of all, with each day's outcomes counted as their number of independent ones."""
    weights = effective_weights(day, correlation)
    return float(weights @ outcome), float(weights.sum())


def effective_weights(group: npt.NDArray[Any], correlation: float) -> Floats:
    """Return the weight of each outcome within its group, such as a day: m of them count as m / (1 + (m−1)·ρ)."""
    _, code, size = np.unique(group, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / (1.0 + (size - 1) * correlation), np.float64)[code]
