"""Runs: the list, one run with progress, failures, cost and questions, and its texts in plain form."""

import asyncio
import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal, cast, get_args

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.data.untrusted import rows_as_csv
from foretell.models.waiting import waiting_text
from foretell.operations import run as operations
from foretell.operations.data import QuestionsResult, look_at_set
from foretell.operations.grid import list_grids
from foretell.operations.requests.data import SET_HELP, ListingFields
from foretell.operations.requests.runs import (
    ReplayRequest,
    RunOrder,
    RunRequest,
    RunsDeleteRequest,
    RunsEditRequest,
    RunsRequest,
    RunsResolveRequest,
    RunsStopRequest,
    ShowRequest,
)
from foretell.operations.runs import (
    delete_runs,
    edit_run,
    failures_by_reason,
    method_names,
    question_set,
    resolve_run,
)
from foretell.operations.runs import stop_run as stop_stored_run
from foretell.questions import trace as kinds
from foretell.questions.codec import parse_yaml
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import TraceEvent
from foretell.report.leaderboard import run_headline
from foretell.report.provenance import Provenance
from foretell.report.run_report import score_figures
from foretell.request import errors_name_fields, setting
from foretell.runs.question_sets import find_set, set_names, sets_here
from foretell.runs.spec import RunState, read_changes
from foretell.runs.store import CellKey, RunRow, RunStore, cells_each
from foretell.scoring.long_tables import QuestionAnswer, RunScores
from foretell.web.forms import body_of, form_fields, form_values
from foretell.web.pages.ask import UNPRICED, StartedRun, start_from_form, start_run
from foretell.web.rendering import html_page, json_and_page, link_to
from foretell.web.run_figures import answer_ruler, ruler_ends, run_ruler, score_rulers
from foretell.web.run_rows import RUNS_PER_PAGE, RunList, RunRowView, run_row_view
from foretell.web.security import FIELD, TokenRequired, form_of, visitor_of
from foretell.web.state import CurrentState, WebState
from foretell.web.streaming import STREAM, After, Brief, event_to_dict, stream

router = APIRouter()
QUESTIONS_PER_PAGE = 25
MAX_REASONS, MAX_EXAMPLES, MAX_ENDINGS = 20, 5, 20
MAX_TEXT = 1_000_000
"""Maximum number of characters shown in the browser at once; longer texts are offered as a file."""
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="Leave out so many from the start.")]
Limit = Annotated[int, Query(ge=1, le=500)]
Text = Annotated[str, Query(max_length=2000)]
ShortWord = Annotated[str, Query(max_length=200)]
_BEGUN_SQL = """
select count(*) from (
    select distinct question, due, trial from event where run = ?
    except select question, due, trial from cell where run = ?
) as open_cells"""
ONLY_COMMAND = ("where", "again", "pilot", "plan", "prompts", "only_failed")
"""Fields of a run's request that its form does not have."""
_TAGS_SQL = "select distinct tags from run"
ORDERS: dict[RunOrder, str] = {
    "date": "newest first",
    "score": "best score first",
    "cost": "highest cost first",
    "name": "name, A to Z",
}
"""Order of the list of runs → how the page names it."""


@dataclass(frozen=True, kw_only=True)
class RunFilters:
    """Which runs to list, as given in the page address."""

    find: ShortWord = ""
    tag: ShortWord = ""
    state: RunState | Literal[""] = ""
    model: Annotated[str, Query(max_length=300)] = ""
    questions: Annotated[str, Query(max_length=1000)] = ""
    archived: bool = False
    sort: RunOrder = "date"

    def request(self) -> RunsRequest:
        """Return the filters as the request that the command uses."""
        chosen = {"tag": self.tag, "state": self.state, "model": self.model, "set": self.questions}
        words = [shlex.quote(f"{key}:{value}") for key, value in chosen.items() if value]
        words += ["archived:any"] if self.archived else []
        return RunsRequest(find=" ".join([self.find, *words]), sort=self.sort)

    def address(self) -> dict[str, str]:
        """Return what differs from the list of all runs, newest first, for links."""
        plain = RunFilters()
        return {
            name: "true" if value is True else str(value)
            for name, value in vars(self).items()
            if value != getattr(plain, name)
        }


