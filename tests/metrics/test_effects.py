import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import alternating_effects, two_way_effects
from foretell.metrics import effects as module


def unbalanced(seed, methods=6, questions=25, filled=0.5):
    rng = np.random.default_rng(seed)
    method, question = np.nonzero(rng.random((methods, questions)) < filled)
    y = rng.normal(0, 0.1, methods)[method] + rng.normal(0, 0.3, questions)[question]
    return y + rng.normal(0, 0.05, len(method)), method, question


def dense(y, method, question, weight=None):
    """Fitted values, effects and covariance by least squares on the full dummy matrix."""
    w = np.ones(len(y)) if weight is None else weight
    m, q = np.unique(method, return_inverse=True)[1], np.unique(question, return_inverse=True)[1]
    x = np.hstack([np.eye(m.max() + 1)[m], np.eye(q.max() + 1)[q]])
    root = np.sqrt(w)[:, None]
    solution = np.linalg.lstsq(x * root, y * root[:, 0], rcond=None)[0]
    alpha, level = solution[: m.max() + 1], solution[m.max() + 1 :]
    return x @ solution, alpha - alpha.mean(), level + alpha.mean()


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_effects_equal_dense_least_squares(seed):
    y, method, question = unbalanced(seed)
    fit = two_way_effects(y, method, question)
    if fit.n_components > 1:
        return
    fitted, alpha, level = dense(y, method, question)
    assert fit.method == pytest.approx(alpha, abs=1e-9)
    assert fit.mu + fit.question == pytest.approx(level, abs=1e-9)
    m, q = np.searchsorted(fit.methods, method), np.searchsorted(fit.questions, question)
    assert fit.mu + fit.method[m] + fit.question[q] == pytest.approx(fitted, abs=1e-9)
    assert fit.method.sum() == pytest.approx(0, abs=1e-9)
    assert fit.question.sum() == pytest.approx(0, abs=1e-9)


def test_weights_equal_repeated_rows():
    y, method, question = unbalanced(3)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    fit = two_way_effects(y, method, question, weight)
    positive = weight > 0
    _, alpha, level = dense(y[positive], method[positive], question[positive], weight[positive].astype(float))
    assert fit.method == pytest.approx(alpha, abs=1e-9)
    repeated = two_way_effects(*(np.repeat(a, weight) for a in (y, method, question)))
    assert fit.method == pytest.approx(repeated.method, abs=1e-9)
    assert fit.mu + fit.question == pytest.approx(level, abs=1e-9)


def test_balanced_effects_are_differences_of_means():
    y = np.random.default_rng(0).normal(size=(4, 9))
    fit = two_way_effects(y.ravel(), np.repeat(np.arange(4), 9), np.tile(np.arange(9), 4))
    assert fit.mu == pytest.approx(y.mean())
    assert fit.method == pytest.approx(y.mean(axis=1) - y.mean())
    assert fit.question == pytest.approx(y.mean(axis=0) - y.mean())
    # Var(α̂_i) = σ²·(1 − 1/M)/Q on a balanced table.
    assert fit.method_se == pytest.approx(np.full(4, np.sqrt(fit.residual_variance * 0.75 / 9)))
    assert fit.residual_df == 36 - 4 - 9 + 1


def test_standard_errors_agree_with_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    y, method, question = unbalanced(8, filled=0.7)
    fit = two_way_effects(y, method, question)
    x = np.hstack([np.eye(6)[method], np.eye(25)[question][:, 1:]])
    ols = sm.OLS(y, x).fit()
    contrast = np.zeros(x.shape[1])
    contrast[[0, 3]] = 1, -1
    test = ols.t_test(contrast)
    v = fit.method_covariance
    assert fit.method[0] - fit.method[3] == pytest.approx(float(test.effect[0]))
    assert np.sqrt(v[0, 0] + v[3, 3] - 2 * v[0, 3]) == pytest.approx(float(np.squeeze(test.sd)))
    assert fit.residual_variance == pytest.approx(ols.scale)


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_pyfixest():
    pf = pytest.importorskip("pyfixest")
    pd = pytest.importorskip("pandas")
    y, method, question = unbalanced(5, methods=8, questions=40)
    fit = two_way_effects(y, method, question)
    frame = pd.DataFrame({"y": y, "m": method, "q": question})
    effects = pf.feols("y ~ 1 | m + q", frame).fixef()["C(m)"]
    theirs = np.array([effects.get(str(i), 0.0) for i in range(8)])
    assert fit.method == pytest.approx(theirs - theirs.mean(), abs=1e-5)


