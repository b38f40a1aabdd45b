"""Polymarket's results: what a share was worth once the market was closed and nobody disputes it any more."""

from collections.abc import Sequence

from foretell.data.markets.listing import OnSkipped, UnsupportedEvent, ignore_skipped
from foretell.data.markets.polymarket import OVER, PolymarketClient, outcomes, page_of
from foretell.data.markets.prices import SLUG
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import MarketSettlements, SettledMarket, SettledOutcome, SettlementTarget

PAGE = 100
MAX_PAGES = 20
DUST = 1e-3
"""Old markets ended a hair's breadth from one and zero."""


class PolymarketSettlements(MarketSettlements):
    """Results by condition id, fifty at a time. Only closed markets are asked for: a market not among them is open."""

    platform = "polymarket"
    batch = 50
    absent_is_open = True

    def __init__(self, client: PolymarketClient, *, tell: OnSkipped = ignore_skipped) -> None:
        super().__init__(tell=tell)
        self._client = client

    async def markets(self, ids: Sequence[str]) -> dict[str, SettledMarket | str]:
        """Those that are closed; condition ids in one request, slugs one by one."""
        queries = [[("condition_ids", id) for id in ids if not id.startswith(SLUG)]]
        queries += [[("slug", id.removeprefix(SLUG))] for id in ids if id.startswith(SLUG)]
        found: dict[str, SettledMarket | str] = {}
        for query in filter(None, queries):
            for row in await self._closed(query):
                condition = row.need("conditionId").text()
                provenance = f"{self._client.gamma.host}/markets?condition_ids={condition}&closed=true"
                found[condition] = found[f"{SLUG}{row.words('slug')}"] = SettledMarket(row=row, provenance=provenance)
        return found

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

    def outcome(self, row: Payload, one: SettlementTarget) -> SettledOutcome | None:
        """What a share of the side was worth."""
        stage = row.words("umaResolutionStatus").casefold()
        if not row.need("closed").flag() or (stage and stage not in OVER):
            return None
        row.need("outcomePrices")
        name = one.part or "yes"
        price = next((side.price for side in outcomes(row) if side.name.casefold() == name.casefold()), None)
        if price is None:
            raise UnsupportedEvent(f"the market has no outcome {name!r}")
        at = row.optional_time("closedTime")
        if abs(price - round(price)) <= (DUST if stage else 0.0):
            return SettledOutcome(outcome=round(price), at=at)
        # Without a word on its resolution a price between is just the last one traded.
        return SettledOutcome(outcome=None, payoff=price, at=at) if stage else None
