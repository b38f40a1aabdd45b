"""Platforms on this machine, and forecasts for them."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fakes.markets import FakeMetaculus
from fakes.samples import SampleMetaculusQuestion, SampleMetaculusScale, metaculus_post_body
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.markets.metaculus import MetaculusClient
from foretell.outgoing.client import Connections
from foretell.practice.markets.metaculus import MetaculusCatalogue, MetaculusInbox
from foretell.practice.server import PracticeServer
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.tournaments.ledger import SubmissionLedger
from foretell.tournaments.metaculus import MetaculusOptions, MetaculusSubmitter, MetaculusWriter, read_posts
from foretell.tournaments.submission import SEND_ONCE

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
TOKEN = "canary-token-0815"
QUICK = HttpLimits(attempts=2, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)


def posts() -> list[dict[str, Any]]:
    """One post of every kind."""
    choice = SampleMetaculusQuestion(
        id=2, title="Who?", kind="multiple_choice", options=("Ann", "Bob"), ever=("Ann", "Cat", "Bob")
    )
    numeric = SampleMetaculusQuestion(
        id=3, title="How many?", kind="numeric", scale=SampleMetaculusScale(low=0, high=100, open_upper=True)
    )
    group = [SampleMetaculusQuestion(id=50 + i, title=f"({i})", label=str(i)) for i in range(3)]
    shut = SampleMetaculusQuestion(id=4, title="Over?", status="closed", closes="2026-10-01T00:00:00Z")
    early = SampleMetaculusQuestion(id=5, title="Soon?", status="upcoming", opens="2026-12-01T00:00:00Z")
    when = SampleMetaculusScale(low=1.79e9, high=1.9e9, open_upper=True)
    discrete = SampleMetaculusScale(low=-0.5, high=10.5, cells=11)
    return [
        metaculus_post_body(101, "Will it?", SampleMetaculusQuestion(id=1, title="Will it?")),
        metaculus_post_body(102, "Who?", choice),
        metaculus_post_body(103, "How many?", numeric),
        metaculus_post_body(104, "Which?", *group),
        metaculus_post_body(105, "Over?", shut),
        metaculus_post_body(106, "Soon?", early),
        metaculus_post_body(107, "When?", SampleMetaculusQuestion(id=7, title="When?", kind="date", scale=when)),
        metaculus_post_body(
            108, "Seats?", SampleMetaculusQuestion(id=8, title="Seats?", kind="discrete", scale=discrete)
        ),
    ]


class Metaculus:
    """A fake platform and its requests."""

    def __init__(self) -> None:
        self.inbox = MetaculusInbox(now=lambda: NOW)
        self.fake = FakeMetaculus({}, token=TOKEN, forbidden=frozenset({"999"}))
        self.fake.having(MetaculusCatalogue(posts())).taking(self.inbox)
        self.server = PracticeServer()

    @property
    def posted(self) -> list[Any]:
        """The sent requests, in order."""
        return [(request.path, request.json()) for request in self.server.requests if request.method == "POST"]

    def with_writer(self, use: Callable[[MetaculusWriter], Awaitable[Any]], token: str = TOKEN) -> Any:
        async def main() -> Any:
            transport = Connections()
            self.server = self.fake.server()
            async with (
                self.server,
                AsyncHttpClient(limits=QUICK, transport=transport) as reading,
                AsyncHttpClient(limits=SEND_ONCE, transport=Connections()) as writing,
            ):
                fast: Any = {"host": f"{self.server.url}/api"}
                client = MetaculusClient(http=reading, token=token, retry_seconds=0.0, **fast)
                return await use(MetaculusWriter(client=client, http=writing, token=token, wait_seconds=0.0, **fast))

        return asyncio.run(main())

    def with_submitter(
        self, forecasts: list[Forecast], use: Callable[[MetaculusSubmitter], Awaitable[Any]], **changed: Any
    ) -> Any:
        async def main(writer: MetaculusWriter) -> Any:
            options = MetaculusOptions(**changed)
            account, seen = await read_posts(writer, forecasts, (), options)
            return await use(MetaculusSubmitter(writer=writer, account=account, seen=seen, now=NOW, options=options))

        return self.with_writer(main)


@pytest.fixture
def metaculus() -> Metaculus:
    return Metaculus()


@pytest.fixture
def ledger(tmp_path: Path) -> SubmissionLedger:
    return SubmissionLedger(tmp_path / "ledger.jsonl")


@pytest.fixture
def make_forecast() -> Callable[..., Forecast]:
    """A live forecast."""

    def make(question: str, p: Any = 0.63, **fields: Any) -> Forecast:
        return Forecast(
            question_id=question,
            forecaster="agent",
            as_of=fields.pop("as_of", AsOf(at=NOW, mode="live")),
            p=p if isinstance(p, dict) else {"yes": p},
            **{"rationale": "Because.", **fields},
        )

    return make
