"""Whether a tree is sound: ids, root, children, no cycles, nothing out of reach, links that fit, results in [0, 1]."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foretell.forecasters.tree.arithmetic.circuit import ROUNDING, Circuit
from foretell.forecasters.tree.formula import ASSUMPTION, ID, FormulaError, mentions, parse
from foretell.forecasters.tree.proposition import (
    AverageLink,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
    Proposition,
    Tree,
    post_order,
)
from foretell.questions.errors import InputError

# What is wrong with a tree: at which node, in which field, and what to do about it.


@dataclass(frozen=True, kw_only=True)
class TreeProblem:
    """One thing that is wrong, or, as a warning, worth knowing.

    >>> outside = "1.4 is outside [-1, 1]"
    >>> print(TreeProblem(node="P1", field="link.weights.P1.2", text=outside, hint="scale the weights"))
    node P1, link.weights.P1.2: 1.4 is outside [-1, 1] (scale the weights)
    """

    node: str
    """Id of the claim; empty for the tree as a whole."""
    field: str
    text: str
    hint: str = ""
    pointed: str = ""
    """A formula with a caret under the place, on two lines."""
    warning: bool = False

    def __str__(self) -> str:
        """On one line."""
        place = ", ".join(filter(None, [f"node {self.node}" if self.node else "", self.field]))
        return ": ".join(filter(None, [place, self.text])) + (f" ({self.hint})" if self.hint else "")

    def told(self) -> str:
        """With the formula pointed at, where there is one: for a terminal, or for a model that is asked again."""
        return "\n".join(filter(None, [str(self), self.pointed]))


class InvalidTree(InputError):
    """A tree, link or edit that cannot be used; `problems` holds all the reasons."""

    def __init__(self, problems: Sequence[TreeProblem], *, path: str | Path | None = None) -> None:
        self.problems = tuple(problems)
        first, more = self.problems[0], len(self.problems) - 1
        place = ", ".join(filter(None, [f"node {first.node}" if first.node else "", first.field]))
        rest = f"; and {more} more: foretell tree check lists all" if more else ""
        super().__init__(": ".join(filter(None, [place, first.text])) + rest, path=path, hint=first.hint or None)

    @property
    def reasons(self) -> str:
        """All problems, one under the other, formulas pointed at: what to tell a model that is asked again."""
        return "\n".join(problem.told() for problem in self.problems)


def raise_errors(problems: Iterable[TreeProblem], *, path: str | Path | None = None) -> None:
    """Raise `InvalidTree` if one of them is more than a warning."""
    errors = [problem for problem in problems if not problem.warning]
    if errors:
        raise InvalidTree(errors, path=path)


# Whether a link fits its claim: every child used, every number where it must be.

INTERCEPT_LIMIT = 0.1


def link_problems(node: Proposition, link: Link, *, intercept_limit: float = INTERCEPT_LIMIT) -> list[TreeProblem]:
    """What is wrong with `link` as the link of `node`, by itself; whether its result fits is seen in the tree.

    >>> node = Proposition(id="P0", claim="c", children=("P1", "P2"))
    >>> for problem in link_problems(node, FormulaLink(expression="P1 AND P3")):
    ...     print(problem.told())
    node P0, link.expression: character 8: P3 is not a child; the children are P1, P2
    P1 AND P3
           ^
    node P0, link.expression: P2 is a child but does not occur (use every child, or remove it)
    """
    match link:
        case LinearLink():
            return list(_linear(node, link, intercept_limit))
        case FormulaLink():
            return list(_formula(node, link))
        case NoisyOrLink():
            return list(_noisy_or(node, link.strengths, {}, link.leak))
        case InhibitedNoisyOrLink():
            return list(_noisy_or(node, link.strengths, link.inhibitors, link.leak))
        case AverageLink():
            return []
        case JudgedLink():
            return list(_chance(node, "link.p", link.p))


def _linear(node: Proposition, link: LinearLink, limit: float) -> Iterator[TreeProblem]:
    yield from _same_ids(node, "link.weights", link.weights)
    for child, weight in link.weights.items():
        field = f"link.weights.{child}"
        if not math.isfinite(weight):
            yield TreeProblem(node=node.id, field=field, text=f"{weight} is not a finite number")
        elif abs(weight) > 1:
            hint = "a child moves its parent at most as far as it moves itself"
            yield TreeProblem(node=node.id, field=field, text=f"{weight:g} is outside [-1, 1]", hint=hint)
    if not math.isfinite(link.intercept):
        yield TreeProblem(node=node.id, field="link.intercept", text=f"{link.intercept} is not a finite number")
    elif abs(link.intercept) > limit + 1e-12:
        yield TreeProblem(
            node=node.id,
            field="link.intercept",
            text=f"{link.intercept:g} is outside [-{limit:g}, {limit:g}]",
            hint="let the children carry the claim, or raise intercept_limit of the tree",
        )


def _formula(node: Proposition, link: FormulaLink) -> Iterator[TreeProblem]:
    try:
        parse(link.expression)
    except FormulaError as error:
        yield _in_formula(node, error)
        return
    found = mentions(link.expression)
    for name, position in found:
        if name != ASSUMPTION and name not in node.children:
            text = f"{name} is not a child; the children are {', '.join(node.children)}"
            error = FormulaError(text, link.expression, position)
            near = [known for known in (*node.children, ASSUMPTION) if known.lower() == name.lower()]
            yield _in_formula(node, error, f"did you mean {near[0]}?" if near else "")
    named = {name for name, _ in found}
    for child in node.children:
        if child not in named:
            text = f"{child} is a child but does not occur"
            yield TreeProblem(node=node.id, field="link.expression", text=text, hint="use every child, or remove it")
    yield from _assumption(node, link, used=ASSUMPTION in named)


def _assumption(node: Proposition, link: FormulaLink, *, used: bool) -> Iterator[TreeProblem]:
    if link.assumption is not None:
        yield from _chance(node, "link.assumption.p", link.assumption.p)
        if not used:
            text = "an assumption is given, but PA does not occur in the expression"
            yield TreeProblem(node=node.id, field="link.assumption", text=text, warning=True)
    elif used:
        hint = 'give "assumption": {"text": …, "p": …}'
        yield TreeProblem(
            node=node.id, field="link.assumption", text="PA occurs but nothing says what it is", hint=hint
        )


def _in_formula(node: Proposition, error: FormulaError, hint: str = "") -> TreeProblem:
    return TreeProblem(node=node.id, field="link.expression", text=str(error), hint=hint, pointed=error.pointed)


def _noisy_or(
    node: Proposition, strengths: Mapping[str, float], inhibitors: Mapping[str, float], leak: float
) -> Iterator[TreeProblem]:
    yield from _same_ids(node, "link.strengths", {**strengths, **inhibitors})
    for child in strengths:
        if child in inhibitors:
            text = f"{child} cannot both bring the claim about and prevent it"
            yield TreeProblem(node=node.id, field="link.inhibitors", text=text)
    for field, numbers in (("strengths", strengths), ("inhibitors", inhibitors)):
        for child, number in numbers.items():
            yield from _chance(node, f"link.{field}.{child}", number)
    yield from _chance(node, "link.leak", leak)


def _same_ids(node: Proposition, field: str, given: Mapping[str, object]) -> Iterator[TreeProblem]:
    """Every child has a number, and nobody else has."""
    for child in node.children:
        if child not in given:
            yield TreeProblem(node=node.id, field=field, text=f"{child} is a child but has no number here")
    for name in given:
        if name not in node.children:
            text = f"{name} is not a child; the children are {', '.join(node.children)}"
            yield TreeProblem(node=node.id, field=field, text=text)


def _chance(node: Proposition, field: str, p: float) -> Iterator[TreeProblem]:
    if not (math.isfinite(p) and 0 <= p <= 1):
        yield TreeProblem(node=node.id, field=field, text=f"{p:g} is outside [0, 1]")


_ID = re.compile(ID)
RESERVED = frozenset({"AND", "OR", "NOT", ASSUMPTION})
CLOSE = 1e-3
"""How far a parent's written p may be from what its link gives before it is mentioned: people round."""


