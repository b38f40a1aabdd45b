"""Arenas: the list, the board with its filters, events and the life of one."""

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from foretell.app.web.rendering import page
from foretell.app.web.serving import Here, Serving
from foretell.app.web.views.arena import (
    Arenas,
    Events,
    Filters,
    event_life,
    has_arena,
    list_arenas,
    list_events,
    offer,
)
from foretell.arena.live.biography import Biography
from foretell.arena.report.figures.history import MarketHistory, history_plot
from foretell.arena.report.svg import Figure
from foretell.arena.standings.sums import Choice
from foretell.questions.clock import instant
from foretell.questions.problems import InputError

router = APIRouter(tags=["arena"])
CANNOT: dict[int | str, dict[str, Any]] = {404: {"description": "No such arena, or no such event in it."}}
MARKETS = 12
"""Markets of an event that get a picture."""
Word = Annotated[str, Query(max_length=200)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]


def filters_of(
    category: Word = "",
    platform: Word = "",
    lead_time: Word = "",
    since: date | None = None,
    until: date | None = None,
    moments: Choice = "mean",
) -> Filters:
    """From the address."""
    return Filters(category=category, platform=platform, lead_time=lead_time, since=since, until=until, moments=moments)


Chosen = Annotated[Filters, Depends(filters_of)]


@router.get("/api/arenas")
def read_arenas(here: Here) -> Arenas:
    """Every arena of this machine."""
    return list_arenas(here.store)


@router.get("/arena", include_in_schema=False)
def show_arenas(request: Request, here: Here) -> Response:
    """The list."""
    return page(request, "arenas.html", list_arenas(here.store))


@router.get("/api/arena/{arena}/board", responses=CANNOT)
def read_board(here: Here, arena: str, chosen: Chosen) -> dict[str, Any]:
    """The leaderboard with intervals, completion, returns, pairs and lead times, on all events or some."""
    _require(here, arena)
    return here.boards.board(arena, chosen).to_dict()


@router.get("/api/arena/{arena}/events", responses=CANNOT)
def read_events(here: Here, arena: str, offset: Offset = 0) -> Events:
    """Events that were taken up, those that close last first."""
    _require(here, arena)
    return list_events(here.store, arena, offset=offset)


@router.get("/api/arena/{arena}/event/{event:path}", responses=CANNOT)
def read_event(here: Here, arena: str, event: str) -> dict[str, Any]:
    """Prices, moments, forecasts and result of one event."""
    return _life(here, arena, event).to_dict()


@router.get("/arena/{arena}", include_in_schema=False)
def show_board(request: Request, here: Here, arena: str, chosen: Chosen) -> Response:
    """The board."""
    _require(here, arena)
    more: dict[str, Any] = {"arena": arena, "chosen": chosen, "offer": offer(here.boards.standings(arena))}
    try:
        study, parts = here.boards.page(arena, chosen)
    except InputError as reason:
        return page(request, "arena.html", None, reason=str(reason), parts=[], **more)
    return page(request, "arena.html", study, reason="", parts=parts, **more)


@router.get("/arena/{arena}/events", include_in_schema=False)
def show_events(request: Request, here: Here, arena: str, offset: Offset = 0) -> Response:
    """The list of events."""
    _require(here, arena)
    return page(request, "events.html", list_events(here.store, arena, offset=offset), size=100)


@router.get("/arena/{arena}/event/{event:path}", include_in_schema=False)
def show_event(request: Request, here: Here, arena: str, event: str) -> Response:
    """One event."""
    life = _life(here, arena, event)
    return page(request, "event.html", life, arena=arena, figures=histories(life))


def histories(life: Biography) -> list[Figure]:
    """Price and forecasts of every market, those that were traded most evenly first."""
    return [history_plot(_market(life, target)) for target in list(life.prices)[:MARKETS]]


def _market(life: Biography, target: str) -> MarketHistory:
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


def _require(here: Serving, arena: str) -> None:
    if not has_arena(here.store, arena):
        raise HTTPException(404, f"there is no arena {arena[:80]!r}")


def _life(here: Serving, arena: str, event: str) -> Biography:
    _require(here, arena)
    try:
        return event_life(here.store, arena, event)
    except InputError as error:
        raise HTTPException(404, str(error)) from None
