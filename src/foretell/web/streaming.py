"""Server-sent events from the event store: live while a run is going on, and the same again afterwards."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, cast

from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from foretell.questions.trace import BeliefRevised, ForecastMade, ToolUsed, TraceEvent
from foretell.runs.store import RunStore, TrialKey
from foretell.web.event_watch import EventWatch
from foretell.web.middleware import problem_response
from foretell.web.state import WebState

BATCH = 200
HEARTBEAT_SECONDS = 2.0
"""Seconds between messages on a silent connection; pages count a connection as lost after a few of them."""
RETRY_SECONDS = 5
"""Seconds after which a refused client may retry."""
MESSAGE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"enum": ["progress", "heartbeat", "end"]},
        "data": {"type": "string"},
    },
}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": (
            "Messages: `event_to_dict` for each event, with the store's number as its id; a `heartbeat` with the "
            "server's time while nothing happens, whose `pending` changes with what trials wait for; at last `end`."
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
    last_id = request.headers.get("last-event-id", "")
    after = int(last_id) if last_id.isascii() and last_id.isdecimal() and len(last_id) < 19 else after
    messages = _messages(here, run, question, after, brief)
    return EventStream(here.watch, request.client.host if request.client else "", messages)


async def _messages(here: WebState, run: str, question: str | None, after: int, brief: bool) -> AsyncGenerator[str]:
    yield "retry: 1000\n\n"
    async with here.watch.listening(run, question) as watched:
        if after > await run_in_threadpool(here.store.last_event):
            # A trial was started again and its events were deleted, so send all events from the start.
            after = 0
        while not here.leaving.is_set():  # The browser reconnects and continues where it was.
            # Check before reading, so that no event in between is missed.
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
                yield _message("heartbeat", {"at": time.time(), "pending": watched.pending}, after)
                await _wait(news, HEARTBEAT_SECONDS)


async def _wait(news: asyncio.Event, seconds: float) -> None:
    """Wait for news, at most this many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()


Piece = tuple[int, str]
"""Number of the last event in the chunk, and its messages as text."""


def _piece(store: RunStore, run: str, question: str | None, after: int, brief: bool) -> Piece:
    # The comparison is much cheaper than reading the table.
    batch = list(store.events(run, question, after=after, limit=BATCH)) if store.last_event() > after else []
    if not batch:
        return after, ""
    # Send one text: thousands of small ones would be slow.
    text = "".join(_message("progress", event_to_dict(*event, brief=brief), event[0]) for event in batch)
    return batch[-1][0], text


def _message(kind: str, data: Any, number: int) -> str:
    # JSON has no bare line breaks, as the format requires.
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"


def event_to_dict(number: int, key: TrialKey, event: TraceEvent, *, brief: bool = False) -> dict[str, Any]:
    """Convert an event to plain data for JSON, with its question and trial."""
    place = {"id": number, "question": key.question, "due": key.due, "trial": key.trial, "kind": type(event).__name__}
    if not brief:
        return {**place, **event.time_fields, "event": vars(event)}
    match event:
        case BeliefRevised():
            return {**place, "step": event.step, "p": dict(event.p)}
        case ToolUsed():
            return {**place, "step": event.step, "tool": event.tool}
        case ForecastMade():
            return {**place, "p": dict(event.p)}
        case _:
            return place
