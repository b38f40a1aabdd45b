import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.random_trees import claim, random_link, random_tree, tree_of, wide_tree

from foretell.forecasters.tree.arithmetic.evaluation import evaluated, stale_claims
from foretell.forecasters.tree.edits import (
    AddNode,
    Edit,
    MoveNode,
    RemoveNode,
    Scenario,
    SetClaim,
    SetGrounding,
    SetLink,
    SetP,
    SetReport,
    ShareNode,
    Unpin,
)
from foretell.forecasters.tree.links import (
    AverageLink,
    FormulaAssumption,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    NoisyOrLink,
)
from foretell.forecasters.tree.proposition import Grounding, Tree, leaves, parents_of
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.what_if import (
    apply_scenario,
    claim_changes,
    clamped_claims,
    compare_scenarios,
    next_ids,
    resynthesize,
    what_if,
)

SEEDS = st.integers(0, 2**32)
NUMERIC = ("linear", "formula", "noisy_or", "inhibited_noisy_or", "average")


def small() -> Tree:
    """Return P0 = mean of P1 = (P3 AND P4) and P2 = noisy-or of P4."""
    return evaluated(
        tree_of(
            claim("P0", children=("P1", "P2"), link=LinearLink(weights={"P1": 0.5, "P2": 0.5})),
            claim("P1", children=("P3", "P4"), link=FormulaLink(expression="P3 AND P4")),
            claim("P2", children=("P4",), link=NoisyOrLink(strengths={"P4": 0.5}, leak=0.1)),
            claim("P3", p=0.5),
            claim("P4", p=0.8),
        )
    )


def random_edits(rng: random.Random, tree: Tree) -> list[Edit]:
    edits: list[Edit] = []
    for id in rng.sample(list(tree.nodes), min(len(tree.nodes), rng.randint(1, 3))):
        node = tree.nodes[id]
        kind = rng.random()
        if kind < 0.5 or not node.children:
            edits.append(SetP(id=id, p=rng.choice([0.0, 1.0, rng.random()])))
        elif kind < 0.6 and node.pinned is not None:
            edits.append(Unpin(id=id))
        elif kind < 0.8:
            edits.append(SetLink(id=id, link=random_link(rng, node.children, (*NUMERIC, "judged"), proper=True)))
        else:
            edits.append(SetReport(id=id, report="other"))
    return edits


@given(SEEDS)
@settings(max_examples=200)
def test_edits_equal_a_full_recomputation_bit_for_bit(seed: int):
    rng = random.Random(seed)
    tree = evaluated(random_tree(rng, rng.randint(1, 6), rng.randint(1, 7)))
    for _ in range(3):
        tree = resynthesize(tree, random_edits(rng, tree))
        assert evaluated(replace(tree, notes=("anew",))).nodes == tree.nodes


@given(SEEDS)
@settings(max_examples=30)
def test_structural_edits_equal_a_full_recomputation(seed: int):
    rng = random.Random(seed)
    tree = evaluated(random_tree(rng, 4, 4, ("linear", "noisy_or", "average")))
    parent = rng.choice([id for id, node in tree.nodes.items() if node.children])
    grown = resynthesize(tree, [AddNode(parent=parent, node=claim("new", p=0.3), weight=0.0)])
    assert evaluated(replace(grown, notes=("anew",))).nodes == grown.nodes
    gone = rng.choice([id for id in tree.nodes if id != tree.root])
    cut = resynthesize(tree, [RemoveNode(id=gone)])
    assert gone not in cut.nodes
    assert evaluated(replace(cut, notes=("anew",))).nodes == cut.nodes


def test_a_tree_of_a_thousand_claims_changes_only_above_the_edit():
    tree = evaluated(wide_tree(random.Random(5), 1_000))
    leaf = leaves(tree)[37]
    new = resynthesize(tree, [SetP(id=leaf, p=0.123)])
    up, above, at = parents_of(tree.nodes), {leaf}, leaf
    while up[at]:
        at = up[at][0]
        above.add(at)
    assert {change.id for change in claim_changes(tree, new)} <= above
    assert all(new.nodes[id] is tree.nodes[id] for id in tree.nodes if id not in above)


def test_a_new_probability_changes_all_ancestors():
    new = resynthesize(small(), [SetP(id="P4", p=0.0)])
    assert [(c.id, round(c.before or 0, 6), round(c.after or 0, 6)) for c in claim_changes(small(), new)] == [
        ("P0", 0.43, 0.05),
        ("P1", 0.4, 0.0),
        ("P2", 0.46, 0.1),
        ("P4", 0.8, 0.0),
    ]


