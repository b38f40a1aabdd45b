"""What-if: apply edits to a tree and recompute only the claims above them, without a model."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import count as count_up
from itertools import islice
from typing import Any

from foretell.forecasters.tree.arithmetic.circuit import ROUNDING, Circuit, rerun
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.arithmetic.evaluation import (
    EvaluationCache,
    Results,
    cache_of,
    evaluated,
    stale_claims,
    with_cache,
    with_numbers,
)
from foretell.forecasters.tree.edits import Edit, EditSession, Scenario, SetP
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Proposition, Tree, TreeLayout, has_own_value, layout, own_value
from foretell.forecasters.tree.text import raise_errors
from foretell.forecasters.tree.validation import result_problems
from foretell.frozen import frozen


def resynthesize(tree: Tree, edits: Iterable[Edit]) -> Tree:
    """Apply edits and recompute; the result is bit for bit the same as recomputing the whole tree.

    Only the claims above an edit are recomputed, and no model is called. Pinned claims above an edit keep their value;
    judged ones keep their probability and are marked stale. A new link must give a probability; if new values push an
    old link out of [0, 1], its claim is clamped (see `clamped_claims`). Raises `InvalidTree`, which names the edit that
    is not valid. A tree that was not computed yet (read or changed by other means) is computed first.
    """
    tree = tree if tree.cache is not None else evaluated(tree)
    known = cache_of(tree)
    assert known is not None
    editing = EditSession(tree)
    tree = editing.apply(edits)
    plan = layout(tree) if editing.rebuilt else known.plan
    start = {id for id in editing.changed_numbers if id in tree.nodes}
    reworded = {id for id in editing.changed_texts if id in tree.nodes}
    above = _upward(tree, plan, start | reworded, lambda node: node.pinned is None)
    tree = _with_stale(tree, above - editing.judged)
    affected = {*start, *_upward(tree, plan, start, lambda node: not has_own_value(node))}
    order = sorted(affected | above, key=plan.rank.__getitem__)
    inputs = _new_inputs(tree, known.circuit, start, editing) if known.circuit is not None else None
    if known.circuit is not None and inputs is not None:
        values = rerun(known.circuit, known.values, inputs)
        results = Results.of(known.circuit, values, affected)
        return with_cache(with_numbers(tree, order, results), replace(known, values=values))
    circuit = compile_tree(tree, only=affected, plan=plan)
    values = circuit.run()
    problems = result_problems(tree, circuit, values)
    raise_errors([problem for problem in problems if problem.node in editing.relinked])
    return with_cache(with_numbers(tree, order, Results.of(circuit, values)), EvaluationCache(plan))


def _new_inputs(tree: Tree, circuit: Circuit, start: Collection[str], editing: EditSession) -> dict[str, float] | None:
    """Express the edits as new inputs of the compiled tree; None if they change its operations."""
    inputs = dict(editing.assumed)
    for id in start:
        is_input, was_input = has_own_value(tree.nodes[id]), id in circuit.input_places
        if is_input != was_input or id in editing.relinked:
            return None
        if is_input:
            inputs[id] = own_value(tree.nodes[id], tree.missing)
    return None if editing.rebuilt or not inputs.keys() <= circuit.input_places.keys() else inputs


def _upward(tree: Tree, plan: TreeLayout, start: Collection[str], passes: Callable[[Proposition], bool]) -> set[str]:
    """Return the ancestors of `start`, following only claims that propagate a change."""
    upward: set[str] = set()
    stack = list(start)
    while stack:
        for parent in plan.up[stack.pop()]:
            if parent not in upward and passes(tree.nodes[parent]):
                upward.add(parent)
                stack.append(parent)
    return upward


def _with_stale(tree: Tree, above: Collection[str]) -> Tree:
    """Mark judged claims above an edit as stale."""
    nodes = dict(tree.nodes)
    for id in above:
        node = nodes[id]
        if isinstance(node.link, JudgedLink) and not node.link.stale:
            nodes[id] = replace(node, link=replace(node.link, stale=True))
    return replace(tree, nodes=nodes)


def clamped_claims(tree: Tree) -> list[str]:
    """Return the linear claims whose sum leaves [0, 1] at the current values, so that they are clamped."""
    clamped: list[str] = []
    for id, node in tree.nodes.items():
        form = node.linear_form
        if form is not None and node.pinned is None:
            total = form.intercept + sum(w * _number(tree, child) for child, w in form.weights.items())
            if not -ROUNDING <= total <= 1 + ROUNDING:
                clamped.append(id)
    return clamped


def _number(tree: Tree, id: str) -> float:
    p = tree.nodes[id].p
    return tree.missing if p is None else p


FIELDS = ("claim", "children", "link", "override", "report", "key_factor", "grounding", "causality", "failed", "stale")
"""Names of the parts of a claim that are compared."""


def field_of(node: Proposition, name: str) -> Any:
    """Return the part of a claim with a name of `FIELDS`."""
    return node.pinned if name == "override" else getattr(node, name)


@frozen
class ClaimChange:
    """A changed claim. `before` is None for a new claim, `after` is None for a removed one."""

    id: str
    claim: str
    before: float | None
    after: float | None
    fields: tuple[str, ...] = ()
    """Other changed fields, as named in `FIELDS`."""

    @property
    def moved(self) -> float:
        """Change of the probability; 0 if it is missing before or after."""
        return 0.0 if self.before is None or self.after is None else self.after - self.before


def claim_changes(before: Tree, after: Tree) -> list[ClaimChange]:
    """Return every claim that differs between two trees, in the order of the second; removed claims last."""
    changes: list[ClaimChange] = []
    for id in [*after.nodes, *(id for id in before.nodes if id not in after.nodes)]:
        old, new = before.nodes.get(id), after.nodes.get(id)
        if old is new or old == new:
            continue
        shown = new or old
        assert shown is not None
        other = tuple(name for name in FIELDS if old and new and field_of(old, name) != field_of(new, name))
        p = (old.p if old else None, new.p if new else None)
        changes.append(ClaimChange(id=id, claim=shown.claim, before=p[0], after=p[1], fields=other))
    return changes


@frozen
class WhatIfResult:
    """The effect of a scenario on a tree."""

    name: str
    tree: Tree
    p: float
    """The root's probability."""
    row: Mapping[str, float]
    """The probability of each option, if the root answers several."""
    changes: tuple[ClaimChange, ...]
    stale: tuple[str, ...]
    """Claims judged before the change: those judged as a whole, and those whose link it made stale."""
    held: tuple[str, ...]
    """Claims clamped to [0, 1] because the result of their link is outside."""


