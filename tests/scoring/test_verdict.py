"""Verdicts on two forecasters: the five findings, in the order of their tests, and their sentences."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foretell
from foretell.metrics import Interval
from foretell.metrics.power import questions_about, questions_needed
from foretell.number_text import signed
from foretell.scoring.scoreboard import difference_text
from foretell.scoring.verdict import Verdict, corrected


def score(value: float) -> Interval:
    return Interval(estimate=value, low=value - 2, high=value + 2, se=1.0, n_clusters=60, draws=2000)


def verdict(diff: float, low: float, high: float, **changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "first": "a",
        "second": "b",
        "metric": "brier_index",
        "better": "high",
        "matters": 1.0,
        "level": 0.95,
    }
    fields |= {"first_score": score(60 + diff), "second_score": score(60.0), "se": 1.0, "p": 0.03}
    fields |= {"n": 150, "n_clusters": 60, "n_effective": 60}
    return Verdict(diff=diff, low=low, high=high, **fields | changes)


@pytest.mark.parametrize(
    ("diff", "low", "high", "says", "symbol"),
    [
        (2.3, 0.6, 3.9, "better", "▲"),
        (-1.9, -3.2, -0.7, "worse", "▼"),
        (0.2, -0.5, 0.8, "no difference that matters", "≈"),
        (0.5, 0.1, 0.9, "no difference that matters", "≈"),  # Excludes zero, but too small to matter.
        (0.5, 0.0, 1.0, "no difference that matters", "≈"),  # At most what matters.
        (0.0, 0.0, 0.0, "no difference that matters", "≈"),
        (0.9, -1.6, 3.4, "could be chance", "~"),
    ],
)
def test_the_interval_determines_the_finding(diff: float, low: float, high: float, says: str, symbol: str) -> None:
    result = verdict(diff, low, high)
    assert (result.says, result.symbol) == (says, symbol)
    assert bool(result.stars) == (says in ("better", "worse"))
    assert (result.needed is not None) == (says == "could be chance")


@pytest.mark.parametrize(("matters", "decimals"), [(1.0, 1), (0.0, 1), (0.5, 2), (0.05, 3)])
def test_decimals_show_a_tenth_of_what_matters_and_at_least_a_tenth_of_a_point(matters: float, decimals: int) -> None:
    assert verdict(2.3, 0.6, 3.9, matters=matters).decimals == decimals
    assert f"by {2.3:.{decimals}f} points" in verdict(2.3, 0.6, 3.9, matters=matters).sentence


@pytest.mark.parametrize(("yes", "says"), [(0, "too few to tell"), (1, "could be chance")])
def test_outcomes_that_are_all_alike_decide_nothing(yes: int, says: str) -> None:
    """Bold has the better index as long as nothing happens, and the worse one after a single yes."""
    rows = [
        {"forecaster": name, "question": f"q{i}", "p": p, "outcome": int(i < yes)}
        for name, p in (("bold", 0.001), ("careful", 0.05))
        for i in range(40)
    ]
    result = foretell.compare(rows, None, "bold", "careful").verdicts[0]
    assert result.says == says
    if not yes:
        assert math.isnan(result.low)
        assert math.isnan(result.p)
        assert "all 40 outcomes are the same" in result.sentence
        board = foretell.score(rows, reference="careful")
        assert next(found for found in board.verdicts if found.first == "bold").sentence == result.sentence


def test_no_number_of_clusters_is_wanted_if_all_outcomes_are_the_same() -> None:
    """More questions of the same outcome would not help. Of too few clusters the sentence says how many more."""
    assert verdict(2.0, 1.0, 3.0, one_sided=True, n_effective=10).needed is None
    assert verdict(2.0, 1.0, 3.0, one_sided=True, n_effective=9).needed == questions_about(2.0, 3.0) - 9


def test_low_values_can_be_better() -> None:
    result = verdict(-0.02, -0.03, -0.01, metric="brier", better="low", matters=0.005)
    assert (result.says, result.gain) == ("better", 0.02)
    assert "95 % interval 0.0100 to 0.0300" in result.sentence


def test_a_difference_in_accuracy_is_stated_in_points() -> None:
    result = verdict(11.667, 3.333, 21.667, metric="accuracy in points", matters=1.0)
    assert "by 11.7 points of accuracy (71.7 and 60.0; 95 % interval 3.3 to 21.7" in result.sentence


@pytest.mark.parametrize(("matters", "decimals"), [(0.0, 1), (0.05, 3), (0.5, 2), (1.0, 1), (20.0, 1)])
def test_a_tenth_of_the_smallest_difference_that_matters_is_shown(matters: float, decimals: int) -> None:
    assert verdict(2.3, 0.6, 3.9, matters=matters).decimals == decimals


def test_a_verdict_on_the_second_against_the_first_is_the_mirror_image() -> None:
    result = verdict(2.3, 0.6, 3.9)
    other = result.swapped()
    assert (other.first, other.second, other.says) == ("b", "a", "worse")
    assert (other.diff, other.low, other.high) == (-2.3, -3.9, -0.6)
    assert (other.first_score, other.second_score) == (result.second_score, result.first_score)
    assert repr(other.swapped()) == repr(result)  # An unknown p is not equal to itself.


def test_a_finding_that_could_be_chance_needs_what_shows_the_difference_or_what_matters() -> None:
    sd = math.sqrt(60)
    assert verdict(0.9, -1.6, 3.4, matters=1.0).needed == questions_about(1.0, sd) - 60
    assert verdict(0.9, -1.6, 3.4, matters=0.1).needed == questions_about(0.9, sd) - 60
    hopeless = verdict(0.001, -1.0, 1.0, matters=0.0)
    assert (hopeless.says, hopeless.needed) == ("could be chance", None), "nobody can ask hundreds of millions"


@pytest.mark.parametrize(("clusters", "says"), [(9, "too few to tell"), (10, "better")])
def test_fewer_than_ten_independent_clusters_are_too_few(clusters: int, says: str) -> None:
    result = verdict(30.0, 20.0, 40.0, n_clusters=90, n_effective=clusters, p=0.0001)
    assert result.says == says
    if says == "too few to tell":
        assert math.isnan(result.low)
        assert math.isnan(result.p)
        assert result.stars == ""
        assert result.needed == 1
        assert not any(word in result.sentence for word in ("better", "worse", "p <", "p =", "interval"))


def test_a_comparison_of_three_questions_says_how_many_are_missing() -> None:
    rows = [
        {"forecaster": name, "question": f"q{n}", "p": p + 0.02 * n, "outcome": 1}
        for name, p in (("a", 0.9), ("b", 0.6))
        for n in range(3)
    ]
    result = foretell.compare(rows, None, "a", "b").verdicts[0]
    assert (result.says, result.needed) == ("too few to tell", 7)


def test_the_smallest_difference_that_matters_can_be_given() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 200)
    rows = [
        {"forecaster": name, "question": f"q{n}", "p": float(p[n] + shift), "outcome": int(n % 2)}
        for name, shift in (("a", 0.0), ("b", 0.02))
        for n in range(200)
    ]
    wide = foretell.compare(rows, None, "a", "b", matters=5.0).verdicts[0]
    narrow = foretell.compare(rows, None, "a", "b", matters=0.0).verdicts[0]
    assert wide.says == "no difference that matters"
    assert narrow.says != wide.says
    assert (wide.diff, wide.low, wide.high) == (narrow.diff, narrow.low, narrow.high)


def test_equal_forecasts_score_the_same() -> None:
    rows = [
        {"forecaster": name, "question": f"q{n}", "p": 0.1 + 0.06 * n, "outcome": n % 2}
        for name in "ab"
        for n in range(12)
    ]
    result = foretell.compare(rows, None, "a", "b").verdicts[0]
    assert result.says == "no difference that matters"
    assert result.sentence == "a and b score the same on the 12 targets both answered."


def test_both_scores_and_the_difference_are_on_the_common_targets() -> None:
    rows = [
        {"forecaster": name, "question": f"q{n}", "p": p, "outcome": n % 3 == 0}
        for name, p, first in (("a", 0.3, 0), ("b", 0.5, 10))
        for n in range(first, 40)
    ]
    result = foretell.compare(rows, None, "a", "b").verdicts[0]
    alone = {
        score.forecaster: score.metrics["brier_index"].estimate
        for score in foretell.score(rows, baselines=False).scores
    }
    assert result.n == 30
    assert result.first_score.estimate != pytest.approx(alone["a"], abs=1e-6)
    assert result.first_score.estimate - result.second_score.estimate == pytest.approx(result.diff)


@given(st.floats(0, 100), st.floats(0, 100))
def test_the_numbers_of_a_sentence_subtract(first: float, second: float) -> None:
    diff = first - second
    result = verdict(diff, diff - 2, diff + 2, first_score=score(first), second_score=score(second))
    shown = [round(side.estimate, 1) for side in (result.first_score, result.second_score)]
    assert result.shown_difference(1) == pytest.approx(shown[0] - shown[1], abs=1e-9)
    assert abs(result.shown_difference(1) - diff) < 0.1 + 1e-9
    assert difference_text(result, 1, gain=True).split("*")[0].split()[0] == signed(result.shown_difference(1), 1)


def test_a_difference_with_more_decimals_than_its_scores_is_rounded_alone() -> None:
    scores = {"metric": "brier", "better": "low", "first_score": score(0.14716), "second_score": score(0.14344)}
    assert difference_text(verdict(0.00372, -0.02, 0.03, **scores), 4, gain=True).split()[0] == "−0.0037"


def test_scores_that_round_apart_are_shown_with_their_own_difference() -> None:
    result = verdict(1.82, 0.6, 3.0, first_score=score(57.56), second_score=score(55.74))
    assert "by 1.9 points of Brier index (57.6 and 55.7; 95 % interval 0.6 to 3.0" in result.sentence


def test_correction_marks_chance_findings_without_changing_the_sentence() -> None:
    several = corrected([verdict(2.3, 0.6, 3.9, p=0.04, first=name) for name in "cde"])
    assert [result.mark for result in several] == ["*†"] * 3
    assert all(result.decided and not result.survives for result in several)
    assert several[0].sentence == verdict(2.3, 0.6, 3.9, p=0.04, first="c").sentence
    assert corrected([verdict(2.3, 0.6, 3.9, p=0.04)])[0].mark == "*"


@given(st.floats(-20, 20), st.floats(0.01, 15), st.integers(10, 300))
@settings(max_examples=100)
def test_a_swapped_verdict_says_the_opposite(diff: float, margin: float, clusters: int) -> None:
    result = verdict(diff, diff - margin, diff + margin, n_effective=clusters)
    opposite = {"better": "worse", "worse": "better"}
    assert result.swapped().says == opposite.get(result.says, result.says)
    assert repr(result.swapped().swapped()) == repr(result)


@pytest.mark.parametrize("effect", [0.02, 0.1, 0.3, 0.8])
def test_the_number_needed_equals_that_of_the_power_analysis(effect: float) -> None:
    assert questions_about(effect, 1.0) == pytest.approx(questions_needed(effect, 1.0), abs=1)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_does_not_matter_is_stated_with_its_side(sign: int) -> None:
    low, high = sorted((sign * -0.5, sign * 0.8))
    side = "ahead" if sign > 0 else "behind"
    assert f"(1 point): the first is {side} by 0.2 points" in verdict(sign * 0.2, low, high).sentence


def test_one_more_question_is_needed_in_the_singular() -> None:
    sentence = verdict(30.0, 20.0, 40.0, n_effective=9).sentence
    assert sentence.endswith("they share 9 independent questions; at least 1 more is needed.")


def test_two_verdicts_are_corrected_together() -> None:
    several = corrected([verdict(2.3, 0.6, 3.9, p=0.04, first=name) for name in "cd"])
    assert [result.p_corrected for result in several] == pytest.approx([0.08, 0.08])
    assert [result.comparisons for result in several] == [2, 2]


def test_kinds_of_questions_count_equally_and_are_resampled_apart() -> None:
    def rows(kind: str, n: int, p: float, chance: int) -> list[dict[str, Any]]:
        answers = [("a", p), ("b", 0.5)]
        return [
            {"forecaster": name, "question": f"{kind}{k}", "kind": kind, "p": own, "outcome": int(k % chance == 0)}
            for name, own in answers
            for k in range(n)
        ]

    market, dataset = rows("market", 90, 0.3, 3), rows("dataset", 30, 0.7, 2)
    apart = [foretell.compare(part, None, "a", "b", metric="brier").verdicts[0] for part in (market, dataset)]
    both = foretell.compare(market + dataset, None, "a", "b", metric="brier").verdicts[0]
    assert both.n == 120
    assert both.diff == pytest.approx(np.mean([part.diff for part in apart]))
    # The parts are independent, so their variances add up.
    assert both.se == pytest.approx(math.hypot(*(part.se for part in apart)) / 2, rel=0.1)
