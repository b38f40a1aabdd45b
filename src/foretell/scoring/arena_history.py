"""How entries of an arena stood over time, and on which events they were better and worse than the market."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from foretell.metrics.arrays import Floats
from foretell.scoring.arena_leaderboard import ScoredArena
from foretell.scoring.arena_table import Times
from foretell.scoring.table import CROWD

WINDOW_DAYS = 28
"""A score at a day is that of the events settled in so many days before it."""
MOST_TICKS = 40
FEWEST = 5
"""Events in a window below which it has no score."""
Course = list[tuple[datetime, float]]


@dataclass(frozen=True, kw_only=True)
class EventGap:
    """One event and how much better than the market an entry was on it, in Brier; below 0 it was worse."""

    event: str
    gap: float
    settled_at: datetime


def settled_at(scored: ScoredArena) -> Times:
    """When the last market of each event was known."""
    known = scored.arena.markets.known_at
    first = scored.arena.starts[scored.arena.event_starts]
    # A time that is missing counts as the first there is: it stands before all others.
    filled = np.where(np.isnat(known), np.datetime64(0, "s"), known)
    return np.maximum.reduceat(filled, first)


def _gaps(scored: ScoredArena, name: str) -> tuple[Floats, Floats]:
    """By event: the market's weighted Brier score minus the entry's on what both answered, and the weight."""
    names = scored.arena.names
    total, weight = scored.moments.difference(names.index(CROWD), names.index(name))
    return total, weight


def scores_over_time(scored: ScoredArena, names: Sequence[str]) -> dict[str, Course]:
    """By entry: crowd − entry in Brier over the last four weeks, about once a week; above 0 it beats the market."""
    if CROWD not in scored.arena.names or not len(scored.arena.events):
        return {}
    at = settled_at(scored)
    order = np.argsort(at, kind="stable")
    days = at[order].astype("datetime64[D]").astype(np.int64)
    span = int(days[-1] - days[0])
    window = WINDOW_DAYS if span > WINDOW_DAYS else max(span // 3, 1)
    step = max(7 if span > 5 * 7 else 1, -(-span // MOST_TICKS))
    ticks = np.arange(days[-1], days[0] + min(window, span) // 2, -step)[::-1]
    upto = np.searchsorted(days, ticks, side="right")
    since = np.searchsorted(days, ticks - window, side="right")
    found: dict[str, Course] = {}
    for name in names:
        if name == CROWD:
            continue
        total, weight = _gaps(scored, name)
        sums, weights = (np.concatenate([[0.0], np.cumsum(one[order])]) for one in (total, weight))
        course: Course = []
        for day, start, end in zip(ticks.tolist(), since.tolist(), upto.tolist(), strict=True):
            n = weights[end] - weights[start]
            if n >= FEWEST:
                moment = datetime.fromtimestamp(86_400 * day, UTC)
                course.append((moment, float((sums[end] - sums[start]) / n)))
        if course:
            found[name] = course
    return found


def event_gaps(scored: ScoredArena, name: str) -> list[EventGap]:
    """Every event that the entry and the market both answered, the best for the entry first."""
    if CROWD not in scored.arena.names:
        return []
    total, weight = _gaps(scored, name)
    at = settled_at(scored).astype("datetime64[s]").astype(np.int64)
    shared = np.flatnonzero(weight > 0)
    order = shared[np.argsort(-(total[shared] / weight[shared]), kind="stable")]
    return [
        EventGap(
            event=scored.arena.events.ids[i],
            gap=float(total[i] / weight[i]),
            settled_at=datetime.fromtimestamp(int(at[i]), UTC),
        )
        for i in order.tolist()
    ]
