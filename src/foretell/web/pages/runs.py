"""Runs: the list, one of them with progress, failures, cost and questions, and its texts as they are."""

import asyncio
import json
from itertools import islice
from typing import Annotated, Any, cast

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.operations import run as operations
from foretell.operations.questions import QuestionsResult, check_questions
from foretell.operations.requests import (
    SET_HELP,
    ListingFields,
    QuestionsRequest,
    ReplayRequest,
    RunRequest,
    ShowRequest,
)
from foretell.questions import trace as kinds
from foretell.questions.codec import from_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import TraceEvent
from foretell.request import setting
from foretell.runs.question_sets import find_set, set_names, sets_here
from foretell.runs.spec import yaml_mapping
from foretell.runs.store import CellKey, RunRow, RunStore, cells_each
from foretell.web.forms import body_of, form_fields, form_values
from foretell.web.pages.ask import UNPRICED, StartedRun, start_from_form, start_run
from foretell.web.rendering import html_page, json_and_page, link_to
from foretell.web.run_rows import RUNS_PER_PAGE, RunList, list_runs, run_row_view
from foretell.web.security import FIELD, TokenRequired, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.streaming import STREAM, After, Brief, event_to_dict, stream

router = APIRouter()
QUESTIONS_PER_PAGE = 100
MAX_REASONS, MAX_EXAMPLES, MAX_ENDINGS = 20, 5, 20
MAX_TEXT = 1_000_000
"""Characters that a browser still lays out at once; what is longer is offered as a file."""
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="Leave out so many from the start.")]
Limit = Annotated[int, Query(ge=1, le=500)]
Text = Annotated[str, Query(max_length=2000)]
_BEGUN_SQL = """
select count(*) from (
    select distinct question, due, trial from event where run = ?
    except select question, due, trial from cell where run = ?
) as open_cells"""
_FAILED_SQL = (
    "select question, due, failure from cell where run = ? and failure is not null order by question, due, trial"
)
_PAGE_SQL = "select body from question where run = ? order by id, due limit ? offset ?"
_CELLS_SQL = """
select question, due, trial, forecast, failure from cell
where run = ? and question >= ? and question <= ? order by question, due, trial"""


class RunBody(body_of(RunRequest, "out", "where", "spec")):
    """A run as it is sent to the server: the spec itself, because a name would be that of a file on the server."""

    spec: dict[str, Any] = setting(help="The spec as a mapping: questions, models, search, trials, …")


class PickedSet(ListingFields):
    """A question set by name and the part of it that is wanted: the `questions` of a spec, chosen in a form."""

    dataset: str = setting("", SET_HELP, title="Question set", max_length=300)
    again: float | None = setting(
        None, "Ask what a market lists anew after so many days.", gt=0, title="Ask again after days"
    )

    def spec(self, rest: Any) -> Any:
        """The spec of a run of this set; `rest` is the spec without its questions, or whole where no set is picked."""
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
def read_runs(here: CurrentState, offset: Offset = 0, limit: Limit = RUNS_PER_PAGE) -> RunList:
    """All runs of this machine, the newest first."""
    return list_runs(here.store, offset=offset, limit=limit)


@router.get("/runs", include_in_schema=False)
def show_runs(request: Request, here: CurrentState, offset: Offset = 0) -> Response:
    """The list, and the form that starts a run."""
    return _runs_page(request, here, offset, {}, "")


def _runs_page(
    request: Request,
    here: WebState,
    offset: int,
    given: dict[str, Any],
    problem: str,
    looked: QuestionsResult | None = None,
) -> Response:
    more: dict[str, Any] = {
        "fields": form_fields(RunRequest, leave_out=("where",)),
        "picker": form_fields(PickedSet, proposals={"dataset": sets_here()}),
        "given": given,
        "problem": problem,
        "sets": set_names(),
        "looked": looked,
    }
    view, status = list_runs(here.store, offset=offset), 422 if problem else 200
    return html_page(request, "runs.html", view, status=status, size=RUNS_PER_PAGE, **more)