@dataclass(frozen=True, kw_only=True)
class AnswerFilters:
    """Which answers of a run to list and in which order, as given in the page address."""

    sort: Literal["asked", "gap", "score", "answer"] = "asked"
    outcome: Literal["", "yes", "no", "open"] = ""
    flag: Literal["", "failed", "degraded"] = ""
    category: ShortWord = ""
    find: ShortWord = ""

    def address(self) -> dict[str, str]:
        """Return what differs from all answers as asked, for links."""
        plain = AnswerFilters()
        return {name: value for name, value in vars(self).items() if value != getattr(plain, name)}

    def chosen(self, answers: Sequence[QuestionAnswer]) -> list[QuestionAnswer]:
        """Return the answers that pass, sorted; those without a value to sort by come last."""
        found = [one for one in answers if self._passes(one)]
        if self.sort == "asked":
            return found
        keys: dict[str, Callable[[QuestionAnswer], float | None]] = {
            "gap": lambda one: one.gap,
            "score": lambda one: None if one.brier is None else -one.brier,
            "answer": lambda one: None if one.leading.p is None else -one.leading.p,
        }
        key = keys[self.sort]
        return sorted(found, key=lambda one: math.inf if (value := key(one)) is None else value)

    def _passes(self, one: QuestionAnswer) -> bool:
        outcome = one.leading.outcome
        wanted = {"": True, "yes": outcome == 1, "no": outcome == 0, "open": not one.decided}[self.outcome]
        flagged = {"": True, "failed": bool(one.failed), "degraded": bool(one.degraded)}[self.flag]
        fitting = self.category in ("", _category(one.question))
        return wanted and flagged and fitting and self.find.casefold() in one.question.text.casefold()


def _category(question: Question) -> str:
    return question.category or question.source


def _all_but(*names: str) -> list[str]:
    """The fields of a run's request except these."""
    return [name for name in RunRequest.model_fields if name not in names]


class RunBody(body_of(RunRequest, *_all_but("extend", "set"))):
    """A run to start: the spec itself, because a name would refer to a file on the server."""

    spec: dict[str, Any] = setting(help="The spec as a mapping: questions, models, search, trials, …")


class PickedSet(ListingFields):
    """A question set by name and the part of it to use: the `questions` of a spec, chosen in a form."""

    dataset: str = setting("", SET_HELP, title="Question set", max_length=300)
    again: float | None = setting(
        None, "Ask what a market lists anew after so many days.", gt=0, title="Ask again after days"
    )

    def spec(self, rest: Any) -> Any:
        """Return the run's spec; `rest` is the spec without its questions, or the whole spec if no set is picked."""
        if not self.dataset:
            if changed := self.wanted().changed():
                raise InputError("a part of which set?", column="dataset", hint=f"{next(iter(changed))} is said")
            return rest
        if rest is not None and not isinstance(rest, dict):
            raise InputError("write NAME: VALUE in each line", column="spec")
        given: dict[str, Any] = dict(cast("dict[str, Any]", rest or {}))
        if "questions" in given:
            raise InputError("questions are picked above and written here", column="spec", hint="leave one of them out")
        # What a market lists is known today only.
        mode = {"mode": "live"} if find_set(self.dataset).kind == "markets" else {}
        return {**mode, **given, "questions": {"dataset": self.dataset, **self.wanted().changed()}}


@router.get("/api/runs", tags=["runs"])
def read_runs(
    here: CurrentState,
    filters: Annotated[RunFilters, Depends()],
    offset: Offset = 0,
    limit: Limit = RUNS_PER_PAGE,
) -> RunList:
    """List the runs on this machine, each with its state and score."""
    return here.run_list(filters.request(), offset=offset, limit=limit)


@router.get("/runs", include_in_schema=False)
def show_runs(
    request: Request, here: CurrentState, filters: Annotated[RunFilters, Depends()], offset: Offset = 0
) -> Response:
    """Show the list of runs, and the form that starts one."""
    return _runs_page(request, here, offset, {}, "", filters=filters)


