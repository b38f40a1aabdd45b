"""Leaderboards of arenas: filters that select what to rank on, and a cache of the latest boards."""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field, replace
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

import numpy as np
from fastapi import Query

from foretell.arena.score_data import read_arena_table
from foretell.arena.store import ArenaStore
from foretell.data.files import write_atomically
from foretell.frozen import changed_fields, frozen
from foretell.metrics.arrays import Bools
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING
from foretell.questions.errors import InputError
from foretell.report.arena_report import ArenaReport, arena_finding, arena_headline, arena_report
from foretell.report.study import draw_settings
from foretell.runs.store import RunStore
from foretell.scoring.arena_leaderboard import LEAD_TIMES, lead_time_of
from foretell.scoring.arena_table import ArenaTable
from foretell.scoring.arena_view import ArenaLeaderboard, first_view
from foretell.web import arena_board
from foretell.web.arena_board import BoardChoice, BoardView, board_view, first_board_view
from foretell.web.rendering import TEMPLATES, link_to, render
from foretell.web.security import Visitor

CACHED_BOARDS = 24
"""Maximum number of boards kept in memory."""
BOARD_SETTINGS: Mapping[str, Any] = draw_settings(DEFAULT_RESAMPLING)
PATIENCE = 0.3
"""Seconds that a visitor waits for a new board before an older or partial one is shown."""
LARGE = 100_000
"""Number of forecasts above which reading and scoring take so long that the ranking is shown first."""
SMALL = 20_000
"""Number of forecasts up to which a board is scored for a list."""
T = TypeVar("T")
Word = Annotated[str, Query(max_length=200)]


@frozen
class ArenaFilters:
    """Filters that select the part of an arena to rank on, as given in the page address."""

    category: Word = ""
    platform: Word = ""
    lead_time: Word = ""
    since: date | None = None
    """First day of forecasts to include."""
    until: date | None = None

    def mask(self, table: ArenaTable) -> Bools:
        """Return the mask of the markets that pass the filters."""
        event, forecast_time = table.market_event, table.markets.forecast_time
        passed = np.ones(len(table.markets), bool)
        for label, labels in ((self.category, table.events.category), (self.platform, table.events.platform)):
            if label:
                passed &= labels.mask(label)[event]
        if self.lead_time:
            names = [lead_time.name for lead_time in LEAD_TIMES]
            if self.lead_time not in names:
                raise InputError(f"{self.lead_time[:40]!r} is not a time to close", hint=f"one of {', '.join(names)}")
            passed &= (lead_time_of(table.forecast_times.hours) == names.index(self.lead_time))[forecast_time]
        day = table.forecast_times.taken_at[forecast_time].astype("datetime64[D]")
        if self.since:
            passed &= day >= np.datetime64(self.since)
        if self.until:
            passed &= day <= np.datetime64(self.until)
        return passed


