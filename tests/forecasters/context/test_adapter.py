"""Other forecasters on a shared context: the same text, with or without tools, with or without the market."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.forecasters.context.doubles import BACK, CUP, KeepAll, One, run_context, shared, source, words

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import FULL
from foretell.forecasters.base_rates.baselines import MarketForecaster
from foretell.forecasters.forecaster import Context, attempt
from foretell.forecasters.prompt.adapter import ContextAdapter, context_toolbox
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.forecasters.prompt.rendering import VIEWS, material
from foretell.models.model import Reply, ToolCall, ToolSpec
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import Tool, ToolMaterial

BELIEF = {
    "reason": "r",
    "evidence_for": [],
    "evidence_against": [],
    "retract": [],
    "open_questions": [],
    "confidence": "low",
}


def submit(p: dict[str, float]) -> Reply:
    arguments = {"updated_belief": {**BELIEF, "p": p}, "reason": "So.", "p": p}
    return Reply(calls=(ToolCall(id="1", name="submit", arguments=json.dumps(arguments)),), finish="tool")


@dataclass
class NamedTool:
    """A tool with a name and no results."""

    name: str

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="d", parameters={"type": "object", "properties": {}})

    async def use(self, arguments: Any, as_of: Any) -> ToolMaterial:
        return ToolMaterial(heading="", items=())


@dataclass
class ToolboxFactory:
    """Makes toolboxes with a tool for prices only if the question is a market."""

    questions: list[Question] = field(default_factory=list)

    def __call__(self, question: Question, context: Context) -> FilteredTools:
        self.questions.append(question)
        tools: list[Tool] = [NamedTool("web_search")]
        tools += [NamedTool("fetch_prices")] if question.kind == "market" else []
        rules = LeakageRules(as_of=context.as_of, question=question, emit=context.emit)
        return FilteredTools.around(tools, rules, KeepAll())


def run(forecaster: ContextAdapter, toolboxes: ToolboxFactory) -> tuple[Forecast | Failure, list[Any]]:
    model = ScriptedModel([submit({"target_1": 0.7, "target_2": 0.3})])
    context = replace(run_context(model, contexts=One(shared())), tools=toolboxes)
    return asyncio.run(attempt(forecaster, CUP, context)), model.requests


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("tools", [True, False])
def test_agent_reads_the_same_text_as_the_single_prompt(view: str, tools: bool) -> None:
    toolboxes = ToolboxFactory()
    forecaster = ContextAdapter(forecaster=BeliefAgent(), view=view, tools=tools)
    forecast, requests = run(forecaster, toolboxes)
    assert isinstance(forecast, Forecast)
    assert forecast.p == pytest.approx({"Red Team": 0.7, "Blue Team": 0.3})
    assert forecast.forecaster == f"full on context {view} {'with' if tools else 'without'} tools"
    text = requests[0].messages[1].text
    assert material(shared(), VIEWS[view]) in text
    assert "Two teams are left." in text
    assert ("0.613" in words(requests[0])) == VIEWS[view].market
    offered = {tool.name for tool in requests[0].tools}
    assert ("web_search" in offered) == tools
    assert ("fetch_prices" in offered) == (tools and VIEWS[view].market)
    # Tools see the original question, without the addresses of the sources.
    assert all("news.example" not in question.background for question in toolboxes.questions)


def test_agent_with_price_uses_the_quotes_only_if_the_market_is_shown() -> None:
    agent = BeliefAgent(variant=FULL.with_signals(market_price=True, prior=False))
    for view in ("both", "sources"):
        _, requests = run(ContextAdapter(forecaster=agent, view=view), ToolboxFactory())
        assert ("the market stood at" in words(requests[0])) == (view == "both")


@pytest.mark.parametrize("tools", [True, False])
def test_tree_reads_the_context_and_its_leaves_can_search_it(tools: bool) -> None:
    from foretell.forecasters.tree.forecaster import TreeForecaster

    def respond(request: Any) -> Any:
        return tree_reply(request)

    model = ScriptedModel(respond)
    context = replace(run_context(model, contexts=One(shared())), tools=ToolboxFactory())
    forecaster = ContextAdapter(forecaster=TreeForecaster(), tools=tools)
    answer = asyncio.run(attempt(forecaster, CUP, context))
    assert isinstance(answer, Forecast)
    assert answer.forecaster.endswith(f"on context both {'with' if tools else 'without'} tools")
    texts = [words(request) for request in model.requests]
    assert material(shared())[:500] in texts[0]
    assert any("Report 1" in text and "[search_1_result_1]" in text for text in texts) == (not tools)


def tree_reply(request: Any) -> Reply:
    """Return the reply of the fake model for all roles of a tree, without HTTP."""
    from foretell.models.canonical import request_key
    from foretell.practice.models.formats import ModelQuery, RequestedTool
    from foretell.practice.models.scripts import tree_script

    texts = [message.text for message in request.messages]
    scripted = tree_script(
        ModelQuery(
            format="openai",
            hash=request_key(request),
            json={"messages": [{"role": type(message).__name__.lower()} for message in request.messages]},
            model="planner-2",
            words="\n".join(texts),
            last=texts[-1],
            tools=tuple(RequestedTool(name=tool.name, schema=tool.parameters) for tool in request.tools),
            force=request.force,
            schema=request.schema,
        )
    )
    calls = tuple(
        ToolCall(id=str(n), name=c.name, arguments=json.dumps(c.arguments)) for n, c in enumerate(scripted.calls)
    )
    return Reply(text=scripted.text, calls=calls, finish="tool" if calls else "stop")


@pytest.mark.parametrize("mode", ["live", "backtest"])
def test_sources_of_a_context_can_be_searched_live_and_in_backtests(mode: Any) -> None:
    midnight = AsOf(at=instant("2026-01-10T00:00:00Z"), mode=mode)
    bare = replace(CUP, targets=tuple(replace(target, snapshot=None) for target in CUP.targets))
    undated = tuple(replace(source(n), published=None) for n in (1, 2))
    context = PredictionContext(question=bare, as_of=midnight, sources=undated)
    seen = asyncio.run(context_toolbox(context, lambda event: None).use("web_search", {"query": "2th report"}))
    assert seen.text.index("Report 2") < seen.text.index("Report 1")
    assert len(seen.source_ids) == 2
    assert context_toolbox(context, lambda event: None, searchable=False).specs() == ()


def test_forecasters_without_a_model_get_the_question_as_shown_by_the_view() -> None:
    market = ContextAdapter(forecaster=MarketForecaster())
    plain = Context(as_of=BACK, contexts=One(shared()))
    forecast = asyncio.run(market.forecast(CUP, plain))
    assert forecast.p["Red Team"] == pytest.approx(0.633 / 1.04)
    assert forecast.trace == f"context {shared().digest}"
    hidden = asyncio.run(attempt(replace(market, view="sources"), CUP, plain))
    assert isinstance(hidden, Failure)
