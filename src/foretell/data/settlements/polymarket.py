"""Polymarket's results: what a share was worth once the market was closed and is no longer disputed."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime

from foretell.data.http import NotFound, SourceError
from foretell.data.markets.listing import SkippedEntry, UnsupportedEvent, readable
from foretell.data.markets.market import SLUG
from foretell.data.markets.polymarket import (
    OVER,
    UNDER_WAY,
    PolymarketClient,
    PolymarketOutcome,
    outcomes,
    page_of,
    paid_in_full,
    resolution_stage,
)
from foretell.data.payload import MalformedPayload, Payload
from foretell.data.settlements.settlement import (
    MarketSettlements,
    SettledMarket,
    SettledOutcome,
    SettlementTarget,
    chunks,
)

PAGE = 100
MAX_PAGES = 20
DUST = 1e-3
"""Tolerance for prices: old markets ended slightly off one and zero."""
NOT_PRICED = 69.0
"""The oracle's value while it has not decided."""
MICRO = 1_000_000
VERDICTS = 20
"""Maximum number of markets per request for resolutions."""
PAYS = "foretell_pays"
"""Field in which payoffs from other services are stored next to those of the catalogue."""


class PolymarketSettlements(MarketSettlements[PolymarketClient]):
    """Results by condition id, fifty at a time. Only closed markets are requested: one that is not returned is open.

    For a closed market without a result in the catalogue, the data service and then the order book are used.
    """

    platform = "polymarket"
    batch = 50
    absent_is_open = True

    async def markets(self, ids: Sequence[str]) -> dict[str, SettledMarket | str]:
        """Return the closed ones of these markets; condition ids in one request, slugs one by one."""
        queries = [[("condition_ids", id) for id in ids if not id.startswith(SLUG)]]
        queries += [[("slug", id.removeprefix(SLUG))] for id in ids if id.startswith(SLUG)]
        rows = [row for query in filter(None, queries) for row in await self._closed(query)]
        place = f"{self._client.gamma.host}/markets?closed=true&condition_ids="
        markets = self.by_id(rows, "conditionId", lambda condition: f"{place}{condition}")
        undecided = [
            id for id, market in markets.items() if isinstance(market, SettledMarket) and _undecided(market.row)
        ]
        for id, pays in (await self._elsewhere(undecided)).items():
            market = markets[id]
            if isinstance(market, SettledMarket):
                row = Payload(url=market.row.url, path=market.row.path, value={**market.row.value, PAYS: pays})
                markets[id] = SettledMarket(row=row, provenance=market.provenance)
        slugs = {
            f"{SLUG}{market.row.value.get('slug')}": market
            for market in markets.values()
            if isinstance(market, SettledMarket)
        }
        return {**slugs, **markets}

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

    async def _elsewhere(self, conditions: Sequence[str]) -> dict[str, list[float]]:
        """Return what shares of both sides were worth by the data service, else by the order book, if they have it."""
        elsewhere: dict[str, list[float]] = {}
        for ids in chunks(conditions, VERDICTS):
            with self._second_source(ids[0]):
                rows = await self._client.resolutions(ids)
                elsewhere |= dict(readable(rows, _decided, self.platform, "resolutions", self.skipped.append))
        for id in [id for id in conditions if id not in elsewhere]:
            with self._second_source(id):
                pays = book_pays(await self._client.book(id))
                elsewhere |= {id: pays} if pays else {}
        return elsewhere

    @contextmanager
    def _second_source(self, id: str) -> Generator[None]:
        """Report errors of a service that is only a fallback, and continue."""
        try:
            yield
        except NotFound:
            pass
        except SourceError as error:
            self.skipped.append(SkippedEntry.because(error, self.platform, id))

    def outcome(self, row: Payload, target: SettlementTarget) -> SettledOutcome | None:
        """Return what a share of the side was worth."""
        if not row.need("closed").flag():
            return None
        if not row.has(PAYS):
            row.need("outcomePrices")
        name, sides = target.part or "yes", outcomes(row)
        side = next((side for side in sides if side.name.casefold() == name.casefold()), None)
        if side is None:
            raise UnsupportedEvent(f"the market has no outcome {name!r}")
        at = row.optional_time("closedTime")
        if row.has(PAYS):
            return _verdict(row.need(PAYS).items()[side.place].probability(), at)
        return _catalogue_verdict(row, sides, side)


def _catalogue_verdict(
    row: Payload, sides: tuple[PolymarketOutcome, PolymarketOutcome], side: PolymarketOutcome
) -> SettledOutcome | None:
    """Return the outcome by the prices that a closed market shows, if they are final."""
    stage, at = resolution_stage(row), row.optional_time("closedTime")
    if stage in UNDER_WAY:
        return None
    if stage and stage not in OVER:
        (row.get("umaResolutionStatus") or row.need("resolutionStatus")).wrong("a known stage")
    if side.price is None:
        # Results of markets from before the order book are no longer published here; another service may have them.
        return None if row.is_set("enableOrderBook") else SettledOutcome(outcome=None, at=at)
    if stage:
        return _verdict(side.price, at, dust=DUST)
    if paid_in_full(sides) or row.words("marketType") == "scalar":
        return _verdict(side.price, at)
    # Without a stated resolution, a price in between is just the last one traded.
    return None


def _verdict(price: float, at: datetime | None, *, dust: float = 0.0) -> SettledOutcome:
    """Return the outcome for a share price: 1 is a yes and 0 is a no; anything between is a payoff."""
    if abs(price - round(price)) <= dust:
        return SettledOutcome(outcome=round(price), at=at)
    return SettledOutcome(outcome=None, payoff=price, at=at)


def _undecided(row: Payload) -> bool:
    """Whether a closed market states no result, nor that one is still to come."""
    try:
        sides = outcomes(row)
        plain = not resolution_stage(row) and row.words("marketType") != "scalar"
        return plain and not paid_in_full(sides)
    except (MalformedPayload, UnsupportedEvent):
        return False


def _decided(row: Payload) -> tuple[str, list[float]] | None:
    pays = resolution_pays(row)
    return None if pays is None else (row.need("condition_id").text(), pays)


def resolution_pays(row: Payload) -> list[float] | None:
    """Return what shares of both sides are worth by an entry of the data service; None until it is resolved."""
    status = row.need("status")
    if status.text() != "resolved":
        return None if status.text() in UNDER_WAY else status.wrong("a known stage")
    if (payouts := row.get("payouts")) is not None:
        pays = [payout.number() / MICRO for payout in payouts.items()]
        return pays if len(pays) == 2 and all(0.0 <= pay <= 1.0 for pay in pays) else payouts.wrong("two payoffs")
    price = row.get("price")
    if price is None or price.number() == NOT_PRICED:
        return None
    return [price.probability(), 1.0 - price.probability()]


def book_pays(row: Payload) -> list[float] | None:
    """Return what shares of both sides are worth by the order book; None if no side is marked as the winner."""
    won = [token.is_set("winner") for token in row.need("tokens").items()]
    return (
        [float(side_won) for side_won in won]
        if row.need("closed").flag() and won.count(True) == 1 and len(won) == 2
        else None
    )