def apply_scenario(tree: Tree, scenario: Scenario) -> WhatIfResult:
    """Apply a scenario and compare the result with the tree."""
    new, before = resynthesize(tree, scenario.edits), set(stale_claims(tree))
    return WhatIfResult(
        name=scenario.name,
        tree=new,
        p=_number(new, new.root),
        row=new.nodes[new.root].row,
        changes=tuple(claim_changes(tree, new)),
        stale=tuple(id for id in stale_claims(new) if _judged(new, id) or id not in before),
        held=tuple(clamped_claims(new)),
    )


def _judged(tree: Tree, id: str) -> bool:
    """Whether the claim was judged as a whole, so that it keeps its probability whatever changes below it."""
    return isinstance(tree.nodes[id].link, JudgedLink)


def compare_scenarios(tree: Tree, scenarios: Iterable[Scenario]) -> list[WhatIfResult]:
    """Apply several scenarios, each to the original tree."""
    return [apply_scenario(tree, scenario) for scenario in scenarios]


def what_if(tree: Tree, p: Mapping[str, float], *, name: str = "what if") -> WhatIfResult:
    """Set probabilities of some claims and compare the result with the tree, without a model."""
    tree = tree if tree.cache is not None else evaluated(tree)
    return apply_scenario(tree, Scenario(name=name, edits=tuple(SetP(id=id, p=value) for id, value in p.items())))


# Ids of claims that are added by hand.


def next_ids(tree: Tree, parent: str, count: int) -> list[str]:
    """Return ids for new children: P1, P2, … under the root P0, P1.1, P1.2, … under P1.

    >>> next_ids(Tree(root="P0", nodes={"P0": Proposition(id="P0", claim="c")}), "P0", 2)
    ['P1', 'P2']
    """
    stem = "P" if parent == "P0" else f"{parent}."
    free = (f"{stem}{number}" for number in count_up(1) if f"{stem}{number}" not in tree.nodes)
    return list(islice(free, count))
