"""Ask: the outside view at once and for free, or a researched answer in the background for those with the token."""

import os
import time
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from foretell.questions.errors import InputError
from foretell.web.background_runs import RunNotStarted
from foretell.web.middleware import validation_messages
from foretell.web.rendering import html_page, link_to
from foretell.web.security import FIELD, TokenRequired, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.views.ask import (
    AskForm,
    AskView,
    OutsideAnswer,
    QuestionForm,
    StartedRun,
    ask_view,
    outside_answer,
    prepare_ask,
)

START_SECONDS = 10.0
"""Seconds that a new run may take to show up in the store."""
LIST_FIELDS = ("options", "search")
router = APIRouter()


def _view(here: WebState) -> AskView:
    search = tuple(filter(None, os.environ.get("FORETELL_SEARCH", "").split(",")))
    return ask_view(here.settings, os.environ.get("FORETELL_MODEL", ""), search)


@router.get("/api/ask", tags=["ask"])
def read_ask(here: CurrentState) -> AskView:
    """What a question can be asked with here."""
    return _view(here)


@router.get("/api/ask/outside", tags=["ask"])
def read_outside(here: CurrentState, wording: Annotated[QuestionForm, Query()]) -> OutsideAnswer:
    """The answer without any model: how questions like it ended. Costs nothing and keeps nothing."""
    return outside_answer(wording, here.settings)


@router.post("/api/ask", tags=["ask"], status_code=202)
def ask(here: CurrentState, _: TokenRequired, wish: AskForm) -> StartedRun:
    """Research a question in the background. Spends money. Follow it at /api/runs/{run}/stream."""
    return _start_run(here, wish)


def _start_run(here: WebState, wish: AskForm) -> StartedRun:
    prepared = prepare_ask(wish, here.settings)
    question = prepared.questions[0]
    try:
        here.jobs.start(prepared)
    except RunNotStarted as reason:
        raise HTTPException(409, str(reason)) from None
    due = question.due.isoformat()
    until = time.monotonic() + START_SECONDS
    while here.store.run(prepared.spec.id) is None and time.monotonic() < until:
        time.sleep(0.02)
    return StartedRun(run=prepared.spec.id, question=question.id, due=due, warnings=prepared.warnings)


@router.get("/ask", include_in_schema=False)
def show_ask(request: Request, here: CurrentState) -> Response:
    """The form; with a question in the address, also its outside view."""
    given = _fields({name: request.query_params.getlist(name) for name in request.query_params})
    if not given.get("text"):
        return _form(request, here, given)
    try:
        wording = QuestionForm.model_validate(
            {name: given[name] for name in QuestionForm.model_fields if name in given}
        )
        answer = outside_answer(wording, here.settings)
    except (ValidationError, InputError) as error:
        return _form(request, here, given, problem=_error_text(error))
    return _form(request, here, given, answer=answer)


@router.post("/ask", include_in_schema=False)
async def send_ask(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """Start the research and go to where it can be watched."""
    given = _fields(await form_of(request))
    given.pop(FIELD, None)
    if given.pop("outside", None):
        return RedirectResponse(link_to("ask", **_in_address(given)), status_code=303)
    try:
        wish = AskForm.model_validate(given)
        begun = await run_in_threadpool(_start_run, here, wish)
    except (ValidationError, InputError) as error:
        return await run_in_threadpool(_form, request, here, given, problem=_error_text(error))
    return RedirectResponse(link_to("question", begun.run, begun.question, due=begun.due), status_code=303)


def _error_text(error: ValidationError | InputError) -> str:
    return validation_messages(error.errors())[0] if isinstance(error, ValidationError) else str(error)


def _fields(form: dict[str, list[str]]) -> dict[str, Any]:
    """As a form sends them: what is empty was not filled in; outcomes stand one per line."""
    found: dict[str, Any] = {name: values[0].strip() for name, values in form.items() if values and values[0].strip()}
    for name in LIST_FIELDS:
        lines = [line.strip() for value in form.get(name, []) for line in value.splitlines() if line.strip()]
        if lines:
            found[name] = lines
    return found


def _in_address(given: dict[str, Any]) -> dict[str, str]:
    """The words of a question as they stand in an address; what the outside view does not need is left out."""
    kept = {name: given[name] for name in QuestionForm.model_fields if name in given}
    return {name: "\n".join(value) if isinstance(value, list) else value for name, value in kept.items()}


def _form(
    request: Request, here: WebState, given: dict[str, Any], *, problem: str = "", answer: OutsideAnswer | None = None
) -> Response:
    status = 422 if problem else 200
    filled = {**dict.fromkeys(AskForm.model_fields, ""), **given}
    return html_page(request, "ask.html", _view(here), status=status, given=filled, problem=problem, answer=answer)
