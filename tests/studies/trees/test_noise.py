"""The noise study: linear is spoilt no more than logic, by every noise, at every ratio, in every kind of world."""

from itertools import pairwise

import numpy as np
import pytest

from foretell.metrics import Resampling
from foretell.operations import study as run_study
from foretell.studies import (
    DISTURBANCES,
    LINK_KINDS,
    RATIOS,
    LinkKind,
    NoiseEffects,
    Simulation,
    StudyData,
    noise_effects,
)
from foretell.studies import SIMULATED_RULES as ALL_RULES

RULES = ("linear", "bayes-net", "logic")
CHANCE = 0.01
"""How far 4000 questions may be off where noise has spoilt everything."""


@pytest.fixture(scope="module")
def found() -> dict[LinkKind, NoiseEffects]:
    return {
        kind: noise_effects(Simulation(worlds=8, questions=4000, kinds=(kind,), seed=1), RULES) for kind in LINK_KINDS
    }


def mean(found: NoiseEffects, rule: str, noise: str, ratio: float) -> float:
    return float(np.nanmean([one.spoilt for one in found[rule, noise, ratio]]))


@pytest.mark.parametrize("kind", LINK_KINDS)
@pytest.mark.parametrize("noise", DISTURBANCES)
@pytest.mark.parametrize("ratio", RATIOS)
def test_error_grows_no_faster_under_the_linear_rule_than_under_logic(
    found: dict[LinkKind, NoiseEffects], kind: LinkKind, noise: str, ratio: float
):
    logic = mean(found[kind], "logic", noise, ratio)
    assert mean(found[kind], "linear", noise, ratio) <= logic + CHANCE
    assert mean(found[kind], "bayes-net", noise, ratio) <= logic + CHANCE


@pytest.mark.parametrize("noise", ["uncertain", "reverse"])
def test_and_clearly_less_where_there_is_something_left_to_spoil(found: dict[LinkKind, NoiseEffects], noise: str):
    for kind in LINK_KINDS:
        assert mean(found[kind], "bayes-net", noise, 0.25) < mean(found[kind], "logic", noise, 0.25) - CHANCE
    assert mean(found["logic"], "logic", "reverse", 1.0) > 0.3
    assert mean(found["logic"], "bayes-net", "reverse", 1.0) < 1e-9


def test_in_every_single_world_the_weights_of_a_bayes_net_are_spoilt_least(found: dict[LinkKind, NoiseEffects]):
    for noise in DISTURBANCES:
        for ratio in RATIOS:
            logic, linear = (
                np.array([one.spoilt for one in found["logic"][rule, noise, ratio]]) for rule in ("logic", "bayes-net")
            )
            assert np.nanmax(linear - logic) < CHANCE


def test_error_grows_with_the_noise_up_to_where_it_turns(found: dict[LinkKind, NoiseEffects]):
    for noise in ("normal", "uncertain"):
        for rule in RULES:
            curve = [mean(found["logic"], rule, noise, ratio) for ratio in RATIOS]
            assert all(a < b for a, b in pairwise(curve))
    assert mean(found["linear"], "linear", "reverse", 0.5) > 0.98


def test_the_same_seed_the_same_effects():
    scene = Simulation(worlds=2, questions=50, seed=3)
    assert noise_effects(scene, RULES) == noise_effects(scene, RULES)
    assert noise_effects(scene, RULES) != noise_effects(Simulation(worlds=2, questions=50, seed=4), RULES)


def test_the_study_shows_every_noise_rule_and_kind_of_world():
    scene = Simulation(worlds=2, questions=10)
    found = run_study("tree-noise", StudyData(tables={}, simulation=scene, resampling=Resampling(draws=100)))
    titles = [grid.title for grid in found.tables]
    assert [title for title in titles if title.startswith("Spoilt")] == [
        f"Spoilt by {noise} noise, %" for noise in DISTURBANCES
    ]
    accuracy = found.table("Accuracy at one half under reverse noise, %")
    assert len(accuracy.rows) == len(LINK_KINDS) * len(ALL_RULES)
    assert [column.label for column in accuracy.columns] == ["without", *(f"{ratio:g}" for ratio in RATIOS)]
    assert [picture.name for picture in found.charts] == list(DISTURBANCES)
    assert "of 3 kinds of noise" in found.text
