"""Settlements asked over real sockets."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import pytest

from fakes.faults import ServerFault, inject
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.markets.listing import SkippedEntry
from foretell.data.settlements.settlement import SettlementSource
from foretell.practice.server import PracticeServer
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)
Make = Callable[..., SettlementSource]


class Settled:
    """Runs a source against a fake server, and remembers what was asked and what was skipped."""

    def __init__(self) -> None:
        self.server = PracticeServer()
        self.skipped: list[SkippedEntry] = []
        self.found: list[Resolution] = []

    def __call__(
        self, server: PracticeServer, make: Make, questions: Sequence[Question], faults: list[ServerFault] | None = None
    ) -> dict[str, Resolution]:
        self.server, self.skipped = server, []
        inject(server, *(faults or []))

        async def served() -> list[Resolution]:
            transport = httpx2.AsyncHTTPTransport(verify=False)
            async with server, AsyncHttpClient(limits=QUICK, transport=transport) as http:
                return await make(http, server.url, self.skipped.append).settlements(questions)

        self.found = asyncio.run(served())
        assert all(one.provenance.startswith("http") for one in self.found)
        return {one.target_id: one for one in self.found}

    @property
    def reasons(self) -> dict[str, str]:
        return {one.id: one.reason for one in self.skipped}


@pytest.fixture
def settled() -> Settled:
    return Settled()


@pytest.fixture(scope="session")
def asked() -> Callable[..., Question]:
    """A question of a market platform."""

    def make(id: str, *targets: str, due: Any = "2026-01-01") -> Question:
        source = id.partition("/")[0]
        named = tuple(Target(id=target) for target in targets or ("yes",))
        return Question(id=id, source=source, text="?", due=due, targets=named)

    return make
