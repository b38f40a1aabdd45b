"""New numbers after edits, for the claims above them only."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from foretell.forecasters.tree.arithmetic.circuit import Circuit, rerun
from foretell.forecasters.tree.arithmetic.compile import compile_tree
from foretell.forecasters.tree.arithmetic.evaluate import Working, keeping, with_numbers
from foretell.forecasters.tree.checks import result_problems
from foretell.forecasters.tree.links import Judged
from foretell.forecasters.tree.problems import insist
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.walk import Layout, has_own_value, layout, own_value
from foretell.forecasters.tree.whatif.editing import Editing


def recomputed(tree: Tree, known: Working, editing: Editing) -> Tree:
    """The edited tree with its numbers, equal to the last bit to working all of it out anew.

    Where the operations that are known still hold, they are run again from the edit upwards; otherwise the claims above
    it get their operations anew and read the others as they are.
    """
    plan = layout(tree) if editing.rebuilt else known.plan
    start = {id for id in editing.numbers if id in tree.nodes}
    words = {id for id in editing.words if id in tree.nodes}
    above = _upward(tree, plan, start | words, lambda node: node.pinned is None)
    tree = _with_stale(tree, above)
    patch = None
    if known.circuit is not None and not editing.rebuilt:
        patch = _patch(tree, known.circuit, start, editing)
    if patch is not None:
        return _rerun(tree, known, patch, start | above)
    return _compiled(tree, plan, editing, start | above)


@dataclass(frozen=True)
class _Patch:
    """Edits that leave the operations of all other claims as they are."""

    inputs: Mapping[str, float]
    forced: Mapping[int, float]
    """Results of claims that were computed and have a number of their own now."""
    relinked: tuple[str, ...]
    """Claims with another link over the same children."""


def _patch(tree: Tree, circuit: Circuit, start: Collection[str], editing: Editing) -> _Patch | None:
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
            if id in circuit.where:
                inputs[id] = value
            elif _read_by_number(circuit, id):
                forced[circuit.claims[id]] = value
            else:
                return None
        elif id in editing.relinked:
            if id in circuit.where or not _read_by_number(circuit, id):
                return None
            relinked.append(id)
        elif id in circuit.where:
            return None
    return _Patch(inputs, forced, tuple(relinked)) if inputs.keys() <= circuit.where.keys() else None


def _read_by_number(circuit: Circuit, id: str) -> bool:
    """Whether the result may be replaced: nobody looks into the claim, and no other claim has the same operation."""
    return id in circuit.apart and len(circuit.claims_at[circuit.claims[id]]) == 1


def _rerun(tree: Tree, known: Working, patch: _Patch, marked: Collection[str]) -> Tree:
    circuit, rank = known.circuit, known.plan.rank
    assert circuit is not None
    forced = dict(patch.forced)
    values, places = rerun(circuit, known.values, patch.inputs, forced)
    numbers = _numbers(circuit, values, places)
    for id in sorted(patch.relinked, key=rank.__getitem__):
        tree = with_numbers(tree, sorted(numbers, key=rank.__getitem__), numbers)
        forced[circuit.claims[id]] = _own_operations(tree, id, known.plan)
        values, places = rerun(circuit, values, {}, forced)
        numbers |= _numbers(circuit, values, places)
    tree = with_numbers(tree, sorted({*numbers, *marked}, key=rank.__getitem__), numbers)
    return keeping(tree, Working(known.plan) if forced else replace(known, values=values))


def _numbers(circuit: Circuit, values: list[float], places: Iterable[int]) -> dict[str, float]:
    return {id: values[place] for place in places for id in circuit.claims_at.get(place, ())}


def _own_operations(tree: Tree, id: str, plan: Layout) -> float:
    """A claim by its new link from the claims beneath it; the result must be a probability."""
    circuit = compile_tree(tree, only=[id], plan=plan)
    values = circuit.run()
    insist([problem for problem in result_problems(tree, circuit, values) if problem.node == id])
    return values[circuit.claims[id]]


def _compiled(tree: Tree, plan: Layout, editing: Editing, marked: Collection[str]) -> Tree:
    start = {id for id in editing.numbers if id in tree.nodes}
    affected = {*start, *_upward(tree, plan, start, lambda node: not has_own_value(node))}
    circuit = compile_tree(tree, only=affected, plan=plan)
    values = circuit.run()
    wrong = result_problems(tree, circuit, values)
    insist([problem for problem in wrong if problem.node in editing.relinked])
    numbers = {id: values[place] for id, place in circuit.claims.items()}
    order = sorted({*affected, *marked}, key=plan.rank.__getitem__)
    return keeping(with_numbers(tree, order, numbers), Working(plan))


def _upward(tree: Tree, plan: Layout, start: Collection[str], passes: Callable[[Proposition], bool]) -> set[str]:
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
    """Judged claims above an edit were said before it."""
    nodes = dict(tree.nodes)
    for id in above:
        node = nodes[id]
        if isinstance(node.link, Judged) and not node.link.stale:
            nodes[id] = replace(node, link=replace(node.link, stale=True))
    return replace(tree, nodes=nodes)
