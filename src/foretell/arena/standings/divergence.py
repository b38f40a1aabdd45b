"""How far entries are apart on the same events: the mean L2 distance of their forecasts (Prophet Arena D.5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foretell.arena.standings.board import Scored
from foretell.evaluate.arrays import Floats, Ints


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Every entry against every other, symmetric."""

    names: tuple[str, ...]
    distance: Floats
    """Mean over events of √Σ(p − q)² over an event's markets; 0 on the diagonal, NaN where two share no event."""
    n: Ints
    """Events both answered."""


def divergence(scored: Scored, of: Sequence[str] | None = None) -> Divergence:
    """Distances on the markets that both answered; an event asked several times counts once, as the mean.

    Of all entries, or of those named, in that order.
    """
    standings = scored.standings
    names = tuple(standings.names if of is None else of)
    places = [standings.names.index(name) for name in names]
    size = len(names)
    moments = scored.moments
    distance, n = np.zeros((size, size)), np.zeros((size, size), np.int64)
    answered = moments.answered[places]
    given = np.where(answered, standings.p[places], 0.0)
    for i in range(size):
        n[i, i] = int((scored.sums.moments[places[i]] > 0).sum())
        for j in range(i + 1, size):
            both = answered[i] & answered[j]
            squares = np.where(both, (given[i] - given[j]) ** 2, 0.0)
            apart = np.sqrt(np.add.reduceat(squares, standings.starts))
            asked = np.add.reduceat(both, standings.starts, dtype=np.int64) > 0
            total, weight = moments.by_event(np.where(asked & moments.admitted, apart, np.nan))
            distance[i, j] = distance[j, i] = total.sum() / weight.sum() if weight.any() else np.nan
            n[i, j] = n[j, i] = int((weight > 0).sum())
    return Divergence(names=names, distance=distance, n=n)
