"""One question of a run: every trial step by step, and how the trials were combined; live while the run is going on."""

import shlex
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from foretell.models.waiting import waiting_text
from foretell.operations.question_view import question_view
from foretell.operations.requests.runs import ShowRequest
from foretell.operations.run import show
from foretell.operations.runs import CellCost, cell_cost
from foretell.questions.errors import InputError, MissingExtra
from foretell.report.charts.svg import figure_png
from foretell.report.document import Writable, write_outputs
from foretell.report.run_report import finding_of, question_card, question_charts
from foretell.runs.spec import spec_from_json
from foretell.web.rendering import html_page, link_to
from foretell.web.run_rows import run_row_view
from foretell.web.state import CurrentState, WebState
from foretell.web.streaming import STREAM, After, Brief, stream

router = APIRouter()
ShortId = Annotated[str, Query(max_length=2000)]
REPORTS = {"html": "text/html", "md": "text/markdown"}


# Before the question itself: its id may hold slashes, and would swallow the last part.
@router.get(
    "/api/runs/{run}/questions/{question:path}/stream", tags=["live"], response_class=Response, responses=STREAM
)
def stream_question(
    request: Request, here: CurrentState, run: str, question: str, after: After = 0, brief: Brief = False
) -> Response:
    """Stream all events of one question as they happen."""
    return stream(request, here, here.run(run).id, question, after=after, brief=brief)


@router.get("/api/runs/{run}/questions/{question:path}", tags=["runs"])
def read_question(
    here: CurrentState,
    run: str,
    question: str,
    due: Annotated[str | None, Query(max_length=64, description="Asked as of when; the newest if left out.")] = None,
) -> dict[str, Any]:
    """Every trial of a question step by step, with evidence, refusals and cost, and how the answer was reached."""
    row, store = here.run(run), here.store
    last = store.last_event()  # Before anything is read: what comes later is sent by the stream.
    view = here.kept(
        ("question", row.id, question, due),
        (last, *here.answered(row)),
        lambda: question_view(store, row, question, due, lambda: here.scores(row, finished=True)),
    )
    if view is None:
        when = f" as of {due[:64]}" if due else ""
        raise HTTPException(404, f"run {row.id} does not ask {question[:200]!r}{when}")
    background = here.jobs.of(row.id)
    since = background.since if background is not None else None
    more = {
        "budget": (row.spec.get("budget") or {}).get("run"),
        # When the work began; of a run that another process works at, when the run did.
        "since": (since or datetime.fromisoformat(row.created)).timestamp(),
        "background": background,
        "waiting": waiting_text(run=row.id, question=question),
        "last": last,
    }
    return {"run": run_row_view(store, row), **view, **more}


@router.get("/runs/{run}/questions/{question:path}", include_in_schema=False)
def show_question(
    request: Request, here: CurrentState, view: Annotated[dict[str, Any], Depends(read_question)]
) -> Response:
    """Show the page of a question, with charts of the likeliest outcomes."""
    run, asked = view["run"].id, view["question"]
    place = str(request.base_url).rstrip("/")
    shared = {
        "permalink": place + link_to("question", run, asked["id"], due=asked["due"]),
        "preview": place + link_to("preview", run, question=asked["id"], due=asked["due"]),
        "command": f"foretell show {run} {shlex.quote(asked['id'])}",
    }
    elapsed = max(0.0, datetime.now(UTC).timestamp() - view["since"])
    return html_page(
        request,
        "question.html",
        view,
        charts=here.kept(
            ("charts", run, asked["id"], asked["due"]),
            (view["last"], *here.answered(here.run(run))),
            lambda: question_charts(view),
        ),
        shared=shared,
        finding=finding_of(view),
        elapsed=elapsed,
        estimate=None if view["finished"] else _estimate(here, view),
    )


def _estimate(here: WebState, view: Mapping[str, Any]) -> CellCost | None:
    """Estimate the cost and duration of a trial of this run from similar trials."""
    row = here.run(view["run"].id)
    try:
        return cell_cost(spec_from_json(row.spec), here.measured_costs())
    except InputError:
        return None


@router.get("/api/runs/{run}/report.{form}", tags=["runs"], response_class=Response)
def read_report(
    here: CurrentState,
    run: str,
    form: Literal["html", "md"],
    question: Annotated[
        str | None, Query(max_length=2000, description="Of one question; of the run if left out.")
    ] = None,
    due: Annotated[str | None, Query(max_length=64, description="Asked as of when; the newest if left out.")] = None,
) -> Response:
    """The report on a run, or on one of its questions, as a single file, as `foretell show --out` writes it."""
    found = show(ShowRequest(run=here.run(run).id, question=question, as_of=due), here.settings)
    return file_response(found, form)


def file_response(result: Writable, form: str) -> Response:
    """Return a result as a file download in one of the formats of `REPORTS`."""
    with tempfile.TemporaryDirectory(prefix="foretell-report-") as folder:
        (path,) = write_outputs(result, [Path(folder) / f"report.{form}"])
        body = path.read_bytes()
    headers = {"Content-Disposition": f'attachment; filename="report.{form}"'}
    return Response(body, media_type=REPORTS[form], headers=headers)


@router.get("/runs/{run}/preview.png", include_in_schema=False)
def show_preview(here: CurrentState, run: str, question: ShortId, due: ShortId = "") -> Response:
    """Return the preview image of an answer for shared links; an SVG if no PNG can be drawn here."""
    view = read_question(here, run, question, due or None)
    target = view["question"]["targets"][0]
    combination = view["combination"] if len(view["question"]["targets"]) == 1 else None
    id = target["id"]
    trials = [one["p"][id] for one in combination["trials"] if id in one["p"]] if combination else []
    p = combination["p"].get(id) if combination else None
    card = question_card(view["question"]["text"], p, trials, target["price"], target["outcome"])
    try:
        return Response(figure_png(card.svg), media_type="image/png")
    except MissingExtra:
        return Response(card.standalone(), media_type="image/svg+xml")
