import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import mcnemar_matrix
from foretell.metrics.comparison import mcnemar

counts = st.tuples(*[st.integers(0, 30)] * 4).filter(lambda t: sum(t) > 0)


def arrays(both, only_a, only_b, neither):
    a = [1] * both + [1] * only_a + [0] * only_b + [0] * neither
    b = [1] * both + [0] * only_a + [1] * only_b + [0] * neither
    return a, b


@given(counts)
@settings(max_examples=60)
def test_agrees_with_statsmodels(table):
    theirs = pytest.importorskip("statsmodels.stats.contingency_tables").mcnemar
    both, only_a, only_b, neither = table
    ours = mcnemar(*arrays(*table))
    square = [[both, only_a], [only_b, neither]]
    if only_a + only_b:
        assert ours.p == pytest.approx(theirs(square, exact=True).pvalue)
        # statsmodels lets the correction overshoot when both sides are equal; the statistic cannot exceed zero there.
        if only_a != only_b:
            chi2 = theirs(square, exact=False, correction=True)
            assert (ours.chi2, ours.p_chi2) == pytest.approx((chi2.statistic, chi2.pvalue))
    else:
        assert (ours.p, ours.chi2, ours.p_chi2) == (1.0, 0.0, 1.0)
    assert (ours.both, ours.only_a, ours.only_b, ours.neither) == table


@given(counts)
@settings(max_examples=60)
def test_interval_is_antisymmetric_and_bounded(table):
    ours = mcnemar(*arrays(*table))
    assert -1 - 1e-12 <= ours.low <= ours.diff + 1e-12
    assert ours.diff - 1e-12 <= ours.high <= 1 + 1e-12
    a, b = arrays(*table)
    swapped = mcnemar(b, a)
    assert (swapped.low, swapped.high) == pytest.approx((-ours.high, -ours.low))
    wider = mcnemar(a, b, level=0.99)
    assert wider.high - wider.low >= ours.high - ours.low


def test_interval_matches_newcombes_published_example():
    # Newcombe (1998), table of 36, 12, 2, 0: method 10 gives +0.0569 to +0.3404.
    test = mcnemar(*arrays(36, 12, 2, 0))
    assert (round(test.low, 4), round(test.high, 4)) == (0.0569, 0.3404)


def test_exact_p_matches_a_hand_computation():
    # One against five discordant: 2·(1 + 6)/2⁶.
    assert mcnemar(*arrays(3, 5, 1, 2)).p == pytest.approx(14 / 64)


def test_interval_covers_the_true_difference():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(600):
        hard = rng.random(80)
        a, b = (hard < 0.7) ^ (rng.random(80) < 0.2), (hard < 0.6) ^ (rng.random(80) < 0.2)
        # P(right) = 0.6·p + 0.2, so the accuracies differ by 0.6·0.1.
        test = mcnemar(a, b)
        hits += test.low <= 0.06 <= test.high
    assert 0.93 <= hits / 600 <= 0.98


def test_matrix_is_pairwise_and_skips_gaps():
    rng = np.random.default_rng(1)
    correct = (rng.random((60, 3)) < [0.5, 0.6, 0.8]).astype(float)
    correct[:10, 1] = np.nan
    matrix = mcnemar_matrix(correct)
    test = mcnemar(correct[:, 1], correct[:, 2])
    assert (matrix.diff[1, 2], matrix.low[1, 2], matrix.high[1, 2], matrix.p[1, 2]) == (
        test.diff,
        test.low,
        test.high,
        test.p,
    )
    assert matrix.n[0, 1] == 50
    assert matrix.diff == pytest.approx(-matrix.diff.T)
    assert np.diag(matrix.p) == pytest.approx(np.ones(3))
    apart = mcnemar_matrix([[1, np.nan], [np.nan, 0]])
    assert np.isnan(apart.p[0, 1])


@pytest.mark.parametrize(
    ("args", "match"),
    [(([0.5], [1]), "correct_a"), (([1, 0], [1]), "shapes"), (([np.nan], [1]), "no question")],
)
def test_invalid_input_raises(args, match):
    with pytest.raises(ValueError, match=match):
        mcnemar(*args)
