"""The agent as a forecaster: what it requires, and how it marks its forecasts."""

import asyncio
from dataclasses import replace

import pytest

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.forecaster import CannotForecast, Context, Forecaster, attempt
from foretell.models.model import Reply
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.as_of import AsOf
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules


def test_agent_without_a_stated_probability_raises_cannot_forecast(harness):
    forecaster: Forecaster = BeliefAgent()
    with pytest.raises(CannotForecast, match="no probability was stated"):
        asyncio.run(forecaster.forecast(harness.question, harness.context(ScriptedModel([Reply(text="?")] * 4))))


def test_agent_without_a_model_raises_cannot_forecast(harness):
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(BeliefAgent().forecast(harness.question, Context(as_of=harness.question.as_of)))


def test_toolbox_filtered_at_another_day_raises_an_error(harness):
    context = harness.context(ScriptedModel([]))
    later = replace(
        context, tools=lambda question, run: harness._toolbox(question, replace(run, as_of=AsOf.day("2026-01-01")))
    )
    with pytest.raises(ValueError, match="filtered as of"):
        asyncio.run(attempt(BeliefAgent(), harness.question, later))


def test_unfiltered_forecast_is_marked_in_its_name(harness, call_tool, make_belief):
    def open_toolbox(question, run):
        return FilteredTools.around([], LeakageRules(as_of=run.as_of, question=question, unfiltered=True), None)

    model = ScriptedModel([call_tool("submit", {"p": 0.9, "reason": "r"}, belief=make_belief(0.9))])
    context = replace(harness.context(model), tools=open_toolbox)
    forecast = asyncio.run(attempt(BeliefAgent(), harness.question, context))
    assert forecast.forecaster == "full+unfiltered"


def test_every_trial_gets_its_own_toolbox(harness, call_tool, make_belief):
    context = harness.context(
        ScriptedModel(lambda request: call_tool("submit", {"p": 0.9, "reason": "r"}, belief=make_belief(0.9)))
    )
    for trial in range(2):
        asyncio.run(attempt(BeliefAgent(), harness.question, replace(context, trial=trial)))
    assert harness.toolboxes[0].sources is not harness.toolboxes[1].sources
    assert [request.slot.split("/")[1] for request in harness.requests] == ["trial 0", "trial 1"]
