"""Arenas: which there are, the board of one under some filters, and the life of an event."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from foretell.arena.live.biography import Biography, biography
from foretell.arena.live.book import Book
from foretell.arena.report.markup import Markup
from foretell.arena.report.study_page import study_parts
from foretell.arena.standings.from_book import from_book
from foretell.arena.standings.lead_times import LEAD_TIMES, lead_time_of
from foretell.arena.standings.report import ADVICE, StandingsReport, standings_report
from foretell.arena.standings.standings import Standings
from foretell.arena.standings.sums import Choice
from foretell.arena.store import Store
from foretell.arena.study import Study
from foretell.evaluate.arrays import Bools
from foretell.questions.problems import InputError

KEPT = 24
"""Boards held in memory."""
DRAWS = 500
_ARENAS = "select name, created from arena order by created desc, name"
_COUNTS = """
select count(*), coalesce(sum(settled), 0) from listed where arena = ? and decision = 'selected'"""
_SAID = "select coalesce(max(seq), 0) from said"
_RESULTS = "select count(*), coalesce(max(told_at), '') from outcome where arena = ?"
_EVENTS = """
select event, category, status, closes_at, settled from listed where arena = ? and decision = 'selected'
order by coalesce(closes_at, '') desc, event limit ? offset ?"""


@dataclass(frozen=True, kw_only=True)
class ArenaLine:
    """One arena as listed."""

    name: str
    created: str
    events: int
    settled: int


@dataclass(frozen=True, kw_only=True)
class Arenas:
    """All of them, the newest first."""

    arenas: tuple[ArenaLine, ...]


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which part of an arena to rank on."""

    category: str = ""
    platform: str = ""
    lead_time: str = ""
    since: date | None = None
    """First day of asking."""
    until: date | None = None
    moments: Choice = "mean"

    def kept(self, standings: Standings) -> Bools:
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
class Offer:
    """What one can filter by."""

    categories: tuple[str, ...]
    platforms: tuple[str, ...]
    lead_times: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class EventLine:
    """An event in a list."""

    id: str
    category: str
    status: str
    closes_at: str | None
    settled: bool


@dataclass(frozen=True, kw_only=True)
class Events:
    """A part of an arena's events, those that close last first."""

    arena: str
    events: tuple[EventLine, ...]
    total: int
    offset: int


class Boards:
    """Makes boards and holds the last ones, until something is said or comes out."""

    def __init__(self, store: Store, keep: Path) -> None:
        """`keep` is a folder for what was read, so that the next server begins where this one ended."""
        self._store = store
        self._keep = keep
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def standings(self, arena: str) -> Standings:
        """All numbers of an arena."""
        return self._once((arena, self._mark(arena)), lambda: from_book(self._store.database, arena, keep=self._keep))

    def board(self, arena: str, filters: Filters) -> StandingsReport:
        """The board under some filters; an `InputError` where nothing is left to rank on."""

        def made() -> StandingsReport:
            everything = self.standings(arena)
            kept = everything.only(filters.kept(everything))
            if not np.isfinite(kept.markets.outcome).any():
                raise InputError("nothing has come out yet that these filters leave", hint="take a filter away")
            return standings_report(kept, by=("category",), choice=filters.moments, draws=DRAWS)

        return self._once((arena, self._mark(arena), filters), made)

    def page(self, arena: str, filters: Filters) -> tuple[Study, list[tuple[str, str, Markup]]]:
        """The same with its pictures, as the parts of a page: drawn once, shown often."""

        def made() -> tuple[Study, list[tuple[str, str, Markup]]]:
            study = self.board(arena, filters).study(pictures=True)
            return study, study_parts(study, ADVICE)

        return self._once((arena, self._mark(arena), filters, "page"), made)

    def _mark(self, arena: str) -> tuple[Any, ...]:
        """Changes whenever a forecast or a result comes in."""
        database = self._store.database
        return (*database.read(_SAID)[0], *database.read(_RESULTS, (arena,))[0])

    def _once(self, key: tuple[Any, ...], make: Any) -> Any:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made


def offer(standings: Standings) -> Offer:
    """What there is to filter by."""
    used = set(lead_time_of(standings.moments.hours).tolist())
    return Offer(
        categories=tuple(sorted(standings.events.category.names)),
        platforms=tuple(sorted(standings.events.platform.names)),
        lead_times=tuple(one.name for i, one in enumerate(LEAD_TIMES) if i in used),
    )


def list_arenas(store: Store) -> Arenas:
    """Every arena in the store."""
    Book(store.database, "")  # Makes the tables where there was no arena yet.
    found: list[ArenaLine] = []
    for name, created in store.database.read(_ARENAS):
        events, settled = store.database.read(_COUNTS, (name,))[0]
        found.append(ArenaLine(name=name, created=created, events=events, settled=settled))
    return Arenas(arenas=tuple(found))


def has_arena(store: Store, name: str) -> bool:
    """Whether there is one of that name."""
    return any(one.name == name for one in list_arenas(store).arenas)


def list_events(store: Store, arena: str, *, offset: int = 0, limit: int = 100) -> Events:
    """Events that were taken up."""
    total = store.database.read(_COUNTS, (arena,))[0][0]
    rows = store.database.read(_EVENTS, (arena, limit, offset))
    return Events(
        arena=arena,
        events=tuple(
            EventLine(id=id, category=category, status=status, closes_at=closes, settled=bool(settled))
            for id, category, status, closes, settled in rows
        ),
        total=total,
        offset=offset,
    )


def event_life(store: Store, arena: str, event: str) -> Biography:
    """One event from its first price to its result."""
    return biography(Book(store.database, arena), event)
