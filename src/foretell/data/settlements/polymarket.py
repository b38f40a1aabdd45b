"""Polymarket's results: what a share was worth once the market was closed and nobody disputes it any more."""

from collections.abc import Sequence

from foretell.data.markets.catalogue import UnsupportedEvent, flag, moment, words
from foretell.data.markets.listing import OnSkipped, ignore_skipped
from foretell.data.markets.polymarket import OVER, PolymarketClient, outcomes, page_of, yes_of
from foretell.data.markets.prices import SLUG
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import (
    SettledOutcome,
    SettlementTarget,
    by_market,
    chunks,
    read_settlements,
    settlement_targets,
)
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

BATCH = 50
PAGE = 100
MAX_PAGES = 20
DUST = 1e-3
"""Old markets ended a hair's breadth from one and zero."""


class PolymarketSettlements:
    """Results by condition id, fifty at a time. Only closed markets are asked for: a market not among them is open."""

    platform = "polymarket"

    def __init__(self, client: PolymarketClient, *, tell: OnSkipped = ignore_skipped) -> None:
        self._client = client
        self._tell = tell

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Final results."""
        wanted = by_market(settlement_targets(questions, self.platform))
        conditions = [market for market in wanted if not market.startswith(SLUG)]
        asked = [[("condition_ids", one) for one in chunk] for chunk in chunks(conditions, BATCH)]
        asked += [[("slug", market.removeprefix(SLUG))] for market in wanted if market.startswith(SLUG)]
        found: list[Resolution] = []
        for query in asked:
            for row in await self._closed(query):
                found += self._judged(row, wanted)
        return found

    def _judged(self, row: Payload, wanted: dict[str, list[SettlementTarget]]) -> list[Resolution]:
        condition, slug = row.need("conditionId").text(), f"{SLUG}{words(row, 'slug')}"
        group = [*wanted.get(condition, []), *wanted.get(slug, [])]
        provenance = f"{self._client.gamma}/markets?condition_ids={condition}&closed=true"
        return read_settlements(group, lambda one: _settled_outcome(row, one), provenance, self._tell)

    async def _closed(self, query: Sequence[tuple[str, str]]) -> list[Payload]:
        rows: list[Payload] = []
        cursor = ""
        for _ in range(MAX_PAGES):
            page = await page_of(self._client, "markets", [*query, ("closed", "true")], cursor, size=PAGE)
            rows += page.rows
            if page.following is None or len(rows) >= len(query):
                break
            cursor = page.following
        return rows


def _settled_outcome(row: Payload, one: SettlementTarget) -> SettledOutcome | None:
    if not flag(row.need("closed")):
        return None
    stage = words(row, "umaResolutionStatus").casefold()
    if stage and stage not in OVER:
        return None
    row.need("outcomePrices")
    sides = outcomes(row)
    side = (
        yes_of(sides)
        if one.part is None
        else next((s for s in sides if s.name.casefold() == one.part.casefold()), None)
    )
    if side is None or side.price is None:
        raise UnsupportedEvent(f"the market has no outcome {one.part or 'yes'!r}")
    at = moment(row, "closedTime")
    if abs(side.price - round(side.price)) <= (DUST if stage else 0.0):
        return SettledOutcome(outcome=round(side.price), at=at)
    # Without a word on its resolution a price between is just the last one traded.
    return SettledOutcome(outcome=None, payoff=side.price, at=at) if stage else None
