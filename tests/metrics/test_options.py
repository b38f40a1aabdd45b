import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import consensus_matrix, hard_score_variance, right_side
from foretell.metrics.decisions import choice_accuracy, confidence, decide_tasks, hard_score, soft_score

# Two tasks of different sizes, rows mixed: "stock" prefers its worst option, "vote" its best.
P = [0.7, 0.2, 0.3, 0.5, 0.1]
VALUE = [0.8, 0.0, 1.2, 3.0, 2.0]
TASK = ["stock", "vote", "stock", "vote", "vote"]


def test_decision_scores_match_a_hand_computation():
    assert choice_accuracy(P, VALUE, TASK).tolist() == [0, 1]
    assert hard_score(P, VALUE, TASK).tolist() == [0, 1]
    assert soft_score(P, VALUE, TASK).tolist() == pytest.approx([0.3, (0.5 * 3 + 0.1 * 2) / 0.8 / 3])
    assert confidence(P, TASK).tolist() == [0.7, 0.5]


def test_options_that_tie_share_the_choice():
    p, value, task = [0.4, 0.4, 0.2], [1.0, 3.0, 0.0], [0, 0, 0]
    assert choice_accuracy(p, value, task).tolist() == [0.5]
    assert hard_score(p, value, task).tolist() == pytest.approx([2 / 3])


def test_equal_probabilities_decide_like_chance():
    value, task = [1.0, 3.0, 0.0, 2.0, 5.0], [0, 0, 0, 1, 1]
    scores = decide_tasks([0.2, 0.2, 0.2, 0.5, 0.5], value, task)
    assert scores.right.tolist() == pytest.approx([1 / 3, 1 / 2])
    assert scores.hard.tolist() == pytest.approx([4 / 9, 1 / 2])
    assert scores.soft.tolist() == pytest.approx(scores.hard.tolist())


def test_a_yes_no_claim_is_a_task_with_two_options():
    p, outcome = np.array([0.8, 0.5, 0.1, 0.6]), np.array([1.0, 0.0, 1.0, 0.0])
    options = np.column_stack([p, 1 - p]).ravel()
    value = np.column_stack([outcome, 1 - outcome]).ravel()
    accuracy = choice_accuracy(options, value, np.repeat(np.arange(4), 2))
    assert right_side(p, outcome).tolist() == accuracy.tolist() == [1.0, 0.5, 0.0, 0.0]


def test_a_fractional_outcome_gives_its_share_to_the_chosen_side():
    assert right_side([0.2, 0.8, 0.5, np.nan], [0.37] * 4)[:3].tolist() == pytest.approx([0.63, 0.37, 0.5])
    assert np.isnan(right_side([np.nan], [0.37]))[0]


def test_equally_valuable_best_options_are_both_right():
    assert choice_accuracy([0.2, 0.8, 0.0], [2.0, 2.0, 1.0], ["t"] * 3).tolist() == [1]


tasks = st.lists(st.tuples(st.integers(0, 4), st.floats(0.01, 1), st.integers(-50, 50)), min_size=1, max_size=25)


@settings(max_examples=60)
@given(rows=tasks, scale=st.floats(0.1, 10), shift=st.floats(-5, 5), seed=st.integers(0, 99))
def test_scores_are_bounded_and_do_not_depend_on_order_or_unit_of_value(rows, scale, shift, seed):
    extra = [(t, p, v) for t in range(5) for p, v in ((0.5, -51.0), (0.25, 51.0))]
    task, p, value = (np.array(column) for column in zip(*rows, *extra, strict=True))
    order = np.random.default_rng(seed).permutation(len(p))
    for score in (hard_score, soft_score):
        plain = score(p, value, task)
        assert ((plain >= -1e-12) & (plain <= 1 + 1e-12)).all()
        assert score(p[order], value[order], task[order]) == pytest.approx(plain)
        assert score(p, scale * value + shift, task) == pytest.approx(plain)
    assert soft_score(p * 0.5, value, task) == pytest.approx(soft_score(p, value, task))
    assert ((choice_accuracy(p, value, task) == 1) == (hard_score(p, value, task) == 1)).all()


def test_variance_between_runs_matches_a_hand_computation():
    score, task = [0.0, 1.0, 0.5, 1.0, 1.0, 0.3], ["a", "a", "a", "b", "b", "c"]
    assert hard_score_variance(score, task) == pytest.approx((0.25 + 0.0) / 2)


def test_consensus_matches_a_hand_computation():
    matrix = consensus_matrix([[1, 0, 1, np.nan], [1, 1, 1, 1], [np.nan, np.nan, np.nan, 0]])
    assert matrix[0, 1] == pytest.approx(2 / 3)
    assert np.diag(matrix).tolist() == [1, 1, 1]
    assert np.isnan(matrix[0, 2])
    assert matrix[1, 2] == 0


@settings(max_examples=30)
@given(seed=st.integers(0, 999), methods=st.integers(1, 5), tasks=st.integers(1, 12))
def test_consensus_is_symmetric_within_zero_and_one(seed, methods, tasks):
    matrix = consensus_matrix(np.random.default_rng(seed).integers(0, 3, (methods, tasks)))
    assert (matrix == matrix.T).all()
    assert ((matrix >= 0) & (matrix <= 1)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hard_score([0.5, 0.5], [1, 1], ["t", "t"]), "nothing to choose"),
        (lambda: soft_score([0, 0], [1, 2], ["t", "t"]), "no option possible"),
        (lambda: choice_accuracy([0.5], [1, 2], ["t"]), "shapes differ"),
        (lambda: choice_accuracy([0.5, 0.5], [1, 2], ["t"]), "shapes differ"),
        (lambda: choice_accuracy([0.5, 0.5], [1, np.inf], ["t", "t"]), r"value\[1\] = inf"),
        (lambda: hard_score_variance([0.5], ["t"]), "two runs"),
        (lambda: consensus_matrix([1, 0]), "matrix"),
    ],
)
def test_invalid_input_raises_an_error_that_names_it(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_missing_outcome_raises():
    with pytest.raises(ValueError, match="missing"):
        hard_score([0.5, 0.5], [1, np.nan], [0, 0])


def test_scoring_nothing_raises():
    for call in (lambda: hard_score([], [], []), lambda: confidence([], [])):
        with pytest.raises(ValueError, match="nothing to score"):
            call()
