"""Runs: the list, and one of them with progress, failures, cost and questions."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.operations import run as operations
from foretell.operations.requests import ReplayRequest, RunRequest, ShowRequest
from foretell.questions import trace as kinds
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.trace import TraceEvent
from foretell.report.charts.svg import Chart
from foretell.report.charts.timelines import Trajectory, stages_plot, trajectory_plot
from foretell.request import setting
from foretell.runs.spec import yaml_mapping
from foretell.runs.store import CellKey, RunStore
from foretell.web.background_runs import RunNotStarted
from foretell.web.forms import body_of, form_fields, form_values
from foretell.web.pages.ask import start_run
from foretell.web.rendering import html_page, link_to
from foretell.web.security import FIELD, TokenRequired, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.streaming import STREAM, StreamRequest, event_to_dict, last_event_id, stream
from foretell.web.views.ask import StartedRun
from foretell.web.views.question import QuestionView, TargetView, question_view
from foretell.web.views.runs import QUESTIONS_PER_PAGE, RunList, RunView, list_runs, run_view

runs_router = APIRouter()
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="Leave out so many from the start.")]
Limit = Annotated[int, Query(ge=1, le=500)]
After = Annotated[int, Query(ge=0, le=2**62, description="Only events after this number.")]
Brief = Annotated[bool, Query(description="Only that something happened, without texts.")]


class RunBody(body_of(RunRequest, "out", "where", "spec")):
    """A run as it is sent to the server: the spec itself, because a name would be that of a file on the server."""

    spec: dict[str, Any] = setting(help="The spec as a mapping: questions, models, search, trials, …")


@runs_router.get("/api/runs", tags=["runs"])
def read_runs(here: CurrentState, offset: Offset = 0, limit: Limit = 50) -> RunList:
    """All runs of this machine, the newest first."""
    return list_runs(here.store, offset=offset, limit=limit)


@runs_router.get("/runs", include_in_schema=False)
def show_runs(request: Request, here: CurrentState, offset: Offset = 0) -> Response:
    """The list, and the form that starts a run."""
    return _runs_page(request, here, offset, {}, "")


def _runs_page(request: Request, here: WebState, offset: int, given: dict[str, Any], problem: str) -> Response:
    view, fields = list_runs(here.store, offset=offset), form_fields(RunRequest, leave_out=("where",))
    status = 422 if problem else 200
    return html_page(request, "runs.html", view, status=status, size=50, fields=fields, given=given, problem=problem)


@runs_router.get("/api/runs/{run}", tags=["runs"])
def read_run(here: CurrentState, run: str, offset: Offset = 0) -> RunView:
    """How far a run is, what it costs, what failed and why, and a page of its questions."""
    row = here.run(run)
    return run_view(here.store, row, here.watched(row), offset=offset)


@runs_router.get("/runs/{run}", include_in_schema=False)
def show_run(request: Request, here: CurrentState, run: str, offset: Offset = 0) -> Response:
    """One run."""
    row = here.run(run)
    return html_page(
        request, "run.html", run_view(here.store, row, here.watched(row), offset=offset), size=QUESTIONS_PER_PAGE
    )


@runs_router.post("/api/runs", tags=["runs"], status_code=202)
def start_run_of_spec(here: CurrentState, _: TokenRequired, request: RunBody) -> StartedRun:
    """Start the run that a spec describes, or go on with it. Spends money."""
    chosen = RunRequest.read(request.model_dump())
    return start_run(here, operations.prepare(chosen, here.settings), concurrency=chosen.concurrency)


@runs_router.post("/runs", include_in_schema=False)
async def send_run(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """The same, from the page: the spec is typed as YAML."""
    sent = await form_of(request)
    sent.pop(FIELD, None)
    given = {**form_values(RunRequest, sent), "spec": "\n".join(sent.get("spec", []))}

    def start() -> StartedRun:
        return start_run_of_spec(here, None, RunBody.read({**given, "spec": yaml_mapping(given["spec"])}))

    try:
        begun = await run_in_threadpool(start)
    except InputError as error:
        return await run_in_threadpool(_runs_page, request, here, 0, given, str(error))
    return RedirectResponse(link_to("run", begun.run), status_code=303)


@runs_router.get("/api/runs/{run}/show", tags=["runs"])
def read_answers(
    here: CurrentState, run: str, question: str | None = None, limit: Annotated[int | None, Query(ge=1)] = None
) -> dict[str, Any]:
    """The answers of a run, or every step to one answer: the same as `foretell show --json` prints."""
    request = ShowRequest.read({"run": here.run(run).id, "question": question, "limit": limit})
    return operations.show(request, here.settings).to_dict()


@runs_router.post("/api/runs/{run}/replay", tags=["runs"])
def replay_run(here: CurrentState, _: TokenRequired, run: str) -> dict[str, Any]:
    """Compute a run again from the journal alone and compare the answers."""
    request = ReplayRequest.read({"run": here.run(run).id})
    return operations.replay(request, here.settings).to_dict()


@runs_router.get("/api/runs/{run}/stream", tags=["live"], response_class=Response, responses=STREAM)
def stream_run(request: Request, here: CurrentState, run: str, after: After = 0, brief: Brief = False) -> Response:
    """Everything that happens in a run, as it happens; `Last-Event-ID` goes on where a lost line ended."""
    id = here.run(run).id
    watching = StreamRequest(run=id, after=last_event_id(request, after), brief=brief)
    return stream(here.store, watching, lambda: here.over(id), leaving=here.leaving.is_set)


@runs_router.post("/api/runs/{run}/stop", tags=["runs"], status_code=202)
def stop_run(here: CurrentState, _: TokenRequired, run: str) -> dict[str, str]:
    """End a run that this server started. What it paid for is kept; started again it goes on."""
    id = here.run(run).id
    if not here.jobs.stop(id):
        raise HTTPException(409, f"run {id} does not go on in this server")
    return {"run": id, "state": "stopped"}


@runs_router.post("/api/runs/{run}/resume", tags=["runs"], status_code=202)
def resume_run(here: CurrentState, _: TokenRequired, run: str) -> dict[str, str]:
    """Go on with a run: cells without a forecast are answered, nothing is paid twice. Spends money."""
    return {"run": _resumed(here, run), "state": "running"}


def _resumed(here: WebState, run: str) -> str:
    row = here.run(run)
    try:
        here.jobs.start(operations.resume(here.store, row.id, here.settings))
    except RunNotStarted as reason:
        raise HTTPException(409, str(reason)) from None
    return row.id


@runs_router.post("/runs/{run}/stop", include_in_schema=False)
def send_stop(here: CurrentState, _: TokenRequired, run: str) -> Response:
    """The button that ends it."""
    return RedirectResponse(link_to("run", stop_run(here, None, run)["run"]), status_code=303)


@runs_router.post("/runs/{run}/resume", include_in_schema=False)
def send_resume(here: CurrentState, _: TokenRequired, run: str) -> Response:
    """The button that goes on."""
    return RedirectResponse(link_to("run", _resumed(here, run)), status_code=303)


# One question of a run: trajectories, evidence, the trace, and from trials to the answer; live while it goes on.

MAX_EVENTS = 6
"""Targets that get a picture of their own."""
question_router = APIRouter()
DueQuery = Annotated[str | None, Query(max_length=64, description="Asked as of when; the newest if left out.")]


def _question_of_run(here: WebState, run: str, question: str, due: str | None) -> QuestionView:
    row = here.run(run)
    view = question_view(here.store, row, question, due=due, background=here.jobs.of(row.id))
    if view is None:
        when = f" as of {due[:64]}" if due else ""
        raise HTTPException(404, f"run {row.id} does not ask {question[:200]!r}{when}")
    return view


# Before the question itself: its id may hold slashes, and would swallow the last part.
@question_router.get(
    "/api/runs/{run}/questions/{question:path}/stream", tags=["live"], response_class=Response, responses=STREAM
)
def stream_question(
    request: Request, here: CurrentState, run: str, question: str, after: After = 0, brief: Brief = False
) -> Response:
    """Everything that happens to one question, as it happens."""
    row = here.run(run)
    watching = StreamRequest(run=row.id, question=question, after=last_event_id(request, after), brief=brief)
    return stream(here.store, watching, lambda: here.question_over(row.id, question), leaving=here.leaving.is_set)


@question_router.get("/api/runs/{run}/questions/{question:path}", tags=["runs"])
def read_question(here: CurrentState, run: str, question: str, due: DueQuery = None) -> QuestionView:
    """Every trial of a question step by step, with evidence, refusals and cost, and the way to the answer."""
    return _question_of_run(here, run, question, due)


@question_router.get("/runs/{run}/questions/{question:path}", include_in_schema=False)
def show_question(request: Request, here: CurrentState, run: str, question: str, due: DueQuery = None) -> Response:
    """The question as a page."""
    view = _question_of_run(here, run, question, due)
    targets = _leading(view)
    return html_page(
        request,
        "question.html",
        view,
        targets=targets,
        paths=[_trajectories(view, target) for target in targets],
        stages=[_stages(view, target) for target in targets],
    )


def _leading(view: QuestionView) -> list[TargetView]:
    """The likeliest targets, at most so many."""
    p = view.combination.p if view.combination else {}
    return sorted(view.question.targets, key=lambda target: -p.get(target.id, 0.0))[:MAX_EVENTS]


def _trajectories(view: QuestionView, target: TargetView) -> Chart:
    lines = [
        Trajectory(
            name="panel" if trial.panel else f"trial {trial.number + 1}",
            points=[(point.step, point.p[target.id]) for point in trial.trace.path if target.id in point.p],
            final=(trial.p or {}).get(target.id),
        )
        for trial in view.trials
    ]
    title = "Belief after each step" if len(view.question.targets) == 1 else target.label
    return trajectory_plot(lines, title, combined=view.combination.p.get(target.id) if view.combination else None)


def _stages(view: QuestionView, target: TargetView) -> Chart:
    if view.combination is None:
        return stages_plot([], 0)
    every = (*view.combination.trials, *view.combination.stages)
    return stages_plot([(stage.name, stage.p.get(target.id, 0.0)) for stage in every], len(view.combination.trials))


# Texts as they are, whole and plain, for what is too long for a page.

raw_router = APIRouter()
MAX_TEXT = 1_000_000
"""Characters that a browser still lays out at once; what is longer is offered as a file."""
PLAIN_HEADERS = {200: {"description": "The text.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
EventNumber = Annotated[int, Query(ge=0, le=2**62)]
TextResponse = Annotated[str, Query(max_length=2000)]


@raw_router.get("/api/runs/{run}/events", tags=["live"])
def read_trace_events(
    here: CurrentState, run: str, after: EventNumber = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[dict[str, Any]]:
    """Events of a run after a number, without waiting for more."""
    from itertools import islice

    found = here.store.events(here.run(run).id, after=after)
    return [event_to_dict(number, key, event) for number, key, event in islice(found, limit)]


@raw_router.get("/runs/{run}/raw/event", include_in_schema=False)
def raw_event(here: CurrentState, run: str, id: EventNumber) -> Response:
    """What one event says."""
    event = _find_event(here.store, here.run(run).id, id)
    if event is None:
        raise HTTPException(404, f"run {run[:80]} has no event {id}: a cell that is begun anew loses its events")
    return _plain(_event_text(event))


@raw_router.get("/runs/{run}/raw/rationale", include_in_schema=False)
def raw_rationale(
    here: CurrentState,
    run: str,
    question: TextResponse,
    due: TextResponse,
    trial: Annotated[int, Query(ge=0, le=10_000)],
) -> Response:
    """The reasons of one trial."""
    key = CellKey(run=here.run(run).id, question=question, due=due, trial=trial)
    answer = next((answer for answer in here.store.answers_to(key) if answer.trial == trial), None)
    if answer is None:
        raise HTTPException(404, "that trial has not answered")
    return _plain(answer.rationale if isinstance(answer, Forecast) else answer.error)


@raw_router.get("/runs/{run}/raw/question", include_in_schema=False)
def raw_question(here: CurrentState, run: str, question: TextResponse, due: TextResponse) -> Response:
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


def _find_event(store: RunStore, run: str, number: int) -> TraceEvent | None:
    found = next(iter(store.events(run, after=number - 1)), None)
    return found[2] if found is not None and found[0] == number else None


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
