"""Export a tree as text or to other programs: Bayes nets, Graphviz, ProbLog."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

import numpy as np

from foretell.forecasters.tree.arithmetic.circuit import run_many
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.arithmetic.evaluation import circuit_and_values
from foretell.forecasters.tree.arithmetic.scaling import links_without_bayes_net
from foretell.forecasters.tree.edits import Unpin
from foretell.forecasters.tree.links import JudgedLink, Link
from foretell.forecasters.tree.proposition import Proposition, Tree, has_own_value, own_value, parents_of, post_order
from foretell.forecasters.tree.text import (
    ExportNames,
    InvalidTree,
    TreeProblem,
    decimal,
    decimal_probability,
    one_line,
    raise_errors,
)
from foretell.forecasters.tree.what_if import resynthesize
from foretell.frozen import frozen
from foretell.number_text import brief_percent, percent

# Bayes nets in the Bayesian Interchange Format, which pgmpy, pyAgrum and most other programs can read.

MOST_PARENTS = 16
"""Maximum number of a variable's parents, because its table has 2ⁿ rows."""


@frozen
class BayesVariable:
    """One binary variable of a Bayes net and its conditional probability table."""

    name: str
    id: str
    """Id of the claim, or of an assumption, such as "P1:PA"."""
    text: str
    parents: tuple[str, ...] = ()
    """Names of the variables it depends on; a child in the tree is a parent in the net."""
    chances: tuple[float, ...] = ()
    """P(true) for every combination of the parents: the first parent varies slowest, true comes before false."""


def bayes_net(tree: Tree) -> list[BayesVariable]:
    """Return the variables of the tree's Bayes net, each after its parents.

    Raises `InvalidTree` if the tree has linear links that are not conditional probabilities, because these have no
    table; the error names them and suggests scaling.
    """
    raise_errors(links_without_bayes_net(tree))
    names = ExportNames()
    variables: list[BayesVariable] = []
    chains = _chains(tree)
    joined = {item.name for chain in chains.values() for item in chain}
    for claim in post_order(tree):
        node = tree.nodes[claim]
        if has_own_value(node):
            if claim not in joined:
                p = own_value(node, tree.missing)
                variables.append(BayesVariable(name=names.of(claim), id=claim, text=node.claim, chances=(p,)))
            continue
        assert node.link is not None
        read_as = {item.child: item.name for item in chains.get(claim, ())}
        for item in chains.get(claim, ()):
            earlier, text = tuple(names.of(name) for name in item.earlier), tree.nodes[item.child].claim
            variables.append(
                BayesVariable(
                    name=names.of(item.name), id=item.name, text=text, parents=earlier, chances=tuple(item.chances)
                )
            )
        for key, assumption in node.link.assumptions(claim).items():
            variables.append(BayesVariable(name=names.of(key), id=key, text=assumption.text, chances=(assumption.p,)))
        size = len(node.children) + len(node.link.assumptions(claim))
        if size > MOST_PARENTS:
            text = f"has {size} children: a table of 2^{size} rows is too large"
            hint = "put some of them under one claim"
            raise InvalidTree([TreeProblem(node=claim, field="children", text=text, hint=hint)])
        inputs, chances = conditional_chances(node.link, claim, node.children)
        parents = tuple(names.of(read_as.get(key, key)) for key in inputs)
        variables.append(
            BayesVariable(name=names.of(claim), id=claim, text=node.claim, parents=parents, chances=tuple(chances))
        )
    return variables


@frozen
class _ChainedChild:
    """A child whose chance depends on those of its siblings that come before it."""

    child: str
    name: str
    """The child's id, if the claim is the only one that reads it and its number is given; otherwise a variable of its
    own with the child's current probability."""
    earlier: tuple[str, ...]
    """Names of the children before it."""
    chances: list[float]
    """P(true) for every combination of the earlier ones, in the order of `BayesVariable.chances`."""


