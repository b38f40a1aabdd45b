"""Ways through a tree: who is above, who is below, in which order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foretell.forecasters.tree.links import Judged
from foretell.forecasters.tree.proposition import Proposition, Tree


def has_own_value(node: Proposition) -> bool:
    """Whether the number is given rather than computed: a leaf, a pinned or judged claim, one without a link yet."""
    return not node.children or node.pinned is not None or node.link is None or isinstance(node.link, Judged)


def own_value(node: Proposition, missing: float) -> float:
    """The number of a claim that `has_own_value`; `missing` where nobody gave one."""
    if node.pinned is not None:
        return node.pinned
    if isinstance(node.link, Judged):
        return node.link.p
    if node.children or node.p is None:
        return missing
    return node.p


def post_order(tree: Tree) -> list[str]:
    """Every claim that can be reached from the root, children before parents, each once.

    The order follows the children's order only, so that the same tree always computes in the same sequence.
    The tree must be free of cycles.
    """
    order: list[str] = []
    seen: set[str] = set()
    stack: list[tuple[str, bool]] = [(tree.root, False)]
    while stack:
        claim, done = stack.pop()
        if done:
            order.append(claim)
        elif claim not in seen:
            seen.add(claim)
            stack.append((claim, True))
            stack.extend((child, False) for child in reversed(tree.nodes[claim].children) if child not in seen)
    return order


def parents(tree: Tree) -> dict[str, list[str]]:
    """Who each claim bears on directly, in the order of the nodes."""
    found: dict[str, list[str]] = {claim: [] for claim in tree.nodes}
    for claim, node in tree.nodes.items():
        for child in node.children:
            found[child].append(claim)
    return found


@dataclass(frozen=True)
class Layout:
    """How a tree hangs together: its post-order, each claim's place in it, and who is above whom."""

    order: Sequence[str]
    rank: Mapping[str, int]
    up: Mapping[str, Sequence[str]]


def layout(tree: Tree) -> Layout:
    """The layout of a tree without cycles."""
    order = post_order(tree)
    return Layout(order, {claim: i for i, claim in enumerate(order)}, parents(tree))


def leaves(tree: Tree) -> list[str]:
    """Claims without children, in the order of the tree."""
    return [claim for claim in post_order(tree) if not tree.nodes[claim].children]
