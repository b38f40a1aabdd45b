import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.models import FakeModels, ModelFault
from foretell.models.limits import LimitedModel, ModelLimits
from foretell.models.model import (
    ModelBusy,
    ModelError,
    ModelRefused,
    Reply,
    ReplyLost,
    Request,
    TokenCount,
    UserMessage,
)
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.rate_limiter import RateFlow
from foretell.models.router import open_provider

QUICK = ModelLimits(first_pause=0.001, longest_pause=5.0)


def _request(place: int = 0) -> Request:
    return Request(model="openai:m", messages=(UserMessage(text=f"q {place}"),))


def _limited(limits: ModelLimits, use: Callable[[LimitedModel, FakeModels], Awaitable[None]]) -> FakeModels:
    async def main() -> FakeModels:
        async with FakeModels(latency=0.01) as fake:
            wire = open_provider("openai:m", {"OPENAI_API_KEY": "k"}, address=f"{fake.url}/v1")
            await use(LimitedModel(wire, limits, rng=random.Random(0)), fake)
            await wire.close()
            return fake

    return asyncio.run(main())


def test_never_more_at_once_than_allowed():
    async def use(model: LimitedModel, _fake: FakeModels) -> None:
        await asyncio.gather(*[model.complete(_request(place)) for place in range(60)])

    assert _limited(ModelLimits(at_once=7), use).peak == 7


@settings(deadline=None, max_examples=60)
@given(
    limit=st.integers(2, 5000),
    gaps=st.lists(st.floats(0, 20), min_size=1, max_size=300),
    amount=st.integers(1, 3),
)
def test_no_minute_sees_more_than_the_limit(limit: int, gaps: list[float], amount: int):
    now = booked = 0.0
    flow = RateFlow(limit=limit)
    left: list[float] = []
    for gap in gaps:
        now += gap
        booked = flow.book(booked, now, amount)
        left.append(now + flow.wait(booked, now))
    for start in left:
        used = sum(amount for moment in left if start <= moment < start + 60 - 1e-6)
        assert used <= limit + max(0, amount - max(1, limit * 5 / 60)) + 1e-6


def test_requests_per_minute_hold_at_the_provider():
    async def use(model: LimitedModel, _fake: FakeModels) -> None:
        await asyncio.gather(*[model.complete(_request(place)) for place in range(26)])

    began = time.monotonic()
    times = list(_limited(ModelLimits(requests_per_minute=240, at_once=100), use).times)
    # A burst of 20, then four a second: a slow machine may only make it later.
    assert all(at - began >= max(0, place - 20) / 4 for place, at in enumerate(times))
    assert len(times) == 26


def test_tokens_that_were_not_used_are_given_back():
    async def main() -> list[float]:
        waits: list[float] = []

        class Watched:
            async def turn(self, tokens: int) -> None:
                waits.append(tokens)

            def used(self, estimate: int, actual: int) -> None:
                waits.append(estimate - actual)

            def hold(self, seconds: float) -> None:
                waits.append(seconds)

        script = ScriptedModel([Reply(tokens=TokenCount(input=10, output=5))])
        await LimitedModel(script, QUICK, pace=Watched()).complete(_request())
        return waits

    estimate, back = asyncio.run(main())
    assert back == estimate - 15


def test_busy_provider_is_asked_again():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429), times=2)
        fake.fail(ModelFault(kind="status", status=503))
        assert (await model.complete(_request())).text == "You said: q 0"

    assert _limited(QUICK, use).arrived == 4


def test_everybody_waits_when_the_provider_says_so():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429, wait=0.4))
        first = asyncio.create_task(model.complete(_request(0)))
        while fake.arrived < 1 or fake.under_way:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)  # The answer has come back by now.
        await asyncio.gather(first, *[model.complete(_request(place)) for place in range(1, 5)])

    times = list(_limited(QUICK, use).times)
    assert len(times) == 6
    assert times[1] - times[0] >= 0.39


def test_attempts_are_bounded():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=500), times=10)
        with pytest.raises(ModelError, match=r"HTTP 500.*gave up after 3 attempts") as caught:
            await model.complete(_request())
        assert not isinstance(caught.value, ModelBusy)

    assert _limited(ModelLimits(attempts=3, first_pause=0.001), use).arrived == 3


def test_a_wait_beyond_patience_is_not_waited_for():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429, wait=3600))
        with pytest.raises(ModelError, match="gave up after 1 attempts"):
            await model.complete(_request())

    _limited(ModelLimits(total_seconds=60), use)


def test_refusal_is_not_tried_again():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=400))
        with pytest.raises(ModelRefused):
            await model.complete(_request())

    assert _limited(QUICK, use).arrived == 1


def test_every_call_ends_in_time():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="slow", seconds=30), times=2)
        with pytest.raises(ModelError, match=r"no answer within 0\.05 s") as caught:
            await model.complete(_request())
        assert isinstance(caught.value.__cause__, ReplyLost)

    _limited(ModelLimits(seconds=0.05, attempts=2, first_pause=0.001), use)
