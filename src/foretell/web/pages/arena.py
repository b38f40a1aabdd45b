"""Arenas: the list, the board with its filters, its events and entries."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from foretell.arena.listing import arena_rows, event_counts, event_titles, events_by
from foretell.arena.status import ArenaEventHistory, event_history
from foretell.arena.store import ArenaStore
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.report.arena_report import ARENA_COLUMNS, ArenaReport, arena_headline
from foretell.report.charts.rulers import ShownAnswer, probability_ruler
from foretell.report.charts.svg import Chart, series_styles
from foretell.report.markup import Markup
from foretell.report.provenance import Provenance
from foretell.web.arena_board import COST, BoardChoice, coming_up, filter_values
from foretell.web.arena_pages import (
    EVENTS_PER_PAGE,
    EntryView,
    all_rounds,
    entry_figures,
    entry_finding,
    entry_view,
    event_figures,
    event_finding,
    event_steps,
    last_answers,
    last_context,
    listed_events,
    renamed,
)
from foretell.web.boards import BOARD_SETTINGS, ArenaFilters
from foretell.web.rendering import html_page
from foretell.web.security import visitor_of
from foretell.web.state import CurrentState, WebState

router = APIRouter()
NO_ARENA: dict[int | str, dict[str, Any]] = {404: {"description": "No such arena, or no such event in it."}}


def known_arena(here: CurrentState, arena: str) -> str:
    """Return the arena named in the path; raises a 404 error if there is none."""
    if not any(row.name == arena for row in arena_rows(here.store.database)):
        raise HTTPException(404, f"there is no arena {arena[:80]!r}")
    return arena


Find = Annotated[str, Query(max_length=200)]


@frozen
class EventFilters:
    """Which events to list, as given in the page address; `find` matches titles that contain every word."""

    find: Find = ""
    state: Find = ""
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0


EVENTS = "events"
"""The view of an arena that lists its events."""
Arena = Annotated[str, Depends(known_arena)]
Filters = Annotated[ArenaFilters, Depends(ArenaFilters)]
Choice = Annotated[BoardChoice, Depends(BoardChoice)]


@router.get("/api/arenas", tags=["arena"])
def list_arenas(here: CurrentState) -> dict[str, Any]:
    """List all arenas on this machine."""
    return {"arenas": arena_rows(here.store.database)}


@router.get("/arena", include_in_schema=False)
def show_arenas(request: Request, here: CurrentState) -> Response:
    """Show the list of arenas, with who is best so far."""
    view = list_arenas(here)
    boards = {row.name: here.boards.small(row.name) for row in view["arenas"]}
    findings = {name: f"{arena_headline(board.view)}." for name, board in boards.items() if board is not None}
    return html_page(request, "arenas.html", view, findings=findings)


@router.get("/api/arena/{arena}/board", tags=["arena"], responses=NO_ARENA)
def read_board(here: CurrentState, arena: Arena, filters: Filters) -> dict[str, Any]:
    """The leaderboard with intervals, completion, returns, pairs and lead times, on all events or a selection."""
    return here.boards.board(arena, filters).to_dict()


@router.get("/arena/{arena}", include_in_schema=False)
def show_board(  # noqa: PLR0913 - the parameters of the address
    request: Request,
    here: CurrentState,
    arena: Arena,
    filters: Filters,
    choice: Choice,
    events: Annotated[EventFilters, Depends(EventFilters)],
    view: Find = "",
) -> Response:
    """Show the board of an arena; with `view`, its list of events or one of its additional tables and charts."""
    if view == EVENTS:
        return html_page(
            request, "arena.html", None, arena=arena, events=_events(here, arena, events, filters.category)
        )
    page, reason, store = None, "", ArenaStore(here.store.database, arena)
    try:
        page = here.boards.page(arena, filters, choice, whole=here.access.still or bool(view))
    except InputError as error:
        reason = str(error)
    money = visitor_of(request).may_write
    if page is not None and not money:
        page = page.without_costs()
    if view and (page is None or view not in page.parts):
        raise HTTPException(404, reason or f"the board has no part {view[:80]!r}")
    more: dict[str, Any] = {
        "reason": reason,
        "arena": arena,
        "chosen": filters,
        "choice": choice,
        "made": Provenance.now(BOARD_SETTINGS if page else None),
    }
    if view and page is not None:
        title, body = page.parts[view]
        return html_page(request, "arena.html", page, **more, part=(title, Markup(body)))
    state = here.boards.state(arena)
    more |= {
        "columns": {name: shown for name, shown in ARENA_COLUMNS.items() if money or name != COST},
        "body": Markup(page.body) if page else "",
        "open": here.boards.cached(("open", arena), (*state, store.latest()), lambda: coming_up(store)),
        "counts": event_counts(store),
        # Files fetch nothing when a part is opened.
        "inlined": {name: Markup(body) for name, (_, body) in page.parts.items()} if page and here.access.still else {},
        "next_due": store.forecast_times.next_due(),
        "filter_values": here.boards.cached(("filter values", arena), state, lambda: filter_values(store)),
    }
    return html_page(request, "arena.html", page, **more)


def _events(here: WebState, arena: str, filters: EventFilters, category: str) -> dict[str, Any]:
    """Return selected events, latest closing first."""
    store, words = ArenaStore(here.store.database, arena), filters.find.casefold().split()
    categories, size = events_by(store, "category"), here.rows_per_page(EVENTS_PER_PAGE)
    selected = sum(categories.values())

    def titles() -> Mapping[str, str]:
        # Selected events stay selected and keep their titles, so the number of events shows if there are new ones.
        return here.cached(("titles", arena), (selected,), lambda: event_titles(store))

    part = (filters.offset, size)
    rows, total = listed_events(store, words, titles, category=category, state=filters.state, part=part)
    return {
        "rows": rows,
        "total": total,
        "of": selected,
        "categories": list(categories),
        "chosen": {"find": filters.find or None, "category": category or None, "state": filters.state or None},
        "offset": filters.offset,
        "size": size,
    }


def known_event(here: CurrentState, arena: Arena, event: str) -> ArenaEventHistory:
    """Return the event named in the path, from its first price to its result; raises a 404 error if there is none."""
    try:
        return event_history(ArenaStore(here.store.database, arena), event)
    except InputError as error:
        raise HTTPException(404, str(error)) from None


Event = Annotated[ArenaEventHistory, Depends(known_event)]


@router.get("/api/arena/{arena}/event/{event:path}", tags=["arena"], responses=NO_ARENA)
def read_event(event: Event) -> dict[str, Any]:
    """One event: prices, forecast rounds, forecasts, reasons and result."""
    return event.to_dict()


@router.get("/arena/{arena}/event/{event:path}", include_in_schema=False)
def show_event(request: Request, here: CurrentState, arena: Arena, event: Event) -> Response:
    """Show one event: the context and the answers of every entry, and the outcome."""
    store = ArenaStore(here.store.database, arena)
    runs = {row.name: row.run for row in store.entries()}
    styles = series_styles(runs)
    context, answers = last_context(store, event), last_answers(event, list(runs))
    sources = context[1].sources if context else ()
    # Drawing them takes most of the time of the page.
    latest, moved = here.while_unchanged(
        ("event figures", arena, event.event), lambda: event_figures(event, styles, sources)
    )
    return html_page(
        request,
        "event.html",
        event,
        arena=arena,
        answers=answers,
        finding=event_finding(event, answers),
        steps=event_steps(event),
        renamed=renamed(event),
        ruler=_answer_ruler,
        winner=next((target for target, outcome in event.outcomes.items() if outcome == "yes"), None),
        runs=runs,
        page_of=here.page_of,
        latest=latest,
        moved=moved,
        seen_at=context[0] if context else None,
        context=context[1] if context else None,
        every_round=all_rounds(here.store, event, runs) if here.access.still else (),
    )


def _answer_ruler(p: float, price: float | None) -> Chart:
    return probability_ruler(ShownAnswer(p=p, price=price))


TitledCharts = list[tuple[str, Chart]]


def known_entry(here: CurrentState, arena: Arena, entry: str) -> tuple[EntryView, TitledCharts]:
    """Return the entry named in the path, with its charts once something has resolved."""

    def report_on(names: Sequence[str]) -> ArenaReport | None:
        try:
            return here.boards.entry(arena, names)
        except InputError:
            return None

    store = ArenaStore(here.store.database, arena)
    names = [row.name for row in store.entries()]

    def make() -> tuple[EntryView, TitledCharts]:
        view, report = entry_view(store, entry, report_on)
        if report is None or view.line is None:
            return view, []
        return view, entry_figures(report, view.line.entry.name, series_styles(dict.fromkeys(names)))

    try:
        return here.cached(("entry", arena, entry), (*here.boards.state(arena), len(names)), make)
    except InputError as error:
        raise HTTPException(404, str(error)) from None


Entry = Annotated[tuple[EntryView, TitledCharts], Depends(known_entry)]


@router.get("/arena/{arena}/entry/{entry:path}", include_in_schema=False)
def show_entry(request: Request, arena: Arena, entry: Entry) -> Response:
    """Show the page of an entry."""
    view, figures = entry
    provenance = Provenance.now(BOARD_SETTINGS if figures else None)
    return html_page(
        request, "entry.html", view, made=provenance, arena=arena, figures=figures, finding=entry_finding(view)
    )
