"""A stand-in for Polymarket's three services, with their limits and their known gaps."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from foretell.practice.markets.faults import MarketFaults, query_of
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse

# The catalogue of a fake Polymarket: events and markets as its Gamma service sends them.

CatalogueAnswer = tuple[int, Any]
MAX_EVENTS, MAX_MARKETS = 500, 100


@dataclass(frozen=True, kw_only=True)
class FakeBinary:
    """A market with two outcomes; prices are those of the first."""

    condition: str
    question: str
    label: str = ""
    outcomes: tuple[str, str] = ("Yes", "No")
    bid: float | None = None
    ask: float | None = None
    last: float | None = None
    prices: tuple[str, str] | None = ("0.5", "0.5")
    volume: float = 0.0
    closed: bool = False
    active: bool = True
    accepting: bool = True
    stage: str | None = None
    """How far its resolution has come."""
    closed_at: str | None = None
    ends: str | None = "2027-01-01T00:00:00Z"
    rules: str = "This market resolves to yes if it happens."


@dataclass(frozen=True, kw_only=True)
class FakeGroup:
    """An event with its markets."""

    id: str
    title: str
    markets: tuple[FakeBinary, ...]
    negative_risk: bool | None = False
    augmented: bool = False
    series: str | None = None
    tags: tuple[str, ...] = ()
    figures: Mapping[str, float] | None = None
    """Such as volume, volume24hr, liquidity and openInterest."""


def group_body(group: FakeGroup) -> dict[str, Any]:
    """An event as sent."""
    body: dict[str, Any] = {
        "id": group.id,
        "slug": f"event-{group.id}",
        "title": group.title,
        "description": "",
        "startDate": "2026-01-01T00:00:00Z",
        "endDate": "2027-01-01T00:00:00Z",
        "active": True,
        "closed": all(market.closed for market in group.markets),
        "archived": False,
        "tags": [{"id": str(n), "label": tag, "slug": tag.lower()} for n, tag in enumerate(group.tags)],
        "negRiskAugmented": group.augmented,
        "markets": [binary_body(market, group.negative_risk) for market in group.markets],
        **(group.figures or {}),
    }
    body |= {"negRisk": group.negative_risk} if group.negative_risk is not None else {}
    return body | ({"seriesSlug": group.series, "series": [{"slug": group.series}]} if group.series else {})


def binary_body(market: FakeBinary, negative_risk: bool | None = None) -> dict[str, Any]:
    """A market as sent, with lists as JSON inside texts."""
    body: dict[str, Any] = {
        "id": market.condition[-4:],
        "conditionId": market.condition,
        "slug": f"market-{market.condition[-6:]}",
        "question": market.question,
        "groupItemTitle": market.label,
        "description": market.rules,
        "outcomes": json.dumps(list(market.outcomes)),
        "clobTokenIds": json.dumps([f"{market.condition}1", f"{market.condition}2"]),
        "startDate": "2026-01-01T00:00:00Z",
        "active": market.active,
        "closed": market.closed,
        "archived": False,
        "acceptingOrders": market.accepting,
        "enableOrderBook": True,
        "volume": str(market.volume),
        "volumeNum": market.volume,
        "outcomePrices": None if market.prices is None else json.dumps(list(market.prices)),
        "bestBid": market.bid,
        "bestAsk": market.ask,
        "lastTradePrice": market.last,
    }
    told = {"endDate": market.ends, "umaResolutionStatus": market.stage, "closedTime": market.closed_at}
    body |= {name: value for name, value in told.items() if value is not None}
    return body | ({"negRisk": negative_risk} if negative_risk is not None else {})


class PolymarketCatalogue:
    """Serves events given as the service would send them."""

    def __init__(
        self, events: Iterable[Mapping[str, Any]] = (), *, cursors: bool = True, page: int = MAX_EVENTS
    ) -> None:
        """`cursors` is off for a server of old, with offsets; `page` is the most entries of one answer."""
        self.events = [dict(event) for event in events]
        self.cursors = cursors
        self.page = page

    def answer(self, path: str, query: Mapping[str, str]) -> CatalogueAnswer | None:
        """Status and body; None for what is no part of the catalogue. Repeated names come joined by commas."""
        parts = path.strip("/").split("/")
        if parts[-1] in ("events", "keyset") and "events" in parts:
            return self._list("events", parts, [event for event in self.events if _fits(event, query)], query)
        if parts[-1] == "keyset" or (parts[-1] == "markets" and self.events):
            return self._list("markets", parts, self._markets(query), query)
        if "events" in parts:
            by = "slug" if parts[-2] == "slug" else "id"
            found = next((event for event in self.events if str(event.get(by)) == parts[-1]), None)
            return (200, found) if found is not None else _missing()
        return None

    def _markets(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        asked = query["condition_ids"].split(",") if "condition_ids" in query else None
        return [
            market
            for event in self.events
            for market in event.get("markets", [])
            if (asked is None or market.get("conditionId") in asked)
            and query.get("slug", market.get("slug")) == market.get("slug")
            and market.get("closed") == (query.get("closed", "false") == "true")
        ]

    def _list(self, name: str, parts: list[str], rows: list[Any], query: Mapping[str, str]) -> CatalogueAnswer:
        most = min(self.page, MAX_EVENTS if name == "events" else MAX_MARKETS)
        if parts[-1] != "keyset":
            start = int(query.get("offset", "0"))
            return 200, rows[start : start + min(int(query.get("limit", "20")), most)]
        if not self.cursors:
            return _missing()
        if "offset" in query:
            return 422, {"error": "offset is not supported"}
        start = int(query.get("after_cursor", "c0").removeprefix("c"))
        end = start + min(int(query.get("limit", "20")), most)
        return 200, {name: rows[start:end], **({"next_cursor": f"c{end}"} if end < len(rows) else {})}


def _fits(event: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    ends = str(event.get("endDate", ""))
    return (
        event.get("closed") == (query.get("closed", "false") == "true")
        and ends >= query.get("end_date_min", "")
        and (ends <= query["end_date_max"] if "end_date_max" in query else True)
    )


def _missing() -> CatalogueAnswer:
    return 404, {"error": "not found"}


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
        self.trouble = MarketFaults()

    def having(self, catalogue: PolymarketCatalogue, trouble: MarketFaults | None = None) -> Self:
        """The same, with a catalogue, and perhaps in trouble."""
        self.catalogue, self.trouble = catalogue, trouble or self.trouble
        return self

    def server(self) -> PracticeServer:
        """A server that answers so."""
        server = PracticeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: ServerRequest) -> ServerResponse:
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
