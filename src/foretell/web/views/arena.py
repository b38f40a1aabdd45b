"""Arenas: which there are, the board of one under some filters, and the life of an event."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from foretell.arena.score_data import read_arena_table
from foretell.arena.status import ArenaEventHistory, event_history
from foretell.arena.store import ArenaStore
from foretell.metrics.arrays import Bools
from foretell.metrics.bootstrap import Resampling
from foretell.operations.study_data import run_table
from foretell.questions.errors import InputError
from foretell.report.arena_report import ARENA_ADVICE, ArenaReport, arena_report
from foretell.report.markup import Markup
from foretell.report.study import StudyResult
from foretell.report.study_report import study_parts
from foretell.runs.settings import Settings
from foretell.runs.store import RunRow, RunStore
from foretell.scoring.arena_leaderboard import LEAD_TIMES, lead_time_of
from foretell.scoring.arena_table import ArenaTable, arena_as_table
from foretell.scoring.event_sums import MomentChoice
from foretell.scoring.score import ScoringOptions
from foretell.studies.comparison import comparison_study

CACHED_BOARDS = 24
"""Boards held in memory."""
BOARD_DRAWS = 500
_ARENAS = "select name, created from arena order by created desc, name"
_COUNTS = """
select count(*), coalesce(sum(settled), 0) from listed where arena = ? and decision = 'selected'"""
_FORECASTS_SQL = "select coalesce(max(seq), 0) from said"
_RESULTS = "select count(*), coalesce(max(told_at), '') from outcome where arena = ?"
_EVENTS = """
select event, category, status, closes_at, settled from listed where arena = ? and decision = 'selected'
order by coalesce(closes_at, '') desc, event limit ? offset ?"""


@dataclass(frozen=True, kw_only=True)
class ArenaRowView:
    """One arena as listed."""

    name: str
    created: str
    events: int
    settled: int


@dataclass(frozen=True, kw_only=True)
class ArenaList:
    """All of them, the newest first."""

    arenas: tuple[ArenaRowView, ...]


@dataclass(frozen=True, kw_only=True)
class ArenaFilters:
    """Which part of an arena to rank on."""

    category: str = ""
    platform: str = ""
    lead_time: str = ""
    since: date | None = None
    """First day of asking."""
    until: date | None = None
    moments: MomentChoice = "mean"

    def kept(self, standings: ArenaTable) -> Bools:
        """The markets that pass."""
        event, moment = standings.market_event, standings.markets.moment
        passed = np.ones(len(standings.markets), bool)
        for name, labels in (("category", standings.events.category), ("platform", standings.events.platform)):
            if wanted := getattr(self, name):
                passed &= labels.mask(wanted)[event]
        if self.lead_time:
            names = [one.name for one in LEAD_TIMES]
            if self.lead_time not in names:
                raise InputError(f"{self.lead_time[:40]!r} is no time to close", hint=f"one of {', '.join(names)}")
            passed &= (lead_time_of(standings.moments.hours) == names.index(self.lead_time))[moment]
        day = standings.moments.taken_at[moment].astype("datetime64[D]")
        if self.since:
            passed &= day >= np.datetime64(self.since)
        if self.until:
            passed &= day <= np.datetime64(self.until)
        return passed


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """What one can filter by."""

    categories: tuple[str, ...]
    platforms: tuple[str, ...]
    lead_times: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class EventRowView:
    """An event in a list."""

    id: str
    category: str
    status: str
    closes_at: str | None
    settled: bool


@dataclass(frozen=True, kw_only=True)
class EventList:
    """A part of an arena's events, those that close last first."""

    arena: str
    events: tuple[EventRowView, ...]
    total: int
    offset: int


class LeaderboardCache:
    """Makes boards and holds the last ones, until something is said or comes out."""

    def __init__(self, store: RunStore, keep: Path) -> None:
        """`keep` is a folder for what was read, so that the next server begins where this one ended."""
        self._store = store
        self._keep = keep
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def standings(self, arena: str) -> ArenaTable:
        """All numbers of an arena."""
        return self._once(
            (arena, self._mark(arena)), lambda: read_arena_table(self._store.database, arena, keep=self._keep)
        )

    def board(self, arena: str, filters: ArenaFilters) -> ArenaReport:
        """The board under some filters; an `InputError` where nothing is left to rank on."""

        def made() -> ArenaReport:
            everything = self.standings(arena)
            kept = everything.only(filters.kept(everything))
            if not np.isfinite(kept.markets.outcome).any():
                raise InputError("nothing has come out yet that these filters leave", hint="take a filter away")
            return arena_report(kept, by=("category",), choice=filters.moments, draws=BOARD_DRAWS)

        return self._once((arena, self._mark(arena), filters), made)

    def page(self, arena: str, filters: ArenaFilters) -> tuple[StudyResult, list[tuple[str, str, Markup]]]:
        """The same with its pictures, as the parts of a page: drawn once, shown often."""

        def made() -> tuple[StudyResult, list[tuple[str, str, Markup]]]:
            study = self.board(arena, filters).study(pictures=True)
            return study, study_parts(study, ARENA_ADVICE)

        return self._once((arena, self._mark(arena), filters, "page"), made)

    def _mark(self, arena: str) -> tuple[Any, ...]:
        """Changes whenever a forecast or a result comes in."""
        database = self._store.database
        return (*database.read(_FORECASTS_SQL)[0], *database.read(_RESULTS, (arena,))[0])

    def _once(self, key: tuple[Any, ...], make: Any) -> Any:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > CACHED_BOARDS:
                self._kept.popitem(last=False)
        return made


