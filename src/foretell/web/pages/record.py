"""One's own questions: the record of all of them, and the history of one with its buttons."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.frozen import frozen
from foretell.operations.record import RecordResult, change_state, confirm_outcome, record_of
from foretell.operations.requests.record import RecordRequest
from foretell.questions.errors import InputError
from foretell.report.charts.svg import Chart
from foretell.report.charts.updates import move_ruler
from foretell.report.provenance import Provenance
from foretell.standing.history import QuestionHistory, outcome_text, question_history, what_moved, woken_by
from foretell.standing.own_record import OwnRecord, own_record
from foretell.standing.post_mortem import FAULTS, PostMortem, post_mortems
from foretell.standing.record import QuestionRecord
from foretell.standing.record_report import (
    calibration_chart,
    history_chart,
    learnt_text,
    score_over_time_chart,
    scored_ruler,
)
from foretell.web.forms import body_of
from foretell.web.rendering import html_page, link_to
from foretell.web.security import TokenRequired, access_of, form_of, has_token, visitor_of
from foretell.web.state import CurrentState, WebState

router = APIRouter()
MOST_EXAMINED, MOST_BEST, MOST_QUIET, MOST_NOTICES = 6, 4, 6, 5
"""Maximum number of worst and best questions, of looks without a change and of notices that are shown."""


@frozen
class RecordFilters:
    """Which questions count, as given in the page address."""

    topic: Annotated[str, Query(max_length=200, description="Only questions of this category.")] = ""
    since: Annotated[
        Literal["", "30", "90", "365"], Query(description="Only those that were decided in so many days.")
    ] = ""

    def chosen(self, records: tuple[QuestionRecord, ...], now: datetime) -> OwnRecord:
        """Return the record of the questions that pass."""
        passing = tuple(each for each in records if self.topic in ("", each.standing.question.category))
        if not self.since:
            return own_record(passing)
        first = now - timedelta(days=int(self.since))
        late = {question.id for question in own_record(passing).scored if question.known_at >= first}
        return own_record(each for each in passing if each.standing.state != "resolved" or each.standing.id in late)


Filters = Annotated[RecordFilters, Depends()]


def _whole(here: WebState) -> RecordResult:
    now = here.clock()
    return here.while_unchanged(("record", now.date()), lambda: record_of(here.store, now))


def _filtered(here: WebState, filters: RecordFilters) -> RecordResult:
    whole = _whole(here)
    if filters == RecordFilters():
        return whole

    now = here.clock()

    def look() -> RecordResult:
        own = filters.chosen(whole.own.records, now)
        return replace(whole, own=own, post_mortems=post_mortems(own))

    return here.while_unchanged(("record", now.date(), filters.topic, filters.since), look)


@router.get("/api/record", tags=["record"])
def read_record(here: CurrentState, filters: Filters) -> dict[str, Any]:
    """The record of your own questions: scores, verdicts, what updates were worth, post-mortems, every question."""
    return _filtered(here, filters).to_dict()


@router.get("/record", include_in_schema=False)
def show_record(request: Request, here: CurrentState, filters: Filters) -> Response:
    """Show the page of the record."""
    result = _filtered(here, filters)
    own, results = result.own, result.post_mortems

    def charts() -> dict[str, Chart | None]:
        return {"calibration": calibration_chart(own), "over_time": score_over_time_chart(own)}

    categories = {each.standing.question.category for each in _whole(here).own.records}
    waiting = {record.standing.id for record in own.waiting}
    return html_page(
        request,
        "record.html",
        result,
        own=own,
        results=results,
        charts=here.while_unchanged(("record charts", here.clock().date(), filters.topic, filters.since), charts),
        filters=filters,
        categories=sorted(categories - {""}),
        worst=[_examined(each) for each in results.worst],
        best=[_examined(each) for each in results.best[:MOST_BEST]],
        all=[_examined(each) for each in results.all],
        most=MOST_EXAMINED,
        faults=FAULTS,
        learnt=[(weight, learnt_text(weight)) for weight in result.learnt],
        waiting=waiting,
        open_questions=sorted(own.open, key=lambda record: record.standing.id not in waiting),
        permalink=str(request.base_url).rstrip("/") + link_to("record"),
        made=Provenance.now(own.board.settings) if own.board is not None else None,
    )


def _examined(result: PostMortem) -> dict[str, Any]:
    """Return what a row about a scored question shows."""
    question = result.question
    target = question.leading
    return {
        "id": question.id,
        "text": question.record.standing.question.text,
        "result": result,
        "said": question.last.answer[target],
        "price": question.prices.get(target),
        "outcome": outcome_text(question.record, question.outcome),
        "came": bool(question.outcome[target]),
        "brier": question.brier,
        "price_brier": question.price_brier,
        "known_at": question.known_at,
        "ruler": scored_ruler(question),
    }


def _history(here: WebState, id: str) -> QuestionHistory:
    """Return the history of a question. Raises a 404 error if there is none with this id."""
    try:
        return question_history(here.standing, id, here.clock())
    except KeyError:
        raise HTTPException(404, f"no question {id[:80]!r} is watched") from None


@router.get("/api/record/{id}", tags=["record"])
def read_history(request: Request, here: CurrentState, id: str) -> dict[str, Any]:
    """The history of one question: every look, every forecast, what was proposed and what was confirmed."""
    body = _history(here, id).to_dict()
    if has_token(request, access_of(request)):
        return body
    record: QuestionRecord = body["record"]
    # Settings and addresses that are notified are the owner's.
    return {**body, "record": replace(record, standing=replace(record.standing, settings={})), "notices": []}


@router.get("/record/{id}", include_in_schema=False)
def show_history(request: Request, here: CurrentState, id: str) -> Response:
    """Show the page of one question."""
    return _history_page(request, here, id)


class RecordBody(body_of(RecordRequest, "id")):
    """What to change: the confirmed outcome, or whether the question is watched."""


@router.post("/api/record/{id}", tags=["record"])
def change_record(here: CurrentState, _: TokenRequired, id: str, body: RecordBody) -> dict[str, Any]:
    """Confirm the outcome of a question, pause it, or open it again."""
    done = _change(here, id, body.model_dump(exclude_none=True))
    return {**_history(here, id).to_dict(), "done": done}


@router.post("/record/{id}", include_in_schema=False)
async def send_record(request: Request, here: CurrentState, _: TokenRequired, id: str) -> Response:
    """Handle the buttons that confirm an outcome, pause a question, open it again, or ask for a look."""
    form = {name: values[0].strip() for name, values in (await form_of(request)).items() if values}
    chosen = {name: form[name] for name in ("confirm", "state", "look") if form.get(name)}
    if form.get("value"):
        chosen["confirm"] = form["value"]  # The number or date that a question asks for.
    try:
        await run_in_threadpool(_change, here, id, chosen)
    except InputError as error:
        return await run_in_threadpool(partial(_history_page, request, here, id, problem=str(error)))
    return RedirectResponse(link_to("standing", id), status_code=303)


def _change(here: WebState, id: str, chosen: Mapping[str, str]) -> str:
    now = here.clock()
    state = _history(here, id).record.standing.state
    if not chosen:
        raise InputError("nothing is to be changed", hint="confirm an outcome, or set the state")
    request = RecordRequest.read({"id": id, **{name: chosen[name] for name in ("confirm", "state") if name in chosen}})
    done: list[str] = []
    if request.confirm is not None:
        done.append(confirm_outcome(here.store, id, request.confirm, now))
    if request.state is not None:
        done.append(change_state(here.standing, id, request.state, now))
    if "look" in chosen:
        if state != "open":
            raise InputError(f"the question is {state}, so it is not looked at")
        here.standing.plan(id, now)
        done.append("It is looked at next.")
    return " ".join(done)


def _history_page(request: Request, here: WebState, id: str, *, problem: str = "") -> Response:
    history = _history(here, id)
    looks = {look.number: look for look in history.record.looks}
    updates = [
        {
            "change": update,
            "text": what_moved(update),
            "evidence": update.belief.evidence[0] if update.belief.evidence else None,
            "woken": woken_by(looks.get(update.belief.look)),
            "before": update.before.answer.get(update.target, 0.0),
            "after": update.belief.answer[update.target],
            "ruler": move_ruler(update.before.answer.get(update.target, 0.0), update.belief.answer[update.target]),
        }
        for update in reversed(history.updates)
    ]
    standing = history.record.standing
    return html_page(
        request,
        "standing.html",
        history,
        status=422 if problem else 200,
        problem=problem,
        standing=standing,
        question=standing.question,
        updates=updates,
        answers=_answers(history),
        notices=_notices(history),
        chart=history_chart(history) if history.last is not None else None,
        quiet=history.quiet_looks,
        most_quiet=MOST_QUIET,
        run=_run_of(here, history),
        outcome=outcome_text(history.record, history.outcome) if history.outcome else "",
        looked=visitor_of(request).may_write and standing.state == "open",
        permalink=str(request.base_url).rstrip("/") + link_to("standing", id),
    )


def _notices(history: QuestionHistory) -> list[tuple[datetime | None, str]]:
    """Return the newest notices: when the look was that they report, and what became of them."""
    looks = {look.number: look.at for look in history.record.looks}
    rows = [
        (looks.get(int(str(notice.get("look") or 0))), [notice.get(name) for name in ("channel", "state", "problem")])
        for notice in history.notices
    ]
    return [(at, ", ".join(str(word) for word in words if word)) for at, words in reversed(rows[-MOST_NOTICES:])]


def _answers(history: QuestionHistory) -> dict[str, str]:
    """Return the answers that may be confirmed with one button, besides the proposed one, and their labels."""
    question, proposal = history.record.standing.question, history.proposal
    if question.range is not None:
        return {}
    if len(question.targets) == 1:
        answers = {"yes": "Yes", "no": "No"}
    else:
        answers = {target.id: target.short_label for target in question.targets}
        answers |= {} if question.exclusivity == "exactly one" else {"no": "None of them"}
    proposed = "" if proposal is None or proposal.outcome is None else outcome_text(history.record, proposal.outcome)
    return {id: label for id, label in answers.items() if label != proposed}


def _run_of(here: WebState, history: QuestionHistory) -> dict[str, str] | None:
    """Return the run of the newest forecast whose steps are stored here, and the question's id and date in it."""
    for belief in reversed(history.record.beliefs):
        questions = here.store.questions(belief.run) if belief.run else []
        if len(questions) == 1:
            return {"run": belief.run, "id": questions[0].id, "due": questions[0].due.isoformat()}
    return None
