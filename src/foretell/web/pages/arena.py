"""Arenas: the list, the board with its filters, events and their history; comparisons of entries or of runs."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from foretell.arena.status import ArenaEventHistory, event_history
from foretell.arena.store import ArenaStore
from foretell.operations.requests.runs import RunsRequest
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.runs import question_set
from foretell.operations.score import ScoreResult, score
from foretell.operations.studies import run_table
from foretell.questions.errors import InputError
from foretell.report.arena_report import ArenaReport
from foretell.report.charts.rulers import ShownAnswer, probability_ruler
from foretell.report.charts.svg import Chart
from foretell.report.comparison import COMPARISON_ADVICE, comparison_study
from foretell.report.document import study_parts
from foretell.report.leaderboard import LEADERBOARD_ADVICE, board_study
from foretell.report.markup import Markup
from foretell.report.provenance import Provenance
from foretell.report.study import StudyResult
from foretell.runs.store import RunStore
from foretell.scoring.arena_leaderboard import ScoredArena, compare_entries
from foretell.scoring.arena_table import arena_as_table
from foretell.scoring.score import ScoringOptions, compare_pair
from foretell.scoring.scoreboard import Scoreboard
from foretell.web.arena_board import BOARD_COLUMNS, BoardChoice, arena_stands, board_offer, coming_up
from foretell.web.arena_pages import (
    EVENTS_PER_PAGE,
    EntryView,
    entry_figures,
    entry_finding,
    entry_styles,
    entry_view,
    event_figures,
    event_finding,
    event_labels,
    event_steps,
    event_titles,
    last_answers,
    last_context,
    listed_events,
    renamed,
)
from foretell.web.boards import BOARD_SETTINGS, ArenaFilters
from foretell.web.formatting import some
from foretell.web.rendering import html_page, json_and_page
from foretell.web.security import TokenRequired, form_of, visitor_of
from foretell.web.state import CurrentState, WebState

router = APIRouter()
NO_ARENA: dict[int | str, dict[str, Any]] = {404: {"description": "No such arena, or no such event in it."}}
MAX_CHOICES = 200
_COUNTS_SQL = """
select count(*), coalesce(sum(settled), 0) from listed where arena = ? and decision = 'selected'"""
_CATEGORIES_SQL = """
select category, count(*) from listed where arena = ? and decision = 'selected' group by category"""
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Name = Annotated[str, Query(max_length=300)]
StudyParts = Sequence[tuple[str, str, Markup]]
"""Anchor, title and markup of each section of a study."""
Runs = Annotated[tuple[str, ...], Query(max_length=50, description="Runs by name or id; may be repeated.")]


def arena_rows(store: RunStore) -> list[dict[str, Any]]:
    """Return every arena in the store, newest first."""
    ArenaStore(store.database, "")  # Makes the tables where there was no arena yet.
    rows: list[dict[str, Any]] = []
    for name, created in store.database.read("select name, created from arena order by created desc, name"):
        events, settled = store.database.read(_COUNTS_SQL, (name,))[0]
        rows.append({"name": name, "created": created, "events": events, "settled": settled})
    return rows


def known_arena(here: CurrentState, arena: str) -> str:
    """Return the arena named in the path; raises a 404 error if there is none."""
    if not any(row["name"] == arena for row in arena_rows(here.store)):
        raise HTTPException(404, f"there is no arena {arena[:80]!r}")
    return arena


Arena = Annotated[str, Depends(known_arena)]
Filters = Annotated[ArenaFilters, Depends(ArenaFilters)]
Choice = Annotated[BoardChoice, Depends(BoardChoice)]


@json_and_page(router, "/api/arenas", "/arena", "arenas.html", tags=["arena"])
def list_arenas(here: CurrentState) -> dict[str, Any]:
    """List all arenas on this machine."""
    return {"arenas": arena_rows(here.store)}


@router.get("/api/arena/{arena}/board", tags=["arena"], responses=NO_ARENA)
def read_board(here: CurrentState, arena: Arena, filters: Filters) -> dict[str, Any]:
    """The leaderboard with intervals, completion, returns, pairs and lead times, on all events or a selection."""
    return here.boards.board(arena, filters).to_dict()


@router.get("/arena/{arena}", include_in_schema=False)
def show_board(
    request: Request,
    here: CurrentState,
    arena: Arena,
    filters: Filters,
    choice: Choice,
) -> Response:
    """Show the board of an arena."""
    made, reason, book = None, "", ArenaStore(here.store.database, arena)
    try:
        made = here.boards.page(arena, filters, choice, whole=here.access.still)
    except InputError as error:
        reason = str(error)
    return html_page(
        request,
        "arena.html",
        made,
        reason=reason,
        arena=arena,
        chosen=filters,
        choice=choice,
        columns=BOARD_COLUMNS,
        body=Markup(made.body) if made else "",
        open=here.boards.kept(("open", arena), (*here.boards.state(arena), book.latest()), lambda: coming_up(book)),
        stands=arena_stands(book),
        offer=here.boards.kept(("offer", arena), here.boards.state(arena), lambda: board_offer(book)),
        made=Provenance.now(BOARD_SETTINGS if made else None),
    )


@router.get("/arena/{arena}/part/{part}", include_in_schema=False)
def show_board_part(
    request: Request, here: CurrentState, arena: Arena, filters: Filters, choice: Choice, part: str
) -> Response:
    """Show one of the additional tables of a board, or its additional charts."""
    try:
        made = here.boards.page(arena, filters, choice, whole=True)
    except InputError as error:
        raise HTTPException(404, str(error)) from None
    if part not in made.parts:
        raise HTTPException(404, f"the board has no part {part[:80]!r}")
    title, body = made.parts[part]
    footer = Provenance.now(BOARD_SETTINGS)
    return html_page(request, "arena_part.html", made, made=footer, arena=arena, title=title, body=Markup(body))


Find = Annotated[str, Query(max_length=200)]


@json_and_page(
    router, "/api/arena/{arena}/events", "/arena/{arena}/events", "events.html", tags=["arena"], responses=NO_ARENA
)
def list_events(
    here: CurrentState, arena: Arena, find: Find = "", category: Find = "", state: Find = "", offset: Offset = 0
) -> dict[str, Any]:
    """List selected events, latest closing first. `find` matches events whose title contains every word."""
    book, words = ArenaStore(here.store.database, arena), find.casefold().split()
    categories = dict(here.store.database.read(_CATEGORIES_SQL, (arena,)))
    selected = sum(categories.values())

    def titles() -> Mapping[str, str]:
        # A selected event stays selected and keeps its title, so their number says whether there are new ones.
        return here.kept(("titles", arena), (selected,), lambda: event_titles(book))

    events, total = listed_events(book, words, titles, category=category, state=state, offset=offset)
    return {
        "arena": arena,
        "events": [vars(one) for one in events],
        "total": total,
        "of": selected,
        "categories": sorted(categories),
        "chosen": {"find": find, "category": category, "state": state},
        "offset": offset,
        "size": EVENTS_PER_PAGE,
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
    """Show one event: what every entry saw and said, and what happened."""
    book = ArenaStore(here.store.database, arena)
    runs = {row.name: row.run for row in book.entries()}
    styles = entry_styles(list(runs))
    context, answers = last_context(book, event), last_answers(event, list(runs))
    said, moved = event_figures(event, styles, context[1].sources if context else ())
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
        winner=next((target for target, told in event.outcomes.items() if told == "yes"), None),
        runs=runs,
        said=said,
        moved=moved,
        seen_at=context[0] if context else None,
        context=context[1] if context else None,
        category=_category(book, event.event),
        link=str(request.url),
    )


def _answer_ruler(p: float, price: float | None) -> Chart:
    return probability_ruler(ShownAnswer(p=p, price=price))


def _category(book: ArenaStore, event: str) -> str:
    rows = book.db.read("select category from listed where arena = ? and event = ?", (book.arena, event))
    return rows[0][0] if rows else ""


TitledCharts = list[tuple[str, Chart]]


def known_entry(here: CurrentState, arena: Arena, entry: str) -> tuple[EntryView, TitledCharts]:
    """Return the entry named in the path, with its charts once something has resolved."""

    def report_on(names: Sequence[str]) -> ArenaReport | None:
        try:
            return here.boards.entry(arena, names)
        except InputError:
            return None

    book = ArenaStore(here.store.database, arena)
    names = [row.name for row in book.entries()]

    def make() -> tuple[EntryView, TitledCharts]:
        view, report = entry_view(book, entry, report_on)
        if report is None or view.line is None:
            return view, []
        return view, entry_figures(report, view.line.entry.name, entry_styles(names))

    try:
        return here.kept(("entry", arena, entry), (*here.boards.state(arena), len(names)), make)
    except InputError as error:
        raise HTTPException(404, str(error)) from None


Entry = Annotated[tuple[EntryView, TitledCharts], Depends(known_entry)]


@router.get("/api/arena/{arena}/entry/{entry:path}", tags=["arena"], responses=NO_ARENA)
def read_entry(entry: Entry) -> dict[str, Any]:
    """One entry: its scores, its best and worst events, its settings and its cost."""
    return entry[0].to_dict()


@router.get("/arena/{arena}/entry/{entry:path}", include_in_schema=False)
def show_entry(request: Request, arena: Arena, entry: Entry) -> Response:
    """Show the page of an entry."""
    view, figures = entry
    made = Provenance.now(BOARD_SETTINGS if figures else None)
    return html_page(request, "entry.html", view, made=made, arena=arena, figures=figures, finding=entry_finding(view))


# Comparing two runs, or two entries of an arena.


@router.get("/api/compare/choices", tags=["compare"])
def read_choices(here: CurrentState, arena: Name = "") -> dict[str, Any]:
    """What can be compared: runs that have forecasts or, with `arena`, the entries of that arena."""
    if arena:
        names = here.boards.table(known_arena(here, arena)).names
        return {"arena": arena, "choices": [{"id": name, "name": name} for name in names]}
    runs = [row for row in here.store.runs() if row.done][:MAX_CHOICES]
    models = [row.spec.get("models", {}).get("agent") or row.spec.get("forecaster", "") for row in runs]
    choices = [
        {"id": row.id, "name": row.name or f"{model} · {row.id}"} for row, model in zip(runs, models, strict=True)
    ]
    return {"arena": "", "choices": choices}


@router.get("/api/compare", tags=["compare"])
def read_comparison(here: CurrentState, first: Name, second: Name, arena: Name = "") -> dict[str, Any]:
    """Compare two runs or entries: which is better, by group and beyond noise, and where they differ."""
    return _comparison(here, first, second, read_choices(here, arena))[0].to_dict()


@router.get("/compare", include_in_schema=False)
def show_comparison(
    request: Request, here: CurrentState, first: Name = "", second: Name = "", arena: Name = ""
) -> Response:
    """Show the comparison form and, below it, the comparison."""
    choices = read_choices(here, arena)
    study, parts, reason = None, [], ""
    if first and second:
        try:
            study, parts = _comparison(here, first, second, choices)
        except InputError as error:
            reason = str(error)
    nothing = study is not None and not study.tables and not arena
    more: dict[str, Any] = {
        "reason": reason,
        "parts": parts,
        "choices": choices,
        "first": first,
        "second": second,
        "offered": _comparable(here, choices["choices"], (first, second)) if nothing else {},
        "sets": [] if study or arena else _same_sets(here, choices["choices"]),
        "arenas": [] if study or arena else [row["name"] for row in arena_rows(here.store) if row["settled"]],
    }
    return html_page(request, "compare.html", study, made=study.made() if study else None, **more)


def _same_sets(here: WebState, choices: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the question sets that several runs answered, each with these runs."""
    names, groups = {one["id"]: one["name"] for one in choices}, dict[str, dict[str, Any]]()
    for run, spec in here.store.specs():
        digest = str(spec.get("questions", {}).get("digest", ""))
        if digest and run in names:
            group = groups.setdefault(digest, {"title": question_set(spec), "runs": {}})
            group["runs"][run] = names[run]
    return [group for group in groups.values() if len(group["runs"]) > 1]


