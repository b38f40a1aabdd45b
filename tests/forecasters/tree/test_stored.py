"""Forecasts from stored trees, with their own links and with other rules, without a model."""

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.forecasters.tree.scripted_tree import question

from foretell.forecasters.combine.aggregate import logit_mean
from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.forecaster import StoredTreesForecaster, claim_of_target, relink, stored_trees
from foretell.forecasters.tree.links import LinearLink
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.tree_file import write_tree
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target

OPEN = Clamp(low=0, high=1)


def tree_about(about: Question, *, place: int = 0, p: tuple[float | None, float | None] = (0.2, 0.6), **fields) -> Tree:
    """Return the tree 0.1 + 0.25·P1 + 0.5·P2 about a target; 0.45 with the default leaves."""
    link = LinearLink(weights={"P1": 0.25, "P2": 0.5}, intercept=0.1)
    top = Proposition(id="P0", claim=claim_of_target(about, about.targets[place]), children=("P1", "P2"), link=link)
    ends = [Proposition(id=id, claim=id, p=value) for id, value in zip(("P1", "P2"), p, strict=True)]
    defaults = {"as_of": about.as_of, "intercept_limit": 0.1, **fields}
    return evaluated(Tree(root="P0", nodes={node.id: node for node in (top, *ends)}, **defaults))


def answer(folder: Path, about: Question, *trees: Tree, **options) -> Forecast:
    for n, tree in enumerate(trees):
        write_tree(folder / f"{n}.json", tree)
    forecaster = replace(stored_trees(folder=str(folder), **options), clamp=OPEN)
    return asyncio.run(forecaster.forecast(about, Context(as_of=about.as_of)))


def test_a_stored_tree_forecasts_its_root(tmp_path: Path):
    about = question()
    forecast = answer(tmp_path, about, tree_about(about))
    assert forecast.p == {"yes": pytest.approx(0.45)}
    assert forecast.forecaster == "tree-file"
    assert forecast.rationale.startswith("45.0 % for: ")


def test_stored_leaves_are_combined_by_other_rules(tmp_path: Path):
    about = question()
    assert answer(tmp_path, about, tree_about(about), rule="average").p["yes"] == pytest.approx(0.4)
    drawn = [answer(tmp_path, about, tree_about(about), rule="random", seed=seed).p["yes"] for seed in range(20)]
    assert len(set(drawn)) > 1
    assert all(0.2 <= p <= 0.6 for p in drawn)
    assert answer(tmp_path, about, tree_about(about), rule="random", seed=3).p["yes"] == drawn[3]


def test_trees_with_the_same_cutoff_are_averaged_and_later_ones_preferred(tmp_path: Path):
    about = question()
    same = answer(tmp_path, about, tree_about(about), tree_about(about, p=(0.8, 0.9)))
    assert same.p["yes"] == pytest.approx(float(logit_mean([0.45, 0.75])))
    old = tree_about(about, p=(0.8, 0.9), as_of=AsOf(at=instant("2025-01-01")))
    assert answer(tmp_path, about, tree_about(about), old).p["yes"] == pytest.approx(0.45)


def test_trees_from_after_the_cutoff_or_an_unknown_time_are_rejected(tmp_path: Path):
    about = question()
    for as_of in (AsOf(at=instant("2025-12-01")), None):
        with pytest.raises(CannotForecast, match="grown after"):
            answer(tmp_path, about, tree_about(about, as_of=as_of))


def test_questions_without_a_usable_tree_cannot_be_forecast(tmp_path: Path):
    about = question()
    with pytest.raises(CannotForecast, match="no stored tree"):
        answer(tmp_path, question(text="Will it rain?"), tree_about(about))
    with pytest.raises(CannotForecast, match="has a number"):
        answer(tmp_path, about, tree_about(about, p=(None, None)))


def test_one_tree_suffices_for_two_exclusive_options(tmp_path: Path):
    two = question(targets=(Target(id="a", label="Ada"), Target(id="b", label="Ben")), exclusivity="exactly one")
    assert answer(tmp_path, two, tree_about(two)).p == {"a": pytest.approx(0.45), "b": pytest.approx(0.55)}
    both = (tree_about(two), tree_about(two, place=1, p=(0.8, 0.9)))
    forecast = answer(tmp_path, two, *both, shortcut=False)
    assert forecast.p == {"a": pytest.approx(0.375), "b": pytest.approx(0.625)}, "0.45 and 0.75 divided by their sum"
    assert forecast.distribution is not None


def test_missing_files_and_unknown_rules_are_errors(tmp_path: Path):
    with pytest.raises(InputError, match="a folder or a file"):
        stored_trees()
    with pytest.raises(InputError, match="no tree file"):
        stored_trees(folder=str(tmp_path))
    with pytest.raises(InputError, match="without a model"):
        StoredTreesForecaster(trees={}, rule="logic")


def test_relinking_keeps_pinned_claims_and_needs_no_model():
    about = question()
    tree = tree_about(about)
    top = replace(tree.nodes["P0"], pinned=0.9)
    pinned = relink(replace(tree, nodes={**tree.nodes, "P0": top}), "average", Random(0))
    assert pinned.nodes["P0"].p == 0.9
    with pytest.raises(InputError, match="asks a model"):
        relink(tree, "logic", Random(0))
