"""The grounder `auto`: sends numeric claims to the notebook, news to search, and hard cases to deep research.

A model chooses among the grounders that are available and that fit the leaf's budget; if it gives no answer, the
wording of the claim decides. If a grounder fails, a simpler one takes over. The reason for the choice is stored with
the leaf. Nothing depends on the order in which leaves are reached, so a tree that is grown again makes the same
choices.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.tree.grow.ground import LONGEST_REASON, CannotGround, Grounder, GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import TEXT, StructuredRequest, fill_prompts, sections
from foretell.forecasters.tree.text import one_line
from foretell.frozen import frozen
from foretell.models.model import BudgetExceeded, ModelError
from foretell.models.structured_output import closed_object
from foretell.patterns import pattern
from foretell.questions.errors import InputError

SUITED: Mapping[str, str] = {
    "notebook": "computes with data series and prices; for claims that numbers of the past speak to",
    "search": "searches and reads the news and the web; for claims about events, plans and decisions",
    "agent": "researches step by step with all tools; for claims that take several kinds of evidence",
    "deep": "a long research by a model of its own; for tangled claims that matter much and are hard to look up",
    "plain": "answers from what a model knows; for claims about lasting facts, or where nothing can be looked up",
}
"""What each grounder is suited for, as shown to the model that chooses."""
FALL_BACKS: Mapping[str, tuple[str, ...]] = {
    "deep": ("agent", "search", "plain"),
    "agent": ("search", "plain"),
    "notebook": ("search", "plain"),
    "search": ("plain",),
}
"""Grounders to try, in order, if a grounder fails."""
ClaimKind = Literal["numeric", "news", "hard"]
ORDERS: Mapping[ClaimKind, tuple[str, ...]] = {
    "numeric": ("notebook", "search", "agent", "plain"),
    "news": ("search", "agent", "plain"),
    "hard": ("deep", "agent", "search", "plain"),
}
"""Grounders for each kind of claim, best first. The first available and affordable one is used."""
KIND_WORDS: Mapping[ClaimKind, str] = {
    "numeric": "a claim about numbers",
    "news": "a claim about an event",
    "hard": "a tangled claim",
}
DOLLARS: Mapping[str, float] = {"deep": 0.5, "notebook": 0.1, "agent": 0.06, "search": 0.03, "plain": 0.0}
"""Usual cost of a leaf in dollars, by grounder; if the budget is smaller, the next grounder is used."""
_QUANTITY = pattern(
    r"\b(?:above|below|exceeds?|exceeded|under|over|at least|at most|more than|less than|fewer than|higher than|"
    r"lower than|between|reach(?:es)?|rises? (?:by|to|above)|falls? (?:by|to|below))\b[^.]{0,40}?\d"
    r"|\d+(?:[.,]\d+)?\s*(?:%|per ?cent|percent|basis points|bps|points|°C|°F|mm|GW|TWh|barrels|euros?|dollars?)"
    r"|[$€£¥]\s?\d",
    re.IGNORECASE,
)
_SERIES = pattern(
    r"\b(?:index|rate|yield|price|prices|inflation|CPI|GDP|unemployment|payrolls|exchange rate|close[sd]?|average|"
    r"mean|median|temperature|rainfall|volume|output|production|exports|imports|sales|revenue|earnings|turnout|"
    r"share of|number of|count of|per capita)\b",
    re.IGNORECASE,
)
_TANGLED = pattern(
    r"\b(?:because|unless|provided that|in response to|as a result|lead(?:s|ing)? to|cause[sd]?|would|strategy|"
    r"intends?|motive|coalition|regime|credib(?:le|ility)|structural|long-run|sustainab(?:le|ly|ility))\b",
    re.IGNORECASE,
)


def claim_kind(claim: str) -> ClaimKind:
    """Classify a claim by its wording.

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


@frozen
class AdaptiveGrounder:
    """Chooses a grounder for each leaf."""

    grounders: Mapping[str, Grounder]
    """Grounders by name, as in `ORDERS`."""
    name: str = "auto"
    """Name recorded in the tree if all grounders failed."""

    def __post_init__(self) -> None:
        if not self.grounders:
            raise InputError("an adaptive grounder needs grounders to choose from")

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Ground the leaf with the chosen grounder, or with simpler ones if it fails; the result says which and why."""
        chosen, route = await self._route(leaf, context)
        for name in (chosen, *FALL_BACKS.get(chosen, ())):
            if name not in self.grounders:
                continue
            try:
                result = await self.grounders[name].ground(leaf, context)
            except BudgetExceeded:
                raise
            except (CannotGround, CannotForecast, ModelError, InputError) as error:
                route = (*route, f"{name} failed: {one_line(str(error) or type(error).__name__)[:LONGEST_REASON]}")
            else:
                return replace(result, grounding=replace(result.grounding, route=route))
        raise CannotGround("; ".join(route))

    async def _route(self, leaf: Leaf, context: Context) -> tuple[str, tuple[str, ...]]:
        """Choose the first grounder to try, and return it with the reason."""
        names, kind = self.affordable(leaf.budget.dollars), claim_kind(leaf.claim)
        claim = KIND_WORDS[kind]
        if len(names) == 1:
            return names[0], (f"{names[0]}, for {claim}: the only available grounder within the budget",)
        request = StructuredRequest(
            role="judge",
            slot=f"{leaf.slot}/route",
            system=fill_prompts("route", grounders="\n".join(f"- `{name}`: {SUITED[name]}" for name in names)),
            user=sections(("Claim", leaf.claim), ("What it is a part of", leaf.tree_question.question.text)),
            schema=closed_object({"examine_by": {"type": "string", "enum": list(names)}, "reason": TEXT}),
        )
        try:
            answer = await request.ask(context, lambda body: body)
        except BudgetExceeded:
            raise
        except (ModelError, CannotForecast) as error:
            chosen = self.choice(kind, leaf.budget.dollars)
            problem = one_line(str(error))[:LONGEST_REASON]
            return chosen, (f"{chosen}, for {claim}: its wording decides, because no model chose ({problem})",)
        chosen = str(answer["examine_by"])
        return chosen, (f"{chosen}, for {claim}: {one_line(str(answer['reason']))[:LONGEST_REASON]}",)

    def affordable(self, share: float | None) -> list[str]:
        """Return the available grounders that fit the budget, or the cheapest one if none does."""
        known = [name for name in SUITED if name in self.grounders]
        fits = [name for name in known if share is None or DOLLARS.get(name, 0.0) <= share]
        return fits or [min(known or list(self.grounders), key=lambda name: DOLLARS.get(name, 0.0))]

    def choice(self, kind: ClaimKind, share: float | None) -> str:
        """Return the best grounder for a kind of claim among those that are available and affordable."""
        affordable = self.affordable(share)
        return next((name for name in ORDERS[kind] if name in affordable), affordable[0])