def structural_problems(tree: Tree) -> list[TreeProblem]:
    """What is wrong with how the claims hang together. An empty list means that the tree can be walked."""
    found = [problem for key, node in tree.nodes.items() for problem in _node(tree, key, node)]
    if tree.root not in tree.nodes:
        found.insert(0, TreeProblem(node="", field="root", text=f"there is no node {tree.root}"))
    if found:
        return found
    cycle = _cycle(tree)
    if cycle:
        way = " → ".join(cycle)
        return [TreeProblem(node=cycle[0], field="children", text=f"a claim cannot rest on itself: {way}")]
    reached = set(post_order(tree))
    hint = f"name it among somebody's children, or remove it; the root is {tree.root}"
    return [
        TreeProblem(node=claim, field="", text="cannot be reached from the root", hint=hint)
        for claim in tree.nodes
        if claim not in reached
    ]


def node_problems(tree: Tree, node: Proposition) -> list[TreeProblem]:
    """What is wrong with the numbers and the link of one claim, and what is worth knowing about it."""
    found = [
        TreeProblem(node=node.id, field=field, text=f"{value:g} is outside [0, 1]")
        for field, value in (("p", node.p), ("pinned", node.pinned))
        if value is not None and not (math.isfinite(value) and 0 <= value <= 1)
    ]
    found += _parent(tree, node) if node.children else _leaf(node)
    return found


