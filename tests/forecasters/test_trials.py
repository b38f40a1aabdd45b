"""Trials: independent, parallel, and never lost in silence."""

import asyncio
from dataclasses import dataclass, field

import pytest

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import ZERO_SHOT
from foretell.forecasters.combine.aggregate import Aggregate
from foretell.forecasters.combine.trials import RepeatedTrials
from foretell.forecasters.forecaster import CannotForecast, Context, Models
from foretell.models.model import ModelError, Reply, ToolCall
from foretell.models.names import ModelRoles
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.forecast import Failure, Forecast, Numeric
from foretell.questions.question import Question, Target
from foretell.questions.trace import ForecastMade
from foretell.tools.fence import FencedTools
from foretell.tools.leak_filter import LeakVerdict
from foretell.tools.rules import FenceRules

QUESTION = Question(id="q", source="own", text="Will it?", due="2025-10-26", targets=(Target(id="yes"),))
ZERO = BeliefAgent(variant=ZERO_SHOT)


class KeepAll:
    async def judge(self, excerpts, as_of, question):
        return [LeakVerdict(word="KEEP", reason="")] * len(excerpts)


def context(model, **more):
    def toolbox(question, run):
        return FencedTools.around([], FenceRules(as_of=run.as_of, question=question), KeepAll())

    cast = ModelRoles(agent="scripted:x")
    return Context(as_of=QUESTION.as_of, models=Models(roles=cast, model=model), tools=toolbox, **more)


def answer(p, reason="because"):
    arguments = f'{{"p": {p}, "reason": "{reason}"}}'
    return Reply(calls=(ToolCall(id="c", name="submit", arguments=arguments),))


def by_trial(*lines):
    """A model that says a line to each trial, whatever the order in which they come."""
    return ScriptedModel(lambda request: lines[int(request.slot.split("trial ")[1].split("/")[0])])


def test_two_trials_have_distinct_cells():
    model = by_trial(answer(0.2), answer(0.6))
    trials = RepeatedTrials(forecaster=ZERO, count=2, combine=Aggregate(rule="mean"))
    forecast = asyncio.run(trials.forecast(QUESTION, context(model, seed=7)))
    assert forecast.p == pytest.approx({"yes": 0.4})
    assert len({request.slot for request in model.requests}) == 2
    assert {request.settings.seed for request in model.requests} == {7, 8}
    assert forecast.usage.calls == 2


def test_trials_run_at_the_same_time():
    @dataclass
    class Together:
        name: str = "together"
        inside: int = 0
        most: int = 0
        seen: list[int] = field(default_factory=list)

        async def forecast(self, question, run):
            self.inside += 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(0)
            self.inside -= 1
            return Forecast(question_id=question.id, forecaster="t", as_of=run.as_of, p={"yes": 0.5})

    together = Together()
    asyncio.run(RepeatedTrials(forecaster=together, count=5).forecast(QUESTION, Context(as_of=QUESTION.as_of)))
    assert together.most == 5


def test_failures_are_counted_and_only_all_of_them_fail_the_question():
    trials = RepeatedTrials(forecaster=ZERO, count=3)
    forecast = asyncio.run(trials.forecast(QUESTION, context(by_trial(answer(0.7), ModelError("x"), answer(0.7)))))
    assert forecast.p == pytest.approx({"yes": 0.7})
    assert "2 of 3 trials answered" in forecast.rationale
    assert "Trial 1 failed" in forecast.rationale
    with pytest.raises(CannotForecast, match="all 3 trials failed"):
        asyncio.run(trials.forecast(QUESTION, context(by_trial(*[ModelError("down")] * 3))))
    each = asyncio.run(trials.run(QUESTION, context(by_trial(answer(0.7), ModelError("x"), answer(0.7)))))
    assert [(type(one), one.trial) for one in each] == [(Forecast, 0), (Failure, 1), (Forecast, 2)]


def test_each_trial_can_have_its_own_listener():
    heard = {0: [], 1: []}
    trials = RepeatedTrials(forecaster=ZERO, count=2, listen=lambda trial: heard[trial].append)
    asyncio.run(trials.forecast(QUESTION, context(by_trial(answer(0.2), answer(0.6)))))
    made = {trial: [event.p["yes"] for event in heard[trial] if isinstance(event, ForecastMade)] for trial in heard}
    assert made == {0: [0.2], 1: [0.6]}


def test_options_still_sum_to_one_after_aggregation():
    options = Question(
        id="o", source="own", text="?", due="2025-10-26", targets=tuple(Target(id=x) for x in "abc"), exclusive=True
    )
    model = by_trial(answer('{"a": 0.9, "b": 0.05, "c": 0.05}'), answer('{"a": 0.2, "b": 0.2, "c": 0.6}'))
    forecast = asyncio.run(RepeatedTrials(forecaster=ZERO, count=2).forecast(options, context(model)))
    assert sum(forecast.p.values()) == pytest.approx(1)
    assert forecast.distribution is not None


def test_numeric_distributions_are_averaged_by_quantile():
    question = Question(id="n", source="own", text="?", due="2025-10-26", targets=(Target(id=">2"),), subtype="numeric")
    said = [f'{{"quantiles": {{"q10": {a}, "q50": {a + 2}, "q90": {a + 4}}}, "reason": "r"}}' for a in (0, 2)]
    model = by_trial(*(Reply(calls=(ToolCall(id="c", name="submit", arguments=one),)) for one in said))
    forecast = asyncio.run(RepeatedTrials(forecaster=ZERO, count=2).forecast(question, context(model)))
    assert isinstance(forecast.distribution, Numeric)
    assert forecast.distribution.quantile(0.5) == 3
