"""From the trials to the answer: price, bounds, distribution, range and explanation, the same in every interface."""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from rich.console import Console

from foretell import ask
from foretell.data.datasets.question_set import QuestionSet
from foretell.number_text import percent_range
from foretell.operations.ask import AskResult, answer_question
from foretell.operations.requests.asking import AskRequest
from foretell.questions.codec import from_json, to_json
from foretell.questions.forecast import Forecast, Numeric, Reconciliation
from foretell.questions.question import Question, Snapshot, Target
from foretell.report.planning import plan_run
from foretell.report.question_view import combination_of
from foretell.report.run_plan import RunPlan
from foretell.runs.combine import CombinationSettings, combined_answers, combining_of_row
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import execute_run, prepare_run
from foretell.runs.settings import Settings
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore
from foretell.scoring.run_answers import final_forecasts
from foretell.web.app import create_app

ASKED = "Will the council vote on the bridge this year?"


def saying(*numbers: float) -> Callable[[Any], str]:
    """Return a model that submits these numbers in turn."""
    left = list(numbers)

    def says(request: Any) -> str:
        del request
        return json.dumps({"p": left.pop(0), "reason": "As usual."})

    return says


def answered(result: object) -> AskResult:
    assert isinstance(result, AskResult)
    return result


def page_of(result: AskResult, settings: Settings) -> dict[str, Any]:
    """Return what the page of the question shows about the answer."""
    assert result.run is not None
    with closing(RunStore(settings.store)) as store:
        row = store.run(result.run)
        assert row is not None
        shown = combination_of(list(store.answers(result.run)), result.question, combining_of_row(store, row))
    assert shown is not None
    return shown


def html_of(result: AskResult, settings: Settings) -> str:
    """Return the page of the question."""
    with TestClient(create_app(settings, token="t" * 20), base_url="http://127.0.0.1") as client:
        return client.get(f"/runs/{result.run}/questions/{quote(result.question.id, safe='')}").text


def test_trials_move_a_fresh_price_a_little_and_are_headed_as_dissent(tmp_path: Path):
    settings = Settings(home=tmp_path)
    steps = {"options.steps": 1}
    result = answered(ask(ASKED, price=0.8, model=saying(0.2, 0.2), trials=2, set=steps, settings=settings))
    assert result.p["yes"] == pytest.approx(0.750, abs=5e-4)
    assert "trials 20 % → price 80 % → answer 75 %" in result.rationale
    assert "argues against the answer" in result.rationale
    assert "The trials count 10 % and the market price 90 %" in result.rationale
    document = result.to_dict()
    assert document["weights"]["yes"] == pytest.approx({"direct": 0.103, "price": 0.897}, abs=1e-3)
    assert document["blind"] == pytest.approx({"yes": 0.2})
    page = page_of(result, settings)
    assert page["p"] == result.p
    assert page["rationale"] == result.rationale
    assert "argues against the answer" in html_of(result, settings)
    assert [stage["name"] for stage in page["stages"]] == [
        "Average of the trials", "Price", "Combined answer"
    ]  # fmt: skip


def test_how_far_research_can_move_the_price_is_said_before_it_is_paid(tmp_path: Path):
    settings, words = Settings(home=tmp_path), "Whatever the research finds, the answer will be between 75 % and 84 %"
    request = {"question": ASKED, "price": 0.8, "model": "compat:x@http://localhost:1/v1"}
    plan = asyncio.run(answer_question(AskRequest.read({**request, "plan": True}), settings))
    assert isinstance(plan, RunPlan)
    assert any(words in note for note in plan.notes)
    without = {**request, "plan": True, "set": {"combine": "logit-mean"}}
    plan = asyncio.run(answer_question(AskRequest.read(without), settings))
    assert isinstance(plan, RunPlan)
    assert not any(words in note for note in plan.notes)
    told = list[str]()
    asking = AskRequest.read({**request, "model": saying(0.5), "set": {"options.steps": 1}})
    asyncio.run(answer_question(asking, settings, tell=told.append))
    assert any(words in line for line in told)


