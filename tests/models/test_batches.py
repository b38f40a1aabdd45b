"""The batch tier with strict fakes: requests are collected and paid once at half the price, even after a kill."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.model import ModelError, ModelSettings, OutOfCredit, Reply, Request, UserMessage
from foretell.models.prices import PriceList
from foretell.models.providers import batches
from foretell.models.router import ModelRouter
from foretell.models.token_price import TokenPrice
from foretell.practice.models.server import PracticeModels
from models.batch_server import BatchProvider, NoRoom, serving
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


async def ask(
    url: str, journal: Journal | None, batch: list[Request], *, attempts: int = 1, total_seconds: float = 60.0
) -> list[Any]:
    place = batch[0].model.partition(":")[0]
    addresses = {place: f"{url}/v1" if place == "openai" else url}
    prices = PriceList({request.model: TokenPrice(input=1, output=10) for request in batch})
    limits = {place: ModelLimits(attempts=attempts, first_pause=0.01, at_once=1_000, total_seconds=total_seconds)}
    router = ModelRouter(KEYS, journal=journal, prices=prices, limits=limits, addresses=addresses)
    async with router:
        model = router.within(Budget("run", run="run"))
        return await asyncio.gather(*map(model.complete, batch), return_exceptions=True)


@pytest.fixture
def provider() -> BatchProvider:
    return BatchProvider()


@pytest.fixture
def url(provider: BatchProvider, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("GATHER_SECONDS", "FIRST_POLL", "LONGEST_POLL", "FIRST_WAIT", "LONGEST_WAIT"):
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
        assert (journal.sends(), journal.ledger.lost_calls()) == (40, 0)
        # Replies in the journal are not requested again, not even by another process.
        again = asyncio.run(ask(url, journal, requests(MODELS[service], *words)))
    assert again == replies
    assert len(provider.batches) == 1


@pytest.mark.parametrize("service", MODELS)
def test_refused_and_lost_requests_of_a_batch_are_reported(
    service: str, provider: BatchProvider, url: str, tmp_path: Path
):
    """Of a refused and a lost request, only the lost one may have been billed. Both may be sent again."""
    provider.open.set()
    provider.endings = {"odd": "refused", "gone": "lost"}
    with closing(Journal(tmp_path / "j.db")) as journal:
        batch = requests(MODELS[service], "fine", "odd", "gone")
        fine, odd, gone = asyncio.run(ask(url, journal, batch))
        assert fine.text == "fine"
        assert isinstance(odd, ModelError)
        assert "the prompt is odd" in str(odd)
        assert isinstance(gone, ModelError)
        assert "holds no reply" in str(gone)
        assert journal.ledger.lost_calls() == 1
        assert journal.spent()[MODELS[service]].calls == 1
        provider.endings = {}
        replies = asyncio.run(ask(url, journal, batch))
        assert [reply.text for reply in replies] == ["fine", "odd", "gone"]
        assert [len(bodies) for bodies in provider.batches.values()] == [3, 2]
        assert "k-secret" not in f"{odd}{gone}"


def better_after(provider: BatchProvider, batches_before: int) -> None:
    """Let all batches succeed after this number of batches."""
    took = provider.took

    def later_is_fine(bodies: dict[str, Json]) -> str:
        if len(provider.batches) >= batches_before:
            provider.endings, provider.room = {}, None
        return took(bodies)

    provider.took = later_is_fine


@pytest.mark.parametrize("service", MODELS)
@pytest.mark.parametrize("ending", ["expired", "overloaded"])
def test_expired_requests_are_submitted_in_the_next_batch(
    service: str, ending: str, provider: BatchProvider, url: str, tmp_path: Path
):
    """This needs only one attempt and is repeated as often as necessary. Expired requests are not billed."""
    provider.open.set()
    provider.endings = {"late": ending}
    better_after(provider, 7)
    with closing(Journal(tmp_path / "j.db")) as journal:
        replies = asyncio.run(ask(url, journal, requests(MODELS[service], "late", "fine")))
        assert [reply.text for reply in replies] == ["late", "fine"]
        assert [len(bodies) for bodies in provider.batches.values()] == [2, *[1] * 7]
        assert journal.ledger.lost_calls() == 0
        assert journal.spent()[MODELS[service]].dollars == pytest.approx(2 * USUAL / 2)


@pytest.mark.parametrize("service", MODELS)
@pytest.mark.parametrize("status", [429, 503, 529])
def test_refused_batch_waits_and_stays_together(
    service: str, status: int, provider: BatchProvider, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(batches, "REFUSALS_BEFORE_HALVING", 100)
    provider.open.set()
    provider.refusals = [status] * 8
    with closing(Journal(tmp_path / "j.db")) as journal:
        replies = asyncio.run(ask(url, journal, requests(MODELS[service], *"abcde")))
        assert [reply.text for reply in replies] == [*"abcde"]
        assert journal.ledger.lost_calls() == 0
    assert provider.refused == [5] * 8
    assert [len(bodies) for bodies in provider.batches.values()] == [5]


def test_pauses_grow_up_to_ten_minutes_and_one_refusal_counts_once():
    async def main() -> list[float]:
        queue, loop = batches.BatchQueue(batches.AnthropicBatches()), asyncio.get_running_loop()
        room = queue._rooms["m"]
        pauses: list[float] = []
        for place in range(8):
            for _ in range(3):  # Each request of the batch reports the refusal.
                queue._defer("m", f"b{place}")
            pauses.append(room.opens - loop.time())
            room.opens = 0.0
        queue._defer("m", "", wait=1e9)
        return [*pauses, room.opens - loop.time()]

    assert asyncio.run(main()) == pytest.approx([30, 60, 120, 240, 480, 600, 600, 600, 600], abs=5)


def test_requests_without_waiting_callers_are_not_submitted(provider: BatchProvider, url: str):
    provider.open.set()
    provider.refusals = [429] * 3

    async def both() -> list[Any]:
        place = {"openai": f"{url}/v1"}
        async with ModelRouter(KEYS, addresses=place, limits={"openai": ModelLimits(at_once=9)}) as router:
            stays, leaves = (
                asyncio.create_task(router.complete(request)) for request in requests(MODELS["openai"], "a", "b")
            )
            while len(provider.refused) < 2:
                await asyncio.sleep(0.01)
            leaves.cancel()
            return await asyncio.gather(stays, leaves, return_exceptions=True)

    stays, leaves = asyncio.run(both())
    assert stays.text == "a"
    assert isinstance(leaves, asyncio.CancelledError)
    assert [len(bodies) for bodies in provider.batches.values()] == [1]


@pytest.mark.parametrize("service", ["openai", "google"])
def test_batch_that_failed_for_lack_of_room_waits_and_stays_together(
    service: str, provider: BatchProvider, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """OpenAI accepts a batch first and reports later that too many tokens are enqueued."""
    monkeypatch.setattr(batches, "REFUSALS_BEFORE_HALVING", 100)
    provider.open.set()
    provider.room = 0
    better_after(provider, 7)
    with closing(Journal(tmp_path / "j.db")) as journal:
        replies = asyncio.run(ask(url, journal, requests(MODELS[service], *"abcde")))
        assert [reply.text for reply in replies] == [*"abcde"]
        assert journal.ledger.lost_calls() == 0
        assert journal.spent()[MODELS[service]].dollars == pytest.approx(5 * USUAL / 2)
    assert [len(bodies) for bodies in provider.batches.values()] == [5] * 8


def test_a_batch_that_never_fits_is_submitted_in_parts(provider: BatchProvider, url: str):
    provider.open.set()
    provider.room = 3
    replies = asyncio.run(ask(url, None, requests(MODELS["openai"], *"abcdefgh")))
    assert [reply.text for reply in replies] == [*"abcdefgh"]
    answered = [len(bodies) for bodies in provider.batches.values() if len(bodies) <= 3]
    assert sum(answered) == 8
    assert len(answered) <= 5
    assert provider.refused[:3] == [8, 8, 8]


def test_waiting_for_room_ends_with_the_time_for_all_attempts(provider: BatchProvider, url: str):
    provider.refusals = [429] * 1_000
    (error,) = asyncio.run(ask(url, None, requests(MODELS["anthropic"], "a"), total_seconds=1.0))
    assert isinstance(error, ModelError)
    assert "gave up" in str(error) or "within" in str(error)
    assert not provider.batches
    assert len(provider.refused) > 5


def test_batch_fails_immediately_without_credit(provider: BatchProvider, url: str):
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}

    def took(bodies: dict[str, Json]) -> str:
        full = NoRoom(429)
        full.body = body
        raise full

    provider.took = took
    (error,) = asyncio.run(ask(url, None, requests(MODELS["openai"], "a")))
    assert isinstance(error, OutOfCredit)


class RecordingJournal(Journal):
    """Records the calls of `posting` and `not_posted`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.calls: list[tuple[str, int, int]] = []
        self.provider: BatchProvider | None = None

    def posting(self, keys: Sequence[str]) -> None:
        assert self.provider is not None
        self.calls.append(("posting", len(keys), len(self.provider.batches)))

    def not_posted(self, keys: Sequence[str]) -> None:
        assert self.provider is not None
        self.calls.append(("not posted", len(keys), len(self.provider.batches)))