def _comparable(
    here: WebState, choices: Sequence[Mapping[str, str]], runs: Iterable[str]
) -> dict[tuple[str, str], list[tuple[str, str, int]]]:
    """By id and name of a run, the id and name of others with resolved questions in common, and how many these are."""
    names = {one["id"]: one["name"] for one in choices}
    return {
        (run, names[run]): [
            (other, names[other], shared)
            for other, shared in here.store.database.read(_SHARED_SQL, (run, run))
            if other in names
        ][:MOST_OFFERED]
        for run in runs
    }


_SHARED_SQL = """
select other.run, count(distinct other.question || ' ' || other.due) from run_outcome other join run_outcome mine
on mine.question = other.question and mine.due = other.due and mine.target = other.target
where mine.run = ? and other.run <> ? group by other.run order by 2 desc, 1"""
MOST_OFFERED = 5


@router.get("/api/board", tags=["compare"])
def read_run_board(here: CurrentState, run: Runs) -> dict[str, Any]:
    """Compare several runs on one board: which leads, and by more than noise?"""
    return _board(here, run)[0].to_dict()


@router.get("/board", include_in_schema=False)
def show_run_board(request: Request, here: CurrentState, run: Runs = ()) -> Response:
    """Show the board of the selected runs."""
    return _board_page(request, here, OwnTables(runs=run))


