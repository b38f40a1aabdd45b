"""The ways by which a leaf reaches the root, with the product of the slopes along each (Analytica's beta paths)."""

from dataclasses import dataclass
from math import prod

from foretell.forecasters.tree.arithmetic.circuit import slopes
from foretell.forecasters.tree.influence.sensitivity import worked_out
from foretell.forecasters.tree.links import Average, Linear
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.walk import has_own_value

MOST = 10_000
"""Paths listed before giving up: shared claims multiply them."""


@dataclass(frozen=True, kw_only=True)
class BetaPath:
    """One way from the root down to a claim with a number of its own."""

    claims: tuple[str, ...]
    """From the root to the leaf."""
    slopes: tuple[float, ...]
    """How each claim moves with the next: the weight of a linear link, the present slope of any other."""
    linear: bool
    """Whether every link on the way is a weighted sum, so that the slopes do not depend on the values."""

    @property
    def product(self) -> float:
        """How the root moves with the leaf along this way. Over all ways to a leaf these add up to its slope."""
        return prod(self.slopes)


def beta_paths(tree: Tree) -> list[BetaPath]:
    """Every way from the root to a claim with a number of its own, the strongest first.

    A claim whose children are looked into from further above, because something beneath is shared, has no slope of its
    own; ways through it are left out, and only the slopes from `sensitivities` count there.
    """
    circuit, values = worked_out(tree)
    steps: dict[str, dict[str, float]] = {}

    def down(claim: str) -> dict[str, float]:
        if claim not in steps:
            node = tree.nodes[claim]
            children = [child for child in node.children if child in circuit.pinnable]
            if isinstance(node.link, Linear):
                steps[claim] = {child: node.link.weights[child] for child in children}
            elif isinstance(node.link, Average):
                steps[claim] = {child: 1 / len(node.children) for child in children}
            else:
                slope = slopes(circuit.ops, values, circuit.claims[claim])
                steps[claim] = {child: slope[circuit.claims[child]] for child in children}
        return steps[claim]

    found: list[BetaPath] = []
    stack: list[tuple[tuple[str, ...], tuple[float, ...], bool]] = [((tree.root,), (), True)]
    while stack and len(found) < MOST:
        way, slope, linear = stack.pop()
        node = tree.nodes[way[-1]]
        if has_own_value(node):
            found.append(BetaPath(claims=way, slopes=slope, linear=linear))
            continue
        still = linear and isinstance(node.link, Linear | Average)
        stack.extend(((*way, child), (*slope, step), still) for child, step in down(way[-1]).items())
    return sorted(found, key=lambda path: (-abs(path.product), path.claims))
