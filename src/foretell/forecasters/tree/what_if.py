"""What if: edits on a tree, with only the claims above them worked out anew. No model is asked."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count as count_up
from itertools import islice

from foretell.forecasters.tree.arithmetic.circuit import ROUNDING, Circuit, rerun
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.arithmetic.evaluation import (
    EvaluationCache,
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


def resynthesize(tree: Tree, edits: Iterable[Edit]) -> Tree:
    """The tree after the edits, equal to the last bit to working all of it out anew.

    Only the claims above an edit are worked out, and no model is asked. Pinned claims above an edit hold; judged ones
    keep their number and are marked stale. A new link must give a probability; where new values push an old link out of
    [0, 1], its claim is held at the end (see `clamped_claims`). `InvalidTree` says which edit does not fit.
    A tree whose numbers nobody has worked out yet (read or changed by other means) is worked out first.
    """
    tree = tree if tree.cache is not None else evaluated(tree)
    known = tree.cache
    assert known is not None
    editing = EditSession(tree)
    tree = editing.apply(edits)
    plan = layout(tree) if editing.rebuilt else known.plan
    start = {id for id in editing.changed_numbers if id in tree.nodes}
    words = {id for id in editing.changed_texts if id in tree.nodes}
    above = _upward(tree, plan, start | words, lambda node: node.pinned is None)
    tree = _with_stale(tree, above - editing.judged)
    # Where the operations that are known still hold, they are run again from the edit upwards; otherwise the claims
    # above it get their operations anew and read the others as they are.
    patch = None
    if known.circuit is not None and not editing.rebuilt:
        patch = _patch(tree, known.circuit, start, editing)
    if patch is not None:
        return _rerun(tree, known, patch, start | above)
    affected = {*start, *_upward(tree, plan, start, lambda node: not has_own_value(node))}
    circuit = compile_tree(tree, only=affected, plan=plan)
    values = circuit.run()
    raise_errors([one for one in result_problems(tree, circuit, values) if one.node in editing.relinked])
    numbers = {id: values[place] for id, place in circuit.claims.items()}
    order = sorted({*affected, *start, *above}, key=plan.rank.__getitem__)
    return with_cache(with_numbers(tree, order, numbers), EvaluationCache(plan))


@dataclass(frozen=True)
class _Patch:
    """Edits that leave the operations of all other claims as they are."""

    inputs: Mapping[str, float]
    forced: Mapping[int, float]
    """Results of claims that were computed and have a number of their own now."""
    relinked: tuple[str, ...]
    """Claims with another link over the same children."""


def _patch(tree: Tree, circuit: Circuit, start: Collection[str], editing: EditSession) -> _Patch | None:
    """The edits as a patch; None where claims elsewhere may have to be computed in another way.

    A claim that nobody looks into is read by its number alone, so its number, its link or a pin may change. That ends
    where a number of its own is given up for a link: the claims beneath may then be shared with others.
    """
    inputs, forced = dict(editing.assumed), dict[int, float]()
    relinked: list[str] = []
    for id in start:
        node = tree.nodes[id]
        if has_own_value(node):
            value = own_value(node, tree.missing)
            if id in circuit.input_places:
                inputs[id] = value
            elif _read_by_number(circuit, id):
                forced[circuit.claims[id]] = value
            else:
                return None
        elif id in editing.relinked:
            if id in circuit.input_places or not _read_by_number(circuit, id):
                return None
            relinked.append(id)
        elif id in circuit.input_places:
            return None
    return _Patch(inputs, forced, tuple(relinked)) if inputs.keys() <= circuit.input_places.keys() else None


def _read_by_number(circuit: Circuit, id: str) -> bool:
    """Whether the result may be replaced: nobody looks into the claim, and no other claim has the same operation."""
    return id in circuit.apart and len(circuit.claims_at[circuit.claims[id]]) == 1


def _rerun(tree: Tree, known: EvaluationCache, patch: _Patch, marked: Collection[str]) -> Tree:
    circuit, rank = known.circuit, known.plan.rank
    assert circuit is not None
    forced = dict(patch.forced)
    values, places = rerun(circuit, known.values, patch.inputs, forced)
    numbers = {id: values[place] for place in places for id in circuit.claims_at.get(place, ())}
    for id in sorted(patch.relinked, key=rank.__getitem__):
        # By its new link from the claims beneath it; the result must be a probability.
        tree = with_numbers(tree, sorted(numbers, key=rank.__getitem__), numbers)
        own = compile_tree(tree, only=[id], plan=known.plan)
        results = own.run()
        raise_errors([problem for problem in result_problems(tree, own, results) if problem.node == id])
        forced[circuit.claims[id]] = results[own.claims[id]]
        values, places = rerun(circuit, values, {}, forced)
        numbers |= {id: values[place] for place in places for id in circuit.claims_at.get(place, ())}
    tree = with_numbers(tree, sorted({*numbers, *marked}, key=rank.__getitem__), numbers)
    return with_cache(tree, EvaluationCache(known.plan) if forced else replace(known, values=values))


def _upward(tree: Tree, plan: TreeLayout, start: Collection[str], passes: Callable[[Proposition], bool]) -> set[str]:
    """Claims above those of `start`, as far as every claim on the way `passes` a change on."""
    found: set[str] = set()
    stack = list(start)
    while stack:
        for parent in plan.up[stack.pop()]:
            if parent not in found and passes(tree.nodes[parent]):
                found.add(parent)
                stack.append(parent)
    return found


def _with_stale(tree: Tree, above: Collection[str]) -> Tree:
    """Judged claims above an edit were stated before it."""
    nodes = dict(tree.nodes)
    for id in above:
        node = nodes[id]
        if isinstance(node.link, JudgedLink) and not node.link.stale:
            nodes[id] = replace(node, link=replace(node.link, stale=True))
    return replace(tree, nodes=nodes)


def clamped_claims(tree: Tree) -> list[str]:
    """Linear claims whose sum leaves [0, 1] at the present values, so that they are held at the end of the range."""
    found: list[str] = []
    for id, node in tree.nodes.items():
        form = node.linear_form
        if form is not None and node.pinned is None:
            total = form.intercept + sum(w * _number(tree, child) for child, w in form.weights.items())
            if not -ROUNDING <= total <= 1 + ROUNDING:
                found.append(id)
    return found


def _number(tree: Tree, id: str) -> float:
    p = tree.nodes[id].p
    return tree.missing if p is None else p


FIELDS = ("claim", "children", "link", "pinned", "report", "key_factor", "grounding", "causality", "failed", "stale")


@dataclass(frozen=True, kw_only=True)
class ClaimChange:
    """A claim that is not as it was. `before` is None for a new claim, `after` for one that is gone."""

    id: str
    claim: str
    before: float | None
    after: float | None
    fields: tuple[str, ...] = ()
    """What else changed, by the names of `FIELDS`."""

    @property
    def moved(self) -> float:
        """By how much the probability changed; 0 where one side has none."""
        return 0.0 if self.before is None or self.after is None else self.after - self.before


def claim_changes(before: Tree, after: Tree) -> list[ClaimChange]:
    """Every claim that differs between two trees, in the order of the second, those that are gone last."""
    found: list[ClaimChange] = []
    for id in [*after.nodes, *(id for id in before.nodes if id not in after.nodes)]:
        old, new = before.nodes.get(id), after.nodes.get(id)
        if old is new or old == new:
            continue
        shown = new or old
        assert shown is not None
        other = tuple(name for name in FIELDS if old and new and getattr(old, name) != getattr(new, name))
        p = (old.p if old else None, new.p if new else None)
        found.append(ClaimChange(id=id, claim=shown.claim, before=p[0], after=p[1], fields=other))
    return found


@dataclass(frozen=True, kw_only=True)
class WhatIfResult:
    """What a scenario makes of a tree."""

    name: str
    tree: Tree
    p: float
    """The root's probability."""
    changes: tuple[ClaimChange, ...]
    stale: tuple[str, ...]
    """Judged claims that were stated before the change."""
    held: tuple[str, ...]
    """Claims held at the end of [0, 1], since their link leaves it."""