@router.post("/board", include_in_schema=False)
async def send_board(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """Show the board of runs together with the visitor's own tables, which are not stored."""
    sent = await form_of(request)
    named = zip(sent.get("name", ()), sent.get("table", ()), strict=False)
    tables = {(name or f"table {place}")[:80]: text for place, (name, text) in enumerate(named, 1) if text.strip()}
    own = OwnTables(runs=tuple(sent.get("run", ())[:50]), tables=tables, outcomes=sent.get("outcomes", [""])[0])
    return await run_in_threadpool(_board_page, request, here, own)


@dataclass(frozen=True, kw_only=True)
class OwnTables:
    """Input of a board: runs, and tables that were dropped onto the page."""

    runs: tuple[str, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict[str, str])
    """CSV texts by table name."""
    outcomes: str = ""

    def command(self) -> str:
        """Return the command that gives the same result."""
        outcomes = ["-o", "outcomes.csv"] if self.outcomes else []
        return shlex.join(["foretell", "score", *self.runs, *self.tables, *outcomes])


def _board_page(request: Request, here: WebState, own: OwnTables) -> Response:
    study, parts, reason = None, [], ""
    problems, notes = list[str](), tuple[str, ...]()
    if own.tables or len(own.runs) > 1:
        try:
            if own.tables:
                board = _board_with(here, own)
                study, parts = _drawn(board, own)
            else:
                board, study, parts = _board(here, own.runs)
            notes = board.notes
        except InputError as error:
            problems = error.lines()
            reason = f"{error.path} has {len(problems)} problems." if problems else str(error)
    elif own.runs or request.method == "POST":
        reason = "Tick two runs or more, or add a table: one run alone cannot be compared."
    ids = {one: here.run(one).id for one in own.runs}
    # Only who may add tables chooses among the others, and is told the command.
    listed = here.run_list(RunsRequest(), limit=MAX_CHOICES).runs if visitor_of(request).may_write else ()
    named = {run.id: run.called for run in listed}
    more: dict[str, Any] = {
        "reason": reason,
        "problems": problems,
        "notes": notes,
        "own": own,
        "command": replace(own, runs=tuple(named.get(id, one) for one, id in ids.items())).command(),
        "choices": [run for run in listed if run.score.get("brier_index") or run.id in ids.values()],
        "chosen": set(ids.values()),
        "parts": parts,
    }
    made, status = study.made() if study else None, 422 if reason and own.tables else 200
    return html_page(request, "board.html", study, status=status, made=made, **more)


def _board_with(here: WebState, own: OwnTables) -> Scoreboard:
    """Score tables as the command scores files, so that results are the same; errors name the table."""
    with TemporaryDirectory(prefix="foretell-") as folder:

        def file(place: int, text: str) -> Path:
            start = text.removeprefix("\ufeff").lstrip()[:1]
            ending = {"{": "jsonl", "[": "json"}.get(start, "csv")
            path = Path(folder) / f"{place}.{ending}"
            path.write_text(text.removeprefix("\ufeff"), encoding="utf-8")
            return path

        tables = {name: file(place, text) for place, (name, text) in enumerate(own.tables.items())}
        outcomes = file(len(tables), own.outcomes) if own.outcomes.strip() else None
        runs = tuple(here.run(one).id for one in dict.fromkeys(own.runs))
        found = score(ScoreRequest(sources=runs, forecasts=tables, outcomes=outcomes), here.settings)
    if not isinstance(found, ScoreResult):
        raise InputError("tables of numbers are scored by the command", hint="foretell score -f FILE -o FILE")
    return found.board


def _drawn(board: Scoreboard, own: OwnTables) -> tuple[StudyResult, StudyParts]:
    counts = (len(own.runs), "run"), (len(own.tables), "table")
    study = board_study(board, " and ".join(some(number, one) for number, one in counts if number))
    return replace(study, settings=board.settings), study_parts(study, LEADERBOARD_ADVICE)


def _board(here: WebState, runs: Sequence[str]) -> tuple[Scoreboard, StudyResult, StudyParts]:
    rows = [here.run(one) for one in dict.fromkeys(runs)]
    ids = tuple(row.id for row in rows)

    def make() -> tuple[Scoreboard, StudyResult, StudyParts]:
        # The same operation as `foretell score RUN …`, so that it is the same answer.
        found = score(ScoreRequest(sources=ids), here.settings)
        assert isinstance(found, ScoreResult)
        study, parts = _drawn(found.board, OwnTables(runs=ids))
        shared = {other for other, _ in here.store.database.read(_SHARED_SQL, (ids[0], ids[0]))}
        if apart := [row.name or f"run {row.id[:8]}" for row in rows[1:] if row.id not in shared]:
            first = rows[0].name or f"run {ids[0][:8]}"
            text = f"{first} has no resolved question in common with {', '.join(apart)}"
            study = replace(study, sentences=(f"{text}, so the scores below do not show which is better.",))
        return found.board, study, parts

    return here.boards.kept(("board", *ids), here.answered(*rows), make)


def _comparison(here: WebState, first: str, second: str, choices: Mapping[str, Any]) -> tuple[StudyResult, StudyParts]:
    """Compare two entries on every market both answered, or two runs, each with its own rule for combining trials."""
    if first == second:
        raise InputError("one and the same cannot be compared", column="second", hint="name two different ones")
    arena, known = choices["arena"], {choice["id"] for choice in choices["choices"]}
    for name in (first, second):
        if name not in known:
            raise HTTPException(404, f"there is nobody called {name[:80]!r} here")

    def make() -> tuple[StudyResult, StudyParts]:
        if arena:
            scored = ScoredArena.of(here.boards.table(arena))
            pair = compare_entries(scored, first, second)
            study = comparison_study(arena_as_table(scored.arena), [pair])
            study = _with_titles(study, ArenaStore(here.store.database, arena))
        else:
            table, names, texts = run_table(here.settings, (first, second))
            by = ("source",) if "source" in table.targets.groups else ()
            pair = compare_pair(table, names[0], names[1], ScoringOptions(by=by))
            study = comparison_study(table, [pair], texts)
        return study, study_parts(study, COMPARISON_ADVICE)

    state = here.boards.state(arena) if arena else here.answered(here.run(first), here.run(second))
    return here.boards.kept(("compare", arena, first, second), state, make)


def _with_titles(study: StudyResult, book: ArenaStore) -> StudyResult:
    """Replace market ids in the comparison's last table by the titles of events and the labels of outcomes."""
    *others, last = study.tables
    labels = event_labels(book, (row.name for row in last.rows))
    rows = [
        replace(row, name=labels.get(row.name, row.name), values=(labels.get(str(target), target), *values))
        for row in last.rows
        for target, *values in [row.values]
    ]
    return replace(study, tables=(*others, replace(last, rows=tuple(rows))))
