"""A stand-in for Polymarket's three services, with their limits and their known gaps."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from foretell.fakes.markets.polymarket_catalogue import PolymarketCatalogue
from foretell.fakes.markets.trouble import Trouble, query_of
from foretell.fakes.server import FakeServer, Request, Response

HALF_DAY_MINUTES = 720


@dataclass(frozen=True, kw_only=True)
class FakeListing:
    """A market; trades of each token as (Unix second, price), oldest first."""

    slug: str
    outcomes: tuple[str, ...]
    tokens: tuple[str, ...]
    trades: Mapping[str, tuple[tuple[int, float], ...]]
    closed: bool = False


class FakePolymarket:
    """Answers under `/gamma`, `/data` and `/clob`."""

    def __init__(
        self,
        listings: Mapping[str, FakeListing],
        *,
        data_service: bool = True,
        nested: bool = True,
        canary: str = "",
        careless: bool = False,
        page: int = 10_000,
    ) -> None:
        """Keys of `listings` are condition ids.

        Args:
            listings: The markets.
            data_service: Whether the newer price service exists.
            nested: Whether lists come as JSON inside strings, as they did first.
            canary: Planted wherever a real answer tells the future.
            careless: Serve two days more than asked for.
            page: Points a page.
        """
        self.listings = listings
        self.data_service = data_service
        self.nested = nested
        self.canary = canary
        self.careless = careless
        self.page = page
        self.catalogue = PolymarketCatalogue()
        self.trouble = Trouble()

    def having(self, catalogue: PolymarketCatalogue, trouble: Trouble | None = None) -> Self:
        """The same, with a catalogue, and perhaps in trouble."""
        self.catalogue, self.trouble = catalogue, trouble or self.trouble
        return self

    def server(self) -> FakeServer:
        """A server that answers so."""
        server = FakeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: Request) -> Response:
        return self.trouble.response(request, *self.answer(request.path, query_of(request)))

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body."""
        if "/gamma/" in path and (told := self.catalogue.answer(path, query)) is not None:
            return told
        if path.endswith("/gamma/markets"):
            return 200, self._catalogue(query)
        if path.endswith("/data/v2/prices-history") and self.data_service:
            return self._data(query)
        if path.endswith("/clob/prices-history"):
            return 200, {"history": self._samples(query)}
        return 404, {"error": "not found"}

    def _catalogue(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        closed = query.get("closed", "false") == "true"
        return [
            self._row(condition, listing)
            for condition, listing in self.listings.items()
            if listing.closed == closed
            and query.get("condition_ids", condition) == condition
            and query.get("slug", listing.slug) == listing.slug
        ]

    def _row(self, condition: str, listing: FakeListing) -> dict[str, Any]:
        lists = {"outcomes": list(listing.outcomes), "clobTokenIds": list(listing.tokens)}
        told = ("closed", "active", "closedTime", "umaResolutionStatus", "volume", "liquidity", "lastTradePrice")
        return {
            "conditionId": condition,
            "slug": listing.slug,
            **{name: json.dumps(value) if self.nested else value for name, value in lists.items()},
            "outcomePrices": json.dumps([self.canary, self.canary]),
            **{name: self.canary for name in told},
        }

    def _trades(self, token: str) -> tuple[tuple[int, float], ...]:
        return next((one.trades[token] for one in self.listings.values() if token in one.trades), ())

    def _data(self, query: Mapping[str, str]) -> tuple[int, Any]:
        forms = [form for form in ("start", "as_of", "interval") if form in query]
        if len(forms) != 1:
            return 400, {"error": "exactly one of start, as_of, interval"}
        trades = self._trades(query["token_id"])
        late = 2 * 86400 * self.careless
        if "as_of" in query:
            known = [trade for trade in trades if trade[0] <= int(query["as_of"]) + late]
            return 200, {"data": [self._point(*known[-1], 0)] if known else None}
        start, end = int(query["start"]), int(query["end"])
        if end - start > 15 * 86400:
            return 400, {"error": "window exceeds 15 days"}
        points = self._buckets(trades, start, end + late, int(query["bucket_seconds"]))
        first = int(query.get("cursor", "0"))
        following = first + self.page
        more = str(following) if following < len(points) else None
        body = {"data": points[first:following], "pagination": {"has_more": more is not None, "next_cursor": more}}
        return 200, body

    def _buckets(self, trades: tuple[tuple[int, float], ...], start: int, end: int, width: int) -> list[dict[str, Any]]:
        """The last price of each bucket, stamped with the bucket's start; then the last trade itself."""
        inside = [trade for trade in trades if start <= trade[0] < end]
        closes = {at - at % width: price for at, price in inside}
        points = [self._point(at, price, width) for at, price in closes.items()]
        return points + ([self._point(*inside[-1], 0)] if inside else [])

    def _point(self, at: int, price: float, width: int) -> dict[str, Any]:
        return {"timestamp": at, "price": price, "resolution_seconds": width, "status": self.canary}

    def _samples(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        token, minutes = query["market"], int(query["fidelity"])
        listing = next((one for one in self.listings.values() if token in one.trades), None)
        start, end = int(query["startTs"]), int(query["endTs"])
        too_fine = listing is not None and listing.closed and minutes < HALF_DAY_MINUTES
        if listing is None or too_fine or end - start > 14 * 86400:
            return []
        trades = listing.trades[token]
        found: list[dict[str, Any]] = []
        for second in range(start, end + 1 + 2 * 86400 * self.careless, minutes * 60):
            known = [price for at, price in trades if at <= second]
            found += [{"t": second, "p": known[-1]}] if known else []
        return found
