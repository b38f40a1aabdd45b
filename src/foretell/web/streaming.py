"""Server-sent events out of the event store: live while a run goes on, the same again when it is over."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from foretell.questions.trace import BeliefRevised, ForecastMade, ToolUsed, TraceEvent
from foretell.runs.store import EVENT_KINDS, CellKey, RunStore

BATCH = 200
# Written so that no index on the run is used: one would have all events of a large run sorted for every batch.
_NEXT = """
select id, question, due, trial, kind, body from event where id > ? and run || '' = ? order by id limit ?"""
PAUSE, SIGN_OF_LIFE = 0.25, 15.0
"""Seconds between two looks at the store, and between two signs of life on a silent line."""
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


@dataclass(frozen=True, kw_only=True)
class StreamRequest:
    """What a listener wants to hear."""

    run: str
    question: str | None = None
    after: int = 0
    """The number of the last event that was heard."""
    brief: bool = False
    """Only that something happened, without texts."""


def last_event_id(request: Request, after: int) -> int:
    """Where to go on: a browser that lost the line says what it heard last."""
    told = request.headers.get("last-event-id", "")
    return int(told) if told.isascii() and told.isdecimal() and len(told) < 19 else after


def never() -> bool:
    """A server that stays."""
    return False


def stream(
    store: RunStore, watching: StreamRequest, over: Callable[[], bool], *, leaving: Callable[[], bool] = never
) -> StreamingResponse:
    """The answer to a listener. `over` says, from a thread, whether nothing more will come.

    When the server is `leaving`, the line just ends: the browser comes back and goes on where it was.
    """
    return StreamingResponse(
        _event_message(store, watching, over, leaving),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _event_message(
    store: RunStore, watching: StreamRequest, over: Callable[[], bool], leaving: Callable[[], bool]
) -> AsyncGenerator[str]:
    after, silent, more = watching.after, 0.0, False
    if after > await run_in_threadpool(store.last_event):
        # Numbers that are gone belonged to a cell that was begun anew: what is there now is told from its start.
        after = 0
    yield "retry: 1000\n\n"
    while not leaving():
        # Asked before reading: what is written in between is read now or next time, but never missed.
        finished = not more and await run_in_threadpool(over)
        batch = await run_in_threadpool(_batch, store, watching, after)
        more = len(batch) == BATCH
        if batch:
            # All at once: thousands of small pieces would take their time.
            yield "".join(sse_message("told", event_to_dict(*one, brief=watching.brief), one[0]) for one in batch)
            after, silent = batch[-1][0], 0.0
        if finished and not batch:
            yield sse_message("end", {"after": after}, after)
            return
        if not batch:
            await asyncio.sleep(PAUSE)
            silent += PAUSE
        if silent >= SIGN_OF_LIFE:
            silent = 0.0
            yield ": waiting\n\n"


def _batch(store: RunStore, watching: StreamRequest, after: int) -> list[tuple[int, CellKey, TraceEvent]]:
    if store.last_event() <= after:  # Costs nothing, unlike a look at the table.
        return []
    if watching.question is not None:
        return list(islice(store.events(watching.run, watching.question, after=after), BATCH))
    rows = store.database.read(_NEXT, (after, watching.run, BATCH))
    return [
        (id, CellKey(run=watching.run, question=question, due=due, trial=trial), EVENT_KINDS[kind](**json.loads(body)))
        for id, question, due, trial, kind, body in rows
    ]


def sse_message(kind: str, data: Any, number: int | None = None) -> str:
    r"""One message as it goes over the line.

    >>> sse_message("end", {"after": 7}, 7)
    'id: 7\nevent: end\ndata: {"after": 7}\n\n'
    """
    id = "" if number is None else f"id: {number}\n"
    # JSON has no bare line breaks, which is what the format asks for.
    return f"{id}event: {kind}\ndata: {json.dumps(data)}\n\n"


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
