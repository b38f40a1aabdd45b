from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.stack.made import past_of, rate

from foretell.forecasters.combine import LogisticProblem, fit_logistic_ridge, logit, sigmoid
from foretell.forecasters.stack import EconomyModel
from foretell.forecasters.stack.source_model import NONE, EffectPriors, PooledCases, pool

ONE = EffectPriors(group_sd={"series": 1.0})


def cases(labels: list[str], *, start: float = 0.0, **more: list[str]) -> PooledCases:
    groups = {name: np.array(values, str) for name, values in {"series": labels, **more}.items()}
    return PooledCases(start=np.full(len(labels), start), columns=np.zeros((len(labels), 0)), labels=groups)


def test_nothing_seen_is_the_belief_drawn_to_one_half_by_its_doubt() -> None:
    empty = pool(cases([]), np.zeros(0), 0.0, ONE)
    said = empty.chances(cases(["a", NONE], start=2.0))
    assert said.tolist() == pytest.approx([sigmoid(2 / np.sqrt(1 + np.pi / 8)), sigmoid(2.0)])


def test_the_effect_balances_surprise_and_belief() -> None:
    fitted = pool(cases(["a"] * 6), np.array([1, 1, 1, 1, 0, 1.0]), 1.0, ONE)
    effect = float(fitted.effect[0])
    assert 5 - 6 * sigmoid(effect) == pytest.approx(effect, abs=1e-4), "gradient: Σ(y − p) = u/σ²"
    assert fitted.doubt[0, 0] == pytest.approx(1 / (6 * sigmoid(effect) * (1 - sigmoid(effect)) + 1), rel=1e-4)


def test_it_is_the_ridge_regression_of_the_whole_design() -> None:
    rng = np.random.default_rng(3)
    labels, column, y = rng.choice(list("abc"), 60), rng.normal(size=(60, 1)), (rng.random(60) < 0.6).astype(float)
    beliefs = EffectPriors(slope=(0.5,), slope_sd=(0.7,), group_sd={"series": 0.4})
    one = PooledCases(start=np.zeros(60), columns=column, labels={"series": labels})
    fitted = pool(one, y, 0.5, beliefs)
    design = np.column_stack([column, *[(labels == name).astype(float) for name in "abc"]])
    penalty = 1 / np.array([0.7, 0.4, 0.4, 0.4]) ** 2
    whole = LogisticProblem.of(design, y, weight=0.5, penalty=penalty, centre=[0.5, 0, 0, 0])
    assert fitted.effect == pytest.approx(fit_logistic_ridge(whole), abs=1e-5)


def test_a_day_that_moved_everything_does_not_speak_for_the_series() -> None:
    labels, days = list("abcdefgh") * 2, ["mon"] * 8 + ["tue"] * 8
    y = np.array([1.0] * 8 + [0.0] * 7 + [1.0])
    shared = EffectPriors(group_sd={"series": 1.0, "day": 1.0}, shared=frozenset({"day"}))
    fitted = pool(cases(labels, day=days), y, 1.0, shared)
    alone = pool(cases(labels[:8]), y[:8], 1.0, ONE)
    with_days = fitted.chances(cases(["a"], day=["mon"]))[0]
    assert with_days < alone.chances(cases(["a"]))[0]
    assert with_days == fitted.chances(cases(["a"], day=["wed"]))[0], "a day's effect is not carried to a forecast"


def test_a_weight_of_nothing_teaches_nothing() -> None:
    taught = pool(cases(["a"] * 4), np.ones(4), 0.0, ONE)
    assert taught.chances(cases(["a"]))[0] == pytest.approx(0.5)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 40), st.integers(0, 40), st.floats(-3, 3))
def test_more_rises_never_lower_the_chance(n: int, k: int, start: float) -> None:
    k = min(k, n)
    before = pool(cases(["a"] * n, start=start), np.r_[np.ones(k), np.zeros(n - k)], 1.0, ONE)
    after = pool(cases(["a"] * (n + 1), start=start), np.r_[np.ones(k + 1), np.zeros(n - k)], 1.0, ONE)
    p, q = before.chances(cases(["a"], start=start))[0], after.chances(cases(["a"], start=start))[0]
    assert 0 < p < 1
    # The doubt shrinks as well, which may take back a little of a chance that already is on its side of one half.
    assert logit(q) > logit(p) - 0.1


def test_lessons_count_from_the_day_after_they_are_known() -> None:
    past = past_of((rate("A", "2025-03-02", days=(7, 14)), (1, 1)))
    counts = [len(EconomyModel().learnt(past, date(2025, 3, day)).outcome) for day in (9, 10, 16, 17)]
    assert counts == [0, 1, 1, 2]
