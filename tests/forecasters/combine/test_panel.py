"""The panel: sees reasons and no numbers, answers every target, and says when the mean answered in its place."""

import asyncio
import json

import pytest

from foretell.forecasters import CannotForecast, Context, Models
from foretell.forecasters.combine import Aggregate, ReasonsPanel
from foretell.models import BudgetExceeded, ModelError, ModelRoles, ModelSettings, Reply, TokenCount
from foretell.models.providers import ScriptedModel
from foretell.questions import Forecast, ForecastMade, ModelCalled, Numeric, Question, Target

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
    cast = ModelRoles(
        agent="scripted:agent", others={"judge": "scripted:judge"}, settings={"judge": ModelSettings(seed=3)}
    )
    return Context(as_of=ONE.as_of, models=Models(roles=cast, model=model), tools=no_tools, **more)


def trial(p, reason, question=ONE, number=0):
    p = {"yes": p} if isinstance(p, float) else p
    numbers = ", ".join(f"{target} {value:.3f}" for target, value in p.items())
    rationale = f"Forecast: {numbers} (submitted).\n\n{reason}"
    return Forecast(
        question_id=question.id, forecaster="f", as_of=question.as_of, p=p, trial=number, rationale=rationale
    )


TRIALS = [trial(0.21, "The contractor is late."), trial(0.62, "An opening is announced.", number=1)]


def say(**what):
    return Reply(text=json.dumps(what), tokens=TokenCount(input=100, output=20))


def judged(script, trials=TRIALS, question=ONE, **more):
    model = ScriptedModel(script)
    run = context(model, **more)
    return asyncio.run(ReasonsPanel().judge(question, trials, run)), model


def test_it_reads_reasons_and_no_numbers():
    forecast, model = judged([say(reason="The announcement is official.", p=0.44)])
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
    assert (usage.calls, usage.input_tokens, usage.unpriced) == (1, 100, 1), "nobody knows the price of a script"


def test_its_calls_and_its_answer_are_events():
    heard = []
    judged([say(reason="So.", p=0.3)], emit=heard.append)
    assert [type(event) for event in heard] == [ModelCalled, ForecastMade]
    assert heard[0].role == "judge"


@pytest.mark.parametrize("error", [ModelError("down"), BudgetExceeded("nothing left")])
def test_where_the_model_fails_the_logit_mean_answers_and_says_so(error):
    forecast, _ = judged([error])
    expected = Aggregate(rule="logit-mean").apply([one.p for one in TRIALS])
    assert forecast.p == pytest.approx(expected)
    assert f"no answer ({error}): this is the logit mean of 2 trials" in forecast.rationale


def test_an_answer_that_is_no_json_is_asked_for_again():
    forecast, model = judged(["I think so", say(reason="So.", p=0.3)])
    assert forecast.p == {"yes": 0.3}
    assert len(model.requests) == 2
    forecast, model = judged(["no", "no", "no"])
    assert "logit mean" in forecast.rationale
    assert len(model.requests) == 3


@pytest.mark.parametrize("p", [35, "many", None, {"x": 0.2}])
def test_a_number_that_cannot_be_read_is_not_guessed(p):
    forecast, _ = judged([say(reason="So.", p=p)])
    assert "logit mean of 2 trials" in forecast.rationale
    assert forecast.p["yes"] == pytest.approx(0.397, abs=0.001)


def test_options_sum_to_one_and_a_missing_one_comes_from_the_mean():
    trials = [
        trial({"a": 0.6, "b": 0.3, "c": 0.1}, "A leads.", OPTIONS),
        trial({"a": 0.4, "b": 0.4, "c": 0.2}, "B gains.", OPTIONS),
    ]
    forecast, _ = judged([say(reason="So.", p={"a": 0.7, "b": 0.2, "c": 0.2})], trials, OPTIONS)
    assert sum(forecast.p.values()) == pytest.approx(1)
    assert forecast.p["a"] == pytest.approx(0.7 / 1.1)
    assert forecast.distribution is not None
    forecast, _ = judged([say(reason="So.", p={"a": 0.7, "b": 0.2})], trials, OPTIONS)
    assert "p of c is missing" in forecast.rationale
    assert sum(forecast.p.values()) == pytest.approx(1)


def test_numeric_questions_are_answered_by_quantiles():
    question = Question(id="n", source="own", text="?", due="2025-10-26", targets=(Target(id=">2"),), subtype="numeric")
    trials = [trial({">2": 0.4}, "Low.", question), trial({">2": 0.6}, "High.", question)]
    said = say(reason="So.", quantiles={"q10": 0, "q50": 2, "q90": 4})
    forecast, _ = judged([said], trials, question)
    assert forecast.p == {">2": 0.5}
    assert isinstance(forecast.distribution, Numeric)


def test_certainty_is_clamped_as_the_agents_is():
    forecast, _ = judged([say(reason="Sure.", p=1.0)])
    assert forecast.p == {"yes": 0.95}


def test_without_trials_or_without_a_model_it_refuses():
    with pytest.raises(CannotForecast, match="at least one trial"):
        judged([], trials=[])
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(ReasonsPanel().judge(ONE, TRIALS, Context(as_of=ONE.as_of)))


def test_long_reasons_are_cut_and_missing_ones_told():
    forecasts = [trial(0.2, "x" * 9000 + "END"), trial(0.2, "")]
    _, model = judged([say(reason="So.", p=0.2)], forecasts)
    words = model.requests[0].messages[-1].text
    assert "END" not in words
    assert "(no reasons given)" in words