@json_and_page(router, "/api/runs/{run}", "/runs/{run}", "run.html", tags=["runs"])
def read_run(here: CurrentState, run: str, offset: Offset = 0) -> dict[str, Any]:
    """How far a run is, what it costs, what failed and why, and a page of its questions."""
    row, last = here.run(run), here.store.last_event()
    line, totals = run_row_view(here.store, row), here.totals(row.id)
    return {
        "run": line,
        "spec": row.spec,
        "services": row.services,
        # Cells that have begun and are not over.
        "under_way": 0 if line.finished else here.store.database.read(_BEGUN_SQL, (row.id, row.id))[0][0],
        "spending": totals.spending,
        # Calls whose price is not known yet, and lost ones that may have been billed.
        "unsettled": here.unsettled(row.id),
        "budget": (row.spec.get("budget") or {}).get("run"),
        "seconds_left": here.seconds_left(line),
        # How often trials ended in which way: submitted, at the step limit, at the budget, …
        "endings": dict(totals.endings.most_common(MAX_ENDINGS)),
        "failures": _failures(here.store, row.id) if row.failed else [],
        "questions": _questions(here.store, row, offset),
        "offset": offset,
        "size": QUESTIONS_PER_PAGE,
        "finished": line.finished,
        "background": here.jobs.of(row.id),
        "last": last,
    }


