"""Everything a leaderboard page shows, as one value that becomes JSON as it stands."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite
from typing import Any, cast

import numpy as np

from foretell.arena.anchors import CROWD
from foretell.arena.standings.board import Group, Line, Rebalanced, Scored, grouped, leaderboard, rebalanced
from foretell.arena.standings.curves import LeadTimeCurve, lead_time_curve
from foretell.arena.standings.drawing import DRAWS
from foretell.arena.standings.measures import MEASURES
from foretell.arena.standings.pairs import pair_matrix, versus
from foretell.arena.standings.standings import Standings
from foretell.arena.standings.sums import Choice
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.compare import PairwiseMatrix
from foretell.evaluate.significance import Comparison

SCHEMA = "foretell/standings/1"
PAGE_MEASURES = ("brier", "return0")
"""What the page tells of every category and platform."""
MOST_PAIRED = 40
"""Entries that are compared each with each."""
CHOICES: dict[Choice, str] = {
    "mean": "an event counts once: the mean over its moments",
    "last": "only the last moment of every event counts",
    "first": "only the first moment of every event counts",
    "every": "every moment counts as if it were an event of its own",
}


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How much there is."""

    events: int
    """Asked about, resolved or not."""
    resolved: int
    """With at least one outcome."""
    moments: int
    moments_scored: int
    markets_scored: int
    """Single outcomes, once for every moment they were asked at."""
    forecasts: int
    """Said by entries, scored or not; every trial counts."""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """All paired differences of Brier scores among the leading entries, in the order of the board."""

    names: tuple[str, ...]
    matrix: PairwiseMatrix


@dataclass(frozen=True, kw_only=True)
class StandingsView:
    """The leaderboard page as data."""

    arena: str
    counts: Counts
    first: str
    """The first and the last moment that are scored, UTC."""
    last: str
    lines: tuple[Line, ...]
    """Best Brier score first, yardsticks among the entries."""
    versus_crowd: Mapping[str, Comparison]
    """Paired difference with the market, on the markets both answered; below 0 the entry is better."""
    pairs: Pairs
    groups: Mapping[str, tuple[Group, ...]]
    """By category and platform, and whatever else was asked for."""
    rebalanced: tuple[Rebalanced, ...]
    lead_times: LeadTimeCurve
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that do not exist are null."""
        measures = [
            {
                "name": one.name,
                "label": one.label,
                "meaning": one.meaning,
                "better": "low" if one.low_is_better else "high",
                "decimals": one.decimals,
            }
            for one in MEASURES.values()
        ]
        return {"schema": SCHEMA, "measures": measures, **plain(self)}


def standings_view(
    standings: Standings,
    *,
    by: Sequence[str] = (),
    choice: Choice = "mean",
    resampling: Resampling = DRAWS,
) -> StandingsView:
    """The page data of an arena; `by` names further groupings, told with more numbers."""
    return view_of(standings, Scored.of(standings, choice, resampling), by=by)


def view_of(standings: Standings, scored: Scored, *, by: Sequence[str] = ()) -> StandingsView:
    """The page data of standings that have been scored."""
    with ThreadPoolExecutor() as threads:  # Most of the time is numpy's, which lets other threads compute.
        versus_crowd = threads.submit(_versus, scored)
        curve = threads.submit(lead_time_curve, scored)
        other = threads.submit(_groups, scored, by)
        lines = leaderboard(scored)
    groups, shares = other.result()
    return StandingsView(
        arena=standings.name,
        counts=_counts(standings, scored.standings),
        first=_time(scored.standings.moments.taken_at.min()),
        last=_time(scored.standings.moments.taken_at.max()),
        lines=lines,
        versus_crowd=versus_crowd.result(),
        pairs=_pairs(scored, lines),
        groups=groups,
        rebalanced=shares,
        lead_times=curve.result(),
        settings=_settings(scored),
        notes=_notes(standings),
    )


def _counts(standings: Standings, scored: Standings) -> Counts:
    return Counts(
        events=len(standings.events),
        resolved=len(scored.events),
        moments=len(standings.moments),
        moments_scored=len(scored.moments),
        markets_scored=len(scored.markets),
        forecasts=sum(entry.said for entry in standings.entries),
    )


def _groups(scored: Scored, by: Sequence[str]) -> tuple[dict[str, tuple[Group, ...]], tuple[Rebalanced, ...]]:
    """Groups by name of the grouping, and the board with other shares of the categories."""
    groups = {name: grouped(scored, name, PAGE_MEASURES) for name in ("category", "platform") if name not in by}
    return groups | {name: grouped(scored, name) for name in by}, rebalanced(scored)


def _pairs(scored: Scored, lines: Sequence[Line]) -> Pairs:
    """The matrix of the leading pairs, sorted as the board is: of hundreds nobody reads every pair."""
    names = tuple(line.entry.name for line in lines[:MOST_PAIRED])
    return Pairs(names=names, matrix=pair_matrix(scored, [scored.standings.names.index(name) for name in names]))


def _versus(scored: Scored) -> dict[str, Comparison]:
    """Everybody against the crowd."""
    return versus(scored, CROWD) if CROWD in scored.standings.names else {}


def _settings(scored: Scored) -> dict[str, Any]:
    resampling = scored.resampling
    return {
        "moments": scored.choice,
        "moments mean": CHOICES[scored.choice],
        "draws": resampling.draws,
        "level": resampling.level,
        "seed": resampling.seed,
        "interval": resampling.interval,
        "resampled": "events",
    }


def _notes(standings: Standings) -> tuple[str, ...]:
    settled = ~np.isnat(standings.markets.known_at)
    void = int((settled & np.isnan(standings.markets.outcome)).sum())
    unpriced = int(np.isnan(standings.markets.price).sum())
    told = [f"{void} void markets are not scored"] if void else []
    told += [f"{unpriced} markets had no price: the crowd has no forecast there and nobody can bet"] if unpriced else []
    return (*standings.notes, *told)


def _time(moment: np.datetime64) -> str:
    return f"{np.datetime_as_string(moment, unit='s')}Z"


def plain(value: Any) -> Any:
    """Dataclasses, mappings, tuples and arrays as JSON has them; what is no number is None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in cast("list[Any]", value)]
    return None if isinstance(value, float) and not isfinite(value) else value
