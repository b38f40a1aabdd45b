"""Polymarket prices of one outcome token.

The catalogue (Gamma) leads from a condition id to the token. Prices come from the data service, in windows of at most
15 days, and where it has none, from the older order-book service, which for resolved markets only answers coarsely.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import SourceError
from foretell.sources.market import MarketRef, PricePoint, PricesUnavailable
from foretell.sources.markets.history import daily, window_start
from foretell.sources.markets.reference import SLUG, split_part
from foretell.sources.payload import Malformed, Payload, read

GAMMA = "https://gamma-api.polymarket.com"
DATA = "https://data-api.polymarket.com"
CLOB = "https://clob.polymarket.com"
DAY_SECONDS = 86_400
DATA_WINDOW = 15 * DAY_SECONDS
BUCKET = 10_800
"""Three hours: the finest grain that the data service keeps for good."""
CLOB_WINDOW = 14 * DAY_SECONDS
CLOB_MINUTES = 720
"""Half days: anything finer comes back empty for resolved markets."""
MAX_PAGES = 100


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A market of the catalogue: its outcomes and the token of each, in the same order."""

    condition_id: str
    outcomes: tuple[str, ...]
    tokens: tuple[str, ...]

    def token(self, outcome: str) -> str | None:
        """The token of an outcome, whatever its case and place."""
        names = [name.casefold() for name in self.outcomes]
        return self.tokens[names.index(outcome.casefold())] if outcome.casefold() in names else None


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """Where the three services are."""

    gamma: str = GAMMA
    data: str = DATA
    clob: str = CLOB


class PolymarketClient:
    """The public reading end of the three services, typed."""

    def __init__(self, *, http: AsyncHttpClient, hosts: Hosts | None = None, per_second: float = 15.0) -> None:
        self._http = http
        self._hosts = hosts or Hosts()
        for host in (self._hosts.gamma, self._hosts.data, self._hosts.clob):
            http.pace(host, per_second=per_second, burst=20)

    @property
    def gamma(self) -> str:
        """Where the catalogue is."""
        return self._hosts.gamma

    async def read(self, path: str, params: Iterable[tuple[str, str]] = ()) -> Payload:
        """What stands at a path of the catalogue, as sent; names may be repeated, as it wants lists asked for."""
        query = urlencode(list(params))
        return await read(self._http, f"{self._hosts.gamma}{path}" + (f"?{query}" if query else ""))

    async def listing(self, market: str) -> Listing | None:
        """The market by condition id or `slug:…`. The catalogue hides closed markets unless asked for them."""
        by = {"slug": market.removeprefix(SLUG)} if market.startswith(SLUG) else {"condition_ids": market}
        for closed in ("false", "true"):
            answer = await read(self._http, f"{self._hosts.gamma}/markets", params={**by, "closed": closed})
            rows = (answer.need("markets") if isinstance(answer.value, dict) else answer).items()
            if len(rows) == 1:
                return _listing(rows[0])
        return None

    async def history(self, token: str, start: int, end: int) -> list[PricePoint]:
        """Bucketed prices of a window of at most 15 days, from the data service. `end` is not included."""
        query = {"token_id": token, "start": str(start), "end": str(end), "bucket_seconds": str(BUCKET)}
        found: list[PricePoint] = []
        for _ in range(MAX_PAGES):
            answer = await read(self._http, f"{self._hosts.data}/v2/prices-history", params=query)
            found += _data_points(answer)
            paging = answer.get("pagination")
            cursor = paging.get("next_cursor") if paging is not None else None
            if cursor is None:
                return found
            query["cursor"] = cursor.text()
        return found

    async def price_at(self, token: str, second: int) -> list[PricePoint]:
        """The newest observation at or before a moment, from the data service; empty where there is none."""
        query = {"token_id": token, "as_of": str(second)}
        return _data_points(await read(self._http, f"{self._hosts.data}/v2/prices-history", params=query))

    async def sampled(self, token: str, start: int, end: int) -> list[PricePoint]:
        """Prices by half days from the order-book service, which wants windows of at most two weeks."""
        query = {"market": token, "startTs": str(start), "endTs": str(end), "fidelity": str(CLOB_MINUTES)}
        answer = await read(self._http, f"{self._hosts.clob}/prices-history", params=query)
        return [
            PricePoint(at=row.need("t").moment(), p=row.need("p").probability())
            for row in answer.need("history").items()
        ]


