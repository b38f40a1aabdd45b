"""How trees and thoughts are made: the options of both, as a run, a request or a program gives them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.tree.arithmetic.scaling import SCALINGS
from foretell.forecasters.tree.links import INTERCEPT_LIMIT
from foretell.plugins import load
from foretell.questions.errors import InputError

MAX_CONCURRENCY = 1000


@dataclass(frozen=True, kw_only=True)
class GroundSettings:
    """How claims are examined, and what a forecast makes of them: what trees and thoughts share."""

    concurrency: int = 20
    """Leaves that are examined at the same time."""
    retries: int = 3
    """How often a failed leaf is tried again, from its beginning."""
    trials: int = 1
    """How often each leaf is examined, independently: its number is the mean, and their spread its error."""
    leaf_seconds: float = 1800.0
    """How long one attempt at a leaf may work; a slow model gets more time."""
    clamp: Clamp | Sequence[float] = (0.05, 0.95)
    """Of the forecast, not of a tree's own numbers."""
    shortcut: bool = True
    """Of two options of which exactly one comes true only the first is analysed; the other has what is left."""

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise InputError(f"{self.concurrency} leaves at once is outside 1 to {MAX_CONCURRENCY}")
        if self.retries < 0 or self.trials < 1 or self.leaf_seconds <= 0:
            raise InputError("grounding needs a count of retries >= 0, a trial and some time")
        try:
            Clamp.read(self.clamp)
        except (TypeError, ValueError) as error:
            raise InputError(f"the options do not fit: {error}", column="clamp") from None

    @property
    def name(self) -> str:
        """What tells one way from another in tables."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class TreeSettings(GroundSettings):
    """How trees are grown."""

    rule: str = "linear"
    """The synthesis rule by which children are put together."""
    rounds: int = 1
    """How often leaves are taken apart again: n of Analyticaⁿ."""
    leaves: int = 10
    """Enough leaves for one analysis."""
    max_leaves: int | None = None
    """About how many leaves the whole tree may have."""
    nodes: int = 5_000
    """Most claims of the whole tree."""
    depth: int | None = None
    """Deepest level; the root is at 0."""
    steps: int = 5
    """Answers of the analyzer that are taken over in one analysis."""
    correlations: bool = False
    """Ask a model which siblings move together; one call for every parent."""
    bayes_net: bool = False
    """Ask for linear weights that are those of a Bayes net: a chance whatever the children are."""
    scaling: str | None = None
    """Weights that are not are scaled so (min-max, softmax) instead of being asked for again."""
    intercept_limit: float = INTERCEPT_LIMIT
    """Largest chance of a claim that no child carries."""

    def __post_init__(self) -> None:
        super().__post_init__()
        load("synthesis_rules", self.rule)
        if self.rounds < 1 or self.leaves < 2 or self.nodes < 1 or self.steps < 1:
            raise InputError("a tree needs at least one round, one step, two leaves for an analysis, and one node")
        if (self.max_leaves is not None and self.max_leaves < 1) or (self.depth is not None and self.depth < 0):
            raise InputError("a tree needs at least one leaf, and its depth cannot be negative")
        if self.scaling is not None and self.scaling not in SCALINGS:
            raise InputError(f"there is no scaling {self.scaling!r}", hint=f"scalings are {', '.join(SCALINGS)}")

    @property
    def name(self) -> str:
        """What tells one way of growing from another in tables."""
        rounds = f"^{self.rounds}" if self.rounds > 1 else ""
        return f"tree{rounds} {self.rule}"


ThoughtKind = Literal["chain", "tree", "graph", "forest"]
THOUGHT_KINDS: tuple[ThoughtKind, ...] = get_args(ThoughtKind)


@dataclass(frozen=True, kw_only=True)
class ThoughtSettings(GroundSettings):
    """A chain, tree, graph or forest of thoughts, and its size."""

    kind: ThoughtKind = "chain"
    depth: int = 3
    """Thoughts that follow one another."""
    width: int = 3
    """Thoughts that are tried at every step; a chain has one."""
    keep: int = 2
    """Lines that are followed up; in a graph, thoughts that are joined into one."""
    trees: int = 3
    """Of a forest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in THOUGHT_KINDS:
            raise InputError(f"there is no {self.kind!r} of thoughts", hint=f"kinds are {', '.join(THOUGHT_KINDS)}")
        for name in ("depth", "width", "keep", "trees"):
            if getattr(self, name) < 1:
                raise InputError(f"thoughts need a {name} of at least 1")

    @property
    def name(self) -> str:
        """As it stands in tables."""
        return f"{self.kind} of thoughts"

    @property
    def max_thoughts(self) -> int:
        """Thoughts that are looked into at most.

        >>> [ThoughtSettings(kind=kind).max_thoughts for kind in THOUGHT_KINDS]
        [3, 15, 5, 45]
        """
        tree = self.width + (self.depth - 1) * self.keep * self.width
        return {"chain": self.depth, "tree": tree, "graph": self.width + self.depth - 1, "forest": self.trees * tree}[
            self.kind
        ]