def _chains(tree: Tree) -> dict[str, list[_ChainedChild]]:
    """Return the children that depend on each other, by their parent."""
    parents, chains = parents_of(tree.nodes), dict[str, list[_ChainedChild]]()
    for id, node in tree.nodes.items():
        if node.link is None or has_own_value(node):
            continue
        p = {child: tree.nodes[child].p for child in node.children}
        steps = node.link.chain({child: tree.missing if value is None else value for child, value in p.items()})
        alone = all(has_own_value(tree.nodes[child]) and parents[child] == [id] for child in node.children)
        names = [step.child if alone else f"{id} reads {step.child}" for step in steps]
        for place, step in enumerate(steps):
            unbroken = tuple(other.stays for other in steps[:place])
            worlds = product((True, False), repeat=place)
            chances = [step.holds if world == unbroken else step.broken for world in worlds]
            item = _ChainedChild(child=step.child, name=names[place], earlier=tuple(names[:place]), chances=chances)
            chains.setdefault(id, []).append(item)
    return chains


def to_bif(tree: Tree) -> str:
    """Export the Bayes net in the Bayesian Interchange Format."""
    variables = bayes_net(tree)
    lines = ["network tree {", "}"]
    for variable in variables:
        lines += [f"// {variable.id}: {one_line(variable.text)}", f"variable {variable.name} {{"]
        lines += ["  type discrete [ 2 ] { true, false };", "}"]
    for variable in variables:
        condition = f" | {', '.join(variable.parents)}" if variable.parents else ""
        lines.append(f"probability ( {variable.name}{condition} ) {{")
        worlds = product(("true", "false"), repeat=len(variable.parents))
        for world, chance in zip(worlds, variable.chances, strict=True):
            head = f"({', '.join(world)})" if world else "table"
            lines.append(f"  {head} {decimal(chance)}, {decimal(1 - chance)};")
        lines.append("}")
    return "\n".join(lines) + "\n"


# Drawings: Graphviz.

WIDTH = 60
"""Maximum number of characters of a claim in a drawing."""


def to_dot(tree: Tree) -> str:
    """Export the tree for Graphviz (`dot -Tsvg`). Overridden claims are dashed, incomplete ones red."""

    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    names = ExportNames()
    nodes: list[str] = []
    edges: list[str] = []
    for node in (tree.nodes[claim] for claim in reversed(post_order(tree))):
        style = ', style="rounded,dashed"' if node.pinned is not None else ""
        colour = ", color=red" if node.incomplete else ""
        label = quoted("\n".join(_label(node)))
        nodes.append(f'  {names.of(node.id)} [label="{label}"{style}{colour}];')
        for child, weight in _arrows(node):
            shown = f' [label="{quoted(weight)}"]' if weight else ""
            edges.append(f"  {names.of(node.id)} -> {names.of(child)}{shown};")
    head = ["digraph tree {", "  rankdir=TB;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    return "\n".join([*head, *nodes, *edges, "}"]) + "\n"


def _label(node: Proposition) -> tuple[str, str]:
    """Return two lines: the id with its probability, and the claim, shortened if it is long."""
    number = "no number" if node.p is None else percent(node.p, 1)
    claim = one_line(node.claim)
    shown = claim if len(claim) <= WIDTH else claim[: WIDTH - 1] + "…"
    marks = [mark for mark, so in (("override", node.pinned is not None), ("stale", node.stale)) if so]
    return f"{node.id}: {number}" + (f" ({', '.join(marks)})" if marks else ""), shown


def _arrows(node: Proposition) -> list[tuple[str, str]]:
    """Return the children, each with the label of its arrow."""
    link = node.link if node.pinned is None else None
    return [(child, link.child_label(child) if link is not None else "") for child in node.children]


# ProbLog (De Raedt, Kimmig, Toivonen 2007): a program that gives the same probabilities.
#
# A leaf is a probabilistic fact, a formula a rule, a cause of a noisy-or a probabilistic rule, and a linear link an
# annotated disjunction that picks the child, or the intercept, which decides.