def test_iteration_reaches_the_exact_solution():
    y, method, question = unbalanced(2)
    exact, iterated = two_way_effects(y, method, question), alternating_effects(y, method, question)
    assert iterated.method == pytest.approx(exact.method, abs=1e-7)
    assert iterated.question == pytest.approx(exact.question, abs=1e-7)
    assert iterated.mu == pytest.approx(exact.mu, abs=1e-7)
    assert iterated.residual_variance == pytest.approx(exact.residual_variance)
    assert iterated.sweeps > 2
    with pytest.raises(ValueError, match="no convergence"):
        alternating_effects(y, method, question, max_sweeps=2)


def test_disconnected_methods_are_in_different_components():
    y = np.array([1.0, 2.0, 3.0, 5.0, 10.0, 11.0, 12.0, 17.0])
    method = np.array(["a", "b", "a", "b", "c", "d", "c", "d"])
    question = np.array([1, 1, 2, 2, 3, 3, 4, 4])
    fit = two_way_effects(y, method, question)
    assert fit.n_components == 2
    assert "2 groups of methods" in (fit.warning or "")
    assert fit.method_component.tolist() == [0, 0, 1, 1]
    assert fit.question_component.tolist() == [0, 0, 1, 1]
    assert fit.method == pytest.approx([-0.75, 0.75, -1.5, 1.5])
    assert fit.question.sum() == pytest.approx(0)
    fitted = fit.mu + fit.method[[0, 1, 0, 1, 2, 3, 2, 3]] + fit.question[[0, 0, 1, 1, 2, 2, 3, 3]]
    assert fitted == pytest.approx(dense(y, method, question)[0])
    assert alternating_effects(y, method, question).method == pytest.approx(fit.method)
    connected = two_way_effects(np.append(y, 4.0), np.append(method, "a"), np.append(question, 3))
    assert (connected.n_components, connected.warning) == (1, None)


@given(st.integers(0, 1000))
@settings(max_examples=15)
def test_row_order_labels_and_shifts_do_not_matter(seed):
    y, method, question = unbalanced(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    fit = two_way_effects(y, method, question)
    other = two_way_effects(y[order] + 5, [f"m{m:03d}" for m in method[order]], [f"q{q:03d}" for q in question[order]])
    assert other.method == pytest.approx(fit.method, abs=1e-9)
    assert other.question == pytest.approx(fit.question, abs=1e-9)
    assert other.mu == pytest.approx(fit.mu + 5)


def test_sparse_and_dense_tables_agree(monkeypatch):
    y, method, question = unbalanced(4)
    fit = two_way_effects(y, method, question)
    monkeypatch.setattr(module, "DENSE_CELLS", 0)
    other = two_way_effects(y, method, question)
    assert other.method == pytest.approx(fit.method, abs=1e-12)
    assert other.method_se == pytest.approx(fit.method_se)


def test_effects_of_one_method_or_one_question():
    alone = two_way_effects([0.1, 0.3], ["a", "a"], ["x", "z"])
    assert (alone.method.tolist(), alone.mu) == ([0.0], pytest.approx(0.2))
    assert np.isnan(alone.residual_variance)
    assert two_way_effects([0.1, 0.3], ["a", "b"], ["x", "x"]).method == pytest.approx([-0.1, 0.1])


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (([0.1, np.nan], ["a", "b"], ["x", "x"]), "y"),
        (([0.1, 0.2], ["a"], ["x", "x"]), "method"),
        (([0.1, 0.2], ["a", "b"], ["x"]), "question"),
        (([0.1, 0.2], ["a", "b"], ["x", "x"], [1, -1]), "weight"),
        (([], [], []), "y"),
    ],
)
def test_invalid_input_raises(args, match):
    with pytest.raises(ValueError, match=match):
        two_way_effects(*args)
