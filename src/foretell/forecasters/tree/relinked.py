"""A finished tree under another rule that needs no model: what its links are worth beyond its leaves."""

from dataclasses import replace
from random import Random

from foretell.forecasters.tree.arithmetic.evaluate import evaluated
from foretell.forecasters.tree.growing.rules import Unasked, rule_named
from foretell.forecasters.tree.proposition import Tree
from foretell.questions.problems import InputError


def relinked(tree: Tree, rule: str, rng: Random) -> Tree:
    """Every claim joined by `average` or by `random` weights instead of its own link; pinned claims stay pinned.

    >>> from foretell.forecasters.tree.links import Linear
    >>> from foretell.forecasters.tree.proposition import Proposition
    >>> leaves = {id: Proposition(id=id, claim=id, p=p) for id, p in (("P1", 0.2), ("P2", 0.6))}
    >>> top = Proposition(id="P0", claim="c", children=("P1", "P2"), link=Linear(weights={"P1": 0.1, "P2": 0.8}))
    >>> round(relinked(Tree(root="P0", nodes={"P0": top, **leaves}), "average", Random(0)).nodes["P0"].p, 12)
    0.4
    """
    found = rule_named(rule)
    if not isinstance(found, Unasked):
        raise InputError(f"the rule {rule} asks a model", hint="without one there are average and random")
    nodes = {
        id: replace(node, link=found.make(node.children, rng), p=None) if node.children else node
        for id, node in tree.nodes.items()
    }
    return evaluated(replace(tree, nodes=nodes))
