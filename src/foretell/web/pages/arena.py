"""Arenas: the list, the board with its filters, events and the life of one."""

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from foretell.arena.status import ArenaEventHistory
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.report.charts.svg import Chart
from foretell.report.charts.timelines import MarketHistory, history_plot
from foretell.report.study import StudyResult
from foretell.report.study_report import study_parts
from foretell.scoring.event_sums import MomentChoice
from foretell.studies.comparison import ADVICE
from foretell.web.rendering import html_page
from foretell.web.state import CurrentState, WebState
from foretell.web.views.arena import (
    ArenaFilters,
    ArenaList,
    CompareChoices,
    EventList,
    compare_entries,
    compare_runs,
    entry_choices,
    event_timeline,
    filter_options,
    has_arena,
    list_arenas,
    list_events,
    run_choices,
)

arena_router = APIRouter(tags=["arena"])
ARENA_RESPONSES: dict[int | str, dict[str, Any]] = {404: {"description": "No such arena, or no such event in it."}}
MARKETS = 12
"""Markets of an event that get a picture."""
WordQuery = Annotated[str, Query(max_length=200)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]


def filters_of(
    category: WordQuery = "",
    platform: WordQuery = "",
    lead_time: WordQuery = "",
    since: date | None = None,
    until: date | None = None,
    moments: MomentChoice = "mean",
) -> ArenaFilters:
    """From the address."""
    return ArenaFilters(
        category=category, platform=platform, lead_time=lead_time, since=since, until=until, moments=moments
    )


Chosen = Annotated[ArenaFilters, Depends(filters_of)]


@arena_router.get("/api/arenas")
def read_arenas(here: CurrentState) -> ArenaList:
    """Every arena of this machine."""
    return list_arenas(here.store)


@arena_router.get("/arena", include_in_schema=False)
def show_arenas(request: Request, here: CurrentState) -> Response:
    """The list."""
    return html_page(request, "arenas.html", list_arenas(here.store))


@arena_router.get("/api/arena/{arena}/board", responses=ARENA_RESPONSES)
def read_board(here: CurrentState, arena: str, chosen: Chosen) -> dict[str, Any]:
    """The leaderboard with intervals, completion, returns, pairs and lead times, on all events or some."""
    _require(here, arena)
    return here.boards.board(arena, chosen).to_dict()


@arena_router.get("/api/arena/{arena}/events", responses=ARENA_RESPONSES)
def read_events(here: CurrentState, arena: str, offset: Offset = 0) -> EventList:
    """Events that were taken up, those that close last first."""
    _require(here, arena)
    return list_events(here.store, arena, offset=offset)


@arena_router.get("/api/arena/{arena}/event/{event:path}", responses=ARENA_RESPONSES)
def read_event(here: CurrentState, arena: str, event: str) -> dict[str, Any]:
    """Prices, moments, forecasts and result of one event."""
    return _event_history(here, arena, event).to_dict()


@arena_router.get("/arena/{arena}", include_in_schema=False)
def show_board(request: Request, here: CurrentState, arena: str, chosen: Chosen) -> Response:
    """The board."""
    _require(here, arena)
    more: dict[str, Any] = {"arena": arena, "chosen": chosen, "offer": filter_options(here.boards.standings(arena))}
    try:
        study, parts = here.boards.page(arena, chosen)
    except InputError as reason:
        return html_page(request, "arena.html", None, reason=str(reason), parts=[], **more)
    return html_page(request, "arena.html", study, reason="", parts=parts, **more)


@arena_router.get("/arena/{arena}/events", include_in_schema=False)
def show_events(request: Request, here: CurrentState, arena: str, offset: Offset = 0) -> Response:
    """The list of events."""
    _require(here, arena)
    return html_page(request, "events.html", list_events(here.store, arena, offset=offset), size=100)


@arena_router.get("/arena/{arena}/event/{event:path}", include_in_schema=False)
def show_event(request: Request, here: CurrentState, arena: str, event: str) -> Response:
    """One event."""
    life = _event_history(here, arena, event)
    return html_page(request, "event.html", life, arena=arena, figures=histories(life))


def histories(life: ArenaEventHistory) -> list[Chart]:
    """Price and forecasts of every market, those that were traded most evenly first."""
    return [history_plot(_market(life, target)) for target in list(life.prices)[:MARKETS]]


def _market(life: ArenaEventHistory, target: str) -> MarketHistory:
    forecasts: dict[str, list[tuple[datetime, float]]] = {}
    for moment in life.moments:
        for name, said in moment.said.items():
            if target in said:
                forecasts.setdefault(name, []).append((moment.at, said[target]))
    told = life.outcomes.get(target, "")
    outcome = {"yes": 1.0, "no": 0.0}.get(told)
    return MarketHistory(
        title=life.labels[target],
        prices=[(instant(at), p) for at, p in life.prices[target]],
        forecasts=forecasts,
        outcome=float(told.removeprefix("paid ")) if told.startswith("paid ") else outcome,
        closes=life.question.closes_at,
    )


def _require(here: WebState, arena: str) -> None:
    if not has_arena(here.store, arena):
        raise HTTPException(404, f"there is no arena {arena[:80]!r}")


def _event_history(here: WebState, arena: str, event: str) -> ArenaEventHistory:
    _require(here, arena)
    try:
        return event_timeline(here.store, arena, event)
    except InputError as error:
        raise HTTPException(404, str(error)) from None


# Comparing two runs, or two entries of an arena.

compare_router = APIRouter(tags=["compare"])
NameQuery = Annotated[str, Query(max_length=300)]


@compare_router.get("/api/compare/choices")
def read_choices(here: CurrentState, arena: NameQuery = "") -> CompareChoices:
    """Who can be compared: runs, or with `arena` its entries."""
    return _choices(here, arena)


@compare_router.get("/api/compare")
def read_comparison(here: CurrentState, first: NameQuery, second: NameQuery, arena: NameQuery = "") -> dict[str, Any]:
    """Who is better and by how much more than noise, group by group, and where the two part."""
    return _study(here, first, second, arena).to_dict()


@compare_router.get("/compare", include_in_schema=False)
def show_comparison(
    request: Request, here: CurrentState, first: NameQuery = "", second: NameQuery = "", arena: NameQuery = ""
) -> Response:
    """The page: a form, and below it the comparison."""
    choices = _choices(here, arena)
    study, reason = None, ""
    if first and second:
        try:
            study = _study(here, first, second, arena)
        except InputError as error:
            reason = str(error)
    parts = study_parts(study, ADVICE) if study else []
    return html_page(
        request, "compare.html", study, reason=reason, parts=parts, choices=choices, first=first, second=second
    )


def _choices(here: WebState, arena: str) -> CompareChoices:
    if arena and not has_arena(here.store, arena):
        raise HTTPException(404, f"there is no arena {arena[:80]!r}")
    return entry_choices(here.boards, arena) if arena else run_choices(here.store)


def _study(here: WebState, first: str, second: str, arena: str) -> StudyResult:
    if first == second:
        raise InputError("one and the same cannot be compared", column="second", hint="name two different ones")
    known = {choice.id for choice in _choices(here, arena).choices}
    for name in (first, second):
        if name not in known:
            raise HTTPException(404, f"there is nobody called {name[:80]!r} here")
    if arena:
        return compare_entries(here.boards, arena, first, second, {})
    return compare_runs(here.settings, first, second)
