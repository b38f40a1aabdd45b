"""A tree in which every number of a link is an input of the circuit, so that a thousand synthesizers cost one compile.

A weight is written as a claim of its own: w·x is the chance of "w AND x". The operations are the ordinary ones of the
tree; only the numbers come from outside, and may differ from question to question and from run to run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.forecasters.tree.arithmetic.circuit import Circuit, run_many
from foretell.forecasters.tree.arithmetic.compile import compile_tree
from foretell.forecasters.tree.expression import ASSUMPTION
from foretell.forecasters.tree.links import Formula, Linear, Link, NoisyOr
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.walk import leaves

Role = Literal["weight", "intercept", "chance"]
HALF = 0.5
UNSURE_INTERCEPT = 0.05
"""How much an intercept varies where weights vary by a factor of e."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number of a link."""

    input: str
    """Its name in the circuit."""
    node: str
    child: str
    """Empty for an intercept, a leak or an assumption."""
    role: Role
    value: float

    def as_input(self, values: Floats) -> Floats:
        """As a chance, which is all that a claim can have: weights without their sign, intercepts from −1/2 up."""
        if self.role == "intercept":
            return values + HALF
        return np.abs(values)


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """A tree ready to be run with other numbers."""

    circuit: Circuit
    leaves: tuple[str, ...]
    numbers: tuple[Number, ...]

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


def sketch(tree: Tree) -> Sketch:
    """The tree with its links' numbers as inputs. Averages have none; assumptions are inputs already."""
    draft = _Draft()
    for node in tree.nodes.values():
        draft.add(node)
    circuit = compile_tree(Tree(root=tree.root, nodes=draft.nodes, missing=tree.missing))
    return Sketch(circuit=circuit, leaves=tuple(leaves(tree)), numbers=tuple(draft.numbers))


class _Draft:
    """Claims rewritten one by one."""

    def __init__(self) -> None:
        self.nodes: dict[str, Proposition] = {}
        self.numbers: list[Number] = []

    def add(self, node: Proposition) -> None:
        match node.link:
            case Linear():
                parts = [self._product(node.id, child, "weight", w) for child, w in node.link.weights.items()]
                signs = [-1.0 if w < 0 else 1.0 for w in node.link.weights.values()]
                parts.append(self._number(node.id, "", "intercept", node.link.intercept))
                self._keep(node, parts, Linear(weights=dict(zip(parts, [*signs, 1.0], strict=True)), intercept=-HALF))
            case NoisyOr():
                parts = [self._product(node.id, child, "chance", s) for child, s in node.link.strengths.items()]
                parts.append(self._number(node.id, "", "chance", node.link.leak))
                self._keep(node, parts, Formula(expression=" OR ".join(parts)))
            case Formula() if node.link.assumption is not None:
                given = node.link.assumption.p
                name = f"{node.id}:{ASSUMPTION}"
                self.numbers.append(Number(input=name, node=node.id, child="", role="chance", value=given))
                self.nodes[node.id] = node
            case _:
                self.nodes[node.id] = node

    def _keep(self, node: Proposition, parts: list[str], link: Link) -> None:
        self.nodes[node.id] = replace(node, children=tuple(parts), link=link)

    def _product(self, node: str, child: str, role: Role, value: float) -> str:
        """A claim with the chance value·x."""
        number = self._number(node, child, role, value)
        name = f"{number}_times"
        link = Formula(expression=f"{number} AND {child}")
        self.nodes[name] = Proposition(id=name, claim=name, children=(number, child), link=link)
        return name

    def _number(self, node: str, child: str, role: Role, value: float) -> str:
        name = f"number_{len(self.numbers)}"
        number = Number(input=name, node=node, child=child, role=role, value=value)
        self.numbers.append(number)
        self.nodes[name] = Proposition(id=name, claim=name, p=float(number.as_input(np.array(value))))
        return name