def _failures(store: RunStore, run: str) -> list[dict[str, Any]]:
    """By reason, the most frequent first, with id and date of asking of some questions."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for question, due, failure in store.database.read(_FAILED_SQL, (run,)):
        groups.setdefault(str(json.loads(failure).get("error", "")), []).append((question, due))
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))[:MAX_REASONS]
    return [
        {"reason": reason, "count": len(cells), "examples": list(dict.fromkeys(cells))[:MAX_EXAMPLES]}
        for reason, cells in ordered
    ]


def _questions(store: RunStore, row: RunRow, offset: int) -> list[dict[str, Any]]:
    """A page of questions with what their trials said so far, and how many have not."""
    rows = store.database.read(_PAGE_SQL, (row.id, QUESTIONS_PER_PAGE, offset))
    questions = [from_json(body, Question) for (body,) in rows]
    if not questions:
        return []
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    span = (row.id, questions[0].id, questions[-1].id)
    for id, due, trial, forecast, failure in store.database.read(_CELLS_SQL, span):
        answer = json.loads(forecast or failure or "{}")
        p = answer.get("p", {}) if forecast is not None else None
        error = "" if forecast is not None else str(answer.get("error", ""))
        degraded = str(answer.get("problem", "")) if answer.get("ending") == "degraded" else ""
        cells.setdefault((id, due), []).append({"trial": trial, "p": p, "error": error, "degraded": degraded})
    views: list[dict[str, Any]] = []
    for question in questions:
        due = question.due.isoformat()
        ended = cells.get((question.id, due), [])
        waiting = max(cells_each(row.spec) - len(ended), 0)
        views.append({"id": question.id, "due": due, "text": question.text, "cells": ended, "waiting": waiting})
    return views


@router.post("/api/runs", tags=["runs"], status_code=202)
def start_run_of_spec(here: CurrentState, _: TokenRequired, request: RunBody) -> StartedRun:
    """Start the run that a spec describes, or go on with it. Spends money."""
    return _start(here, request)


def _start(here: WebState, body: RunBody, *, confirmed: bool = True) -> StartedRun:
    chosen = RunRequest.read(body.model_dump())
    prepared = operations.prepare(chosen, here.settings)
    return start_run(here, prepared, concurrency=chosen.concurrency, confirmed=confirmed)


@router.post("/runs", include_in_schema=False)
async def send_run(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """The same, from the page: the questions are picked, and the rest of the spec is typed as YAML."""
    sent = await form_of(request)
    sent.pop(FIELD, None)
    confirmed, look = bool(sent.pop(UNPRICED, None)), bool(sent.pop("look", None))
    picked = form_values(PickedSet, {name: sent[name] for name in PickedSet.model_fields if name in sent})
    rest = {name: sent[name] for name in sent if name not in PickedSet.model_fields}
    given = {"spec": "", **form_values(RunRequest, rest)}

    def start() -> StartedRun:
        spec = PickedSet.read(picked).spec(yaml_mapping(given["spec"]))
        return _start(here, RunBody.read({**given, "spec": spec}), confirmed=confirmed)

    def show_again(problem: str) -> Response:
        return _runs_page(request, here, 0, given | picked, problem)

    if not look:
        return await start_from_form(start, show_again, watch="run")
    try:
        wanted = {name: value for name, value in picked.items() if name in QuestionsRequest.model_fields}
        # Reading a set may take files and other machines: nobody else waits for it.
        looking = check_questions(QuestionsRequest.read(wanted), here.settings)
        looked = await run_in_threadpool(asyncio.run, looking)
    except InputError as error:
        return await run_in_threadpool(show_again, str(error))
    return await run_in_threadpool(_runs_page, request, here, 0, given | picked, "", looked)


@router.get("/api/runs/{run}/show", tags=["runs"])
def read_answers(
    here: CurrentState, run: str, question: str | None = None, limit: Annotated[int | None, Query(ge=1)] = None
) -> dict[str, Any]:
    """The answers of a run, or every step to one answer: the same as `foretell show --json` prints."""
    request = ShowRequest.read({"run": here.run(run).id, "question": question, "limit": limit})
    return operations.show(request, here.settings).to_dict()


@router.post("/api/runs/{run}/replay", tags=["runs"])
def replay_run(here: CurrentState, _: TokenRequired, run: str) -> dict[str, Any]:
    """Compute a run again from the journal alone and compare the answers."""
    request = ReplayRequest.read({"run": here.run(run).id})
    return operations.replay(request, here.settings).to_dict()


@router.get("/api/runs/{run}/stream", tags=["live"], response_class=Response, responses=STREAM)
def stream_run(request: Request, here: CurrentState, run: str, after: After = 0, brief: Brief = False) -> Response:
    """Everything that happens in a run, as it happens; `Last-Event-ID` goes on where a lost line ended."""
    return stream(request, here, here.run(run).id, after=after, brief=brief)


@router.post("/api/runs/{run}/stop", tags=["runs"], status_code=202)
def stop_run(here: CurrentState, _: TokenRequired, run: str) -> dict[str, str]:
    """End a run that this server started. What it paid for is kept; started again it goes on."""
    id = here.run(run).id
    if not here.jobs.stop(id):
        raise HTTPException(409, f"run {id} does not go on in this server")
    return {"run": id, "state": "stopped"}


@router.post("/api/runs/{run}/resume", tags=["runs"], status_code=202)
def resume_run(here: CurrentState, _: TokenRequired, run: str) -> dict[str, str]:
    """Go on with a run: cells without a forecast are answered, nothing is paid twice. Spends money."""
    id = here.run(run).id
    here.jobs.start(operations.resume(here.store, id, here.settings))
    return {"run": id, "state": "running"}


@router.post("/runs/{run}/stop", include_in_schema=False)
def send_stop(here: CurrentState, _: TokenRequired, run: str) -> Response:
    """The button that ends it."""
    return RedirectResponse(link_to("run", stop_run(here, None, run)["run"]), status_code=303)


@router.post("/runs/{run}/resume", include_in_schema=False)
def send_resume(here: CurrentState, _: TokenRequired, run: str) -> Response:
    """The button that goes on."""
    return RedirectResponse(link_to("run", resume_run(here, None, run)["run"]), status_code=303)


# Texts as they are, whole and plain, for what is too long for a page.


@router.get("/api/runs/{run}/events", tags=["live"])
def read_trace_events(
    here: CurrentState, run: str, after: After = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[dict[str, Any]]:
    """Events of a run after a number, without waiting for more."""
    events = here.store.events(here.run(run).id, after=after)
    return [event_to_dict(number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runs/{run}/raw/event", include_in_schema=False)
def raw_event(here: CurrentState, run: str, id: After) -> Response:
    """What one event says."""
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
    """The reasons of one trial."""
    key = CellKey(run=here.run(run).id, question=question, due=due, trial=trial)
    answer = next((answer for answer in here.store.answers_to(key) if answer.trial == trial), None)
    if answer is None:
        raise HTTPException(404, "that trial has not answered")
    return _plain(answer.rationale if isinstance(answer, Forecast) else answer.error)


@router.get("/runs/{run}/raw/question", include_in_schema=False)
def raw_question(here: CurrentState, run: str, question: Text, due: Text) -> Response:
    """All that was asked."""
    found = here.store.question(CellKey(run=here.run(run).id, question=question, due=due, trial=0))
    if found is None:
        raise HTTPException(404, "the run does not ask that")
    return _plain("\n\n".join(filter(None, (found.text, found.criteria, found.background))))


def _plain(text: str) -> Response:
    # Not even a browser that guesses may take it for a page.
    shown = "inline" if len(text) <= MAX_TEXT else 'attachment; filename="whole.txt"'
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": shown}
    return PlainTextResponse(text, headers=headers)
