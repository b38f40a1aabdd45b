"""Texts as they are, whole and plain, for what is too long for a page."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response
from fastapi.responses import PlainTextResponse

from foretell.app.web.serving import Here
from foretell.app.web.streaming import told
from foretell.arena.store import CellKey, Store
from foretell.questions import event as kinds
from foretell.questions.event import Event
from foretell.questions.forecast import Forecast

router = APIRouter()
LONG = 1_000_000
"""Characters that a browser still lays out at once; what is longer is offered as a file."""
PLAIN = {200: {"description": "The text.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
Number = Annotated[int, Query(ge=0, le=2**62)]
Text = Annotated[str, Query(max_length=2000)]


@router.get("/api/runs/{run}/events", tags=["live"])
def read_events(
    here: Here, run: str, after: Number = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[dict[str, Any]]:
    """Events of a run after a number, without waiting for more."""
    from itertools import islice

    found = here.store.events(here.run(run).id, after=after)
    return [told(number, key, event) for number, key, event in islice(found, limit)]


@router.get("/runs/{run}/raw/event", include_in_schema=False)
def raw_event(here: Here, run: str, id: Number) -> Response:
    """What one event says."""
    event = _event(here.store, here.run(run).id, id)
    if event is None:
        raise HTTPException(404, f"run {run[:80]} has no event {id}: a cell that is begun anew loses its events")
    return _plain(_words(event))


@router.get("/runs/{run}/raw/rationale", include_in_schema=False)
def raw_rationale(
    here: Here, run: str, question: Text, due: Text, trial: Annotated[int, Query(ge=0, le=10_000)]
) -> Response:
    """The reasons of one trial."""
    key = CellKey(run=here.run(run).id, question=question, due=due, trial=trial)
    answer = next((answer for answer in here.store.answers_to(key) if answer.trial == trial), None)
    if answer is None:
        raise HTTPException(404, "that trial has not answered")
    return _plain(answer.rationale if isinstance(answer, Forecast) else answer.error)


@router.get("/runs/{run}/raw/question", include_in_schema=False)
def raw_question(here: Here, run: str, question: Text, due: Text) -> Response:
    """All that was asked."""
    found = here.store.question(CellKey(run=here.run(run).id, question=question, due=due, trial=0))
    if found is None:
        raise HTTPException(404, "the run does not ask that")
    return _plain("\n\n".join(filter(None, (found.text, found.criteria, found.background))))


def _plain(text: str) -> Response:
    # Not even a browser that guesses may take it for a page.
    shown = "inline" if len(text) <= LONG else 'attachment; filename="whole.txt"'
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": shown}
    return PlainTextResponse(text, headers=headers)


def _event(store: Store, run: str, number: int) -> Event | None:
    found = next(iter(store.events(run, after=number - 1)), None)
    return found[2] if found is not None and found[0] == number else None


def _words(event: Event) -> str:
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