def tree_problems(tree: Tree) -> list[TreeProblem]:
    """Everything wrong with the tree except what only its arithmetic shows (`result_problems`)."""
    found = structural_problems(tree)
    if not (math.isfinite(tree.missing) and 0 <= tree.missing <= 1):
        found.append(TreeProblem(node="", field="missing", text=f"{tree.missing:g} is outside [0, 1]"))
    if not (math.isfinite(tree.intercept_limit) and tree.intercept_limit >= 0):
        found.append(TreeProblem(node="", field="intercept_limit", text=f"{tree.intercept_limit:g} is no limit"))
    for node in tree.nodes.values():
        found += node_problems(tree, node)
    return found


def result_problems(tree: Tree, circuit: Circuit, values: list[float]) -> list[TreeProblem]:
    """Claims whose link leaves [0, 1] at these values, and joint chances that are not quite chances."""
    found: list[TreeProblem] = []
    for claim, place in circuit.claims.items():
        op = circuit.ops[place]
        raw = values[op[1]] if op[0] == "cap" else 0.5
        if not -ROUNDING <= raw <= 1 + ROUNDING:
            hint = "change the weights or the intercept so that the result is a probability"
            found.append(TreeProblem(node=claim, field="link", text=f"gives {raw:.4g}, outside [0, 1]", hint=hint))
    for claim in sorted(circuit.improper):
        text = "shares claims with its surroundings, but its weights leave [0, 1] for some truths of its children"
        hint = "chances of several claims together are only formal above it; scaling its weights cures that"
        found.append(TreeProblem(node=claim, field="link", text=text, hint=hint, warning=True))
    return found


def written_problems(tree: Tree, circuit: Circuit, values: list[float]) -> list[TreeProblem]:
    """Parents whose written p is not what their link gives; the link counts."""
    found: list[TreeProblem] = []
    for claim, place in circuit.claims.items():
        node = tree.nodes[claim]
        if node.children and node.p is not None and abs(node.p - values[place]) > CLOSE:
            text = f"{node.p:g} is written, the tree gives {values[place]:.4g}"
            hint = "the written number is not used; to hold a parent at a value, pin it"
            found.append(TreeProblem(node=claim, field="p", text=text, hint=hint, warning=True))
    return found


def _node(tree: Tree, key: str, node: Proposition) -> Iterator[TreeProblem]:
    if key != node.id:
        yield TreeProblem(node=key, field="id", text=f"is kept under {key} but called {node.id}")
    if not _ID.fullmatch(key) or key.upper() in RESERVED:
        hint = "ids look like P1, P1.2 or inflation_falls, and are none of AND, OR, NOT, PA"
        yield TreeProblem(node=key, field="id", text="cannot be an id", hint=hint)
    if not node.claim.strip():
        yield TreeProblem(node=key, field="claim", text="is empty", hint="write what is claimed in a sentence")
    for i, child in enumerate(node.children):
        if child not in tree.nodes:
            yield TreeProblem(node=key, field="children", text=f"there is no node {child}")
        if child in node.children[:i]:
            yield TreeProblem(node=key, field="children", text=f"{child} is named twice")


def _leaf(node: Proposition) -> Iterator[TreeProblem]:
    if node.link is not None:
        hint = "a leaf has a p; a link needs children"
        yield TreeProblem(node=node.id, field="link", text="the node has a link but no children", hint=hint)
    if node.pinned is not None:
        yield TreeProblem(node=node.id, field="pinned", text="only parents are pinned", hint="give a leaf its p")
    if node.p is None:
        failed = node.grounding.error if node.grounding else ""
        text = f"has no probability: {failed}" if failed else "has no probability yet"
        hint = "the tree's missing stands in; the claims above are marked incomplete"
        yield TreeProblem(node=node.id, field="p", text=text, hint=hint, warning=True)


def _parent(tree: Tree, node: Proposition) -> Iterator[TreeProblem]:
    if node.link is not None:
        yield from link_problems(node, node.link, intercept_limit=tree.intercept_limit)
        if isinstance(node.link, JudgedLink) and node.link.stale:
            text = "was judged before something beneath it changed"
            yield TreeProblem(node=node.id, field="link", text=text, warning=True)
    elif node.pinned is None:
        hint = "the tree's missing stands in; the claims above are marked incomplete"
        yield TreeProblem(node=node.id, field="link", text="has children but no link yet", hint=hint, warning=True)


def _cycle(tree: Tree) -> list[str]:
    """A way from a claim back to itself, if there is one."""
    done: set[str] = set()
    for start in tree.nodes:
        way, ahead = [start], [iter(tree.nodes[start].children)]
        while ahead and start not in done:
            child = next(ahead[-1], None)
            if child is None:
                ahead.pop()
                done.add(way.pop())
            elif child in way:
                return [*way[way.index(child) :], child]
            elif child not in done:
                way.append(child)
                ahead.append(iter(tree.nodes[child].children))
    return []
