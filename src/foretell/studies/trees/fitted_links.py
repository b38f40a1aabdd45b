"""A tree in which every number of a link is an input of the circuit, so that a thousand synthesizers cost one compile.

A weight is written as a claim of its own: w·x is the chance of "w AND x". The operations are the ordinary ones of the
tree; only the numbers come from outside, and may differ from question to question and from run to run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.arithmetic.circuit import Circuit, run_many
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.formula import ASSUMPTION
from foretell.forecasters.tree.links import AverageLink, FormulaAssumption, FormulaLink, LinearLink, Link, NoisyOrLink
from foretell.forecasters.tree.proposition import Proposition, Tree, leaves
from foretell.metrics.arrays import Floats
from foretell.studies.trees.world import INTERCEPT_LIMIT, TreeWorld

# What a synthesizer who knows the world would answer: for each rule, the link nearest to the true one.
#
# Nearest over the questions of the world, claim by claim, by the squared error of the claim's chance. Where the true
# link is of the rule's own kind it is the answer.

STIFF = 1e4
"""Weight of an equation that has to hold."""
TrueChances = Mapping[str, Floats]
"""By claim, its true chance in each of the questions a link is fitted on."""


def fitted_tree(world: TreeWorld, rule: str, known: TrueChances) -> Tree:
    """The world's tree with every link as that rule would have it."""
    fit = FITS[rule]
    nodes = {
        claim: replace(node, link=fit(node, known)) if node.children else node
        for claim, node in world.tree.nodes.items()
    }
    return replace(world.tree, nodes=nodes)


def nearest_weights(node: Proposition, known: TrueChances) -> LinearLink:
    """Weights within [−1, 1] and an intercept within ±0.1 by least squares."""
    from scipy.optimize import lsq_linear

    if isinstance(node.link, LinearLink):
        return node.link
    columns = np.column_stack([np.ones(len(known[node.id])), *(known[child] for child in node.children)])
    most = np.array([INTERCEPT_LIMIT, *np.ones(len(node.children))])
    found = lsq_linear(columns, known[node.id], (-most, most)).x.tolist()
    return LinearLink(weights=dict(zip(node.children, found[1:], strict=True)), intercept=found[0])


def nearest_chances(node: Proposition, known: TrueChances) -> LinearLink:
    """The nearest weights that are a conditional chance: none negative, with the intercept at most one together.

    Non-negative least squares, the two bounds as equations with a slack of their own.
    """
    from scipy.optimize import nnls

    if isinstance(node.link, LinearLink):
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
    return LinearLink(weights=dict(zip(node.children, weights, strict=True)), intercept=min(intercept, INTERCEPT_LIMIT))


def nearest_formula(node: Proposition, known: TrueChances) -> FormulaLink:
    """The best of the plain formulas over all children, with the chance of its assumption that suits it best.

    Children that speak against the claim stand behind NOT; those that matter most stand at the head.
    """
    if isinstance(node.link, FormulaLink):
        return node.link
    y, best = known[node.id], (np.inf, FormulaLink(expression=""))
    for expression in plain_formulas(_by_weight(node, known)):
        without, granted = (chance_of(expression, {**known, ex.ASSUMPTION: np.full(len(y), p)}) for p in (0.0, 1.0))
        step = granted - without
        size = float(step @ step)
        p = float(np.clip(step @ (y - without) / size, 0, 1)) if size else 0.0
        error = float(np.mean((without + p * step - y) ** 2))
        if error < best[0]:
            assumption = FormulaAssumption(text="The rest goes as it usually goes.", p=p)
            best = error, FormulaLink(expression=ex.to_text(expression), assumption=assumption)
    return best[1]


def _by_weight(node: Proposition, known: TrueChances) -> list[ex.Expression]:
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


def chance_of(expression: ex.Expression, known: TrueChances) -> Floats:
    """The chance of an expression in which no claim occurs twice, its claims independent."""

    def both(parts: list[Floats]) -> Floats:
        return np.prod(parts, axis=0)

    def either(parts: list[Floats]) -> Floats:
        return 1 - np.prod([1 - part for part in parts], axis=0)

    return ex.fold(expression, known.__getitem__, lambda chance: 1 - chance, both, either)


def nearest_noisy_or(node: Proposition, known: TrueChances) -> NoisyOrLink:
    """Strengths and leak by bounded least squares."""
    from scipy.optimize import least_squares

    x = np.column_stack([known[child] for child in node.children])
    y = known[node.id]

    def off(numbers: Floats) -> Floats:
        return 1 - (1 - numbers[0]) * np.prod(1 - numbers[1:] * x, axis=1) - y

    start = np.full(x.shape[1] + 1, 0.3)
    found = least_squares(off, start, bounds=(0, 1), max_nfev=30).x.tolist()
    return NoisyOrLink(strengths=dict(zip(node.children, found[1:], strict=True)), leak=found[0])


BAYES_NET = "bayes-net"
"""The linear rule with weights that are those of a Bayes net."""
FITS: Mapping[str, Callable[[Proposition, TrueChances], Link]] = {
    "linear": nearest_weights,
    BAYES_NET: nearest_chances,
    "logic": nearest_formula,
    "noisy-or": nearest_noisy_or,
    "vanilla": nearest_weights,
    "average": lambda node, known: AverageLink(),
    "random": lambda node, known: LinearLink(weights=dict.fromkeys(node.children, 1 / len(node.children))),
}
"""By rule. A judge (vanilla) who looks at numbers weighs them as `linear` does; `random` weights are drawn later."""


NumberRole = Literal["weight", "intercept", "chance"]
HALF = 0.5
UNSURE_INTERCEPT = 0.05
"""How much an intercept varies where weights vary by a factor of e."""


