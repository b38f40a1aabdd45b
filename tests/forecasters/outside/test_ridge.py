import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from foretell.forecasters.base_rates.outside_fit import fit_logistic
from foretell.forecasters.base_rates.sparse_matrix import BlockRow, RepeatedRows, SparseMatrix


def sparse(x: np.ndarray) -> SparseMatrix:
    row, column = np.nonzero(x)
    return SparseMatrix.of(x[row, column], row, column, x.shape)


@given(st.integers(0, 10**6))
def test_products_with_a_sparse_matrix_are_those_with_the_dense_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = [rng.normal(size=(7, 5)) * (rng.random((7, 5)) < share) for share in (0.0, 0.3, 1.0)]
    whole, dense = BlockRow([sparse(blocks[0]), sparse(blocks[1]), blocks[2]]), np.hstack(blocks)
    right, left = rng.normal(size=15), rng.normal(size=7)
    np.testing.assert_allclose(whole @ right, dense @ right, atol=1e-12)
    np.testing.assert_allclose(whole.T @ left, dense.T @ left, atol=1e-12)


@given(st.integers(0, 10**6))
def test_products_with_repeated_rows_are_those_with_each_row_written_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, which = rng.normal(size=(3, 4)) * (rng.random((3, 4)) < 0.5), rng.integers(0, 3, 7)
    right, left = rng.normal(size=4), rng.normal(size=7)
    for few in (rows, sparse(rows)):
        repeated = RepeatedRows(rows=few, which=which)
        np.testing.assert_allclose(repeated @ right, rows[which] @ right, atol=1e-12)
        np.testing.assert_allclose(repeated.T @ left, rows[which].T @ left, atol=1e-12)
        assert repeated.shape == repeated.T.T.shape == (7, 4)


def objective(x, target, weight, offset):
    def loss(beta):
        z = offset + x @ beta
        return float(weight @ (np.logaddexp(0, z) - target * z) + 0.5 * beta @ beta)

    return loss


@given(seed=st.integers(0, 10**6), bound=st.lists(st.booleans(), min_size=6, max_size=6))
@settings(max_examples=12)
def test_fit_matches_a_general_minimiser(seed: int, bound: list[bool]) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 6)) * 2
    target, weight, offset = rng.random(40), rng.random(40) + 0.1, rng.normal(size=40)
    beta = fit_logistic(sparse(x), target, weight, offset=offset, not_negative=np.array(bound))
    loss = objective(x, target, weight, offset)
    bounds = [(0, None) if b else (None, None) for b in bound]
    best = minimize(loss, np.zeros(6), method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
    assert loss(beta) <= best.fun + 1e-6
    assert (beta[np.array(bound)] >= 0).all()
    np.testing.assert_allclose(beta, best.x, atol=2e-3)


def test_fit_matches_scikit_learn() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 4))
    y = (rng.random(300) < 1 / (1 + np.exp(-x @ [1.0, -1.0, 0.5, 0.0]))) * 1.0
    theirs = linear.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, y).coef_[0]
    ours = fit_logistic(sparse(x), y, np.ones(300), offset=np.zeros(300), not_negative=np.zeros(4, bool))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_warm_start_does_not_change_the_fit() -> None:
    rng = np.random.default_rng(1)
    x, y = sparse(rng.normal(size=(50, 5))), (rng.random(50) < 0.3) * 1.0
    args = {"offset": np.zeros(50), "not_negative": np.zeros(5, bool)}
    cold = fit_logistic(x, y, np.ones(50), **args)
    warm = fit_logistic(x, y, np.ones(50), **args, start=rng.normal(size=5) * 3)
    np.testing.assert_allclose(warm, cold, atol=1e-4)
