"""When a linear link is the conditional chance of a Bayes net, and how to make it one.

With every weight and the intercept in [0, 1] and their sum at most 1, β₀ + Σ βⱼ·[child j] is a probability whatever the
children are: one of them, or the intercept, is picked with chance β and decides (Analytica, appendix B). Then the rule,
the Bayes net and the logic program have the same numbers. Otherwise only the expectation makes sense.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.links import LinearLink
from foretell.forecasters.tree.problems import InvalidTree, TreeProblem
from foretell.forecasters.tree.proposition import Tree

TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class ScaledLink:
    """A linear link that satisfies the condition, and what was done to get there."""

    link: LinearLink
    note: str


def bayes_net_faults(link: LinearLink) -> list[str]:
    """Why the link is no conditional chance; empty where β ∈ [0, 1] and β₀ + Σ βⱼ ≤ 1.

    >>> bayes_net_faults(LinearLink(weights={"P1": 0.7, "P2": -0.2}, intercept=0.05))
    ['the weight of P2 is -0.2, below 0']
    """
    named = {"the intercept": link.intercept, **{f"the weight of {id}": w for id, w in link.weights.items()}}
    found = [f"{name} is {value:g}, below 0" for name, value in named.items() if value < -TOLERANCE]
    found += [f"{name} is {value:g}, above 1" for name, value in named.items() if value > 1 + TOLERANCE]
    total = sum(named.values())
    if not found and total > 1 + TOLERANCE:
        found.append(f"intercept and weights add up to {total:g}, above 1")
    return found


def min_max(link: LinearLink) -> ScaledLink:
    """Weights moved to [0, 1] by (β − a)/(b − a), then shrunk alike until intercept and weights add up to 1 at most.

    a is the smallest weight, or 0 if none is negative, so that positive weights keep their proportions; b is the
    largest. The intercept is held within [0, 1].

    >>> min_max(LinearLink(weights={"P1": 0.6, "P2": -0.2}, intercept=-0.05)).link.weights
    {'P1': 1.0, 'P2': 0.0}
    """
    intercept = min(max(link.intercept, 0.0), 1.0)
    low = min(0.0, *link.weights.values())
    width = max(link.weights.values()) - low
    moved = {id: (w - low) / width if width > 0 else 0.0 for id, w in link.weights.items()}
    return _scaled("min-max", link, _fitted(intercept, moved))


def softmax(link: LinearLink) -> ScaledLink:
    """Weights (1 − β₀)·exp(βⱼ)/Σ exp(βₖ); the intercept is held within [0, 1].

    >>> softmax(LinearLink(weights={"P1": 0.5, "P2": 0.5}, intercept=0.1)).link.weights
    {'P1': 0.45, 'P2': 0.45}
    """
    intercept = min(max(link.intercept, 0.0), 1.0)
    top = max(link.weights.values())
    raw = {id: math.exp(w - top) for id, w in link.weights.items()}
    total = sum(raw.values())
    return _scaled(
        "softmax",
        link,
        LinearLink(intercept=intercept, weights={id: (1 - intercept) * r / total for id, r in raw.items()}),
    )


def clip(link: LinearLink) -> ScaledLink:
    """Negative numbers set to 0, then the weights shrunk alike until all add up to 1 at most: the least change."""
    intercept = min(max(link.intercept, 0.0), 1.0)
    return _scaled("clip", link, _fitted(intercept, {id: min(max(w, 0.0), 1.0) for id, w in link.weights.items()}))


SCALINGS: Mapping[str, Callable[[LinearLink], ScaledLink]] = {"min-max": min_max, "softmax": softmax, "clip": clip}


def _fitted(intercept: float, weights: Mapping[str, float]) -> LinearLink:
    total = sum(weights.values())
    shrink = min(1.0, (1 - intercept) / total) if total > 0 else 1.0
    return LinearLink(intercept=intercept, weights={id: w * shrink for id, w in weights.items()})


def _scaled(how: str, before: LinearLink, after: LinearLink) -> ScaledLink:
    return ScaledLink(link=after, note=f"weights scaled by {how}: {_numbers(before)} became {_numbers(after)}")


def _numbers(link: LinearLink) -> str:
    return ", ".join([f"{link.intercept:.4g}", *(f"{id} {w:.4g}" for id, w in link.weights.items())])


def links_unfit_for_bayes_net(tree: Tree) -> list[TreeProblem]:
    """Linear links that are no conditional chance, pinned ones left out: these keep a tree from being a Bayes net."""
    hint = f"scale the weights: {', '.join(SCALINGS)}"
    return [
        TreeProblem(node=id, field="link", text=f"is no conditional chance: {'; '.join(faults)}", hint=hint)
        for id, node in tree.nodes.items()
        if node.pinned is None and (form := node.linear_form) is not None and (faults := bayes_net_faults(form))
    ]


def require_bayes_net(tree: Tree) -> None:
    """Raise `InvalidTree` naming every linear link that is no conditional chance."""
    unfit = links_unfit_for_bayes_net(tree)
    if unfit:
        raise InvalidTree(unfit)


def scale_tree(tree: Tree, how: str) -> Tree:
    """The tree with every unfit linear link scaled, a note at each, and its numbers worked out anew."""
    nodes = dict(tree.nodes)
    for id, node in tree.nodes.items():
        form = node.linear_form
        if form is not None and node.pinned is None and bayes_net_faults(form):
            scaled = SCALINGS[how](form)
            nodes[id] = replace(node, link=scaled.link, notes=(*node.notes, scaled.note))
    return evaluated(replace(tree, nodes=nodes))
