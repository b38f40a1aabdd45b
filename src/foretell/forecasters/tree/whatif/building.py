"""Growing a tree step by step: children, groundings and links, each giving a new tree."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from foretell.forecasters.tree.arithmetic.evaluate import keeping, working
from foretell.forecasters.tree.links import Link
from foretell.forecasters.tree.problems import InvalidTree, Problem
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.whatif.edits import SetGrounding, SetLink
from foretell.forecasters.tree.whatif.whatif import resynthesize
from foretell.questions.clock import AsOf


def planted(claim: str, *, id: str = "P0", as_of: AsOf | None = None) -> Tree:
    """A tree of one claim."""
    return Tree(root=id, nodes={id: Proposition(id=id, claim=claim)}, as_of=as_of)


def next_ids(tree: Tree, parent: str, count: int) -> list[str]:
    """Ids for new children: P1, P2, … under the root P0, P1.1, P1.2, … under P1.

    >>> next_ids(planted("c"), "P0", 2)
    ['P1', 'P2']
    """
    stem = "P" if parent == "P0" else f"{parent}."
    found: list[str] = []
    number = 1
    while len(found) < count:
        if f"{stem}{number}" not in tree.nodes:
            found.append(f"{stem}{number}")
        number += 1
    return found


def with_children(tree: Tree, parent: str, children: Iterable[Proposition | str], causality: str = "") -> Tree:
    """Claims put under a parent: new ones as propositions, those already in the tree by their id.

    The parent loses any number and link it had: both follow from the children now.
    """
    nodes = dict(tree.nodes)
    ids: list[str] = []
    for child in children:
        id = child if isinstance(child, str) else child.id
        if isinstance(child, Proposition):
            if id in nodes:
                raise InvalidTree([Problem(node=id, field="id", text="is taken already")])
            nodes[id] = child
        ids.append(id)
    old = nodes[parent]
    nodes[parent] = replace(
        old, children=(*old.children, *ids), causality=causality or old.causality, link=None, p=None, pinned=None
    )
    return replace(tree, nodes=nodes)


def with_grounding(tree: Tree, id: str, p: float | None, grounding: Grounding) -> Tree:
    """A leaf with its probability and where it comes from; without p, `grounding.error` says why.

    Every number above is brought up to date.
    """
    return resynthesize(tree, [SetGrounding(id=id, p=p, grounding=grounding)])


def with_link(tree: Tree, id: str, link: Link, *, report: str = "", key_factor: str = "") -> Tree:
    """A parent with its link, and every number above brought up to date.

    `InvalidTree` if the link does not fit the claim or its result is no probability; `reasons` can be told to a model.

    >>> from foretell.forecasters.tree.links import Linear
    >>> leaf = Proposition(id="P1", claim="Rates fall.", p=0.9)
    >>> tree = with_children(planted("Growth picks up."), "P0", [leaf])
    >>> with_link(tree, "P0", Linear(weights={"P1": 0.5}, intercept=0.05)).nodes["P0"].p
    0.5
    >>> with_link(tree, "P0", Linear(weights={"P1": 1.0}, intercept=0.2))
    Traceback (most recent call last):
    ...
    foretell.forecasters.tree.problems.InvalidTree: node P0, link.intercept: 0.2 is outside [-0.1, 0.1] (let the ...
    """
    done = resynthesize(tree, [SetLink(id=id, link=link)])
    node = replace(done.nodes[id], report=report, key_factor=key_factor)
    return keeping(replace(done, nodes={**done.nodes, id: node}), working(done))


def ready(tree: Tree) -> Sequence[str]:
    """Parents without a link whose children all have a number: those that can be synthesised next."""
    return [
        id
        for id, node in tree.nodes.items()
        if node.children and node.link is None and node.pinned is None and not _waiting(tree, node)
    ]


def _waiting(tree: Tree, node: Proposition) -> bool:
    """Whether a child still awaits its grounding or its own link; one that failed is not waited for."""
    for child in (tree.nodes[id] for id in node.children):
        failed = child.grounding is not None and bool(child.grounding.error)
        if child.children and child.link is None and child.pinned is None:
            return True
        if not child.children and child.p is None and not failed:
            return True
    return False
