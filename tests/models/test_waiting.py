"""Replies that come in piece by piece: silence ends a wait, slowness does not, and a person sees the speed."""

import asyncio
import json

import pytest

from foretell.models import (
    LimitedModel,
    ModelError,
    ModelLimits,
    Reply,
    Request,
    UserMessage,
    WaitingReply,
    waiting,
    waiting_text,
)
from foretell.models.providers import ChatWire, HttpAnswer, HttpModel

REQUEST = Request(model="compat:m@http://127.0.0.1:9/v1", messages=(UserMessage(text="?"),))


class SlowModel:
    """Takes longer than the limit; writes all the time or says nothing."""

    def __init__(self, *, writes: bool) -> None:
        self.writes = writes

    async def complete(self, request: Request) -> Reply:
        with WaitingReply() as reply:
            for _ in range(15):
                await asyncio.sleep(0.2)
                if self.writes:
                    reply.heard(1)
        return Reply(text="done")


def test_a_slow_reply_is_waited_for_and_silence_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(waiting, "TOLD_EVERY", 0.0)
    limits = ModelLimits(seconds=2.0, attempts=1)
    reply = asyncio.run(LimitedModel(SlowModel(writes=True), limits).complete(REQUEST))
    assert reply.text == "done"
    with pytest.raises(ModelError, match="reply-seconds"):
        asyncio.run(LimitedModel(SlowModel(writes=False), limits).complete(REQUEST))


def test_what_a_person_sees_while_waiting():
    assert waiting_text() == ""
    with WaitingReply() as reply:
        assert waiting_text(reply.began + 7) == "waiting for the model, 7 s"
        reply.heard(30)
        assert reply.first is not None
        assert waiting_text(reply.first + 10) == "waiting for the model, 3 tokens/s"
        assert waiting_text(reply.first + 1) == "waiting for the model, 30 tokens/s"
    assert waiting_text() == ""


class OldServer(HttpModel):
    """Streams, but does not know the option that asks for the count of tokens."""

    sent: list[dict[str, object]]

    async def _send(self, request: Request, path: str, data: bytes | None = None) -> HttpAnswer:
        body = json.loads(data or b"{}")
        self.sent.append(body)
        if "stream_options" in body:
            error = {"error": {"message": "unknown field stream_options"}}
            return HttpAnswer(status=400, headers={}, body=json.dumps(error).encode())
        chunks = [{"choices": [{"delta": {"content": word}}]} for word in ("to", "day")]
        chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        return HttpAnswer(status=200, headers={"content-type": "text/event-stream"}, body=text.encode())


def test_a_server_that_refuses_the_options_of_a_stream_is_asked_without_them():
    model = OldServer(ChatWire(stream=True), "http://127.0.0.1:9/v1")
    model.sent = []
    for _ in range(2):
        reply = asyncio.run(model.complete(REQUEST))
        assert (reply.text, reply.tokens.estimated) == ("today", True)
    assert ["stream_options" in body for body in model.sent] == [True, False, False]
