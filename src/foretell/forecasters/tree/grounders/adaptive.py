"""A grounder for each kind of claim: numbers go to the notebook, news to the search, hard cases to deep research.

The choice depends on the words of the claim and on the leaf's own share of the budget, and on nothing that changes with
the order in which leaves happen to be reached: a tree that is grown again chooses the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grow.ground import Grounder, GroundingResult, Leaf
from foretell.questions.errors import InputError

ClaimKind = Literal["numeric", "news", "hard"]
ORDERS: Mapping[ClaimKind, tuple[str, ...]] = {
    "numeric": ("notebook", "search", "agent", "plain"),
    "news": ("search", "agent", "plain"),
    "hard": ("deep", "agent", "search", "plain"),
}
"""Grounders by kind of claim, the best first: taken is the first that is there and that the share can pay for."""
DOLLARS: Mapping[str, float] = {"deep": 0.5, "notebook": 0.1, "agent": 0.06, "search": 0.03, "plain": 0.0}
"""What a leaf usually costs; a share below that goes to the next in line."""
_QUANTITY = re.compile(
    r"\b(?:above|below|exceeds?|exceeded|under|over|at least|at most|more than|less than|fewer than|higher than|"
    r"lower than|between|reach(?:es)?|rises? (?:by|to|above)|falls? (?:by|to|below))\b[^.]{0,40}?\d"
    r"|\d+(?:[.,]\d+)?\s*(?:%|per ?cent|percent|basis points|bps|points|°C|°F|mm|GW|TWh|barrels|euros?|dollars?)"
    r"|[$€£¥]\s?\d",
    re.IGNORECASE,
)
_SERIES = re.compile(
    r"\b(?:index|rate|yield|price|prices|inflation|CPI|GDP|unemployment|payrolls|exchange rate|close[sd]?|average|"
    r"mean|median|temperature|rainfall|volume|output|production|exports|imports|sales|revenue|earnings|turnout|"
    r"share of|number of|count of|per capita)\b",
    re.IGNORECASE,
)
_TANGLED = re.compile(
    r"\b(?:because|unless|provided that|in response to|as a result|lead(?:s|ing)? to|cause[sd]?|would|strategy|"
    r"intends?|motive|coalition|regime|credib(?:le|ility)|structural|long-run|sustainab(?:le|ly|ility))\b",
    re.IGNORECASE,
)


def claim_kind(claim: str) -> ClaimKind:
    """What kind of claim it is, by its words.

    >>> claim_kind("The US unemployment rate for June 2026 is above 4.5 %.")
    'numeric'
    >>> claim_kind("The Senate confirms the nominee by 30 June 2026.")
    'news'
    >>> claim_kind("The coalition survives because its partners fear early elections in 2026.")
    'hard'
    """
    quantity, series = bool(_QUANTITY.search(claim)), bool(_SERIES.search(claim))
    if quantity and series:
        return "numeric"
    return "hard" if len(_TANGLED.findall(claim)) >= 2 else "news"


@dataclass(frozen=True, kw_only=True)
class AdaptiveGrounder:
    """Hands each leaf to the grounder that suits it."""

    grounders: Mapping[str, Grounder]
    """By the names used in `ORDERS`."""
    name: str = "auto"
    """As it stands in the tree where no grounder came to an answer."""

    def __post_init__(self) -> None:
        if not self.grounders:
            raise InputError("an adaptive grounder needs grounders to choose from")

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Whatever the chosen grounder finds; it is named in the grounding."""
        chosen = self.choice(claim_kind(leaf.claim), leaf.budget.dollars)
        return await self.grounders[chosen].ground(leaf, context)

    def choice(self, kind: ClaimKind, share: float | None) -> str:
        """The first grounder for a kind of claim that there is and that a share of the budget can pay for.

        Where the share is too small for all of them, the cheapest is taken.
        """
        there = [name for name in ORDERS[kind] if name in self.grounders] or list(self.grounders)
        fits = [name for name in there if share is None or DOLLARS.get(name, 0.0) <= share]
        return fits[0] if fits else min(there, key=lambda name: DOLLARS.get(name, 0.0))
