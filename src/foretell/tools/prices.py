"""Prices of a question's market in the weeks before the cutoff."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.data.http import SourceError
from foretell.data.markets.prices import MarketRef, PricePoint, PriceSource, PricesUnavailable, market_ref
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, LeakBlocked, ignore_event
from foretell.tools.names import FETCH_PRICES
from foretell.tools.rules import clamp_prices
from foretell.tools.tool import SourceItem, ToolFailed, ToolMaterial

DAYS = 60
MAX_TARGETS = 12
SPEC = ToolSpec(
    name=FETCH_PRICES,
    description=(
        "Get the prices at which this question's own market traded in the 60 days before the cutoff, as probabilities "
        "of yes. No arguments."
    ),
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)


async def known_prices(
    source: PriceSource, ref: MarketRef, as_of: AsOf, days: int, emit: EmitEvent
) -> list[PricePoint]:
    """Return a market's prices in the days before the cutoff, oldest first; raise `ToolFailed` if they cannot be read.

    Contains times and prices only, because all other fields of a market reflect today's state.
    """
    try:
        points = await source.prices(ref, as_of, days)
    except (PricesUnavailable, SourceError) as error:
        raise ToolFailed(f"The prices could not be read: {error}") from error
    known, late = clamp_prices(points, as_of)
    if late:
        name = f"{ref.platform}/{ref.id}"
        emit(LeakBlocked(layer="data", reason=f"{late} prices of {name} after the cutoff", title=name))
    return known


@dataclass(frozen=True, kw_only=True)
class FetchPrices:
    """Reads the prices of one question's market."""

    question: Question
    sources: Mapping[str, PriceSource]
    """Price sources by platform."""
    emit: EmitEvent = ignore_event

    spec = SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return one item of dated prices per target."""
        found = [await self._item(target, as_of) for target in self.question.targets[:MAX_TARGETS]]
        items = tuple(item for item in found if item is not None)
        if not items:
            raise ToolFailed("No price of this question's market was known at the cutoff; search for reports instead.")
        return ToolMaterial(heading="Prices of the question's market, as probabilities of yes:", items=items)

    async def _item(self, target: Target, as_of: AsOf) -> SourceItem | None:
        ref = market_ref(self.question, target)
        source = self.sources.get(ref.platform) if ref is not None else None
        if ref is None or source is None:
            raise ToolFailed("This question has no market whose prices can be read; search for reports instead.")
        try:
            known = await known_prices(source, ref, as_of, DAYS, self.emit)
        except ToolFailed:
            if len(self.question.targets) > 1:
                return None
            raise
        text = "\n".join(["moment, price", *(f"{point.at:%Y-%m-%dT%H:%MZ}, {point.p:.3f}" for point in known)])
        return SourceItem(title=target.label or target.id, text=text, clamped=True) if known else None