@dataclass(frozen=True, kw_only=True)
class LinkNumber:
    """One number of a link."""

    input: str
    """Its name in the circuit."""
    node: str
    child: str
    """Empty for an intercept, a leak or an assumption."""
    role: NumberRole
    value: float

    def as_input(self, values: Floats) -> Floats:
        """As a chance, which is all that a claim can have: weights without their sign, intercepts from −1/2 up."""
        if self.role == "intercept":
            return values + HALF
        return np.abs(values)


@dataclass(frozen=True, kw_only=True)
class ParametricTree:
    """A tree ready to be run with other numbers."""

    circuit: Circuit
    leaves: tuple[str, ...]
    numbers: tuple[LinkNumber, ...]

    def run(self, leaf: Floats, numbers: Mapping[str, Floats] | None = None) -> Floats:
        """The root for each row of `leaf`, questions × leaves; numbers that are not given are as they were.

        A weight keeps the sign it had.
        """
        inputs = {claim: leaf[:, place] for place, claim in enumerate(self.leaves)}
        given = numbers or {}
        inputs |= {n.input: n.as_input(given[n.input]) for n in self.numbers if n.input in given}
        values = run_many(self.circuit, inputs, len(leaf))
        return values[self.circuit.claims[self.circuit.root]]

    def shaken(self, noise: float, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """The numbers as `count` synthesizers would give them, who are unsure by `noise`.

        Weights are off by factors exp(noise·z), but add up to what they did; chances (strengths, leaks, assumptions)
        by noise·z in their log-odds; intercepts by 0.05·noise·z.
        """
        found: dict[str, Floats] = {}
        for number in self.numbers:
            z = noise * rng.standard_normal(count)
            match number.role:
                case "weight":
                    found[number.input] = number.value * np.exp(z)
                case "intercept":
                    found[number.input] = number.value + UNSURE_INTERCEPT * z
                case "chance":
                    found[number.input] = sigmoid(logit(np.full(count, number.value)) + z)
        return self._rescaled(found)

    def drawn(self, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Weights that are equally likely to be any that add up to one, and no intercepts."""
        found: dict[str, Floats] = {}
        for node in dict.fromkeys(number.node for number in self.numbers):
            names = [number.input for number in self.numbers if number.node == node and number.role == "weight"]
            found |= dict(zip(names, rng.dirichlet(np.ones(len(names)), count).T, strict=True))
        return found | {n.input: np.zeros(count) for n in self.numbers if n.role == "intercept"}

    def _rescaled(self, found: dict[str, Floats]) -> dict[str, Floats]:
        """Weights of each claim so that their sizes add up to what they did before."""
        for node in dict.fromkeys(number.node for number in self.numbers):
            mine = [number for number in self.numbers if number.node == node and number.role == "weight"]
            total = np.sum([np.abs(found[number.input]) for number in mine], axis=0)
            before = sum(abs(number.value) for number in mine)
            for number in mine if before > 0 else ():
                found[number.input] = found[number.input] * before / total
        return found


def parametric_tree(tree: Tree) -> ParametricTree:
    """The tree with its links' numbers as inputs. Averages have none; assumptions are inputs already."""
    draft = _TreeDraft()
    for node in tree.nodes.values():
        draft.add(node)
    circuit = compile_tree(Tree(root=tree.root, nodes=draft.nodes, missing=tree.missing))
    return ParametricTree(circuit=circuit, leaves=tuple(leaves(tree)), numbers=tuple(draft.numbers))


class _TreeDraft:
    """Claims rewritten one by one."""

    def __init__(self) -> None:
        self.nodes: dict[str, Proposition] = {}
        self.numbers: list[LinkNumber] = []

    def add(self, node: Proposition) -> None:
        match node.link:
            case LinearLink():
                parts = [self._product(node.id, child, "weight", w) for child, w in node.link.weights.items()]
                signs = [-1.0 if w < 0 else 1.0 for w in node.link.weights.values()]
                parts.append(self._number(node.id, "", "intercept", node.link.intercept))
                self._keep(
                    node, parts, LinearLink(weights=dict(zip(parts, [*signs, 1.0], strict=True)), intercept=-HALF)
                )
            case NoisyOrLink():
                parts = [self._product(node.id, child, "chance", s) for child, s in node.link.strengths.items()]
                parts.append(self._number(node.id, "", "chance", node.link.leak))
                self._keep(node, parts, FormulaLink(expression=" OR ".join(parts)))
            case FormulaLink() if node.link.assumption is not None:
                given = node.link.assumption.p
                name = f"{node.id}:{ASSUMPTION}"
                self.numbers.append(LinkNumber(input=name, node=node.id, child="", role="chance", value=given))
                self.nodes[node.id] = node
            case _:
                self.nodes[node.id] = node

    def _keep(self, node: Proposition, parts: list[str], link: Link) -> None:
        self.nodes[node.id] = replace(node, children=tuple(parts), link=link)

    def _product(self, node: str, child: str, role: NumberRole, value: float) -> str:
        """A claim with the chance value·x."""
        number = self._number(node, child, role, value)
        name = f"{number}_times"
        link = FormulaLink(expression=f"{number} AND {child}")
        self.nodes[name] = Proposition(id=name, claim=name, children=(number, child), link=link)
        return name

    def _number(self, node: str, child: str, role: NumberRole, value: float) -> str:
        name = f"number_{len(self.numbers)}"
        number = LinkNumber(input=name, node=node, child=child, role=role, value=value)
        self.numbers.append(number)
        self.nodes[name] = Proposition(id=name, claim=name, p=float(number.as_input(np.array(value))))
        return name
