"""The pictures of standings: what the numbers look like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.arena.anchors import ALWAYS_HALF, BASE_RATE, CROWD
from foretell.arena.report.breakdown import Breakdown
from foretell.arena.report.figures import (
    ForestRow,
    FrontierPoint,
    conservatism_plot,
    difference_heatmap,
    forest_plot,
    frontier,
    reliability_diagram,
    score_by_group,
)
from foretell.arena.report.figures.similarity import distance_heatmap
from foretell.arena.standings.board import Group, Line, Scored
from foretell.arena.standings.divergence import divergence
from foretell.arena.standings.measures import MAIN
from foretell.arena.standings.view import StandingsView
from foretell.arena.study import Picture
from foretell.evaluate.arrays import Floats
from foretell.evaluate.intervals import Interval

FEW = 3
"""Entries that get a picture of their own."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The numbers of the page, and the scored standings for what only a picture shows."""

    view: StandingsView
    scored: Scored


def pictures(subject: Subject) -> tuple[Picture, ...]:
    """All pictures of the page."""
    found = [_forest(subject), *_lead_times(subject), *_groups(subject), *_frontier(subject)]
    found += [_pairs(subject), _divergence(subject)]
    return (*found, *_reliability(subject), *_conservatism(subject))


def _best(subject: Subject) -> list[str]:
    return [line.entry.name for line in subject.view.lines if not line.entry.anchor][:FEW]


def _forest(subject: Subject) -> Picture:
    rows = [
        ForestRow(name=line.entry.name, interval=line.scores[MAIN], anchor=line.entry.anchor)
        for line in subject.view.lines
        if MAIN in line.scores
    ]
    plot = forest_plot(rows, label="Brier score (lower is better)", decimals=3, reference=CROWD)
    return Picture(name="brier", title="Brier score", figure=plot)


def _lead_times(subject: Subject) -> list[Picture]:
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
    return [Picture(name="lead-time", title=title, figure=score_by_group(found, label="Brier", decimals=3))]


def _groups(subject: Subject) -> list[Picture]:
    groups = subject.view.groups.get("category", ())
    if len(groups) < 2:
        return []
    names = [CROWD, *_best(subject)]
    found = _breakdown("category", groups, [name for name in names if name in subject.scored.standings.names])
    return [
        Picture(name="category", title="Brier by category", figure=score_by_group(found, label="Brier", decimals=3))
    ]


def _breakdown(by: str, groups: Sequence[Group], names: Sequence[str]) -> Breakdown:
    lines: list[Mapping[str, Line]] = [{line.entry.name: line for line in group.lines} for group in groups]
    return Breakdown(
        column=by,
        ordered=False,
        groups=tuple(group.name for group in groups),
        n=tuple(group.events for group in groups),
        base_rate=(float("nan"),) * len(groups),
        scores={name: tuple(_brier(group, name) for group in lines) for name in names},
        answered={name: tuple(group[name].events for group in lines) for name in names},
    )


def _brier(lines: Mapping[str, Line], name: str) -> Interval | None:
    return lines[name].scores.get(MAIN)


def _frontier(subject: Subject) -> list[Picture]:
    points = [
        FrontierPoint(name=line.entry.name, cost=line.entry.dollars, interval=line.scores[MAIN])
        for line in subject.view.lines
        if MAIN in line.scores and np.isfinite(line.entry.dollars) and (line.entry.dollars > 0 or not line.entry.anchor)
    ]
    if not any(point.cost > 0 for point in points):
        return []
    plot = frontier(points, label="Brier (lower is better)", decimals=3, low_is_better=True)
    return [Picture(name="cost", title="Accuracy and cost", figure=plot)]


def _pairs(subject: Subject) -> Picture:
    pairs = subject.view.pairs
    plot = difference_heatmap(pairs.names, pairs.matrix, label="Brier", decimals=3, low_is_better=True)
    return Picture(name="pairs", title="Paired differences of Brier scores", figure=plot)


def _divergence(subject: Subject) -> Picture:
    names = [name for name in subject.view.pairs.names if name != ALWAYS_HALF]
    found = divergence(subject.scored, names)
    plot = distance_heatmap(names, found.distance, label="mean L2 distance of an event's forecasts")
    return Picture(name="divergence", title="How far entries are apart", figure=plot)


def _reliability(subject: Subject) -> list[Picture]:
    standings = subject.scored.standings
    weight = market_weights(subject)
    names = [*_best(subject), *(name for name in (CROWD, BASE_RATE) if name in standings.names)]
    return [
        Picture(
            name=f"reliability-{i}",
            title=f"Reliability of {name}",
            figure=reliability_diagram(standings.row(name), standings.markets.outcome, weight, name=name),
        )
        for i, name in enumerate(names, 1)
    ]


def market_weights(subject: Subject) -> Floats:
    """Every market counts once, however often it was asked."""
    standings = subject.scored.standings
    times = np.bincount(standings.moments.event, minlength=len(standings.events))
    return 1 / times[standings.market_event]


def _conservatism(subject: Subject) -> list[Picture]:
    standings = subject.scored.standings
    if CROWD not in standings.names:
        return []
    return [
        Picture(
            name=f"conservatism-{i}",
            title=f"{name} against the market",
            figure=conservatism_plot(standings.row(name), standings.row(CROWD), name=name),
        )
        for i, name in enumerate(_best(subject), 1)
    ]
