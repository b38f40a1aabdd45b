"""Asking again: judged claims that something beneath has changed under, from the leaves up, on demand only."""

from foretell.forecasters.tree.arithmetic.evaluate import stale
from foretell.forecasters.tree.growing.matter import Place
from foretell.forecasters.tree.growing.synthesize import Synthesizer
from foretell.forecasters.tree.links import Judged
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.walk import parents
from foretell.forecasters.tree.whatif.edits import SetLink, SetReport
from foretell.forecasters.tree.whatif.whatif import resynthesize


async def rejudged(tree: Tree, synthesizer: Synthesizer) -> tuple[Tree, tuple[str, ...]]:
    """The tree with every stale judgement made anew, and the claims for which that failed: their old number stands.

    The synthesizer's rule must be `vanilla`. A claim is judged after those beneath it, and once.
    """
    failed: list[str] = []
    done: set[str] = set()
    while todo := [id for id in stale(tree) if id not in done]:
        id = todo[0]
        done.add(id)
        found = await synthesizer.synthesize(tree.nodes[id], place_in(tree, id), below(tree, id))
        if not isinstance(found.link, Judged):
            failed.append(id)
            continue
        report = SetReport(id=id, report=found.report, key_factor=found.key_factor)
        tree = resynthesize(tree, [SetLink(id=id, link=found.link), report])
    return tree, tuple(failed)


def below(tree: Tree, id: str) -> dict[str, Proposition]:
    """Every claim beneath one."""
    found: dict[str, Proposition] = {}
    ahead = list(tree.nodes[id].children)
    while ahead:
        child = ahead.pop()
        if child not in found:
            found[child] = tree.nodes[child]
            ahead.extend(tree.nodes[child].children)
    return found


def place_in(tree: Tree, id: str) -> Place:
    """The claims above one, along its first parents, and beside it."""
    up = parents(tree)
    above = up[id][:1]
    beside = [child for parent in above for child in tree.nodes[parent].children if child != id]
    path: list[str] = []
    while above:
        path.append(tree.nodes[above[0]].claim)
        above = up[above[0]][:1]
    return Place(path=tuple(reversed(path)), siblings=tuple(tree.nodes[other].claim for other in beside))