def test_a_parent_is_pinned_and_unpinned():
    pinned = resynthesize(small(), [SetP(id="P1", p=1.0)])
    assert pinned.nodes["P1"].pinned == 1.0
    assert pinned.nodes["P0"].p == pytest.approx(0.73)
    assert resynthesize(pinned, [SetP(id="P3", p=0.0)]).nodes["P0"].p == pinned.nodes["P0"].p
    assert resynthesize(pinned, [Unpin(id="P1")]) == small()


def test_a_pinned_claim_no_longer_shares_its_leaves():
    """Pinning is an intervention: P1 becomes independent of P4."""
    top = claim("P0", children=("P1", "P4"), link=FormulaLink(expression="P1 AND P4"))
    tree = evaluated(
        tree_of(top, claim("P1", children=("P4",), link=FormulaLink(expression="NOT P4")), claim("P4", p=0.8))
    )
    assert tree.nodes["P0"].p == 0.0
    assert resynthesize(tree, [SetP(id="P1", p=0.5)]).nodes["P0"].p == pytest.approx(0.4)


def test_an_assumption_is_an_input_too():
    assumed = FormulaLink(expression="P1 AND PA", assumption=FormulaAssumption(text="calm", p=0.5))
    tree = evaluated(tree_of(claim("P0", children=("P1",), link=assumed), claim("P1", p=0.5)))
    new = resynthesize(tree, [SetP(id="P0:PA", p=1.0)])
    assert new.nodes["P0"].p == pytest.approx(0.5)
    assert evaluated(replace(new, notes=("anew",))).nodes == new.nodes
    with pytest.raises(InvalidTree, match="node P1, link: has no assumption"):
        resynthesize(tree, [SetP(id="P1:PA", p=1.0)])


def test_judged_claims_keep_their_probability_and_become_stale():
    tree = evaluated(
        tree_of(
            claim("P0", children=("P1",), link=JudgedLink(p=0.6)),
            claim("P1", children=("P2", "P3"), link=AverageLink()),
            claim("P2", children=("P4",), link=JudgedLink(p=0.2)),
            claim("P3", p=0.4),
            claim("P4", p=0.5),
        )
    )
    new = resynthesize(tree, [SetP(id="P4", p=0.9)])
    assert (new.nodes["P0"].p, new.nodes["P1"].p, new.nodes["P2"].p) == (0.6, pytest.approx(0.3), 0.2)
    assert stale_claims(new) == ["P2", "P0"]
    rejudged = resynthesize(new, [SetLink(id="P2", link=JudgedLink(p=0.8))])
    assert stale_claims(rejudged) == ["P0"]
    assert rejudged.nodes["P1"].p == pytest.approx(0.6)
    assert stale_claims(resynthesize(tree, [SetP(id="P3", p=0.4)])) == []


def test_what_if_lists_only_stale_claims_that_it_affects():
    sums = claim("P0", children=("P1", "P2"), link=AverageLink())
    tree = evaluated(tree_of(replace(sums, stale="P2 was added"), claim("P1", p=0.5), claim("P2", p=0.5)))
    outcome = what_if(tree, {"P1": 0.9})
    assert (outcome.p, outcome.stale) == (pytest.approx(0.7), ())
    judged = replace(tree.nodes["P0"], link=JudgedLink(p=0.6), stale="")
    outcome = what_if(evaluated(replace(tree, nodes={**tree.nodes, "P0": judged})), {"P1": 0.9})
    assert (outcome.p, outcome.stale) == (0.6, ("P0",))


@pytest.mark.parametrize("edit", [SetClaim(id="P1", claim="Other words."), SetReport(id="P1", report="Other reasons.")])
def test_new_texts_change_no_probability_but_make_judgements_stale(edit: Edit):
    grounded = claim("P1", p=0.5, grounding=Grounding(grounder="g", report="r"))
    tree = evaluated(tree_of(claim("P0", children=("P1",), link=JudgedLink(p=0.6)), grounded))
    new = resynthesize(tree, [edit])
    assert new.nodes["P0"].p == 0.6
    assert stale_claims(new) == ["P0"]
    assert claim_changes(tree, new)[-1].fields[0] in ("claim", "grounding")


