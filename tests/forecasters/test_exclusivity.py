"""Every forecast respects the exclusivity of its question: exactly one, at most one, or independent."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.belief import starting_belief
from foretell.forecasters.base_rates.baselines import BaseRateForecaster, MarketForecaster
from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.combine.coherence import coherent
from foretell.forecasters.forecaster import Context
from foretell.forecasters.prompt.elicitation import OutcomeNames, read_probabilities
from foretell.forecasters.prompt.forecaster import fit
from foretell.forecasters.prompt.rendering import outcomes
from foretell.forecasters.tree.forecaster import claim_of_target, forecast_from_targets, targets_to_analyze
from foretell.forecasters.tree.grow.prompting import TreeQuestion
from foretell.questions.forecast import Categorical, Forecast, Reconciliation
from foretell.questions.question import EXCLUSIVITIES, Exclusivity, Question, Snapshot, Target, scaled
from foretell.runs.combine import combine_trials

RACE = Question(
    id="q",
    source="own",
    text="Who is next?",
    due="2026-01-10",
    targets=tuple(Target(id=name, label=name.title()) for name in ("ada", "ben", "cleo")),
)
WIDE = Clamp(low=0, high=1)


def of(exclusivity: Exclusivity, n: int = 3) -> Question:
    return replace(RACE, targets=tuple(Target(id=str(i)) for i in range(n)), exclusivity=exclusivity)


class Rates:
    """Fixed base rates by target."""

    def __init__(self, p: dict[str, float]) -> None:
        self.p = p

    def rate(self, question: Question, target: Target, as_of: object) -> float:
        return self.p[target.id]


def all_forecasts(question: Question, p: dict[str, float]) -> dict[str, dict[str, float]]:
    """Return the forecast of every component that turns stated numbers into a forecast."""
    context = Context(as_of=question.as_of)
    snapshots = [Snapshot(at="2026-01-01", last_price=value) for value in p.values()]
    quoted = replace(
        question, targets=tuple(replace(t, snapshot=s) for t, s in zip(question.targets, snapshots, strict=True))
    )
    return {
        "agent": AnswerFormat.of(question).coherent(p),
        "agent, clamped": Clamp().apply(AnswerFormat.of(question).coherent(p), question.exclusivity),
        "agent, at the start": dict(starting_belief(AnswerFormat.of(question), price=p).p),
        "prompt": dict(fit(question, p).p),
        "combined": dict(coherent(question, p).p),
        "tree": dict(forecast_from_targets(question, context, "tree", p, "", WIDE).p),
        "base rates": dict(asyncio.run(BaseRateForecaster(rates=Rates(p)).forecast(question, context)).p),
        "prices": dict(asyncio.run(MarketForecaster(across=True).forecast(quoted, context)).p),
    }


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.sampled_from(EXCLUSIVITIES))
@settings(max_examples=60)
def test_every_forecast_respects_the_exclusivity_of_its_question(numbers: list[float], exclusivity: Exclusivity):
    p = {str(i): value for i, value in enumerate(numbers)}
    for component, forecast in all_forecasts(of(exclusivity, len(p)), p).items():
        assert all(-1e-12 <= value <= 1 + 1e-12 for value in forecast.values()), component
        total = sum(forecast.values())
        if exclusivity == "exactly one":
            assert total == pytest.approx(1), component
        elif exclusivity == "at most one":
            assert total <= 1 + 1e-9, component
            if sum(numbers) <= 1 and component != "agent, clamped":
                assert forecast == pytest.approx(p), component
        elif component not in ("agent, clamped", "combined"):
            assert forecast == pytest.approx(p), component


def test_even_starting_belief_leaves_probability_for_no_outcome():
    starts = {value: starting_belief(AnswerFormat.of(of(value))).p["0"] for value in EXCLUSIVITIES}
    assert starts == pytest.approx({"exactly one": 1 / 3, "at most one": 1 / 4, "independent": 1 / 2})


def test_clamp_keeps_no_outcome_possible_and_scales_nothing_up():
    clamped = Clamp().apply({"a": 0.0, "b": 0.3}, "at most one")
    assert clamped == pytest.approx({"a": 2 * 0.05 / 3, "b": 0.3})
    assert Clamp().apply({"a": 0.99, "b": 0.0}, "at most one") == pytest.approx({"a": 0.95, "b": 0.1 / 3})


def test_second_of_two_targets_is_inferred_only_if_exactly_one_comes_true():
    for exclusivity, analysed in (("exactly one", 1), ("at most one", 2), ("independent", 2)):
        two = of(exclusivity, 2)
        assert len(targets_to_analyze(two, shortcut=True)) == analysed
    context = Context(as_of=RACE.as_of)
    forecast = forecast_from_targets(of("at most one", 2), context, "tree", {"0": 0.3, "1": 0.2}, "", WIDE)
    assert (dict(forecast.p), forecast.distribution) == ({"0": 0.3, "1": 0.2}, None)


def test_prompts_state_how_many_outcomes_come_true():
    headings = {value: outcomes(replace(RACE, exclusivity=value)).partition("\n")[0] for value in EXCLUSIVITIES}
    assert headings["exactly one"] == "Exactly one of these outcomes comes true:"
    assert "At most one of these outcomes comes true, and possibly none." in headings["at most one"]
    assert headings["independent"] == "None, some or all of these outcomes may come true:"
    assert AnswerFormat.of(of("at most one")).schema()["description"] == "Sum to at most 1."
    assert AnswerFormat.of(of("at most one"), percent=True).schema()["description"] == "Sum to at most 100."
    trees = {
        value: dict(TreeQuestion(question=replace(RACE, exclusivity=value), as_of=RACE.as_of).sections())
        for value in EXCLUSIVITIES
    }
    assert trees["exactly one"]["Possible answers"] == "Exactly one of these comes true:\n- Ada\n- Ben\n- Cleo"
    assert trees["at most one"]["Possible answers"].startswith("At most one of these comes true, and possibly none:\n")
    assert trees["independent"]["Possible answers"] == ""
    claims = {value: claim_of_target(replace(RACE, exclusivity=value), RACE.targets[0]) for value in EXCLUSIVITIES}
    assert claims["at most one"] == claims["exactly one"] == 'The answer to the question "Who is next?" is "Ada".'


def test_all_zero_probabilities_are_valid_only_if_no_outcome_may_come_true():
    reply = {"probabilities": {"ada": 0, "ben": 0, "cleo": 0}}
    names = OutcomeNames.of(replace(RACE, exclusivity="at most one"))
    assert read_probabilities(reply, names).p == {"ada": 0, "ben": 0, "cleo": 0}
    with pytest.raises(ValueError, match="cannot all have probability 0"):
        read_probabilities(reply, OutcomeNames.of(replace(RACE, exclusivity="exactly one")))


@pytest.mark.parametrize("exclusivity", EXCLUSIVITIES)
def test_combined_trials_respect_exclusivity_and_match_their_distribution(exclusivity: Exclusivity):
    question, context = of(exclusivity), Context(as_of=RACE.as_of)
    stated = ({"0": 0.2, "1": 0.3, "2": 0.1}, {"0": 0.6, "1": 0.3, "2": 0.5})
    trials = [forecast_from_targets(question, context, "tree", p, "", WIDE) for p in stated]
    (combined,) = combine_trials(trials, [question])
    total = sum(combined.p.values())
    assert total == pytest.approx(1) if exclusivity == "exactly one" else total <= 1 or exclusivity == "independent"
    assert (combined.distribution is not None) == (exclusivity == "exactly one")
    if isinstance(combined.distribution, Categorical):
        assert dict(combined.distribution.p) == pytest.approx(dict(combined.p))


@pytest.mark.parametrize("exclusivity", ["exactly one", "at most one"])
def test_a_single_trial_with_a_tree_is_the_answer(exclusivity: Exclusivity):
    """The trial and the answer are scaled in the same way: by division by the sum."""
    question = of(exclusivity)
    both = Reconciliation(
        tree={"0": 0.6, "1": 0.35, "2": 0.05}, direct={"0": 0.3, "1": 0.6, "2": 0.1}, gap=1.2, weight=0.5
    )
    stated = both.combined()
    p = scaled(stated, exclusivity)
    trial = Forecast(question_id="q", forecaster="reason", as_of=RACE.as_of, p=p, reconciliation=both)
    (combined,) = combine_trials([trial], [question])
    assert dict(combined.p) == pytest.approx(p, abs=1e-9)
    total = sum(stated.values())
    assert total != pytest.approx(1, abs=1e-3)
    if exclusivity == "exactly one":
        assert dict(combined.p) == pytest.approx({target: value / total for target, value in stated.items()})
