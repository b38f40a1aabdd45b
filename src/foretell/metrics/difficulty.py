"""Scores that do not depend on which questions were asked: Brier minus the difficulty of the question.

The difficulty of a dataset question is its fixed effect over a chosen set of methods; that of a market question is the
error of its price. A constant puts the forecaster who always says 0.5 back at 0.25 (Bastani et al. 2025; Kucinskas et
al. 2026; BLF 2026, A.2).
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, as_vector, as_weights, same_shape
from foretell.metrics.effects import two_way_effects
from foretell.metrics.scores import brier, brier_index

ALWAYS_HALF_BRIER = 0.25
"""Brier score of the forecaster who always says 0.5."""


@frozen
class QuestionDifficulty:
    """Difficulty γ of each question, by sorted label; known up to one constant, which `difficulty_anchor` fixes."""

    questions: npt.NDArray[Any]
    gamma: Floats
    warning: str | None = None

    def of(self, question: npt.ArrayLike) -> Floats:
        """Return γ of each label given; NaN for a question without a fitted effect."""
        labels = np.asarray(question)
        place = np.minimum(np.searchsorted(self.questions, labels), len(self.questions) - 1)
        return np.where(self.questions[place] == labels, self.gamma[place], np.nan)


def question_difficulty(
    brier_score: npt.ArrayLike,
    method: npt.ArrayLike,
    question: npt.ArrayLike,
    *,
    fitted_on: Collection[object] | None = None,
) -> QuestionDifficulty:
    """Question effects γ of brier = μ + α(method) + γ(question), as ForecastBench uses for dataset questions.

    `fitted_on` names the methods that define difficulty (ForecastBench: its own model runs, no dummies). The score of
    any method may then be adjusted, as long as its questions occur among theirs.
    """
    scores, methods, questions = as_vector(brier_score, "brier_score"), np.asarray(method), np.asarray(question)
    same_shape(brier_score=scores, method=methods, question=questions)
    if fitted_on is not None:
        fitted = np.isin(methods, np.array(list(fitted_on)))
        if not fitted.any():
            raise ValueError("fitted_on names no method that has a score")
        scores, methods, questions = scores[fitted], methods[fitted], questions[fitted]
    fit = two_way_effects(scores, methods, questions)
    return QuestionDifficulty(questions=fit.questions, gamma=fit.question, warning=fit.warning)


def market_difficulty(price: npt.ArrayLike, outcome: npt.ArrayLike) -> Floats:
    """γ = (price − outcome)² of a market question: the Brier score of the price on the due date."""
    return brier(price, outcome)


def target_difficulty(
    p: npt.ArrayLike,
    method: npt.ArrayLike,
    target: Ints,
    *,
    price: Floats,
    outcome: Floats,
    dataset: Bools | None = None,
) -> Floats:
    """Difficulty of every target on the scale of Brier scores: the error of its price, or else its fitted effect.

    A price counts unless the target is known to be a dataset question, whose price is not that of a market. NaN if
    there is neither a price nor a forecast.

    Args:
        p: The forecasts that define difficulty.
        method: Who made each of them.
        target: The place of its target in `price` and `outcome`.
        price: The price of every target; NaN if it has none.
        outcome: The outcome of every target.
        dataset: Which targets are dataset questions, if that is known.
    """
    difficulty = np.full(len(outcome), np.nan)
    if len(target):
        scores = brier(p, outcome[target])
        effect = question_difficulty(scores, method, target).of(np.arange(len(outcome)))
        difficulty = effect - np.nanmean(effect) + float(scores.mean())
    market = np.isfinite(price) & ~(np.zeros(len(price), bool) if dataset is None else dataset)
    if market.any():
        difficulty[market] = market_difficulty(price[market], outcome[market])
    return difficulty


def difficulty_anchor(gamma: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Constant C = 0.25 − mean(0.25 − γ) over the reference questions, which gives always-0.5 the score 0.25.

    The mean is over *all* questions of the board, one γ each, not only over those that a method answered.
    """
    difficulty = as_vector(gamma, "gamma")
    gap = np.average(ALWAYS_HALF_BRIER - difficulty, weights=as_weights(weight, len(difficulty)))
    return ALWAYS_HALF_BRIER - float(gap)


def adjusted_brier(brier_score: npt.ArrayLike, gamma: npt.ArrayLike, constant: float) -> Floats:
    """Adjusted Brier score b − γ + C of each forecast; negative if it beats the difficulty by far."""
    scores, difficulty = as_vector(brier_score, "brier_score"), as_vector(gamma, "gamma")
    same_shape(brier_score=scores, gamma=difficulty)
    return scores - difficulty + constant


def adjusted_brier_index(
    brier_score: npt.ArrayLike, gamma: npt.ArrayLike, constant: float, weight: npt.ArrayLike | None = None
) -> float:
    """Adjusted Brier index 100·(1 − √max(0, mean of b − γ + C))."""
    adjusted = adjusted_brier(brier_score, gamma, constant)
    return brier_index(float(np.average(adjusted, weights=as_weights(weight, len(adjusted)))))
