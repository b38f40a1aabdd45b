"""Deep research: our fenced search over MCP on real sockets, a provider that calls it, and our own loop without one."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.forecasters.tree.growing import Desk, playing

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grounders.deep_research import DeepResearchGrounder, SearchAndFetch
from foretell.forecasters.tree.grow.ground import GroundingResult
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.model import ModelError, Request
from foretell.models.providers.openai_responses import OpenAIResponses
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.router import ModelRouter
from foretell.practice.models.deep_research import PracticeDeepResearch
from foretell.practice.server import failing
from foretell.questions.trace import LeakBlocked, ModelCalled, ToolUsed

pytest.importorskip("mcp")
from foretell.forecasters.tree.grounders.deep_research import SearchServer, open_search_server

MODEL = "openai:o4-mini-deep-research"


class Both:
    """Researches go to the provider; whatever else is asked is played."""

    def __init__(self, research: Any) -> None:
        self.research = research
        self.others = playing()

    async def complete(self, request: Request) -> Any:
        return await (self.research if request.model == MODEL else self.others).complete(request)


@asynccontextmanager
async def opened(
    fake: PracticeDeepResearch, journal: Journal | None = None
) -> AsyncGenerator[tuple[Desk, SearchServer]]:
    async with fake, open_search_server() as bridge:
        exchange = ModelRouter(
            {"OPENAI_API_KEY": "x"},
            journal=journal,
            limits={"openai": ModelLimits(attempts=2, first_pause=0.01)},
            wire=lambda _: OpenAIResponses(f"{fake.url}/v1", "x", lambda one: bridge.reach(one.slot), poll=0.01),
        )
        async with exchange:
            yield Desk(model=Both(exchange)), bridge


def test_the_provider_reads_through_the_fence_and_only_through_it():
    async def run() -> None:
        fake = PracticeDeepResearch()
        async with opened(fake) as (desk, bridge):
            found = await DeepResearchGrounder(bridge=bridge, model=MODEL).ground(desk.leaf(), desk.context)
            assert found.p is not None
            assert found.grounding.grounder == "deep"
            assert found.grounding.report.startswith("Read 2 times about")
            assert "{" not in found.grounding.report
            assert found.grounding.sources == (
                "[search_1_result_1] Article of 2025-10-01 (2025-10-01) https://news.example/2025-10-01",
            )
            assert [event.tool for event in desk.of(ToolUsed)] == ["search", "fetch"]
            assert {event.layer for event in desk.of(LeakBlocked)} == {"date", "content"}
        seen = "\n".join(fake.read)
        assert "Text of 2025-10-01" in seen
        assert "2025-11-05" not in seen
        assert "DROP ME" not in seen
        (tool,) = fake.asked[0]["tools"]
        assert tool["type"] == "mcp"
        assert tool["allowed_tools"] == ["search", "fetch"]
        assert tool["require_approval"] == "never"

    asyncio.run(run())


def test_a_kept_research_is_retraced_without_asking_anybody(tmp_path: Path):
    async def run(fake: PracticeDeepResearch) -> tuple[GroundingResult, list[Any]]:
        journal = Journal(tmp_path / "journal.db", durable=False)
        async with opened(fake, journal) as (desk, bridge):
            found = await DeepResearchGrounder(bridge=bridge, model=MODEL).ground(desk.leaf(), desk.context)
        journal.close()
        return found, [event for event in desk.events if not isinstance(event, ModelCalled)]

    first, second = PracticeDeepResearch(), PracticeDeepResearch()
    assert asyncio.run(run(first)) == asyncio.run(run(second))
    assert len(first.asked) == 1
    assert not second.asked


def test_a_report_without_a_number_is_read_by_another_model():
    async def run() -> None:
        async with opened(PracticeDeepResearch(states_p=False)) as (desk, bridge):
            found = await DeepResearchGrounder(bridge=bridge, model=MODEL).ground(desk.leaf(), desk.context)
            assert found.p is not None
            assert [event.role for event in desk.of(ModelCalled)] == ["grounder", "judge"]

    asyncio.run(run())


def test_no_token_no_tools():
    async def run() -> None:
        import httpx2

        desk = Desk()
        async with open_search_server() as bridge, httpx2.AsyncClient(trust_env=False) as client:
            toolbox = desk.context.tools_for(desk.question)
            with bridge.offer("slot", toolbox) as reach:
                for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {reach.token}"}):
                    assert (await client.post(bridge.url, json={}, headers=header)).status_code == 401
                right = {"Authorization": f"Bearer {reach.token}", "Host": "evil.example"}
                assert (await client.post(bridge.url, json={}, headers=right)).status_code == 421
                assert bridge.reach("slot") == reach
            assert bridge.reach("slot") is None
            late = {"Authorization": f"Bearer {reach.token}"}
            assert (await client.post(bridge.url, json={}, headers=late)).status_code == 401
            assert bridge.url.startswith("http://127.0.0.1:")

    asyncio.run(run())


def test_the_tools_answer_in_words_when_they_cannot():
    async def run() -> None:
        desk = Desk()
        offered = SearchAndFetch(toolbox=desk.context.tools_for(desk.question))
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
    desk = Desk(name="scripted:planner")
    found = asyncio.run(DeepResearchGrounder().ground(desk.leaf(), desk.context))
    assert found.grounding.grounder == "deep"
    assert desk.search.queries
    desk = Desk(name="scripted:planner")
    asyncio.run(DeepResearchGrounder(model="scripted:other").ground(desk.leaf(), desk.context))
    assert {event.model for event in desk.of(ModelCalled)} == {"scripted:other"}


def test_a_provider_that_fails_is_a_model_error():
    async def run() -> None:
        fake = PracticeDeepResearch()
        async with opened(fake) as (desk, bridge):
            fake._server.faults += [failing(500), failing(500)]
            with pytest.raises(ModelError, match="500"):
                await DeepResearchGrounder(bridge=bridge, model=MODEL).ground(desk.leaf(), desk.context)
            fake._server.faults += [failing(401)]
            with pytest.raises(ModelError, match="does not accept the key"):
                await DeepResearchGrounder(bridge=bridge, model=MODEL).ground(desk.leaf(), desk.context)

    asyncio.run(run())


def test_a_research_that_ends_badly_tells_why():
    class Unreachable(SearchServer):
        def reach(self, slot: str) -> Any:
            found = super().reach(slot)
            return found and type(found)(url="http://127.0.0.1:9/mcp", token=found.token)

    async def run() -> None:
        async with opened(PracticeDeepResearch()) as (desk, bridge):
            bridge.__class__ = Unreachable
            with pytest.raises(ModelError, match="the research ended early"):
                await DeepResearchGrounder(bridge=bridge, model=MODEL).ground(desk.leaf(), desk.context)

    asyncio.run(run())


def test_contexts_are_typed():
    assert isinstance(Desk(model=ScriptedModel([])).context, Context)