def _runs_page(  # noqa: PLR0913 - the list and the form below it
    request: Request,
    here: WebState,
    offset: int,
    given: dict[str, Any],
    problem: str,
    looked: QuestionsResult | None = None,
    filters: RunFilters | None = None,
) -> Response:
    filters = filters or RunFilters()
    view, status = here.run_list(filters.request(), offset=offset), 422 if problem else 200
    spent = here.dollars(run.id for run in view.runs)
    running = [run for run in view.runs if run.state == "running"]
    starts = visitor_of(request).may_write
    specs = dict(here.while_unchanged(("specs",), here.store.specs))
    more: dict[str, Any] = {
        "filters": filters,
        "models": sorted({name for spec in specs.values() for name in method_names(spec) if name}),
        "datasets": sorted({name for spec in specs.values() if (name := question_set(spec))}),
        "states": get_args(RunState),
        "orders": ORDERS,
        "seconds_left": {run.id: here.seconds_left(run) for run in running},
        "counted": Counter(run.state for run in view.runs).most_common(),
        "tags": sorted({tag for (tags,) in here.store.database.read(_TAGS_SQL) for tag in json.loads(tags)}),
        "rulers": here.kept(
            ("rulers",), tuple((run.id, str(run.score)) for run in view.runs), lambda: score_rulers(view.runs)
        ),
        "ends": ruler_ends(view.runs),
        "spent": spent,
        "total_spent": sum(spent.values()),
        "same": _same_questions(specs, view.runs),
        "fields": form_fields(RunRequest, leave_out=ONLY_COMMAND) if starts else (),
        "picker": form_fields(PickedSet, proposals={"dataset": sets_here()}) if starts else (),
        "given": given,
        "problem": problem,
        "sets": set_names(),
        "looked": looked,
    }
    return html_page(request, "runs.html", view, status=status, size=RUNS_PER_PAGE, **more)


def _same_questions(specs: Mapping[str, Mapping[str, Any]], runs: Sequence[RunRowView]) -> list[dict[str, Any]]:
    """Group scored runs that asked the same questions, and so can be compared directly."""
    groups: dict[str, list[RunRowView]] = {}
    for run in runs:
        questions = specs.get(run.id, {}).get("questions", {})
        if run.score.get("brier_index") and (digest := str(questions.get("digest", ""))):
            groups.setdefault(digest, []).append(run)
    return [
        {"title": group[0].title, "questions": group[0].questions, "ids": [run.id for run in group]}
        for group in groups.values()
        if len(group) > 1
    ]


@router.get("/api/runs/{run}", tags=["runs"])
def read_run(
    here: CurrentState, run: str, filters: Annotated[AnswerFilters, Depends()], offset: Offset = 0
) -> dict[str, Any]:
    """Progress, scores and cost of a run, what failed and why, and a page of its questions."""
    return _run_view(here, here.run(run), filters, offset)[0]


@router.get("/runs/{run}", include_in_schema=False)
def show_run(
    request: Request,
    here: CurrentState,
    run: str,
    filters: Annotated[AnswerFilters, Depends()],
    offset: Offset = 0,
) -> Response:
    """Show the page of a run, with its charts."""
    return _run_page(request, here, here.run(run), filters, offset)


def _run_page(  # noqa: PLR0913 - the page, and what was typed into its form
    request: Request,
    here: WebState,
    row: RunRow,
    filters: AnswerFilters | None = None,
    offset: int = 0,
    problem: str = "",
    given: Mapping[str, str] | None = None,
    again: bool = False,
) -> Response:
    """Return the page of a run; with `again`, `problem` belongs to the form that runs it again."""
    filters = filters or AnswerFilters()
    view, scores = _run_view(here, row, filters, offset)
    more: dict[str, Any] = {
        "filters": filters,
        "rulers": here.kept(
            ("answer rulers", row.id, filters, offset),
            (view["last"], *here.answered(row)),
            lambda: [answer_ruler(line["leading"]) for line in view["questions"]],
        ),
        "settings": {**_settings_of(row), **(given or {})},
        "problem": problem,
        "again": again,
        # A live question is asked as of now, and so from its text.
        "ask_again": None if question_set(row.spec) or row.spec["mode"] != "live" else _wording(scores.answers),
        "categories": sorted({_category(one.question) for one in scores.answers}),
        "gaps": Counter(math.copysign(1, gap) if gap else 0 for one in scores.answers if (gap := one.gap) is not None),
        "permalink": str(request.base_url).rstrip("/") + link_to("run", row.id),
        "titles": {one.question.id: one.question.text for one in scores.answers if one.failed},
        **here.kept(
            ("figures", row.id),
            (view["finished"], *here.answered(row)),
            lambda: {"score_ruler": run_ruler(view["score"]), **score_figures(scores)},
        ),
    }
    made = Provenance.now(scores.board.settings if scores.board else None)
    return html_page(request, "run.html", view, status=422 if problem else 200, made=made, **more)


