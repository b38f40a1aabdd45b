"""Whatever was stated, a forecast keeps the law of its question: exactly one, at most one, or each by itself."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters import Context
from foretell.forecasters.agent import AnswerFormat, Clamp, starting_belief
from foretell.forecasters.base_rates import BaseRateForecaster, MarketForecaster
from foretell.forecasters.combine import coherent
from foretell.forecasters.prompt import OutcomeNames, fit, outcomes, read_probabilities
from foretell.forecasters.tree import TreeQuestion, claim_of_target
from foretell.forecasters.tree.forecaster import forecast_from_targets, targets_to_analyze
from foretell.questions import EXCLUSIVITIES, Categorical, Exclusivity, Question, Snapshot, Target
from foretell.runs import combine_trials

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
    """Base rates that are given."""

    def __init__(self, p: dict[str, float]) -> None:
        self.p = p

    def rate(self, question: Question, target: Target, as_of: object) -> float:
        return self.p[target.id]


def every_way(question: Question, p: dict[str, float]) -> dict[str, dict[str, float]]:
    """The forecast of each part that turns stated numbers into a forecast."""
    context = Context(as_of=question.as_of)
    shots = [Snapshot(at="2026-01-01", last_price=value) for value in p.values()]
    quoted = replace(
        question, targets=tuple(replace(t, snapshot=s) for t, s in zip(question.targets, shots, strict=True))
    )
    return {
        "agent": AnswerFormat.of(question).coherent(p),
        "agent, clamped": Clamp().apply(AnswerFormat.of(question).coherent(p), question.exclusivity),
        "agent, at the start": dict(starting_belief(AnswerFormat.of(question), crowd=p).p),
        "prompt": dict(fit(question, p).p),
        "combined": dict(coherent(question, p).p),
        "tree": dict(forecast_from_targets(question, context, "tree", p, "", WIDE).p),
        "base rates": dict(asyncio.run(BaseRateForecaster(rates=Rates(p)).forecast(question, context)).p),
        "prices": dict(asyncio.run(MarketForecaster(across=True).forecast(quoted, context)).p),
    }


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.sampled_from(EXCLUSIVITIES))
@settings(max_examples=60)
def test_every_forecast_keeps_the_law_of_its_question(numbers: list[float], exclusivity: Exclusivity):
    p = {str(i): value for i, value in enumerate(numbers)}
    for way, found in every_way(of(exclusivity, len(p)), p).items():
        assert all(-1e-12 <= value <= 1 + 1e-12 for value in found.values()), way
        total = sum(found.values())
        if exclusivity == "exactly one":
            assert total == pytest.approx(1), way
        elif exclusivity == "at most one":
            assert total <= 1 + 1e-9, way
            if sum(numbers) <= 1 and way != "agent, clamped":
                assert found == pytest.approx(p), way
        elif way not in ("agent, clamped", "combined"):
            assert found == pytest.approx(p), way


def test_an_even_start_leaves_room_for_none_of_them():
    starts = {value: starting_belief(AnswerFormat.of(of(value))).p["0"] for value in EXCLUSIVITIES}
    assert starts == pytest.approx({"exactly one": 1 / 3, "at most one": 1 / 4, "independent": 1 / 2})


def test_a_clamp_keeps_none_of_them_possible_and_scales_nothing_up():
    clamped = Clamp().apply({"a": 0.0, "b": 0.3}, "at most one")
    assert clamped == pytest.approx({"a": 2 * 0.05 / 3, "b": 0.3})
    assert Clamp().apply({"a": 0.99, "b": 0.0}, "at most one") == pytest.approx({"a": 0.95, "b": 0.1 / 3})


def test_the_other_has_what_is_left_only_where_one_of_two_must_come_true():
    for exclusivity, analysed in (("exactly one", 1), ("at most one", 2), ("independent", 2)):
        two = of(exclusivity, 2)
        assert len(targets_to_analyze(two, shortcut=True)) == analysed
    context = Context(as_of=RACE.as_of)
    forecast = forecast_from_targets(of("at most one", 2), context, "tree", {"0": 0.3, "1": 0.2}, "", WIDE)
    assert (dict(forecast.p), forecast.distribution) == ({"0": 0.3, "1": 0.2}, None)


def test_models_are_told_how_many_come_true():
    told = {value: outcomes(replace(RACE, exclusivity=value)).partition("\n")[0] for value in EXCLUSIVITIES}
    assert told["exactly one"] == "Exactly one of these outcomes comes true:"
    assert "At most one of these outcomes comes true, and possibly none." in told["at most one"]
    assert "none, some or all of them may" in told["independent"]
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


def test_nobody_may_be_likely_where_none_of_them_can_be():
    said = {"probabilities": {"ada": 0, "ben": 0, "cleo": 0}}
    names = OutcomeNames.of(replace(RACE, exclusivity="at most one"))
    assert read_probabilities(said, names).p == {"ada": 0, "ben": 0, "cleo": 0}
    with pytest.raises(ValueError, match="cannot all have probability 0"):
        read_probabilities(said, OutcomeNames.of(replace(RACE, exclusivity="exactly one")))


@pytest.mark.parametrize("exclusivity", EXCLUSIVITIES)
def test_combined_trials_keep_the_law_and_say_the_same_twice(exclusivity: Exclusivity):
    question, context = of(exclusivity), Context(as_of=RACE.as_of)
    stated = ({"0": 0.2, "1": 0.3, "2": 0.1}, {"0": 0.6, "1": 0.3, "2": 0.5})
    trials = [forecast_from_targets(question, context, "tree", p, "", WIDE) for p in stated]
    (found,) = combine_trials(trials, [question])
    total = sum(found.p.values())
    assert total == pytest.approx(1) if exclusivity == "exactly one" else total <= 1 or exclusivity == "independent"
    assert (found.distribution is not None) == (exclusivity == "exactly one")
    if isinstance(found.distribution, Categorical):
        assert dict(found.distribution.p) == pytest.approx(dict(found.p))