def filter_options(standings: ArenaTable) -> FilterOptions:
    """What there is to filter by."""
    used = set(lead_time_of(standings.moments.hours).tolist())
    return FilterOptions(
        categories=tuple(sorted(standings.events.category.names)),
        platforms=tuple(sorted(standings.events.platform.names)),
        lead_times=tuple(one.name for i, one in enumerate(LEAD_TIMES) if i in used),
    )


def list_arenas(store: RunStore) -> ArenaList:
    """Every arena in the store."""
    ArenaStore(store.database, "")  # Makes the tables where there was no arena yet.
    found: list[ArenaRowView] = []
    for name, created in store.database.read(_ARENAS):
        events, settled = store.database.read(_COUNTS, (name,))[0]
        found.append(ArenaRowView(name=name, created=created, events=events, settled=settled))
    return ArenaList(arenas=tuple(found))


def has_arena(store: RunStore, name: str) -> bool:
    """Whether there is one of that name."""
    return any(one.name == name for one in list_arenas(store).arenas)


def list_events(store: RunStore, arena: str, *, offset: int = 0, limit: int = 100) -> EventList:
    """Events that were taken up."""
    total = store.database.read(_COUNTS, (arena,))[0][0]
    rows = store.database.read(_EVENTS, (arena, limit, offset))
    return EventList(
        arena=arena,
        events=tuple(
            EventRowView(id=id, category=category, status=status, closes_at=closes, settled=bool(settled))
            for id, category, status, closes, settled in rows
        ),
        total=total,
        offset=offset,
    )


def event_timeline(store: RunStore, arena: str, event: str) -> ArenaEventHistory:
    """One event from its first price to its result."""
    return event_history(ArenaStore(store.database, arena), event)


# Two configurations side by side: runs over the same questions, or entries of an arena.

COMPARE_RESAMPLING = Resampling(draws=1000)
MAX_CHOICES = 200


@dataclass(frozen=True, kw_only=True)
class CompareChoice:
    """Somebody who can be compared."""

    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class CompareChoices:
    """Between whom one can choose."""

    arena: str
    """Empty: runs of this machine."""
    choices: tuple[CompareChoice, ...]


def run_choices(store: RunStore) -> CompareChoices:
    """Runs that have forecasts, the newest first."""
    found = [CompareChoice(id=row.id, name=f"{_who(row)} · {row.id}") for row in store.runs() if row.done]
    return CompareChoices(arena="", choices=tuple(found[:MAX_CHOICES]))


def _who(row: RunRow) -> str:
    return str(row.spec.get("models", {}).get("agent") or row.spec.get("forecaster", ""))


def entry_choices(boards: LeaderboardCache, arena: str) -> CompareChoices:
    """Entries of an arena."""
    names = boards.standings(arena).names
    return CompareChoices(arena=arena, choices=tuple(CompareChoice(id=name, name=name) for name in names))


def compare_runs(settings: Settings, first: str, second: str) -> StudyResult:
    """Two runs, trials combined as each run says; an `InputError` where they share nothing that has come out."""
    table, names, texts = run_table(settings, (first, second))
    return comparison_study(
        table, names[0], names[1], texts=texts, scoring=ScoringOptions(resampling=COMPARE_RESAMPLING, by=("source",))
    )


def compare_entries(
    boards: LeaderboardCache, arena: str, first: str, second: str, texts: Mapping[str, str]
) -> StudyResult:
    """Two entries of an arena on every market both answered."""
    table = arena_as_table(boards.standings(arena))
    scoring = ScoringOptions(resampling=COMPARE_RESAMPLING, by=("category",), metric="brier")
    return comparison_study(table, first, second, texts=texts, scoring=scoring)
