"""The batch tier against strict stand-ins: gathered, paid once and at half the price, also by who was killed."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from foretell.models import (
    Journal,
    ModelError,
    ModelLimits,
    ModelRouter,
    ModelSettings,
    PriceList,
    Reply,
    Request,
    TokenPrice,
    UserMessage,
)
from foretell.models.providers import batches
from foretell.practice.models import PracticeModels
from models.batch_server import BatchProvider, serving
from models.strict_servers import Json

MODELS = {"openai": "openai:gpt-6-sol", "anthropic": "anthropic:claude-haiku-5-5", "google": "google:gemini-3.8-flash"}
KEYS = {"OPENAI_API_KEY": "k-secret", "ANTHROPIC_API_KEY": "k-secret", "GOOGLE_API_KEY": "k-secret"}
USUAL = 100 * 1.0 / 1e6 + 10 * 10.0 / 1e6
"""Dollars of a reply outside of a batch."""


def requests(model: str, *words: str) -> list[Request]:
    settings = ModelSettings(tier="batch", max_tokens=30_000)
    return [
        Request(model=model, messages=(UserMessage(text=f"about {word}"),), settings=settings, slot=word)
        for word in words
    ]


async def ask(url: str, journal: Journal | None, asked: list[Request], attempts: int = 1) -> list[Any]:
    place = asked[0].model.partition(":")[0]
    addresses = {place: f"{url}/v1" if place == "openai" else url}
    prices = PriceList({request.model: TokenPrice(input=1, output=10) for request in asked})
    limits = {place: ModelLimits(attempts=attempts, first_pause=0.01, at_once=1_000)}
    router = ModelRouter(KEYS, journal=journal, prices=prices, limits=limits, addresses=addresses)
    async with router:
        return await asyncio.gather(*map(router.complete, asked), return_exceptions=True)


@pytest.fixture
def provider() -> BatchProvider:
    return BatchProvider()


@pytest.fixture
def url(provider: BatchProvider, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("GATHER_SECONDS", "FIRST_POLL", "LONGEST_POLL"):
        monkeypatch.setattr(batches, name, 0.05)
    with serving(provider) as address:
        yield address


@pytest.mark.parametrize("service", MODELS)
def test_many_requests_are_one_batch_at_half_the_price(service: str, provider: BatchProvider, url: str, tmp_path: Path):
    provider.open.set()
    words = [f"w{n}" for n in range(40)]
    with closing(Journal(tmp_path / "j.db")) as journal:
        replies = asyncio.run(ask(url, journal, requests(MODELS[service], *words)))
        assert [reply.text for reply in replies if isinstance(reply, Reply)] == words
        assert [len(bodies) for bodies in provider.batches.values()] == [40]
        spent = journal.spent()[MODELS[service]]
        assert spent.dollars == pytest.approx(40 * USUAL / 2)
        assert (journal.sends(), journal.maybe_paid()) == (40, 0)
        # What is in the journal is not asked again, nor by a process that has only the journal.
        again = asyncio.run(ask(url, journal, requests(MODELS[service], *words)))
    assert again == replies
    assert len(provider.batches) == 1


@pytest.mark.parametrize("service", MODELS)
def test_what_ends_badly_is_told_and_not_billed(service: str, provider: BatchProvider, url: str, tmp_path: Path):
    """One refused, one expired, one lost: only the last may have been billed, and all may be asked again."""
    provider.open.set()
    provider.endings = {"odd": "refused", "late": "expired", "gone": "lost"}
    with closing(Journal(tmp_path / "j.db")) as journal:
        asked = requests(MODELS[service], "fine", "odd", "late", "gone")
        fine, odd, late, gone = asyncio.run(ask(url, journal, asked))
        assert fine.text == "fine"
        assert isinstance(odd, ModelError)
        assert "the prompt is odd" in str(odd)
        assert isinstance(late, ModelError)
        assert "expired before it was answered; it is not billed" in str(late)
        # Where everything that is missing has expired, nobody can tell a lost reply from those.
        missing = service == "anthropic"
        assert isinstance(gone, ModelError)
        assert ("holds no reply" if missing else "expired") in str(gone)
        assert journal.maybe_paid() == (1 if missing else 0)
        assert journal.spent()[MODELS[service]].calls == 1
        provider.endings = {}
        replies = asyncio.run(ask(url, journal, asked))
        assert [reply.text for reply in replies] == ["fine", "odd", "late", "gone"]
        assert [len(bodies) for bodies in provider.batches.values()] == [4, 3]
        assert "k-secret" not in f"{odd}{late}{gone}"


def test_an_expired_request_goes_into_the_next_batch(provider: BatchProvider, url: str):
    """By itself, without a journal, as often as other calls are tried again."""
    provider.open.set()
    provider.endings = {"late": "expired"}
    took = provider.took

    def second_is_fine(bodies: dict[str, Json]) -> str:
        provider.endings = {} if provider.batches else provider.endings
        return took(bodies)

    provider.took = second_is_fine
    replies = asyncio.run(ask(url, None, requests(MODELS["anthropic"], "late", "fine"), attempts=3))
    assert [reply.text for reply in replies] == ["late", "fine"]
    assert [len(bodies) for bodies in provider.batches.values()] == [2, 1]


def test_a_batch_that_is_refused_as_a_whole_says_why(
    provider: BatchProvider, url: str, monkeypatch: pytest.MonkeyPatch
):
    provider.open.set()
    provider.state = "failed"
    (told,) = asyncio.run(ask(url, None, requests(MODELS["openai"], "a")))
    assert "line 1 is no JSON" in str(told)
    (told,) = asyncio.run(ask(f"{url}/nothing", None, requests(MODELS["openai"], "a")))
    assert "HTTP 404" in str(told)
    monkeypatch.setattr(batches, "MOST_REQUESTS", 2)
    provider.state = ""
    replies = asyncio.run(ask(url, None, requests(MODELS["openai"], "a", "b", "c", "d", "e")))
    assert [reply.text for reply in replies] == ["a", "b", "c", "d", "e"]
    assert sorted(len(bodies) for bodies in provider.batches.values()) == [1, 1, 2, 2]


CHILD = """
import asyncio, sys
sys.path[:0] = {path!r}
from contextlib import closing
from foretell.models import Journal
from foretell.models.providers import batches
from models.test_batches import ask, requests
batches.GATHER_SECONDS = batches.FIRST_POLL = batches.LONGEST_POLL = 0.05
with closing(Journal(sys.argv[2])) as journal:
    asyncio.run(ask(sys.argv[1], journal, requests(sys.argv[3], "a", "b", "c")))
