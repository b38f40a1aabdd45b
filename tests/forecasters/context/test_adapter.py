"""Other forecasters on the same context: the same bytes as material, tools on or off, the market hidden or shown."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.forecasters.context.doubles import BACK, CUP, KeepAll, One, run_context, shared, source, words

from foretell.forecasters import Context, attempt
from foretell.forecasters.agent import FULL, BeliefAgent
from foretell.forecasters.base_rates import MarketForecaster
from foretell.forecasters.prompt import (
    VIEWS,
    ContextAdapter,
    PredictionContext,
    StoredContexts,
    context_toolbox,
    material,
)
from foretell.models import Reply, ToolCall, ToolSpec
from foretell.models.providers import ScriptedModel
from foretell.questions import AsOf, Failure, Forecast, Question, instant
from foretell.tools import FencedTools, FenceRules, Tool, ToolMaterial

BELIEF = {
    "reason": "r",
    "evidence_for": [],
    "evidence_against": [],
    "retract": [],
    "open_questions": [],
    "confidence": "low",
}


def submit(p: dict[str, float]) -> Reply:
    said = {"updated_belief": {**BELIEF, "p": p}, "reason": "So.", "p": p}
    return Reply(calls=(ToolCall(id="1", name="submit", arguments=json.dumps(said)),), finish="tool")


@dataclass
class Named:
    """A tool of which only the name matters."""

    name: str

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="d", parameters={"type": "object", "properties": {}})

    async def use(self, arguments: Any, as_of: Any) -> ToolMaterial:
        return ToolMaterial(heading="", items=())


@dataclass
class Boxes:
    """Makes toolboxes as a workbench does: prices only for questions that are markets."""

    asked: list[Question] = field(default_factory=list)

    def __call__(self, question: Question, context: Context) -> FencedTools:
        self.asked.append(question)
        tools: list[Tool] = [Named("web_search")]
        tools += [Named("fetch_prices")] if question.kind == "market" else []
        fence = FenceRules(as_of=context.as_of, question=question, emit=context.emit)
        return FencedTools.around(tools, fence, KeepAll())


def run(forecaster: ContextAdapter, boxes: Boxes) -> tuple[Forecast | Failure, list[Any]]:
    model = ScriptedModel([submit({"target_1": 0.7, "target_2": 0.3})])
    context = replace(run_context(model), tools=boxes)
    return asyncio.run(attempt(forecaster, CUP, context)), model.requests


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("tools", [True, False])
def test_the_agent_reads_the_same_bytes(view: str, tools: bool) -> None:
    boxes = Boxes()
    forecaster = ContextAdapter(forecaster=BeliefAgent(), contexts=One(shared()), view=view, tools=tools)
    forecast, requests = run(forecaster, boxes)
    assert isinstance(forecast, Forecast)
    assert forecast.p == pytest.approx({"Red Team": 0.7, "Blue Team": 0.3})
    assert forecast.forecaster == f"full on context {view} {'with' if tools else 'without'} tools"
    told = requests[0].messages[1].text
    assert material(shared(), VIEWS[view]) in told
    assert "Two teams are left." in told
    assert ("0.613" in words(requests[0])) == VIEWS[view].market
    offered = {tool.name for tool in requests[0].tools}
    assert ("web_search" in offered) == tools
    assert ("fetch_prices" in offered) == (tools and VIEWS[view].market)
    # What tools are for is decided by the question as it was asked, not by the addresses in its material.
    assert all("news.example" not in question.background for question in boxes.asked)


def test_the_agents_crowd_variant_starts_from_the_context_s_quotes_only_where_they_are_shown() -> None:
    agent = BeliefAgent(variant=FULL.with_signals(crowd=True, prior=False))
    for view in ("both", "sources"):
        _, requests = run(ContextAdapter(forecaster=agent, contexts=One(shared()), view=view), Boxes())
        assert ("the market stood at" in words(requests[0])) == (view == "both")


@pytest.mark.parametrize("tools", [True, False])
def test_a_tree_plans_with_the_context_and_its_leaves_can_search_it(tools: bool) -> None:
    from foretell.forecasters.tree import TreeForecaster

    def speak(request: Any) -> Any:
        return heard_by_a_tree(request)

    model = ScriptedModel(speak)
    context = replace(run_context(model), tools=Boxes())
    forecaster = ContextAdapter(forecaster=TreeForecaster(), contexts=One(shared()), tools=tools)
    answer = asyncio.run(attempt(forecaster, CUP, context))
    assert isinstance(answer, Forecast)
    assert answer.forecaster.endswith(f"on context both {'with' if tools else 'without'} tools")
    told = [words(request) for request in model.requests]
    assert material(shared())[:500] in told[0]
    assert any("Report 1" in one and "[search_1_result_1]" in one for one in told) == (not tools)


def heard_by_a_tree(request: Any) -> Reply:
    """The fake that plays all parts of a tree, without a wire."""
    from foretell.models import request_key
    from foretell.practice.models import ModelQuery, OfferedTool, tree_script

    texts = [message.text for message in request.messages]
    said = tree_script(
        ModelQuery(
            format="openai",
            hash=request_key(request),
            json={"messages": [{"role": type(message).__name__.lower()} for message in request.messages]},
            model="planner-2",
            words="\n".join(texts),
            last=texts[-1],
            tools=tuple(OfferedTool(name=tool.name, schema=tool.parameters) for tool in request.tools),
            force=request.force,
            schema=request.schema,
        )
    )
    calls = tuple(ToolCall(id=str(n), name=c.name, arguments=json.dumps(c.arguments)) for n, c in enumerate(said.calls))
    return Reply(text=said.text, calls=calls, finish="tool" if calls else "stop")


@pytest.mark.parametrize("mode", ["live", "backtest"])
def test_the_sources_of_a_context_can_be_searched_at_any_moment(mode: Any) -> None:
    midnight = AsOf(at=instant("2026-01-10T00:00:00Z"), mode=mode)
    bare = replace(CUP, targets=tuple(replace(target, snapshot=None) for target in CUP.targets))
    undated = tuple(replace(source(n), published=None) for n in (1, 2))
    context = PredictionContext(question=bare, as_of=midnight, sources=undated)
    seen = asyncio.run(context_toolbox(context, lambda event: None).use("web_search", {"query": "2th report"}))
    assert seen.text.index("Report 2") < seen.text.index("Report 1")
    assert len(seen.source_ids) == 2
    assert context_toolbox(context, lambda event: None, searchable=False).specs() == ()


def test_forecasters_without_a_model_see_the_question_as_the_view_shows_it() -> None:
    market = ContextAdapter(forecaster=MarketForecaster(), contexts=One(shared()))
    plain = Context(as_of=BACK)
    forecast = asyncio.run(market.forecast(CUP, plain))
    assert forecast.p["Red Team"] == pytest.approx(0.633 / 1.04)
    assert forecast.trace == f"context {shared().digest}"
    hidden = asyncio.run(attempt(replace(market, view="sources"), CUP, plain))
    assert isinstance(hidden, Failure)


def test_without_a_context_there_is_no_forecast() -> None:
    events: list[Any] = []
    lost = ContextAdapter(forecaster=MarketForecaster(), contexts=StoredContexts([]))
    answer = asyncio.run(attempt(lost, CUP, run_context(ScriptedModel([]), events)))
    assert isinstance(answer, Failure)
    assert "no context is stored" in answer.error
    assert len(events) == 1
