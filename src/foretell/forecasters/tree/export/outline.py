"""A tree from the top down, each claim once in full."""

from collections.abc import Iterator
from dataclasses import dataclass

from foretell.forecasters.tree.links import Judged
from foretell.forecasters.tree.proposition import Proposition, Tree


@dataclass(frozen=True, kw_only=True)
class Line:
    """One claim where it stands in the outline."""

    node: Proposition
    depth: int
    again: bool = False
    """It has been shown with its children further up: the same claim, used once more."""


def outline(tree: Tree) -> Iterator[Line]:
    """Claims in the order in which one would tell them; a shared claim comes back without its children."""
    shown: set[str] = set()
    stack = [(tree.root, 0)]
    while stack:
        id, depth = stack.pop()
        again = id in shown
        yield Line(node=tree.nodes[id], depth=depth, again=again)
        if not again:
            shown.add(id)
            stack.extend((child, depth + 1) for child in reversed(tree.nodes[id].children))


def marks(node: Proposition) -> list[str]:
    """What a reader must know beside the number."""
    found: list[str] = []
    if node.pinned is not None:
        found.append("pinned")
    if isinstance(node.link, Judged):
        found.append("judged before a change" if node.link.stale else "judged")
    if node.children and node.link is None and node.pinned is None:
        found.append("no link yet")
    if not node.children and node.p is None:
        found.append("failed" if node.grounding is not None and node.grounding.error else "not grounded")
    elif node.incomplete:
        found.append(f"without {', '.join(node.incomplete)}")
    return found