@pytest.mark.parametrize("service", MODELS)
def test_journal_records_a_batch_before_it_may_be_billed(
    service: str, provider: BatchProvider, url: str, tmp_path: Path
):
    provider.open.set()
    provider.refusals = [429]
    with closing(RecordingJournal(tmp_path / "j.db")) as journal:
        journal.provider = provider
        asyncio.run(ask(url, journal, requests(MODELS[service], "a", "b")))
        assert journal.calls == [("posting", 2, 0), ("not posted", 2, 0), ("posting", 2, 0)]


def test_refused_batch_reports_the_reason(provider: BatchProvider, url: str, monkeypatch: pytest.MonkeyPatch):
    provider.open.set()
    provider.state = "failed"
    (error,) = asyncio.run(ask(url, None, requests(MODELS["openai"], "a")))
    assert "line 1 is no JSON" in str(error)
    (error,) = asyncio.run(ask(f"{url}/nothing", None, requests(MODELS["openai"], "a")))
    assert "HTTP 404" in str(error)
    monkeypatch.setattr(batches, "MOST_REQUESTS", 2)
    provider.state = ""
    replies = asyncio.run(ask(url, None, requests(MODELS["openai"], "a", "b", "c", "d", "e")))
    assert [reply.text for reply in replies] == ["a", "b", "c", "d", "e"]
    assert sorted(len(bodies) for bodies in provider.batches.values()) == [1, 1, 2, 2]


