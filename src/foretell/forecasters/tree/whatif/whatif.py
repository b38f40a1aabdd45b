"""What if: edits on a tree, with only the claims above them recomputed. No model is asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foretell.forecasters.tree.arithmetic.circuit import ROUNDING
from foretell.forecasters.tree.arithmetic.evaluate import Working, evaluated, stale, working
from foretell.forecasters.tree.links import Linear
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.whatif.editing import Editing
from foretell.forecasters.tree.whatif.edits import Edit, Scenario, SetP
from foretell.forecasters.tree.whatif.recompute import recomputed

FIELDS = ("claim", "children", "link", "pinned", "report", "key_factor", "grounding")


def resynthesize(tree: Tree, edits: Iterable[Edit]) -> Tree:
    """The tree after the edits, equal to the last bit to working all of it out anew.

    Pinned claims above an edit hold; judged ones keep their number and are marked stale. A new link must give a
    probability; where new values push an old link out of [0, 1], its claim is held at the end (`held` names it).
    `InvalidTree` says which edit does not fit. A tree whose numbers nobody has worked out yet (read or changed by other
    means) is worked out first.
    """
    if not isinstance(tree.working, Working):
        tree = evaluated(tree)
    editing = Editing(tree)
    return recomputed(editing.apply(edits), working(tree), editing)


def held(tree: Tree) -> list[str]:
    """Linear claims whose sum leaves [0, 1] at the present values, so that they are held at the end of the range."""
    found: list[str] = []
    for id, node in tree.nodes.items():
        if isinstance(node.link, Linear) and node.pinned is None:
            numbers = {child: _number(tree, child) for child in node.children}
            total = node.link.intercept + sum(w * numbers[child] for child, w in node.link.weights.items())
            if not -ROUNDING <= total <= 1 + ROUNDING:
                found.append(id)
    return found


def _number(tree: Tree, id: str) -> float:
    p = tree.nodes[id].p
    return tree.missing if p is None else p


@dataclass(frozen=True, kw_only=True)
class Change:
    """A claim that is not as it was. `before` is None for a new claim, `after` for one that is gone."""

    id: str
    claim: str
    before: float | None
    after: float | None
    fields: tuple[str, ...] = ()
    """What else changed: claim, children, link, pinned, report, key_factor, grounding."""

    @property
    def moved(self) -> float:
        """By how much the probability changed; 0 where one side has none."""
        return 0.0 if self.before is None or self.after is None else self.after - self.before


def changes(before: Tree, after: Tree) -> list[Change]:
    """Every claim that differs between two trees, in the order of the second, those that are gone last."""
    found: list[Change] = []
    for id in [*after.nodes, *(id for id in before.nodes if id not in after.nodes)]:
        old, new = before.nodes.get(id), after.nodes.get(id)
        if old is new or old == new:
            continue
        shown = new or old
        assert shown is not None
        other = tuple(name for name in FIELDS if old and new and getattr(old, name) != getattr(new, name))
        p = (old.p if old else None, new.p if new else None)
        found.append(Change(id=id, claim=shown.claim, before=p[0], after=p[1], fields=other))
    return found


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a scenario makes of a tree."""

    name: str
    tree: Tree
    p: float
    """The root's probability."""
    changes: tuple[Change, ...]
    stale: tuple[str, ...]
    """Judged claims that were said before the change."""
    held: tuple[str, ...]
    """Claims held at the end of [0, 1], since their link leaves it."""


def play(tree: Tree, scenario: Scenario) -> Outcome:
    """The scenario, compared with the tree as it is."""
    new = resynthesize(tree, scenario.edits)
    return Outcome(
        name=scenario.name,
        tree=new,
        p=_number(new, new.root),
        changes=tuple(changes(tree, new)),
        stale=tuple(stale(new)),
        held=tuple(held(new)),
    )


def compare(tree: Tree, scenarios: Iterable[Scenario]) -> list[Outcome]:
    """Several scenarios, each on the tree as it is."""
    return [play(tree, scenario) for scenario in scenarios]


def what_if(tree: Tree, p: Mapping[str, float], *, name: str = "what if") -> Outcome:
    """The tree with other probabilities at some claims, compared with the tree as it is; no model is asked."""
    tree = tree if isinstance(tree.working, Working) else evaluated(tree)
    return play(tree, Scenario(name=name, edits=tuple(SetP(id=id, p=value) for id, value in p.items())))