class PolymarketPrices:
    """Price histories by condition id, of yes unless another outcome is named (`<id>#<outcome>`)."""

    platform = "polymarket"

    def __init__(self, client: PolymarketClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """One price a day."""
        start, end = window_start(as_of, days), int(as_of.at.timestamp()) + 1
        token = await self._token(ref)
        points = await self._from_data(token, as_of, start, end)
        if not points:
            points = await self._from_clob(token, start, end)
        return daily(ref, points, as_of, days)

    async def _token(self, ref: MarketRef) -> str:
        market, outcome = split_part(ref)
        listing = await self._client.listing(market)
        if listing is None:
            raise PricesUnavailable(f"polymarket lists no market {market}")
        token = listing.token(outcome or "yes")
        if token is None:
            raise PricesUnavailable(
                f"polymarket {market} has no outcome {outcome or 'yes'!r}; name one with {market}#<outcome>"
            )
        return token

    async def _from_data(self, token: str, as_of: AsOf, start: int, end: int) -> list[PricePoint]:
        """Known points; none where the service is down or not there, because there is a second one to ask."""
        points: list[PricePoint] = []
        try:
            for since, until in _chunks(start, end, DATA_WINDOW):
                points += await self._client.history(token, since, until)
            known = [point for point in points if as_of.admits(point.at)]
            return known or await self._standing(token, as_of)
        except Malformed:
            raise
        except SourceError:
            return []

    async def _standing(self, token: str, as_of: AsOf) -> list[PricePoint]:
        """The price that stood at the cutoff; the one before it while its bucket was still open then."""
        second = int(as_of.at.timestamp())
        for moment in (second, second - BUCKET):
            points = await self._client.price_at(token, moment)
            if known := [point for point in points if as_of.admits(point.at)]:
                return known
        return []

    async def _from_clob(self, token: str, start: int, end: int) -> list[PricePoint]:
        found: list[PricePoint] = []
        for since, until in _chunks(start, end, CLOB_WINDOW):
            found += await self._client.sampled(token, since, until)
        return found


def _chunks(start: int, end: int, size: int) -> Iterable[tuple[int, int]]:
    for since in range(start, end, size):
        yield since, min(since + size, end)


def _listing(row: Payload) -> Listing:
    outcomes, tokens = _names(row, "outcomes", Payload.text), _names(row, "clobTokenIds", Payload.name)
    if len(outcomes) != len(tokens):
        row.need("clobTokenIds").wrong("as long as outcomes")
    return Listing(condition_id=row.need("conditionId").text(), outcomes=outcomes, tokens=tokens)


def _names(row: Payload, field: str, read_one: Callable[[Payload], str]) -> tuple[str, ...]:
    return tuple(read_one(item) for item in row.need(field).embedded().items())


def _data_points(answer: Payload) -> list[PricePoint]:
    """Points of the data service. A miss is `data: null`; a single observation may come without a list."""
    data = answer.present("data")
    if data is None:
        return []
    rows = [data] if isinstance(data.value, dict) else data.items()
    return [_data_point(row) for row in rows]


def _data_point(row: Payload) -> PricePoint:
    """A price counts as known when its bucket is over, whichever end the bucket is stamped with."""
    width = row.get("resolution_seconds")
    seconds = min(max(width.number(), 0.0), float(DAY_SECONDS)) if width is not None else float(BUCKET)
    return PricePoint(at=row.need("timestamp").moment() + timedelta(seconds=seconds), p=row.need("price").probability())
