"""Validate a tree: ids, root, children, cycles, reachability, links, and results in [0, 1]."""

import math
from collections.abc import Iterator
from itertools import combinations

from foretell.forecasters.tree.arithmetic.circuit import ROUNDING, Circuit
from foretell.forecasters.tree.case_links import SUM_LIMIT, AllLink, ChainedCasesLink, SplitLink
from foretell.forecasters.tree.formula import ASSUMPTION, ID
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Proposition, Tree, post_order
from foretell.forecasters.tree.text import TreeProblem
from foretell.forecasters.tree.wording import CONTAINED, TOGETHER, claim_overlap
from foretell.patterns import pattern

_ID = pattern(ID)
RESERVED = frozenset({"AND", "OR", "NOT", ASSUMPTION})
MOST_COMPARED = 60
"""Number of children of a claim that are compared with each other; every pair of them is."""
CLOSE = 1e-3
"""Tolerance between a parent's written p and the result of its link, because people round."""


def structural_problems(tree: Tree) -> list[TreeProblem]:
    """Return the problems of the tree's structure. If there are none, the tree can be traversed."""
    problems = [problem for key, node in tree.nodes.items() for problem in _node(tree, key, node)]
    if tree.root not in tree.nodes:
        problems.insert(0, TreeProblem(node="", field="root", text=f"there is no node {tree.root}"))
    if problems:
        return problems
    cycle = _cycle(tree)
    if cycle:
        path = " → ".join(cycle)
        return [TreeProblem(node=cycle[0], field="children", text=f"a claim cannot depend on itself: {path}")]
    reached = set(post_order(tree))
    hint = f"add it to the children of another claim, or remove it; the root is {tree.root}"
    return [
        TreeProblem(node=claim, field="", text="cannot be reached from the root", hint=hint)
        for claim in tree.nodes
        if claim not in reached
    ]


def node_problems(tree: Tree, node: Proposition) -> list[TreeProblem]:
    """Return errors and warnings about the probabilities and the link of one claim."""
    problems = [
        TreeProblem(node=node.id, field=field, text=f"{value:g} is outside [0, 1]")
        for field, value in (("p", node.p), ("pinned", node.pinned))
        if value is not None and not (math.isfinite(value) and 0 <= value <= 1)
    ]
    problems += _parent(tree, node) if node.children else _leaf(node)
    return problems


def tree_problems(tree: Tree) -> list[TreeProblem]:
    """Return all problems except those that need the computed values (`result_problems`)."""
    problems = structural_problems(tree)
    if not (math.isfinite(tree.missing) and 0 <= tree.missing <= 1):
        problems.append(TreeProblem(node="", field="missing", text=f"{tree.missing:g} is outside [0, 1]"))
    if not (math.isfinite(tree.intercept_limit) and tree.intercept_limit >= 0):
        problems.append(
            TreeProblem(node="", field="intercept_limit", text=f"{tree.intercept_limit:g} is not a valid limit")
        )
    for node in tree.nodes.values():
        problems += node_problems(tree, node)
    if all(problem.warning for problem in problems):
        problems += [problem for node in tree.nodes.values() for problem in _overlaps(tree, node)]
    return problems


def _overlaps(tree: Tree, node: Proposition) -> Iterator[TreeProblem]:
    """Warn about children that say the same in part, or that were judged to move together.

    Scenarios that exclude each other are worded alike, and the steps of a sequence contain each other; both are no
    overlap. Where the link states how likely one child is given another, it counts their overlap already.
    """
    stated = isinstance(node.link, ChainedCasesLink) and node.link.ratios
    exclusive, sequence = isinstance(node.link, SplitLink), isinstance(node.link, AllLink)
    hint = "reword one, remove it, or state how likely one is given the other"
    for a, b in combinations(node.children[:MOST_COMPARED], 2):
        words = claim_overlap(tree.nodes[a].claim, tree.nodes[b].claim)
        correlation = node.together.get(f"{a} {b}", 0.0)
        if words.startswith("overlap") and (stated or exclusive or (sequence and words == CONTAINED)):
            words = ""
        if not words and not stated and abs(correlation) >= TOGETHER:
            words = f"were judged to move together (correlation {correlation:+.1f})"
        if words:
            yield TreeProblem(node=node.id, field="children", text=f"{a} and {b} {words}", hint=hint, warning=True)


