"""The single-prompt forecaster: retries, failures, coherent forecasts and stated probabilities."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.forecasters.context.doubles import (
    AT,
    BACK,
    CUP,
    SNOW,
    VISITS,
    One,
    PromptHarness,
    run_context,
    say,
    shared,
    words,
)

from foretell.forecasters.agent.agent import without_numbers
from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.forecaster import CannotForecast, Context, attempt, make_forecaster
from foretell.forecasters.prompt.adapter import ContextAdapter, on_context
from foretell.forecasters.prompt.forecaster import PromptForecaster, fit
from foretell.forecasters.prompt.prediction_context import StoredContexts
from foretell.forecasters.prompt.rendering import VIEWS, render
from foretell.metrics import mean_brier
from foretell.models.model import BudgetExceeded, ModelError, ModelSettings, Reply
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_json, to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.trace import BeliefRevised, Failed, ForecastMade, ModelCalled


def make_harness(question=CUP, **more) -> PromptHarness:
    return PromptHarness(forecaster=PromptForecaster(**more), question=question, context=shared(question))


def test_exclusive_outcomes_are_made_coherent_and_stated_numbers_recorded() -> None:
    harness = make_harness()
    forecast = harness.run([say({"target_1": 0.8, "target_2": 0.4})])
    assert isinstance(forecast, Forecast)
    assert forecast.p == pytest.approx({"Red Team": 0.7, "Blue Team": 0.3})
    (belief,) = harness.of(BeliefRevised)
    assert belief.belief["stated"] == {"Red Team": 0.8, "Blue Team": 0.4}
    assert belief.belief["coherent"] == pytest.approx(forecast.p)
    assert belief.belief["context"] == shared().digest
    assert (belief.belief["view"], belief.belief["elicitation"]) == ("both", "default")
    assert json.loads(json.dumps(belief.belief)) == belief.belief
    assert "stated Red Team 80.0 %, Blue Team 40.0 %" in forecast.rationale
    assert "Because of the reports." in forecast.rationale
    assert without_numbers(forecast.rationale) == "Because of the reports."
    assert forecast.trace == f"context {shared().digest}"
    assert forecast.distribution is not None
    assert from_json(to_json(forecast), Forecast) == forecast


def test_other_outcomes_stay_as_stated() -> None:
    harness = make_harness(VISITS)
    forecast = harness.run([say({"x": 0.9, "y": 0.9, "z": 0.1})])
    assert forecast.p == {"x": 0.9, "y": 0.9, "z": 0.1}
    assert forecast.distribution is None
    ladder = replace(
        VISITS, targets=tuple(replace(t, id=f"Above {n}") for t, n in zip(VISITS.targets, (1, 2, 3), strict=True))
    )
    stated = {"Above 1": 0.2, "Above 2": 0.5, "Above 3": 0.1}
    assert fit(ladder, stated).p == stated


def test_timeout_error_names_the_setting_for_more_time() -> None:
    class Silent:
        async def complete(self, request: Any) -> Reply:
            await asyncio.sleep(60)
            raise AssertionError

    failure = make_harness(seconds=0.05).run(Silent())
    assert isinstance(failure, Failure)
    assert "0.05 s were not enough; set options.seconds=SECONDS" in failure.error


def test_coherent_probabilities_never_have_a_worse_brier_score() -> None:
    for a, b in ((0.9, 0.9), (0.1, 0.05), (1.0, 0.0), (0.6, 0.7)):
        fitted = fit(CUP, {"Red Team": a, "Blue Team": b}).p
        for truth in ((1, 0), (0, 1)):
            assert mean_brier(list(fitted.values()), truth) <= mean_brier([a, b], truth) + 1e-12


def test_model_is_asked_again_with_the_reason_after_a_bad_answer() -> None:
    harness = make_harness()
    forecast = harness.run(["I cannot say.", say({"target_1": 0.6}), say({"target_1": 0.6, "target_2": 0.4})])
    assert forecast.p == pytest.approx({"Red Team": 0.6, "Blue Team": 0.4})
    assert "no JSON object" in words(harness.requests[1])
    assert "`target_2` missing" in words(harness.requests[2])
    assert forecast.usage.calls == 3
    assert forecast.usage.input_tokens == 200


def test_no_usable_answer_is_a_failure_with_the_reason() -> None:
    harness = make_harness()
    failure = harness.run([say({"target_1": 7.5, "target_2": 0.1})] * 3)
    assert isinstance(failure, Failure)
    assert "no usable answer in 3 attempts" in failure.error
    assert "target_1 is 7.5" in failure.error
    assert [event.error for event in harness.of(Failed)] == [failure.error]
    assert harness.of(ForecastMade) == []


@pytest.mark.parametrize("error", [ModelError("down"), BudgetExceeded("nothing left")])
def test_model_error_is_a_failure(error: ModelError) -> None:
    failure = make_harness().run([error])
    assert isinstance(failure, Failure)
    assert failure.error == str(error)
    with pytest.raises(CannotForecast, match=str(error)):
        asyncio.run(PromptForecaster().forecast(CUP, run_context(ScriptedModel([error]), contexts=One(shared()))))


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
def test_hostile_output_gives_a_short_error_and_small_requests(text: str) -> None:
    harness = make_harness()
    failure = harness.run([Reply(text=text)] * 3)
    assert isinstance(failure, Failure)
    assert len(failure.error) < 2_000
    assert all(len(words(request).encode()) < 12_000 for request in harness.requests)


def test_html_in_a_rationale_is_unchanged() -> None:
    forecast = make_harness(SNOW).run([say({"yes": 0.2}, rationale="<script>alert(1)</script>")])
    assert "<script>" in forecast.rationale


@pytest.mark.parametrize("view", VIEWS)
def test_views_change_only_the_shown_context(view: str) -> None:
    harness = make_harness(view=view)
    harness.run([say({"target_1": 0.6, "target_2": 0.4})])
    (request,) = harness.requests
    assert request.messages[1].text == render(shared(), VIEWS[view])
    assert ("0.613" in words(request)) == VIEWS[view].market
    assert ("news.example" in words(request)) == VIEWS[view].sources


def test_all_models_get_the_same_messages() -> None:
    sent = set()
    for name in ("scripted:a", "scripted:b"):
        model = ScriptedModel([say({"target_1": 0.6, "target_2": 0.4})])
        run = run_context(model, contexts=One(shared()))
        run = replace(run, models=run.models.with_model("agent", name))
        asyncio.run(attempt(PromptForecaster(), CUP, run))
        sent.add(tuple(message.text for message in model.requests[0].messages))
    assert len(sent) == 1


def test_a_repeated_text_is_numbered_within_its_trial() -> None:
    model = ScriptedModel([Reply(text=str(n)) for n in range(6)])
    run = run_context(model)

    async def ask() -> list[str]:
        texts = [(await run.ask("How likely?")).text for _ in range(3)]
        return [*texts, (await run.ask("Why?")).text, (await replace(run, trial=1).ask("How likely?")).text]

    assert asyncio.run(ask()) == ["0", "1", "2", "3", "4"]
    slots = [request.slot for request in model.requests]
    assert slots == ["trial 0", "trial 0/sample 2", "trial 0/sample 3", "trial 0", "trial 1"]


def test_ten_votes_are_ten_separate_calls() -> None:
    replies = [
        Reply(text=json.dumps({"rationale": f"r{n}", "answers": {"yes": "yes" if n < 7 else "no"}})) for n in range(10)
    ]
    harness = make_harness(SNOW, elicitation="self-consistency")
    forecast = harness.run(replies, seed=5, trial=2)
    assert forecast.p == pytest.approx({"yes": 0.7})
    assert forecast.usage.calls == 10
    assert len({request.slot for request in harness.requests}) == 10
    assert sorted(request.settings.seed for request in harness.requests) == [7 + 1000 * n for n in range(10)]
    assert len(harness.of(ModelCalled)) == 10
    assert forecast.forecaster == "context both self-consistency"


def test_votes_are_weighted_by_confidence() -> None:
    def vote(word: str, confidence: float) -> Reply:
        return Reply(text=json.dumps({"answers": {"yes": {"answer": word, "confidence": confidence}}}))

    forecast = make_harness(SNOW, elicitation="weighted self-consistency").run(
        [vote("yes", 0.9)] * 5 + [vote("no", 0.3)] * 5
    )
    assert forecast.p == pytest.approx({"yes": 0.75})


def test_failed_call_gives_a_note_and_too_many_failed_calls_a_failure() -> None:
    def respond(request):
        text = request.messages[0].text
        if "calibrated prediction engine" in text:
            return ModelError("gone")
        return say({"yes": 0.2 if "carefully" in text or "experienced" in text else 0.4})

    forecast = make_harness(SNOW, elicitation="ensemble").run(ScriptedModel(respond))
    assert forecast.p == pytest.approx({"yes": (0.2 + 0.4 + 0.4) / 3})
    assert "probability rewrite 0 failed: gone" in forecast.rationale
    failure = make_harness(SNOW, elicitation="bi-directional").run(
        ScriptedModel(
            lambda request: ModelError("gone") if "does NOT" in request.messages[0].text else say({"yes": 0.4})
        )
    )
    assert isinstance(failure, Failure)
    assert "1 of 2 calls failed; the first: gone" in failure.error


def test_complement_asks_for_the_probability_of_no() -> None:
    harness = make_harness(SNOW, elicitation="bi-directional")
    forecast = harness.run(
        ScriptedModel(lambda request: say({"yes": 0.5 if "does NOT" in request.messages[0].text else 0.3}))
    )
    assert forecast.p == pytest.approx({"yes": 0.4})
    (belief,) = harness.of(BeliefRevised)
    assert [call["p"] for call in belief.belief["calls"]] == [{"yes": 0.3}, {"yes": 0.5}]


def test_trials_have_separate_slots_and_forecasts() -> None:
    model = ScriptedModel([say({"yes": 0.2}), say({"yes": 0.4})])
    run = replace(run_context(model), as_of=SNOW.as_of)
    forecaster = PromptForecaster(view="none")
    for trial, p in enumerate((0.2, 0.4)):
        forecast = asyncio.run(attempt(forecaster, SNOW, replace(run, trial=trial)))
        assert (forecast.p, forecast.trial, forecast.usage.calls) == ({"yes": p}, trial, 1)
    assert len({request.slot for request in model.requests}) == 2


def test_wrong_context_raises_an_error() -> None:
    with pytest.raises(ValueError, match="another question"):
        PromptHarness(forecaster=PromptForecaster(), context=shared(SNOW)).run([])
    later = AsOf(at=AT + timedelta(hours=1), mode="backtest")
    with pytest.raises(ValueError, match="the question as of"):
        PromptHarness(forecaster=PromptForecaster(), context=shared(), as_of=later).run([])
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(PromptForecaster().forecast(CUP, Context(as_of=BACK)))


@pytest.mark.parametrize(
    ("view", "context", "missing"),
    [
        ("sources", shared(sources=0), "there is no source for question cup"),
        ("both", shared(sources=0), "there is no source for question cup"),
        ("market", shared(VISITS), "there are no quotes for question visits"),
        ("both", shared(VISITS), "there are no quotes for question visits"),
    ],
)
def test_a_backtest_refuses_a_named_view_of_what_is_not_there(view: str, context: Any, missing: str) -> None:
    question, adapter = context.question, ContextAdapter(forecaster=PromptForecaster(), view=view)
    for forecaster in (PromptForecaster(view=view), adapter):
        failure = PromptHarness(forecaster=forecaster, question=question, context=context).run([])
        assert isinstance(failure, Failure)
        assert failure.error == f"the view {view!r} cannot be shown: {missing}"
    answers = [say({target.id: 0.2 for target in question.targets})]
    everything = PromptHarness(forecaster=PromptForecaster(), question=question, context=context)
    assert isinstance(everything.run(answers), Forecast), "without a named view, all that is there is shown"
    live = PromptHarness(
        forecaster=PromptForecaster(view=view), question=question, context=context, as_of=AsOf(at=AT, mode="live")
    )
    assert isinstance(live.run(answers), Forecast), "live, the prompt says what is missing"
    assert ("The search found nothing" in words(live.requests[0])) == (not context.sources)


def test_question_with_lone_surrogates_is_a_failure() -> None:
    broken = replace(SNOW, text="\ud800")
    failure = PromptHarness(forecaster=PromptForecaster(), question=broken).run([])
    assert isinstance(failure, Failure)
    assert "characters" in failure.error


def test_stored_contexts_are_found_by_question_round_and_cutoff() -> None:
    stored = StoredContexts([shared(), shared(SNOW), shared()])
    assert len(stored) == 2
    assert asyncio.run(stored.of(SNOW, BACK)) == shared(SNOW)
    assert asyncio.run(stored.of(VISITS, BACK)) is None
    with pytest.raises(ValueError, match="two contexts differ"):
        StoredContexts([shared(), shared(sources=1)])


def test_sampling_clamp_and_distance_settings_are_used() -> None:
    harness = make_harness(sampling=ModelSettings(temperature=0.3), clamp=Clamp(low=0.1, high=0.9), distance="log")
    forecast = harness.run([say({"target_1": 1.0, "target_2": 0.3})])
    assert harness.requests[0].settings.temperature == 0.3
    assert 0.1 <= forecast.p["Blue Team"] <= forecast.p["Red Team"] <= 0.9


def test_options_of_a_run_are_validated() -> None:
    forecaster = make_forecaster("context", {"view": "none", "elicitation": "ensemble", "clamp": [0.01, 0.99]})
    assert forecaster.name == "context none ensemble"
    for options, message in (
        ({"views": "none"}, "no option 'views'"),
        ({"view": "nil"}, "no view 'nil'"),
        ({"elicitation": "loud"}, "no way of asking 'loud'"),
        ({"clamp": 3}, "write paper, once or two numbers"),
        ({"attempts": 0}, "at least one"),
    ):
        with pytest.raises(InputError, match=message):
            make_forecaster("context", options)
    with pytest.raises(InputError, match="true or false"):
        on_context(forecaster, {"tools": "off"})
    assert on_context(forecaster, {"tools": False}).name.endswith("without tools")
