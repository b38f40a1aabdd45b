"""Forecasts out of tree files, under other links, and trees over price and base rates, all without a model."""

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.forecasters.tree.scripted_tree import question

from foretell.forecasters import CannotForecast, Context
from foretell.forecasters.agent import Clamp
from foretell.forecasters.combine import logit_mean
from foretell.forecasters.tree import (
    LinearLink,
    Proposition,
    StoredTreesForecaster,
    Tree,
    claim_of_target,
    evaluated,
    relink,
    write_tree,
)
from foretell.forecasters.tree.forecaster import stored_trees
from foretell.questions import AsOf, Forecast, InputError, Question, Target, instant

OPEN = Clamp(low=0, high=1)


def tree_about(asked: Question, *, place: int = 0, p: tuple[float | None, float | None] = (0.2, 0.6), **fields) -> Tree:
    """0.1 + 0.25·P1 + 0.5·P2 on a target; 0.45 with the usual leaves."""
    link = LinearLink(weights={"P1": 0.25, "P2": 0.5}, intercept=0.1)
    top = Proposition(id="P0", claim=claim_of_target(asked, asked.targets[place]), children=("P1", "P2"), link=link)
    ends = [Proposition(id=id, claim=id, p=one) for id, one in zip(("P1", "P2"), p, strict=True)]
    given = {"as_of": asked.as_of, "intercept_limit": 0.1, **fields}
    return evaluated(Tree(root="P0", nodes={node.id: node for node in (top, *ends)}, **given))


def answer(folder: Path, asked: Question, *trees: Tree, **options) -> Forecast:
    for n, tree in enumerate(trees):
        write_tree(folder / f"{n}.json", tree)
    made = replace(stored_trees(folder=str(folder), **options), clamp=OPEN)
    return asyncio.run(made.forecast(asked, Context(as_of=asked.as_of)))


def test_a_stored_tree_answers_with_its_root(tmp_path: Path):
    asked = question()
    found = answer(tmp_path, asked, tree_about(asked))
    assert found.p == {"yes": pytest.approx(0.45)}
    assert found.forecaster == "tree-file"
    assert "P0" in found.rationale or "0.45" in found.rationale


def test_the_same_leaves_under_other_links(tmp_path: Path):
    asked = question()
    assert answer(tmp_path, asked, tree_about(asked), rule="average").p["yes"] == pytest.approx(0.4)
    drawn = [answer(tmp_path, asked, tree_about(asked), rule="random", seed=seed).p["yes"] for seed in range(20)]
    assert len(set(drawn)) > 1
    assert all(0.2 <= p <= 0.6 for p in drawn)
    assert answer(tmp_path, asked, tree_about(asked), rule="random", seed=3).p["yes"] == drawn[3]


def test_several_trees_of_one_moment_are_averaged_and_later_ones_go_first(tmp_path: Path):
    asked = question()
    same = answer(tmp_path, asked, tree_about(asked), tree_about(asked, p=(0.8, 0.9)))
    assert same.p["yes"] == pytest.approx(float(logit_mean([0.45, 0.75])))
    old = tree_about(asked, p=(0.8, 0.9), as_of=AsOf(at=instant("2025-01-01")))
    assert answer(tmp_path, asked, tree_about(asked), old).p["yes"] == pytest.approx(0.45)


def test_a_tree_from_after_the_cutoff_or_of_unknown_age_says_nothing(tmp_path: Path):
    asked = question()
    for moment in (AsOf(at=instant("2025-12-01")), None):
        with pytest.raises(CannotForecast, match="grown after"):
            answer(tmp_path, asked, tree_about(asked, as_of=moment))


def test_what_no_tree_is_about_and_what_has_no_number(tmp_path: Path):
    asked = question()
    with pytest.raises(CannotForecast, match="no stored tree"):
        answer(tmp_path, question(text="Will it rain?"), tree_about(asked))
    with pytest.raises(CannotForecast, match="has a number"):
        answer(tmp_path, asked, tree_about(asked, p=(None, None)))


def test_of_two_exclusive_options_one_tree_is_enough(tmp_path: Path):
    two = question(targets=(Target(id="a", label="Ada"), Target(id="b", label="Ben")), exclusivity="exactly one")
    assert answer(tmp_path, two, tree_about(two)).p == {"a": pytest.approx(0.45), "b": pytest.approx(0.55)}
    both = (tree_about(two), tree_about(two, place=1, p=(0.8, 0.9)))
    found = answer(tmp_path, two, *both, shortcut=False)
    assert found.p == {"a": pytest.approx(0.375), "b": pytest.approx(0.625)}, "0.45 and 0.75 by their sum"
    assert found.distribution is not None


def test_what_cannot_be_opened(tmp_path: Path):
    with pytest.raises(InputError, match="a folder or a file"):
        stored_trees()
    with pytest.raises(InputError, match="no tree file"):
        stored_trees(folder=str(tmp_path))
    with pytest.raises(InputError, match="without a model"):
        StoredTreesForecaster(trees={}, rule="logic")


def test_other_links_leave_pinned_claims_pinned_and_ask_no_model():
    asked = question()
    tree = tree_about(asked)
    top = replace(tree.nodes["P0"], pinned=0.9)
    pinned = relink(replace(tree, nodes={**tree.nodes, "P0": top}), "average", Random(0))
    assert pinned.nodes["P0"].p == 0.9
    with pytest.raises(InputError, match="asks a model"):
        relink(tree, "logic", Random(0))
