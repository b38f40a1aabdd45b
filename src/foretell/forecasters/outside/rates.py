"""How often data-set questions came true, by source, template, size of the last value and horizon."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.outside.past import Days, PastQuestions
from foretell.forecasters.priors import HORIZON_EDGES

STRENGTH = 10.0
CORRELATION = 0.1
"""Between outcomes of one day, which makes m of them worth m / (1 + (m − 1)·ρ); both as in `priors.BaseRates`."""
SIZED = frozenset({("acled", "increase")})
"""Templates where the last value decides: a count that was zero all year hardly ever rises."""

SEVERAL = 5
"""Questions of one round that are not all zero by chance."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a data-set target is filed under."""

    source: str
    subtype: str = ""
    size: float | None = None
    days: float | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """From the widest class to the narrowest.

        >>> Kind(source="acled", subtype="increase", size=0.0, days=30).levels
        ('acled', 'acled/increase', 'acled/increase/zero', 'acled/increase/zero/1')
        """
        found = [self.source, f"{self.source}/{self.subtype}"]
        if (self.source, self.subtype) in SIZED and self.size is not None:
            found.append(f"{found[-1]}/{'zero' if self.size == 0 else 'below one' if self.size < 1 else 'more'}")
        if self.days is not None:
            found.append(f"{found[-1]}/{int(np.searchsorted(HORIZON_EDGES, self.days))}")
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class RateTable:
    """Yes and all by class, in independent outcomes."""

    counts: Mapping[str, tuple[float, float]]

    def rate(self, kind: Kind) -> float | None:
        """Each class shrunk to the wider one, the widest to one half; None for a source never seen."""
        if kind.source not in self.counts:
            return None
        rate = 0.5
        for level in kind.levels:
            yes, n = self.counts.get(level, (0.0, 0.0))
            rate = (yes + STRENGTH * rate) / (n + STRENGTH)
        return rate

    def seen(self, kind: Kind) -> float:
        """How many independent outcomes the narrowest class that has any holds."""
        return next((self.counts[level][1] for level in reversed(kind.levels) if level in self.counts), 0.0)


def rate_table(past: PastQuestions) -> RateTable:
    """The table of all data-set outcomes that are known."""
    chosen = past.take((past.kind == "dataset") & ~np.isnan(past.outcome))
    size, rows = trusted_sizes(chosen), dict[str, list[int]]()
    span = (chosen.resolves - chosen.due).astype(np.float64)
    for row, days in enumerate(np.where(np.isnat(chosen.resolves), np.nan, span)):
        kind = Kind(
            source=str(chosen.source[row]),
            subtype=str(chosen.subtype[row]),
            size=None if np.isnan(size[row]) else float(size[row]),
            days=None if np.isnan(days) else float(days),
        )
        for level in kind.levels:
            rows.setdefault(level, []).append(row)
    return RateTable(counts={level: _tally(chosen.outcome[at], chosen.known_on[at]) for level, at in rows.items()})


def trusted_sizes(past: PastQuestions) -> Floats:
    """The last values, without those of rounds in which a template has nothing but zeros: there they were missing."""
    size = past.size.copy()
    for source, subtype in SIZED:
        of_template = (past.source == source) & (past.subtype == subtype)
        for due in np.unique(past.due[of_template]):
            rows = of_template & (past.due == due)
            if len(np.unique(past.id[rows])) >= SEVERAL and not past.size[rows].any():
                size[rows] = np.nan
    return size


def _tally(outcome: Floats, day: Days) -> tuple[float, float]:
    _, code, size = np.unique(day, return_inverse=True, return_counts=True)
    worth = (1.0 / (1.0 + (size - 1) * CORRELATION))[code]
    return float((worth * outcome).sum()), float(worth.sum())
