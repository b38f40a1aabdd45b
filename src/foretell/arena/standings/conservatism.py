"""Do entries go as far from 0.5 as the market does? (Prophet Arena 4.1.3 and D.6)."""

from dataclasses import dataclass

import numpy as np

from foretell.arena.anchors import CROWD
from foretell.arena.standings.board import Scored
from foretell.arena.standings.drawing import Bundles, intervals_of
from foretell.evaluate.arrays import Floats
from foretell.evaluate.bootstrap import mean_from_sums
from foretell.evaluate.intervals import Interval

TENTHS = 10


@dataclass(frozen=True, kw_only=True)
class Conservatism:
    """One entry beside the crowd, on the markets both have a probability for; every event counts once."""

    entry: str
    markets: int
    gap: Interval
    """Mean of |p − 0.5| minus that of the crowd's price; below 0 the entry hedges."""
    hedged: Interval
    """Share of markets in which the entry is closer to 0.5 than the crowd; ties count half."""
    means: tuple[float, ...]
    """Mean probability for each tenth of the crowd's price; NaN where there is none."""


def conservatism(scored: Scored) -> tuple[Conservatism, ...]:
    """Every entry but the yardsticks, in the order of entries."""
    standings = scored.standings
    if CROWD not in standings.names:
        return ()
    price = standings.row(CROWD)
    chosen = [i for i, entry in enumerate(standings.entries) if not entry.anchor]
    found = [_one(scored, i, price) for i in chosen]
    return tuple(one for one in found if one is not None)


def _one(scored: Scored, i: int, price: Floats) -> Conservatism | None:
    standings, p = scored.standings, scored.standings.p[i]
    both = np.isfinite(p) & np.isfinite(price)
    if not both.any():
        return None
    far, market_far = np.abs(p - 0.5), np.abs(price - 0.5)
    hedged = np.where(far < market_far, 1.0, np.where(far == market_far, 0.5, 0.0))
    numbers = _event_means(scored, np.where(both, np.stack([far - market_far, hedged]), np.nan))
    tenth = np.minimum((price[both] * TENTHS).astype(np.int64), TENTHS - 1)
    n = np.bincount(tenth, minlength=TENTHS)
    total = np.bincount(tenth, p[both], minlength=TENTHS)
    return Conservatism(
        entry=standings.names[i],
        markets=int(both.sum()),
        gap=numbers[0],
        hedged=numbers[1],
        means=tuple(np.divide(total, n, out=np.full(TENTHS, np.nan), where=n > 0).tolist()),
    )


def _event_means(scored: Scored, rows: Floats) -> list[Interval]:
    """Means over events of numbers by market (lines × markets, NaN: none), with intervals."""
    event, n = scored.standings.market_event, len(scored.standings.events)
    known = np.isfinite(rows[0])
    count = np.bincount(event, known, minlength=n)
    sums = [np.bincount(event, np.where(known, row, 0.0), minlength=n) / np.maximum(count, 1) for row in rows]
    weight = np.minimum(count, 1)
    bundles = Bundles.of(scored.standings.events.cluster)
    drawn = bundles.drawn(np.stack([*sums, weight]), scored.resampling)
    draws = drawn[:, :-1] / np.maximum(drawn[:, -1:], 1e-9)
    estimate = mean_from_sums(np.stack([np.sum(sums, axis=1), np.full(len(sums), weight.sum())], axis=1))
    clusters = np.repeat(bundles.present((weight > 0)[None]), len(sums))
    return [one for one in intervals_of(estimate, draws, clusters, scored.resampling) if one is not None]
