import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.metrics.plain import event_weights

from foretell.metrics import (
    brier,
    brier_index,
    log_score,
    mean_brier,
    metaculus_baseline,
    metaculus_baseline_options,
    metaculus_peer,
)

probability = st.floats(0, 1)
inner = st.floats(0.001, 0.999)
rows = st.lists(st.tuples(probability, st.booleans()), min_size=1, max_size=30)


def test_scores_match_a_hand_computation():
    assert brier([0.7, 0.7], [1, 0]).tolist() == pytest.approx([0.09, 0.49])
    assert log_score([0.7, 0.7], [1, 0]).tolist() == pytest.approx([np.log(0.7), np.log(0.3)])
    assert metaculus_baseline([0.75, 0.99], [1, 0]).tolist() == pytest.approx([58.496, -564.386], abs=1e-3)


def test_brier_index_is_not_the_mean_of_parts():
    easy, hard = 0.01, 0.49
    parts = brier_index(np.array([easy, hard]))
    assert parts.tolist() == pytest.approx([90, 30])
    assert parts.mean() == pytest.approx(60)
    assert brier_index((easy + hard) / 2) == pytest.approx(50)


def test_brier_index_of_half_is_fifty_and_negative_means_count_as_zero():
    assert brier_index(mean_brier([0.5, 0.5], [0, 1])) == 50
    assert brier_index(-0.1) == 100


def test_missing_outcome_raises():
    for score in (brier, log_score, metaculus_baseline, mean_brier):
        with pytest.raises(ValueError, match=r"outcome\[0\] = nan is missing"):
            score([0.5], [np.nan])


def test_scoring_nothing_raises():
    for score in (brier, log_score, metaculus_baseline, mean_brier):
        with pytest.raises(ValueError, match="nothing to score"):
            score([], [])
    with pytest.raises(ValueError, match="no forecast"):
        metaculus_peer([[np.nan]], [1])


def test_event_weights_count_every_event_once():
    event = ["big"] * 3 + ["small"]
    weight = event_weights(event)
    assert weight.sum() == pytest.approx(2)
    assert mean_brier([0, 0, 0, 0], [1, 1, 1, 0], weight) == pytest.approx(0.5)
    assert mean_brier([0, 0, 0, 0], [1, 1, 1, 0]) == pytest.approx(0.75)


def test_log_score_of_an_impossible_outcome_needs_a_floor():
    assert log_score([0.0], [1])[0] == -np.inf
    assert metaculus_baseline([1.0], [0])[0] == -np.inf
    assert log_score([0.0], [1], floor=0.001)[0] == pytest.approx(np.log(0.001))
    with pytest.raises(ValueError, match="floor"):
        metaculus_peer([[0.0], [0.5]], [1])
    with pytest.raises(ValueError, match="floor"):
        log_score([0.5], [1], floor=0.6)


@settings(max_examples=60)
@given(truth=inner, stated=inner)
def test_scores_are_proper(truth, stated):
    def expected(score, p):
        return float(truth * score([p], [1])[0] + (1 - truth) * score([p], [0])[0])

    assert expected(brier, truth) <= expected(brier, stated) + 1e-12
    for score in (log_score, metaculus_baseline):
        assert expected(score, truth) >= expected(score, stated) - 1e-9


@settings(max_examples=60)
@given(rows=rows, seed=st.integers(0, 2**32 - 1))
def test_scores_are_bounded_symmetric_and_independent_of_order(rows, seed):
    p, outcome = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    order = np.random.default_rng(seed).permutation(len(p))
    assert mean_brier(p[order], outcome[order]) == pytest.approx(mean_brier(p, outcome))
    assert mean_brier(1 - p, ~outcome) == pytest.approx(mean_brier(p, outcome))
    assert 0 <= brier_index(mean_brier(p, outcome)) <= 100
    assert ((brier(p, outcome) >= 0) & (brier(p, outcome) <= 1)).all()
    assert (log_score(p, outcome) <= 0).all()


@settings(max_examples=40)
@given(low=inner, high=inner)
def test_more_probability_on_what_happened_is_never_worse(low, high):
    low, high = sorted([low, high])
    assert brier([high], [1])[0] <= brier([low], [1])[0]
    for score in (log_score, metaculus_baseline):
        assert score([high], [1])[0] >= score([low], [1])[0]


def test_baseline_of_two_options_is_the_binary_baseline():
    p = np.array([0.2, 0.5, 0.9])
    two = metaculus_baseline_options(np.column_stack([p, 1 - p]), [0, 0, 0])
    assert two.tolist() == pytest.approx(metaculus_baseline(p, [1, 1, 1]).tolist())


def test_baseline_of_options_matches_a_hand_computation():
    p = [[0.5, 0.25, 0.25, np.nan], [0.1, 0.2, 0.3, 0.4]]
    score = metaculus_baseline_options(p, [0, 3])
    assert score.tolist() == pytest.approx([100 * np.log(1.5) / np.log(3), 100 * np.log(1.6) / np.log(4)])


@pytest.mark.parametrize(
    ("p", "happened", "message"),
    [
        ([[0.5, 0.5, np.nan]], [2], "absent"),
        ([[0.5, 0.5]], [2], "is not a column"),
        ([[0.5, 0.5]], [0.5], "is not a column"),
        ([[0.5, 0.5]], [0, 1], "expected"),
        ([[1.0, np.nan]], [0], "below 2"),
    ],
)
def test_invalid_options_raise(p, happened, message):
    with pytest.raises(ValueError, match=message):
        metaculus_baseline_options(p, happened)


def test_peer_score_compares_with_the_others():
    p = np.array([[0.8, 0.3], [0.5, np.nan], [0.2, 0.6]])
    score = metaculus_peer(p, [1, 0])
    others = (np.log(0.5) + np.log(0.2)) / 2
    assert score[0, 0] == pytest.approx(100 * (np.log(0.8) - others))
    assert score[0, 1] == pytest.approx(100 * (np.log(0.7) - np.log(0.4)))
    assert np.isnan(score[1, 1])
    assert np.nansum(score, axis=0) == pytest.approx([0, 0])


def test_a_single_forecaster_has_peer_score_zero():
    assert metaculus_peer([[0.9, 0.9], [np.nan, 0.9]], [1, 1]).tolist()[0] == [0, 0]


def test_peer_matrix_must_fit_its_questions():
    with pytest.raises(ValueError, match="2 questions"):
        metaculus_peer([[0.5]], [1, 0])


def test_agrees_with_scikit_learn_and_scoringrules():
    metrics = pytest.importorskip("sklearn.metrics")
    rules = pytest.importorskip("scoringrules")
    rng = np.random.default_rng(3)
    p, weight = rng.uniform(0.01, 0.99, 200), rng.uniform(0, 2, 200)
    outcome = (rng.random(200) < p).astype(int)
    assert mean_brier(p, outcome, weight) == pytest.approx(metrics.brier_score_loss(outcome, p, sample_weight=weight))
    mean_log = np.average(log_score(p, outcome), weights=weight)
    assert -mean_log == pytest.approx(metrics.log_loss(outcome, p, sample_weight=weight))
    assert brier(p, outcome) == pytest.approx(rules.brier_score(outcome, p))
