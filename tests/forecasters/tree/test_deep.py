"""Deep research: our fenced search over MCP on real sockets, a provider that calls it, and our own loop without one."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.forecasters.tree.scripted_tree import TreeSetup, playing

from fakes.faults import failing, inject
from fakes.models import FakeDeepResearch
from foretell.forecasters import Context
from foretell.forecasters.tree import (
    DeepResearchGrounder,
    GroundingResult,
    SearchAndFetch,
    SearchServer,
    open_search_server,
)
from foretell.models import Journal, ModelError, ModelLimits, ModelRouter, Request
from foretell.models.providers import ResearchingModel, ScriptedModel
from foretell.questions import LeakBlocked, ModelCalled, ToolUsed

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed: pip install 'foretell[mcp]'")
MODEL = "openai:gpt-6.1-sol"


class Both:
    """Researches go to the provider; whatever else is asked is played."""

    def __init__(self, research: Any) -> None:
        self.research = research
        self.others = playing()

    async def complete(self, request: Request) -> Any:
        return await (self.research if request.model == MODEL else self.others).complete(request)


@asynccontextmanager
async def opened(
    fake: FakeDeepResearch, journal: Journal | None = None
) -> AsyncGenerator[tuple[TreeSetup, SearchServer]]:
    async with fake, open_search_server() as server:
        exchange = ModelRouter(
            {"OPENAI_API_KEY": "x"},
            journal=journal,
            limits={"openai": ModelLimits(attempts=2, first_pause=0.01)},
            wire=lambda _: ResearchingModel(f"{fake.url}/v1", "x", lambda one: server.address_for(one.slot), poll=0.01),
        )
        async with exchange:
            yield TreeSetup(model=Both(exchange)), server


def test_the_provider_reads_through_the_fence_and_only_through_it():
    async def run() -> None:
        fake = FakeDeepResearch()
        async with opened(fake) as (setup, server):
            found = await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)
            assert found.p is not None
            assert found.grounding.grounder == "deep"
            assert found.grounding.report.startswith("Read 2 times about")
            assert "{" not in found.grounding.report
            assert found.grounding.sources == (
                "[search_1_result_1] Article of 2025-10-01 (2025-10-01) https://news.example/2025-10-01",
            )
            assert [event.tool for event in setup.of(ToolUsed)] == ["search", "fetch"]
            assert {event.layer for event in setup.of(LeakBlocked)} == {"date", "content"}
        seen = "\n".join(fake.read)
        assert "Text of 2025-10-01" in seen
        assert "2025-11-05" not in seen
        assert "LEAK ME" not in seen
        (tool,) = fake.asked[0]["tools"]
        assert tool["type"] == "mcp"
        assert tool["allowed_tools"] == ["search", "fetch"]
        assert tool["require_approval"] == "never"

    asyncio.run(run())


def test_a_kept_research_is_retraced_without_asking_anybody(tmp_path: Path):
    async def run(fake: FakeDeepResearch) -> tuple[GroundingResult, list[Any]]:
        journal = Journal(tmp_path / "journal.db", durable=False)
        async with opened(fake, journal) as (setup, server):
            found = await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)
        journal.close()
        return found, [event for event in setup.events if not isinstance(event, ModelCalled)]

    first, second = FakeDeepResearch(), FakeDeepResearch()
    assert asyncio.run(run(first)) == asyncio.run(run(second))
    assert len(first.asked) == 1
    assert not second.asked


def test_a_report_without_a_number_is_read_by_another_model():
    async def run() -> None:
        async with opened(FakeDeepResearch(states_p=False)) as (setup, server):
            found = await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)
            assert found.p is not None
            assert [event.role for event in setup.of(ModelCalled)] == ["grounder", "judge"]

    asyncio.run(run())


def test_no_token_no_tools():
    async def run() -> None:
        import httpx2

        setup = TreeSetup()
        async with open_search_server() as server, httpx2.AsyncClient(trust_env=False) as client:
            toolbox = setup.context.tools_for(setup.question)
            with server.serve("slot", toolbox) as address:
                for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {address.token}"}):
                    assert (await client.post(server.url, json={}, headers=header)).status_code == 401
                right = {"Authorization": f"Bearer {address.token}", "Host": "evil.example"}
                assert (await client.post(server.url, json={}, headers=right)).status_code == 421
                assert server.address_for("slot") == address
            assert server.address_for("slot") is None
            late = {"Authorization": f"Bearer {address.token}"}
            assert (await client.post(server.url, json={}, headers=late)).status_code == 401
            assert server.url.startswith("http://127.0.0.1:")

    asyncio.run(run())


def test_the_tools_answer_in_words_when_they_cannot():
    async def run() -> None:
        setup = TreeSetup()
        offered = SearchAndFetch(toolbox=setup.context.tools_for(setup.question))
        assert await offered.use("fetch", {"id": "https://never.seen"}) == (
            "There is no result 'https://never.seen': fetch what a search has shown.",
            False,
        )
        assert (await offered.use("search", {}))[1] is False
        assert (await offered.use("delete", {}))[1] is False
        text, worked = await offered.use("search", {"query": "x"})
        assert worked
        assert [row["url"] for row in json.loads(text)["results"]] == ["https://news.example/2025-10-01"]

    asyncio.run(run())


def test_without_a_bridge_or_for_other_models_our_own_loop_does_it():
    setup = TreeSetup(name="scripted:planner")
    found = asyncio.run(DeepResearchGrounder().ground(setup.leaf(), setup.context))
    assert found.grounding.grounder == "deep"
    assert setup.search.queries
    setup = TreeSetup(name="scripted:planner")
    asyncio.run(DeepResearchGrounder(model="scripted:other").ground(setup.leaf(), setup.context))
    assert {event.model for event in setup.of(ModelCalled)} == {"scripted:other"}


def test_a_provider_that_fails_is_a_model_error():
    async def run() -> None:
        fake = FakeDeepResearch()
        async with opened(fake) as (setup, server):
            inject(fake, failing(500), failing(500))
            with pytest.raises(ModelError, match="500"):
                await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)
            inject(fake, failing(401))
            with pytest.raises(ModelError, match="does not accept the key"):
                await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)

    asyncio.run(run())


def test_a_research_that_ends_badly_tells_why():
    class Unreachable(SearchServer):
        def address_for(self, slot: str) -> Any:
            found = super().address_for(slot)
            return found and type(found)(url="http://127.0.0.1:9/mcp", token=found.token)

    async def run() -> None:
        async with opened(FakeDeepResearch()) as (setup, server):
            server.__class__ = Unreachable
            with pytest.raises(ModelError, match="the research ended early"):
                await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)

    asyncio.run(run())


def test_contexts_are_typed():
    assert isinstance(TreeSetup(model=ScriptedModel([])).context, Context)