def to_problog(tree: Tree, *, queries: Iterable[str] | None = None) -> str:
    """Export the tree as a ProbLog program that queries the root, or the claims in `queries`.

    Raises `InvalidTree` if the tree has linear links that are not conditional probabilities, because these have no
    program; the error names them and suggests scaling.
    """
    raise_errors(links_without_bayes_net(tree))
    names = ExportNames(lower=True)
    # Claims come first, so that no auxiliary atom takes a claim's name.
    for claim in tree.nodes:
        names.of(claim)
    lines: list[str] = []
    chains = _chains(tree)
    joined = {item.name for chain in chains.values() for item in chain}
    for claim in post_order(tree):
        node = tree.nodes[claim]
        lines.append(f"% {claim}: {one_line(node.claim)}")
        if has_own_value(node):
            if claim not in joined:
                lines.append(f"{decimal(own_value(node, tree.missing))}::{names.of(claim)}.")
        elif node.link is not None and claim in chains:
            read_as = {item.child: item.name for item in chains[claim]}
            for item in chains[claim]:
                lines.extend(_clauses(names.of(item.name), [names.of(name) for name in item.earlier], item.chances))
            inputs, chances = conditional_chances(node.link, claim, node.children)
            lines.extend(_clauses(names.of(claim), [names.of(read_as[child]) for child in inputs], chances))
        elif node.link is not None:
            clauses = node.link.problog(claim, node.children, names.of)
            lines.extend(_clause_per_world(node.link, claim, node.children, names.of) if clauses is None else clauses)
    lines.extend(f"query({names.of(claim)})." for claim in (queries or [tree.root]))
    return "\n".join(lines) + "\n"


@frozen
class OutlineLine:
    """A claim and its position in the outline."""

    node: Proposition
    depth: int
    again: bool = False
    """Whether the claim was already shown, with its children, further up."""


def outline(tree: Tree) -> Iterator[OutlineLine]:
    """Yield the claims in reading order; a shared claim is repeated without its children."""
    shown: set[str] = set()
    stack = [(tree.root, 0)]
    while stack:
        id, depth = stack.pop()
        again = id in shown
        yield OutlineLine(node=tree.nodes[id], depth=depth, again=again)
        if not again:
            shown.add(id)
            stack.extend((child, depth + 1) for child in reversed(tree.nodes[id].children))


def claim_marks(node: Proposition) -> list[str]:
    """Return the tags shown next to a claim's probability, such as override, stale or failed."""
    marks: list[str] = []
    if node.pinned is not None:
        marks.append("override")
    if isinstance(node.link, JudgedLink):
        marks.append("judged before a change" if node.link.stale else "judged")
    if node.failed:
        marks.append("synthesis failed")
    if node.stale:
        marks.append(f"stale: {node.stale}")
    if node.children and node.link is None and node.pinned is None:
        marks.append("no link yet")
    if not node.children and node.p is None:
        marks.append("failed" if node.grounding is not None and node.grounding.error else "not grounded")
    elif node.incomplete:
        marks.append(f"without {', '.join(node.incomplete)}")
    return marks


def tree_failures(tree: Tree) -> list[str]:
    """Return one sentence for each claim with a failure that affects the answer."""
    failures: list[str] = []
    for node in tree.nodes.values():
        if node.children and node.failed and node.pinned is None:
            why = one_line(node.failed)
            used = "a direct estimate" if isinstance(node.link, JudgedLink) else "the mean of its children"
            failures.append(f"{node.id}: synthesis failed, {used} is used ({why})")
        elif not node.children and node.p is None and node.grounding is not None and node.grounding.error:
            why = one_line(node.grounding.error)
            failures.append(f"{node.id}: grounding failed, {brief_percent(tree.missing)} is used ({why})")
    return failures


def tree_caveats(tree: Tree) -> list[str]:
    """Return one sentence for each reason to rely less on the answer although nothing in it failed."""
    caveats: list[str] = []
    if not tree.nodes[tree.root].children:
        caveats.append(f"{tree.root}: nothing was broken down, so the answer is one estimate of the whole claim")
    for node in tree.nodes.values():
        if (grounding := node.grounding) is None or node.p is None:
            continue
        if grounding.caveat:
            rests = f"{brief_percent(node.p)} rests on the model alone"
            caveats.append(f"{node.id}: {one_line(grounding.caveat)}, so {rests}")
        if len(grounding.route) > 1:
            caveats.append(f"{node.id}: {'; '.join(map(one_line, grounding.route))}")
    if missing := tree.nodes[tree.root].incomplete:
        stand_in = brief_percent(tree.missing)
        caveats.append(f"Without a number of their own: {', '.join(missing)}. {stand_in} stands in for them")
    return caveats


def stale_parts(tree: Tree) -> list[str]:
    """Return one sentence for each claim whose grounding or link was made before a later change."""
    stale = [f"{node.id} is stale: {one_line(node.stale)}" for node in tree.nodes.values() if node.stale]
    return [*stale, *(f"{id} was judged before something below it changed" for id in judged_before(tree))]


