"""A claim's link in words and in numbers, for reports."""

from collections.abc import Iterator
from dataclasses import dataclass

from foretell.forecasters.tree.arithmetic.evaluation import circuit_and_values
from foretell.forecasters.tree.edits import Unpin
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.text import format_probability, one_line
from foretell.forecasters.tree.what_if import resynthesize


@dataclass(frozen=True, kw_only=True)
class OutlineLine:
    """One claim where it stands in the outline."""

    node: Proposition
    depth: int
    again: bool = False
    """It has been shown with its children further up: the same claim, used once more."""


def outline(tree: Tree) -> Iterator[OutlineLine]:
    """Claims in the order in which one would tell them; a shared claim comes back without its children."""
    shown: set[str] = set()
    stack = [(tree.root, 0)]
    while stack:
        id, depth = stack.pop()
        again = id in shown
        yield OutlineLine(node=tree.nodes[id], depth=depth, again=again)
        if not again:
            shown.add(id)
            stack.extend((child, depth + 1) for child in reversed(tree.nodes[id].children))


def claim_marks(node: Proposition) -> list[str]:
    """What a reader must know beside the number."""
    found: list[str] = []
    if node.pinned is not None:
        found.append("pinned")
    if isinstance(node.link, JudgedLink):
        found.append("judged before a change" if node.link.stale else "judged")
    if node.failed:
        found.append("synthesis failed")
    if node.stale:
        found.append(f"stale: {node.stale}")
    if node.children and node.link is None and node.pinned is None:
        found.append("no link yet")
    if not node.children and node.p is None:
        found.append("failed" if node.grounding is not None and node.grounding.error else "not grounded")
    elif node.incomplete:
        found.append(f"without {', '.join(node.incomplete)}")
    return found


def tree_failures(tree: Tree) -> list[str]:
    """What went wrong on the way to the answer and still stands in it, a sentence for each claim."""
    found: list[str] = []
    for node in tree.nodes.values():
        if node.children and node.failed and node.pinned is None:
            found.append(f"{node.id}: synthesis failed, the mean of its children stands in ({one_line(node.failed)})")
        elif not node.children and node.p is None and node.grounding is not None and node.grounding.error:
            why = one_line(node.grounding.error)
            found.append(f"{node.id}: grounding failed, {format_probability(tree.missing)} stands in ({why})")
    return found


def stale_parts(tree: Tree) -> list[str]:
    """Claims that were examined or judged before something changed, a sentence for each."""
    found = [f"{node.id} is stale: {one_line(node.stale)}" for node in tree.nodes.values() if node.stale]
    return [*found, *(f"{id} was judged before something beneath it changed" for id in judged_before(tree))]


def judged_before(tree: Tree) -> list[str]:
    """Claims judged as a whole before something beneath them changed."""
    judged = {id: node.link for id, node in tree.nodes.items() if isinstance(node.link, JudgedLink) and not node.stale}
    return [id for id, link in judged.items() if link.stale]


def link_in_words(node: Proposition) -> str:
    """How the claim's number comes about.

    >>> from foretell.forecasters.tree.links import LinearLink
    >>> link = LinearLink(weights={"P1": 0.5}, intercept=0.05)
    >>> link_in_words(Proposition(id="P0", claim="c", children=("P1",), link=link))
    '0.05 whatever happens, and 0.5 times the chance of P1.'
    """
    if not node.children:
        failed = node.grounding.error if node.grounding is not None else ""
        return f"It could not be grounded: {one_line(failed)}." if failed else "A leaf: its number is given."
    if node.link is None:
        return "No link yet."
    pinned = f"Pinned at {format_probability(node.pinned)}; without the pin: " if node.pinned is not None else ""
    return pinned + node.link.describe(node.children)


def link_in_numbers(tree: Tree, node: Proposition) -> str:
    """The same as arithmetic with the present values; empty for leaves and judged claims."""
    if not node.children or node.link is None or node.link.own_probability is not None:
        return ""
    shown = node.link.show_arithmetic({child: format_probability(tree.nodes[child].p) for child in node.children})
    result = node.p
    if node.pinned is not None:
        result = resynthesize(tree, [Unpin(id=node.id)]).nodes[node.id].p
    return f"{shown} = {format_probability(result)}{_sharing(tree, node)}".removeprefix(" = ")


def _sharing(tree: Tree, node: Proposition) -> str:
    """A word where the numbers shown do not decide it, because branches have claims in common."""
    if node.linear_form is not None:
        return ""
    circuit, _ = circuit_and_values(tree)
    if all(child in circuit.pinnable for child in node.children):
        return ""
    return ", worked out case by case, since branches beneath share claims"