def apply_scenario(tree: Tree, scenario: Scenario) -> WhatIfResult:
    """The scenario, compared with the tree as it is."""
    new = resynthesize(tree, scenario.edits)
    return WhatIfResult(
        name=scenario.name,
        tree=new,
        p=_number(new, new.root),
        changes=tuple(claim_changes(tree, new)),
        stale=tuple(stale_claims(new)),
        held=tuple(clamped_claims(new)),
    )


def compare_scenarios(tree: Tree, scenarios: Iterable[Scenario]) -> list[WhatIfResult]:
    """Several scenarios, each on the tree as it is."""
    return [apply_scenario(tree, scenario) for scenario in scenarios]


def what_if(tree: Tree, p: Mapping[str, float], *, name: str = "what if") -> WhatIfResult:
    """The tree with other probabilities at some claims, compared with the tree as it is; no model is asked."""
    tree = tree if tree.cache is not None else evaluated(tree)
    return apply_scenario(tree, Scenario(name=name, edits=tuple(SetP(id=id, p=value) for id, value in p.items())))


# Building a tree by hand, step by step; each step gives a new tree.


def next_ids(tree: Tree, parent: str, count: int) -> list[str]:
    """Ids for new children: P1, P2, … under the root P0, P1.1, P1.2, … under P1.

    >>> next_ids(Tree(root="P0", nodes={"P0": Proposition(id="P0", claim="c")}), "P0", 2)
    ['P1', 'P2']
    """
    stem = "P" if parent == "P0" else f"{parent}."
    free = (f"{stem}{number}" for number in count_up(1) if f"{stem}{number}" not in tree.nodes)
    return list(islice(free, count))
