import numpy as np
import pytest

from foretell.metrics import (
    adjusted_brier,
    adjusted_brier_index,
    difficulty_anchor,
    market_difficulty,
    question_difficulty,
)


def test_always_half_has_an_adjusted_brier_score_of_a_quarter():
    gamma = np.random.default_rng(0).random(50)
    constant = difficulty_anchor(gamma)
    assert constant == pytest.approx(gamma.mean())
    assert adjusted_brier(np.full(50, 0.25), gamma, constant).mean() == pytest.approx(0.25)
    assert adjusted_brier_index(np.full(50, 0.25), gamma, constant) == pytest.approx(50)


def test_repeating_the_price_scores_the_constant():
    price, outcome = np.array([0.9, 0.3, 0.5]), np.array([1, 0, 1])
    gamma = market_difficulty(price, outcome)
    assert gamma == pytest.approx([0.01, 0.09, 0.25])
    assert adjusted_brier(gamma, gamma, difficulty_anchor(gamma)) == pytest.approx(np.full(3, 0.35 / 3))


def test_answering_only_easy_questions_gains_nothing():
    # Two equal methods, each with half of the questions, one the easy half: raw scores differ, adjusted do not.
    rng = np.random.default_rng(1)
    hardness = np.repeat([0.05, 0.3], 40)
    question = np.arange(80)
    panel = np.concatenate([hardness + rng.normal(0, 0.01, 80) for _ in range(5)])
    fitted = question_difficulty(panel, np.repeat(np.arange(5), 80), np.tile(question, 5))
    constant = difficulty_anchor(fitted.gamma)
    easy = adjusted_brier(hardness[:40], fitted.of(question[:40]), constant).mean()
    hard = adjusted_brier(hardness[40:], fitted.of(question[40:]), constant).mean()
    assert abs(hardness[:40].mean() - hardness[40:].mean()) > 0.2
    assert easy == pytest.approx(hard, abs=0.005)


def test_difficulty_is_fitted_on_the_methods_named():
    score = np.array([0.1, 0.3, 0.9, 0.1])
    method, question = np.array(["a", "a", "b", "b"]), np.array(["x", "z", "x", "z"])
    assert question_difficulty(score, method, question, fitted_on=["a"]).gamma == pytest.approx([-0.1, 0.1])
    assert question_difficulty(score, method, question, fitted_on={"b"}).gamma == pytest.approx([0.4, -0.4])
    with pytest.raises(ValueError, match="fitted_on"):
        question_difficulty(score, method, question, fitted_on=["c"])


def test_unseen_question_has_no_difficulty_and_no_adjusted_score():
    fitted = question_difficulty([0.1, 0.3], ["a", "a"], ["x", "z"])
    gamma = fitted.of(["x", "y"])
    assert np.isnan(gamma[1])
    with pytest.raises(ValueError, match="gamma"):
        adjusted_brier([0.1, 0.1], gamma, 0.0)


def test_disconnected_methods_warn():
    fitted = question_difficulty([0.1, 0.2, 0.3, 0.4], ["a", "a", "b", "b"], [1, 2, 3, 4])
    assert "2 groups" in (fitted.warning or "")


def test_negative_adjusted_scores_give_an_index_of_100():
    assert adjusted_brier([0.0], [0.5], 0.1)[0] == pytest.approx(-0.4)
    assert adjusted_brier_index([0.0], [0.5], 0.1) == 100.0