def test_a_failed_leaf_marks_its_ancestors_until_it_gets_a_probability():
    failed = claim("P1", grounding=Grounding(grounder="search", error="no results"))
    top = claim("P0", children=("P2",), link=JudgedLink(p=0.4))
    middle = claim("P2", children=("P1", "P3"), link=LinearLink(weights={"P1": 0.5, "P3": 0.5}))
    tree = evaluated(tree_of(top, middle, failed, claim("P3", p=1.0), missing=0.2))
    assert tree.nodes["P2"].p == pytest.approx(0.6)
    assert [tree.nodes[id].incomplete for id in ("P0", "P1", "P2", "P3")] == [("P1",), ("P1",), ("P1",), ()]
    filled = resynthesize(tree, [SetP(id="P1", p=0.5)])
    assert filled.nodes["P2"].p == pytest.approx(0.75)
    assert not any(node.incomplete for node in filled.nodes.values())
    assert resynthesize(tree, [SetP(id="P2", p=0.9)]).nodes["P0"].incomplete == ()


def test_new_values_may_push_a_link_out_of_range_but_a_new_link_may_not():
    tree = evaluated(
        tree_of(
            claim("P0", children=("P1",), link=LinearLink(weights={"P1": 0.9}, intercept=-0.05)), claim("P1", p=0.5)
        )
    )
    new = resynthesize(tree, [SetP(id="P1", p=0.0)])
    assert (new.nodes["P0"].p, clamped_claims(new), clamped_claims(tree)) == (0.0, ["P0"], [])
    with pytest.raises(InvalidTree, match=r"node P0, link: gives -0.005, outside \[0, 1\]"):
        resynthesize(tree, [SetLink(id="P0", link=LinearLink(weights={"P1": 0.1}, intercept=-0.055))])


def test_claims_can_be_added_shared_moved_and_removed():
    tree = small()
    added = resynthesize(tree, [AddNode(parent="P0", node=claim("P5", p=1.0), weight=0.1)])
    assert added.nodes["P0"].p == pytest.approx(0.53)
    with pytest.raises(InvalidTree, match=r"node P0, link\.weights: P5 is a child but has no number"):
        resynthesize(tree, [AddNode(parent="P0", node=claim("P5", p=1.0))])
    with pytest.raises(InvalidTree, match=r"node P1, link\.expression: P5 is a child but does not occur"):
        resynthesize(tree, [AddNode(parent="P1", node=claim("P5", p=1.0))])
    together = [
        AddNode(parent="P1", node=claim("P5", p=0.5)),
        SetLink(id="P1", link=FormulaLink(expression="P3 AND P4 AND P5")),
    ]
    assert resynthesize(tree, together).nodes["P1"].p == pytest.approx(0.2)
    shared = resynthesize(tree, [ShareNode(id="P3", parent="P2", weight=1.0)])
    assert shared.nodes["P2"].p == pytest.approx(1 - 0.9 * 0.6 * 0.5)
    moved = resynthesize(shared, [MoveNode(id="P3", to="P0", weight=0.2, out_of="P2")])
    assert moved.nodes["P0"].p == pytest.approx(0.43 + 0.1)
    removed = resynthesize(tree, [RemoveNode(id="P2")])
    assert set(removed.nodes) == {"P0", "P1", "P3", "P4"}
    assert removed.nodes["P0"].p == pytest.approx(0.2)
    last = resynthesize(tree, [RemoveNode(id="P4"), SetLink(id="P1", link=AverageLink())])
    assert (last.nodes["P2"].children, last.nodes["P2"].p) == ((), pytest.approx(0.46))
    gone = [c for c in claim_changes(tree, last) if c.after is None]
    assert [(c.id, c.before, c.moved) for c in gone] == [("P4", 0.8, 0.0)]


def test_a_new_grounding_changes_the_claims_above():
    tree = small()
    new = resynthesize(tree, [SetGrounding(id="P4", p=0.5, grounding=Grounding(grounder="g", report="r"))])
    assert new.nodes["P2"].p == pytest.approx(1 - 0.9 * 0.75)
    lost = resynthesize(new, [SetGrounding(id="P4", grounding=Grounding(grounder="g", error="gone"))])
    assert lost.nodes["P0"].incomplete == ("P4",)
    assert evaluated(replace(lost, notes=("anew",))).nodes == lost.nodes
    assert evaluated(replace(new, notes=("anew",))).nodes == new.nodes


def test_probabilities_changed_outside_edits_are_recomputed():
    tree = small()
    swapped = replace(tree, nodes={**tree.nodes, "P4": replace(tree.nodes["P4"], p=0.0)})
    assert resynthesize(swapped, [SetP(id="P3", p=0.6)]).nodes["P0"].p == pytest.approx(0.05)


