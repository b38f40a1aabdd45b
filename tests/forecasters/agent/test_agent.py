"""The agent as a forecaster: what it insists on, and how it marks what it returns."""

import asyncio
from dataclasses import replace

import pytest

from foretell.forecasters import CannotForecast, Context, Forecaster, attempt
from foretell.forecasters.agent import BeliefAgent
from foretell.models import Reply
from foretell.models.providers import ScriptedModel
from foretell.questions import AsOf
from foretell.tools import FencedTools, FenceRules


def test_it_is_a_forecaster_and_a_failure_is_cannot_forecast(desk):
    forecaster: Forecaster = BeliefAgent()
    with pytest.raises(CannotForecast, match="no probability was stated"):
        asyncio.run(forecaster.forecast(desk.question, desk.context(ScriptedModel([Reply(text="?")] * 4))))


def test_it_says_what_it_needs(desk):
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(BeliefAgent().forecast(desk.question, Context(as_of=desk.question.as_of)))


def test_a_toolbox_fenced_at_another_day_is_refused(desk):
    context = desk.context(ScriptedModel([]))
    later = replace(
        context, tools=lambda question, run: desk._toolbox(question, replace(run, as_of=AsOf.day("2026-01-01")))
    )
    with pytest.raises(ValueError, match="fenced at"):
        asyncio.run(attempt(BeliefAgent(), desk.question, later))


def test_a_clairvoyant_run_is_marked_in_its_name(desk, say, think):
    def open_toolbox(question, run):
        return FencedTools.around([], FenceRules(as_of=run.as_of, question=question, clairvoyant=True), None)

    model = ScriptedModel([say("submit", {"p": 0.9, "reason": "r"}, belief=think(0.9))])
    context = replace(desk.context(model), tools=open_toolbox)
    forecast = asyncio.run(attempt(BeliefAgent(), desk.question, context))
    assert forecast.forecaster == "full+clairvoyant"


def test_every_trial_gets_a_toolbox_of_its_own(desk, say, think):
    context = desk.context(ScriptedModel(lambda request: say("submit", {"p": 0.9, "reason": "r"}, belief=think(0.9))))
    for trial in range(2):
        asyncio.run(attempt(BeliefAgent(), desk.question, replace(context, trial=trial)))
    assert desk.toolboxes[0].sources is not desk.toolboxes[1].sources
    assert [request.slot.split("/")[1] for request in desk.requests] == ["trial 0", "trial 1"]
