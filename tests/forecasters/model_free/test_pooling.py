from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.model_free.simulated import past_of, rate

from foretell.forecasters.combine.logistic import LogisticProblem, fit_logistic_ridge
from foretell.forecasters.model_free.economy import EconomyModel
from foretell.forecasters.model_free.source_model import NONE, EffectPriors, PooledCases, pool
from foretell.metrics.transforms import logit, sigmoid

UNIT_PRIOR = EffectPriors(group_sd={"series": 1.0})


def cases(labels: list[str], *, start: float = 0.0, **more: list[str]) -> PooledCases:
    groups = {name: np.array(values, str) for name, values in {"series": labels, **more}.items()}
    return PooledCases(start=np.full(len(labels), start), columns=np.zeros((len(labels), 0)), labels=groups)


def test_without_data_the_prior_is_shrunk_to_one_half_by_its_variance() -> None:
    empty = pool(cases([]), np.zeros(0), 0.0, UNIT_PRIOR)
    p = empty.chances(cases(["a", NONE], start=2.0))
    assert p.tolist() == pytest.approx([sigmoid(2 / np.sqrt(1 + np.pi / 8)), sigmoid(2.0)])


def test_effect_has_a_zero_gradient_and_the_laplace_variance() -> None:
    fitted = pool(cases(["a"] * 6), np.array([1, 1, 1, 1, 0, 1.0]), 1.0, UNIT_PRIOR)
    effect = float(fitted.effect[0])
    assert 5 - 6 * sigmoid(effect) == pytest.approx(effect, abs=1e-4), "gradient: Σ(y − p) = u/σ²"
    assert fitted.doubt[0, 0] == pytest.approx(1 / (6 * sigmoid(effect) * (1 - sigmoid(effect)) + 1), rel=1e-4)


def test_pooling_equals_ridge_regression_of_the_full_design() -> None:
    rng = np.random.default_rng(3)
    labels, column, y = rng.choice(list("abc"), 60), rng.normal(size=(60, 1)), (rng.random(60) < 0.6).astype(float)
    beliefs = EffectPriors(slope=(0.5,), slope_sd=(0.7,), group_sd={"series": 0.4})
    pooled_cases = PooledCases(start=np.zeros(60), columns=column, labels={"series": labels})
    fitted = pool(pooled_cases, y, 0.5, beliefs)
    design = np.column_stack([column, *[(labels == name).astype(float) for name in "abc"]])
    penalty = 1 / np.array([0.7, 0.4, 0.4, 0.4]) ** 2
    whole = LogisticProblem.of(design, y, weight=0.5, penalty=penalty, centre=[0.5, 0, 0, 0])
    assert fitted.effect == pytest.approx(fit_logistic_ridge(whole), abs=1e-5)


def test_common_effect_of_a_day_is_not_attributed_to_the_series() -> None:
    labels, days = list("abcdefgh") * 2, ["mon"] * 8 + ["tue"] * 8
    y = np.array([1.0] * 8 + [0.0] * 7 + [1.0])
    shared = EffectPriors(group_sd={"series": 1.0, "day": 1.0}, shared=frozenset({"day"}))
    fitted = pool(cases(labels, day=days), y, 1.0, shared)
    alone = pool(cases(labels[:8]), y[:8], 1.0, UNIT_PRIOR)
    with_days = fitted.chances(cases(["a"], day=["mon"]))[0]
    assert with_days < alone.chances(cases(["a"]))[0]
    assert with_days == fitted.chances(cases(["a"], day=["wed"]))[0], "a day's effect is not carried to a forecast"


def test_zero_weight_leaves_the_prior() -> None:
    fitted = pool(cases(["a"] * 4), np.ones(4), 0.0, UNIT_PRIOR)
    assert fitted.chances(cases(["a"]))[0] == pytest.approx(0.5)


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(0, 40), st.floats(-3, 3))
def test_another_rise_hardly_lowers_the_probability(n: int, k: int, start: float) -> None:
    k = min(k, n)
    before = pool(cases(["a"] * n, start=start), np.r_[np.ones(k), np.zeros(n - k)], 1.0, UNIT_PRIOR)
    after = pool(cases(["a"] * (n + 1), start=start), np.r_[np.ones(k + 1), np.zeros(n - k)], 1.0, UNIT_PRIOR)
    p, q = before.chances(cases(["a"], start=start))[0], after.chances(cases(["a"], start=start))[0]
    assert 0 < p < 1
    # The variance decreases as well, which may lower the probability slightly.
    assert logit(q) > logit(p) - 0.1


def test_outcomes_are_used_from_the_day_after_they_are_known() -> None:
    past = past_of((rate("A", "2025-03-02", days=(7, 14)), (1, 1)))
    counts = [len(EconomyModel().learnt(past, date(2025, 3, day)).outcome) for day in (9, 10, 16, 17)]
    assert counts == [0, 1, 1, 2]
