"""Searching, building and forecasting over HTTP, against fake search engines and model providers."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.forecasters.context.doubles import no_tools

from fakes.models import FakeModels, ModelFault
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.search.web import TavilySearch
from foretell.data.service import ServiceConfig
from foretell.forecasters.forecaster import Context, Models, attempt
from foretell.forecasters.prompt.builder import ContextBuilder
from foretell.forecasters.prompt.elicitation import ELICITATIONS
from foretell.forecasters.prompt.forecaster import PromptForecaster
from foretell.forecasters.prompt.prediction_context import StoredContexts
from foretell.forecasters.prompt.rendering import render
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.names import ModelRoles
from foretell.models.prices import PriceList
from foretell.models.router import ModelRouter
from foretell.practice.models.scripts import arena_script
from foretell.practice.web import search_server, small_world
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Snapshot, Target

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


class FakeServices:
    """Fake model providers and search engine, with the clients that use them."""

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


def with_services(use: Callable[[FakeServices], Awaitable[Any]], tmp_path: Any) -> Any:
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
                return await use(FakeServices(fake, exchange, client, search, journal))
        finally:
            journal.close()

    return asyncio.run(run())


def test_all_models_get_the_same_context_in_two_api_formats(tmp_path) -> None:
    async def use(services: FakeServices) -> Any:
        contexts = StoredContexts([(await services.builder().build(RATE, BACK)).context])
        runs = [services.context(model, contexts=contexts) for model in MODELS]
        forecasts = await asyncio.gather(*(attempt(PromptForecaster(), RATE, run) for run in runs))
        return forecasts, await contexts.of(RATE, BACK), list(services.fake.queries)

    forecasts, context, queries = with_services(use, tmp_path)
    assert all(isinstance(item, Forecast) for item in forecasts)
    assert all(sum(item.p.values()) == pytest.approx(1) for item in forecasts)
    assert len({item.trace for item in forecasts}) == 1
    forecast_queries = [item for item in queries if item.model != "reader"]
    assert {item.format for item in forecast_queries} == {"responses", "anthropic"}
    assert all(render(context) in item.words for item in forecast_queries)
    titles = [source.title for source in context.sources]
    assert "Norges Bank holds rates" in titles
    assert "Norges Bank cuts its rate" not in titles, "dated after the cutoff"
    assert all(source.summary.count(". ") == 2 for source in context.sources)
    assert context.searcher == "tavily with openai:reader"


def test_building_twice_costs_once_and_gives_the_same_bytes(tmp_path) -> None:
    async def use(services: FakeServices) -> Any:
        first = await services.builder().build(RATE, BACK)
        paid, searched = sum(services.fake.billed.values()), len(services.search.requests)
        second = await services.builder().build(RATE, BACK)
        return first, second, paid, sum(services.fake.billed.values()), searched, len(services.search.requests)

    first, second, paid, later, searched, again = with_services(use, tmp_path)
    assert first == second
    assert first.context.canonical == second.context.canonical
    assert paid == later > 0
    assert searched == again > 0
    assert first.found == len(first.context.sources) + sum(first.dropped.values())


@pytest.mark.parametrize("name", ELICITATIONS)
def test_every_elicitation_makes_its_calls_and_gives_a_forecast(name: str, tmp_path) -> None:
    async def use(services: FakeServices) -> Any:
        forecaster = PromptForecaster(elicitation=name, view="market")
        forecast = await attempt(forecaster, RATE, services.context("openai:forecaster", seed=1))
        return forecast, sum(services.fake.billed.values())

    forecast, billed = with_services(use, tmp_path)
    assert isinstance(forecast, Forecast)
    assert forecast.usage.calls == billed == len(ELICITATIONS[name].asks())
    assert forecast.usage.input_tokens > 0
    if not ELICITATIONS[name].votes:
        assert forecast.p["Rate cut"] == pytest.approx(0.6, abs=0.1)


def test_model_is_asked_again_after_errors_and_fails_if_they_persist(tmp_path) -> None:
    async def use(services: FakeServices) -> Any:
        forecaster = PromptForecaster(view="market")
        names = ("openai:clumsy", "openai:stubborn", "openai:wild")
        return [await attempt(forecaster, RATE, services.context(name)) for name in names]

    clumsy, stubborn, wild = with_services(use, tmp_path)
    assert isinstance(clumsy, Forecast)
    assert clumsy.usage.calls == 2
    assert isinstance(stubborn, Failure)
    assert "missing" in stubborn.error
    assert isinstance(wild, Failure)
    assert len(wild.error) < 500


def test_context_is_built_despite_invalid_model_output(tmp_path) -> None:
    async def use(services: FakeServices) -> Any:
        live = AsOf(at=AT, mode="live")
        return await services.builder("openai:wild").build(replace(RATE), live)

    built = with_services(use, tmp_path)
    assert built.context.sources
    assert built.notes
    assert "<div" not in built.context.to_json()


@pytest.mark.parametrize("forecaster", ["agent", "tree"])
def test_agent_and_tree_use_the_shared_context_without_tools(forecaster: str, tmp_path) -> None:
    from foretell.forecasters.agent.agent import BeliefAgent
    from foretell.forecasters.prompt.adapter import ContextAdapter
    from foretell.forecasters.tree.forecaster import TreeForecaster

    async def use(services: FakeServices) -> Any:
        contexts = StoredContexts([(await services.builder().build(RATE, BACK)).context])
        inner = BeliefAgent() if forecaster == "agent" else TreeForecaster()
        run = services.context("openai:planner-2", contexts=contexts)
        forecast = await attempt(ContextAdapter(forecaster=inner, tools=False), RATE, run)
        return (
            forecast,
            await contexts.of(RATE, BACK),
            [query.words for query in services.fake.queries if query.model != "reader"],
        )

    forecast, context, texts = with_services(use, tmp_path)
    assert isinstance(forecast, Forecast)
    assert sum(forecast.p.values()) == pytest.approx(1)
    assert "without tools" in forecast.forecaster
    assert render(context)[-300:] in texts[0] or context.sources[0].summary in texts[0]


def test_requests_are_retried_after_outages(tmp_path) -> None:
    async def use(services: FakeServices) -> Any:
        services.fake.fail(ModelFault(kind="status", status=503, wait=0.0), times=2)
        return await attempt(PromptForecaster(view="none"), RATE, services.context("openai:forecaster"))

    assert isinstance(with_services(use, tmp_path), Forecast)
