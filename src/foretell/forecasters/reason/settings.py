"""Settings of the forecaster `reason`."""

from collections.abc import Sequence
from typing import Literal, get_args

from foretell.forecasters.combine.clamp import ANSWER_CLAMPS, Clamp, ClampName
from foretell.forecasters.combine.default import FRESH_PRICE_DAYS
from foretell.forecasters.tree.settings import GroundSettings
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.questions.forecast import LARGEST_GAP, TREE_WEIGHT

TakeApart = Literal["auto", "always", "never"]
SHARES = {"scout": 0.35, "leaves": 0.45}
"""Shares of the budget for the scout and for the leaves; the rest is for planning, cases and reconciliation."""


@frozen
class ReasonSettings(GroundSettings):
    """How a question is researched, taken apart and put together again."""

    clamp: Clamp | Sequence[float] | ClampName = ANSWER_CLAMPS["reason"]
    """Lowest and highest forecast, or `once`: 0.02 and 0.98 of the combined answer alone. The tree is not clamped."""
    take_apart: TakeApart = "auto"
    """Whether to grow a tree: `auto` where it helps, `always`, or `never` for the direct estimate alone."""
    scout_replies: int = 5
    """Maximum number of the scout's replies; in the last one it must answer."""
    scout_calls: int = 4
    """Maximum number of tool calls in one of its replies."""
    leaf_rounds: int = 3
    """Maximum number of rounds for an open leaf; in the last one it must conclude. With three, a tree of six leaves of
    which three are open takes at most 20 calls (`benchmarks/reason_calls.py`)."""
    children: int = 6
    """Maximum number of children of a claim."""
    gap: float = LARGEST_GAP
    """Largest difference in log-odds between tree and direct estimate that is not looked into."""
    tree_weight: float = TREE_WEIGHT
    """Weight of the tree against the direct estimate, in log-odds."""
    evidence_tokens: int = 6_000
    """Maximum length of the list of evidence in a prompt."""
    fresh_days: float = FRESH_PRICE_DAYS
    """A market price up to this old makes a tree unnecessary."""
    sure: float = 0.03
    """A direct estimate this near to 0 or 1 makes a tree unnecessary."""
    seconds: float | None = None
    """Seconds that the scout may work (default: 600, and more for a slow model)."""
    series_sources: tuple[str, ...] = ("dbnomics",)
    """Sources whose questions are answered from their time series, without a model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.take_apart not in get_args(TakeApart):
            hint = f"write {', '.join(get_args(TakeApart))}"
            raise InputError(f"take_apart is {self.take_apart!r}", column="options.take_apart", hint=hint)
        if self.scout_replies < 1 or self.scout_calls < 1 or self.leaf_rounds < 1 or self.children < 2:
            raise InputError("a scout needs a reply and a call, a leaf a round, and a tree two children")
        if not 0 <= self.tree_weight <= 1 or self.gap < 0 or not 0 <= self.sure < 0.5:
            raise InputError("tree_weight must be from 0 to 1, gap at least 0, and sure below 0.5")

    @property
    def name(self) -> str:
        """Name shown in tables."""
        return "reason" if self.take_apart == "auto" else f"reason {self.take_apart}"
