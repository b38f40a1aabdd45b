"""Another package adds one plug-in of every kind, and each is used as the built-in ones are."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell import score
from foretell.data.http import AsyncHttpClient
from foretell.data.markets.listing import ListingFilter
from foretell.data.markets.market import MarketRef, market_ref
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.model import BudgetExceeded, Request, UserMessage
from foretell.models.names import ModelName
from foretell.models.router import ModelRouter
from foretell.plugins import load
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef, Target
from foretell.runs.question_sets import open_benchmark
from foretell.runs.services import Services, open_markets, open_services, plugin_tools
from foretell.runs.settings import load_settings
from foretell.runs.tree_runtime import TreeOptions
from foretell.tools.addresses import Blocklist
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import offered_tools

pytestmark = pytest.mark.usefixtures("example")
AS_OF = AsOf.day("2025-01-05")
QUESTION = Question(id="q", source="example", text="Will it?", due="2025-01-05", targets=(Target(id="yes"),))


def with_services(use: Callable[[Services], Awaitable[Any]], tmp_path: Path, *engines: str, **keys: str) -> Any:
    async def run() -> Any:
        async with AsyncHttpClient() as http:
            settings = load_settings({"FORETELL_HOME": str(tmp_path), **keys})
            return await use(open_services(settings, http, engines))

    return asyncio.run(run())


def test_a_search_engine_needs_its_key(tmp_path: Path) -> None:
    async def search(services: Services) -> Any:
        assert services.engine is not None
        return await services.engine.search("rain", AS_OF)

    hits = with_services(search, tmp_path, "example_news", EXAMPLE_NEWS_KEY="k")
    assert [hit.url for hit in hits] == ["https://news.example.org/1"]
    address = {"FORETELL_EXAMPLE_NEWS_URL": "https://mirror.test"}
    mirrored = with_services(search, tmp_path, "example_news", EXAMPLE_NEWS_KEY="k", **address)
    assert mirrored[0].url == "https://mirror.test/1"
    with pytest.raises(InputError, match="set EXAMPLE_NEWS_KEY, or use --search local"):
        with_services(search, tmp_path, "example_news")
    with pytest.raises(InputError, match="did you mean 'example_news'"):
        with_services(search, tmp_path, "example_new")


def test_a_series_source_is_read(tmp_path: Path) -> None:
    async def fetch(services: Services) -> Any:
        return await services.series.fetch(SeriesRef(provider="example_series", id="x"), AS_OF)

    assert with_services(fetch, tmp_path).values.tolist() == [0, 1, 2, 3, 4]


def test_a_market_lists_prices_and_settles(tmp_path: Path) -> None:
    async def read() -> tuple[Any, ...]:
        async with AsyncHttpClient() as http:
            market = open_markets(load_settings({"FORETELL_HOME": str(tmp_path)}), http, ["example_market"])
            now = AsOf.day("2025-01-05", mode="live")
            listed = await market.events["example_market"].events(ListingFilter(as_of=now)).all()
            ref = market_ref(listed[0].question)
            assert ref is not None
            prices = await market.prices["example_market"].prices(ref, AS_OF)
            return ref, prices, await market.settlements["example_market"].settlements([listed[0].question])

    ref, prices, settled = asyncio.run(read())
    assert ref == MarketRef(platform="example_market", id="m1")
    assert [point.p for point in prices] == [0.25]
    assert [resolution.outcome for resolution in settled] == [1]


def test_a_market_is_recognised_by_its_address_and_closed_to_forecasters(tmp_path: Path) -> None:
    url = "https://www.example-market.test/markets/m7"
    question = Question(
        id="q", source="x", kind="market", text="?", url=url, due="2025-01-05", targets=(Target(id="yes"),)
    )
    assert market_ref(question) == MarketRef(platform="example_market", id="m7")
    blocked = Blocklist().check("https://example-market.test/markets/m7")
    assert blocked is not None
    assert blocked.reason == "example-market.test is a forecasting platform"
    assert Blocklist().check("https://polymarket.com/event/x") is not None, "the literal table stays"

    # Forecasters read prices without loading the outcomes.
    with_services(lambda services: asyncio.sleep(0), tmp_path)
    assert "foretell_example.market" in sys.modules
    assert "foretell_example.settlements" not in sys.modules


def test_a_data_set_is_backtested() -> None:
    benchmark = open_benchmark("example_set:5")
    assert len(benchmark.questions.questions) == 5
    result = foretell.backtest("always:p=0.9", benchmark.questions.questions)
    assert {forecast.p["yes"] for forecast in result.forecasts} == {0.9}


def test_a_model_provider_uses_journal_and_budget(tmp_path: Path) -> None:
    name = "example_model:loud"
    assert ModelName.read(name).place == "example_model"
    with pytest.raises(InputError, match="set EXAMPLE_MODEL_KEY"):
        ModelRouter({}).check([name])

    async def ask() -> tuple[str, float]:
        journal = Journal(tmp_path / "journal.db")
        async with ModelRouter({"EXAMPLE_MODEL_KEY": "k"}, journal=journal) as router:
            budget = Budget("run", dollars=50.0)
            model = router.within(budget)
            request = Request(model=name, messages=(UserMessage(text="hi"),))
            text = (await model.complete(request)).text
            with pytest.raises(BudgetExceeded):
                await router.within(Budget("run", dollars=0.01)).complete(replace(request, slot="not stored"))
        journal.close()
        return text, budget.billed.dollars

    assert asyncio.run(ask()) == ("HI", pytest.approx(0.2))


def test_a_tool_is_available_and_filtered(tmp_path: Path) -> None:
    assert offered_tools("fred", 1, {"example_tool", "submit"}) == ("example_tool", "submit")

    async def use(services: Services) -> str:
        rules = LeakageRules(as_of=AsOf.day("2025-01-05", mode="live"), question=QUESTION)
        tools = FilteredTools.around(plugin_tools(services, QUESTION), rules, None)
        return (await tools.use("example_tool", {"word": "rain"})).text

    assert "rain is a word" in with_services(use, tmp_path)


@pytest.mark.parametrize(
    ("attributes", "offered"),
    [
        ({"sources": ("fred",)}, True),
        ({"sources": ("manifold",)}, False),
        ({"key_variables": ("EXAMPLE_TOOL_KEY",)}, False),
        ({"key_variables": ("EXAMPLE_TOOL_KEY",), "sources": ("fred",)}, False),
    ],
)
def test_a_tool_is_offered_with_its_key_and_for_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attributes: dict[str, Any], offered: bool
) -> None:
    async def tools(services: Services) -> list[str]:
        return [tool.spec.name for tool in plugin_tools(services, replace(QUESTION, source="fred"))]

    for name, value in attributes.items():
        monkeypatch.setattr(load("tools", "example_tool"), name, value, raising=False)
    assert with_services(tools, tmp_path) == ["example_tool"] * offered


def test_a_grounder_can_be_chosen_for_trees() -> None:
    assert TreeOptions(grounder="example_grounder").grounder == "example_grounder"
    with pytest.raises(InputError, match="no grounder is called"):
        TreeOptions(grounder="nobody")


def test_a_metric_ranks_a_board() -> None:
    rows = [{"forecaster": "A", "question": "q", "target": "yes", "p": 0.8}]
    board = score(rows, [{"question": "q", "target": "yes", "outcome": 1}], metric="example_brier")
    assert board.scores[0].metrics["example_brier"].estimate == pytest.approx(0.04)


def test_a_synthesis_rule_can_be_chosen_for_trees() -> None:
    assert TreeOptions(rule="example_rule").rule == "example_rule"


def test_a_study_runs_by_name() -> None:
    assert foretell.study("example_study").sentences == ("It can.",)


def test_a_forecaster_asks_the_model_of_its_run(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"when": "How likely", "text": "0.7"}\n')
    spec = tmp_path / "run.yaml"
    spec.write_text(
        "questions: {dataset: 'example_set:2'}\nforecaster: example_forecaster\n"
        f"models: {{agent: 'scripted:{script}'}}\n"
    )
    out = tmp_path / "tables"
    environment = os.environ | {"FORETELL_HOME": str(tmp_path / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "foretell.cli.main", "run", str(spec), "--out", str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "0.7" in "".join(path.read_text() for path in out.rglob("forecasts.csv"))


def test_another_process_finds_the_plug_ins(example: Path) -> None:
    program = "from foretell import plugins; print(*(n for k in plugins.KINDS for n in plugins.added(k)))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(example), *sys.path])}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert len([name for name in printed if name.startswith("example_")]) == 11
