"""The single-prompt forecaster: repairs, asks again, fails in words, keeps what was said beside what fits."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.forecasters.context.doubles import (
    AT,
    BACK,
    CUP,
    SNOW,
    VISITS,
    Desk,
    One,
    run_context,
    say,
    shared,
    words,
)

from foretell.forecasters import CannotForecast, Context, attempt, make_forecaster
from foretell.forecasters.agent import Clamp, without_numbers
from foretell.forecasters.prompt import VIEWS, PromptForecaster, QuestionOnly, StoredContexts, fit, on_context, render
from foretell.metrics import mean_brier
from foretell.models import BudgetExceeded, ModelError, ModelSettings, Reply
from foretell.models.providers import ScriptedModel
from foretell.questions import (
    AsOf,
    BeliefRevised,
    Failed,
    Failure,
    Forecast,
    ForecastMade,
    InputError,
    ModelCalled,
    from_json,
    to_json,
)


def desk(question=CUP, **more) -> Desk:
    return Desk(forecaster=PromptForecaster(contexts=One(shared(question)), **more), question=question)


def test_exclusive_outcomes_are_made_to_fit_and_both_are_kept() -> None:
    at = desk()
    forecast = at.run([say({"target_1": 0.8, "target_2": 0.4})])
    assert isinstance(forecast, Forecast)
    assert forecast.p == pytest.approx({"Red Team": 0.7, "Blue Team": 0.3})
    (belief,) = at.of(BeliefRevised)
    assert belief.belief["stated"] == {"Red Team": 0.8, "Blue Team": 0.4}
    assert belief.belief["coherent"] == pytest.approx(forecast.p)
    assert belief.belief["context"] == shared().digest
    assert (belief.belief["view"], belief.belief["elicitation"]) == ("both", "default")
    assert json.loads(json.dumps(belief.belief)) == belief.belief
    assert "stated Red Team 0.800, Blue Team 0.400" in forecast.rationale
    assert "Because of the reports." in forecast.rationale
    assert without_numbers(forecast.rationale) == "Because of the reports."
    assert forecast.trace == f"context {shared().digest}"
    assert forecast.distribution is not None
    assert from_json(to_json(forecast), Forecast) == forecast


def test_other_outcomes_stay_as_stated() -> None:
    at = desk(VISITS)
    forecast = at.run([say({"x": 0.9, "y": 0.9, "z": 0.1})])
    assert forecast.p == {"x": 0.9, "y": 0.9, "z": 0.1}
    assert forecast.distribution is None
    ladder = replace(
        VISITS, targets=tuple(replace(t, id=f"Above {n}") for t, n in zip(VISITS.targets, (1, 2, 3), strict=True))
    )
    stated = {"Above 1": 0.2, "Above 2": 0.5, "Above 3": 0.1}
    assert fit(ladder, stated).p == stated


def test_a_model_that_is_too_slow_names_the_setting_that_allows_more_time() -> None:
    class Silent:
        async def complete(self, request: Any) -> Reply:
            await asyncio.sleep(60)
            raise AssertionError

    found = desk(seconds=0.05).run(Silent())
    assert isinstance(found, Failure)
    assert "0.05 s were not enough; set options.seconds=SECONDS" in found.error


def test_making_probabilities_fit_never_worsens_the_brier_score() -> None:
    for a, b in ((0.9, 0.9), (0.1, 0.05), (1.0, 0.0), (0.6, 0.7)):
        fitted = fit(CUP, {"Red Team": a, "Blue Team": b}).p
        for truth in ((1, 0), (0, 1)):
            assert mean_brier(list(fitted.values()), truth) <= mean_brier([a, b], truth) + 1e-12


def test_a_bad_answer_goes_back_with_the_reason_and_the_next_one_counts() -> None:
    at = desk()
    forecast = at.run(["I cannot say.", say({"target_1": 0.6}), say({"target_1": 0.6, "target_2": 0.4})])
    assert forecast.p == pytest.approx({"Red Team": 0.6, "Blue Team": 0.4})
    assert "no JSON object" in words(at.requests[1])
    assert "`target_2` missing" in words(at.requests[2])
    assert forecast.usage.calls == 3
    assert forecast.usage.input_tokens == 200


def test_without_a_usable_answer_it_is_a_failure_that_says_why() -> None:
    at = desk()
    failure = at.run([say({"target_1": 7.5, "target_2": 0.1})] * 3)
    assert isinstance(failure, Failure)
    assert "no usable answer in 3 attempts" in failure.error
    assert "target_1 is 7.5" in failure.error
    assert [event.error for event in at.of(Failed)] == [failure.error]
    assert at.of(ForecastMade) == []


@pytest.mark.parametrize("error", [ModelError("down"), BudgetExceeded("nothing left")])
def test_a_model_that_fails_is_a_failure(error: ModelError) -> None:
    failure = desk().run([error])
    assert isinstance(failure, Failure)
    assert failure.error == str(error)
    with pytest.raises(CannotForecast, match=str(error)):
        asyncio.run(PromptForecaster(contexts=One(shared())).forecast(CUP, run_context(ScriptedModel([error]))))


@pytest.mark.parametrize(
    "text",
    [
        "<html>" + "<p>x</p>" * 300_000,
        '{"rationale": {"a": [1]}, "probabilities": ' + "[" * 50_000,
        '{"probabilities": {"target_1": "<script>", "target_2": null}}',
        '{"probabilities": {"\ud800": "\udfff"}} \ud800',
        "",
    ],
)
def test_hostile_output_costs_little_and_ends_in_words(text: str) -> None:
    at = desk()
    failure = at.run([Reply(text=text)] * 3)
    assert isinstance(failure, Failure)
    assert len(failure.error) < 2_000
    assert all(len(words(request).encode()) < 12_000 for request in at.requests)


def test_html_in_a_rationale_stays_text() -> None:
    forecast = desk(SNOW).run([say({"yes": 0.2}, rationale="<script>alert(1)</script>")])
    assert "<script>" in forecast.rationale


@pytest.mark.parametrize("view", VIEWS)
def test_ablations_differ_in_what_is_shown_and_in_nothing_else(view: str) -> None:
    at = desk(view=view)
    at.run([say({"target_1": 0.6, "target_2": 0.4})])
    (request,) = at.requests
    assert request.messages[1].text == render(shared(), VIEWS[view])
    assert ("0.613" in words(request)) == VIEWS[view].market
    assert ("news.example" in words(request)) == VIEWS[view].sources


def test_all_models_are_sent_the_same_bytes() -> None:
    sent = set()
    for name in ("scripted:a", "scripted:b"):
        model = ScriptedModel([say({"target_1": 0.6, "target_2": 0.4})])
        run = run_context(model)
        run = replace(run, models=run.models.with_model("agent", name))
        asyncio.run(attempt(PromptForecaster(contexts=One(shared())), CUP, run))
        sent.add(tuple(message.text for message in model.requests[0].messages))
    assert len(sent) == 1


def test_ten_votes_are_ten_calls_that_are_paid_and_kept_apart() -> None:
    replies = [
        Reply(text=json.dumps({"rationale": f"r{n}", "answers": {"yes": "yes" if n < 7 else "no"}})) for n in range(10)
    ]
    at = desk(SNOW, elicitation="self-consistency")
    forecast = at.run(replies, seed=5, trial=2)
    assert forecast.p == pytest.approx({"yes": 0.7})
    assert forecast.usage.calls == 10
    assert len({request.slot for request in at.requests}) == 10
    assert sorted(request.settings.seed for request in at.requests) == [7 + 1000 * n for n in range(10)]
    assert len(at.of(ModelCalled)) == 10
    assert forecast.forecaster == "context both self-consistency"


def test_weighted_votes() -> None:
    def vote(word: str, sure: float) -> Reply:
        return Reply(text=json.dumps({"answers": {"yes": {"answer": word, "confidence": sure}}}))

    forecast = desk(SNOW, elicitation="weighted self-consistency").run([vote("yes", 0.9)] * 5 + [vote("no", 0.3)] * 5)
    assert forecast.p == pytest.approx({"yes": 0.75})


def test_a_part_that_is_lost_is_told_and_too_many_lost_parts_are_a_failure() -> None:
    def speak(request):
        text = request.messages[0].text
        if "calibrated prediction engine" in text:
            return ModelError("gone")
        return say({"yes": 0.2 if "carefully" in text or "experienced" in text else 0.4})

    forecast = desk(SNOW, elicitation="ensemble").run(ScriptedModel(speak))
    assert forecast.p == pytest.approx({"yes": (0.2 + 0.4 + 0.4) / 3})
    assert "probability rewrite 0 came to nothing: gone" in forecast.rationale
    failure = desk(SNOW, elicitation="bi-directional").run(
        ScriptedModel(
            lambda request: ModelError("gone") if "does NOT" in request.messages[0].text else say({"yes": 0.4})
        )
    )
    assert isinstance(failure, Failure)
    assert "1 of 2 calls came to nothing; the first: gone" in failure.error


def test_the_complement_is_asked_in_the_other_direction() -> None:
    at = desk(SNOW, elicitation="bi-directional")
    forecast = at.run(
        ScriptedModel(lambda request: say({"yes": 0.5 if "does NOT" in request.messages[0].text else 0.3}))
    )
    assert forecast.p == pytest.approx({"yes": 0.4})
    (belief,) = at.of(BeliefRevised)
    assert [call["p"] for call in belief.belief["calls"]] == [{"yes": 0.3}, {"yes": 0.5}]


def test_it_works_in_trials_like_any_forecaster() -> None:
    model = ScriptedModel([say({"yes": 0.2}), say({"yes": 0.4})])
    run = replace(run_context(model), as_of=SNOW.as_of)
    forecaster = PromptForecaster(contexts=QuestionOnly(), view="none")
    for trial, p in enumerate((0.2, 0.4)):
        forecast = asyncio.run(attempt(forecaster, SNOW, replace(run, trial=trial)))
        assert (forecast.p, forecast.trial, forecast.usage.calls) == ({"yes": p}, trial, 1)
    assert len({request.slot for request in model.requests}) == 2


def test_a_missing_or_wrong_context_is_no_forecast() -> None:
    at = Desk(forecaster=PromptForecaster(contexts=StoredContexts([])))
    failure = at.run([])
    assert isinstance(failure, Failure)
    assert "no context is stored for question cup" in failure.error
    with pytest.raises(ValueError, match="another question"):
        Desk(forecaster=PromptForecaster(contexts=One(shared(SNOW)))).run([])
    with pytest.raises(ValueError, match="is asked at"):
        Desk(forecaster=PromptForecaster(contexts=One(shared())), as_of=AsOf(at=AT, mode="live")).run([])
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(PromptForecaster().forecast(CUP, Context(as_of=BACK)))


def test_a_question_that_no_file_can_hold_is_a_failure() -> None:
    broken = replace(SNOW, text="\ud800")
    failure = Desk(forecaster=PromptForecaster(contexts=QuestionOnly()), question=broken).run([])
    assert isinstance(failure, Failure)
    assert "characters" in failure.error


def test_stored_contexts_answer_by_question_round_and_moment() -> None:
    stored = StoredContexts([shared(), shared(SNOW), shared()])
    assert len(stored) == 2
    assert asyncio.run(stored.of(SNOW, BACK)) == shared(SNOW)
    with pytest.raises(ValueError, match="two contexts differ"):
        StoredContexts([shared(), shared(sources=1)])


def test_sampling_clamp_and_distance_are_settings() -> None:
    at = desk(sampling=ModelSettings(temperature=0.3), clamp=Clamp(low=0.1, high=0.9), distance="log")
    forecast = at.run([say({"target_1": 1.0, "target_2": 0.3})])
    assert at.requests[0].settings.temperature == 0.3
    assert 0.1 <= forecast.p["Blue Team"] <= forecast.p["Red Team"] <= 0.9


def test_options_of_a_run() -> None:
    made = make_forecaster("context", {"view": "none", "elicitation": "ensemble", "clamp": [0.01, 0.99]})
    assert made.name == "context none ensemble"
    for options, told in (
        ({"views": "none"}, "no option 'views'"),
        ({"view": "nil"}, "no view 'nil'"),
        ({"elicitation": "loud"}, "no way of asking 'loud'"),
        ({"clamp": 3}, "write two numbers"),
        ({"attempts": 0}, "at least one"),
    ):
        with pytest.raises(InputError, match=told):
            make_forecaster("context", options)
    with pytest.raises(InputError, match="true or false"):
        on_context(made, {"tools": "off"}, QuestionOnly())
    assert on_context(made, {"tools": False}, QuestionOnly()).name.endswith("without tools")
