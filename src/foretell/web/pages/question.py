"""One question of a run: every trial step by step, and how the trials were combined; live while the run is going on."""

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from foretell.operations.requests.runs import ShowRequest
from foretell.operations.show import show
from foretell.questions.errors import InputError, MissingExtra
from foretell.report.charts.svg import figure_png
from foretell.report.document import Writable, write_outputs
from foretell.report.provenance import command_text, running_command
from foretell.report.question_view import question_view
from foretell.report.run_report import (
    finding_of,
    question_card,
    question_charts,
    question_steps,
    reasoning_sentence,
)
from foretell.runs.spec import spec_from_json
from foretell.runs.store import TrialKey
from foretell.runs.tree_files import tree_folder
from foretell.runs.trial_costs import TrialCost, trial_cost
from foretell.standing.question_checks import ASKED, problems_of
from foretell.web.event_watch import pending_digest
from foretell.web.rendering import html_page, link_to
from foretell.web.run_rows import run_row_view
from foretell.web.security import require_token
from foretell.web.state import CurrentState, WebState

router = APIRouter()
REPORTS = {"html": "text/html", "md": "text/markdown"}


@router.get("/api/runs/{run}/questions/{question:path}", tags=["runs"])
def read_question(
    here: CurrentState,
    run: str,
    question: str,
    due: Annotated[str | None, Query(max_length=64, description="Asked as of when; the newest if left out.")] = None,
) -> dict[str, Any]:
    """Every trial of a question step by step, with evidence, refusals and cost, and how the answer was reached."""
    row, store = here.run(run), here.store
    last = store.last_event()  # Read these first: the stream announces all later changes.
    pending = pending_digest(store.pending_work(row.id), row.id, question)
    view = here.cached(
        ("question", row.id, question, due),
        (last, pending, *here.answered(row)),
        lambda: question_view(store, row, question, due, lambda: here.scores(row, finished=True)),
    )
    if view is None:
        when = f" as of {due[:64]}" if due else ""
        raise HTTPException(404, f"run {row.id} has no question {question[:200]!r}{when}")
    background = here.jobs.of(row.id)
    since = background.since if background is not None else None
    more = {
        "budget": (row.spec.get("budget") or {}).get("run"),
        # When this server started the work; if another process runs it, when the run was created.
        "since": (since or datetime.fromisoformat(row.created)).timestamp(),
        "background": background,
        "last": last,
        "pending": pending,
        "money": None,
    }
    asked = store.question(TrialKey(run=row.id, question=view["question"]["id"], due=view["question"]["due"], trial=0))
    more["unresolvable"] = problems_of(asked) if asked is not None and asked.source == ASKED else ()
    line = run_row_view(store, row)
    if line.questions == 1:  # The money of the run is that of the question.
        more |= {
            "money": here.money(row.id),
            "lost": here.lost_replies(row.id),
            "seconds_left": here.seconds_left(line),
        }
    return {"run": line, **view, **more}


@router.get("/runs/{run}/questions/{question:path}", include_in_schema=False)
def show_question(
    request: Request, here: CurrentState, view: Annotated[dict[str, Any], Depends(read_question)]
) -> Response:
    """Show the page of a question, with charts of the likeliest outcomes."""
    run, question = view["run"].id, view["question"]
    place = str(request.base_url).rstrip("/")
    shared = {
        "permalink": place + link_to("question", run, question["id"], due=question["due"]),
        "preview": place + link_to("report", run, "png", question=question["id"], due=question["due"]),
    }
    asked = (run, question["id"], question["due"])
    state = (view["last"], view["pending"], *here.answered(here.run(run)))
    now, background = datetime.now(UTC).timestamp(), view["background"]
    going = view["run"].state == "running" or (background is not None and background.state == "running")
    return html_page(
        request,
        "question.html",
        view,
        charts=here.cached(("charts", *asked), state, lambda: question_charts(view)),
        # Work that was cut off has no end, so it is only drawn while it goes on.
        steps=question_steps(view, now)
        if going
        else here.cached(("steps", *asked), state, lambda: question_steps(view)),
        shared=shared,
        page_of=here.page_of,
        finding=finding_of(view),
        reasoning=reasoning_sentence(view),
        tree_names=[
            tree["name"] for tree in view["trees"] if (tree_folder(here.settings) / f"{tree['name']}.json").is_file()
        ],
        now=now,
        elapsed=max(0.0, now - view["since"]),
        estimate=None if view["finished"] else _estimate(here, view),
    )


def _estimate(here: WebState, view: Mapping[str, Any]) -> TrialCost | None:
    """Estimate the cost and duration of a trial of this run from similar trials."""
    row = here.run(view["run"].id)
    try:
        return trial_cost(spec_from_json(row.spec), here.measured_costs())
    except InputError:
        return None


@router.get("/api/runs/{run}/report.{form}", tags=["runs"], response_class=Response)
def read_report(
    request: Request,
    here: CurrentState,
    run: str,
    form: Literal["html", "md", "png"],
    question: Annotated[
        str | None, Query(max_length=2000, description="Of one question; of the run if left out.")
    ] = None,
    due: Annotated[str | None, Query(max_length=64, description="Asked as of when; the newest if left out.")] = None,
) -> Response:
    """The report on a run, or on one of its questions, as a single file, as `foretell show --out` writes it.

    `png` is a picture of the answer to a question; an SVG if no PNG can be drawn here. The others say what was spent,
    so they need the token.
    """
    if form == "png":
        if question is None:
            raise HTTPException(422, "png is a picture of one answer: name its question")
        return _preview(read_question(here, run, question, due))
    require_token(request)
    asked = ShowRequest(run=here.run(run).id, question=question, as_of=due)
    with running_command(command_text("show", asked)):
        return file_response(show(asked, here.settings), form)


def file_response(result: Writable, form: str) -> Response:
    """Return a result as a file download in one of the formats of `REPORTS`."""
    with tempfile.TemporaryDirectory(prefix="foretell-report-") as folder:
        (path,) = write_outputs(result, [Path(folder) / f"report.{form}"])
        body = path.read_bytes()
    headers = {"Content-Disposition": f'attachment; filename="report.{form}"'}
    return Response(body, media_type=REPORTS[form], headers=headers)


def _preview(view: Mapping[str, Any]) -> Response:
    """Return the picture of an answer that shared links show."""
    target = view["question"]["targets"][0]
    combination = view["combination"] if len(view["question"]["targets"]) == 1 else None
    id = target["id"]
    trials = [trial["p"][id] for trial in combination["trials"] if id in trial["p"]] if combination else []
    p = combination["p"].get(id) if combination else None
    card = question_card(view["question"]["text"], p, trials, target["price"], target["outcome"])
    try:
        return Response(figure_png(card.svg), media_type="image/png")
    except MissingExtra:
        return Response(card.standalone(), media_type="image/svg+xml")