def result_problems(tree: Tree, circuit: Circuit, values: list[float]) -> list[TreeProblem]:
    """Report claims whose link leaves [0, 1] at these values, and joint probabilities that are inconsistent."""
    problems: list[TreeProblem] = []
    for claim, place in circuit.claims.items():
        op = circuit.ops[place]
        raw = values[op[1]] if op[0] == "cap" else 0.5
        link = tree.nodes[claim].link
        if isinstance(link, SplitLink):
            total = sum(values[circuit.claims[child]] for child in link.then if child in circuit.claims)
            if total > SUM_LIMIT:
                text = f"its scenarios exclude each other, but add up to {total:.4g}"
                hint = "lower them until they add up to 1"
                problems.append(TreeProblem(node=claim, field="children", text=text, hint=hint, warning=True))
        elif not -ROUNDING <= raw <= 1 + ROUNDING:
            hint = "change the weights or the intercept so that the result is a probability"
            problems.append(TreeProblem(node=claim, field="link", text=f"gives {raw:.4g}, outside [0, 1]", hint=hint))
    for claim in sorted(circuit.improper):
        text = "shares claims with other branches, but its weighted sum leaves [0, 1] for some values of its children"
        hint = "joint probabilities above it may be invalid; scale its weights to avoid this"
        problems.append(TreeProblem(node=claim, field="link", text=text, hint=hint, warning=True))
    return problems


def written_problems(tree: Tree, circuit: Circuit, values: list[float]) -> list[TreeProblem]:
    """Warn about parents whose written p differs from the result of their link; the link takes precedence."""
    problems: list[TreeProblem] = []
    for claim, place in circuit.claims.items():
        node = tree.nodes[claim]
        if node.children and node.p is not None and abs(node.p - values[place]) > CLOSE:
            text = f"{node.p:g} is written, but the tree gives {values[place]:.4g}"
            hint = "the written number is not used; to set the probability of a parent, use an override"
            problems.append(TreeProblem(node=claim, field="p", text=text, hint=hint, warning=True))
    return problems


def _node(tree: Tree, key: str, node: Proposition) -> Iterator[TreeProblem]:
    if key != node.id:
        yield TreeProblem(node=key, field="id", text=f"is stored under {key} but called {node.id}")
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


def _stale(node: Proposition, hint: str) -> Iterator[TreeProblem]:
    if node.stale:
        yield TreeProblem(node=node.id, field="", text=f"is stale: {node.stale}", hint=hint, warning=True)


def _leaf(node: Proposition) -> Iterator[TreeProblem]:
    yield from _stale(node, "foretell tree update researches it again")
    if node.link is not None:
        hint = "a leaf has a p; a link needs children"
        yield TreeProblem(node=node.id, field="link", text="the node has a link but no children", hint=hint)
    if node.pinned is not None:
        yield TreeProblem(node=node.id, field="pinned", text="only parents can be overridden", hint="give a leaf its p")
    if node.p is None:
        failed = node.grounding.error if node.grounding else ""
        text = f"has no probability: {failed}" if failed else "has no probability yet"
        hint = "the tree's `missing` is used; the claims above are marked incomplete"
        yield TreeProblem(node=node.id, field="p", text=text, hint=hint, warning=True)


def _parent(tree: Tree, node: Proposition) -> Iterator[TreeProblem]:
    yield from _stale(node, "foretell tree update judges its link again")
    if node.failed:
        text = f"synthesis failed: {node.failed}"
        used = "a direct estimate" if isinstance(node.link, JudgedLink) else "the mean of its children"
        hint = f"{used} is used; foretell tree update tries again"
        yield TreeProblem(node=node.id, field="link", text=text, hint=hint, warning=True)
    if node.link is not None:
        yield from node.link.problems(node.id, node.children, intercept_limit=tree.intercept_limit)
        if node.id != tree.root and isinstance(node.link, SplitLink) and node.link.options:
            text, hint = "only the root can answer several options", "give it a row of one chance per scenario"
            yield TreeProblem(node=node.id, field="link.options", text=text, hint=hint)
    elif node.pinned is None:
        hint = "the tree's `missing` is used; the claims above are marked incomplete"
        yield TreeProblem(node=node.id, field="link", text="has children but no link yet", hint=hint, warning=True)


def _cycle(tree: Tree) -> list[str]:
    """Return a cycle; empty if there is none."""
    done: set[str] = set()
    for start in tree.nodes:
        path, ahead = [start], [iter(tree.nodes[start].children)]
        while ahead and start not in done:
            child = next(ahead[-1], None)
            if child is None:
                ahead.pop()
                done.add(path.pop())
            elif child in path:
                return [*path[path.index(child) :], child]
            elif child not in done:
                path.append(child)
                ahead.append(iter(tree.nodes[child].children))
    return []