CHILD = """
import asyncio, sys
sys.path[:0] = {path!r}
from contextlib import closing
from foretell.models.journal import Journal
from foretell.models.providers import batches
from models.test_batches import ask, requests
batches.GATHER_SECONDS = batches.FIRST_POLL = batches.LONGEST_POLL = 0.05
with closing(Journal(sys.argv[2])) as journal:
    asyncio.run(ask(sys.argv[1], journal, requests(sys.argv[3], "a", "b", "c")))
"""


def test_killed_process_finds_its_batch_again(provider: BatchProvider, url: str, tmp_path: Path):
    path = tmp_path / "j.db"
    child = subprocess.Popen([sys.executable, "-c", CHILD.format(path=sys.path), url, str(path), MODELS["openai"]])
    try:
        while provider.looks < 2:  # The batch is submitted, recorded and polled.
            assert child.poll() is None
            time.sleep(0.01)
    finally:
        child.kill()
    assert child.wait() == -signal.SIGKILL
    provider.open.set()
    with closing(Journal(path)) as journal:
        assert journal.ledger.money("run").reserved > 0
        replies = asyncio.run(ask(url, journal, requests(MODELS["openai"], "a", "b", "c", "d")))
        assert [reply.text for reply in replies] == ["a", "b", "c", "d"]
        assert [len(bodies) for bodies in provider.batches.values()] == [3, 1]
        assert (journal.ledger.lost_calls(), journal.sends()) == (0, 4)
        assert journal.spent()[MODELS["openai"]].dollars == pytest.approx(4 * USUAL / 2)


def test_provider_without_batches_answers_immediately_at_full_price():
    """A setting that a provider does not have is left out and not billed."""

    async def main() -> tuple[Any, list[Json]]:
        bodies: list[Json] = []

        async def post(request: web.Request) -> web.Response:
            bodies.append(await request.json())
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
                return await router.complete(requests(model, "a")[0]), bodies
        finally:
            await runner.cleanup()

    reply, bodies = asyncio.run(main())
    assert (reply.text, reply.tier) == ("now", "standard")
    assert "service_tier" not in bodies[0]


@pytest.mark.parametrize("provider_name", list(MODELS))
def test_local_sandbox_answers_batches(provider_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "GATHER_SECONDS", 0.01)

    async def main() -> list[Any]:
        async with PracticeModels() as world:
            return await ask(world.url, None, requests(MODELS[provider_name], "rain", "snow"))

    replies = asyncio.run(main())
    assert all(isinstance(reply, Reply) and reply.text and reply.finish == "stop" for reply in replies), replies
