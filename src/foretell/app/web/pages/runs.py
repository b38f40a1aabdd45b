"""Runs: the list, and one of them with progress, failures, cost and questions."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from foretell.app.asking import TYPED, benchmark_of
from foretell.app.running import prepare
from foretell.app.web.background import Refused
from foretell.app.web.links import served
from foretell.app.web.rendering import page
from foretell.app.web.security import Trusted
from foretell.app.web.serving import Here, Serving
from foretell.app.web.streaming import STREAM, Watching, last_heard, stream
from foretell.app.web.views.run import PAGE, RunView, run_view
from foretell.app.web.views.runs import Runs, list_runs
from foretell.arena.spec import spec_from_json

router = APIRouter()
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="Leave out so many from the start.")]
Limit = Annotated[int, Query(ge=1, le=500)]
After = Annotated[int, Query(ge=0, le=2**62, description="Only events after this number.")]
Brief = Annotated[bool, Query(description="Only that something happened, without texts.")]


@router.get("/api/runs", tags=["runs"])
def read_runs(here: Here, offset: Offset = 0, limit: Limit = 50) -> Runs:
    """All runs of this machine, the newest first."""
    return list_runs(here.store, offset=offset, limit=limit)


@router.get("/runs", include_in_schema=False)
def show_runs(request: Request, here: Here, offset: Offset = 0) -> Response:
    """The list."""
    return page(request, "runs.html", list_runs(here.store, offset=offset), size=50)


@router.get("/api/runs/{run}", tags=["runs"])
def read_run(here: Here, run: str, offset: Offset = 0) -> RunView:
    """How far a run is, what it costs, what failed and why, and a page of its questions."""
    row = here.run(run)
    return run_view(here.store, row, here.watched(row), offset=offset)


@router.get("/runs/{run}", include_in_schema=False)
def show_run(request: Request, here: Here, run: str, offset: Offset = 0) -> Response:
    """One run."""
    row = here.run(run)
    return page(request, "run.html", run_view(here.store, row, here.watched(row), offset=offset), size=PAGE)


@router.get("/api/runs/{run}/stream", tags=["live"], response_class=Response, responses=STREAM)
def stream_run(request: Request, here: Here, run: str, after: After = 0, brief: Brief = False) -> Response:
    """Everything that happens in a run, as it happens; `Last-Event-ID` goes on where a lost line ended."""
    id = here.run(run).id
    watching = Watching(run=id, after=last_heard(request, after), brief=brief)
    return stream(here.store, watching, lambda: here.over(id), leaving=here.leaving.is_set)


@router.post("/api/runs/{run}/stop", tags=["runs"], status_code=202)
def stop_run(here: Here, _: Trusted, run: str) -> dict[str, str]:
    """End a run that this server started. What it paid for is kept; started again it goes on."""
    id = here.run(run).id
    if not here.jobs.stop(id):
        raise HTTPException(409, f"run {id} does not go on in this server")
    return {"run": id, "state": "stopped"}


@router.post("/api/runs/{run}/resume", tags=["runs"], status_code=202)
def resume_run(here: Here, _: Trusted, run: str) -> dict[str, str]:
    """Go on with a run: cells without a forecast are answered, nothing is paid twice. Spends money."""
    return {"run": _resumed(here, run), "state": "running"}


def _resumed(here: Serving, run: str) -> str:
    row = here.run(run)
    spec = spec_from_json(row.spec)
    asked = here.store.questions(row.id)
    alone = benchmark_of(asked[-1]) if spec.questions.dataset.startswith(TYPED) and asked else None
    try:
        here.jobs.start(prepare(spec, alone))
    except Refused as reason:
        raise HTTPException(409, str(reason)) from None
    return row.id


@router.post("/runs/{run}/stop", include_in_schema=False)
def send_stop(here: Here, _: Trusted, run: str) -> Response:
    """The button that ends it."""
    return RedirectResponse(served("run", stop_run(here, None, run)["run"]), status_code=303)


@router.post("/runs/{run}/resume", include_in_schema=False)
def send_resume(here: Here, _: Trusted, run: str) -> Response:
    """The button that goes on."""
    return RedirectResponse(served("run", _resumed(here, run)), status_code=303)