def test_an_inhibitor_can_be_removed():
    link = InhibitedNoisyOrLink(strengths={"P1": 0.5}, inhibitors={"P2": 0.5})
    tree = evaluated(tree_of(claim("P0", children=("P1", "P2"), link=link), claim("P1", p=1.0), claim("P2", p=1.0)))
    assert tree.nodes["P0"].p == pytest.approx(0.25)
    assert resynthesize(tree, [RemoveNode(id="P2")]).nodes["P0"].p == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (SetP(id="P9", p=0.5), "node P9: is not in the tree"),
        (SetP(id="P3", p=1.5), r"node P3, p: 1.5 is outside"),
        (SetP(id="P1", p=float("nan")), r"node P1, pinned: nan is outside"),
        (SetClaim(id="P9", claim="c"), "node P9: is not in the tree"),
        (AddNode(parent="P9", node=claim("P5", p=1.0)), "node P9: is not in the tree"),
        (AddNode(parent="P0", node=claim("P3", p=1.0)), "node P3: is already in the tree"),
        (AddNode(parent="P3", node=claim("P5", p=1.0)), "node P3, link: has children but no link"),
        (ShareNode(id="P3", parent="P1"), "node P1, children: P3 is already a child"),
        (ShareNode(id="P0", parent="P2", weight=0.1), "a claim cannot depend on itself"),
        (RemoveNode(id="P0"), "node P0: is the root"),
        (RemoveNode(id="P3"), "node P1, link.expression: character 1: P3 is not a child"),
        (MoveNode(id="P3", to="P0", out_of="P2"), "node P2: is not a parent of P3"),
        (SetGrounding(id="P0", p=0.1, grounding=Grounding(grounder="g")), "node P0, grounding: only leaves"),
        (SetLink(id="P0", link=LinearLink(weights={"P1": 0.5})), "node P0, link.weights: P2 is a child"),
    ],
)
def test_invalid_edits_are_rejected(edit: Edit, problem: str):
    with pytest.raises(InvalidTree, match=problem):
        resynthesize(small(), [edit])


def test_scenarios_are_compared_with_the_original_tree():
    scenarios = [Scenario(name=f"P3 at {p}", edits=(SetP(id="P3", p=p),)) for p in (0.0, 1.0)]
    outcomes = compare_scenarios(small(), scenarios)
    assert [(o.name, round(o.p, 6), len(o.changes)) for o in outcomes] == [
        ("P3 at 0.0", 0.23, 3),
        ("P3 at 1.0", 0.63, 3),
    ]
    nothing = apply_scenario(small(), Scenario(name="none", edits=()))
    assert (nothing.changes, nothing.p) == ((), small().nodes["P0"].p)
    apart = claim_changes(outcomes[0].tree, outcomes[1].tree)
    assert {c.id for c in apart} == {"P0", "P1", "P3"}


def test_what_if_calls_no_model():
    """The modules of what-if do not import `foretell.models`."""
    import subprocess
    import sys

    code = "import sys, foretell.forecasters.tree.what_if; print([m for m in sys.modules if 'foretell.models' in m])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_a_tree_can_be_built_by_edits():
    tree = tree_of(claim("P0", children=("P1", "P2")), claim("P1"), claim("P2"))
    below = next_ids(tree, "P1", 2)
    parent = claim("P1", children=tuple(below))
    tree = tree_of(tree.nodes["P0"], parent, tree.nodes["P2"], *map(claim, below))
    failed = Grounding(grounder="g", error="down")
    grounded = [SetGrounding(id="P1.1", p=0.5, grounding=Grounding(grounder="g"))]
    tree = resynthesize(tree, [*grounded, SetGrounding(id="P1.2", grounding=failed), SetP(id="P2", p=0.9)])
    tree = resynthesize(tree, [SetLink(id="P1", link=AverageLink()), SetReport(id="P1", report="r")])
    assert (tree.nodes["P1"].p, tree.nodes["P1"].incomplete) == (0.5, ("P1.2",))
    tree = resynthesize(tree, [SetLink(id="P0", link=LinearLink(weights={"P1": 0.5, "P2": 0.5}))])
    assert tree.nodes["P0"].p == pytest.approx(0.7)
    assert (tree.nodes["P0"].incomplete, tree.nodes["P1"].report) == (("P1.2",), "r")
