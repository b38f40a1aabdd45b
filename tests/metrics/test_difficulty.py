import numpy as np
import pytest

from foretell.metrics import (
    adjusted_brier,
    adjusted_brier_index,
    difficulty_anchor,
    market_difficulty,
    question_difficulty,
)
from foretell.metrics.difficulty import target_difficulty


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
    assert fitted.of(["zz", "a", "z"]) == pytest.approx([np.nan, np.nan, 0.1], nan_ok=True)
    with pytest.raises(ValueError, match="gamma"):
        adjusted_brier([0.1, 0.1], gamma, 0.0)


def test_disconnected_methods_warn():
    fitted = question_difficulty([0.1, 0.2, 0.3, 0.4], ["a", "a", "b", "b"], [1, 2, 3, 4])
    assert "2 groups" in (fitted.warning or "")


def test_negative_adjusted_scores_give_an_index_of_100():
    assert adjusted_brier([0.0], [0.5], 0.1)[0] == pytest.approx(-0.4)
    assert adjusted_brier_index([0.0], [0.5], 0.1) == 100.0


NOTHING = np.full(4, np.nan)


def answers(scores):
    """Return the forecasts, methods and targets of a table of Brier scores, methods in rows, if all came true."""
    method, target = np.nonzero(np.isfinite(np.array(scores, float)))
    return 1 - np.sqrt(np.array(scores, float)[method, target]), method, target


def test_a_target_without_a_price_is_as_hard_as_its_fitted_effect():
    ones = np.ones(4)
    whole = answers([[0.1, 0.3, 0.5, 0.3], [0.2, 0.4, 0.6, 0.4]])
    assert target_difficulty(*whole, price=NOTHING, outcome=ones) == pytest.approx([0.15, 0.35, 0.55, 0.35])
    # The second method is 0.1 worse where both answered, and did not answer the hardest: its mean would be too low.
    part = answers([[0.1, 0.3, 0.5, np.nan], [0.2, 0.4, np.nan, np.nan]])
    difficulty = target_difficulty(*part, price=NOTHING, outcome=ones)
    assert np.diff(difficulty[:3]) == pytest.approx([0.2, 0.2])
    assert np.mean(difficulty[:3]) == pytest.approx(np.mean([0.1, 0.3, 0.5, 0.2, 0.4]))
    assert np.isnan(difficulty[3]), "nobody answered it"


def test_the_price_of_a_market_replaces_the_fitted_effect():
    table, ones = answers([[0.1, 0.3, 0.5, 0.3]]), np.ones(4)
    price = np.array([0.4, np.nan, np.nan, 0.4])
    mixed = target_difficulty(*table, price=price, outcome=ones)
    assert mixed == pytest.approx([0.36, 0.3, 0.5, 0.36])
    dataset = np.array([True, True, False, False])
    assert target_difficulty(*table, price=price, outcome=ones, dataset=dataset)[0] == pytest.approx(0.1)
    nobody = target_difficulty([], [], np.array([], int), price=price, outcome=ones)
    assert nobody == pytest.approx([0.36, np.nan, np.nan, 0.36], nan_ok=True)
