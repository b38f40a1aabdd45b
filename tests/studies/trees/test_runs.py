"""Repeated runs by hand: hard and soft score, confidence, variances, the histogram, and the stability study."""

import numpy as np
import pytest
from tests.studies.made_trials import made

from foretell.forecasters.combine.rows import Examples
from foretell.metrics import Floats, Resampling
from foretell.operations.studies import study as run_study
from foretell.studies.inputs import StudyData
from foretell.studies.scores import mean_of_runs
from foretell.studies.stability import RunStability, runs_histogram, variance_of_runs

QUICK = Resampling(draws=100)


def table(trials: Floats, outcome: list[float]) -> Examples:
    """Return the first targets of synthetic trials, with these runs and outcomes."""
    few = made(rounds=1, size=10).take(np.arange(15) < len(outcome))
    return Examples(
        rows=few.rows.with_trials(trials), outcome=np.array(outcome), known_on=few.known_on, weight=few.weight
    )


def test_run_stability_matches_hand_computation():
    runs = np.array([[0.8, 0.6], [0.4, 0.6]])
    stability = RunStability.of(table(runs, [1.0, 0.0]))
    assert stability.accuracy == pytest.approx([50, 0])
    assert stability.soft == pytest.approx([60, 40])
    assert stability.brier == pytest.approx([100 * (0.04 + 0.36) / 2, 36])
    assert stability.confidence == pytest.approx([70, 60])
    assert stability.variance == pytest.approx([50, 0]), "hard scores 1 and 0: variance 1/2 with n − 1"
    assert stability.spread == pytest.approx([8, 0]), "0.8 and 0.4: variance 0.08"


def test_one_half_counts_half_and_failed_runs_are_left_out():
    stability = RunStability.of(table(np.array([[0.5, np.nan], [0.5, 0.9]]), [1.0, 1.0]))
    assert stability.accuracy == pytest.approx([50, 100])
    assert np.isnan(stability.variance[1])
    assert stability.undecided == pytest.approx([100, 0])
    assert np.isnan(mean_of_runs(np.full((2, 1), np.nan))).all()
    assert variance_of_runs(np.array([[1.0], [3.0], [np.nan]])) == pytest.approx([2.0])


def test_the_histogram_counts_every_run():
    figure = runs_histogram(table(np.array([[0.88, 0.18], [0.88, np.nan]]), [1.0, 1.0]), "method")
    assert "Distance of 3 runs of method" in figure.svg
    assert "10–15 %: 2 runs (66.7 %)" in figure.svg
    assert "80–85 %: 1 runs (33.3 %)" in figure.svg


def test_stability_of_several_runs_and_of_a_single_run():
    tables = {"calm": made(noise=0.1), "nervous": made(noise=1.5, method_seed=4)}
    study = run_study("trials", StudyData(tables=tables, resampling=QUICK), section="stability")
    assert [grid.title for grid in study.tables] == ["Stability"]
    assert "least between runs for calm" in study.text
    assert "most for nervous" in study.text
    once = run_study("trials", StudyData(tables={"x": made(trials=1)}, resampling=QUICK), section="stability")
    assert once.text.startswith("There is only one run")
