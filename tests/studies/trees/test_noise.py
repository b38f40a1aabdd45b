"""The noise study: the linear rule loses no more than the logic rule, for every noise and ratio."""

from itertools import pairwise

import numpy as np
import pytest

from foretell.operations.studies import study as run_study
from foretell.studies.leaf_noise import DISTURBANCES, RATIOS
from foretell.studies.tree_noise import NoiseEffects, noise_effects
from foretell.studies.tree_world import WORLD_RULES, Simulation, WorldRule

CHANCE = 0.01
"""Sampling error of 4000 questions if noise has destroyed all information."""


@pytest.fixture(scope="module")
def effects() -> NoiseEffects:
    return noise_effects(Simulation(worlds=8, questions=4000, seed=1))


def mean(effects: NoiseEffects, rule: WorldRule, noise: str, ratio: float) -> float:
    return float(np.nanmean([effect.spoilt for effect in effects[rule, noise, ratio]]))


@pytest.mark.parametrize("noise", DISTURBANCES)
@pytest.mark.parametrize("ratio", RATIOS)
def test_error_grows_no_faster_under_the_linear_rule_than_under_others(effects: NoiseEffects, noise: str, ratio: float):
    for rule in ("logic", "noisy-or"):
        assert mean(effects, "linear", noise, ratio) <= mean(effects, rule, noise, ratio) + CHANCE


@pytest.mark.parametrize("noise", ["uncertain", "reverse"])
def test_linear_rule_loses_clearly_less_than_logic_at_moderate_noise(effects: NoiseEffects, noise: str):
    assert mean(effects, "linear", noise, 0.25) < mean(effects, "logic", noise, 0.25) - CHANCE
    assert mean(effects, "logic", "reverse", 1.0) > 0.3
    assert mean(effects, "linear", "reverse", 1.0) < 1e-9


def test_error_grows_and_accuracy_falls_with_the_noise(effects: NoiseEffects):
    for rule in WORLD_RULES:
        for noise in ("normal", "uncertain"):
            assert all(a < b for a, b in pairwise(mean(effects, rule, noise, ratio) for ratio in RATIOS))
        accuracy = [
            np.mean([effect.accuracy for effect in effects[rule, *step]]) for step in (("", 0.0), ("reverse", 0.5))
        ]
        assert accuracy[0] > accuracy[1], rule
    assert mean(effects, "linear", "reverse", 0.5) > 0.98


def test_same_seed_gives_the_same_effects():
    small = Simulation(worlds=2, questions=50, seed=3)
    assert noise_effects(small) == noise_effects(small)
    assert noise_effects(small) != noise_effects(Simulation(worlds=2, questions=50, seed=4))


def test_the_study_shows_every_noise_and_rule():
    study = run_study("tree-noise", worlds=2, bootstrap="draws=100")
    titles = [grid.title for grid in study.tables]
    assert [title for title in titles if title.startswith("Spoilt")] == [
        f"Spoilt by {noise} noise, %" for noise in DISTURBANCES
    ]
    accuracy = study.table("Accuracy under reverse noise, %")
    assert [row.name for row in accuracy.rows] == list(WORLD_RULES)
    assert [column.label for column in accuracy.columns] == ["without", *(f"{ratio:g}" for ratio in RATIOS)]
    assert [picture.name for picture in study.charts] == [
        *DISTURBANCES,
        *(f"accuracy-{noise}" for noise in DISTURBANCES),
    ]
    assert "of 3 kinds of noise" in study.text
