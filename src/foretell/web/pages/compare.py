"""Comparisons: two runs or entries of an arena in detail, several runs on one board, and tables of one's own."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from foretell.arena.listing import arena_rows, event_labels
from foretell.arena.store import ArenaStore
from foretell.frozen import frozen
from foretell.number_text import plural
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.runs import question_set, read_query, run_title
from foretell.operations.score import ScoreResult, score
from foretell.questions.errors import InputError
from foretell.report.comparison import COMPARISON_ADVICE, comparison_study
from foretell.report.document import study_parts
from foretell.report.leaderboard import LEADERBOARD_ADVICE, board_study
from foretell.report.markup import Markup
from foretell.report.study_result import StudyResult
from foretell.runs.store import RunRow
from foretell.scoring.arena_leaderboard import ScoredArena, compare_entries
from foretell.scoring.arena_table import arena_as_table
from foretell.scoring.join import read_table
from foretell.scoring.run_scores import run_rows
from foretell.scoring.score import PairComparison, ScoringOptions, compare_pair
from foretell.scoring.scoreboard import Scoreboard
from foretell.web.pages.arena import known_arena
from foretell.web.rendering import html_page
from foretell.web.security import TokenRequired, files_of, form_of, visitor_of
from foretell.web.state import CurrentState, WebState

router = APIRouter()
MAX_RUNS, MOST_TICKS = 50, 30
Runs = Annotated[tuple[str, ...], Query(max_length=MAX_RUNS, description="Runs by name or id; may be repeated.")]
Entries = Annotated[tuple[str, ...], Query(max_length=2, description="Two entries of the arena.")]
Name = Annotated[str, Query(max_length=300)]
StudyParts = Sequence[tuple[str, str, Markup]]
"""Anchor, title and markup of each section of a study."""


@frozen
class Compared:
    """What is compared: runs and tables, or two entries of an arena."""

    runs: tuple[str, ...] = ()
    tables: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Contents of the visitor's own tables, by name."""
    outcomes: bytes = b""
    pasted: Mapping[str, str] = field(default_factory=dict[str, str])
    """The tables that were typed or pasted, to show them again."""
    arena: str = ""
    entries: tuple[str, ...] = ()
    find: str = ""
    """Part of the titles of the runs that are offered."""
    only_find: bool = False

    def command(self) -> str:
        """Return the command that gives the same result."""
        outcomes = ["-o", "outcomes.csv"] if self.outcomes else []
        return shlex.join(["foretell", "score", *self.runs, *self.tables, *outcomes])


@router.get("/api/compare", tags=["compare"])
def read_comparison(here: CurrentState, run: Runs = (), arena: Name = "", entry: Entries = ()) -> dict[str, Any]:
    """Compare two runs or entries of an arena, as `foretell compare --json` does: which is better beyond noise.

    Three runs and more are compared on one board.
    """
    compared = Compared(runs=run, arena=arena, entries=entry)
    if len(run) < 2 and len(entry) < 2:
        raise InputError("name two runs or more, or an arena and two entries", column="run")
    _, _, result = _comparison(here, compared, _choices(here, arena))
    return result.to_dict()


@router.get("/compare", include_in_schema=False)
def show_comparison(  # noqa: PLR0913 - the parameters of the address
    request: Request,
    here: CurrentState,
    run: Runs = (),
    arena: Name = "",
    entry: Entries = (),
    find: Name = "",
    look: Name = "",
) -> Response:
    """Show the form and, below it, the comparison; `find` searches the runs to choose from, with `look` only that."""
    return _page(request, here, Compared(runs=run, arena=arena, entries=entry, find=find, only_find=bool(look)))


