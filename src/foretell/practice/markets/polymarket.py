"""Polymarket for practice: catalogue, data service and order book, with their limits and known gaps."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from foretell.practice.server import PracticeService, ServerRequest, StatusAndBody

MAX_EVENTS, MAX_MARKETS = 500, 100
MAX_RESOLUTIONS = 20
NOT_PRICED = "69"
NOT_FOUND: StatusAndBody = 404, {"error": "not found"}


class PolymarketCatalogue:
    """Events and markets of the Gamma service, given as it would send them."""

    def __init__(self, events: Iterable[Mapping[str, Any]] = (), *, page: int = MAX_EVENTS) -> None:
        """`page` is the maximum number of entries per answer."""
        self.events = [dict(event) for event in events]
        self.page = page

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody:
        """Return the status and body for a path."""
        parts = path.strip("/").split("/")
        if parts[-1] == "public-search":
            events = [event for event in self.events if _about(event, query.get("q", ""))]
            fitting = [event for event in events if query.get("events_status") != "active" or not event.get("closed")]
            rows = fitting[: int(query.get("limit_per_type", "5"))]
            return 200, {"events": rows, "pagination": {"hasMore": False, "totalResults": len(rows)}}
        if parts[-1] in ("events", "keyset") and "events" in parts:
            fitting = [event for event in self.events if _fits(event, query)]
            if (order := query.get("order")) is not None:
                fitting.sort(key=lambda event: float(event.get(order) or 0), reverse=query.get("ascending") == "false")
            return self._list("events", parts, fitting, query)
        if parts[-1] in ("markets", "keyset"):
            return self._list("markets", parts, self._markets(query), query)
        if "events" in parts:
            return _entry(self.events, parts)
        return _entry(self.markets, parts) if "markets" in parts else NOT_FOUND

    @property
    def markets(self) -> list[Mapping[str, Any]]:
        """The markets of all events."""
        return [market for event in self.events for market in event.get("markets", [])]

    def market_of(self, token: str) -> Mapping[str, Any] | None:
        """Return the market that has this outcome token; None if there is none."""
        return next((market for market in self.markets if token in json.loads(market["clobTokenIds"])), None)

    def by_condition(self, condition: str) -> Mapping[str, Any] | None:
        """Return the market with this condition id; None if there is none."""
        return next((market for market in self.markets if market.get("conditionId") == condition), None)

    def _markets(self, query: Mapping[str, str]) -> list[Mapping[str, Any]]:
        wanted = query["condition_ids"].split(",") if "condition_ids" in query else None
        return [
            market
            for market in self.markets
            if (wanted is None or market.get("conditionId") in wanted)
            and query.get("slug", market.get("slug")) == market.get("slug")
            and market.get("closed") == (query.get("closed", "false") == "true")
        ]

    def _list(self, name: str, parts: list[str], rows: list[Any], query: Mapping[str, str]) -> StatusAndBody:
        most = min(self.page, MAX_EVENTS if name == "events" else MAX_MARKETS)
        if parts[-1] != "keyset":
            start = int(query.get("offset", "0"))
            return 200, rows[start : start + min(int(query.get("limit", "20")), most)]
        if "offset" in query:
            return 422, {"error": "offset is not supported"}
        start = int(query.get("after_cursor", "c0").removeprefix("c"))
        end = start + min(int(query.get("limit", "20")), most)
        return 200, {name: rows[start:end], **({"next_cursor": f"c{end}"} if end < len(rows) else {})}


def _about(event: Mapping[str, Any], words: str) -> bool:
    """Whether the event's title or that of one of its markets contains one of the words."""
    titles = " ".join([event.get("title", ""), *(market.get("question", "") for market in event.get("markets", []))])
    return bool(set(words.lower().split()) & set(re.findall(r"\w+", titles.lower())))


def _entry(rows: Iterable[Mapping[str, Any]], parts: list[str]) -> StatusAndBody:
    by = "slug" if parts[-2] == "slug" else "id"
    match = next((row for row in rows if str(row.get(by)) == parts[-1]), None)
    return (200, match) if match is not None else NOT_FOUND


