"""The charts of an arena's leaderboard."""

from collections.abc import Mapping, Sequence

import numpy as np

from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval
from foretell.report.charts.calibration import conservatism_plot, reliability_diagram
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.heatmap import difference_heatmap, distance_heatmap
from foretell.report.charts.ranking import ForestRow, FrontierPoint, forest_plot, frontier
from foretell.report.charts.svg import Chart, SeriesStyle, series_styles
from foretell.report.charts.timelines import DatedLines, dated_plot
from foretell.report.study import StudyChart
from foretell.scoring.arena_history import Course, scores_over_time
from foretell.scoring.arena_leaderboard import MAIN_METRIC, ScoredArena, divergence
from foretell.scoring.arena_table import ArenaTable
from foretell.scoring.arena_view import ArenaLeaderboard
from foretell.scoring.breakdown import Breakdown
from foretell.scoring.table import ALWAYS_HALF, BASE_RATE, CROWD

FEW_ENTRIES, SEVERAL, MOST_COURSES = 3, 7, 24
"""Entries that get a chart of their own, that are shown in one chart by group, and that have a line over time."""


def arena_charts(view: ArenaLeaderboard, scored: ScoredArena) -> tuple[StudyChart, ...]:
    """All charts of the page; those that have nothing to show are left out."""
    arena, pairs = scored.arena, view.pairs
    ranked = [line.entry.name for line in view.lines if not line.entry.anchor]
    best, several = ranked[:FEW_ENTRIES], ranked[:SEVERAL]
    styles = series_styles([entry.name for entry in arena.entries if not entry.anchor])
    courses = scores_over_time(scored, ranked[:MOST_COURSES])
    crowd = [CROWD] if CROWD in arena.names else []
    apart = [name for name in pairs.names if name != ALWAYS_HALF]
    lines = [(line.entry, line.scores[MAIN_METRIC]) for line in view.lines if MAIN_METRIC in line.scores]
    rows = [ForestRow(name=entry.name, interval=brier, anchor=entry.anchor) for entry, brier in lines]
    found: dict[str, tuple[str, Chart | None]] = {
        "brier": (
            "Brier score",
            forest_plot(rows, label="Brier score (lower is better)", decimals=3, reference=CROWD),
        ),
        "over-time": ("Score over time", over_time_figure(courses, styles) if courses else None),
        "lead-time": (
            "Brier score by time to close, on the same markets",
            _lead_times(view, [CROWD, *several], styles),
        ),
        "category": ("Brier by category", _categories(view, [*crowd, *several], styles)),
        "cost": ("Accuracy and cost", _frontier(view)),
        "pairs": (
            "Paired differences of Brier scores",
            difference_heatmap(pairs.names, pairs.matrix, label="Brier", decimals=3, low_is_better=True),
        ),
        "divergence": (
            "How far entries are apart",
            distance_heatmap(
                apart, divergence(scored, apart).distance, label="mean L2 distance of an event's forecasts"
            ),
        ),
    }
    weight = market_weights(arena)
    drawn = [*best, *crowd] + ([BASE_RATE] if BASE_RATE in arena.names else [])
    for i, name in enumerate(drawn, 1):
        chart = reliability_diagram(arena.row(name), arena.markets.outcome, weight, name=name)
        found[f"reliability-{i}"] = (f"Reliability of {name}", chart)
    for i, name in enumerate(best if crowd else [], 1):
        chart = conservatism_plot(arena.row(name), arena.row(CROWD), name=name)
        found[f"conservatism-{i}"] = (f"{name} against the market", chart)
    return tuple(
        StudyChart(name=name, title=title, chart=chart) for name, (title, chart) in found.items() if chart is not None
    )


def market_weights(arena: ArenaTable) -> Floats:
    """Every market counts once, however often it was asked."""
    return 1 / np.bincount(arena.moments.event, minlength=len(arena.events))[arena.market_event]


def over_time_figure(courses: Mapping[str, Course], styles: Mapping[str, SeriesStyle]) -> Chart:
    """How much better than the market entries were in the four weeks before each day; above the line is better."""
    return dated_plot(
        DatedLines(
            title="Brier score better than the market's, last four weeks",
            lines=courses,
            label="market minus entry, Brier",
            decimals=3,
            level=0.0,
            styles=styles,
        )
    )


def _lead_times(view: ArenaLeaderboard, wanted: Sequence[str], styles: Mapping[str, SeriesStyle]) -> Chart | None:
    names = [name for name in wanted if name in view.lead_times.entries]
    groups = {
        point.lead_time: (point.events, {name: (point.scores.get(name), point.events) for name in names})
        for point in view.lead_times.points
    }
    return _by_group("time to close", groups, names, styles, ordered=True)


def _categories(view: ArenaLeaderboard, names: Sequence[str], styles: Mapping[str, SeriesStyle]) -> Chart | None:
    groups = {
        group.name: (
            group.events,
            {line.entry.name: (line.scores.get(MAIN_METRIC), line.events) for line in group.lines},
        )
        for group in view.groups.get("category", ())
    }
    return _by_group("category", groups, names, styles, ordered=False)


def _by_group(
    column: str,
    groups: Mapping[str, tuple[int, Mapping[str, tuple[Interval | None, int]]]],
    names: Sequence[str],
    styles: Mapping[str, SeriesStyle],
    *,
    ordered: bool,
) -> Chart | None:
    """Brier scores of some entries by group; a group has its events, an entry its score and the events it answered."""
    if len(groups) < 2:
        return None
    found = Breakdown(
        column=column,
        ordered=ordered,
        groups=tuple(groups),
        n=tuple(events for events, _ in groups.values()),
        base_rate=(float("nan"),) * len(groups),
        scores={name: tuple(scores[name][0] for _, scores in groups.values()) for name in names},
        answered={name: tuple(scores[name][1] for _, scores in groups.values()) for name in names},
    )
    return score_by_group(found, label="Brier", decimals=3, styles=styles)


def _frontier(view: ArenaLeaderboard) -> Chart | None:
    points = [
        FrontierPoint(name=line.entry.name, cost=line.entry.dollars, interval=line.scores[MAIN_METRIC])
        for line in view.lines
        if MAIN_METRIC in line.scores
        and np.isfinite(line.entry.dollars)
        and (line.entry.dollars > 0 or not line.entry.anchor)
    ]
    if not any(point.cost > 0 for point in points):
        return None
    return frontier(points, label="Brier (lower is better)", decimals=3, low_is_better=True)
