"""A tree as a Bayes net, in the two formats that most programs read: BIF and XMLBIF 0.3."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.arithmetic.scaling import require_bayes_net
from foretell.forecasters.tree.description import ExportNames, decimal, one_line
from foretell.forecasters.tree.proposition import (
    AverageLink,
    FormulaLink,
    InhibitedNoisyOrLink,
    LinearLink,
    NoisyOrLink,
    Proposition,
    Tree,
    has_own_value,
    own_value,
    post_order,
)
from foretell.forecasters.tree.validation import InvalidTree, TreeProblem

MOST_PARENTS = 16
"""A table has 2ⁿ rows."""


@dataclass(frozen=True, kw_only=True)
class BayesVariable:
    """One binary variable and its table."""

    name: str
    id: str
    """Of the claim, or "P1:PA"."""
    text: str
    parents: tuple[str, ...] = ()
    """Names of the variables it hangs on: what is a child in the tree is a parent in the net."""
    chances: tuple[float, ...] = ()
    """P(true) for every combination of the parents, the first parent slowest, true before false."""


def bayes_net(tree: Tree) -> list[BayesVariable]:
    """The variables, parents before those that hang on them.

    Linear links that are no conditional chance have no table: `InvalidTree` names them and offers scaling.
    """
    require_bayes_net(tree)
    names = ExportNames()
    found: list[BayesVariable] = []
    for claim in post_order(tree):
        node = tree.nodes[claim]
        assumption = node.link.assumption if isinstance(node.link, FormulaLink) else None
        if assumption is not None and not has_own_value(node):
            key = f"{claim}:{ex.ASSUMPTION}"
            found.append(BayesVariable(name=names.of(key), id=key, text=assumption.text, chances=(assumption.p,)))
        found.append(_variable(tree, node, names))
    return found


def _variable(tree: Tree, node: Proposition, names: ExportNames) -> BayesVariable:
    if has_own_value(node):
        p = own_value(node, tree.missing)
        return BayesVariable(name=names.of(node.id), id=node.id, text=node.claim, chances=(p,))
    keys = list(node.children)
    if isinstance(node.link, FormulaLink) and node.link.assumption is not None:
        keys.append(f"{node.id}:{ex.ASSUMPTION}")
    if len(keys) > MOST_PARENTS:
        text = f"has {len(keys)} children: a table of 2^{len(keys)} rows is too large"
        raise InvalidTree(
            [TreeProblem(node=node.id, field="children", text=text, hint="put some of them under one claim")]
        )
    worlds = (dict(zip(keys, world, strict=True)) for world in product((True, False), repeat=len(keys)))
    chances = tuple(min(max(_chance(node, world), 0.0), 1.0) for world in worlds)
    parents = tuple(names.of(key) for key in keys)
    return BayesVariable(name=names.of(node.id), id=node.id, text=node.claim, parents=parents, chances=chances)


def _chance(node: Proposition, world: Mapping[str, bool]) -> float:
    """The chance of a claim where its children are so."""
    match node.link:
        case LinearLink(weights=weights, intercept=intercept):
            return intercept + sum(weights[child] for child in node.children if world[child])
        case AverageLink():
            return sum(world[child] for child in node.children) / len(node.children)
        case FormulaLink(expression=text):
            assumed = world.get(f"{node.id}:{ex.ASSUMPTION}", False)
            return float(ex.truth(ex.parse(text), {**world, ex.ASSUMPTION: assumed}))
        case NoisyOrLink(strengths=strengths, leak=leak):
            return 1 - (1 - leak) * _none_works(strengths, world)
        case InhibitedNoisyOrLink(strengths=strengths, inhibitors=inhibitors, leak=leak):
            return (1 - (1 - leak) * _none_works(strengths, world)) * _none_works(inhibitors, world)
        case _:
            raise TypeError(f"{node.id} has a number of its own")


def _none_works(strengths: Mapping[str, float], world: Mapping[str, bool]) -> float:
    left = 1.0
    for child, strength in strengths.items():
        left *= 1 - strength * world[child]
    return left


def to_bif(tree: Tree) -> str:
    """The net in the Bayesian Interchange Format."""
    variables = bayes_net(tree)
    lines = ["network tree {", "}"]
    for variable in variables:
        lines += [f"// {variable.id}: {one_line(variable.text)}", f"variable {variable.name} {{"]
        lines += ["  type discrete [ 2 ] { true, false };", "}"]
    for variable in variables:
        given = f" | {', '.join(variable.parents)}" if variable.parents else ""
        lines.append(f"probability ( {variable.name}{given} ) {{")
        lines += [f"  {row}" for row in _rows(variable)]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _rows(variable: BayesVariable) -> Iterator[str]:
    for world, chance in zip(product(("true", "false"), repeat=len(variable.parents)), variable.chances, strict=True):
        head = f"({', '.join(world)})" if world else "table"
        yield f"{head} {decimal(chance)}, {decimal(1 - chance)};"


def to_xmlbif(tree: Tree) -> str:
    """The net as XMLBIF 0.3."""
    variables = bayes_net(tree)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>tree</NAME>"]
    for variable in variables:
        # A comment, since readers disagree about what a property may hold; it must not contain two hyphens.
        lines.append(f"<!-- {one_line(f'{variable.id}: {variable.text}').replace('-', '‐')} -->")
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME>{variable.name}</NAME>"]
        lines += ["  <OUTCOME>true</OUTCOME>", "  <OUTCOME>false</OUTCOME>", "</VARIABLE>"]
    for variable in variables:
        table = " ".join(f"{decimal(chance)} {decimal(1 - chance)}" for chance in variable.chances)
        lines += ["<DEFINITION>", f"  <FOR>{variable.name}</FOR>"]
        lines += [f"  <GIVEN>{parent}</GIVEN>" for parent in variable.parents]
        lines += [f"  <TABLE>{table}</TABLE>", "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"


# A tree as a picture in words: Graphviz and Mermaid.

WIDTH = 60
"""Letters of a claim that are shown."""


def to_dot(tree: Tree) -> str:
    """For Graphviz: `dot -Tsvg`. Pinned claims are dashed, incomplete ones drawn in red."""
    names = ExportNames()
    lines = ["digraph tree {", "  rankdir=TB;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    for claim in reversed(post_order(tree)):
        node = tree.nodes[claim]
        style = ', style="rounded,dashed"' if node.pinned is not None else ""
        colour = ", color=red" if node.incomplete else ""
        label = _quoted(f"{_head(node)}\n{_shown(node.claim)}")
        lines.append(f'  {names.of(claim)} [label="{label}"{style}{colour}];')
    for claim in reversed(post_order(tree)):
        node = tree.nodes[claim]
        for child in node.children:
            label = _edge(node, child)
            told = f' [label="{_quoted(label)}"]' if label else ""
            lines.append(f"  {names.of(claim)} -> {names.of(child)}{told};")
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(tree: Tree) -> str:
    """For Mermaid, as GitHub and many editors draw it."""
    names = ExportNames()
    lines = ["flowchart TD"]
    for claim in reversed(post_order(tree)):
        node = tree.nodes[claim]
        lines.append(f'  n_{names.of(claim)}["{_entities(_head(node))}<br/>{_entities(_shown(node.claim))}"]')
    for claim in reversed(post_order(tree)):
        node = tree.nodes[claim]
        for child in node.children:
            label = _edge(node, child)
            arrow = f'-- "{_entities(label)}" -->' if label else "-->"
            lines.append(f"  n_{names.of(claim)} {arrow} n_{names.of(child)}")
    return "\n".join(lines) + "\n"


def _head(node: Proposition) -> str:
    number = "no number" if node.p is None else f"{node.p:.3f}"
    return f"{node.id}: {number}" + (" (pinned)" if node.pinned is not None else "")


def _shown(text: str) -> str:
    flat = one_line(text)
    return flat if len(flat) <= WIDTH else flat[: WIDTH - 1] + "…"


def _edge(node: Proposition, child: str) -> str:
    """The number a link gives to this child."""
    link = node.link
    if node.pinned is not None:
        return ""
    if isinstance(link, LinearLink):
        return f"{link.weights[child]:g}"
    if isinstance(link, NoisyOrLink | InhibitedNoisyOrLink) and child in link.strengths:
        return f"{link.strengths[child]:g}"
    if isinstance(link, InhibitedNoisyOrLink):
        return f"against: {link.inhibitors[child]:g}"
    return ""


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _entities(text: str) -> str:
    for sign, entity in (("#", "#35;"), ("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(sign, entity)
    return text


# A tree as a ProbLog program (De Raedt, Kimmig, Toivonen 2007), which gives the same probabilities.
#
# A leaf is a probabilistic fact, a formula a rule, a cause of a noisy-or a probabilistic rule, and a linear link an
# annotated disjunction that picks the child, or the intercept, which decides.


def to_problog(tree: Tree, *, queries: Iterable[str] | None = None) -> str:
    """The program; it asks for the root unless other claims are named.

    Linear links that are no conditional chance have no program: `InvalidTree` names them and offers scaling.
    """
    require_bayes_net(tree)
    writer = _ProblogWriter(tree)
    lines: list[str] = []
    for claim in post_order(tree):
        node = tree.nodes[claim]
        lines.append(f"% {claim}: {one_line(node.claim)}")
        lines.extend(writer.clauses(node))
    lines.extend(f"query({writer.names.of(claim)})." for claim in (queries or [tree.root]))
    return "\n".join(lines) + "\n"


def problog_names(tree: Tree) -> dict[str, str]:
    """The atom that stands for each claim."""
    names = _ProblogWriter(tree).names
    return {claim: names.of(claim) for claim in tree.nodes}


class _ProblogWriter:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.names = ExportNames(lower=True)
        # Claims come first, so that no auxiliary atom takes a claim's name.
        for claim in tree.nodes:
            self.names.of(claim)

    def clauses(self, node: Proposition) -> Iterator[str]:
        atom, link = self.names.of(node.id), node.link
        if has_own_value(node):
            yield f"{decimal(own_value(node, self.tree.missing))}::{atom}."
        elif isinstance(link, LinearLink):
            yield from self._picked(node, link.intercept, link.weights)
        elif isinstance(link, AverageLink):
            yield from self._picked(node, 0.0, {child: 1 / len(node.children) for child in node.children})
        elif isinstance(link, FormulaLink):
            yield from self._formula(node, link)
        elif isinstance(link, NoisyOrLink):
            yield from self._causes(atom, link.strengths, link.leak)
        elif isinstance(link, InhibitedNoisyOrLink):
            yield from self._inhibited(node, link)

    def _picked(self, node: Proposition, intercept: float, weights: Mapping[str, float]) -> Iterator[str]:
        atom = self.names.of(node.id)
        chances = _adding_up({"": intercept, **weights})
        picks = {child: self.names.of(f"{node.id} picks {child}") for child in chances}
        if picks:
            yield "; ".join(f"{decimal(chance)}::{picks[child]}" for child, chance in chances.items()) + "."
        for child, pick in picks.items():
            yield f"{atom} :- {pick}, {self.names.of(child)}." if child else f"{atom} :- {pick}."
        if not picks:
            yield f"0.0::{atom}."

    def _formula(self, node: Proposition, link: FormulaLink) -> Iterator[str]:
        assumed = self.names.of(f"{node.id}:{ex.ASSUMPTION}")
        if link.assumption is not None:
            yield f"% {ex.ASSUMPTION} of {node.id}: {one_line(link.assumption.text)}"
            yield f"{decimal(link.assumption.p)}::{assumed}."
        yield f"{self.names.of(node.id)} :- {self._body(ex.parse(link.expression), assumed, True)}."

    def _body(self, item: ex.Expression, assumed: str, wanted: bool) -> str:
        """The expression, or its opposite, with negation at the atoms only."""
        match item:
            case ex.Var():
                atom = assumed if item.name == ex.ASSUMPTION else self.names.of(item.name)
                return atom if wanted else f"\\+ {atom}"
            case ex.Not():
                return self._body(item.item, assumed, not wanted)
            case ex.And() | ex.Or():
                parts = [self._body(part, assumed, wanted) for part in item.items]
                return f"({(', ' if isinstance(item, ex.And) == wanted else ' ; ').join(parts)})"

    def _causes(self, atom: str, strengths: Mapping[str, float], leak: float) -> Iterator[str]:
        yield f"{decimal(leak)}::{atom}."
        for child, strength in strengths.items():
            yield f"{decimal(strength)}::{atom} :- {self.names.of(child)}."

    def _inhibited(self, node: Proposition, link: InhibitedNoisyOrLink) -> Iterator[str]:
        caused, blocked = self.names.of(f"{node.id} caused"), self.names.of(f"{node.id} prevented")
        yield from self._causes(caused, link.strengths, link.leak)
        yield from self._causes(blocked, link.inhibitors, 0.0)
        yield f"{self.names.of(node.id)} :- {caused}, \\+ {blocked}."


def _adding_up(chances: Mapping[str, float]) -> dict[str, float]:
    """Chances above 0 whose sum, as a machine adds them, does not exceed 1 by rounding."""
    found = {key: chance for key, chance in chances.items() if chance > 0}
    while found and sum(found.values()) > 1:
        largest = max(found, key=lambda key: found[key])
        found[largest] -= max(sum(found.values()) - 1, 1e-16)
    return found


TEXT_FORMATS: Mapping[str, Callable[[Tree], str]] = {
    "problog": to_problog,
    "bif": to_bif,
    "xmlbif": to_xmlbif,
    "dot": to_dot,
    "mermaid": to_mermaid,
}
"""Formats of other programs, by name."""
