"""Settings of the forecaster `reason`."""

from collections.abc import Sequence
from typing import Literal, get_args

from foretell.forecasters.combine.clamp import ANSWER_CLAMPS, Clamp, ClampName
from foretell.forecasters.combine.default import FRESH_PRICE_DAYS
from foretell.forecasters.tree.settings import GroundSettings
from foretell.frozen import frozen
from foretell.questions.errors import InputError, WrongValue
from foretell.questions.field_checks import check_least, probability
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
        check_least(self, scout_replies=1, scout_calls=1, leaf_rounds=1, children=2, gap=0, sure=0)
        probability(self.tree_weight, self, "tree_weight")
        if not self.sure < 0.5:
            raise WrongValue(type(self).__name__, "sure", f"is {self.sure:g}", "less than 0.5")

    @property
    def name(self) -> str:
        """Name shown in tables."""
        return "reason" if self.take_apart == "auto" else f"reason {self.take_apart}"
