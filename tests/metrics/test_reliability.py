import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import ece, mean_brier, murphy_decomposition, reliability_bins, width_edges, wilson_interval

rows = st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.floats(0.1, 5)), min_size=1, max_size=40)


def split(rows):
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def sample(n=500, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n)
    return p, (rng.random(n) < p).astype(int), rng


def test_two_bins_match_a_hand_computation():
    diagram = reliability_bins([0.1, 0.2, 0.8, 1.0], [0, 1, 1, 1], [1, 3, 2, 2], bins=2)
    assert diagram.low.tolist() == [0, 0.5]
    assert diagram.high.tolist() == [0.5, 1]
    assert diagram.mean_p.tolist() == pytest.approx([0.175, 0.9])
    assert diagram.frequency.tolist() == [0.75, 1]
    assert diagram.weight.tolist() == [4, 4]
    assert diagram.count.tolist() == [2, 2]
    assert diagram.ece == pytest.approx((0.575 + 0.1) / 2)


def test_tenths_belong_to_the_bin_that_ends_there():
    for i in range(1, 11):
        diagram = reliability_bins([i / 10], [1])
        assert (diagram.low[0], diagram.high[0]) == ((i - 1) / 10, i / 10)
    assert reliability_bins([0.0], [1]).low[0] == 0


def test_empty_bins_are_left_out_and_everything_is_finite():
    diagram = reliability_bins([0.05, 0.95], [0, 1])
    assert len(diagram.low) == 2
    for column in vars(diagram).values():
        assert np.isfinite(column).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"bins": 0}, "bins"), ({"level": 1.0}, "level")],
)
def test_invalid_options_raise_an_error_that_names_them(options, message):
    with pytest.raises(ValueError, match=message):
        reliability_bins([0.5], [1], **options)


def test_missing_outcome_raises():
    for score in (ece, murphy_decomposition, reliability_bins):
        with pytest.raises(ValueError, match="missing"):
            score([0.5, 0.6], [1, np.nan])


def test_scoring_nothing_raises():
    for score in (ece, murphy_decomposition, reliability_bins):
        with pytest.raises(ValueError, match="nothing to score"):
            score([], [])


def test_the_sharper_forecaster_may_be_the_worse_calibrated():
    """Prophet Arena C.4: outcomes in the long-run proportions 0.9 and 0.1 of two markets."""
    outcome = [1] * 9 + [0] + [0] * 9 + [1]
    alice, bob = [1.0] * 10 + [0.0] * 10, [0.5] * 20
    assert ece(alice, outcome) == pytest.approx(0.1)
    assert ece(bob, outcome) == pytest.approx(0)
    assert mean_brier(alice, outcome) == pytest.approx(0.1)
    assert mean_brier(bob, outcome) == pytest.approx(0.25)


def test_extreme_and_calibrated_forecasters_of_the_paper():
    """Prophet Arena C.4, second example, with errors of 10 %: weights are the joint probabilities."""
    wrong = 0.1
    p, outcome = [1, 0, 1, 0], [1, 0, 0, 1]
    weight = [0.5 * (1 - wrong), 0.5 * (1 - wrong), 0.5 * wrong, 0.5 * wrong]
    assert mean_brier(p, outcome, weight) == pytest.approx(wrong)
    # The paper squares the gap here (0.5·wrong²); its own equation (3), with absolute gaps, gives `wrong`.
    assert ece(p, outcome, weight) == pytest.approx(wrong)
    p, outcome, weight = [2 / 3, 2 / 3, 0], [1, 0, 0], [0.5, 0.25, 0.25]
    assert ece(p, outcome, weight) == pytest.approx(0)
    assert mean_brier(p, outcome, weight) == pytest.approx(1 / 6)


@settings(max_examples=80)
@given(rows=rows, bins=st.integers(1, 12))
def test_murphy_parts_add_up_to_the_brier_score(rows, bins):
    p, outcome, weight = split(rows)
    whole = mean_brier(p, outcome, weight)
    exact = murphy_decomposition(p, outcome, weight)
    assert exact.reliability - exact.resolution + exact.uncertainty == pytest.approx(whole, abs=1e-12)
    assert exact.within == pytest.approx(0, abs=1e-12)
    assert murphy_decomposition(p, outcome, weight, bins=bins).brier == pytest.approx(whole, abs=1e-12)
    assert min(exact.reliability, exact.resolution, exact.uncertainty) >= 0


def test_murphy_decomposition_matches_a_hand_computation():
    parts = murphy_decomposition([0.9, 0.9, 0.4, 0.4], [1, 1, 1, 0])
    assert parts.reliability == pytest.approx(0.5 * 0.01 + 0.5 * 0.01)
    assert parts.resolution == pytest.approx(0.0625)
    assert parts.uncertainty == pytest.approx(0.1875)
    assert parts.brier == pytest.approx((0.01 + 0.01 + 0.36 + 0.16) / 4)


@settings(max_examples=50)
@given(rows=rows, seed=st.integers(0, 2**32 - 1))
def test_calibration_error_is_bounded_and_independent_of_order_and_scale(rows, seed):
    p, outcome, weight = split(rows)
    order = np.random.default_rng(seed).permutation(len(p))
    value = ece(p, outcome, weight)
    assert 0 <= value <= 1
    assert ece(p[order], outcome[order], 3 * weight[order]) == pytest.approx(value, abs=1e-12)
    # One bin can only cancel gaps that several bins keep apart.
    assert ece(p, outcome, weight, bins=1) <= value + 1e-12


def test_wilson_interval_matches_a_hand_computation():
    low, high = wilson_interval([0.0, 0.8], [10, 10])
    assert low.tolist() == pytest.approx([0, 0.4902], abs=1e-4)
    assert high.tolist() == pytest.approx([0.2775, 0.9433], abs=1e-4)


def test_wilson_interval_stays_within_0_and_1():
    n = np.arange(1, 200)
    assert max(wilson_interval(np.ones(199), n)[1]) <= 1
    assert min(wilson_interval(np.zeros(199), n)[0]) >= 0


def test_equal_weights_do_not_change_the_interval():
    p, outcome, _ = sample(100)
    first, second = reliability_bins(p, outcome), reliability_bins(p, outcome, np.full(100, 0.25))
    assert first.frequency_low == pytest.approx(second.frequency_low)
    assert first.frequency_high == pytest.approx(second.frequency_high)


def test_bins_agree_with_scikit_learn():
    calibration = pytest.importorskip("sklearn.calibration")
    p, outcome, _ = sample()
    frequency, mean_p = calibration.calibration_curve(outcome, p, n_bins=10)
    diagram = reliability_bins(p, outcome)
    assert diagram.frequency == pytest.approx(frequency, abs=1e-12)
    assert diagram.mean_p == pytest.approx(mean_p, abs=1e-12)


def test_wilson_agrees_with_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    low, high = wilson_interval([0.3], [20], level=0.9)
    assert (low[0], high[0]) == pytest.approx(proportion.proportion_confint(6, 20, 0.1, method="wilson"))


def test_bin_edges_are_the_closest_floats():
    assert width_edges(10).tolist() == [i / 10 for i in range(11)]
