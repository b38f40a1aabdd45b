import numpy as np
import pytest

from foretell.metrics import clusters, resample_counts
from foretell.metrics.clusters import draw_crossed_sums, draw_sums


def test_counts_are_multinomial():
    counts = resample_counts(5, 40_000, np.random.default_rng(0))
    assert (counts.sum(axis=1) == 5).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(5), abs=0.02)
    # Multinomial(5, 1/5): variance 5·(1/5)(4/5), covariance −5/25.
    covariance = np.cov(counts.T)
    assert np.diag(covariance) == pytest.approx(np.full(5, 0.8), abs=0.03)
    assert covariance[0, 1] == pytest.approx(-0.2, abs=0.02)


def test_draws_equal_summing_the_rows_drawn():
    sums = np.random.default_rng(1).normal(size=(7, 3))
    drawn = draw_sums(sums, 20, np.random.default_rng(5))
    picked = np.random.default_rng(5).integers(0, 7, size=(20, 7))
    assert drawn == pytest.approx(sums[picked].sum(axis=1))


def test_chunks_do_not_change_the_draws(monkeypatch):
    sums = np.random.default_rng(1).normal(size=(9, 2))
    whole = draw_sums(sums, 50, np.random.default_rng(2))
    monkeypatch.setattr(clusters, "DRAW_CHUNK", 30)
    assert draw_sums(sums, 50, np.random.default_rng(2)) == pytest.approx(whole)


def test_pigeonhole_variance_matches_owen(monkeypatch):
    # With one row per cell the pigeonhole variance of a sum over a full R × C table is, to first order,
    # that of rows plus that of columns; here y = a_i + b_j, whose exact value follows from multinomial moments.
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=12), rng.normal(size=15)
    first, second = np.repeat(np.arange(12), 15), np.tile(np.arange(15), 12)
    cells = (a[first] + b[second])[:, None]
    monkeypatch.setattr(clusters, "DRAW_CHUNK", 5000)
    drawn = draw_crossed_sums(cells, first, second, 40_000, np.random.default_rng(0))[:, 0] / 180
    expected = a.var() / 12 + b.var() / 15
    assert drawn.var() == pytest.approx(expected, rel=0.04)
    assert drawn.mean() == pytest.approx(cells.mean(), abs=0.01)
