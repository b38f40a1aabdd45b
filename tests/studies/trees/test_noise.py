"""The noise study: linear is spoilt no more than logic, by every noise and at every ratio."""

from itertools import pairwise

import numpy as np
import pytest

from foretell.operations import study as run_study
from foretell.studies import DISTURBANCES, RATIOS, WORLD_RULES, NoiseEffects, Simulation, WorldRule, noise_effects

CHANCE = 0.01
"""How far 4000 questions may be off where noise has spoilt everything."""


@pytest.fixture(scope="module")
def found() -> NoiseEffects:
    return noise_effects(Simulation(worlds=8, questions=4000, seed=1))


def mean(found: NoiseEffects, rule: WorldRule, noise: str, ratio: float) -> float:
    return float(np.nanmean([one.spoilt for one in found[rule, noise, ratio]]))


@pytest.mark.parametrize("noise", DISTURBANCES)
@pytest.mark.parametrize("ratio", RATIOS)
def test_error_grows_no_faster_under_the_linear_rule_than_under_others(found: NoiseEffects, noise: str, ratio: float):
    for rule in ("logic", "noisy-or"):
        assert mean(found, "linear", noise, ratio) <= mean(found, rule, noise, ratio) + CHANCE


@pytest.mark.parametrize("noise", ["uncertain", "reverse"])
def test_and_clearly_less_where_there_is_something_left_to_spoil(found: NoiseEffects, noise: str):
    assert mean(found, "linear", noise, 0.25) < mean(found, "logic", noise, 0.25) - CHANCE
    assert mean(found, "logic", "reverse", 1.0) > 0.3
    assert mean(found, "linear", "reverse", 1.0) < 1e-9


def test_error_grows_and_accuracy_falls_with_the_noise(found: NoiseEffects):
    for rule in WORLD_RULES:
        for noise in ("normal", "uncertain"):
            assert all(a < b for a, b in pairwise(mean(found, rule, noise, ratio) for ratio in RATIOS))
        accuracy = [np.mean([one.accuracy for one in found[rule, *step]]) for step in (("", 0.0), ("reverse", 0.5))]
        assert accuracy[0] > accuracy[1], rule
    assert mean(found, "linear", "reverse", 0.5) > 0.98


def test_the_same_seed_the_same_effects():
    small = Simulation(worlds=2, questions=50, seed=3)
    assert noise_effects(small) == noise_effects(small)
    assert noise_effects(small) != noise_effects(Simulation(worlds=2, questions=50, seed=4))


def test_the_study_shows_every_noise_and_rule():
    found = run_study("tree-noise", worlds=2, bootstrap="draws=100")
    titles = [grid.title for grid in found.tables]
    assert [title for title in titles if title.startswith("Spoilt")] == [
        f"Spoilt by {noise} noise, %" for noise in DISTURBANCES
    ]
    accuracy = found.table("Accuracy under reverse noise, %")
    assert [row.name for row in accuracy.rows] == list(WORLD_RULES)
    assert [column.label for column in accuracy.columns] == ["without", *(f"{ratio:g}" for ratio in RATIOS)]
    assert [picture.name for picture in found.charts] == list(DISTURBANCES)
    assert "of 3 kinds of noise" in found.text
