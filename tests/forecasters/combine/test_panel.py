"""The panel: reads reasons without numbers, answers every target, and falls back to the mean with a note."""

import asyncio
import json

import pytest

from foretell.forecasters.combine.aggregate import Aggregate
from foretell.forecasters.combine.panel import ReasonsPanel
from foretell.forecasters.forecaster import CannotForecast, Context, Models
from foretell.models.model import BudgetExceeded, ModelError, ModelSettings, Reply, TokenCount
from foretell.models.names import ModelRoles
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question, Target
from foretell.questions.trace import ForecastMade, ModelCalled

ONE = Question(
    id="q",
    source="own",
    text="Will the bridge open?",
    due="2025-10-26",
    criteria="Cars must cross it.",
    targets=(Target(id="yes"),),
)
OPTIONS = Question(
    id="o",
    source="own",
    text="Who wins?",
    due="2025-10-26",
    targets=tuple(Target(id=x) for x in ("a", "b", "c")),
    exclusivity="exactly one",
)


def no_tools(question, context):
    raise AssertionError("the panel uses no tools")


def context(model, **more):
    roles = ModelRoles(
        agent="scripted:agent", others={"judge": "scripted:judge"}, settings={"judge": ModelSettings(seed=3)}
    )
    return Context(as_of=ONE.as_of, models=Models(roles=roles, model=model), tools=no_tools, **more)


def trial(p, reason, question=ONE, number=0):
    p = {"yes": p} if isinstance(p, float) else p
    numbers = ", ".join(f"{target} {value:.3f}" for target, value in p.items())
    rationale = f"Forecast: {numbers} (submitted).\n\n{reason}"
    return Forecast(
        question_id=question.id, forecaster="f", as_of=question.as_of, p=p, trial=number, rationale=rationale
    )


TRIALS = [trial(0.21, "The contractor is late."), trial(0.62, "An opening is announced.", number=1)]


def reply(**fields):
    return Reply(text=json.dumps(fields), tokens=TokenCount(input=100, output=20))


def judged(script, trials=TRIALS, question=ONE, **more):
    model = ScriptedModel(script)
    run = context(model, **more)
    return asyncio.run(ReasonsPanel().judge(question, trials, run)), model


def test_prompt_includes_reasons_but_no_numbers():
    forecast, model = judged([reply(reason="The announcement is official.", p=0.44)])
    assert forecast.p == {"yes": 0.44}
    assert "The announcement is official." in forecast.rationale
    assert "read the reasons of 2 trials" in forecast.rationale
    (request,) = model.requests
    words = "\n".join(message.text for message in request.messages)
    for wanted in ("Will the bridge open?", "Cars must cross it.", "contractor is late", "opening is announced"):
        assert wanted in words
    assert "2025-10-26" in words
    assert "0.21" not in words
    assert "0.62" not in words
    assert (request.model, request.settings.seed, request.slot) == ("scripted:judge", 3, "q/panel 0")
    assert request.schema is not None
    assert request.schema["required"] == ["reason", "p"]
    usage = forecast.usage
    assert (usage.calls, usage.input_tokens, usage.unpriced) == (1, 100, 1), "scripted models have no price"


def test_calls_and_answer_are_emitted_as_events():
    events = []
    judged([reply(reason="So.", p=0.3)], emit=events.append)
    assert [type(event) for event in events] == [ModelCalled, ForecastMade]
    assert events[0].role == "judge"


@pytest.mark.parametrize("error", [ModelError("down"), BudgetExceeded("nothing left")])
def test_logit_mean_is_used_with_a_note_if_the_model_fails(error):
    forecast, _ = judged([error])
    expected = Aggregate(rule="logit-mean").apply([trial_forecast.p for trial_forecast in TRIALS])
    assert forecast.p == pytest.approx(expected)
    assert f"no answer ({error}): this is the logit mean of 2 trials" in forecast.rationale


def test_model_is_asked_again_after_an_answer_that_is_not_json():
    forecast, model = judged(["I think so", reply(reason="So.", p=0.3)])
    assert forecast.p == {"yes": 0.3}
    assert len(model.requests) == 2
    forecast, model = judged(["no", "no", "no"])
    assert "logit mean" in forecast.rationale
    assert len(model.requests) == 3


@pytest.mark.parametrize("p", [35, "many", None, {"x": 0.2}])
def test_invalid_number_gives_the_logit_mean(p):
    forecast, _ = judged([reply(reason="So.", p=p)])
    assert "logit mean of 2 trials" in forecast.rationale
    assert forecast.p["yes"] == pytest.approx(0.397, abs=0.001)


def test_options_sum_to_one_and_missing_ones_come_from_the_mean():
    trials = [
        trial({"a": 0.6, "b": 0.3, "c": 0.1}, "A leads.", OPTIONS),
        trial({"a": 0.4, "b": 0.4, "c": 0.2}, "B gains.", OPTIONS),
    ]
    forecast, _ = judged([reply(reason="So.", p={"a": 0.7, "b": 0.2, "c": 0.2})], trials, OPTIONS)
    assert sum(forecast.p.values()) == pytest.approx(1)
    assert forecast.p["a"] == pytest.approx(0.7 / 1.1)
    assert forecast.distribution is not None
    forecast, _ = judged([reply(reason="So.", p={"a": 0.7, "b": 0.2})], trials, OPTIONS)
    assert "p of c is missing" in forecast.rationale
    assert sum(forecast.p.values()) == pytest.approx(1)


def test_numeric_questions_are_answered_with_quantiles():
    question = Question(id="n", source="own", text="?", due="2025-10-26", targets=(Target(id=">2"),), subtype="numeric")
    trials = [trial({">2": 0.4}, "Low.", question), trial({">2": 0.6}, "High.", question)]
    stated = reply(reason="So.", quantiles={"q10": 0, "q50": 2, "q90": 4})
    forecast, _ = judged([stated], trials, question)
    assert forecast.p == {">2": 0.5}
    assert isinstance(forecast.distribution, Numeric)


def test_certain_answers_are_clamped():
    forecast, _ = judged([reply(reason="Sure.", p=1.0)])
    assert forecast.p == {"yes": 0.95}


def test_panel_without_trials_or_model_raises_cannot_forecast():
    with pytest.raises(CannotForecast, match="at least one trial"):
        judged([], trials=[])
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(ReasonsPanel().judge(ONE, TRIALS, Context(as_of=ONE.as_of)))


def test_long_reasons_are_cut_and_missing_ones_are_marked():
    forecasts = [trial(0.2, "x" * 9000 + "END"), trial(0.2, "")]
    _, model = judged([reply(reason="So.", p=0.2)], forecasts)
    words = model.requests[0].messages[-1].text
    assert "END" not in words
    assert "(no reasons given)" in words
