"""Searching, building and forecasting over real sockets, against fake engines and fake providers in two formats."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.forecasters.context.doubles import no_tools

from fakes.models import FakeModels, ModelFault
from foretell.data import AsyncHttpClient, HttpLimits, ServiceConfig
from foretell.data.search import TavilySearch
from foretell.forecasters import Context, Models, attempt
from foretell.forecasters.prompt import ELICITATIONS, ContextBuilder, PromptForecaster, StoredContexts, render
from foretell.models import Budget, Journal, ModelRoles, ModelRouter, PriceList
from foretell.practice import search_server, small_world
from foretell.practice.models import arena_script
from foretell.questions import AsOf, Failure, Forecast, Question, Snapshot, Target, instant

KEY = "k"
AT = instant("2026-08-01T12:00:00Z")
BACK = AsOf(at=AT)
KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
RATE = Question(
    id="kalshi/RATE",
    source="kalshi",
    text="What will the central bank of Norway do with its rate in September?",
    due=AT,
    criteria="As announced on the day of the meeting.",
    exclusivity="exactly one",
    targets=tuple(
        Target(id=name, label=name, snapshot=Snapshot(at=AT, last_price=p, yes_ask=p + 0.01, no_ask=1.01 - p))
        for name, p in (("Rate cut", 0.61), ("No change", 0.31), ("Rate hike", 0.08))
    ),
)
MODELS = ("openai:forecaster", "openai:another", "anthropic:claude-sonnet-4-6")


class Stage:
    """Everything off this machine, on this machine."""

    def __init__(self, fake: FakeModels, exchange: ModelRouter, client: AsyncHttpClient, search: Any, journal: Journal):
        self.fake, self.exchange, self.search, self.journal = fake, exchange, search, journal
        self.engine = TavilySearch(ServiceConfig(http=client, key=KEY, address=f"{search.url}/tavily"))

    def builder(self, reader: str = "openai:reader") -> ContextBuilder:
        return ContextBuilder(
            engine=self.engine,
            models=ModelRoles(agent=reader),
            model=self.exchange,
            journal=self.journal,
            prices=PriceList(),
        )

    def context(self, model: str, **more: Any) -> Context:
        budget = Budget("question")
        return Context(
            as_of=BACK,
            models=Models(roles=ModelRoles(agent=model), model=self.exchange.within(budget), prices=PriceList()),
            tools=no_tools,
            **more,
        )


def on_stage(play: Callable[[Stage], Awaitable[Any]], tmp_path: Any) -> Any:
    async def run() -> Any:
        journal = Journal(tmp_path / "journal.db")
        try:
            async with (
                FakeModels(arena_script) as fake,
                search_server(small_world(), KEY) as search,
                AsyncHttpClient(limits=HttpLimits(attempts=2, wait_seconds=0.0, total_seconds=5.0)) as client,
                ModelRouter(
                    KEYS,
                    journal=journal,
                    addresses={"openai": f"{fake.url}/v1", "anthropic": fake.url},
                ) as exchange,
            ):
                return await play(Stage(fake, exchange, client, search, journal))
        finally:
            journal.close()

    return asyncio.run(run())


def test_one_context_for_all_models_in_two_formats(tmp_path) -> None:
    async def play(stage: Stage) -> Any:
        contexts = StoredContexts([(await stage.builder().build(RATE, BACK)).context])
        forecaster = PromptForecaster(contexts=contexts)
        made = await asyncio.gather(*(attempt(forecaster, RATE, stage.context(model)) for model in MODELS))
        return made, await contexts.of(RATE, BACK), list(stage.fake.queries)

    made, context, heard = on_stage(play, tmp_path)
    assert all(isinstance(one, Forecast) for one in made)
    assert all(sum(one.p.values()) == pytest.approx(1) for one in made)
    assert len({one.trace for one in made}) == 1
    asked = [one for one in heard if one.model != "reader"]
    assert {one.format for one in asked} == {"responses", "anthropic"}
    assert all(render(context) in one.words for one in asked)
    titles = [source.title for source in context.sources]
    assert "Norges Bank holds rates" in titles
    assert "Norges Bank cuts its rate" not in titles, "dated after the moment"
    assert all(source.summary.count(". ") == 2 for source in context.sources)
    assert context.searcher == "tavily with openai:reader"


def test_building_twice_pays_once_and_gives_the_same_bytes(tmp_path) -> None:
    async def play(stage: Stage) -> Any:
        first = await stage.builder().build(RATE, BACK)
        paid, searched = sum(stage.fake.billed.values()), len(stage.search.requests)
        second = await stage.builder().build(RATE, BACK)
        return first, second, paid, sum(stage.fake.billed.values()), searched, len(stage.search.requests)

    first, second, paid, later, searched, again = on_stage(play, tmp_path)
    assert first == second
    assert first.context.canonical == second.context.canonical
    assert paid == later > 0
    assert searched == again > 0
    assert first.found == len(first.context.sources) + sum(first.dropped.values())


@pytest.mark.parametrize("way", ELICITATIONS)
def test_every_way_of_asking(way: str, tmp_path) -> None:
    async def play(stage: Stage) -> Any:
        forecaster = PromptForecaster(elicitation=way, view="market")
        forecast = await attempt(forecaster, RATE, stage.context("openai:forecaster", seed=1))
        return forecast, sum(stage.fake.billed.values())

    forecast, billed = on_stage(play, tmp_path)
    assert isinstance(forecast, Forecast)
    assert forecast.usage.calls == billed == len(ELICITATIONS[way].asks())
    assert forecast.usage.input_tokens > 0
    if not ELICITATIONS[way].votes:
        assert forecast.p["Rate cut"] == pytest.approx(0.6, abs=0.1)


def test_a_clumsy_model_gets_it_right_when_told_and_a_stubborn_one_fails(tmp_path) -> None:
    async def play(stage: Stage) -> Any:
        forecaster = PromptForecaster(view="market")
        names = ("openai:clumsy", "openai:stubborn", "openai:wild")
        return [await attempt(forecaster, RATE, stage.context(name)) for name in names]

    clumsy, stubborn, wild = on_stage(play, tmp_path)
    assert isinstance(clumsy, Forecast)
    assert clumsy.usage.calls == 2
    assert isinstance(stubborn, Failure)
    assert "missing" in stubborn.error
    assert isinstance(wild, Failure)
    assert len(wild.error) < 500


def test_a_wild_searcher_cannot_spoil_a_context(tmp_path) -> None:
    async def play(stage: Stage) -> Any:
        live = AsOf(at=AT, mode="live")
        return await stage.builder("openai:wild").build(replace(RATE), live)

    built = on_stage(play, tmp_path)
    assert built.context.sources
    assert built.notes
    assert "<div" not in built.context.to_json()


@pytest.mark.parametrize("who", ["agent", "tree"])
def test_agent_and_tree_on_the_same_context_without_tools(who: str, tmp_path) -> None:
    from foretell.forecasters.agent import BeliefAgent
    from foretell.forecasters.prompt import ContextAdapter
    from foretell.forecasters.tree import TreeForecaster

    async def play(stage: Stage) -> Any:
        contexts = StoredContexts([(await stage.builder().build(RATE, BACK)).context])
        inner = BeliefAgent() if who == "agent" else TreeForecaster()
        forecast = await attempt(
            ContextAdapter(forecaster=inner, contexts=contexts, tools=False), RATE, stage.context("openai:planner-2")
        )
        return (
            forecast,
            await contexts.of(RATE, BACK),
            [one.words for one in stage.fake.queries if one.model != "reader"],
        )

    forecast, context, told = on_stage(play, tmp_path)
    assert isinstance(forecast, Forecast)
    assert sum(forecast.p.values()) == pytest.approx(1)
    assert "without tools" in forecast.forecaster
    assert render(context)[-300:] in told[0] or context.sources[0].summary in told[0]


def test_outages_are_waited_out(tmp_path) -> None:
    async def play(stage: Stage) -> Any:
        stage.fake.fail(ModelFault(kind="status", status=503, wait=0.0), times=2)
        return await attempt(PromptForecaster(view="none"), RATE, stage.context("openai:forecaster"))

    assert isinstance(on_stage(play, tmp_path), Forecast)