def test_bounds_are_applied_once_to_the_answer(tmp_path: Path):
    settings = Settings(home=tmp_path)
    steps = {"options.steps": 1, "options.clamp": "once"}
    result = answered(ask(ASKED, model=saying(*[0.01] * 5), trials=5, set=steps, settings=settings))
    assert result.p == {"yes": 0.02}
    assert all(isinstance(trial, Forecast) and trial.p == {"yes": 0.01} for trial in result.trials)
    assert "kept at 2 %, the estimate was 1 %" in result.rationale.lower()
    assert result.to_dict()["clamped_from"] == pytest.approx({"yes": 0.01})
    assert page_of(result, settings)["kept"] == {"yes": "kept at 2 %, the estimate was 1 %"}
    assert "kept at 2 %, the estimate was 1 %" in html_of(result, settings)


@pytest.mark.parametrize("clamp", [{}, {"options.clamp": "paper"}])
def test_the_bounds_of_the_paper_hold_for_every_trial_and_say_so(tmp_path: Path, clamp: dict[str, str]):
    steps = {"options.steps": 1, **clamp}
    result = answered(ask(ASKED, model=saying(0.01), set=steps, settings=Settings(home=tmp_path)))
    assert result.p == pytest.approx({"yes": 0.05})
    assert "Forecast: yes 5.0 % (kept at a bound; submitted 1.0 %)" in result.rationale
    assert "0.050 (submitted)" not in result.rationale
    assert result.to_dict()["clamped_from"] is None


STATED = {"q05": 60, "q10": 64, "q25": 70, "q50": 75, "q75": 81, "q90": 88, "q95": 93}


def test_chances_fall_beyond_the_outer_quantiles(tmp_path: Path):
    def says(request: Any) -> str:
        del request
        return json.dumps({"quantiles": STATED, "reason": "As usual."})

    settings = Settings(home=tmp_path)
    result = answered(ask("How many?", range=(0, 200), model=says, set={"options.steps": 1}, settings=settings))
    assert result.p[">100"] == pytest.approx(0.019, abs=5e-4)
    assert 0 < result.p[">150"] < 1e-4
    distribution = result.forecast.distribution
    assert isinstance(distribution, Numeric)
    assert distribution.above(98) == pytest.approx(0.025)


def test_every_number_of_numeric_trials_comes_from_one_distribution(tmp_path: Path):
    left = [0, 30, -5]

    def says(request: Any) -> str:
        del request
        shift = left.pop(0)
        return json.dumps({"quantiles": {key: value + shift for key, value in STATED.items()}, "reason": "As usual."})

    settings = Settings(home=tmp_path)
    question: dict[str, Any] = {"range": (40, 120), "trials": 3, "set": {"options.steps": 1}}
    result = answered(ask("How many?", model=says, settings=settings, **question))
    assert result.quantiles is not None
    levels = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    shown = Numeric.from_quantiles(dict(zip(levels, result.quantiles.values(), strict=True)))
    assert result.p[">80"] == pytest.approx(shown.above(80), abs=1e-9)
    medians = [trial.distribution.quantile(0.5) for trial in result.trials if isinstance(trial, Forecast)]  # pyright: ignore
    assert min(medians) < result.quantiles["q50"] < max(medians)
    page = page_of(result, settings)
    assert page["p"] == result.p
    assert page["quantiles"]["q50"] == f"{result.quantiles['q50']:.10g}"


def test_a_run_answers_by_the_same_rule_and_its_plan_says_how_far(tmp_path: Path):
    script = tmp_path / "script.jsonl"
    script.write_text(2 * (json.dumps({"text": '{"p": 0.2, "reason": "As usual."}'}) + "\n"))
    due = datetime(2026, 1, 9, tzinfo=UTC)
    target = Target(id="yes", snapshot=Snapshot(at=due, last_price=0.8))
    question = Question(id="q", source="manifold", text=ASKED, due=due, targets=(target,))
    spec = RunSpec(
        questions=QuestionsSpec(dataset="mine"),
        models={"agent": f"scripted:{script}"},
        trials=2,
        combine="default",
        concurrency=1,
        options={"steps": 1},
    )
    settings, asked = Settings(home=tmp_path / "home"), QuestionSet(name="mine", questions=(question,))
    prepared = prepare_run(spec, Benchmark(questions=asked, history=asked))
    assert "between 75 % and 84 %" in " ".join(plan_run(prepared, settings).notes)
    asyncio.run(execute_run(prepared, settings))
    with closing(RunStore(settings.store)) as store:
        row = store.run(spec.id)
        assert row is not None
        (answer,) = final_forecasts(store, row, list(store.answers(spec.id)), [question])
    assert answer.p["yes"] == pytest.approx(0.750, abs=5e-4)
    assert "argues against the answer" in answer.rationale


