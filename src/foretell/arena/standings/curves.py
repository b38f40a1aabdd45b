"""Brier score by lead time: entries and crowd on the same markets (Prophet Arena 4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.arena.anchors import CROWD
from foretell.arena.standings.board import Scored
from foretell.arena.standings.drawing import Bundles, intervals_of
from foretell.arena.standings.lead_times import LEAD_TIMES, lead_time_of
from foretell.arena.standings.moment_scores import MomentScores
from foretell.arena.standings.sums import Choice
from foretell.evaluate.arrays import Bools, Floats
from foretell.evaluate.bootstrap import mean_from_sums
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison, comparison_of

SHARED = 0.8
"""Share of the moments that an entry must have answered to be on the curve: all on it are scored on what all of them
answered, and one that joined last week would leave nothing of the year."""


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """One stretch of lead time."""

    lead_time: str
    events: int
    moments: int
    scores: Mapping[str, Interval]
    """Brier scores, all on the same markets of the same events."""
    versus_crowd: Mapping[str, Comparison]
    """Brier score minus that of the crowd; below 0 the entry is better."""


@dataclass(frozen=True, kw_only=True)
class LeadTimeCurve:
    """From the longest lead time to the shortest."""

    points: tuple[CurvePoint, ...]
    entries: tuple[str, ...]
    left_out: tuple[str, ...]
    """Entries that answered too little to be compared on common ground."""


def lead_time_curve(scored: Scored) -> LeadTimeCurve:
    """Brier by time to close, for the crowd and all entries that answered most moments, on what all of them answered.

    Different stretches hold different events: only lines at the same place may be compared.
    """
    standings = scored.standings
    if CROWD not in standings.names or not np.isfinite(standings.row(CROWD)).any():
        return LeadTimeCurve(points=(), entries=(), left_out=standings.names)
    priced = standings.only(np.isfinite(standings.row(CROWD)))
    # "first" and "last" would empty most stretches: an event counts once in each of them instead.
    choice: Choice = "every" if scored.choice == "every" else "mean"
    shared = priced is standings and choice == scored.choice
    moments = scored.moments if shared else MomentScores(standings=priced, choice=choice)
    answered = np.isfinite(moments.brier)
    enough = answered.mean(axis=1) >= SHARED
    shown = [i for i in range(len(priced.entries)) if enough[i]]
    common = answered[shown].all(axis=0)
    of_moment = lead_time_of(priced.moments.hours)
    points = [
        _point(scored, moments, shown, LEAD_TIMES[code].name, common & (of_moment == code))
        for code in reversed(range(len(LEAD_TIMES)))
        if (common & (of_moment == code)).any()
    ]
    return LeadTimeCurve(
        points=tuple(points),
        entries=tuple(priced.names[i] for i in shown),
        left_out=tuple(name for i, name in enumerate(priced.names) if not enough[i]),
    )


def _point(scored: Scored, moments: MomentScores, shown: Sequence[int], lead_time: str, mask: Bools) -> CurvePoint:
    standings, resampling = moments.standings, scored.resampling
    sums, weight = _by_event(moments, shown, mask)
    asked = weight > 0
    bundles = Bundles.of(standings.events.cluster[asked])
    drawn = bundles.drawn(np.vstack([sums[:, asked], weight[asked]]), resampling)
    draws = drawn[:, :-1] / np.maximum(drawn[:, -1:], 1e-9)
    estimate = mean_from_sums(np.stack([sums.sum(axis=1), np.full(len(shown), weight.sum())], axis=1))
    clusters = bundles.present(np.broadcast_to(asked[asked], (len(shown), int(asked.sum()))))
    intervals = intervals_of(estimate, draws, clusters, resampling)
    names = [standings.names[i] for i in shown]
    crowd = names.index(CROWD)
    gaps = intervals_of(estimate - estimate[crowd], draws - draws[:, [crowd]], clusters, resampling)
    return CurvePoint(
        lead_time=lead_time,
        events=int(asked.sum()),
        moments=int(mask.sum()),
        scores={name: one for name, one in zip(names, intervals, strict=True) if one is not None},
        versus_crowd={
            name: comparison_of(gap, draws[:, k] - draws[:, crowd], int(asked.sum()))
            for k, (name, gap) in enumerate(zip(names, gaps, strict=True))
            if k != crowd and gap is not None
        },
    )


def _by_event(moments: MomentScores, shown: Sequence[int], mask: Bools) -> tuple[Floats, Floats]:
    """Entries × events: weighted Brier scores, and the weights of the events."""
    here = np.flatnonzero(mask)
    event, starts, times = np.unique(moments.standings.moments.event[here], return_index=True, return_counts=True)
    weight = times if moments.choice == "every" else np.ones(len(event))
    sums, weights = np.zeros((len(shown), len(moments.standings.events))), np.zeros(len(moments.standings.events))
    weights[event] = weight
    sums[:, event] = np.add.reduceat(moments.brier[shown][:, here], starts, axis=1) * (weight / times)
    return sums, weights
