"""Settings of the forecasters `tree` and `thoughts`."""

from collections.abc import Sequence
from typing import Literal, get_args

from foretell.forecasters.combine.clamp import Clamp, ClampName
from foretell.forecasters.tree.arithmetic.scaling import SCALINGS
from foretell.forecasters.tree.links import INTERCEPT_LIMIT
from foretell.frozen import frozen
from foretell.plugins import Names, load
from foretell.questions.errors import InputError, WrongValue
from foretell.questions.field_checks import check_least

MAX_CONCURRENCY = 1000
GROUNDERS, RULES = Names("grounders"), Names("synthesis_rules")
"""Registered grounders and synthesis rules, including those of other packages."""


@frozen
class GroundSettings:
    """Settings that trees and thoughts share: how claims are grounded and turned into a forecast."""

    concurrency: int = 20
    """Maximum number of leaves that are grounded concurrently."""
    retries: int = 3
    """Number of times that a failed leaf is retried from scratch."""
    trials: int = 1
    """Independent groundings per leaf: the mean is its probability, the spread its error."""
    leaf_seconds: float = 1800.0
    """Time limit of one attempt at a leaf, in seconds; a slow model gets more time."""
    clamp: Clamp | Sequence[float] | ClampName = (0.05, 0.95)
    """Lowest and highest forecast, or `once`: 0.02 and 0.98 of the combined answer alone. The tree is not clamped."""
    shortcut: bool = True
    """If exactly one of two outcomes comes true, analyse only the first; the other gets the complement."""

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise InputError(f"concurrency = {self.concurrency} is outside 1 to {MAX_CONCURRENCY}")
        check_least(self, retries=0, trials=1)
        if not self.leaf_seconds > 0:
            raise WrongValue(type(self).__name__, "leaf_seconds", f"is {self.leaf_seconds:g}", "more than 0")
        try:
            Clamp.read(self.clamp)
        except (TypeError, ValueError) as error:
            raise InputError(f"the options do not fit: {error}", column="clamp") from None

    @property
    def name(self) -> str:
        """Name shown in tables."""
        raise NotImplementedError


@frozen
class TreeSettings(GroundSettings):
    """Settings for growing a tree."""

    rule: str = "analytica-linear"
    """Synthesis rule that combines children."""
    rounds: int = 1
    """Number of times that leaves are broken down: the n in Analyticaⁿ."""
    leaves: int = 10
    """Approximate number of leaves that one analysis creates."""
    max_leaves: int | None = None
    """Approximate maximum number of leaves of the whole tree."""
    nodes: int = 5_000
    """Maximum number of claims in the whole tree."""
    depth: int | None = None
    """Maximum depth; the root has depth 0."""
    steps: int = 5
    """Maximum number of analyzer replies per analysis."""
    correlations: bool = False
    """Whether to ask a model which siblings are correlated; this takes one call per parent."""
    bayes_net: bool = False
    """Whether to ask for linear weights that form a Bayes net: every combination of children gives a probability."""
    scaling: str | None = None
    """How to scale weights that form no Bayes net (min-max or softmax) instead of asking again; None to not scale."""
    intercept_limit: float = INTERCEPT_LIMIT
    """Largest intercept of a linear link: the part of a claim that no child explains."""

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
        """Name shown in tables."""
        rounds = f"^{self.rounds}" if self.rounds > 1 else ""
        return f"tree{rounds} {self.rule}"


ThoughtKind = Literal["chain", "tree", "graph", "forest"]
THOUGHT_KINDS: tuple[ThoughtKind, ...] = get_args(ThoughtKind)


@frozen
class ThoughtSettings(GroundSettings):
    """A chain, tree, graph or forest of thoughts, and its size."""

    kind: ThoughtKind = "chain"
    depth: int = 3
    """Number of successive thoughts."""
    width: int = 3
    """Number of alternative thoughts at every step; a chain has one."""
    keep: int = 2
    """Number of lines that are continued; in a graph, of thoughts that are merged into one."""
    trees: int = 3
    """Number of trees in a forest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in THOUGHT_KINDS:
            raise InputError(f"there is no {self.kind!r} of thoughts", hint=f"kinds are {', '.join(THOUGHT_KINDS)}")
        for name in ("depth", "width", "keep", "trees"):
            if getattr(self, name) < 1:
                raise InputError(f"thoughts need a {name} of at least 1")

    @property
    def name(self) -> str:
        """Name shown in tables."""
        return f"{self.kind} of thoughts"

    @property
    def max_thoughts(self) -> int:
        """Maximum number of thoughts that are grounded.

        >>> [ThoughtSettings(kind=kind).max_thoughts for kind in THOUGHT_KINDS]
        [3, 15, 5, 45]
        """
        tree = self.width + (self.depth - 1) * self.keep * self.width
        return {"chain": self.depth, "tree": tree, "graph": self.width + self.depth - 1, "forest": self.trees * tree}[
            self.kind
        ]
