"""Noise and other links on finished trees: invariants, one number by hand, and refused input."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.links import JudgedLink, LinearLink
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.tree_file import write_tree
from foretell.metrics import Interval, Resampling
from foretell.operations.studies import study as run_study
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.studies.cases import TreeFacts
from foretell.studies.inputs import StudyData
from foretell.studies.leaf_noise import DISTURBANCES
from foretell.studies.noisy_trees import DRAWS, TreeGroup, judged_claims, variance_lost_among
from foretell.studies.stored_runs import read_trees
from foretell.studies.tree_world import WorldRule, draw_questions, draw_world

QUICK = Resampling(draws=100)
EXAMPLES = Path(__file__).parents[3] / "examples" / "trees"


def pair(first: float, second: float, weight: float = 0.5) -> Tree:
    link = LinearLink(weights={"P1": weight, "P2": 1 - weight})
    top = Proposition(id="P0", claim="r", children=("P1", "P2"), link=link)
    ends = [Proposition(id=id, claim=id, p=p) for id, p in (("P1", first), ("P2", second))]
    return evaluated(Tree(root="P0", nodes={node.id: node for node in (top, *ends)}))


def material(*trees: Tree, **fields: Any) -> StudyData:
    return StudyData(tables={}, trees={"mine": trees}, resampling=QUICK, **fields)


def lost(trees: Sequence[Tree], noise: str, ratio: float) -> Interval | None:
    return variance_lost_among(TreeGroup(name="mine", trees=trees), noise, ratio, material())


def test_total_reversal_of_sums_loses_nothing_and_equal_roots_give_none():
    trees = [pair(0.2, 0.4), pair(0.9, 0.5), pair(0.4, 0.4)]
    lost_among = lost(trees, "reverse", 1.0)
    assert lost_among is not None
    assert lost_among.estimate == pytest.approx(0, abs=1e-6)
    assert lost([pair(0.3, 0.3)] * 3, "normal", 0.5) is None
    assert lost([pair(0.1 + 0.2, 0.3), pair(0.3, 0.3)], "normal", 0.5) is None, "up to rounding"


def test_random_answers_lose_all_variance():
    lost_among = lost([pair(0.2, 0.4), pair(0.9, 0.5), pair(0.4, 0.4)], "uncertain", 1.0)
    assert lost_among is not None
    assert lost_among.estimate > 97


def test_effect_of_normal_noise_matches_hand_computation():
    """Roots 0.2 and 0.6: variance 0.04. Noise U(0, 0.4) on two leaves of weight 1/2: 0.16/12/2 = 0.00667."""
    lost_among = lost([pair(0.2, 0.2), pair(0.6, 0.6)], "normal", 0.4)
    assert lost_among is not None
    assert lost_among.estimate == pytest.approx(100 * (0.02 / 3) / (0.04 + 0.02 / 3), abs=2.5), f"{DRAWS} draws of each"


def grown(rule: WorldRule, count: int = 12) -> list[Tree]:
    rng = np.random.default_rng(3)
    world = draw_world(rule, 6, rng)
    questions = draw_questions(world, count, rng)
    return [
        evaluated(
            replace(
                world.tree,
                nodes={
                    id: replace(node, p=float(questions.leaf[i, world.leaves.index(id)]))
                    if id in world.leaves
                    else node
                    for id, node in world.tree.nodes.items()
                },
            )
        )
        for i in range(count)
    ]


def test_the_noise_study_of_real_trees_has_every_kind_of_noise_and_three_ways_to_join():
    data = StudyData(tables={}, trees={"logic": grown("logic")}, resampling=QUICK)
    study = run_study("tree-noise", data, section="noise")
    assert [grid.title for grid in study.tables] == [f"Spoilt by {kind} noise, %" for kind in DISTURBANCES]
    assert [e.name for e in study.tables[0].rows] == ["logic, as they are", "logic, average", "logic, random"]
    assert study.text.startswith("12 trees; % spoilt of logic, as they are at a ratio of 0.25: normal")
    with pytest.raises(InputError, match="at least two"):
        run_study("tree-noise", material(pair(0.1, 0.2)), section="noise")
    same = run_study("tree-noise", material(pair(0.3, 0.3), pair(0.3, 0.3)))
    assert "no effect to measure" in same.text


def test_judged_roots_are_noted():
    top = Proposition(id="P0", claim="r", children=("P1", "P2"), link=JudgedLink(p=0.3), p=0.3)
    judged = Tree(root="P0", nodes={**pair(0.2, 0.4).nodes, "P0": top})
    study = run_study("tree-noise", material(judged, pair(0.8, 0.8)))
    assert any("Section error-bars was left out: the truth of given trees is not known" in note for note in study.notes)
    assert any("1 root of 2 are judged" in note for note in study.notes)


def test_trees_are_read_from_a_folder(tmp_path: Path):
    assert len(read_trees(EXAMPLES)) == 2
    with pytest.raises(InputError, match="no tree file"):
        read_trees(tmp_path)
    write_tree(tmp_path / "a.json", pair(0.2, 0.3))
    assert read_trees(tmp_path)[0].nodes["P0"].p == pytest.approx(0.25)


def test_studies_refuse_unsuitable_trees():
    trees = material(pair(0.1, 0.2), pair(0.3, 0.4))
    with pytest.raises(InputError, match="no configuration"):
        run_study("trials", trees)


def judged_tree() -> Tree:
    top = Proposition(id="P0", claim="r", children=("P1", "P2"), link=JudgedLink(p=0.3), p=0.3)
    return Tree(root="P0", nodes={**pair(0.2, 0.4).nodes, "P0": top})


def decided(outcomes: Sequence[float | None], *trees: Tree) -> StudyData:
    """Return trees of which each answers a question of its own."""
    facts = [
        TreeFacts(
            question=Question(id=f"q{n}", source="own", text="?", due=instant("2025-10-26")),
            target="yes",
            outcomes={} if outcome is None else {"yes": outcome},
        )
        for n, outcome in enumerate(outcomes)
    ]
    return replace(material(*trees), tree_facts={"mine": facts})


def test_accuracy_falls_with_noise_by_hand():
    """Roots 0.3 (came false) and 0.7 (came true) are right, fully reversed wrong; an open question is left out."""
    data = decided([0.0, 1.0, None], pair(0.3, 0.3), pair(0.7, 0.7), pair(0.9, 0.9))
    study = run_study("tree-noise", data, section="noise")
    accuracy = study.table("Accuracy under reverse noise, %")
    assert accuracy.numbers("without")["mine, as they are"] == 100
    assert accuracy.numbers("1")["mine, as they are"] == 0
    # The mean of two leaves at 0.3 stays below 0.5 while their noises add up to less than 0.4.
    share = 100 * (1 + _below(0.4, 0.5)) / 2
    normal = study.table("Accuracy under normal noise, %").numbers("0.5")["mine, as they are"]
    assert normal == pytest.approx(share, abs=5), f"three standard errors of {DRAWS} draws"
    assert {chart.name for chart in study.charts} == {
        *DISTURBANCES,
        *(f"accuracy-{noise}" for noise in DISTURBANCES),
    }


def _below(total: float, width: float) -> float:
    """Chance that the sum of two draws from U(0, width) is at most `total`."""
    x = total / width
    return x**2 / 2 if x <= 1 else 1 - (2 - x) ** 2 / 2


def test_numbers_in_links_are_described_over_trees():
    data = replace(material(), trees={"mine": [pair(0.2, 0.4), pair(0.2, 0.4, weight=0.75)]})
    study = run_study("tree-noise", data, section="links")
    rows = {row.name: row.values for row in study.table("Numbers in links").rows}
    assert rows["linear: weight"][:3] == (4, 2, pytest.approx(0.5))
    assert rows["linear: weight"][-1] == pytest.approx(25), "one of four weights is beyond 0.5"
    assert rows["linear: intercept"][:2] == (2, 2)
    assert "75 % of 4 weights lie between 0 and 0.5" in study.text
    assert [chart.name for chart in study.charts] == ["links-1", "links-2"]
    with pytest.raises(InputError, match="simulated trees have no learnt links"):
        run_study("tree-noise", section="links", worlds=2)
    with pytest.raises(InputError, match="no link of these trees states a number"):
        run_study("tree-noise", material(judged_tree()), section="links")


def test_a_model_is_refused_where_nothing_was_judged():
    assert judged_claims(judged_tree()) == ["P0"]
    with pytest.raises(InputError, match="no claim of these trees was judged"):
        run_study("tree-noise", material(pair(0.1, 0.2), pair(0.3, 0.4)), section="noise", model="openai:x")
    with pytest.raises(InputError, match="budget: has no effect without `model`"):
        run_study("tree-noise", material(pair(0.1, 0.2)), budget=1.0)