@cache
def page_version() -> str:
    """Return a hash of the code that draws boards; a page stored by another version is not shown again."""
    sources = (TEMPLATES / "arena_board.html", Path(arena_board.__file__))
    text = " ".join([version("foretell"), *(path.read_text("utf-8") for path in sources)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@frozen
class BoardPage:
    """A rendered page of a board."""

    headline: str
    body: str = ""
    """The page's markup, rendered by us and therefore trusted."""
    public: str = ""
    """The same markup without what was spent."""
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Title and markup of the sections shown on request, by anchor."""
    state: tuple[Any, ...]
    """State of the forecasts and outcomes when the page was made."""
    note: str = ""
    """Why the page is not the newest complete board; empty if it is."""

    def without_costs(self) -> "BoardPage":
        """Return the page as visitors see it who may not know what was spent."""
        parts = {anchor: part for anchor, part in self.parts.items() if anchor != arena_board.COST}
        return replace(self, body=self.public, parts=parts)


OUTDATED = "New forecasts or results have arrived. The leaderboard is being updated."
RANKING_ONLY = "This is the ranking. Intervals, comparisons and charts are being computed and will appear here."
READING = "The forecasts of this arena are being read for the first time. The leaderboard will appear here."
_BoardKey = tuple[str, ArenaFilters, BoardChoice]


def _in_time(job: Future[BoardPage]) -> BoardPage | None:
    """Return the page if it is ready within `PATIENCE` seconds, else None."""
    try:
        return job.result(PATIENCE)
    except TimeoutError:
        return None


def _bodies(key: _BoardKey, view: BoardView, methods: Mapping[str, str]) -> tuple[str, str]:
    """Render a board, with how each entry forecasts; its links keep the filters and choices of the page.

    The first text says what was spent, the second does not.
    """
    arena, filters, choice = key
    chosen = changed_fields(filters) | changed_fields(choice)
    chosen.pop("every", None)

    def more(kind: str, *ids: str, **query: str) -> str:
        parameters = urlencode(chosen | query, doseq=True)
        return link_to(kind, *ids) + (f"?{parameters}" if parameters else "")

    finding = arena_finding(view.view)

    def rendered(shown: BoardView, visitor: Visitor) -> str:
        return render(
            "arena_board.html", shown, visitor=visitor, arena=arena, more=more, methods=methods, finding=finding
        )

    owner = Visitor(may_write=True)
    return rendered(view, owner), rendered(view.without_costs(), Visitor())


class ResultCache:
    """Cache of the latest results, each valid as long as the state it was computed from is unchanged."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._results: OrderedDict[tuple[Any, ...], tuple[tuple[Any, ...], Any]] = OrderedDict()

    def get(self, what: tuple[Any, ...], state: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return the cached result, or compute it with `make` if the state has changed."""
        with self._lock:
            before, result = self._results.get(what, (None, None))
            if before == state:
                self._results.move_to_end(what)
                return result  # pyright: ignore[reportReturnType] - `what` determines the type
        new_result = make()
        with self._lock:
            self._results[what] = (state, new_result)
            self._results.move_to_end(what)
            while len(self._results) > self._most:
                self._results.popitem(last=False)
        return new_result


class LeaderboardCache:
    """Computes boards and caches the latest ones until a forecast or an outcome arrives."""

    def __init__(self, store: RunStore, folder: Path) -> None:
        """Store what was read in `folder`, so that the next server can start from there."""
        self._database = store.database
        self._folder = folder
        self._lock = threading.Lock()
        self.cached = ResultCache(CACHED_BOARDS).get
        self._pages: OrderedDict[_BoardKey, BoardPage] = OrderedDict()
        self._jobs: dict[tuple[Any, ...], Future[BoardPage]] = {}
        self._executor = ThreadPoolExecutor(1, "board")

    def close(self) -> None:
        """Wait for the page being made and cancel those that have not started."""
        self._executor.shutdown(cancel_futures=True)

    def table(self, arena: str) -> ArenaTable:
        """Return all numbers of an arena."""
        return self._once(arena, (), lambda: read_arena_table(self._database, arena, keep=self._folder))

    def report(self, arena: str, filters: ArenaFilters) -> ArenaReport:
        """Return the filtered board with all it is computed from; raises `InputError` if nothing is left to rank on.

        It is not cached, because the sums of 200 entries on 20,000 events take more than a gigabyte.
        """
        return arena_report(self._chosen(arena, filters), by=("category",))

    def small(self, arena: str) -> ArenaReport | None:
        """Return the board of an arena small enough to score at once; None if it is large or nothing has resolved."""

        def make() -> ArenaReport | None:
            try:
                return self.report(arena, ArenaFilters())
            except InputError:
                return None

        forecasts = sum(entry.forecasts for entry in ArenaStore(self._database, arena).entries())
        return self._once(arena, ("small",), make) if forecasts <= SMALL else None

    def board(self, arena: str, filters: ArenaFilters) -> ArenaLeaderboard:
        """Return the numbers of the filtered board."""
        return self._once(arena, (filters,), lambda: self.report(arena, filters).view)

    def entry(self, arena: str, names: Sequence[str]) -> ArenaReport:
        """Return the report on the named entries alone; their rows are the same as on the whole board.

        The scores and intervals of an entry do not depend on other entries, so hundreds of those need not be computed.
        """

        def make() -> ArenaReport:
            chosen = self._chosen(arena, ArenaFilters())
            rows = [place for place, entry in enumerate(chosen.entries) if entry.name in names]
            alone = replace(chosen, entries=tuple(chosen.entries[place] for place in rows), p=chosen.p[rows])
            report = arena_report(alone)
            ranking = self._once(arena, ("ranking",), lambda: first_view(chosen))
            ranks = {line.entry.name: line.rank for line in ranking.lines}
            lines = tuple(replace(line, rank=ranks.get(line.entry.name, line.rank)) for line in report.view.lines)
            return replace(report, view=replace(report.view, lines=lines))

        return self._once(arena, ("entry", *names), make)

    def _chosen(self, arena: str, filters: ArenaFilters) -> ArenaTable:
        table = self.table(arena)
        chosen = table.only(filters.mask(table))
        if not np.isfinite(chosen.markets.outcome).any():
            raise InputError("no market that passes these filters has resolved yet", hint="remove a filter")
        return chosen

    def page(self, arena: str, filters: ArenaFilters, choice: BoardChoice, *, whole: bool = False) -> BoardPage:
        """Return the page of a board, rendered once and then cached.

        If forecasts or results have arrived since and the new page takes longer than `PATIENCE`, the previous page is
        returned with a note while the new one is made. If there is no previous page and the store has many forecasts,
        the ranking comes first and the intervals follow once they are computed, unless `whole` is set.
        """
        key, state = (arena, filters, choice), self.state(arena)
        with self._lock:
            before = self._pages.get(key)
        if before is None and (before := self._read_page(arena, filters, choice)) is not None:
            self._keep_page(key, before)
        if before is not None and before.state == state and not before.note:
            return before
        if before is None and not whole and state[0] > LARGE:
            ranking = self._job(self._ranking, key, state)
            self._job(self._make_page, key, state)
            return _in_time(ranking) or BoardPage(headline=arena, note=READING, state=state)
        job = self._job(self._make_page, key, state)
        if before is None or whole:
            return job.result()
        return _in_time(job) or replace(before, note=before.note or OUTDATED)

    def _job(
        self, make: Callable[[_BoardKey, tuple[Any, ...]], BoardPage], key: _BoardKey, state: tuple[Any, ...]
    ) -> Future[BoardPage]:
        """Return the job that makes this page, starting it if nobody has asked for the page yet."""
        name = (make.__name__, key, state)
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                job = self._jobs[name] = self._executor.submit(make, key, state)
                job.add_done_callback(lambda _: self._jobs.pop(name, None))
        return job

    def _keep_page(self, key: _BoardKey, page: BoardPage) -> None:
        with self._lock:
            self._pages[key] = page
            while len(self._pages) > CACHED_BOARDS:
                self._pages.popitem(last=False)

    def _ranking(self, key: _BoardKey, state: tuple[Any, ...]) -> BoardPage:
        arena, filters, choice = key
        chosen = self._chosen(arena, filters)
        view = first_view(chosen)
        body, public = _bodies(key, first_board_view(view, chosen.entries, choice), self._methods(arena))
        page = BoardPage(headline=arena_headline(view), body=body, public=public, note=RANKING_ONLY, state=state)
        self._keep_page(key, page)
        return page

    def _make_page(self, key: _BoardKey, state: tuple[Any, ...]) -> BoardPage:
        arena, filters, choice = key
        report = self.report(arena, filters)
        self.cached((arena, filters), state, lambda: report.view)
        view = board_view(report, choice)
        parts = {anchor: (title, str(body)) for anchor, title, body in view.parts}
        headline = arena_headline(report.view)
        body, public = _bodies(key, view, self._methods(arena))
        page = BoardPage(headline=headline, body=body, public=public, parts=parts, state=state)
        self._keep_page(key, page)
        if (filters, choice) == (ArenaFilters(), BoardChoice()):
            saved = {"version": page_version(), **vars(page)}
            with suppress(OSError):
                write_atomically(self._page_file(arena), json.dumps(saved).encode())
        return page

    def _methods(self, arena: str) -> dict[str, str]:
        """Return the forecaster of each entry, and its model without the address of a server."""
        return {
            entry.name: " · ".join(filter(None, (str(spec.get("forecaster", "")), str(model).partition("@")[0])))
            for entry in ArenaStore(self._database, arena).entries()
            for spec in [entry.settings]
            for model in [(spec.get("models") or {}).get("agent", "")]
        }

    def _page_file(self, arena: str) -> Path:
        digest = hashlib.sha256(f"{self._database.place}\0{arena}".encode()).hexdigest()[:16]
        return self._folder / f"{digest}-page.json"

    def _read_page(self, arena: str, filters: ArenaFilters, choice: BoardChoice) -> BoardPage | None:
        """Read the page that the last server stored, so that the first view on this server need not wait."""
        if (filters, choice) != (ArenaFilters(), BoardChoice()):
            return None
        try:
            saved = json.loads(self._page_file(arena).read_text(encoding="utf-8"))
            if saved.pop("version") != page_version():
                return None
            parts = {str(anchor): (str(title), str(body)) for anchor, (title, body) in saved["parts"].items()}
            headline, body, public = (str(saved[name]) for name in ("headline", "body", "public"))
            return BoardPage(headline=headline, body=body, public=public, parts=parts, state=tuple(saved["state"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def state(self, arena: str) -> tuple[Any, ...]:
        """Return a marker of the forecasts and outcomes stored so far, and of the settings."""
        store = ArenaStore(self._database, arena)
        return (store.said.last(), *store.outcome_state(), store.spec())

    def _once(self, arena: str, what: tuple[Any, ...], make: Callable[[], T]) -> T:
        return self.cached((arena, *what), self.state(arena), make)
