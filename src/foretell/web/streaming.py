"""Server-sent events out of the event store: live while a run goes on, the same again when it is over."""

import asyncio
import json
from collections.abc import AsyncGenerator
from functools import partial
from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from foretell.questions.trace import BeliefRevised, ForecastMade, ToolUsed, TraceEvent
from foretell.runs.store import EVENT_KINDS, CellKey, RunStore
from foretell.web.state import WebState

BATCH = 200
# Written so that no index on the run is used: one would have all events of a large run sorted for every batch.
_NEXT_SQL = """
select id, question, due, trial, kind, body from event where id > ? and run || '' = ? order by id limit ?"""
PAUSE_SECONDS, SIGN_OF_LIFE_SECONDS = 0.25, 15.0
"""Between two looks at the store, and between two signs of life on a silent line."""
MESSAGE = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "event": {"enum": ["told", "end"]}, "data": {"type": "string"}},
}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Messages: `event_to_dict` for each event, with the store's number as its id; at last `end`.",
        "content": {"text/event-stream": {"schema": MESSAGE}},
    },
}
"""How a stream stands in the API's description."""
After = Annotated[int, Query(ge=0, le=2**62, description="Only events after this number.")]
Brief = Annotated[bool, Query(description="Only that something happened, without texts.")]


def stream(
    request: Request, here: WebState, run: str, question: str | None = None, *, after: int, brief: bool
) -> StreamingResponse:
    """Everything that happens in a run, or to one question of it; a browser that lost the line goes on where it was."""
    heard = request.headers.get("last-event-id", "")
    after = int(heard) if heard.isascii() and heard.isdecimal() and len(heard) < 19 else after
    messages = _messages(here, run, question, after, brief)
    return StreamingResponse(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _messages(here: WebState, run: str, question: str | None, after: int, brief: bool) -> AsyncGenerator[str]:
    over = partial(here.over, run) if question is None else partial(here.question_over, run, question)
    silent, more = 0.0, False
    if after > await run_in_threadpool(here.store.last_event):
        # Numbers that are gone belonged to a cell that was begun anew: what is there now is sent from its start.
        after = 0
    yield "retry: 1000\n\n"
    while not here.leaving.is_set():  # Then the line just ends: the browser comes back and goes on where it was.
        # Asked before reading: what is written in between is read now or next time, but never missed.
        finished = not more and await run_in_threadpool(over)
        batch = await run_in_threadpool(_batch, here.store, run, question, after)
        more = len(batch) == BATCH
        if batch:
            # All at once: thousands of small pieces would take their time.
            yield "".join(_message("told", event_to_dict(*one, brief=brief), one[0]) for one in batch)
            after, silent = batch[-1][0], 0.0
        elif finished:
            yield _message("end", {"after": after}, after)
            return
        else:
            await asyncio.sleep(PAUSE_SECONDS)
            silent += PAUSE_SECONDS
        if silent >= SIGN_OF_LIFE_SECONDS:
            silent = 0.0
            yield ": waiting\n\n"


def _batch(store: RunStore, run: str, question: str | None, after: int) -> list[tuple[int, CellKey, TraceEvent]]:
    if store.last_event() <= after:  # Costs nothing, unlike a look at the table.
        return []
    if question is not None:
        return list(islice(store.events(run, question, after=after), BATCH))
    return [
        (id, CellKey(run=run, question=asked, due=due, trial=trial), EVENT_KINDS[kind](**json.loads(body)))
        for id, asked, due, trial, kind, body in store.database.read(_NEXT_SQL, (after, run, BATCH))
    ]


def _message(kind: str, data: Any, number: int) -> str:
    # JSON has no bare line breaks, which is what the format asks for.
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"


def event_to_dict(number: int, key: CellKey, event: TraceEvent, *, brief: bool = False) -> dict[str, Any]:
    """An event as JSON, with the cell it happened in."""
    place = {"id": number, "question": key.question, "due": key.due, "trial": key.trial, "kind": type(event).__name__}
    if not brief:
        return {**place, "event": vars(event)}
    match event:
        case BeliefRevised():
            return {**place, "step": event.step, "p": dict(event.p)}
        case ToolUsed():
            return {**place, "step": event.step, "tool": event.tool}
        case ForecastMade():
            return {**place, "p": dict(event.p)}
        case _:
            return place
