"""Judged claims are asked for again only when something beneath them has changed, children first."""

import asyncio

import pytest
from tests.forecasters.tree.scripted_tree import TreeSetup, playing

from foretell.forecasters.tree.arithmetic.evaluation import evaluated, stale_claims
from foretell.forecasters.tree.edits import SetP
from foretell.forecasters.tree.grow.rejudge import rejudge
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.what_if import resynthesize
from foretell.models.model import ModelError


def tree() -> Tree:
    nodes = {
        "P0": Proposition(id="P0", claim="All of it.", children=("P1", "P2"), link=JudgedLink(p=0.6)),
        "P1": Proposition(id="P1", claim="The first half.", children=("P1.1", "P1.2"), link=JudgedLink(p=0.7)),
        "P2": Proposition(id="P2", claim="The second half.", p=0.5),
        "P1.1": Proposition(id="P1.1", claim="The first quarter.", p=0.4),
        "P1.2": Proposition(id="P1.2", claim="The second quarter.", p=0.4),
    }
    return evaluated(Tree(root="P0", nodes=nodes))


def again(setup: TreeSetup, changed: Tree) -> tuple[Tree, tuple[str, ...]]:
    return asyncio.run(rejudge(changed, setup.context, question=setup.question))


def test_only_what_lies_above_a_change_is_asked_for():
    setup = TreeSetup()
    assert again(setup, tree()) == (tree(), ())
    changed = resynthesize(tree(), [SetP(id="P1.1", p=0.9)])
    assert stale_claims(changed) == ["P1", "P0"]
    found, failed = again(setup, changed)
    assert failed == ()
    assert not stale_claims(found)
    assert [request.slot for request in setup.requests] == [
        "q/trial 0/rejudge/P1/synthesis/0",
        "q/trial 0/rejudge/P0/synthesis/0",
    ]
    assert f"{found.nodes['P1'].p:.3f}" in setup.requests[1].messages[1].text, "the new number is what is judged"
    assert found.nodes["P0"].p != 0.6
    setup = TreeSetup()
    again(setup, resynthesize(tree(), [SetP(id="P2", p=0.9)]))
    assert len(setup.requests) == 1


@pytest.mark.parametrize("part", ["P1", "P0"])
def test_where_nobody_answers_the_old_number_stands(part: str):
    down = playing(lambda request: ModelError("down") if f"/{part}/" in request.slot else None)
    found, failed = again(TreeSetup(model=down), resynthesize(tree(), [SetP(id="P1.1", p=0.9)]))
    assert failed == (part,)
    assert found.nodes[part].p == tree().nodes[part].p
    assert part in stale_claims(found)


def test_without_the_question_the_root_claim_is_what_is_asked_about():
    setup = TreeSetup()
    changed = resynthesize(tree(), [SetP(id="P2", p=0.9)])
    found, failed = asyncio.run(rejudge(changed, setup.context))
    assert (failed, stale_claims(found)) == ((), [])
    assert "# What is asked\n\nAll of it." in setup.requests[0].messages[1].text
