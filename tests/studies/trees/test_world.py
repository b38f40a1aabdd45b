"""Simulated worlds: valid trees, outcomes that follow their probabilities, and reproducible seeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.arithmetic.scaling import bayes_net_faults
from foretell.forecasters.tree.links import LinearLink
from foretell.forecasters.tree.proposition import post_order
from foretell.forecasters.tree.validation import tree_problems
from foretell.studies.tree_world import (
    WORLD_RULES,
    Simulation,
    WorldRule,
    draw_outcomes,
    draw_questions,
    draw_shape,
    draw_world,
)


@settings(max_examples=60)
@given(leaves=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_every_shape_is_one_tree_with_enough_leaves(leaves: int, seed: int):
    shape = draw_shape(leaves, np.random.default_rng(seed))
    parents = {claim: below for claim, below in shape.items() if below}
    assert leaves <= len(shape) - len(parents) < leaves + 4
    assert all(2 <= len(below) <= 4 for below in parents.values())
    used = [child for below in parents.values() for child in below]
    assert sorted(["P0", *used]) == sorted(shape), "every claim but the root has one parent"


@settings(max_examples=40)
@given(rule=st.sampled_from(WORLD_RULES), seed=st.integers(0, 10**6))
def test_every_world_is_a_valid_tree(rule: WorldRule, seed: int):
    world = draw_world(rule, 10, np.random.default_rng(seed))
    assert not tree_problems(world.tree)
    links = [node.link for node in world.tree.nodes.values() if node.children]
    assert not any(bayes_net_faults(link) for link in links if isinstance(link, LinearLink))
    leaf = np.full((1, len(world.leaves)), 0.5)
    assert world.chances(leaf)["P0"][0] == pytest.approx(evaluate(world.tree).p, abs=1e-12)


@pytest.mark.parametrize("rule", WORLD_RULES)
def test_claims_come_true_as_often_as_their_probabilities(rule: WorldRule):
    rng = np.random.default_rng(5)
    world = draw_world(rule, 8, rng)
    leaf = draw_questions(world, 1, rng).leaf
    many = 60_000
    outcomes = draw_outcomes(world, np.repeat(leaf, many, axis=0), rng)
    for claim in post_order(world.tree):
        p = float(world.chances(leaf)[claim][0])
        assert abs(outcomes[claim].mean() - p) < 5 * (p * (1 - p) / many) ** 0.5 + 1e-9, claim


def test_same_seed_gives_the_same_world_and_rules_share_leaves():
    small = Simulation(worlds=2, questions=20, seed=3)
    (first, questions), (second, again) = small.world("logic", 1), small.world("logic", 1)
    assert first.tree == second.tree
    assert (questions.outcome == again.outcome).all()
    assert first.tree != small.world("logic", 0)[0].tree
    assert (small.world("linear", 1)[1].leaf == questions.leaf).all()
