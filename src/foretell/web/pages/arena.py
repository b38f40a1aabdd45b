"""Arenas: the list, the board with its filters, events and the life of one; and two entries or runs compared."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from foretell.arena.status import ArenaEventHistory, event_history
from foretell.arena.store import ArenaStore
from foretell.metrics.bootstrap import Resampling
from foretell.operations.study_data import run_table
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.report.charts.svg import Chart
from foretell.report.charts.timelines import MarketHistory, history_plot
from foretell.report.leaderboard import board_study
from foretell.report.study import StudyResult
from foretell.report.study_report import study_parts
from foretell.runs.store import RunStore
from foretell.scoring.arena_table import arena_as_table
from foretell.scoring.score import ScoringOptions, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.studies.comparison import ADVICE, comparison_study
from foretell.web.boards import ArenaFilters, filter_options
from foretell.web.rendering import html_page, json_and_page
from foretell.web.state import CurrentState, WebState

router = APIRouter()
NO_ARENA: dict[int | str, dict[str, Any]] = {404: {"description": "No such arena, or no such event in it."}}
CHARTED_MARKETS = 12
EVENTS_PER_PAGE = 100
MAX_CHOICES = 200
COMPARE_RESAMPLING = Resampling(draws=1000)
_COUNTS_SQL = """
select count(*), coalesce(sum(settled), 0) from listed where arena = ? and decision = 'selected'"""
_EVENTS_SQL = """
select event, category, status, closes_at, settled from listed where arena = ? and decision = 'selected'
order by coalesce(closes_at, '') desc, event limit ? offset ?"""
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Name = Annotated[str, Query(max_length=300)]
Runs = Annotated[tuple[str, ...], Query(max_length=50, description="Runs by name or id; may be repeated.")]


def arena_rows(store: RunStore) -> list[dict[str, Any]]:
    """Every arena in the store, the newest first."""
    ArenaStore(store.database, "")  # Makes the tables where there was no arena yet.
    rows: list[dict[str, Any]] = []
    for name, created in store.database.read("select name, created from arena order by created desc, name"):
        events, settled = store.database.read(_COUNTS_SQL, (name,))[0]
        rows.append({"name": name, "created": created, "events": events, "settled": settled})
    return rows


def known_arena(here: CurrentState, arena: str) -> str:
    """The arena that the address names."""
    if not any(row["name"] == arena for row in arena_rows(here.store)):
        raise HTTPException(404, f"there is no arena {arena[:80]!r}")
    return arena


Arena = Annotated[str, Depends(known_arena)]
Filters = Annotated[ArenaFilters, Depends(ArenaFilters)]


@json_and_page(router, "/api/arenas", "/arena", "arenas.html", tags=["arena"])
def list_arenas(here: CurrentState) -> dict[str, Any]:
    """Every arena of this machine."""
    return {"arenas": arena_rows(here.store)}


@router.get("/api/arena/{arena}/board", tags=["arena"], responses=NO_ARENA)
def read_board(here: CurrentState, arena: Arena, filters: Filters) -> dict[str, Any]:
    """The leaderboard with intervals, completion, returns, pairs and lead times, on all events or some."""
    return here.boards.board(arena, filters).to_dict()


@router.get("/arena/{arena}", include_in_schema=False)
def show_board(request: Request, here: CurrentState, arena: Arena, filters: Filters) -> Response:
    """The board."""
    study, parts, reason = None, [], ""
    try:
        study, parts = here.boards.page(arena, filters)
    except InputError as error:
        reason = str(error)
    offer = filter_options(here.boards.table(arena))
    return html_page(request, "arena.html", study, reason=reason, parts=parts, arena=arena, chosen=filters, offer=offer)


@json_and_page(
    router, "/api/arena/{arena}/events", "/arena/{arena}/events", "events.html", tags=["arena"], responses=NO_ARENA
)
def list_events(here: CurrentState, arena: Arena, offset: Offset = 0) -> dict[str, Any]:
    """Events that were taken up, those that close last first."""
    rows = here.store.database.read(_EVENTS_SQL, (arena, EVENTS_PER_PAGE, offset))
    events = [
        {"id": id, "category": category, "status": status, "closes_at": closes, "settled": bool(settled)}
        for id, category, status, closes, settled in rows
    ]
    total = here.store.database.read(_COUNTS_SQL, (arena,))[0][0]
    return {"arena": arena, "events": events, "total": total, "offset": offset, "size": EVENTS_PER_PAGE}


def known_event(here: CurrentState, arena: Arena, event: str) -> ArenaEventHistory:
    """The event that the address names, from its first price to its result."""
    try:
        return event_history(ArenaStore(here.store.database, arena), event)
    except InputError as error:
        raise HTTPException(404, str(error)) from None


Event = Annotated[ArenaEventHistory, Depends(known_event)]


@router.get("/api/arena/{arena}/event/{event:path}", tags=["arena"], responses=NO_ARENA)
def read_event(event: Event) -> dict[str, Any]:
    """Prices, moments, forecasts and result of one event."""
    return event.to_dict()


@router.get("/arena/{arena}/event/{event:path}", include_in_schema=False)
def show_event(request: Request, arena: str, event: Event) -> Response:
    """One event."""
    charts = [_price_chart(event, target) for target in list(event.prices)[:CHARTED_MARKETS]]
    return html_page(request, "event.html", event, arena=arena, figures=charts)


def _price_chart(event: ArenaEventHistory, target: str) -> Chart:
    """Price and forecasts of one market."""
    forecasts: dict[str, list[tuple[datetime, float]]] = {}
    for moment in event.moments:
        for name, p in moment.said.items():
            if target in p:
                forecasts.setdefault(name, []).append((moment.at, p[target]))
    result = event.outcomes.get(target, "")
    paid = float(result.removeprefix("paid ")) if result.startswith("paid ") else None
    return history_plot(
        MarketHistory(
            title=event.labels[target],
            prices=[(instant(at), p) for at, p in event.prices[target]],
            forecasts=forecasts,
            outcome={"yes": 1.0, "no": 0.0}.get(result, paid),
            closes=event.question.closes_at,
        )
    )


# Comparing two runs, or two entries of an arena.


@router.get("/api/compare/choices", tags=["compare"])
def read_choices(here: CurrentState, arena: Name = "") -> dict[str, Any]:
    """Who can be compared: runs that have forecasts, or with `arena` its entries."""
    if arena:
        names = here.boards.table(known_arena(here, arena)).names
        return {"arena": arena, "choices": [{"id": name, "name": name} for name in names]}
    runs = [row for row in here.store.runs() if row.done][:MAX_CHOICES]
    models = [row.spec.get("models", {}).get("agent") or row.spec.get("forecaster", "") for row in runs]
    choices = [{"id": row.id, "name": f"{model} · {row.id}"} for row, model in zip(runs, models, strict=True)]
    return {"arena": "", "choices": choices}


@router.get("/api/compare", tags=["compare"])
def read_comparison(here: CurrentState, first: Name, second: Name, arena: Name = "") -> dict[str, Any]:
    """Who is better and by how much more than noise, group by group, and where the two part."""
    return _comparison(here, first, second, arena).to_dict()


@router.get("/compare", include_in_schema=False)
def show_comparison(
    request: Request, here: CurrentState, first: Name = "", second: Name = "", arena: Name = ""
) -> Response:
    """The page: a form, and below it the comparison."""
    choices = read_choices(here, arena)
    study, reason = None, ""
    if first and second:
        try:
            study = _comparison(here, first, second, arena)
        except InputError as error:
            reason = str(error)
    parts = study_parts(study, ADVICE) if study else []
    return html_page(
        request, "compare.html", study, reason=reason, parts=parts, choices=choices, first=first, second=second
    )


@router.get("/api/board", tags=["compare"])
def read_run_board(here: CurrentState, run: Runs) -> dict[str, Any]:
    """Several runs on one board: who leads, and by more than noise?"""
    return _board(here, run).to_dict()


@router.get("/board", include_in_schema=False)
def show_run_board(request: Request, here: CurrentState, run: Runs = ()) -> Response:
    """The board of the runs that were ticked."""
    study, reason = None, "" if len(run) > 1 else "Tick two runs or more in the list."
    if not reason:
        try:
            study = board_study(_board(here, run), f"{len(run)} runs")
        except InputError as error:
            reason = str(error)
    return html_page(request, "board.html", study, reason=reason, parts=study_parts(study, ADVICE) if study else [])


def _board(here: WebState, runs: Sequence[str]) -> Scoreboard:
    table, _, _ = run_table(here.settings, [here.run(one).id for one in dict.fromkeys(runs)])
    return score_table(table, ScoringOptions(resampling=COMPARE_RESAMPLING))


def _comparison(here: WebState, first: str, second: str, arena: str) -> StudyResult:
    """On every market both entries answered, or of runs, whose trials are combined as each says."""
    if first == second:
        raise InputError("one and the same cannot be compared", column="second", hint="name two different ones")
    known = {choice["id"] for choice in read_choices(here, arena)["choices"]}
    for name in (first, second):
        if name not in known:
            raise HTTPException(404, f"there is nobody called {name[:80]!r} here")
    if arena:
        scoring = ScoringOptions(resampling=COMPARE_RESAMPLING, by=("category",), metric="brier")
        return comparison_study(arena_as_table(here.boards.table(arena)), first, second, texts={}, scoring=scoring)
    table, names, texts = run_table(here.settings, (first, second))
    scoring = ScoringOptions(resampling=COMPARE_RESAMPLING, by=("source",))
    return comparison_study(table, names[0], names[1], texts=texts, scoring=scoring)
