"""Waiting for replies: time limits of replies and trials, and the status text for users."""

import asyncio
import json

import pytest
from aiohttp import web

from foretell.models import waiting
from foretell.models.limited_model import LimitedModel
from foretell.models.limits import ModelLimits
from foretell.models.model import ModelError, Reply, ReplyLost, Request, UserMessage
from foretell.models.providers.chat import ChatApi
from foretell.models.providers.client import HttpAnswer, HttpModel
from foretell.models.router import open_provider
from foretell.models.waiting import (
    PendingWork,
    WaitingReply,
    WorkClock,
    asking_for,
    note_retry,
    pending_work,
    waiting_text,
)

REQUEST = Request(model="compat:m@http://127.0.0.1:9/v1", messages=(UserMessage(text="?"),))


class SlowModel:
    """Takes a second and a half, with or without streaming."""

    def __init__(self, *, writes: bool) -> None:
        self.writes = writes

    async def complete(self, request: Request) -> Reply:
        with WaitingReply() as reply:
            for _ in range(15):
                await asyncio.sleep(0.1)
                if self.writes:
                    reply.heard(1)
        return Reply(text="done")


@pytest.mark.parametrize("writes", [True, False])
def test_reply_ends_at_its_time_limit_even_while_it_streams(writes: bool):
    with pytest.raises(ModelError, match="reply_seconds") as caught:
        asyncio.run(LimitedModel(SlowModel(writes=writes), ModelLimits(seconds=0.5, attempts=1)).complete(REQUEST))
    assert isinstance(caught.value.__cause__, ReplyLost)
    reply = asyncio.run(LimitedModel(SlowModel(writes=writes), ModelLimits(seconds=60.0)).complete(REQUEST))
    assert reply.text == "done"


def test_endless_stream_is_cut_off():
    """Each attempt may have been billed, and the connection to the server is closed."""
    ended: list[str] = []

    async def write_for_ever(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b'data: {"choices": [{"delta": {"content": "more "}}]}\n\n')
                await asyncio.sleep(0.01)
        except (ConnectionError, asyncio.CancelledError):
            ended.append("gone")
            raise
        return answer

    async def main() -> BaseException:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", write_for_ever)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model = open_provider(f"compat:m@http://127.0.0.1:{runner.addresses[0][1]}/v1", {})
        limits = ModelLimits(seconds=0.5, attempts=2, first_pause=0.01)
        try:
            with pytest.raises(ModelError, match="gave no complete answer within") as caught:
                await LimitedModel(model, limits).complete(REQUEST)
            return caught.value
        finally:
            await model.close()
            await runner.cleanup()

    error = asyncio.run(main())
    assert isinstance(error.__cause__, ReplyLost)
    assert ended == ["gone", "gone"]


async def _ask_repeatedly(model: object, clock: WorkClock, times: int = 1) -> None:
    async with clock:
        for _ in range(times):
            await LimitedModel(model, ModelLimits(seconds=5.0, attempts=1)).complete(REQUEST)  # pyright: ignore[reportArgumentType]


def test_reply_that_is_arriving_may_finish(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(waiting, "LOOK_AGAIN", 0.1)
    asyncio.run(_ask_repeatedly(SlowModel(writes=True), WorkClock(0.5, replies=1)))
    with pytest.raises(TimeoutError):  # An explicit limit is not extended.
        asyncio.run(_ask_repeatedly(SlowModel(writes=True), WorkClock(0.5)))
    with pytest.raises(TimeoutError):
        asyncio.run(_ask_repeatedly(SlowModel(writes=False), WorkClock(0.5, replies=1)))


def test_time_limit_follows_the_measured_speed():
    class Steady:
        async def complete(self, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            return Reply(text="done")

    clock = WorkClock(0.25, replies=8)
    asyncio.run(_ask_repeatedly(Steady(), clock, times=8))
    assert clock.seconds >= 8 * 1.5 * 0.1
    with pytest.raises(TimeoutError):
        asyncio.run(_ask_repeatedly(Steady(), WorkClock(0.25), times=8))


def test_waiting_for_a_turn_does_not_count_as_work_time():
    async def main() -> None:
        class Steady:
            async def complete(self, request: Request) -> Reply:
                await asyncio.sleep(0.05)
                return Reply(text="done")

        limited = LimitedModel(Steady(), ModelLimits(at_once=1))

        async def trial() -> None:
            async with WorkClock(0.2):
                await limited.complete(REQUEST)

        await asyncio.gather(*(trial() for _ in range(10)))

    asyncio.run(main())


def test_cancellation_from_outside_is_not_a_timeout():
    async def main() -> None:
        async def trial() -> None:
            async with WorkClock(60.0):
                await asyncio.sleep(60)

        task = asyncio.create_task(trial())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_waiting_text_shows_seconds_or_speed():
    assert waiting_text() == ""
    with WaitingReply() as reply:
        assert waiting_text(reply.began + 7) == "waiting for the model, 7 s"
        reply.heard(30)
        assert reply.first is not None
        assert waiting_text(reply.first + 10) == "waiting for the model, 3 tokens/s"
        assert waiting_text(reply.first + 1) == "waiting for the model, 30 tokens/s"
    assert waiting_text() == ""


def test_pending_work_is_listed_by_trial_without_what_waits_for_other_work():
    with asking_for("r", "q", "2026-01-01", 2):
        search = PendingWork("tool", "web_search", "bridge vote")
        with search, PendingWork("model", "filter", "test:m"), WaitingReply() as reply:
            reply.heard(12)
            note_retry("the provider is busy")
            ((trial, [work]),) = pending_work().items()
            assert trial == ("r", "q", "2026-01-01", 2)
            assert (work["kind"], work["name"], work["about"]) == ("model", "filter", "test:m")
            assert (work["tokens"], work["retries"], work["problem"]) == (12, 1, "the provider is busy")
        with search:
            assert [work["name"] for work in pending_work()["r", "q", "2026-01-01", 2]] == ["web_search"]
    assert pending_work() == {}


class OldServer(HttpModel):
    """Streams, but does not know the option for token counts."""

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


def test_refused_stream_options_are_dropped():
    model = OldServer(ChatApi(stream=True), "http://127.0.0.1:9/v1")
    model.sent = []
    for _ in range(2):
        reply = asyncio.run(model.complete(REQUEST))
        assert (reply.text, reply.tokens.estimated) == ("today", True)
    assert ["stream_options" in body for body in model.sent] == [True, False, False]
