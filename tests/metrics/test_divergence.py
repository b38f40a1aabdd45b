"""Jensen–Shannon divergence of binary forecasts: closed forms, limits, laws, and the matrix."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foretell.metrics import divergence_matrix, jensen_shannon

chance = st.floats(0, 1)


def entropy(p):
    return 0.0 if p in (0, 1) else -(p * np.log2(p) + (1 - p) * np.log2(1 - p))


def test_divergence_matches_closed_forms():
    # m = 0.5: H(0.5) - H(0.25) = 1 - 0.8112781
    assert jensen_shannon(0.25, 0.75) == pytest.approx(0.18872187554, abs=1e-10)
    # one side certain: H(0.25) - H(0.5)/2
    assert jensen_shannon(0.0, 0.5) == pytest.approx(0.81127812446 - 0.5, abs=1e-10)
    assert jensen_shannon([0, 1, 0.3], [1, 0, 0.3]).tolist() == [1.0, 1.0, 0.0]


def test_divergence_near_equality_is_the_scaled_square():
    p, q = 0.3, 0.3001
    expected = (p - q) ** 2 / (8 * 0.3 * 0.7 * np.log(2))
    assert jensen_shannon(p, q) == pytest.approx(expected, rel=1e-3)


@settings(max_examples=60)
@given(chance, chance)
@example(1.0, 0.9999999999999999)
@example(0.0, 5e-324)
def test_divergence_is_symmetric_bounded_and_a_difference_of_entropies(p, q):
    d = float(jensen_shannon(p, q))
    assert d == float(jensen_shannon(q, p))
    assert 0 <= d <= 1
    assert d == pytest.approx(float(jensen_shannon(1 - p, 1 - q)), abs=1e-12)
    assert d == pytest.approx(entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2, abs=1e-12)


def test_matrix_is_the_mean_over_common_targets(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(40, 7))
    p[rng.uniform(size=p.shape) < 0.3] = np.nan
    p[:, 6] = np.nan
    p[:20, 5], p[20:, 4] = np.nan, np.nan
    matrix = divergence_matrix(p)
    for i in range(7):
        for j in range(7):
            both = ~np.isnan(p[:, i]) & ~np.isnan(p[:, j])
            assert matrix.n[i, j] == both.sum()
            if both.any():
                assert matrix.mean[i, j] == pytest.approx(jensen_shannon(p[both, i], p[both, j]).mean(), abs=1e-14)
            else:
                assert np.isnan(matrix.mean[i, j])
    monkeypatch.setattr("foretell.metrics.agreement.CHUNK_CELLS", 80)
    np.testing.assert_array_equal(divergence_matrix(p).mean, matrix.mean)


@pytest.mark.parametrize("bad", [[0.1, 0.2], [[0.5, 1.2]], np.empty((0, 3))])
def test_invalid_matrices_raise(bad):
    with pytest.raises(ValueError, match="p"):
        divergence_matrix(bad)


@pytest.mark.shared_data
def test_divergence_of_published_models_is_small(shared_data):
    """BLF 2026, figure 14, gives 0.006–0.014 bits between Pro, Kimi and Flash on ForecastBench."""
    import duckdb

    names = ["pro-high-brave-c0-t1", "kimi-k2.5-high-brave-c0-t1", "flash-high-brave-c0-t1"]
    columns = ", ".join(f"avg(probability) filter (where config = '{name}')" for name in names)
    rows = duckdb.sql(
        f"select {columns} from '{shared_data}/tables/ab_trials.parquet' where config in {tuple(names)} "
        "group by forecast_due_date, source, question_id, resolution_date"
    ).fetchall()
    matrix = divergence_matrix(np.array(rows, dtype=np.float64))
    apart = matrix.mean[np.triu_indices(3, k=1)]
    assert matrix.n.min() == 791
    assert ((apart > 0.004) & (apart < 0.03)).all()


def test_opposite_certainties_are_one_bit_apart():
    matrix = divergence_matrix([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    assert matrix.mean[0].tolist() == pytest.approx([0.0, 1.0, 0.5])
    assert matrix.n.tolist() == [[2, 2, 2]] * 3
