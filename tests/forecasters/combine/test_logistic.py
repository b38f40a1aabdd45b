"""Newton's method against other solvers, and leave-out fits against refitting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine import logistic
from foretell.forecasters.combine.logistic import LogisticProblem, coefficients_without, fit_logistic_ridge
from foretell.metrics.transforms import sigmoid


def leave_out(whole: LogisticProblem, groups: np.ndarray) -> np.ndarray:
    """Return the linear predictor of every row from coefficients fitted without its group."""
    return np.einsum("ij,ij->i", whole.design, coefficients_without(whole, groups)[groups])


def problem(n: int, p: int, seed: int, *, scale: float = 1.0, penalty: float = 0.1) -> LogisticProblem:
    rng = np.random.default_rng(seed)
    design = rng.normal(0, scale, (n, p))
    outcome = rng.random(n) < sigmoid(design @ rng.normal(0, 1, p))
    return LogisticProblem.of(
        design, outcome, weight=rng.uniform(0.2, 2, n), penalty=penalty, centre=rng.normal(0, 0.3, p)
    )


def without(whole: LogisticProblem, out: np.ndarray) -> LogisticProblem:
    return LogisticProblem.of(
        whole.design[~out],
        whole.outcome[~out],
        weight=whole.weight[~out],
        penalty=whole.penalty,
        centre=whole.centre,
    )


def test_fit_agrees_with_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    y = rng.random(200) < sigmoid(x @ [1.0, -2.0, 0.5])
    ours = fit_logistic_ridge(LogisticProblem.of(x, y, penalty=0.5))
    theirs = linear_model.LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, y)
    assert ours == pytest.approx(theirs.coef_[0], abs=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(0, 60), st.integers(1, 5), st.floats(0.01, 40), st.floats(1e-6, 10))
def test_gradient_is_zero_at_the_fit(seed, n, p, scale, penalty):
    whole = problem(n, p, seed, scale=scale, penalty=penalty)
    coefficients = fit_logistic_ridge(whole)
    assert np.isfinite(coefficients).all()
    gradient, hessian = whole.slope(coefficients)
    assert np.abs(np.linalg.solve(hessian, gradient)).max() <= 1e-7 * (1 + np.abs(coefficients).max())


@settings(max_examples=40)
@given(st.integers(0, 9999), st.integers(2, 40), st.integers(1, 4), st.floats(0.1, 20), st.sampled_from([1e-6, 2]))
def test_leave_out_equals_refitting_without_the_group(seed, n, p, scale, penalty):
    whole = problem(n, p, seed, scale=scale, penalty=penalty)
    groups = np.random.default_rng(seed).integers(0, max(1, n // 2), n)
    p_left_out = sigmoid(leave_out(whole, groups))
    for group in np.unique(groups):
        out = groups == group
        again = sigmoid(whole.design[out] @ fit_logistic_ridge(without(whole, out)))
        assert p_left_out[out] == pytest.approx(again, abs=1e-7)


def test_leave_one_out_does_not_depend_on_the_block_size(monkeypatch):
    whole = problem(120, 4, 3)
    together = leave_out(whole, np.arange(120))
    monkeypatch.setattr(logistic, "CELLS", 500)
    assert leave_out(whole, np.arange(120)) == pytest.approx(together, abs=1e-8)


def test_groups_that_do_not_converge_are_fitted_separately(monkeypatch):
    whole = problem(60, 3, 4)
    groups = np.arange(60) % 7
    settled = coefficients_without(whole, groups)
    monkeypatch.setattr(logistic, "CHORDS", 1)
    assert coefficients_without(whole, groups) == pytest.approx(settled, abs=1e-7)


def test_leaving_everything_out_gives_the_centre():
    whole = problem(20, 2, 5)
    assert coefficients_without(whole, np.zeros(20, int))[0] == pytest.approx(whole.centre)


def test_empty_group_gives_the_coefficients_of_the_whole():
    whole = problem(20, 2, 6)
    coefficients = coefficients_without(whole, np.where(np.arange(20) < 10, 0, 2))
    assert coefficients[1] == pytest.approx(fit_logistic_ridge(whole), abs=1e-7)


def test_separable_outcomes_have_finite_coefficients():
    design = np.column_stack([np.ones(6), [-3, -2, -1, 1, 2, 3]])
    whole = LogisticProblem.of(design, [0, 0, 0, 1, 1, 1])
    assert np.isfinite(fit_logistic_ridge(whole)).all()
    z = leave_out(whole, np.arange(6))
    assert np.isfinite(z).all()
    assert ((z > 0) == [False, False, False, True, True, True]).all()


def test_one_class_and_columns_of_zeros_give_finite_coefficients():
    whole = LogisticProblem.of(np.column_stack([np.ones(5), np.zeros(5)]), np.zeros(5))
    coefficients = fit_logistic_ridge(whole)
    assert np.isfinite(coefficients).all()
    assert coefficients[1] == 0
    assert np.isfinite(leave_out(whole, np.arange(5))).all()


def test_rows_of_zero_weight_are_ignored():
    whole = problem(30, 2, 7)
    half = LogisticProblem.of(
        whole.design,
        whole.outcome,
        weight=np.where(np.arange(30) < 15, whole.weight, 0),
        penalty=0.1,
        centre=whole.centre,
    )
    assert fit_logistic_ridge(half) == pytest.approx(fit_logistic_ridge(without(whole, np.arange(30) >= 15)), abs=1e-9)
    assert leave_out(half, np.arange(30))[20] == pytest.approx(half.design[20] @ fit_logistic_ridge(half), abs=1e-8)


def test_fit_without_rows_is_the_centre():
    empty = LogisticProblem.of(np.empty((0, 2)), [], centre=[1, 0])
    assert fit_logistic_ridge(empty).tolist() == [1, 0]
    assert leave_out(empty, np.empty(0, np.int64)).shape == (0,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"penalty": 0.0}, "penalty must be positive"),
        ({"weight": -1.0}, "weight finite and not negative"),
        ({"outcome": [1, 0]}, "outcome 2"),
        ({"design": [[np.nan], [1], [1]]}, "design must be finite"),
    ],
)
def test_invalid_problems_raise_errors(changes, message):
    arguments = {"design": np.ones((3, 1)), "outcome": [1, 0, 1]} | changes
    with pytest.raises(ValueError, match=message):
        LogisticProblem.of(arguments.pop("design"), arguments.pop("outcome"), **arguments)