def _wording(answers: Sequence[QuestionAnswer]) -> dict[str, str]:
    """Return text and closing day of a question, as the form that asks one takes them from its address."""
    for one in answers:
        closes = one.question.closes_at
        return {"question": one.question.text} | ({} if closes is None else {"closes": closes.date().isoformat()})
    return {}


def _settings_of(row: RunRow) -> dict[str, str]:
    """Return the settings of a run that can be changed, by dotted name, as form values."""
    spec, shown = row.spec, {"forecaster": str(row.spec.get("forecaster", ""))}
    for field in ("models", "options", "sampling", "prices"):
        shown |= {f"{field}.{name}": _setting_text(value) for name, value in (spec.get(field) or {}).items()}
    named = [str(name) for name in (spec.get("models") or {}).values()]
    shown |= {f"prices.{name}": "" for name in named if f"prices.{name}" not in shown}
    shown |= {name: _setting_text(spec.get(name)) for name in ("search", "trials")}
    shown["combine"] = _setting_text(spec.get("aggregate"))
    budget = spec.get("budget") or {}
    return shown | {f"budget.{name}": _setting_text(budget.get(name)) for name in ("run", "question")}


def _setting_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, cast("Sequence[Any]", value)))
    return value if isinstance(value, str) else json.dumps(value)


