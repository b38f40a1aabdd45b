"""Everything a leaderboard page shows, as one value that can be dumped to JSON directly."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Interval, Resampling
from foretell.metrics.clusters import distinct, merged_note
from foretell.questions.codec import plain_data
from foretell.scoring.arena_leaderboard import (
    ARENA_METRICS,
    LEAD_TIMES,
    ArenaLeaderboardGroup,
    ArenaLeaderboardRow,
    CategoryShares,
    ForecastTimeScores,
    RebalancedScores,
    ScoredArena,
    arena_leaderboard,
    arena_leaderboard_groups,
    brier_verdicts,
    lead_time_of,
    leading_verdicts,
    point_scores,
    rebalanced_scores,
    resolved_with_baselines,
    verdicts_against_market,
)
from foretell.scoring.arena_table import ArenaTable, Times
from foretell.scoring.baselines import MARKET_PRICE
from foretell.scoring.engine import ClusterBundles
from foretell.scoring.verdict import Verdict

# Brier score by lead time: entries and market on the same markets (Prophet Arena 4.2).

LEAST_SHARED = 0.8
"""Share of the forecast times that an entry must answer to be on the curve. All entries on it are scored on what all of
them answered, so an entry that joined last week would leave almost nothing to score."""


@frozen
class CurvePoint:
    """One range of lead times."""

    lead_time: str
    events: int
    forecast_times: int
    """Number of forecast times."""
    scores: Mapping[str, Interval]
    """Brier scores, all on the same markets of the same events."""
    versus_market: Mapping[str, Verdict]
    """Every entry against the market, on the same markets."""


@frozen
class LeadTimeCurve:
    """Brier scores from the longest lead time to the shortest."""

    points: tuple[CurvePoint, ...]
    entries: tuple[str, ...]
    left_out: tuple[str, ...]
    """Entries that answered too little to be compared on shared markets."""


def lead_time_curve(scored: ScoredArena) -> LeadTimeCurve:
    """Brier score by time to close, for the market and entries that answered most forecast times, on what all answered.

    Different lead times hold different events, so only scores at the same lead time may be compared.
    """
    arena = scored.arena
    if MARKET_PRICE not in arena.names or not np.isfinite(arena.row(MARKET_PRICE)).any():
        return LeadTimeCurve(points=(), entries=(), left_out=arena.names)
    priced = arena.only(np.isfinite(arena.row(MARKET_PRICE)))
    time_scores = scored.time_scores if priced is arena else ForecastTimeScores(arena=priced)
    answered = np.isfinite(time_scores.brier)
    enough = answered.mean(axis=1) >= LEAST_SHARED
    shown = [i for i in range(len(priced.entries)) if enough[i]]
    common = answered[shown].all(axis=0)
    lead_times = lead_time_of(priced.forecast_times.hours)
    points = [
        _curve_point(scored, time_scores, shown, LEAD_TIMES[code].name, common & (lead_times == code))
        for code in reversed(range(len(LEAD_TIMES)))
        if (common & (lead_times == code)).any()
    ]
    return LeadTimeCurve(
        points=tuple(points),
        entries=tuple(priced.names[i] for i in shown),
        left_out=tuple(name for i, name in enumerate(priced.names) if not enough[i]),
    )


def _curve_point(
    scored: ScoredArena, time_scores: ForecastTimeScores, shown: Sequence[int], lead_time: str, mask: Bools
) -> CurvePoint:
    arena, resampling = time_scores.arena, scored.resampling
    sums, weight = _by_event(time_scores, shown, mask)
    included = weight > 0
    bundles = ClusterBundles.of(arena.events.cluster[included])
    names = [arena.names[i] for i in shown]
    market, others = names.index(MARKET_PRICE), [name for name in names if name != MARKET_PRICE]
    lines = sums[:, included]
    scores = bundles.means(names, lines, weight[included], resampling)
    columns = np.stack(
        [*np.broadcast_arrays(np.delete(lines, market, axis=0), lines[market], weight[included])], axis=-1
    )
    pairs = [(name, MARKET_PRICE) for name in others]
    verdicts = (
        brier_verdicts(pairs, columns.swapaxes(0, 1), arena.events.cluster[included], resampling) if others else []
    )
    return CurvePoint(
        lead_time=lead_time,
        events=int(included.sum()),
        forecast_times=int(mask.sum()),
        scores=scores.intervals(resampling),
        versus_market={verdict.first: replace(verdict, group={"lead time": lead_time}) for verdict in verdicts},
    )


def _by_event(time_scores: ForecastTimeScores, shown: Sequence[int], mask: Bools) -> tuple[Floats, Floats]:
    """Entries × events: weighted Brier scores, and the weights of the events."""
    here = np.flatnonzero(mask)
    event, starts, times = np.unique(
        time_scores.arena.forecast_times.event[here], return_index=True, return_counts=True
    )
    sums, weights = np.zeros((len(shown), len(time_scores.arena.events))), np.zeros(len(time_scores.arena.events))
    weights[event] = 1.0
    sums[:, event] = np.add.reduceat(time_scores.brier[shown][:, here], starts, axis=1) / times
    return sums, weights


ARENA_LEADERBOARD_SCHEMA = "foretell/standings/2"
GROUP_PAGE_METRICS = ("brier", "return")
"""Metrics that the page shows for every category and platform."""
MOST_PAIRED = 40
"""Most entries that are compared pairwise."""
WEIGHING_TEXT = "an event counts once: the mean over its forecast times"


@frozen
class ArenaCounts:
    """The size of the arena."""

    events: int
    """Number of events asked about, resolved or not."""
    resolved: int
    """Number of events with at least one outcome."""
    forecast_times: int
    """Number of forecast times, resolved or not."""
    moments_scored: int
    markets_scored: int
    """Number of single outcomes, counted once for each forecast time."""
    forecasts: int
    """Number of forecasts by entries, scored or not; every trial counts."""


@frozen
class ArenaPairs:
    """The verdict on every pair of the leading entries, in the order of the board."""

    names: tuple[str, ...]
    verdicts: tuple[Verdict, ...]


@frozen
class ArenaLeaderboard:
    """The leaderboard page as data."""

    arena: str
    counts: ArenaCounts
    first: str
    """The first scored forecast time, UTC; `last` is the last one."""
    last: str
    lines: tuple[ArenaLeaderboardRow, ...]
    """Rows with the best Brier score first; baselines are listed among the entries."""
    versus_market: Mapping[str, Verdict]
    """Every entry against the market, on the markets both answered."""
    pairs: ArenaPairs
    groups: Mapping[str, tuple[ArenaLeaderboardGroup, ...]]
    """Groups by category and platform, and by any other grouping requested."""
    rebalanced: tuple[RebalancedScores, ...]
    lead_times: LeadTimeCurve
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; missing numbers are null."""
        shown = ("name", "label", "meaning", "better", "decimals")
        measures = [{name: getattr(metric, name) for name in shown} for metric in ARENA_METRICS.values()]
        return {"schema": ARENA_LEADERBOARD_SCHEMA, "measures": measures, **plain_data(self)}


