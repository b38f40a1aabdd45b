"""Made-up worlds: sound trees, outcomes that follow their chances, the same for the same seed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.tree import LinearLink, bayes_net_faults, evaluate, post_order, tree_problems
from foretell.studies import (
    LINK_KINDS,
    LinkKind,
    TreeWorldSettings,
    draw_outcomes,
    draw_questions,
    draw_shape,
    draw_world,
)


@settings(deadline=None, max_examples=60)
@given(
    leaves=st.integers(1, 60),
    least=st.integers(2, 3),
    more=st.integers(0, 3),
    shared=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_every_shape_has_its_leaves_and_hangs_together(leaves: int, least: int, more: int, shared: float, seed: int):
    most = least + more
    shape = draw_shape(leaves, np.random.default_rng(seed), children=(least, most), shared=shared)
    parents = {claim: below for claim, below in shape.items() if below}
    assert len(shape) - len(parents) >= leaves
    assert len(shape) - len(parents) < leaves + most
    assert all(least <= len(below) <= most and len(set(below)) == len(below) for below in parents.values())
    reached, ahead = set(), ["P0"]
    while ahead:
        claim = ahead.pop()
        reached.add(claim)
        ahead += shape[claim]
    assert reached == set(shape)
    used = [child for below in parents.values() for child in below]
    twice = {child for child in used if used.count(child) > 1}
    assert all(not shape[child] for child in twice), "only leaves are shared"
    if not shared:
        assert not twice


@settings(deadline=None, max_examples=40)
@given(kind=st.sampled_from(LINK_KINDS), shared=st.sampled_from([0.0, 0.5]), seed=st.integers(0, 10**6))
def test_every_world_is_a_sound_tree(kind: LinkKind, shared: float, seed: int):
    world = draw_world(TreeWorldSettings(kind=kind, shared=shared), np.random.default_rng(seed))
    assert not tree_problems(world.tree)
    links = [node.link for node in world.tree.nodes.values() if node.children]
    if kind == "linear":
        assert not any(bayes_net_faults(link) for link in links if isinstance(link, LinearLink))
    leaf = np.full((1, len(world.leaves)), world.settings.level)
    assert world.chances(leaf)["P0"][0] == pytest.approx(evaluate(world.tree).p, abs=1e-12)


@pytest.mark.parametrize("kind", LINK_KINDS)
@pytest.mark.parametrize("shared", [0.0, 0.6])
def test_claims_come_true_as_often_as_their_chances_say(kind: LinkKind, shared: float):
    rng = np.random.default_rng(5)
    world = draw_world(TreeWorldSettings(kind=kind, shared=shared, leaves=8), rng)
    one = draw_questions(world, 1, rng)
    many = 60_000
    so = draw_outcomes(world, np.repeat(one.leaf, many, axis=0), rng)
    for claim in post_order(world.tree):
        p = float(one.chances[claim][0])
        assert abs(so[claim].mean() - p) < 5 * (p * (1 - p) / many) ** 0.5 + 1e-9, claim


def test_the_same_seed_is_the_same_world_with_the_same_questions():
    first, second, other = (
        (draw_world(TreeWorldSettings(), rng), draw_questions(draw_world(TreeWorldSettings(), rng), 20, rng))
        for rng in map(np.random.default_rng, (3, 3, 4))
    )
    assert first[0].tree == second[0].tree
    assert (first[1].leaf == second[1].leaf).all()
    assert (first[1].outcome == second[1].outcome).all()
    assert first[0].tree != other[0].tree


def test_leaves_have_the_chances_asked_for():
    rng = np.random.default_rng(1)
    world = draw_world(TreeWorldSettings(level=0.7, size=4.0), rng)
    leaf = draw_questions(world, 4000, rng).leaf
    assert leaf.mean() == pytest.approx(0.7, abs=0.01)
    assert leaf.var() == pytest.approx(0.7 * 0.3 / 5, abs=0.003)


@pytest.mark.parametrize("wrong", [{"level": 0.0}, {"level": 1.0}, {"size": 0.0}])
def test_worlds_that_cannot_be(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match="no chances"):
        TreeWorldSettings(**wrong)
    with pytest.raises(ValueError, match="no tree"):
        draw_shape(0, np.random.default_rng(0))
