"""Manifold prices from its public bets: each bet says what the probability was after it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import SourceError
from foretell.sources.market import MarketRef, PricePoint, PricesUnavailable
from foretell.sources.markets.history import daily, window_start
from foretell.sources.markets.reference import SLUG, split_part
from foretell.sources.payload import Payload, Strings, read

HOST = "https://api.manifold.markets/v0"
PAGE = 1000
MAX_PAGES = 50
MILLI = 1000


@dataclass(frozen=True, kw_only=True)
class Bet:
    """What a bet tells about the price, and nothing else."""

    id: str
    at: datetime
    answer: str | None
    after: float
    """The probability right after it."""


class ManifoldClient:
    """The public reading end, typed."""

    def __init__(self, *, http: AsyncHttpClient, host: str = HOST, per_second: float = 8.0) -> None:
        self._http = http
        self._host = host
        http.pace(host, per_second=per_second, burst=20)

    async def read(self, path: str, params: Strings | None = None) -> Payload:
        """What stands at a path, as sent."""
        return await read(self._http, f"{self._host}{path}", params=params)

    async def contract(self, market: str) -> Payload:
        """A whole market by its id or `slug:…`, as sent."""
        slug = market.startswith(SLUG)
        return await self.read(f"/{'slug' if slug else 'market'}/{quote(market.removeprefix(SLUG), safe='')}")

    async def bets(self, market: str, answer: str | None, before_ms: int) -> tuple[list[Bet], int, int]:
        """A page of bets made before a moment, newest first; how many rows it had, and the time of its oldest."""
        by = {"contractSlug": market.removeprefix(SLUG)} if market.startswith(SLUG) else {"contractId": market}
        query = {**by, "beforeTime": str(before_ms), "limit": str(PAGE), "order": "desc"}
        if answer is not None:
            query["answerId"] = answer
        rows = (await self.read("/bets", query)).items()
        oldest = min((int(row.need("createdTime").number()) for row in rows), default=0)
        return [bet for row in rows if (bet := _bet(row)) is not None], len(rows), oldest


class ManifoldPrices:
    """Price histories by contract id (or `slug:…`); of one answer by `<id>#<answer id>`."""

    platform = "manifold"

    def __init__(self, client: ManifoldClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """The price after the last bet of each day."""
        market, answer = split_part(ref)
        since = window_start(as_of, days) * MILLI
        try:
            bets = await self._bets(market, answer, as_of, since)
        except SourceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise PricesUnavailable(f"manifold has no market {market}") from None
            raise
        if answer is None and any(bet.answer is not None for bet in bets):
            raise PricesUnavailable(f"manifold {market} has several answers; name one with {market}#<answer id>")
        ordered = sorted((bet for bet in bets if bet.answer == answer), key=lambda bet: bet.at)
        return daily(ref, (PricePoint(at=bet.at, p=bet.after) for bet in ordered), as_of, days)

    async def _bets(self, market: str, answer: str | None, as_of: AsOf, since_ms: int) -> Iterable[Bet]:
        """Bets from the cutoff back to the start of the window, or to the first before it."""
        before = int(as_of.at.timestamp() * MILLI) + 1
        found: dict[str, Bet] = {}
        for _ in range(MAX_PAGES):
            page, size, oldest = await self._client.bets(market, answer, before)
            # Reversed, so that of two bets of one millisecond the newer is met last.
            found = {**{bet.id: bet for bet in reversed(page)}, **found}
            ambiguous = answer is None and any(bet.answer is not None for bet in page)
            reached = oldest < since_ms and any(bet.answer == answer for bet in found.values())
            if size < PAGE or reached or ambiguous:
                break
            # One more millisecond keeps bets of the same moment; unless the whole page is of that moment.
            before = oldest + 1 if oldest + 1 < before else oldest
        return found.values()


def _bet(row: Payload) -> Bet | None:
    """A bet, or None for an order in the book that nobody has taken: it moved no price."""
    amount = row.need("amount").number()
    if amount == 0 and row.get("limitProb") is not None:
        return None
    answer = row.get("answerId")
    return Bet(
        id=row.need("id").name(),
        at=row.need("createdTime").moment(per_second=MILLI),
        answer=None if answer is None or answer.value in ("", "undefined") else answer.name(),
        after=row.need("probAfter").probability(),
    )