"""


def test_who_is_killed_while_waiting_finds_the_batch_again(provider: BatchProvider, url: str, tmp_path: Path):
    path = tmp_path / "j.db"
    child = subprocess.Popen([sys.executable, "-c", CHILD.format(path=sys.path), url, str(path), MODELS["openai"]])
    try:
        while provider.looks < 2:  # It is handed in, written down, and waited for.
            assert child.poll() is None
            time.sleep(0.01)
    finally:
        child.kill()
    assert child.wait() == -signal.SIGKILL
    provider.open.set()
    with closing(Journal(path)) as journal:
        assert journal.maybe_paid() == 3
        replies = asyncio.run(ask(url, journal, requests(MODELS["openai"], "a", "b", "c", "d")))
        assert [reply.text for reply in replies] == ["a", "b", "c", "d"]
        assert [len(bodies) for bodies in provider.batches.values()] == [3, 1]
        assert (journal.maybe_paid(), journal.sends()) == (0, 4)
        assert journal.spent()[MODELS["openai"]].dollars == pytest.approx(4 * USUAL / 2)


def test_a_provider_without_batches_answers_at_once_at_its_price():
    """A setting that a provider does not have is left out, and not booked."""

    async def main() -> tuple[Any, list[Json]]:
        seen: list[Json] = []

        async def post(request: web.Request) -> web.Response:
            seen.append(await request.json())
            usage = {"prompt_tokens": 100, "completion_tokens": 10}
            return web.json_response({"choices": [{"message": {"content": "now"}}], "usage": usage})

        app = web.Application()
        app.router.add_post("/chat/completions", post)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model = f"compat:m@http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with ModelRouter({}) as router:
                return await router.complete(requests(model, "a")[0]), seen
        finally:
            await runner.cleanup()

    reply, seen = asyncio.run(main())
    assert (reply.text, reply.tier) == ("now", "standard")
    assert "service_tier" not in seen[0]


@pytest.mark.parametrize("provider_name", list(MODELS))
def test_the_practice_world_answers_batches(provider_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "GATHER_SECONDS", 0.01)

    async def main() -> list[Any]:
        async with PracticeModels() as world:
            return await ask(world.url, None, requests(MODELS[provider_name], "rain", "snow"))

    replies = asyncio.run(main())
    assert all(isinstance(reply, Reply) and reply.text and reply.finish == "stop" for reply in replies), replies
