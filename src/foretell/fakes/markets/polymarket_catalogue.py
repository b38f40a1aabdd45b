"""The catalogue of a fake Polymarket: events and markets as its Gamma service sends them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Answer = tuple[int, Any]
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

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
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

    def _list(self, name: str, parts: list[str], rows: list[Any], query: Mapping[str, str]) -> Answer:
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


def _missing() -> Answer:
    return 404, {"error": "not found"}
