"""What a synthesizer who knows the world would answer: for each rule, the link nearest to the true one.

Nearest over the questions of the world, claim by claim, by the squared error of the claim's chance. Where the true link
is of the rule's own kind it is the answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from foretell.arena.studies.tree.world import INTERCEPT_LIMIT, World
from foretell.evaluate.arrays import Floats
from foretell.forecasters.tree import expression as ex
from foretell.forecasters.tree.links import Assumption, Average, Formula, Linear, Link, NoisyOr
from foretell.forecasters.tree.proposition import Proposition, Tree

STIFF = 1e4
"""Weight of an equation that has to hold."""
Known = Mapping[str, Floats]
"""By claim, its true chance in each of the questions a link is fitted on."""


def fitted_tree(world: World, rule: str, known: Known) -> Tree:
    """The world's tree with every link as that rule would have it."""
    fit = FITS[rule]
    nodes = {
        claim: replace(node, link=fit(node, known)) if node.children else node
        for claim, node in world.tree.nodes.items()
    }
    return replace(world.tree, nodes=nodes)


def nearest_weights(node: Proposition, known: Known) -> Linear:
    """Weights within [−1, 1] and an intercept within ±0.1 by least squares."""
    from scipy.optimize import lsq_linear

    if isinstance(node.link, Linear):
        return node.link
    columns = np.column_stack([np.ones(len(known[node.id])), *(known[child] for child in node.children)])
    most = np.array([INTERCEPT_LIMIT, *np.ones(len(node.children))])
    found = lsq_linear(columns, known[node.id], (-most, most)).x.tolist()
    return Linear(weights=dict(zip(node.children, found[1:], strict=True)), intercept=found[0])


def nearest_chances(node: Proposition, known: Known) -> Linear:
    """The nearest weights that are a conditional chance: none negative, with the intercept at most one together.

    Non-negative least squares, the two bounds as equations with a slack of their own.
    """
    from scipy.optimize import nnls

    if isinstance(node.link, Linear):
        return node.link
    y, width = known[node.id], len(node.children) + 1
    columns = np.column_stack([np.ones(len(y)), *(known[child] for child in node.children), np.zeros((len(y), 2))])
    bounds = np.zeros((2, width + 2))
    bounds[0, [0, width]] = STIFF
    bounds[1, [*range(width), width + 1]] = STIFF
    right = np.concatenate([y, [STIFF * INTERCEPT_LIMIT, STIFF]])
    found = nnls(np.vstack([columns, bounds]), right)[0][:width]
    found = found / max(1.0, float(found.sum()))
    intercept, *weights = found.tolist()
    return Linear(weights=dict(zip(node.children, weights, strict=True)), intercept=min(intercept, INTERCEPT_LIMIT))


def nearest_formula(node: Proposition, known: Known) -> Formula:
    """The best of the plain formulas over all children, with the chance of its assumption that suits it best.

    Children that speak against the claim stand behind NOT; those that matter most stand at the head.
    """
    if isinstance(node.link, Formula):
        return node.link
    y, best = known[node.id], (np.inf, Formula(expression=""))
    for expression in plain_formulas(_by_weight(node, known)):
        without, granted = (chance_of(expression, {**known, ex.ASSUMPTION: np.full(len(y), p)}) for p in (0.0, 1.0))
        step = granted - without
        size = float(step @ step)
        p = float(np.clip(step @ (y - without) / size, 0, 1)) if size else 0.0
        error = float(np.mean((without + p * step - y) ** 2))
        if error < best[0]:
            assumption = Assumption(text="The rest goes as it usually goes.", p=p)
            best = error, Formula(expression=ex.to_text(expression), assumption=assumption)
    return best[1]


def _by_weight(node: Proposition, known: Known) -> list[ex.Expression]:
    y = known[node.id] - known[node.id].mean()
    pull = {child: float(y @ (known[child] - known[child].mean())) for child in node.children}
    order = sorted(node.children, key=lambda child: -abs(pull[child]))
    return [ex.Var(child) if pull[child] >= 0 else ex.Not(ex.Var(child)) for child in order]


def plain_formulas(parts: Sequence[ex.Expression]) -> Iterator[ex.Expression]:
    """Formulas as people write them: all or any of the children, a head and a tail, and the assumption somewhere.

    >>> [ex.to_text(one) for one in plain_formulas([ex.Var("A"), ex.Var("B")])][:3]
    ['A AND B AND PA', '(A AND B) OR PA', '(A OR B) AND PA']
    """
    both, either = ex.And, ex.Or
    given = ex.Var(ex.ASSUMPTION)
    for whole in (ex.joined(both, parts), ex.joined(either, parts)):
        yield ex.joined(both, [whole, given])
        yield ex.joined(either, [whole, given])
    for cut in range(1, len(parts)):
        for within in (both, either):
            head, tail = ex.joined(within, parts[:cut]), ex.joined(within, parts[cut:])
            yield ex.joined(both, [head, ex.joined(either, [tail, given])])
            yield ex.joined(either, [head, ex.joined(both, [tail, given])])


def chance_of(expression: ex.Expression, known: Known) -> Floats:
    """The chance of an expression in which no claim occurs twice, its claims independent."""
    match expression:
        case ex.Var():
            return known[expression.name]
        case ex.Not():
            return 1 - chance_of(expression.item, known)
        case ex.And():
            return np.prod([chance_of(item, known) for item in expression.items], axis=0)
        case ex.Or():
            return 1 - np.prod([1 - chance_of(item, known) for item in expression.items], axis=0)


def nearest_noisy_or(node: Proposition, known: Known) -> NoisyOr:
    """Strengths and leak by bounded least squares."""
    from scipy.optimize import least_squares

    x = np.column_stack([known[child] for child in node.children])
    y = known[node.id]

    def off(numbers: Floats) -> Floats:
        return 1 - (1 - numbers[0]) * np.prod(1 - numbers[1:] * x, axis=1) - y

    start = np.full(x.shape[1] + 1, 0.3)
    found = least_squares(off, start, bounds=(0, 1), max_nfev=30).x.tolist()
    return NoisyOr(strengths=dict(zip(node.children, found[1:], strict=True)), leak=found[0])


BAYES_NET = "bayes-net"
"""The linear rule with weights that are those of a Bayes net."""
FITS: Mapping[str, Callable[[Proposition, Known], Link]] = {
    "linear": nearest_weights,
    BAYES_NET: nearest_chances,
    "logic": nearest_formula,
    "noisy-or": nearest_noisy_or,
    "vanilla": nearest_weights,
    "average": lambda node, known: Average(),
    "random": lambda node, known: Linear(weights=dict.fromkeys(node.children, 1 / len(node.children))),
}
"""By rule. A judge (vanilla) who looks at numbers weighs them as `linear` does; `random` weights are drawn later."""
