"""Polymarket's results: what a share was worth once the market was closed and nobody disputes it any more."""

from collections.abc import Sequence

from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.sources.listing import Tell, unheard
from foretell.sources.markets.catalogue import Unsupported
from foretell.sources.markets.fields import flag, moment, words
from foretell.sources.markets.polymarket import PolymarketClient
from foretell.sources.markets.polymarket_events import OVER, outcomes, page_of, yes_of
from foretell.sources.markets.reference import SLUG
from foretell.sources.payload import Payload
from foretell.sources.settlements.settlement import Sought, Verdict, by_market, chunks, judged, sought

BATCH = 50
PAGE = 100
MAX_PAGES = 20
DUST = 1e-3
"""Old markets ended a hair's breadth from one and zero."""


class PolymarketSettlements:
    """Results by condition id, fifty at a time. Only closed markets are asked for: a market not among them is open."""

    platform = "polymarket"

    def __init__(self, client: PolymarketClient, *, tell: Tell = unheard) -> None:
        self._client = client
        self._tell = tell

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Final results."""
        wanted = by_market(sought(questions, self.platform))
        conditions = [market for market in wanted if not market.startswith(SLUG)]
        asked = [[("condition_ids", one) for one in chunk] for chunk in chunks(conditions, BATCH)]
        asked += [[("slug", market.removeprefix(SLUG))] for market in wanted if market.startswith(SLUG)]
        found: list[Resolution] = []
        for query in asked:
            for row in await self._closed(query):
                found += self._judged(row, wanted)
        return found

    def _judged(self, row: Payload, wanted: dict[str, list[Sought]]) -> list[Resolution]:
        condition, slug = row.need("conditionId").text(), f"{SLUG}{words(row, 'slug')}"
        group = [*wanted.get(condition, []), *wanted.get(slug, [])]
        provenance = f"{self._client.gamma}/markets?condition_ids={condition}&closed=true"
        return judged(group, lambda one: _verdict(row, one), provenance, self._tell)

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


def _verdict(row: Payload, one: Sought) -> Verdict | None:
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
        raise Unsupported(f"the market has no outcome {one.part or 'yes'!r}")
    at = moment(row, "closedTime")
    if abs(side.price - round(side.price)) <= (DUST if stage else 0.0):
        return Verdict(outcome=round(side.price), at=at)
    # Without a word on its resolution a price between is just the last one traded.
    return Verdict(outcome=None, payoff=side.price, at=at) if stage else None
