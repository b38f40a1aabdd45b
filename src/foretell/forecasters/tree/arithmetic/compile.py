"""From a tree to its list of operations."""

from collections.abc import Collection

from foretell.forecasters.tree.arithmetic.circuit import Circuit
from foretell.forecasters.tree.arithmetic.conditioning import Conditioning
from foretell.forecasters.tree.arithmetic.emit import Emitter
from foretell.forecasters.tree.arithmetic.gates import Gates, Given
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.walk import Layout, has_own_value, own_value


def compile_tree(tree: Tree, *, only: Collection[str] | None = None, plan: Layout | None = None) -> Circuit:
    """The operations that give every claim's probability, exactly, also where branches share claims.

    With `only`, the operations for these claims alone: the others enter with the probability they have. `plan` is the
    tree's layout, where it is known already. The tree must be sound (`checks.problems`); where too much is shared,
    `Entangled` names the claims.
    """
    gates, emitter = Gates(tree, plan), Emitter()
    work = Conditioning(gates, emitter)
    wanted = gates.order if only is None else sorted(only, key=gates.rank.__getitem__)
    for claim in wanted:
        own = has_own_value(tree.nodes[claim])
        work.outputs[claim] = emitter.given(claim) if own else emitter.capped(work.claim(claim))
    ops, claims = emitter.needed({claim: work.outputs[claim] for claim in wanted})
    return Circuit(
        root=tree.root,
        ops=ops,
        claims=claims,
        inputs={op[1]: _value(gates, op[1], only) for op in ops if op[0] == "in"},
        pinnable=frozenset(gates.order) - work.opened,
        apart=frozenset(gates.order) - work.opened - work.scope.met,
        improper=frozenset(work.improper),
    )


def _value(gates: Gates, name: str, only: Collection[str] | None) -> float:
    """The probability of an input as it stands in the tree."""
    node = gates.tree.nodes.get(name)
    if node is None:
        body = gates.body(name)
        assert isinstance(body, Given)
        return body.p
    if has_own_value(node):
        return own_value(node, gates.tree.missing)
    assert only is not None
    assert node.p is not None
    return node.p