def judged_before(tree: Tree) -> list[str]:
    """Return the claims that were judged as a whole before something below them changed."""
    judged = {id: node.link for id, node in tree.nodes.items() if isinstance(node.link, JudgedLink) and not node.stale}
    return [id for id, link in judged.items() if link.stale]


def link_in_words(node: Proposition) -> str:
    """Describe in words how the claim's probability is computed.

    >>> from foretell.forecasters.tree.links import LinearLink
    >>> link = LinearLink(weights={"P1": 0.5}, intercept=0.05)
    >>> link_in_words(Proposition(id="P0", claim="c", children=("P1",), link=link))
    '0.05 whatever happens, and 0.5 times the chance of P1.'
    """
    if not node.children:
        failed = node.grounding.error if node.grounding is not None else ""
        return f"It could not be grounded: {one_line(failed)}." if failed else "A leaf: its number is given."
    if node.link is None:
        return "No link yet."
    override = f"Overridden by {brief_percent(node.pinned)}; its rule: " if node.pinned is not None else ""
    return override + node.link.describe(node.children)


def link_in_numbers(tree: Tree, node: Proposition) -> str:
    """Show the link as arithmetic with the current values; empty for leaves and judged claims."""
    if not node.children or node.link is None or node.link.own_probability is not None:
        return ""
    shown = node.link.show_arithmetic({child: decimal_probability(tree.nodes[child].p) for child in node.children})
    result = node.p
    if node.pinned is not None:
        result = resynthesize(tree, [Unpin(id=node.id)]).nodes[node.id].p
    return f"{shown} = {decimal_probability(result)}{_sharing(tree, node)}".removeprefix(" = ")


def _sharing(tree: Tree, node: Proposition) -> str:
    """Return a note if branches share claims, so that the numbers shown do not determine the result."""
    if node.linear_form is not None or (node.link is not None and node.link.from_numbers):
        return ""
    circuit, _ = circuit_and_values(tree)
    if all(child in circuit.pinnable for child in node.children):
        return ""
    return ", computed case by case because branches below share claims"


def _clause_per_world(link: Link, node: str, children: Sequence[str], atom: Callable[[str], str]) -> Iterator[str]:
    """Yield one ProbLog clause for every combination of a claim's inputs."""
    inputs, chances = conditional_chances(link, node, children)
    for name, assumption in link.assumptions(node).items():
        yield f"{decimal(assumption.p)}::{atom(name)}."
    yield from _clauses(atom(node), [atom(name) for name in inputs], chances)


def _clauses(effect: str, causes: Sequence[str], chances: Sequence[float]) -> Iterator[str]:
    """Yield one ProbLog clause for every combination of the causes."""
    for world, chance in zip(product((True, False), repeat=len(causes)), chances, strict=True):
        body = [cause if so else f"\\+ {cause}" for cause, so in zip(causes, world, strict=True)]
        yield f"{decimal(chance)}::{effect} :- {', '.join(body)}." if body else f"{decimal(chance)}::{effect}."


def conditional_chances(link: Link, node: str, children: Sequence[str]) -> tuple[list[str], list[float]]:
    """Return the inputs (children and assumptions), and the claim's probability for every combination of their values.

    The first input varies slowest, and true comes before false.

    >>> from foretell.forecasters.tree.links import NoisyOrLink
    >>> conditional_chances(NoisyOrLink(strengths={"P1": 0.5, "P2": 1.0}, leak=0.0), "P0", ("P1", "P2"))
    (['P1', 'P2'], [1.0, 0.5, 1.0, 0.0])
    """
    inputs = [*children, *link.assumptions(node)]
    top = Proposition(id=node, claim=node, children=tuple(children), link=link)
    leaves = {child: Proposition(id=child, claim=child, p=0.0) for child in children}
    circuit = compile_tree(Tree(root=node, nodes={node: top, **leaves}))
    count = 2 ** len(inputs)
    worlds = np.arange(count)
    truths = {name: 1.0 - (worlds >> (len(inputs) - 1 - place) & 1).astype(float) for place, name in enumerate(inputs)}
    return inputs, run_many(circuit, truths, count)[circuit.claims[node]].tolist()