def _changes(row: RunRow, sent: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the settings that a form changes in the run's spec; an emptied field removes its setting."""
    found: dict[str, Any] = {}
    for name, before in _settings_of(row).items():
        said = sent.get(name, (before,))[0].strip()
        if said == before:
            continue
        several = name == "search"
        parts = [part.strip() for part in said.split(",") if part.strip()]
        found[name] = parts if several else parse_yaml(said) if said else None
    return found


def _run_view(here: WebState, row: RunRow, filters: AnswerFilters, offset: int) -> tuple[dict[str, Any], RunScores]:
    last = here.store.last_event()
    line, totals = run_row_view(here.store, row), here.totals(row.id)
    scores = here.scores(row, finished=line.finished)
    background = here.jobs.of(row.id)
    going = line.state == "running" or (background is not None and background.state == "running")
    chosen = filters.chosen(scores.answers)
    view = {
        "run": line,
        # How good it was: numbers with their intervals, and a sentence.
        "score": scores.summary(),
        "combined": scores.combined,
        "rule": scores.rule,
        "headline": run_headline(scores.against_rate, scores.against_price) if scores.board else "",
        "found": len(chosen),
        "spec": row.spec,
        "services": row.services,
        # Cells that have begun and are not over.
        "under_way": here.store.database.read(_BEGUN_SQL, (row.id, row.id))[0][0] if going else 0,
        "spending": totals.spending,
        # Calls whose price is not known yet, and lost ones that may have been billed.
        "money": here.money(row.id),
        "lost": here.lost_replies(row.id),
        "budget": (row.spec.get("budget") or {}).get("run"),
        "seconds_left": here.seconds_left(line),
        # How often trials ended in which way: submitted, at the step limit, at the budget, …
        "endings": dict(totals.endings.most_common(MAX_ENDINGS)),
        "failures": _failures(here.store, row.id) if row.failed else [],
        "questions": here.kept(
            ("answers", row.id, filters, offset),
            (last, *here.answered(row)),
            lambda: [_question_view(here.store, row, one) for one in chosen[offset : offset + QUESTIONS_PER_PAGE]],
        ),
        "offset": offset,
        "size": QUESTIONS_PER_PAGE,
        "finished": line.finished,
        "background": background,
        "waiting": waiting_text(run=row.id),
        "last": last,
    }
    return view, scores


def _failures(store: RunStore, run: str) -> list[dict[str, Any]]:
    """Return failures by reason, most frequent first, with the id and date of some of their questions."""
    return [
        {
            "reason": reason,
            "count": len(cells),
            "examples": list(dict.fromkeys((cell.question, cell.due) for cell in cells))[:MAX_EXAMPLES],
        }
        for reason, cells in islice(failures_by_reason(store, run).items(), MAX_REASONS)
    ]


def _question_view(store: RunStore, row: RunRow, one: QuestionAnswer) -> dict[str, Any]:
    """Return a question with the forecasts of its trials, the number still missing, its answer and its outcome."""
    question, due = one.question, one.question.due.isoformat()
    cells: list[dict[str, Any]] = []
    for answer in store.answers_to(CellKey(run=row.id, question=question.id, due=due, trial=0)):
        if isinstance(answer, Forecast):
            degraded = answer.problem if answer.degraded else ""
            cells.append({"trial": answer.trial, "p": dict(answer.p), "error": "", "degraded": degraded})
        else:
            cells.append({"trial": answer.trial, "p": None, "error": answer.error, "degraded": ""})
    shown = one.leading
    return {
        "id": question.id,
        "due": due,
        "text": question.text,
        "category": _category(question),
        "outcomes": len(one.targets),
        "leading": {
            "label": "" if len(one.targets) == 1 else shown.label,
            "p": shown.p,
            "trials": shown.trials,
            "price": shown.price,
            "outcome": shown.outcome,
        },
        "brier": one.brier,
        # Brier score of the price less that of the answer: above 0 is better than the market.
        "gap": one.gap,
        "cells": cells,
        "waiting": max(cells_each(row.spec) - len(cells), 0),
    }


class CsvResponse(Response):
    """A CSV table as a response."""

    media_type = "text/csv"


@router.get("/api/runs/{run}/answers.csv", tags=["runs"], response_class=CsvResponse)
def download_answers(here: CurrentState, run: str, filters: Annotated[AnswerFilters, Depends()]) -> Response:
    """The answers on a run's page as CSV: one row per outcome of each question."""
    row = here.run(run)
    scores = here.scores(row, finished=True)
    columns = ("question", "due", "text", "target", "p", "trials", "price", "outcome", "brier", "price_brier")
    rows: list[dict[str, object]] = []
    for one in filters.chosen(scores.answers):
        for target in one.targets:
            said = (target.p, " ".join(f"{p:.4g}" for p in target.trials), target.price, target.outcome)
            named = (one.question.id, one.question.due.isoformat(), one.question.text, target.id)
            rows.append(dict(zip(columns, (*named, *said, target.brier, target.price_brier), strict=True)))
    headers = {"Content-Disposition": f'attachment; filename="{row.id}.csv"'}
    return CsvResponse(rows_as_csv(rows, columns), headers=headers)


# What people say of a run.


@router.post("/runs/{run}/labels", include_in_schema=False)
async def send_labels(request: Request, here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the form that names, tags, archives and annotates a run."""
    sent, row = await form_of(request), here.run(run)
    said = {name: values[0].strip() for name, values in sent.items()}
    tags = [tag.strip() for tag in said.get("tags", "").split(",") if tag.strip()]
    name = said.get("name", "")
    changes = RunsEditRequest.read({
        "run": row.id,
        "name": name if name != row.name else None,
        "tags": tags,
        "untag": [tag for tag in row.tags if tag not in tags],
        "note": said.get("note", ""),
        "archive": bool(said.get("archived")),
    })  # fmt: skip
    await run_in_threadpool(edit_run, changes, here.settings)
    return RedirectResponse(link_to("run", row.id), status_code=303)


@router.post("/runs/{run}/remove", include_in_schema=False)
def send_remove(here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the button that deletes a run."""
    delete_runs(RunsDeleteRequest(runs=(here.run(run).id,), yes=True), here.settings)
    return RedirectResponse(link_to("runs"), status_code=303)


@router.post("/runs/selected/{what}", include_in_schema=False)
async def send_selected(
    request: Request, here: CurrentState, _: TokenRequired, what: Literal["tag", "archive", "delete"]
) -> Response:
    """Handle the bar below the list, which tags, archives or deletes the selected runs."""
    sent = await form_of(request)
    runs = [here.run(run).id for run in sent.get("run", ())]
    tags = [tag.strip() for tag in sent.get("tags", [""])[0].split(",") if tag.strip()] if what == "tag" else []

    def write() -> None:
        if what == "delete":
            delete_runs(RunsDeleteRequest.read({"runs": runs, "yes": True}), here.settings)
            return
        for run in runs:
            archive = True if what == "archive" else None
            edit_run(RunsEditRequest.read({"run": run, "tags": tags, "archive": archive}), here.settings)

    await run_in_threadpool(write)
    return RedirectResponse(link_to("runs"), status_code=303)


@router.post("/runs/{run}/resolve", include_in_schema=False)
async def send_resolve(here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the button that looks up the outcomes of a run's questions."""
    id = here.run(run).id
    await run_in_threadpool(resolve_run, RunsResolveRequest(run=id), here.settings)
    return RedirectResponse(link_to("run", id), status_code=303)


@router.post("/api/runs", tags=["runs"], status_code=202)
def start_run_of_spec(here: CurrentState, _: TokenRequired, request: RunBody) -> StartedRun:
    """Start or resume the run that a spec describes. Spends money."""
    with errors_name_fields(RunRequest):
        return _start(here, request)


def _start(here: WebState, body: RunBody, *, confirmed: bool = True) -> StartedRun:
    chosen = RunRequest.read(body.model_dump())
    prepared = operations.prepare(chosen, here.settings)
    return start_run(here, prepared, confirmed=confirmed)


@router.post("/runs", include_in_schema=False)
async def send_run(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """Start a run from the page: the questions are picked, and the rest of the spec is typed as YAML."""
    sent = await form_of(request)
    sent.pop(FIELD, None)
    confirmed, look = bool(sent.pop(UNPRICED, None)), bool(sent.pop("look", None))
    picked = form_values(PickedSet, {name: sent[name] for name in PickedSet.model_fields if name in sent})
    rest = {name: sent[name] for name in sent if name not in PickedSet.model_fields}
    given = {"spec": "", **form_values(RunRequest, rest)}

    def start() -> StartedRun:
        spec = PickedSet.read(picked).spec(parse_yaml(given["spec"]))
        return _start(here, RunBody.read({**given, "spec": spec}), confirmed=confirmed)

    def show_again(problem: str) -> Response:
        return _runs_page(request, here, 0, given | picked, problem)

    if not look:
        return await start_from_form(RunRequest, start, show_again, watch="run")
    try:
        with errors_name_fields(PickedSet, titles=True):
            chosen = PickedSet.read(picked)
            if not chosen.dataset:
                raise InputError("is missing", column="dataset")
            # Reading a set may take files and other machines: nobody else waits for it.
            looking = look_at_set(chosen.dataset, chosen.wanted(), here.settings)
            looked = await run_in_threadpool(asyncio.run, looking)
    except InputError as error:
        return await run_in_threadpool(show_again, str(error))
    return await run_in_threadpool(_runs_page, request, here, 0, given | picked, "", looked)


@router.get("/api/runs/{run}/show", tags=["runs"])
def read_answers(
    here: CurrentState, run: str, question: str | None = None, limit: Annotated[int | None, Query(ge=1)] = None
) -> dict[str, Any]:
    """The answers of a run, or every step to one answer; the same as `foretell show --json` prints."""
    request = ShowRequest.read({"run": here.run(run).id, "question": question, "limit": limit})
    return operations.show(request, here.settings).to_dict()


@router.post("/api/runs/{run}/replay", tags=["runs"])
def replay_run(here: CurrentState, _: TokenRequired, run: str) -> dict[str, Any]:
    """Recompute a run from the journal alone and compare the answers."""
    request = ReplayRequest.read({"run": here.run(run).id})
    return operations.replay(request, here.settings).to_dict()


@router.get("/api/runs/{run}/stream", tags=["live"], response_class=Response, responses=STREAM)
def stream_run(request: Request, here: CurrentState, run: str, after: After = 0, brief: Brief = False) -> Response:
    """Stream all events of a run as they happen; `Last-Event-ID` continues after a lost connection."""
    return stream(request, here, here.run(run).id, after=after, brief=brief)


class StopBody(body_of(RunsStopRequest, "run")):
    """How to stop a run."""


@router.post("/api/runs/{run}/stop", tags=["runs"], status_code=202)
def stop_run(here: CurrentState, _: TokenRequired, run: str, body: StopBody | None = None) -> dict[str, str]:
    """Stop a run early: trials in progress answer with their current estimates. With `discard` they stay unfinished.

    Existing answers are kept either way, nothing is paid for twice, and the run can be resumed.
    """
    id, said = here.run(run).id, body.model_dump() if body else {}
    if said.get("discard") and here.jobs.stop(id):
        return {"run": id, "state": "stopped"}
    try:
        stop_stored_run(RunsStopRequest.read({"run": id, **said}), here.settings)
    except InputError as error:
        raise HTTPException(409, str(error)) from None
    return {"run": id, "state": "stopping"}


class ResumeBody(body_of(RunRequest, *_all_but("only_failed", "set"))):
    """How to continue a run: changes to its settings, or what to retry."""


@router.post("/api/runs/{run}/resume", tags=["runs"], status_code=202)
def resume_run(here: CurrentState, _: TokenRequired, run: str, body: ResumeBody | None = None) -> dict[str, str]:
    """Resume a run: cells without a forecast are answered, and nothing is paid for twice. Spends money.

    With `set`, its spec is changed first: it becomes the run of the new spec on the same questions, and the new id is
    returned.
    """
    request = RunRequest.read({"spec": here.run(run).id, **(body.model_dump() if body else {})})
    return _go_on(here, str(request.spec), read_changes(request.set), request.only_failed or "")


def _go_on(here: WebState, run: str, changes: Mapping[str, Any], reason: str = "") -> dict[str, str]:
    prepared = operations.resume(here.store, run, here.settings, changes, reason)
    here.jobs.refuse_running(run)
    operations.replace_run(here.store, run, prepared, here.settings)
    here.jobs.start(prepared)
    return {"run": prepared.spec.id, "state": "running"}


class AgainBody(body_of(RunRequest, *_all_but("set"))):
    """How to run a run again: changes to its settings."""


@router.post("/api/runs/{run}/again", tags=["runs"], status_code=202)
def run_again(here: CurrentState, _: TokenRequired, run: str, body: AgainBody | None = None) -> StartedRun:
    """Start a new run with the settings of this one and the next free seed, so that models are asked anew.

    Spends money. A backtest asks the same questions; a live run asks what its question set lists now.
    """
    id, changes = here.run(run).id, read_changes(body.model_dump()["set"] if body else {})
    prepared = operations.prepare_again(here.store, id, here.settings, changes)
    begun = start_run(here, prepared)
    operations.carry_over(here.store, id, prepared)
    return begun


@router.post("/runs/{run}/again", include_in_schema=False)
async def send_again(request: Request, here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the button that runs a run again."""
    row = here.run(run)
    return await start_from_form(
        RunRequest,
        lambda: run_again(here, None, row.id),
        lambda problem: _run_page(request, here, row, problem=problem, again=True),
        watch="run",
    )


@router.post("/runs/{run}/stop", include_in_schema=False)
async def send_stop(request: Request, here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the buttons that stop or pause a run, on its page and on the pages of its questions."""
    sent = {name: values[0] for name, values in (await form_of(request)).items()}
    id, body = here.run(run).id, StopBody.read({"discard": bool(sent.get("discard"))})
    with suppress(HTTPException):  # It has just ended by itself: its page shows that.
        await run_in_threadpool(stop_run, here, None, id, body)
    if sent.get("question"):
        return RedirectResponse(link_to("question", id, sent["question"], due=sent.get("due", "")), status_code=303)
    return RedirectResponse(link_to("run", id), status_code=303)


@router.post("/runs/{run}/resume", include_in_schema=False)
async def send_resume(request: Request, here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the buttons that resume a run or retry what failed for one reason, and the form that changes it first."""
    sent, row = await form_of(request), here.run(run)
    reason = sent.get("only_failed", [""])[0]
    try:
        going = await run_in_threadpool(lambda: _go_on(here, row.id, _changes(row, sent), reason))
    except InputError as error:
        given = {name: values[0] for name, values in sent.items() if name != FIELD}
        return await run_in_threadpool(partial(_run_page, request, here, row, problem=str(error), given=given))
    return RedirectResponse(link_to("run", going["run"]), status_code=303)


# Texts as they are, whole and plain, for what is too long for a page.


@router.get("/api/runs/{run}/events", tags=["live"])
def read_trace_events(
    here: CurrentState, run: str, after: After = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[dict[str, Any]]:
    """Events of a run after a given number, without waiting for more."""
    events = here.store.events(here.run(run).id, after=after)
    return [event_to_dict(number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runs/{run}/raw/event", include_in_schema=False)
def raw_event(here: CurrentState, run: str, id: After) -> Response:
    """Return the plain text of one event."""
    for number, _, event in islice(here.store.events(here.run(run).id, after=id - 1), 1):
        if number == id:
            return _plain(_event_text(event))
    raise HTTPException(404, f"run {run[:80]} has no event {id}: a cell that is begun anew loses its events")


def _event_text(event: TraceEvent) -> str:
    match event:
        case kinds.ToolUsed():
            return event.result
        case kinds.BeliefRevised():
            return event.reason
        case kinds.LeakBlocked():
            return "\n".join(filter(None, (event.layer, event.reason, event.title, event.url, event.published)))
        case kinds.Failed():
            return event.error
        case _:
            return "\n".join(f"{name}: {value}" for name, value in vars(event).items())


@router.get("/runs/{run}/raw/rationale", include_in_schema=False)
def raw_rationale(
    here: CurrentState, run: str, question: Text, due: Text, trial: Annotated[int, Query(ge=0, le=10_000)]
) -> Response:
    """Return the rationale of one trial, or its error."""
    key = CellKey(run=here.run(run).id, question=question, due=due, trial=trial)
    answer = next((answer for answer in here.store.answers_to(key) if answer.trial == trial), None)
    if answer is None:
        raise HTTPException(404, "that trial has not answered")
    return _plain(answer.rationale if isinstance(answer, Forecast) else answer.error)


@router.get("/runs/{run}/raw/question", include_in_schema=False)
def raw_question(here: CurrentState, run: str, question: Text, due: Text) -> Response:
    """Return the full text of a question, with criteria and background."""
    found = here.store.question(CellKey(run=here.run(run).id, question=question, due=due, trial=0))
    if found is None:
        raise HTTPException(404, "the run does not ask that")
    return _plain("\n\n".join(filter(None, (found.text, found.criteria, found.background))))


def _plain(text: str) -> Response:
    # Not even a browser that guesses may take it for a page.
    shown = "inline" if len(text) <= MAX_TEXT else 'attachment; filename="whole.txt"'
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": shown}
    return PlainTextResponse(text, headers=headers)


# Experiments: every combination of settings with its state, score and cost.


@json_and_page(router, "/api/grids", "/grids", "grids.html", tags=["runs"])
def read_grids(here: CurrentState) -> dict[str, Any]:
    """List the experiments on this machine, each with its runs."""
    return list_grids(here.settings).to_dict()


@json_and_page(router, "/api/grids/{name:path}", "/grids/{name:path}", "grids.html", tags=["runs"])
def read_one_grid(here: CurrentState, name: Annotated[str, PathParameter(max_length=200)]) -> dict[str, Any]:
    """One experiment with its runs."""
    try:
        return list_grids(here.settings, name).to_dict()
    except InputError as error:
        raise HTTPException(404, str(error)) from None
