"""The charts of an arena's leaderboard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval
from foretell.report.charts.calibration import conservatism_plot, reliability_diagram
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.heatmap import difference_heatmap, distance_heatmap
from foretell.report.charts.ranking import ForestRow, FrontierPoint, forest_plot, frontier
from foretell.report.study import StudyChart
from foretell.scoring.arena_leaderboard import MAIN_METRIC, ArenaLeaderboardGroup, ArenaLeaderboardRow, ScoredArena
from foretell.scoring.arena_view import ArenaLeaderboard
from foretell.scoring.breakdown import Breakdown
from foretell.scoring.market_distance import divergence
from foretell.scoring.table import ALWAYS_HALF, BASE_RATE, CROWD

FEW_ENTRIES = 3
"""Entries that get a picture of their own."""


@dataclass(frozen=True, kw_only=True)
class ArenaChartInput:
    """The numbers of the page, and the scored arena for what only a chart shows."""

    view: ArenaLeaderboard
    scored: ScoredArena


def arena_charts(subject: ArenaChartInput) -> tuple[StudyChart, ...]:
    """All pictures of the page."""
    found = [_forest(subject), *_lead_times(subject), *_groups(subject), *_frontier(subject)]
    found += [_pairs(subject), _divergence(subject)]
    return (*found, *_reliability(subject), *_conservatism(subject))


def _best(subject: ArenaChartInput) -> list[str]:
    return [line.entry.name for line in subject.view.lines if not line.entry.anchor][:FEW_ENTRIES]


def _forest(subject: ArenaChartInput) -> StudyChart:
    rows = [
        ForestRow(name=line.entry.name, interval=line.scores[MAIN_METRIC], anchor=line.entry.anchor)
        for line in subject.view.lines
        if MAIN_METRIC in line.scores
    ]
    plot = forest_plot(rows, label="Brier score (lower is better)", decimals=3, reference=CROWD)
    return StudyChart(name="brier", title="Brier score", chart=plot)


def _lead_times(subject: ArenaChartInput) -> list[StudyChart]:
    curve = subject.view.lead_times
    if len(curve.points) < 2:
        return []
    names = [name for name in (CROWD, *_best(subject)) if name in curve.entries]
    found = Breakdown(
        column="time to close",
        ordered=True,
        groups=tuple(point.lead_time for point in curve.points),
        n=tuple(point.events for point in curve.points),
        base_rate=(float("nan"),) * len(curve.points),
        scores={name: tuple(point.scores.get(name) for point in curve.points) for name in names},
        answered={name: tuple(point.events for point in curve.points) for name in names},
    )
    title = "Brier score by time to close, on the same markets"
    return [StudyChart(name="lead-time", title=title, chart=score_by_group(found, label="Brier", decimals=3))]


def _groups(subject: ArenaChartInput) -> list[StudyChart]:
    groups = subject.view.groups.get("category", ())
    if len(groups) < 2:
        return []
    names = [CROWD, *_best(subject)]
    found = _breakdown("category", groups, [name for name in names if name in subject.scored.arena.names])
    return [
        StudyChart(name="category", title="Brier by category", chart=score_by_group(found, label="Brier", decimals=3))
    ]


def _breakdown(by: str, groups: Sequence[ArenaLeaderboardGroup], names: Sequence[str]) -> Breakdown:
    lines: list[Mapping[str, ArenaLeaderboardRow]] = [
        {line.entry.name: line for line in group.lines} for group in groups
    ]
    return Breakdown(
        column=by,
        ordered=False,
        groups=tuple(group.name for group in groups),
        n=tuple(group.events for group in groups),
        base_rate=(float("nan"),) * len(groups),
        scores={name: tuple(_brier(group, name) for group in lines) for name in names},
        answered={name: tuple(group[name].events for group in lines) for name in names},
    )


def _brier(lines: Mapping[str, ArenaLeaderboardRow], name: str) -> Interval | None:
    return lines[name].scores.get(MAIN_METRIC)


def _frontier(subject: ArenaChartInput) -> list[StudyChart]:
    points = [
        FrontierPoint(name=line.entry.name, cost=line.entry.dollars, interval=line.scores[MAIN_METRIC])
        for line in subject.view.lines
        if MAIN_METRIC in line.scores
        and np.isfinite(line.entry.dollars)
        and (line.entry.dollars > 0 or not line.entry.anchor)
    ]
    if not any(point.cost > 0 for point in points):
        return []
    plot = frontier(points, label="Brier (lower is better)", decimals=3, low_is_better=True)
    return [StudyChart(name="cost", title="Accuracy and cost", chart=plot)]


def _pairs(subject: ArenaChartInput) -> StudyChart:
    pairs = subject.view.pairs
    plot = difference_heatmap(pairs.names, pairs.matrix, label="Brier", decimals=3, low_is_better=True)
    return StudyChart(name="pairs", title="Paired differences of Brier scores", chart=plot)


def _divergence(subject: ArenaChartInput) -> StudyChart:
    names = [name for name in subject.view.pairs.names if name != ALWAYS_HALF]
    found = divergence(subject.scored, names)
    plot = distance_heatmap(names, found.distance, label="mean L2 distance of an event's forecasts")
    return StudyChart(name="divergence", title="How far entries are apart", chart=plot)


def _reliability(subject: ArenaChartInput) -> list[StudyChart]:
    arena = subject.scored.arena
    weight = market_weights(subject)
    names = [*_best(subject), *(name for name in (CROWD, BASE_RATE) if name in arena.names)]
    return [
        StudyChart(
            name=f"reliability-{i}",
            title=f"Reliability of {name}",
            chart=reliability_diagram(arena.row(name), arena.markets.outcome, weight, name=name),
        )
        for i, name in enumerate(names, 1)
    ]


def market_weights(subject: ArenaChartInput) -> Floats:
    """Every market counts once, however often it was asked."""
    arena = subject.scored.arena
    times = np.bincount(arena.moments.event, minlength=len(arena.events))
    return 1 / times[arena.market_event]


def _conservatism(subject: ArenaChartInput) -> list[StudyChart]:
    arena = subject.scored.arena
    if CROWD not in arena.names:
        return []
    return [
        StudyChart(
            name=f"conservatism-{i}",
            title=f"{name} against the market",
            chart=conservatism_plot(arena.row(name), arena.row(CROWD), name=name),
        )
        for i, name in enumerate(_best(subject), 1)
    ]
