"""What a claim hangs on: slopes, importance and the tornado of its inputs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from foretell.forecasters.tree.arithmetic.circuit import Circuit, rerun, slopes
from foretell.forecasters.tree.arithmetic.compile import compile_tree
from foretell.forecasters.tree.arithmetic.evaluate import Working, keeping, working
from foretell.forecasters.tree.expression import ASSUMPTION
from foretell.forecasters.tree.links import Formula
from foretell.forecasters.tree.proposition import Tree
from foretell.questions.problems import InputError


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How a claim hangs on one input: a leaf, a pinned or judged claim, or an assumption ("P1:PA")."""

    id: str
    claim: str
    p: float
    slope: float
    """∂P(claim)/∂p. Since P is linear in each input by itself, also P where it is sure minus P where it is not."""
    importance: float
    """slope²·p·(1 − p): the expected square of the step that P takes when the input's truth becomes known."""
    share: float
    """Part of the importance of all inputs."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar of a tornado: the claim's probability with the input at both ends of its range."""

    id: str
    claim: str
    p: float
    at_low: float
    at_high: float
    low: float
    high: float
    """The input's range: 0 and 1, or a standard deviation to each side, within [0, 1]."""

    @property
    def width(self) -> float:
        """How far the claim moves in all."""
        return abs(self.at_high - self.at_low)


def worked_out(tree: Tree) -> tuple[Circuit, Sequence[float]]:
    """The tree's operations and their results at its present values."""
    known = working(tree)
    if known.circuit is None:
        circuit = compile_tree(tree, plan=known.plan)
        known = Working(known.plan, circuit, circuit.run())
        keeping(tree, known)
    assert known.circuit is not None
    return known.circuit, known.values


def sensitivities(tree: Tree, of: str | None = None) -> list[Sensitivity]:
    """How the claim (the root, unless another is named) hangs on each input, the most important first."""
    circuit, values = worked_out(tree)
    slope = slopes(circuit.ops, values, circuit.claims[of or tree.root])
    rows = [(name, values[place], slope[place]) for name, place in circuit.where.items() if slope[place] != 0.0]
    weights = {name: s * s * p * (1 - p) for name, p, s in rows}
    total = sum(weights.values())
    found = [
        Sensitivity(
            id=name,
            claim=claim_of(tree, name),
            p=p,
            slope=s,
            importance=weights[name],
            share=weights[name] / total if total > 0 else 0.0,
        )
        for name, p, s in rows
    ]
    return sorted(found, key=lambda one: (-one.importance, -abs(one.slope), one.id))


def claim_of(tree: Tree, name: str) -> str:
    """The words behind an input."""
    node = tree.nodes.get(name)
    if node is not None:
        return node.claim
    link = tree.nodes[name.removesuffix(f":{ASSUMPTION}")].link
    return link.assumption.text if isinstance(link, Formula) and link.assumption else ""


def tornado(tree: Tree, of: str | None = None, sd: Mapping[str, float] | None = None) -> list[Bar]:
    """The claim with each input at 0 and at 1, the widest bar first.

    With `sd`, only the inputs named there, each moved by its standard deviation to both sides, within [0, 1].
    """
    circuit, values = worked_out(tree)
    insist_on_inputs(circuit, sd or {})
    place = circuit.claims[of or tree.root]
    found: list[Bar] = []
    for name, at in circuit.where.items():
        if sd is not None and name not in sd:
            continue
        p = values[at]
        low, high = (max(0.0, p - sd[name]), min(1.0, p + sd[name])) if sd else (0.0, 1.0)
        ends = [rerun(circuit, values, {name: end}, {})[0][place] for end in (low, high)]
        if ends[0] != ends[1]:
            claim = claim_of(tree, name)
            found.append(Bar(id=name, claim=claim, p=p, at_low=ends[0], at_high=ends[1], low=low, high=high))
    return sorted(found, key=lambda bar: (-bar.width, bar.id))


def insist_on_inputs(circuit: Circuit, names: Iterable[str]) -> None:
    """Raise where a name is no input of the tree."""
    for name in names:
        if name not in circuit.where:
            raise InputError(f"{name} is no input of the tree", hint="name a leaf, a pinned or judged claim, or P1:PA")
