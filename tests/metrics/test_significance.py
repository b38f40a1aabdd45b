import numpy as np
import pytest
from scipy import stats

from foretell.metrics import Interval, Resampling, compare_paired, one_sided_p, stars, two_sided_p
from foretell.metrics.bootstrap import interval_bounds
from foretell.metrics.comparison import p_value, symmetric_p


@pytest.mark.parametrize(("p", "expected"), [(0.0, "***"), (0.001, "**"), (0.01, "*"), (0.05, ""), (np.nan, "")])
def test_stars_use_strict_thresholds(p, expected):
    assert stars(p) == expected


def test_one_sided_p_counts_draws_on_the_other_side_of_zero():
    draws = np.array([-2.0, -1.0, 0.0, 1.0])
    assert one_sided_p(-0.5, draws) == 0.5
    assert one_sided_p(0.5, draws) == 0.75
    assert np.isnan(one_sided_p(0.5, draws[:0]))


def test_two_sided_p_is_above_zero_and_at_most_one():
    assert two_sided_p(np.ones(999)) == pytest.approx(0.002)
    assert two_sided_p(np.zeros(9)) == 1.0
    assert np.isnan(two_sided_p(np.ones(0)))


KINDS = ("percentile", "symmetric")


@pytest.mark.parametrize("kind", KINDS)
def test_p_is_below_five_percent_exactly_if_the_interval_excludes_zero(kind):
    how = Resampling(draws=300, interval=kind)
    starred = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        skewed = rng.exponential(1.0, 30) - 1.0 + rng.normal(0.35, 0.05)
        comparison = compare_paired(skewed, np.zeros(30), resampling=how)
        assert (comparison.p_two_sided < 0.05) == (comparison.low > 0 or comparison.high < 0)
        starred += comparison.p_two_sided < 0.05
    assert 10 < starred < 70, "both cases are seen"


@pytest.mark.parametrize("shift", [-0.9, -0.3, 0.2, 0.6])
def test_a_p_value_is_the_level_at_which_the_interval_reaches_zero(shift):
    rng = np.random.default_rng(3)
    draws = rng.gamma(4.0, 0.2, 20_000) - 0.8 + shift
    p = {"symmetric": symmetric_p(shift, draws), "percentile": two_sided_p(draws)}
    for kind in KINDS:
        ends = interval_bounds(shift, draws, kind=kind, level=1 - p[kind])
        assert min(np.abs(ends)) == pytest.approx(0, abs=0.02)
    assert len(set(p.values())) == 2, "skewed draws tell the kinds apart"


@pytest.mark.parametrize("shift", [0.05, 0.25, 0.45, 0.8])
def test_a_p_value_does_not_depend_on_the_number_of_draws(shift):
    rng = np.random.default_rng(2)
    gaps = rng.normal(shift, 1.0, 120)
    p_two_sideds = [
        compare_paired(gaps, np.zeros(120), resampling=Resampling(draws=draws)).p_two_sided
        for draws in (1000, 2000, 20_000)
    ]
    t = gaps.mean() / (gaps.std(ddof=1) / np.sqrt(120))
    assert p_two_sideds == pytest.approx([2 * stats.t.sf(abs(t), 119)] * 3, rel=0.35, abs=1e-9)


def test_three_stars_are_reached_with_few_draws():
    gaps = np.random.default_rng(0).normal(1.0, 1.0, 100)
    assert stars(compare_paired(gaps, np.zeros(100), resampling=Resampling(draws=200)).p_two_sided) == "***"


@pytest.mark.parametrize("kind", KINDS)
def test_the_p_value_of_three_clusters_has_two_degrees_of_freedom(kind):
    """With two, the tails of Student's t are 1 − t/√(t² + 2) together: 0.1/10.05 for t = 9.95."""
    gap = Interval(estimate=9.95, low=9.0, high=11.0, se=np.sqrt(2 / 3), n_clusters=3, draws=999)
    draws = np.linspace(9.0, 11.0, 999)
    assert p_value(gap, draws, kind) == pytest.approx(0.1 / 10.05, rel=1e-4)


def test_a_difference_that_never_varies_has_no_chance_of_being_none():
    gap = Interval(estimate=2.0, low=2.0, high=2.0, se=0.0, n_clusters=3, draws=999)
    assert p_value(gap, np.full(999, 2.0), "percentile") == 0


def test_a_scaled_comparison_has_its_scores_and_ends_in_the_other_unit():
    shares = compare_paired([0.5, 0.75, 1.0], [0.25, 0.25, 0.25])
    lost = shares.times(-100)
    assert (lost.first.estimate, lost.second.estimate, lost.diff) == (-75.0, -25.0, -50.0)
    assert (lost.low, lost.high, lost.se) == (-100 * shares.high, -100 * shares.low, 100 * shares.se)
    assert (lost.p_two_sided, lost.n) == (shares.p_two_sided, 3)
