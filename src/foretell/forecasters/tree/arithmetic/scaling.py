"""Check whether linear links are conditional probabilities of a Bayes net, and scale them so that they are.

If every weight and the intercept are in [0, 1] and their sum is at most 1, β₀ + Σ βⱼ·[child j] is a probability for all
values of the children: one of them, or the intercept, is picked with probability β and decides (Analytica, appendix B).
A child that hinders the claim is picked in the same way and decides by being false, if the intercept leaves room for
it. The rule, the Bayes net and the logic program then give the same probabilities. Otherwise only the expectation is
meaningful.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.links import LinearLink, ProductLogicLink
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.text import TreeProblem

TOLERANCE = 1e-9


def bayes_net_faults(link: LinearLink) -> list[str]:
    """Why the link is not a conditional probability; empty if it is within [0, 1] for all values of the children.

    >>> bayes_net_faults(LinearLink(weights={"P1": 0.7, "P2": -0.2}, intercept=0.05))
    ['the weight of P2 is -0.2, below 0']
    >>> bayes_net_faults(LinearLink(weights={"P1": 0.7, "P2": -0.2}, intercept=0.25))
    []
    """
    named = {"the intercept": link.intercept, **{f"the weight of {id}": w for id, w in link.weights.items()}}
    low = link.base < -TOLERANCE
    faults = [f"{name} is {value:g}, below 0" for name, value in named.items() if low and value < -TOLERANCE]
    faults += [f"{name} is {value:g}, above 1" for name, value in named.items() if value > 1 + TOLERANCE]
    total = link.intercept + sum(weight for weight in link.weights.values() if weight > 0)
    if not faults and total > 1 + TOLERANCE:
        faults.append(f"intercept and weights add up to {total:g}, above 1")
    return faults


Weights = Mapping[str, float]


def min_max(weights: Weights) -> Weights:
    """Rescale weights to [0, 1] by (β − a)/(b − a).

    a is the smallest weight, or 0 if none is negative, so that positive weights keep their proportions; b is the
    largest.

    >>> min_max({"P1": 0.6, "P2": -0.2})
    {'P1': 1.0, 'P2': 0.0}
    """
    low = min(0.0, *weights.values())
    width = max(weights.values()) - low
    return {id: (w - low) / width if width > 0 else 0.0 for id, w in weights.items()}


def softmax(weights: Weights) -> Weights:
    """Rescale weights to exp(βⱼ)/Σ exp(βₖ)."""
    top = max(weights.values())
    raw = {id: math.exp(w - top) for id, w in weights.items()}
    return {id: r / sum(raw.values()) for id, r in raw.items()}


SCALINGS: Mapping[str, Callable[[Weights], Weights]] = {"min-max": min_max, "softmax": softmax}


def scaled(link: LinearLink, how: str) -> tuple[LinearLink, str]:
    """Return a conditional probability close to the link, and a note on what was changed.

    The intercept is clamped to [0, 1], and the scaled weights are shrunk proportionally until everything adds up to at
    most 1.
    """
    intercept = min(max(link.intercept, 0.0), 1.0)
    weights = SCALINGS[how](link.weights)
    total = sum(weights.values())
    shrink = min(1.0, (1 - intercept) / total) if total > 0 else 1.0
    new = LinearLink(intercept=intercept, weights={id: w * shrink for id, w in weights.items()})
    return new, f"weights scaled by {how}: {_coefficients(link)} became {_coefficients(new)}"


def _coefficients(link: LinearLink) -> str:
    """Format the intercept and the weights of a link."""
    return ", ".join([f"{link.intercept:.4g}", *(f"{id} {weight:.4g}" for id, weight in link.weights.items())])


def links_unfit_for_bayes_net(tree: Tree) -> list[TreeProblem]:
    """Unpinned linear links that are not conditional probabilities, so that the tree is not a Bayes net."""
    hint = f"scale the weights: {', '.join(SCALINGS)}"
    return [
        TreeProblem(node=id, field="link", text=f"is not a conditional probability: {'; '.join(faults)}", hint=hint)
        for id, node in tree.nodes.items()
        if node.pinned is None
        and node.link is not None
        and not node.link.from_numbers
        and (form := node.linear_form) is not None
        and (faults := bayes_net_faults(form))
    ]


def links_without_bayes_net(tree: Tree) -> list[TreeProblem]:
    """Links that keep a tree from being a Bayes net: unfit linear ones, and formulas by the product t-norm."""
    text, hint = "is computed by the product t-norm, which a Bayes net cannot express", "use a link of the kind formula"
    product = [
        TreeProblem(node=id, field="link", text=text, hint=hint)
        for id, node in tree.nodes.items()
        if node.pinned is None and isinstance(node.link, ProductLogicLink)
    ]
    return [*links_unfit_for_bayes_net(tree), *product]


def scale_tree(tree: Tree, how: str) -> Tree:
    """Scale every unfit linear link, add a note to each, and recompute the tree."""
    nodes = dict(tree.nodes)
    for problem in links_unfit_for_bayes_net(tree):
        node = nodes[problem.node]
        assert node.linear_form is not None
        link, note = scaled(node.linear_form, how)
        nodes[node.id] = replace(node, link=link, notes=(*node.notes, note))
    return evaluated(replace(tree, nodes=nodes))