def arena_view(
    arena: ArenaTable,
    *,
    by: Sequence[str] = (),
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> ArenaLeaderboard:
    """Compute everything an arena's page shows; `by` names further groupings, shown with more metrics."""
    return view_of_scored(arena, ScoredArena.of(arena, resampling), by=by)


def view_of_scored(
    arena: ArenaTable,
    scored: ScoredArena,
    *,
    by: Sequence[str] = (),
    shares: Mapping[str, CategoryShares] | None = None,
) -> ArenaLeaderboard:
    """Compute the view of an arena that is already scored; `shares` are other shares of the categories, by name."""
    with ThreadPoolExecutor() as threads:  # Most of the time is spent in numpy, which releases the interpreter lock.
        versus_market = threads.submit(verdicts_against_market, scored)
        curve = threads.submit(lead_time_curve, scored)
        other = threads.submit(_groups, scored, by, shares)
        lines = arena_leaderboard(scored)
    groups, rebalanced = other.result()
    clusters = {"clusters of events": len(distinct(scored.arena.events.cluster))}
    return ArenaLeaderboard(
        arena=arena.name,
        counts=_counts(arena, scored.arena),
        first=_time(scored.arena.forecast_times.taken_at.min()),
        last=_time(scored.arena.forecast_times.taken_at.max()),
        lines=lines,
        versus_market=versus_market.result(),
        pairs=_pairs(scored, lines),
        groups=groups,
        rebalanced=rebalanced,
        lead_times=curve.result(),
        settings=_settings(scored.resampling),
        notes=(*_notes(arena), *merged_note(clusters, "with their neighbours in time")),
    )


def first_view(arena: ArenaTable) -> ArenaLeaderboard:
    """Rank by Brier score without intervals, groups or pairs, to show while those are computed."""
    scored = resolved_with_baselines(arena)
    return ArenaLeaderboard(
        arena=arena.name,
        counts=_counts(arena, scored),
        first=_time(scored.forecast_times.taken_at.min()),
        last=_time(scored.forecast_times.taken_at.max()),
        lines=point_scores(scored),
        versus_market={},
        pairs=ArenaPairs(names=(), verdicts=()),
        groups={},
        rebalanced=(),
        lead_times=LeadTimeCurve(points=(), entries=(), left_out=()),
        settings=_settings(DEFAULT_RESAMPLING),
    )


def _counts(arena: ArenaTable, scored: ArenaTable) -> ArenaCounts:
    return ArenaCounts(
        events=len(arena.events),
        resolved=len(scored.events),
        forecast_times=len(arena.forecast_times),
        moments_scored=len(scored.forecast_times),
        markets_scored=len(scored.markets),
        forecasts=sum(entry.forecasts for entry in arena.entries),
    )


def _groups(
    scored: ScoredArena, by: Sequence[str], shares: Mapping[str, CategoryShares] | None
) -> tuple[dict[str, tuple[ArenaLeaderboardGroup, ...]], tuple[RebalancedScores, ...]]:
    """Return the groups by name of the grouping, and the board with other shares of the categories."""
    groups = {
        name: arena_leaderboard_groups(scored, name, GROUP_PAGE_METRICS)
        for name in ("category", "platform")
        if name not in by
    }
    return groups | {name: arena_leaderboard_groups(scored, name) for name in by}, rebalanced_scores(scored, shares)


def _pairs(scored: ScoredArena, lines: Sequence[ArenaLeaderboardRow]) -> ArenaPairs:
    """Verdicts on the leading pairs, in the order of the board."""
    names = tuple(line.entry.name for line in lines[:MOST_PAIRED])
    return ArenaPairs(names=names, verdicts=leading_verdicts(scored, names))


def _settings(resampling: Resampling) -> dict[str, Any]:
    return {
        "weighing": WEIGHING_TEXT,
        "draws": resampling.draws,
        "level": resampling.level,
        "seed": resampling.seed,
        "interval": resampling.interval,
        "resampled": "events",
    }


def _notes(arena: ArenaTable) -> tuple[str, ...]:
    settled = ~np.isnat(arena.markets.known_at)
    void = int((settled & np.isnan(arena.markets.outcome)).sum())
    unpriced = int(np.isnan(arena.markets.price).sum())
    text = [f"{void} void markets are not scored"] if void else []
    text += (
        [f"{unpriced} markets had no price: the market price has no forecast there, and bets are not possible"]
        if unpriced
        else []
    )
    return (*arena.notes, *text)


def _time(time: np.datetime64) -> str:
    return f"{np.datetime_as_string(time, unit='s')}Z"


# Scores of entries over time, and the events on which they were better or worse than the market.


WINDOW_DAYS = 28
"""Length in days of the sliding window: the score at a day covers the events settled in this many days before it."""
MOST_TICKS = 40
FEWEST = 5
"""A window with fewer events than this has no score."""
Course = list[tuple[datetime, float]]


@frozen
class EventGap:
    """How much better than the market an entry was on one event, in Brier score; negative if it was worse."""

    event: str
    gap: float
    settled_at: datetime


def settled_at(scored: ScoredArena) -> Times:
    """When the last market of each event became known."""
    known = scored.arena.markets.known_at
    first = scored.arena.starts[scored.arena.event_starts]
    # A missing time sorts before all others.
    filled = np.where(np.isnat(known), np.datetime64(0, "s"), known)
    return np.maximum.reduceat(filled, first)


def _gaps(scored: ScoredArena, name: str) -> tuple[Floats, Floats]:
    """Per event: the market's weighted Brier score minus the entry's on what both answered, and the weight."""
    names = scored.arena.names
    (market, entry), weight = scored.time_scores.pair(names.index(MARKET_PRICE), names.index(name))
    return market - entry, weight


def scores_over_time(scored: ScoredArena, names: Sequence[str]) -> dict[str, Course]:
    """Market − entry in Brier score over the last four weeks, about weekly; if positive, the entry beats the market."""
    if MARKET_PRICE not in scored.arena.names or not len(scored.arena.events):
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
    courses: dict[str, Course] = {}
    for name in names:
        if name == MARKET_PRICE:
            continue
        total, weight = _gaps(scored, name)
        sums, weights = (np.concatenate([[0.0], np.cumsum(column[order])]) for column in (total, weight))
        course: Course = []
        for day, start, end in zip(ticks.tolist(), since.tolist(), upto.tolist(), strict=True):
            n = weights[end] - weights[start]
            if n >= FEWEST:
                time = datetime.fromtimestamp(86_400 * day, UTC)
                course.append((time, float((sums[end] - sums[start]) / n)))
        if course:
            courses[name] = course
    return courses


def event_gaps(scored: ScoredArena, name: str) -> list[EventGap]:
    """Return every event that the entry and the market both answered, the entry's best first."""
    if MARKET_PRICE not in scored.arena.names:
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
