"""The number that alone would make a tree give another value: of each leaf, and of each stated case of the root."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from foretell.forecasters.tree.arithmetic.circuit import rerun
from foretell.forecasters.tree.arithmetic.evaluation import circuit_and_values, evaluated
from foretell.forecasters.tree.arithmetic.sensitivity import with_input
from foretell.forecasters.tree.case_links import CasesLink, SplitLink, situation_weights
from foretell.forecasters.tree.links import Link
from foretell.forecasters.tree.proposition import Tree, leaves, parents_of
from foretell.forecasters.tree.text import InvalidTree
from foretell.frozen import frozen

LEAF, CHILD = "leaf", "child"
BISECTIONS = 24
"""Halvings of [0, 1] until a value is known to seven digits."""


@frozen
class ClosingValue:
    """A leaf or a stated case, and the value that alone would make the tree give another result."""

    what: str
    """`leaf`, `child` for a child of the root with children of its own, or the name of the case."""
    child: str = ""
    now: float
    needed: float | None
    """None if no value would do."""

    @property
    def name(self) -> str:
        """The leaf or the case, such as `only P1`."""
        return f"{self.what} {self.child}".strip()

    def __str__(self) -> str:
        needed = "no value would" if self.needed is None else f"{self.needed:.3f} would"
        return f"- {self.name} is {self.now:.3f}; {needed}"


def root_value(tree: Tree, option: str = "") -> float:
    """Return the probability of the root, or of one of its options; the tree's `missing` if it has none."""
    root = tree.nodes[tree.root]
    p = root.row.get(option, root.p)
    return tree.missing if p is None else p


def root_children(tree: Tree) -> dict[str, float]:
    """Return the probabilities of the root's children."""
    children = tree.nodes[tree.root].children
    return {child: tree.missing if (p := tree.nodes[child].p) is None else p for child in children}


def closing_values(tree: Tree, target: float, option: str = "") -> list[ClosingValue]:
    """Return for each leaf, child and case of the root the value that alone would make the tree give the target.

    The tree must be evaluated. `option` is the option of the root that is compared, if it answers several.
    """
    values: list[ClosingValue] = []
    for what, child, now, value_at in (*_leaf_inputs(tree, option), *_case_inputs(tree, option)):
        try:
            needed = closing_value(value_at, target)
        except InvalidTree:
            needed = None
        values.append(ClosingValue(what=what, child=child, now=now, needed=needed))
    return values


def closing_value(value_at: Callable[[float], float], target: float) -> float | None:
    """Return the input in [0, 1] at which a monotone function reaches the target; None if it does not.

    >>> round(closing_value(lambda x: 0.2 + 0.5 * x, 0.3), 3)
    0.2
    """
    low, high = 0.0, 1.0
    at_low, at_high = value_at(low), value_at(high)
    if not min(at_low, at_high) <= target <= max(at_low, at_high) or at_low == at_high:
        return None
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if (value_at(middle) < target) == (at_low < at_high):
            low = middle
        else:
            high = middle
    return (low + high) / 2


_Input = tuple[str, str, float, Callable[[float], float]]
"""What it is, the child, its value now, and the root's value as a function of it."""


def _leaf_inputs(tree: Tree, option: str) -> Iterator[_Input]:
    circuit, values = circuit_and_values(tree)
    place = circuit.rows.get(tree.root, {}).get(option, circuit.claims[tree.root])
    for id in leaves(tree):
        if id in circuit.input_places:
            yield LEAF, id, values[circuit.input_places[id]], partial(_with_claim, tree, id, place)
    for id in tree.nodes[tree.root].children:
        if tree.nodes[id].children and id in circuit.pinnable:
            yield CHILD, id, values[circuit.claims[id]], partial(_with_claim, tree, id, place)


def _with_claim(tree: Tree, id: str, place: int, p: float) -> float:
    """Return the root's value with another probability of a leaf, or with a child fixed at one."""
    circuit, values = circuit_and_values(tree)
    if id in circuit.input_places:
        return with_input(circuit, values, id, p)[place]
    return rerun(circuit, values, {}, {circuit.claims[id]: p})[place]


def _case_inputs(tree: Tree, option: str) -> Iterator[_Input]:
    link = tree.nodes[tree.root].link
    if link is None:
        return
    # Branches that share claims depend on each other, which only the whole tree computes.
    shared = any(len(above) > 1 for above in parents_of(tree.nodes).values())
    p = root_children(tree)

    def value_at(case: str, child: str, chance: float) -> float:
        new = link.with_case(case, child, chance, p, option)
        assert new is not None
        if not shared:
            return _value(new, p, option)
        root = replace(tree.nodes[tree.root], link=new)
        return root_value(evaluated(replace(tree, nodes={**tree.nodes, tree.root: root})), option)

    for (case, child), chance in link.stated_chances(option).items():
        yield case, child, chance, partial(value_at, case, child)


def _value(link: Link, p: dict[str, float], option: str) -> float:
    """Return the result of a link by cases or scenarios whose children share no claims."""
    if isinstance(link, CasesLink):
        return sum(w * chance for w, chance in zip(situation_weights(link, p), link.chances, strict=True))
    assert isinstance(link, SplitLink)
    form = link.option_forms(tuple(p)).get(option) or link.linear_form(tuple(p))
    return form.intercept + sum(weight * p[child] for child, weight in form.weights.items())
