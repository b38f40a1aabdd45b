"""Variance components: recovered from made-up scores, and exact on a table small enough for pencil and paper."""

from dataclasses import replace

import numpy as np
import pytest
from tests.studies.made_trials import made

from foretell.studies.variance import TrialScores, trial_scores, variance_components


def balanced(y: np.ndarray) -> TrialScores:
    """Methods × questions × trials."""
    methods, questions, _ = y.shape
    method, question, _ = np.indices(y.shape)
    return TrialScores(
        y=y.ravel(),
        method=method.ravel(),
        question=question.ravel(),
        methods=tuple(f"m{i}" for i in range(methods)),
        cluster=np.array([f"q{i}" for i in range(questions)]),
    )


def test_by_hand():
    """Cell means [[1, 3], [2, 8]], each from two trials ±1: effects ±1.5, ±2, interaction ±1."""
    means = np.array([[1.0, 3.0], [2.0, 8.0]])
    found = variance_components(balanced(means[:, :, None] + np.array([-1.0, 1.0])))
    # MS(trial) = 8/4, MS(both) = 8·1²/1 = 8, MS(method) = 8·1.5²/1 = 18, MS(question) = 8·2²/1 = 32; 2 trials a cell.
    assert found.trial == pytest.approx(2)
    assert found.both == pytest.approx((8 - 2) / 2)
    assert found.method == pytest.approx((18 - 8) / 4)
    assert found.question == pytest.approx((32 - 8) / 4)
    assert found.total == pytest.approx(2 + 3 + 2.5 + 6)
    assert found.share("trial") == pytest.approx(2 / 13.5)


def test_recovered_from_many():
    rng = np.random.default_rng(0)
    shape = (60, 300, 4)
    parts = {"method": 0.5, "question": 2.0, "both": 1.0, "trial": 1.5}
    y = rng.normal(0, parts["method"], (shape[0], 1, 1)) + rng.normal(0, parts["question"], (1, shape[1], 1))
    y = y + rng.normal(0, parts["both"], (shape[0], shape[1], 1)) + rng.normal(0, parts["trial"], shape)
    found = variance_components(balanced(y))
    for name, sigma in parts.items():
        assert getattr(found, name) ** 0.5 == pytest.approx(sigma, rel=0.2), name


def test_one_trial_each_gives_no_chance_between_trials():
    rng = np.random.default_rng(0)
    found = variance_components(balanced(rng.normal(size=(3, 20, 1))))
    assert found.trial == 0
    assert np.isfinite(found.total)


def test_scores_of_trials():
    examples = made(rounds=2, size=6, trials=2)
    trials = examples.rows.trials.copy()
    trials[0, 0] = np.nan
    gappy = replace(examples, rows=examples.rows.with_trials(trials))
    every = trial_scores({"x": examples, "y": gappy}, first_only=False)
    assert len(every) == 2 * 2 * len(examples) - 1
    assert every.cells()[1, 0] == pytest.approx(1 - abs(trials[1, 0] - examples.outcome[0]))
    first = trial_scores({"x": examples, "y": examples}, first_only=True)
    askings = len(np.unique(examples.rows.asking))
    assert first.cells().shape == (2, askings)
    assert len(first) == 2 * 2 * askings


def test_the_first_date_is_the_one_that_resolved_first():
    examples = made(rounds=1, size=2, trials=1)
    found = trial_scores({"x": examples}, first_only=True)
    dataset = np.flatnonzero(examples.rows.kind == "dataset")
    early = dataset[np.argmin(examples.known_on[dataset])]
    market = np.flatnonzero(examples.rows.kind == "market")[0]
    expected = 1 - np.abs(examples.rows.trials[0] - examples.outcome)[[market, early]]
    assert sorted(found.y) == pytest.approx(sorted(expected))