def _fits(event: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    ends = str(event.get("endDate", ""))
    return (
        event.get("closed") == (query.get("closed", "false") == "true")
        and query.get("slug", event.get("slug")) == event.get("slug")
        and ends >= query.get("end_date_min", "")
        and (ends <= query["end_date_max"] if "end_date_max" in query else True)
    )


HALF_DAY_MINUTES = 720
INTERVALS = {"1h": 3600, "6h": 21_600, "1d": 86_400, "1w": 604_800, "1m": 2_592_000}
"""Length of each interval in seconds; any other interval means the whole history."""
TokenTrades = tuple[tuple[int, float], ...]
"""(Unix second, price) of each trade, oldest first."""


class PracticePolymarket(PracticeService):
    """The three services at one address; the path determines which of them answers."""

    def __init__(
        self,
        catalogue: PolymarketCatalogue | None = None,
        trades: Mapping[str, TokenTrades] | None = None,
        *,
        verdicts: Mapping[str, tuple[float, float]] | None = None,
        page: int = 10_000,
    ) -> None:
        """`trades` are by token; `page` is the maximum number of points per answer.

        `verdicts`, by condition id, are the payouts of both sides for markets whose catalogue entry does not state
        them.
        """
        self.catalogue = catalogue or PolymarketCatalogue()
        self.trades = trades or {}
        self.verdicts = verdicts or {}
        self.page = page

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        if request.path.endswith("/v2/prices-history"):
            return self._data(request.query)
        if request.path.endswith("/prices-history"):
            return 200, {"history": self._samples(request.query)}
        if request.path.endswith("/v2/resolutions"):
            return self._resolutions(request.query)
        condition = request.path.rpartition("/")[2]
        if "/markets/0x" in request.path:
            market = self.catalogue.by_condition(condition)
            return (200, _book_market(market)) if market is not None else NOT_FOUND
        return self.catalogue.answer(request.path, request.query)

    def _data(self, query: Mapping[str, str]) -> StatusAndBody:
        forms = [form for form in ("start", "as_of", "interval") if form in query]
        if len(forms) != 1:
            return 400, {"error": "exactly one of start, as_of, interval"}
        if "as_of" in query and "bucket_seconds" in query:
            return 400, {"error": "as_of forbids bucket_seconds"}
        trades = self.trades.get(query["token_id"], ())
        if "as_of" in query:
            known = [trade for trade in trades if trade[0] <= int(query["as_of"])]
            return 200, _data_page([_point(*known[-1], 0)] if known else [])
        # The service has no clock, so the history ends with the last trade.
        end = int(query.get("end", trades[-1][0] + 1 if trades else 0))
        start = int(query["start"]) if "start" in query else end - INTERVALS.get(query["interval"], end)
        if "start" in query and end - start > 15 * 86400:
            return 400, {"error": "window exceeds 15 days"}
        points = _buckets(trades, start, end, int(query.get("bucket_seconds", "600")))
        first = int(query.get("cursor", "0"))
        following = first + min(self.page, int(query.get("limit", self.page)))
        more = str(following) if following < len(points) else None
        return 200, _data_page(points[first:following], more)

    def _resolutions(self, query: Mapping[str, str]) -> StatusAndBody:
        conditions = query.get("condition_id", "").split(",")
        if len(query) != 1 or not conditions[0] or len(conditions) > MAX_RESOLUTIONS:
            return 400, {"error": "up to 20 of condition_id, or a question_id, or an event_id"}
        markets = [self.catalogue.by_condition(condition) for condition in conditions]
        return 200, _data_page([self._resolution(market) for market in markets if market is not None])

    def _resolution(self, market: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state of the oracle's resolution; the price is `69` until it is known."""
        condition, prices = market["conditionId"], market.get("outcomePrices")
        pays = self.verdicts.get(condition)
        if pays is None and market.get("umaResolutionStatus") == "resolved" and prices is not None:
            pays = tuple(float(price) for price in json.loads(prices))
        price = NOT_PRICED if pays is None else f"{pays[0]:g}"
        return {
            "question_id": f"0x{condition[2:][::-1]}",
            "condition_id": condition,
            "status": "posed" if pays is None else "resolved",
            "extended_review": False,
            "was_disputed": False,
            "new_version_q": True,
            "proposed_price": price,
            "reproposed_price": NOT_PRICED,
            "price": price,
            "log_index": "1",
            "last_update_timestamp": "1785355919",
        }

    def _samples(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        token, minutes = query["market"], int(query["fidelity"])
        start, end = int(query["startTs"]), int(query["endTs"])
        market = self.catalogue.market_of(token)
        too_fine = market is not None and market["closed"] and minutes < HALF_DAY_MINUTES
        if market is None or too_fine or end - start > 14 * 86400:
            return []
        samples: list[dict[str, Any]] = []
        for second in range(start, end + 1, minutes * 60):
            known = [price for at, price in self.trades.get(token, ()) if at <= second]
            samples += [{"t": second, "p": known[-1]}] if known else []
        return samples


def _buckets(trades: TokenTrades, start: int, end: int, width: int) -> list[dict[str, Any]]:
    """Return the last price of each bucket, stamped with the bucket's start, followed by the last trade itself."""
    inside = [trade for trade in trades if start <= trade[0] < end]
    closes = {at - at % width: price for at, price in inside}
    points = [_point(at, price, width) for at, price in closes.items()]
    return points + ([_point(*inside[-1], 0)] if inside else [])


def _data_page(rows: list[dict[str, Any]], cursor: str | None = None) -> dict[str, Any]:
    return {"data": rows, "pagination": {"has_more": cursor is not None, "next_cursor": cursor}}


def _book_market(market: Mapping[str, Any]) -> dict[str, Any]:
    """Build a market as the order-book service shows it."""
    names, tokens = json.loads(market["outcomes"]), json.loads(market["clobTokenIds"])
    prices = [float(price) for price in json.loads(market.get("outcomePrices") or "[0, 0]")]
    rows = zip(names, tokens, prices, strict=True)
    return {
        "condition_id": market["conditionId"],
        "question": market["question"],
        "active": market["active"],
        "closed": market["closed"],
        "archived": market["archived"],
        "accepting_orders": market["acceptingOrders"],
        "end_date_iso": market.get("endDate"),
        "neg_risk": market.get("negRisk", False),
        "tokens": [
            {"token_id": token, "outcome": name, "price": price, "winner": bool(market["closed"]) and price == 1.0}
            for name, token, price in rows
        ],
    }


def _point(at: int, price: float, width: int) -> dict[str, Any]:
    return {"timestamp": at, "price": price, "resolution_seconds": width, "status": "open"}
