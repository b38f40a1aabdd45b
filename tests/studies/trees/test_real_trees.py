"""Noise and other links on finished trees: laws, one number by hand, and what cannot be looked at."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foretell.forecasters.tree import JudgedLink, LinearLink, Proposition, Tree, evaluated, write_tree
from foretell.metrics import Resampling
from foretell.operations import study as run_study
from foretell.questions import InputError
from foretell.studies import (
    DISTURBANCES,
    DRAWS,
    StudyData,
    WorldRule,
    add_uniform_noise,
    draw_questions,
    draw_world,
    read_trees,
    replace_by_chance,
    reverse_by_chance,
    variance_lost_among,
)

QUICK = Resampling(draws=100)
EXAMPLES = Path(__file__).parents[3] / "examples" / "trees"


def pair(first: float, second: float, weight: float = 0.5) -> Tree:
    link = LinearLink(weights={"P1": weight, "P2": 1 - weight})
    top = Proposition(id="P0", claim="r", children=("P1", "P2"), link=link)
    ends = [Proposition(id=id, claim=id, p=p) for id, p in (("P1", first), ("P2", second))]
    return evaluated(Tree(root="P0", nodes={node.id: node for node in (top, *ends)}))


def material(*trees: Tree, **fields: Any) -> StudyData:
    return StudyData(tables={}, trees={"mine": trees}, resampling=QUICK, **fields)


def test_a_total_reversal_of_sums_spoils_nothing_and_equal_roots_have_nothing_to_spoil():
    trees = [pair(0.2, 0.4), pair(0.9, 0.5), pair(0.4, 0.4)]
    found = variance_lost_among(trees, reverse_by_chance, 1.0, material())
    assert found is not None
    assert found.estimate == pytest.approx(0, abs=1e-6)
    assert variance_lost_among([pair(0.3, 0.3)] * 3, add_uniform_noise, 0.5, material()) is None
    assert variance_lost_among([pair(0.1 + 0.2, 0.3), pair(0.3, 0.3)], add_uniform_noise, 0.5, material()) is None, (
        "up to rounding"
    )


def test_random_answers_spoil_everything():
    found = variance_lost_among([pair(0.2, 0.4), pair(0.9, 0.5), pair(0.4, 0.4)], replace_by_chance, 1.0, material())
    assert found is not None
    assert found.estimate > 97


def test_normal_noise_by_hand():
    """Roots 0.2 and 0.6: variance 0.04. Noise U(0, 0.4) on two leaves of weight 1/2: 0.16/12/2 = 0.00667."""
    found = variance_lost_among([pair(0.2, 0.2), pair(0.6, 0.6)], add_uniform_noise, 0.4, material())
    assert found is not None
    assert found.estimate == pytest.approx(100 * (0.02 / 3) / (0.04 + 0.02 / 3), abs=2.5), f"{DRAWS} draws of each"


def grown(rule: WorldRule, count: int = 12) -> list[Tree]:
    rng = np.random.default_rng(3)
    world = draw_world(rule, 6, rng)
    asked = draw_questions(world, count, rng)
    return [
        evaluated(
            replace(
                world.tree,
                nodes={
                    id: replace(node, p=float(asked.leaf[i, world.leaves.index(id)])) if id in world.leaves else node
                    for id, node in world.tree.nodes.items()
                },
            )
        )
        for i in range(count)
    ]


def test_the_noise_study_of_real_trees_has_every_kind_of_noise_and_three_ways_to_join():
    found = run_study("tree-noise", StudyData(tables={}, trees={"logic": grown("logic")}, resampling=QUICK))
    assert [grid.title for grid in found.tables] == [f"Spoilt by {kind} noise, %" for kind in DISTURBANCES]
    assert [e.name for e in found.tables[0].rows] == ["logic, as they are", "logic, average", "logic, random"]
    assert found.text.startswith("12 trees; % spoilt of logic, as they are at a ratio of 0.25: normal")
    with pytest.raises(InputError, match="at least two"):
        run_study("tree-noise", material(pair(0.1, 0.2)))
    same = run_study("tree-noise", material(pair(0.3, 0.3), pair(0.3, 0.3)))
    assert "nothing to spoil" in same.text


def test_judged_roots_are_told():
    top = Proposition(id="P0", claim="r", children=("P1", "P2"), link=JudgedLink(p=0.3), p=0.3)
    judged = Tree(root="P0", nodes={**pair(0.2, 0.4).nodes, "P0": top})
    found = run_study("tree-noise", material(judged, pair(0.8, 0.8)))
    assert any("Section error-bars was left out: the truth of given trees is not known" in note for note in found.notes)
    assert any("1 root of 2 are judged" in note for note in found.notes)


def test_trees_of_a_folder(tmp_path: Path):
    assert len(read_trees(EXAMPLES)) == 2
    with pytest.raises(InputError, match="no tree file"):
        read_trees(tmp_path)
    write_tree(tmp_path / "a.json", pair(0.2, 0.3))
    assert read_trees(tmp_path)[0].nodes["P0"].p == pytest.approx(0.25)


def test_studies_refuse_what_they_cannot_look_at():
    trees = material(pair(0.1, 0.2), pair(0.3, 0.4))
    with pytest.raises(InputError, match="no configuration"):
        run_study("trials", trees)
