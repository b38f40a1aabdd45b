"""Server-sent events from the event store: live while a run is going on, and the same again afterwards."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from functools import partial
from itertools import islice
from typing import Annotated, Any, cast

from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from foretell.models.waiting import waiting_text
from foretell.questions.trace import BeliefRevised, ForecastMade, ToolUsed, TraceEvent
from foretell.runs.store import CellKey, RunStore, stored_row
from foretell.web.event_watch import EventWatch
from foretell.web.middleware import problem_response
from foretell.web.state import WebState

BATCH = 200
# Written so that no index on the run is used: one would have all events of a large run sorted for every batch.
_NEXT_SQL = """
select id, question, due, trial, kind, body from event where id > ? and run || '' = ? order by id limit ?"""
SIGN_OF_LIFE_SECONDS = 15.0
"""Seconds between keep-alive messages on a silent connection."""
WAITING_SECONDS = 2.0
"""Seconds between updates on how fast a model's reply is arriving."""
RETRY_SECONDS = 5
"""Seconds after which a refused client may retry."""
MESSAGE = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "event": {"enum": ["told", "waiting", "end"]}, "data": {"type": "string"}},
}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": (
            "Messages: `event_to_dict` for each event, with the store's number as its id; `waiting` with a text while "
            "a model replies; at last `end`."
        ),
        "content": {"text/event-stream": {"schema": MESSAGE}},
    },
}
"""OpenAPI description of a stream's response."""
After = Annotated[int, Query(ge=0, le=2**62, description="Only events after this number.")]
Brief = Annotated[bool, Query(description="Only that something happened, without texts.")]


class EventStream(StreamingResponse):
    """A stream that is counted against its client's limit while it is open, or refused with the reason."""

    def __init__(self, watch: EventWatch, client: str, messages: AsyncGenerator[str]) -> None:
        super().__init__(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._watch = watch
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the run is over or the client disconnects."""
        if refusal := self._watch.refusal(self._client):
            answer = problem_response(Request(scope), 503, refusal)
            answer.headers["Retry-After"] = str(RETRY_SECONDS)
            await answer(scope, receive, send)
            return
        with self._watch.place(self._client):
            await super().__call__(scope, receive, send)


def stream(
    request: Request, here: WebState, run: str, question: str | None = None, *, after: int, brief: bool
) -> StreamingResponse:
    """Stream all events of a run, or of one question of it; a browser that reconnects continues where it was."""
    heard = request.headers.get("last-event-id", "")
    after = int(heard) if heard.isascii() and heard.isdecimal() and len(heard) < 19 else after
    messages = _messages(here, run, question, after, brief)
    return EventStream(here.watch, request.client.host if request.client else "", messages)


async def _messages(here: WebState, run: str, question: str | None, after: int, brief: bool) -> AsyncGenerator[str]:
    yield "retry: 1000\n\n"
    async with here.watch.listening(run, question) as watched:
        if after > await run_in_threadpool(here.store.last_event):
            # Numbers that are gone belonged to a cell that was begun anew: what is there now is sent from its start.
            after = 0
        while not here.leaving.is_set():  # Then the line just ends: the browser comes back and goes on where it was.
            # Asked before reading: what is written in between is read now or next time, but never missed.
            finished, news = watched.over, watched.news
            newest = await here.watch.shared(("newest", news), here.store.last_event)
            piece = partial(_piece, here.store, run, question, after, brief)
            last, text = cast(Piece, await here.watch.shared((run, question, after, brief, newest), piece))
            if text:
                after = last
                yield text
            elif finished:
                yield _message("end", {"after": after}, after)
                return
            else:
                async for text in _while_silent(news, partial(waiting_text, run=run, question=question), after):
                    yield text


async def _while_silent(news: asyncio.Event, waiting: Callable[[], str], after: int) -> AsyncGenerator[str]:
    """Yield messages until there is news: how fast a reply is arriving, whenever that changes, or a keep-alive."""
    told = ""
    for _ in range(round(SIGN_OF_LIFE_SECONDS / WAITING_SECONDS)):
        if (text := waiting()) != told:
            told = text
            yield _message("waiting", {"text": text}, after)
        if await _wait(news, WAITING_SECONDS):
            return
    yield ": waiting\n\n"


async def _wait(news: asyncio.Event, seconds: float) -> bool:
    """Whether there was news within this many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await news.wait()
    except TimeoutError:
        return False


Piece = tuple[int, str]
"""Number of the last event in the chunk, and its messages as text."""


def _piece(store: RunStore, run: str, question: str | None, after: int, brief: bool) -> Piece:
    batch = _batch(store, run, question, after)
    if not batch:
        return after, ""
    # All at once: thousands of small pieces would take their time.
    text = "".join(_message("told", event_to_dict(*one, brief=brief), one[0]) for one in batch)
    return batch[-1][0], text


def _batch(store: RunStore, run: str, question: str | None, after: int) -> list[tuple[int, CellKey, TraceEvent]]:
    if store.last_event() <= after:  # Costs nothing, unlike a look at the table.
        return []
    if question is not None:
        return list(islice(store.events(run, question, after=after), BATCH))
    return [
        (id, CellKey(run=run, question=asked, due=due, trial=trial), stored_row("event", (run, id, kind, body)))
        for id, asked, due, trial, kind, body in store.database.read(_NEXT_SQL, (after, run, BATCH))
    ]


def _message(kind: str, data: Any, number: int) -> str:
    # JSON has no bare line breaks, which is what the format asks for.
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"


def event_to_dict(number: int, key: CellKey, event: TraceEvent, *, brief: bool = False) -> dict[str, Any]:
    """Convert an event to plain data for JSON, with the cell it happened in."""
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
