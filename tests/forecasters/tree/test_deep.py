"""Deep research: filtered search over MCP on real sockets, a provider that calls it, and the own search loop."""

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
from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grounders.deep_research import (
    DeepResearchGrounder,
    SearchAndFetch,
    SearchServer,
    open_search_server,
)
from foretell.forecasters.tree.grow.ground import GroundingResult
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.model import ModelError, Request
from foretell.models.providers.responses import ResearchingModel
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.router import ModelRouter
from foretell.questions.trace import LeakBlocked, ModelCalled, ToolUsed

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed: pip install 'foretell[mcp]'")
MODEL = "openai:gpt-6.1-sol"


class Both:
    """Sends research to the provider and all other requests to a scripted model."""

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

        def address_for(request: Request) -> Any:
            return server.address_for(request.slot)

        exchange = ModelRouter(
            {"OPENAI_API_KEY": "x"},
            journal=journal,
            limits={"openai": ModelLimits(attempts=2, first_pause=0.01)},
            wire=lambda _: ResearchingModel(f"{fake.url}/v1", "x", address_for, poll=0.01),
        )
        async with exchange:
            yield TreeSetup(model=Both(exchange)), server


def test_the_provider_sees_only_results_that_pass_the_leakage_filter():
    async def run() -> None:
        fake = FakeDeepResearch()
        async with opened(fake) as (setup, server):
            result = await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)
            assert result.p is not None
            assert result.grounding.grounder == "deep"
            assert result.grounding.report.startswith("Read 2 times about")
            assert "{" not in result.grounding.report
            assert result.grounding.sources == (
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


def test_a_replayed_research_sends_no_request_to_the_provider(tmp_path: Path):
    async def run(fake: FakeDeepResearch) -> tuple[GroundingResult, list[Any]]:
        journal = Journal(tmp_path / "journal.db", durable=False)
        async with opened(fake, journal) as (setup, server):
            result = await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)
        journal.close()
        return result, [event for event in setup.events if not isinstance(event, ModelCalled)]

    first, second = FakeDeepResearch(), FakeDeepResearch()
    assert asyncio.run(run(first)) == asyncio.run(run(second))
    assert len(first.asked) == 1
    assert not second.asked


def test_the_probability_of_a_report_without_one_is_extracted_by_another_model():
    async def run() -> None:
        async with opened(FakeDeepResearch(states_p=False)) as (setup, server):
            result = await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)
            assert result.p is not None
            assert [event.role for event in setup.of(ModelCalled)] == ["grounder", "judge"]

    asyncio.run(run())


def test_requests_without_a_valid_token_are_rejected():
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


def test_tool_errors_are_returned_as_text():
    async def run() -> None:
        setup = TreeSetup()
        tools = SearchAndFetch(toolbox=setup.context.tools_for(setup.question))
        assert await tools.use("fetch", {"id": "https://never.seen"}) == (
            "There is no result 'https://never.seen': fetch what a search has shown.",
            False,
        )
        assert (await tools.use("search", {}))[1] is False
        assert (await tools.use("delete", {}))[1] is False
        text, worked = await tools.use("search", {"query": "x"})
        assert worked
        assert [row["url"] for row in json.loads(text)["results"]] == ["https://news.example/2025-10-01"]

    asyncio.run(run())


def test_without_a_server_or_for_other_models_the_own_search_loop_is_used():
    setup = TreeSetup(name="scripted:planner")
    result = asyncio.run(DeepResearchGrounder().ground(setup.leaf(), setup.context))
    assert result.grounding.grounder == "deep"
    assert setup.search.queries
    setup = TreeSetup(name="scripted:planner")
    asyncio.run(DeepResearchGrounder(model="scripted:other").ground(setup.leaf(), setup.context))
    assert {event.model for event in setup.of(ModelCalled)} == {"scripted:other"}


def test_a_failing_provider_raises_a_model_error():
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


def test_a_failed_research_raises_its_reason():
    class Unreachable(SearchServer):
        def address_for(self, slot: str) -> Any:
            address = super().address_for(slot)
            return address and type(address)(url="http://127.0.0.1:9/mcp", token=address.token)

    async def run() -> None:
        async with opened(FakeDeepResearch()) as (setup, server):
            server.__class__ = Unreachable
            with pytest.raises(ModelError, match="the research ended early"):
                await DeepResearchGrounder(server=server, model=MODEL).ground(setup.leaf(), setup.context)

    asyncio.run(run())


def test_the_setup_creates_a_context():
    assert isinstance(TreeSetup(model=ScriptedModel([])).context, Context)
