"""Sharing out a tree's size and money: from the top down, in equal parts, whatever happens to be ready first."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grow.analyze import AnalysisLimits, depth_of
from foretell.models.budget import Budget, BudgetedModel
from foretell.models.model import TokenCount
from foretell.questions.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TreeSizeSettings:
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
class SubtreeBudget:
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

    def analysis_limits(self, settings: TreeSizeSettings, node: str) -> AnalysisLimits | None:
        """What an analysis of the node may add; None where the node must stay a leaf.

        >>> SubtreeBudget(rounds=1, nodes=30, leaves=6).analysis_limits(TreeSizeSettings(), "P0")
        AnalysisLimits(leaves=6, nodes=30, depth=None)
        >>> SubtreeBudget(rounds=0, nodes=30).analysis_limits(TreeSizeSettings(), "P0") is None
        True
        >>> SubtreeBudget(rounds=1, nodes=30, dollars=0.05, each=0.01).analysis_limits(TreeSizeSettings(), "P0").leaves
        5
        """
        leaves = settings.leaves if self.leaves is None else min(settings.leaves, self.leaves)
        if self.dollars is not None and self.each > 0:
            leaves = min(leaves, int(self.dollars / self.each + 1e-9))
        deep = settings.depth is not None and depth_of(node) >= settings.depth
        if self.rounds < 1 or self.nodes < 2 or leaves < 2 or deep:
            return None
        return AnalysisLimits(leaves=leaves, nodes=self.nodes, depth=settings.depth)

    def per_leaf(self, *, added: int, among: int) -> "SubtreeBudget":
        """The part of each leaf, once an analysis has added so many claims.

        >>> SubtreeBudget(rounds=2, nodes=100, leaves=40, dollars=1.0).per_leaf(added=20, among=10)
        SubtreeBudget(rounds=1, nodes=8, leaves=4, dollars=0.1, each=0.0)
        """
        return replace(
            self,
            rounds=self.rounds - 1,
            nodes=max(0, self.nodes - added) // among,
            leaves=None if self.leaves is None else self.leaves // among,
            dollars=None if self.dollars is None else self.dollars / among,
        )


FOR_LEAVES = 0.75
"""Share of a tree's budget that goes to grounding; the rest pays for taking apart and putting together."""
USUAL_LEAF = TokenCount(input=6_000, output=2_000)
"""What grounding a leaf usually takes at least: a tree is not made larger than its budget can pay for."""
USUAL_TOKENS: Mapping[str, tuple[int, TokenCount]] = {
    "plain": (1, TokenCount(input=1_500, output=1_000)),
    "search": (4, TokenCount(input=20_000, output=3_000)),
    "agent": (8, TokenCount(input=60_000, output=6_000)),
    "notebook": (8, TokenCount(input=60_000, output=10_000)),
    "deep": (1, TokenCount(input=150_000, output=20_000)),
    "auto": (5, TokenCount(input=30_000, output=5_000)),
}
"""By grounder, about how many calls and tokens a leaf takes: for plans, not for limits."""
LOW = 0.5
"""Once this part of a leaf's share is spent, it is time to conclude: the conclusion costs something too."""


def cost_of_leaf(context: Context) -> float:
    """What a leaf usually costs at least, in dollars; 0 where prices are not known."""
    price = context.models.price("grounder")
    return price.dollars(USUAL_LEAF) if price is not None else 0.0


class LeafBudget:
    """The share of one leaf: counted, so that research ends in time, but not a wall.

    A hard limit sets the most a call may cost aside before it is made, which for a small share is more than all of it.
    Hard are the budgets of the question and the run.
    """

    def __init__(self, leaf: str = "", dollars: float | None = None) -> None:
        self.dollars = dollars
        """The whole share; None for no limit of its own."""
        self._counted = Budget(f"leaf {leaf}")

    @property
    def spent(self) -> float:
        """What was spent of it, in dollars."""
        return self._counted.spent.dollars

    @property
    def nearly_spent(self) -> bool:
        """Whether it is time to conclude."""
        return self.dollars is not None and self.spent >= LOW * self.dollars

    def metered(self, context: Context) -> Context:
        """The context with a model whose calls are counted. Without prices there is nothing to count."""
        prices = context.models.prices
        if self.dollars is None or prices is None:
            return context
        return context.with_model(lambda model: BudgetedModel(model, prices, self._counted))
