"""Do entries go as far from 0.5 as the market does? (Prophet Arena 4.1.3 and D.6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.bootstrap import Interval
from foretell.scoring.arena_leaderboard import ScoredArena
from foretell.scoring.engine import ClusterBundles
from foretell.scoring.table import CROWD

CONSERVATISM_BINS = 10


@dataclass(frozen=True, kw_only=True)
class ConservatismResult:
    """One entry beside the crowd, on the markets both have a probability for; every event counts once."""

    entry: str
    markets: int
    gap: Interval
    """Mean of |p − 0.5| minus that of the crowd's price; below 0 the entry hedges."""
    hedged: Interval
    """Share of markets in which the entry is closer to 0.5 than the crowd; ties count half."""
    means: tuple[float, ...]
    """Mean probability for each tenth of the crowd's price; NaN where there is none."""


def conservatism(scored: ScoredArena) -> tuple[ConservatismResult, ...]:
    """Every entry but the yardsticks, in the order of entries."""
    arena = scored.arena
    if CROWD not in arena.names:
        return ()
    price = arena.row(CROWD)
    chosen = [i for i, entry in enumerate(arena.entries) if not entry.anchor]
    found = [_one(scored, i, price) for i in chosen]
    return tuple(one for one in found if one is not None)


def _one(scored: ScoredArena, i: int, price: Floats) -> ConservatismResult | None:
    arena, p = scored.arena, scored.arena.p[i]
    both = np.isfinite(p) & np.isfinite(price)
    if not both.any():
        return None
    far, market_far = np.abs(p - 0.5), np.abs(price - 0.5)
    hedged = np.where(far < market_far, 1.0, np.where(far == market_far, 0.5, 0.0))
    numbers = _event_means(scored, np.where(both, np.stack([far - market_far, hedged]), np.nan))
    tenth = np.minimum((price[both] * CONSERVATISM_BINS).astype(np.int64), CONSERVATISM_BINS - 1)
    n = np.bincount(tenth, minlength=CONSERVATISM_BINS)
    total = np.bincount(tenth, p[both], minlength=CONSERVATISM_BINS)
    return ConservatismResult(
        entry=arena.names[i],
        markets=int(both.sum()),
        gap=numbers[0],
        hedged=numbers[1],
        means=tuple(np.divide(total, n, out=np.full(CONSERVATISM_BINS, np.nan), where=n > 0).tolist()),
    )


def _event_means(scored: ScoredArena, rows: Floats) -> list[Interval]:
    """Means over events of numbers by market (lines × markets, NaN: none), with intervals."""
    event, n = scored.arena.market_event, len(scored.arena.events)
    known = np.isfinite(rows[0])
    count = np.bincount(event, known, minlength=n)
    sums = [np.bincount(event, np.where(known, row, 0.0), minlength=n) / np.maximum(count, 1) for row in rows]
    bundles = ClusterBundles.of(scored.arena.events.cluster)
    names = [str(k) for k in range(len(sums))]
    found = bundles.means(names, np.stack(sums), np.minimum(count, 1), scored.resampling)
    return list(found.intervals(scored.resampling).values())


# How far entries are apart on the same events: the mean L2 distance of their forecasts (Prophet Arena D.5).


@dataclass(frozen=True, kw_only=True)
class EntryDistances:
    """Every entry against every other, symmetric."""

    names: tuple[str, ...]
    distance: Floats
    """Mean over events of √Σ(p − q)² over an event's markets; 0 on the diagonal, NaN where two share no event."""
    n: Ints
    """Events both answered."""


def divergence(scored: ScoredArena, of: Sequence[str] | None = None) -> EntryDistances:
    """Distances on the markets that both answered; an event asked several times counts once, as the mean.

    Of all entries, or of those named, in that order.
    """
    arena = scored.arena
    names = tuple(arena.names if of is None else of)
    places = [arena.names.index(name) for name in names]
    size = len(names)
    moments = scored.moments
    distance, n = np.zeros((size, size)), np.zeros((size, size), np.int64)
    answered = moments.answered[places]
    given = np.where(answered, arena.p[places], 0.0)
    for i in range(size):
        n[i, i] = int((scored.sums.moments[places[i]] > 0).sum())
        for j in range(i + 1, size):
            both = answered[i] & answered[j]
            squares = np.where(both, (given[i] - given[j]) ** 2, 0.0)
            apart = np.sqrt(np.add.reduceat(squares, arena.starts))
            asked = np.add.reduceat(both, arena.starts, dtype=np.int64) > 0
            total, weight = moments.by_event(np.where(asked & moments.counted, apart, np.nan))
            distance[i, j] = distance[j, i] = total.sum() / weight.sum() if weight.any() else np.nan
            n[i, j] = n[j, i] = int((weight > 0).sum())
    return EntryDistances(names=names, distance=distance, n=n)
