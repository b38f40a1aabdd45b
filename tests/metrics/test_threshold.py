"""Thresholds: all cuts at once, ties as documented, and out-of-sample scores of the chosen threshold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import Resampling, best_threshold, cross_fit_threshold, score_threshold
from foretell.metrics.decisions import all_cuts, score_counts

FEW = Resampling(draws=200)
rows = st.lists(st.tuples(st.sampled_from([0, 0.1, 0.25, 0.5, 0.7, 1]), st.booleans()), min_size=2, max_size=25).filter(
    lambda pairs: len({y for _, y in pairs}) == 2
)


def counts_at(p, y, threshold):
    called, true = p > threshold, y == 1
    return np.array(
        [(called & true).sum(), (called & ~true).sum(), (~called & true).sum(), (~called & ~true).sum()], float
    )


def test_scores_match_a_hand_computation():
    table = np.array([3.0, 1.0, 2.0, 4.0])
    assert score_counts(table, "accuracy") == pytest.approx(0.7)
    assert score_counts(table, "balanced") == pytest.approx((3 / 5 + 4 / 5) / 2)
    assert score_counts(table, "f1") == pytest.approx(6 / 9)
    assert np.isnan(score_counts(np.array([0.0, 0, 0, 3]), "f1"))
    with pytest.raises(ValueError, match="criterion"):
        score_counts(table, "auc")  # pyright: ignore[reportArgumentType]


@settings(max_examples=80)
@given(rows, st.sampled_from(["accuracy", "balanced", "f1"]))
def test_no_other_threshold_beats_the_chosen_one(pairs, criterion):
    p, y = np.array([a for a, _ in pairs], float), np.array([b for _, b in pairs], float)
    chosen = best_threshold(p, y, criterion=criterion)
    assert score_counts(counts_at(p, y, chosen.value), criterion) == pytest.approx(chosen.score, abs=1e-12)
    for other in np.linspace(-0.05, 1.05, 45):
        assert not score_counts(counts_at(p, y, other), criterion) > chosen.score + 1e-12
    inside = np.linspace(chosen.low, chosen.high, 7)[:-1]
    scores = [score_counts(counts_at(p, y, t), criterion) for t in inside]
    assert chosen.low == chosen.high or np.allclose(scores, chosen.score)


def test_cuts_equal_those_of_a_loop():
    rng = np.random.default_rng(1)
    p, y, w = rng.integers(0, 9, 60) / 8, rng.integers(0, 2, 60).astype(float), rng.uniform(0.5, 2, 60)
    cuts = all_cuts(p, y, w)
    for low, table in zip(cuts.low, cuts.counts, strict=True):
        called, true = p > low, y == 1
        expected = [w[called & true].sum(), w[called & ~true].sum(), w[~called & true].sum(), w[~called & ~true].sum()]
        np.testing.assert_allclose(table, expected, atol=1e-12)
    assert len(cuts.low) == len(np.unique(p)) + 1


def test_ties_go_to_the_widest_stretch_then_to_the_one_nearest_to_a_half():
    # Cutting between 0.1 and 0.2 or between 0.3 and 0.9 errs once either way.
    wide = best_threshold([0.1, 0.2, 0.3, 0.9], [0, 1, 0, 1])
    assert (wide.low, wide.high, wide.score) == (0.3, 0.9, 0.75)
    assert wide.value == pytest.approx(0.6)
    # 0.1–0.3 and 0.6–0.8 are equally wide: 0.7 is nearer to one half than 0.2.
    near = best_threshold([0.1, 0.3, 0.6, 0.8], [0, 1, 0, 1])
    assert near.value == pytest.approx(0.7)
    # A value with as many True as False may be called either way, so the range includes it.
    across = best_threshold([0.2, 0.5, 0.5, 0.7], [0, 0, 1, 1])
    assert (across.low, across.high) == (0.2, 0.7)


def test_certain_forecasts_can_be_called_true_or_false():
    assert best_threshold([0.0, 0.0, 0.0, 1.0], [1, 1, 0, 1]).value < 0
    assert best_threshold([1.0, 1.0, 1.0, 0.0], [0, 0, 1, 0]).value > 1
    assert best_threshold([0.0, 0.0, 0.4, 0.4], [0, 1, 1, 1]).score == 0.75


def test_a_cut_stays_below_the_next_float():
    low, high = 0.5, float(np.nextafter(0.5, 1))
    threshold = best_threshold([low, high], [0, 1])
    assert ([low, high] > np.float64(threshold.value)).tolist() == [False, True]


def test_missing_outcomes_and_empty_input_raise():
    with pytest.raises(ValueError, match="missing"):
        best_threshold([0.5], [np.nan])
    with pytest.raises(ValueError, match="nothing to score"):
        best_threshold([], [])


@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1]])
def test_outcomes_of_one_class_raise(y):
    with pytest.raises(ValueError, match="both classes"):
        best_threshold([0.1, 0.5, 0.9], y)


def test_a_threshold_is_scored_on_other_rows():
    rng = np.random.default_rng(0)
    bias = 0.3

    def sample(n):
        true = rng.uniform(size=n)
        return np.clip(true - bias, 0, 1), (rng.uniform(size=n) < true).astype(float)

    validation, (p, y) = sample(3000), sample(2000)
    chosen = best_threshold(*validation)
    assert chosen.value == pytest.approx(0.5 - bias, abs=0.08)
    report = score_threshold(chosen, p, y, np.repeat(np.arange(500), 4), resampling=FEW)
    assert report.n == 2000
    assert report.gain.n_clusters == 500
    assert report.gain.diff == pytest.approx(report.score - report.score_at_half)
    assert report.gain.low > 0


def test_cross_fitted_score_is_below_the_in_sample_score_without_signal():
    rng = np.random.default_rng(3)
    p, y = rng.uniform(size=400), (rng.uniform(size=400) < 0.5).astype(float)
    fit_threshold = cross_fit_threshold(p, y, np.arange(400) // 4, folds=10, criterion="balanced", resampling=FEW)
    assert fit_threshold.in_sample > 0.5
    assert fit_threshold.score < fit_threshold.in_sample
    assert fit_threshold.gain.low < 0 < fit_threshold.gain.high + 0.1


def test_threshold_of_a_group_does_not_use_its_own_rows():
    p = np.array([0.1, 0.9, 0.4, 0.6, 0.3, 0.7])
    y = np.array([0.0, 1, 0, 1, 0, 1])
    group = np.array([0, 0, 1, 1, 2, 2])
    fit_threshold = cross_fit_threshold(p, y, group, folds=3, resampling=FEW)
    for member in range(3):
        expected = best_threshold(p[group != member], y[group != member]).value
        assert set(fit_threshold.threshold[group == member]) == {expected}


def test_groups_are_dealt_evenly_into_that_many_folds():
    rng = np.random.default_rng(6)
    p, group = rng.uniform(size=360), np.arange(360) // 3
    y = (rng.uniform(size=360) < p).astype(float)
    fitted = cross_fit_threshold(p, y, group, folds=3, resampling=FEW)
    values = np.unique(fitted.threshold)
    assert len(values) == 3
    for value in values:
        held_out = fitted.threshold == value
        assert held_out.sum() == 120
        assert not set(group[held_out]) & set(group[~held_out])
        assert best_threshold(p[~held_out], y[~held_out]).value == value


def test_a_weight_of_two_counts_like_two_rows():
    rng = np.random.default_rng(8)
    p, group = rng.uniform(size=90).round(2), np.arange(90) // 3
    y, weight = (rng.uniform(size=90) < p).astype(float), rng.integers(1, 4, 90)
    weighted = cross_fit_threshold(p, y, group, weight=weight, folds=5, resampling=FEW)
    again = np.repeat(np.arange(90), weight)
    repeated = cross_fit_threshold(p[again], y[again], group[again], folds=5, resampling=FEW)
    assert weighted.threshold[again].tolist() == repeated.threshold.tolist()
    for name in ("score", "score_at_half", "in_sample"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name)), name
    assert weighted.gain.diff == pytest.approx(repeated.gain.diff)
    plain = cross_fit_threshold(p, y, group, folds=5, resampling=FEW)
    assert plain.score != pytest.approx(weighted.score)


def test_folds_without_both_classes_fall_back_to_one_half():
    fit_threshold = cross_fit_threshold([0.2, 0.9, 0.3], [1, 0, 0], [0, 1, 2], folds=3, resampling=FEW)
    assert fit_threshold.fallbacks == 1
    assert fit_threshold.threshold[0] == 0.5


def test_invalid_groups_raise():
    with pytest.raises(ValueError, match="two folds and two groups"):
        cross_fit_threshold([0.2, 0.9], [1, 0], [0, 0])
    with pytest.raises(ValueError, match="group has 3 rows"):
        cross_fit_threshold([0.2, 0.9], [1, 0], [0, 1, 1])


def test_sklearn_agrees_on_the_scores():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(5)
    p, y = rng.uniform(size=80), (rng.uniform(size=80) < 0.4).astype(int)
    table = counts_at(p, y, 0.45)
    assert score_counts(table, "f1") == pytest.approx(metrics.f1_score(y, p > 0.45))
    assert score_counts(table, "balanced") == pytest.approx(metrics.balanced_accuracy_score(y, p > 0.45))
