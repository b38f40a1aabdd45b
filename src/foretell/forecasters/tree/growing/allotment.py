"""How a tree's room and money are shared out: from the top down, in equal parts, whatever happens to be ready first."""

from dataclasses import dataclass, replace

from foretell.forecasters.tree.growing.draft import Room, depth_of
from foretell.questions.problems import InputError


@dataclass(frozen=True, kw_only=True)
class GrowSettings:
    """How large a tree may grow."""

    rounds: int = 1
    """How often leaves are taken apart again: n of Analyticaⁿ."""
    leaves: int = 10
    """Enough leaves for one analysis."""
    most_leaves: int | None = None
    """About how many leaves the whole tree may have."""
    nodes: int = 5_000
    """Most claims of the whole tree."""
    depth: int | None = None
    """Deepest level; the root is at 0."""
    dollars: float | None = None
    """What the tree may cost."""

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.leaves < 2 or self.nodes < 1:
            raise InputError("a tree needs at least one round, two leaves for an analysis, and one node")
        if (self.most_leaves is not None and self.most_leaves < 1) or (self.depth is not None and self.depth < 0):
            raise InputError("a tree needs at least one leaf, and its depth cannot be negative")


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """What one subtree may use. Every part of it gets an equal share of what is left."""

    rounds: int
    """Analyses that may still follow one another from here down."""
    nodes: int
    """Claims that may be added."""
    leaves: int | None = None
    dollars: float | None = None
    """For grounding all leaves of it."""
    each: float = 0.0
    """What a leaf usually costs: no more of them are made than the money is enough for."""

    def room(self, settings: GrowSettings, node: str) -> Room | None:
        """What an analysis of the node may add; None where the node has to stay as it is.

        >>> Allotment(rounds=1, nodes=30, leaves=6).room(GrowSettings(), "P0")
        Room(leaves=6, nodes=30, depth=None)
        >>> Allotment(rounds=0, nodes=30).room(GrowSettings(), "P0") is None
        True
        >>> Allotment(rounds=1, nodes=30, dollars=0.05, each=0.01).room(GrowSettings(), "P0").leaves
        5
        """
        leaves = settings.leaves if self.leaves is None else min(settings.leaves, self.leaves)
        if self.dollars is not None and self.each > 0:
            leaves = min(leaves, int(self.dollars / self.each + 1e-9))
        deep = settings.depth is not None and depth_of(node) >= settings.depth
        if self.rounds < 1 or self.nodes < 2 or leaves < 2 or deep:
            return None
        return Room(leaves=leaves, nodes=self.nodes, depth=settings.depth)

    def share(self, *, added: int, among: int) -> "Allotment":
        """The part of each leaf, once an analysis has added so many claims.

        >>> Allotment(rounds=2, nodes=100, leaves=40, dollars=1.0).share(added=20, among=10)
        Allotment(rounds=1, nodes=8, leaves=4, dollars=0.1, each=0.0)
        """
        return replace(
            self,
            rounds=self.rounds - 1,
            nodes=max(0, self.nodes - added) // among,
            leaves=None if self.leaves is None else self.leaves // among,
            dollars=None if self.dollars is None else self.dollars / among,
        )