@router.post("/compare", include_in_schema=False)
async def send_comparison(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """Show the board of runs together with the visitor's own tables, which are not stored."""
    sent, files = await form_of(request), await files_of(request)
    named = zip(sent.get("name", ()), sent.get("table", ()), strict=False)
    pasted = {(name or f"table {place}")[:80]: text for place, (name, text) in enumerate(named, 1) if text.strip()}
    tables = {name[:80]: content for name, content in files} | {name: text.encode() for name, text in pasted.items()}
    runs, outcomes = tuple(sent.get("run", ())[:MAX_RUNS]), sent.get("outcomes", [""])[0].strip()
    compared = Compared(runs=runs, tables=tables, outcomes=outcomes.encode(), pasted=pasted)
    return await run_in_threadpool(_page, request, here, compared)


def _choices(here: WebState, arena: str = "") -> list[dict[str, str]]:
    """Return what can be compared: runs that have forecasts or the entries of an arena."""
    if arena:
        return [{"id": name, "name": name} for name in here.boards.table(known_arena(here, arena)).names]
    return [{"id": row.id, "name": name} for row, name in _titled_runs(here)]


def _titled_runs(here: WebState) -> list[tuple[RunRow, str]]:
    """Return the runs that have forecasts, newest first, with their titles."""

    def look() -> list[tuple[RunRow, str]]:
        questions = here.store.question_counts()
        rows = [row for row in here.store.runs() if row.done]
        return [(row, run_title(here.store, row, questions.get(row.id, 0))) for row in rows]

    return here.while_unchanged(("titled runs",), look)


def _offered(here: WebState, picked: Sequence[str], find: str) -> tuple[list[dict[str, str]], int]:
    """Return the runs to tick, the picked ones first, and how many match the search; not all of thousands."""
    query = read_query(find)
    found = [(row, name) for row, name in _titled_runs(here) if query.fits(row) or find.casefold() in name.casefold()]
    chosen = [(row, name) for row, name in _titled_runs(here) if row.id in picked]
    rest = [(row, name) for row, name in found if row.id not in picked][:MOST_TICKS]
    return [{"id": row.id, "name": name, "created": row.created} for row, name in chosen + rest], len(found)


def _page(request: Request, here: WebState, compared: Compared) -> Response:
    runs = tuple(dict.fromkeys(here.run(run).id for run in compared.runs))
    compared = replace(compared, runs=runs)
    choices = _choices(here, compared.arena)
    study, parts, board, reason, problems = None, [], None, "", list[str]()
    if not compared.only_find and (compared.tables or len(runs) > 1 or len(compared.entries) > 1):
        try:
            study, parts, board = _comparison(here, compared, choices)
        except InputError as error:
            problems = error.lines()
            reason = f"{error.path} has {len(problems)} problems." if problems else str(error)
    elif request.method == "POST":
        reason = "Tick two runs or more, or add a table: one run alone cannot be compared."
    nothing_shared = study is not None and not study.tables and len(runs) == 2
    start = study is None and not compared.arena
    names = {choice["id"]: choice["name"] for choice in choices}
    called = {run.id: run.name for run in here.store.runs() if run.id in runs}
    more: dict[str, Any] = {
        "reason": reason,
        "problems": problems,
        "notes": board.notes if isinstance(board, Scoreboard) else (),
        "compared": compared,
        "command": replace(compared, runs=tuple(called.get(run) or run for run in runs)).command(),
        "choices": choices,
        "offered_runs": [] if compared.arena else _offered(here, runs, compared.find),
        "parts": parts,
        "offered": _comparable(here, names, runs) if nothing_shared else {},
        "sets": _same_sets(here, names) if start else [],
        "arenas": [row.name for row in arena_rows(here.store.database) if row.settled] if start else [],
        "filling": visitor_of(request).may_write and not compared.arena,
    }
    status = 422 if reason and compared.tables else 200
    return html_page(request, "compare.html", study, status=status, made=study.made() if study else None, **more)


def _same_sets(here: WebState, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the question sets that several runs answered, each with these runs."""
    groups = dict[str, dict[str, Any]]()
    for run, spec in here.store.specs():
        digest = str(spec.get("questions", {}).get("digest", ""))
        if digest and run in names:
            group = groups.setdefault(digest, {"title": question_set(spec), "runs": {}})
            group["runs"][run] = names[run]
    return [group for group in groups.values() if len(group["runs"]) > 1]


def _comparable(
    here: WebState, names: Mapping[str, str], runs: Iterable[str]
) -> dict[tuple[str, str], list[tuple[str, str, int]]]:
    """By id and name of a run, the id and name of others with resolved questions in common, and how many these are."""
    return {
        (run, names[run]): [
            (other, names[other], shared) for other, shared in here.outcomes.shared(run).items() if other in names
        ][:MOST_OFFERED]
        for run in runs
        if run in names
    }


MOST_OFFERED = 5


def _comparison(
    here: WebState, compared: Compared, choices: Sequence[Mapping[str, str]]
) -> tuple[StudyResult, StudyParts, Scoreboard | PairComparison]:
    """Compare two entries or two runs in detail, or tables and more runs than two on a board."""
    if compared.tables:
        board = _board_with(here, compared)
        return *_drawn(board, compared), board
    if compared.arena:
        return _pair_of_entries(here, compared, {choice["id"] for choice in choices})
    ids = tuple(dict.fromkeys(here.run(run).id for run in compared.runs))
    if len(ids) < 2:
        raise InputError("a run cannot be compared with itself", column="run", hint="name two different runs")
    if len(ids) == 2:
        return _pair_of_runs(here, *ids)
    return _board(here, ids)


def _board_with(here: WebState, compared: Compared) -> Scoreboard:
    """Score tables as the command scores files, so that results are the same; errors name the table."""
    with TemporaryDirectory(prefix="foretell-") as folder:

        def file(place: int, content: bytes) -> Path:
            content = content.removeprefix(b"\xef\xbb\xbf")
            endings = {b"{": "jsonl", b"[": "json"}
            ending = "parquet" if content.startswith(b"PAR1") else endings.get(content.lstrip()[:1], "csv")
            path = Path(folder) / f"{place}.{ending}"
            path.write_bytes(content)
            return path

        tables = {name: file(place, content) for place, (name, content) in enumerate(compared.tables.items())}
        outcomes = file(len(tables), compared.outcomes) if compared.outcomes else None
        names = {str(path): name for name, path in tables.items()} | ({str(outcomes): "outcomes"} if outcomes else {})
        try:
            result = score(ScoreRequest(sources=compared.runs, forecasts=tables, outcomes=outcomes), here.settings)
        except InputError as error:
            for path, name in names.items():
                error.path = name if str(error.path) == path else error.path
                error.problem = error.problem.replace(path, name)
            raise
    if not isinstance(result, ScoreResult):
        raise InputError("tables of numbers are scored by the command", hint="foretell score -f FILE -o FILE")
    return result.board


def _drawn(board: Scoreboard, compared: Compared) -> tuple[StudyResult, StudyParts]:
    counts = (len(compared.runs), "run"), (len(compared.tables), "table")
    title = " and ".join(plural(number, noun) for number, noun in counts if number)
    study = board_study(board, f"{title} on one board")
    return replace(study, settings=board.settings), study_parts(study, LEADERBOARD_ADVICE)


def _board(here: WebState, ids: tuple[str, ...]) -> tuple[StudyResult, StudyParts, Scoreboard]:
    rows = [here.run(id) for id in ids]

    def make() -> tuple[StudyResult, StudyParts, Scoreboard]:
        # Use the operation of `foretell score`, so that the results are equal.
        result = score(ScoreRequest(sources=ids), here.settings)
        assert isinstance(result, ScoreResult)
        study, parts = _drawn(result.board, Compared(runs=ids))
        shared = here.outcomes.shared(ids[0])
        called = [run_title(here.store, row, here.store.question_count(row.id)) for row in rows]
        if apart := [name for name, row in zip(called[1:], rows[1:], strict=True) if row.id not in shared]:
            text = f"{called[0]} has no resolved question in common with {', '.join(apart)}"
            study = replace(study, sentences=(f"{text}, so the scores below do not show which is better.",))
        return study, parts, result.board

    return here.boards.cached(("board", *ids), here.answered(*rows), make)


def _pair_of_runs(here: WebState, first: str, second: str) -> tuple[StudyResult, StudyParts, PairComparison]:
    """Compare two runs, each with its own rule for combining trials."""

    def make() -> tuple[StudyResult, StudyParts, PairComparison]:
        rows = run_rows(here.settings, (first, second))
        table = read_table(rows.forecasts, rows.outcomes)
        by = ("source",) if "source" in table.targets.groups else ()
        first_name, second_name = rows.names
        pair = compare_pair(table, first_name, second_name, ScoringOptions(by=by))
        study = comparison_study(table, [pair], rows.texts)
        pair = replace(pair, notes=(*table.notes, *pair.notes))
        return study, study_parts(study, COMPARISON_ADVICE), pair

    return here.boards.cached(("compare", first, second), here.answered(here.run(first), here.run(second)), make)


def _pair_of_entries(
    here: WebState, compared: Compared, names: set[str]
) -> tuple[StudyResult, StudyParts, PairComparison]:
    """Compare two entries of an arena on every market that both answered."""
    arena, (first, second) = compared.arena, compared.entries
    if first == second:
        raise InputError("an entry cannot be compared with itself", column="entry", hint="name two different entries")
    for name in (first, second):
        if name not in names:
            raise HTTPException(404, f"there is no entry {name[:80]!r}")

    def make() -> tuple[StudyResult, StudyParts, PairComparison]:
        scored = ScoredArena.of(here.boards.table(arena))
        pair = compare_entries(scored, first, second)
        study = comparison_study(arena_as_table(scored.arena), [pair])
        study = _with_titles(study, ArenaStore(here.store.database, arena))
        return study, study_parts(study, COMPARISON_ADVICE), pair

    return here.boards.cached(("compare", arena, first, second), here.boards.state(arena), make)


def _with_titles(study: StudyResult, store: ArenaStore) -> StudyResult:
    """Replace market ids in the comparison's last table by the titles of events and the labels of outcomes."""
    *others, last = study.tables
    labels = event_labels(store, (row.name for row in last.rows))
    rows = [
        replace(row, name=labels.get(row.name, row.name), values=(labels.get(str(target), target), *values))
        for row in last.rows
        for target, *values in [row.values]
    ]
    return replace(study, tables=(*others, replace(last, rows=tuple(rows))))
