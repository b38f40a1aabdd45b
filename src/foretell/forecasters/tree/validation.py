"""Validate a tree: ids, root, children, cycles, reachability, links, and results in [0, 1]."""

import math
import re
from collections.abc import Iterator

from foretell.forecasters.tree.arithmetic.circuit import ROUNDING, Circuit
from foretell.forecasters.tree.formula import ASSUMPTION, ID
from foretell.forecasters.tree.proposition import Proposition, Tree, post_order
from foretell.forecasters.tree.text import TreeProblem

_ID = re.compile(ID)
RESERVED = frozenset({"AND", "OR", "NOT", ASSUMPTION})
CLOSE = 1e-3
"""Tolerance between a parent's written p and the result of its link, because people round."""


def structural_problems(tree: Tree) -> list[TreeProblem]:
    """Return the problems of the tree's structure. If there are none, the tree can be traversed."""
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
    """Return errors and warnings about the probabilities and the link of one claim."""
    found = [
        TreeProblem(node=node.id, field=field, text=f"{value:g} is outside [0, 1]")
        for field, value in (("p", node.p), ("pinned", node.pinned))
        if value is not None and not (math.isfinite(value) and 0 <= value <= 1)
    ]
    found += _parent(tree, node) if node.children else _leaf(node)
    return found


def tree_problems(tree: Tree) -> list[TreeProblem]:
    """Return all problems except those that need the computed values (`result_problems`)."""
    found = structural_problems(tree)
    if not (math.isfinite(tree.missing) and 0 <= tree.missing <= 1):
        found.append(TreeProblem(node="", field="missing", text=f"{tree.missing:g} is outside [0, 1]"))
    if not (math.isfinite(tree.intercept_limit) and tree.intercept_limit >= 0):
        found.append(TreeProblem(node="", field="intercept_limit", text=f"{tree.intercept_limit:g} is no limit"))
    for node in tree.nodes.values():
        found += node_problems(tree, node)
    return found


def result_problems(tree: Tree, circuit: Circuit, values: list[float]) -> list[TreeProblem]:
    """Report claims whose link leaves [0, 1] at these values, and joint probabilities that are inconsistent."""
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
    """Warn about parents whose written p differs from the result of their link; the link takes precedence."""
    found: list[TreeProblem] = []
    for claim, place in circuit.claims.items():
        node = tree.nodes[claim]
        if node.children and node.p is not None and abs(node.p - values[place]) > CLOSE:
            text = f"{node.p:g} is written, the tree gives {values[place]:.4g}"
            hint = "the written number is not used; an override sets a parent to a value, whatever its children say"
            found.append(TreeProblem(node=claim, field="p", text=text, hint=hint, warning=True))
    return found


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
        yield TreeProblem(node=node.id, field="pinned", text="only parents are overridden", hint="give a leaf its p")
    if node.p is None:
        failed = node.grounding.error if node.grounding else ""
        text = f"has no probability: {failed}" if failed else "has no probability yet"
        hint = "the tree's missing stands in; the claims above are marked incomplete"
        yield TreeProblem(node=node.id, field="p", text=text, hint=hint, warning=True)


def _parent(tree: Tree, node: Proposition) -> Iterator[TreeProblem]:
    yield from _stale(node, "foretell tree update has its rule judged again")
    if node.failed:
        text, hint = (
            f"synthesis failed: {node.failed}",
            "the mean of its children stands in; foretell tree update",
        )
        yield TreeProblem(node=node.id, field="link", text=text, hint=f"{hint} asks again", warning=True)
    if node.link is not None:
        yield from node.link.problems(node.id, node.children, intercept_limit=tree.intercept_limit)
    elif node.pinned is None:
        hint = "the tree's missing stands in; the claims above are marked incomplete"
        yield TreeProblem(node=node.id, field="link", text="has children but no link yet", hint=hint, warning=True)


def _cycle(tree: Tree) -> list[str]:
    """Return a cycle; empty if there is none."""
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
