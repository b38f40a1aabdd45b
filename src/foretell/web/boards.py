"""Leaderboards of arenas: which part of an arena to rank on, and the last boards that were made."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import Query

from foretell.arena.score_data import read_arena_table
from foretell.metrics.arrays import Bools
from foretell.questions.errors import InputError
from foretell.report.arena_report import ARENA_ADVICE, ArenaReport, arena_report
from foretell.report.markup import Markup
from foretell.report.study import StudyResult
from foretell.report.study_report import study_parts
from foretell.runs.store import RunStore
from foretell.scoring.arena_leaderboard import LEAD_TIMES, lead_time_of
from foretell.scoring.arena_table import ArenaTable
from foretell.scoring.event_sums import MomentChoice

CACHED_BOARDS = 24
"""Boards held in memory."""
BOARD_DRAWS = 500
Word = Annotated[str, Query(max_length=200)]
_FORECASTS_SQL = "select coalesce(max(seq), 0) from said"
_RESULTS_SQL = "select count(*), coalesce(max(told_at), '') from outcome where arena = ?"


@dataclass(frozen=True, kw_only=True)
class ArenaFilters:
    """Which part of an arena to rank on, as the address of a page says it."""

    category: Word = ""
    platform: Word = ""
    lead_time: Word = ""
    since: date | None = None
    """First day of asking."""
    until: date | None = None
    moments: MomentChoice = "mean"

    def mask(self, table: ArenaTable) -> Bools:
        """The markets that pass."""
        event, moment = table.market_event, table.markets.moment
        passed = np.ones(len(table.markets), bool)
        for wanted, labels in ((self.category, table.events.category), (self.platform, table.events.platform)):
            if wanted:
                passed &= labels.mask(wanted)[event]
        if self.lead_time:
            names = [one.name for one in LEAD_TIMES]
            if self.lead_time not in names:
                raise InputError(f"{self.lead_time[:40]!r} is no time to close", hint=f"one of {', '.join(names)}")
            passed &= (lead_time_of(table.moments.hours) == names.index(self.lead_time))[moment]
        day = table.moments.taken_at[moment].astype("datetime64[D]")
        if self.since:
            passed &= day >= np.datetime64(self.since)
        if self.until:
            passed &= day <= np.datetime64(self.until)
        return passed


def filter_options(table: ArenaTable) -> dict[str, list[str]]:
    """What there is to filter by."""
    used = set(lead_time_of(table.moments.hours).tolist())
    return {
        "categories": sorted(table.events.category.names),
        "platforms": sorted(table.events.platform.names),
        "lead_times": [one.name for place, one in enumerate(LEAD_TIMES) if place in used],
    }


class LeaderboardCache:
    """Makes boards and holds the last ones, until a forecast or a result comes in."""

    def __init__(self, store: RunStore, folder: Path) -> None:
        """What was read is stored in the folder, so that the next server begins where this one ended."""
        self._database = store.database
        self._folder = folder
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def table(self, arena: str) -> ArenaTable:
        """All numbers of an arena."""
        return self._once(arena, (), lambda: read_arena_table(self._database, arena, keep=self._folder))

    def board(self, arena: str, filters: ArenaFilters) -> ArenaReport:
        """The board under some filters; an `InputError` where nothing is left to rank on."""

        def make() -> ArenaReport:
            everything = self.table(arena)
            chosen = everything.only(filters.mask(everything))
            if not np.isfinite(chosen.markets.outcome).any():
                raise InputError("nothing has come out yet that these filters leave", hint="take a filter away")
            return arena_report(chosen, by=("category",), choice=filters.moments, draws=BOARD_DRAWS)

        return self._once(arena, (filters,), make)

    def page(self, arena: str, filters: ArenaFilters) -> tuple[StudyResult, list[tuple[str, str, Markup]]]:
        """The same with its pictures, as the parts of a page: drawn once, shown often."""

        def make() -> tuple[StudyResult, list[tuple[str, str, Markup]]]:
            study = self.board(arena, filters).study(pictures=True)
            return study, study_parts(study, ARENA_ADVICE)

        return self._once(arena, (filters, "page"), make)

    def _once(self, arena: str, what: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        state = (*self._database.read(_FORECASTS_SQL)[0], *self._database.read(_RESULTS_SQL, (arena,))[0])
        key = (arena, state, *what)
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = make()
        with self._lock:
            self._made[key] = made
            while len(self._made) > CACHED_BOARDS:
                self._made.popitem(last=False)
        return made
