"""What may be said of two forecasters: the five verdicts, in the order of their tests, and the sentence of each."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foretell
from foretell.metrics import Interval
from foretell.metrics.power import questions_about, questions_needed
from foretell.scoring import Verdict, corrected


def score(value: float) -> Interval:
    return Interval(estimate=value, low=value - 2, high=value + 2, se=1.0, n_clusters=60, draws=2000)


def verdict(diff: float, low: float, high: float, **changes: Any) -> Verdict:
    given: dict[str, Any] = {
        "first": "a",
        "second": "b",
        "metric": "brier_index",
        "better": "high",
        "matters": 1.0,
        "level": 0.95,
    }
    given |= {"first_score": score(60 + diff), "second_score": score(60.0), "se": 1.0, "p": 0.03}
    given |= {"n": 150, "n_clusters": 60, "n_effective": 60}
    return Verdict(diff=diff, low=low, high=high, **given | changes)


@pytest.mark.parametrize(
    ("diff", "low", "high", "says", "symbol"),
    [
        (2.3, 0.6, 3.9, "better", "▲"),
        (-1.9, -3.2, -0.7, "worse", "▼"),
        (0.2, -0.5, 0.8, "no difference that matters", "≈"),
        (0.5, 0.1, 0.9, "no difference that matters", "≈"),  # Clear of zero, and too small to matter.
        (0.0, 0.0, 0.0, "no difference that matters", "≈"),
        (0.9, -1.6, 3.4, "could be chance", "~"),
    ],
)
def test_the_interval_decides_what_may_be_said(diff: float, low: float, high: float, says: str, symbol: str) -> None:
    found = verdict(diff, low, high)
    assert (found.says, found.symbol) == (says, symbol)
    assert bool(found.stars) == (says in ("better", "worse"))
    assert (found.needed is not None) == (says == "could be chance")


def test_low_values_can_be_better() -> None:
    found = verdict(-0.02, -0.03, -0.01, metric="brier", better="low", matters=0.005)
    assert (found.says, found.gain) == ("better", 0.02)
    assert "95 % interval 0.0100 to 0.0300" in found.sentence


@pytest.mark.parametrize(("clusters", "says"), [(9, "too few to tell"), (10, "better")])
def test_fewer_than_ten_independent_clusters_are_too_few(clusters: int, says: str) -> None:
    found = verdict(30.0, 20.0, 40.0, n_clusters=90, n_effective=clusters, p=0.0001)
    assert found.says == says
    if says == "too few to tell":
        assert math.isnan(found.low)
        assert math.isnan(found.p)
        assert found.stars == ""
        assert found.needed == 1
        assert not any(word in found.sentence for word in ("better", "worse", "p <", "p =", "interval"))


def test_a_comparison_of_three_questions_says_how_many_are_missing() -> None:
    rows = [
        {"forecaster": name, "question": f"q{n}", "p": p + 0.02 * n, "outcome": 1}
        for name, p in (("a", 0.9), ("b", 0.6))
        for n in range(3)
    ]
    found = foretell.compare(rows, None, "a", "b").verdicts[0]
    assert (found.says, found.needed) == ("too few to tell", 7)


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


def test_equal_forecasts_score_the_same_however_they_are_named() -> None:
    rows = [
        {"forecaster": name, "question": f"q{n}", "p": 0.1 + 0.06 * n, "outcome": n % 2}
        for name in "ab"
        for n in range(12)
    ]
    found = foretell.compare(rows, None, "a", "b").verdicts[0]
    assert found.says == "no difference that matters"
    assert found.sentence == "a and b score the same on the 12 targets both answered."


def test_both_scores_and_the_difference_are_on_the_common_targets() -> None:
    rows = [
        {"forecaster": name, "question": f"q{n}", "p": p, "outcome": n % 3 == 0}
        for name, p, first in (("a", 0.3, 0), ("b", 0.5, 10))
        for n in range(first, 40)
    ]
    found = foretell.compare(rows, None, "a", "b").verdicts[0]
    alone = {one.forecaster: one.metrics["brier_index"].estimate for one in foretell.score(rows, anchors=False).scores}
    assert found.n == 30
    assert found.first_score.estimate != pytest.approx(alone["a"], abs=1e-6)
    assert found.first_score.estimate - found.second_score.estimate == pytest.approx(found.diff)


def test_a_correction_marks_what_could_be_chance_and_changes_no_sentence() -> None:
    several = corrected([verdict(2.3, 0.6, 3.9, p=0.04, first=name) for name in "cde"])
    assert [one.mark for one in several] == ["*†"] * 3
    assert all(one.decided and not one.survives for one in several)
    assert several[0].sentence == verdict(2.3, 0.6, 3.9, p=0.04, first="c").sentence
    assert corrected([verdict(2.3, 0.6, 3.9, p=0.04)])[0].mark == "*"


@given(st.floats(-20, 20), st.floats(0.01, 15), st.integers(10, 300))
@settings(max_examples=100, deadline=None)
def test_a_swapped_verdict_says_the_opposite(diff: float, margin: float, clusters: int) -> None:
    found = verdict(diff, diff - margin, diff + margin, n_effective=clusters)
    opposite = {"better": "worse", "worse": "better"}
    assert found.swapped().says == opposite.get(found.says, found.says)
    assert found.swapped().swapped() == found


@pytest.mark.parametrize("effect", [0.02, 0.1, 0.3, 0.8])
def test_the_number_needed_is_that_of_the_plan(effect: float) -> None:
    assert questions_about(effect, 1.0) == pytest.approx(questions_needed(effect, 1.0), abs=1)
