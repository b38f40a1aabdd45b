"""Variance components: recovered from simulated scores, and exact on a small table."""

from dataclasses import replace

import numpy as np
import pytest
from tests.studies.made_trials import made

from foretell.studies.variance import TrialScores, trial_scores, variance_components


def balanced(y: np.ndarray) -> TrialScores:
    """Return scores from an array of methods × questions × trials."""
    methods, questions, _ = y.shape
    method, question, _ = np.indices(y.shape)
    return TrialScores(
        y=y.ravel(),
        method=method.ravel(),
        question=question.ravel(),
        methods=tuple(f"m{i}" for i in range(methods)),
        cluster=np.array([f"q{i}" for i in range(questions)]),
    )


def test_variance_components_match_hand_computation():
    """Cell means [[1, 3], [2, 8]], each from two trials ±1: effects ±1.5, ±2, interaction ±1."""
    means = np.array([[1.0, 3.0], [2.0, 8.0]])
    components = variance_components(balanced(means[:, :, None] + np.array([-1.0, 1.0])))
    # MS(trial) = 8/4, MS(both) = 8·1²/1 = 8, MS(method) = 8·1.5²/1 = 18, MS(question) = 8·2²/1 = 32; 2 trials a cell.
    assert components.trial == pytest.approx(2)
    assert components.both == pytest.approx((8 - 2) / 2)
    assert components.method == pytest.approx((18 - 8) / 4)
    assert components.question == pytest.approx((32 - 8) / 4)
    assert components.total == pytest.approx(2 + 3 + 2.5 + 6)
    assert components.share("trial") == pytest.approx(2 / 13.5)


def test_variance_components_are_recovered_from_simulated_scores():
    rng = np.random.default_rng(0)
    shape = (60, 300, 4)
    parts = {"method": 0.5, "question": 2.0, "both": 1.0, "trial": 1.5}
    y = rng.normal(0, parts["method"], (shape[0], 1, 1)) + rng.normal(0, parts["question"], (1, shape[1], 1))
    y = y + rng.normal(0, parts["both"], (shape[0], shape[1], 1)) + rng.normal(0, parts["trial"], shape)
    components = variance_components(balanced(y))
    for name, sigma in parts.items():
        assert getattr(components, name) ** 0.5 == pytest.approx(sigma, rel=0.2), name


def test_single_trials_give_no_variance_between_trials():
    rng = np.random.default_rng(0)
    components = variance_components(balanced(rng.normal(size=(3, 20, 1))))
    assert components.trial == 0
    assert np.isfinite(components.total)


def test_trial_scores_skip_unanswered_trials():
    examples = made(rounds=2, size=6, trials=2)
    trials = examples.rows.trials.copy()
    trials[0, 0] = np.nan
    gappy = replace(examples, rows=examples.rows.with_trials(trials))
    all_scores = trial_scores({"x": examples, "y": gappy}, first_only=False)
    assert len(all_scores) == 2 * 2 * len(examples) - 1
    assert all_scores.cells()[1, 0] == pytest.approx(1 - abs(trials[1, 0] - examples.outcome[0]))
    first = trial_scores({"x": examples, "y": examples}, first_only=True)
    askings = len(np.unique(examples.rows.asking))
    assert first.cells().shape == (2, askings)
    assert len(first) == 2 * 2 * askings


def test_the_first_date_is_the_one_that_resolved_first():
    examples = made(rounds=1, size=2, trials=1)
    scores = trial_scores({"x": examples}, first_only=True)
    dataset = np.flatnonzero(examples.rows.kind == "dataset")
    early = dataset[np.argmin(examples.known_on[dataset])]
    market = np.flatnonzero(examples.rows.kind == "market")[0]
    expected = 1 - np.abs(examples.rows.trials[0] - examples.outcome)[[market, early]]
    assert sorted(scores.y) == pytest.approx(sorted(expected))