# A tree beside the direct estimates.


def forecasts(*direct: float, tree: float | None = None, **fields: Any) -> tuple[Question, list[Forecast]]:
    """Return a question and its trials, of which the first has a tree."""
    question = Question(
        id="q", source="own", text="?", due=datetime(2026, 1, 1, tzinfo=UTC), targets=(Target(id="yes"),)
    )
    trials = list[Forecast]()
    for number, p in enumerate(direct):
        both = None
        if tree is not None and number == 0:
            both = Reconciliation(tree={"yes": tree}, direct={"yes": p}, gap=1.9, **fields)
        own = {"yes": p} if both is None else both.combined()
        trials.append(
            Forecast(question_id="q", forecaster="f", as_of=question.as_of, p=own, trial=number, reconciliation=both)
        )
    return question, trials


def test_the_tree_enters_once_and_the_range_spans_both():
    question, trials = forecasts(0.12, 0.14, 0.10, tree=0.48, apart=True, changes=("none: 0.1, not 0.2",))
    assert from_json(to_json(trials[0]), Forecast) == trials[0]
    (answer,) = combined_answers(trials, [question])
    assert answer.steps[0].p["yes"] == pytest.approx(0.119, abs=1e-3)
    assert answer.forecast.p["yes"] == pytest.approx(0.179, abs=1e-3)
    low, high = answer.ranges["yes"]
    assert low <= answer.steps[0].p["yes"]
    assert high >= 0.48
    assert "direct 12 % → tree 48 % → together 18 % → answer 18 %" in answer.forecast.rationale
    document = answer.to_dict()
    assert document["apart"] is True
    assert document["changes"] == ["none: 0.1, not 0.2"]
    assert document["weights"] == {"yes": {"direct": 0.75, "tree": 0.25}}
    assert document["gap"] == pytest.approx(1.92, abs=0.01)


def test_the_range_comes_from_the_spread_of_the_trials():
    (wide,) = combined_answers(*reversed_pair(forecasts(0.1, 0.2, 0.4)))
    (narrow,) = combined_answers(*reversed_pair(forecasts(0.19, 0.2, 0.22)))
    assert wide.ranges["yes"][0] < narrow.ranges["yes"][0] < 0.2 < narrow.ranges["yes"][1] < wide.ranges["yes"][1]
    (single,) = combined_answers(*reversed_pair(forecasts(0.2)))
    assert single.ranges == {}
    (bare,) = combined_answers(*reversed_pair(forecasts(0.2, tree=0.22)))
    (barred,) = combined_answers(*reversed_pair(forecasts(0.2, tree=0.22, error=0.1)))
    assert bare.ranges["yes"] == pytest.approx((0.2, 0.22))
    assert barred.ranges["yes"][0] < 0.19
    assert barred.ranges["yes"][1] > 0.22


def reversed_pair(pair: tuple[Question, list[Forecast]]) -> tuple[list[Forecast], list[Question]]:
    return pair[1], [pair[0]]


def test_a_trial_that_broke_down_never_explains_the_answer():
    question, (first, second, third) = forecasts(0.3, 0.6, 0.9)
    sourced = replace(third, rationale="Seven facts.\n\nSources:\n[page_1] x")
    broken = replace(second, ending="fallback", problem="cut off", rationale="Nothing.")
    cut = replace(first, ending="limit", rationale="No time.")
    settings = CombinationSettings(fallback=True)
    (answer,) = combined_answers([cut, broken, sourced], [question], settings)
    assert answer.forecast.rationale.endswith(sourced.rationale)
    (answer,) = combined_answers([broken, cut], [question], settings)
    assert answer.forecast.rationale.endswith("No time.")


def test_the_terminal_shows_the_range(tmp_path: Path):
    steps = {"options.steps": 1}
    result = answered(ask(ASKED, model=saying(0.2, 0.3, 0.4), trials=3, set=steps, settings=Settings(home=tmp_path)))
    shown = StringIO()
    result.print(Console(file=shown, width=200))
    low, high = result.ranges["yes"]
    assert f"29 %  yes   range {percent_range(low, high)}\n" in shown.getvalue()
    assert low < 0.2
    assert high > 0.38
