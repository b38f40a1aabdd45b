"""The catalogue of a fake Kalshi: events, markets, series and the archive, with the exchange's filters and cursors."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

Answer = tuple[int, Any]
MAX_EVENTS, MAX_MARKETS = 200, 1000
SHOWN_AS = {
    "unopened": ("initialized",),
    "open": ("active", "inactive", "open"),
    "closed": ("closed", "determined", "disputed", "amended"),
    "settled": ("finalized", "settled"),
}


class KalshiCatalogue:
    """Serves events given as the exchange would send them, markets nested."""

    def __init__(
        self,
        events: Iterable[Mapping[str, Any]] = (),
        *,
        series: Mapping[str, Mapping[str, Any]] | None = None,
        archived: Iterable[str] = (),
        page: int = MAX_EVENTS,
    ) -> None:
        """`archived` are tickers of markets that only the archive knows; `page` the most entries of one answer."""
        self.events = [dict(event) for event in events]
        self.series = dict(series or {})
        self.archived = set(archived)
        self.page = page

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
        """Status and body; None for what is no part of the catalogue."""
        before, _, name = path.strip("/").rpartition("/")
        room = before.rpartition("/")[2]
        if name == "events":
            return self._events(query)
        if room == "events":
            return self._event(name, query)
        if room == "series":
            return (200, {"series": self.series[name]}) if name in self.series else _missing()
        if name == "markets":
            return self._markets(query, archived=room == "historical")
        return self._market(name, archived="/historical/" in path) if room == "markets" else None

    def _all(self) -> list[dict[str, Any]]:
        return [market for event in self.events for market in event.get("markets", [])]

    def _shown(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [market for market in event.get("markets", []) if market.get("ticker") not in self.archived]

    def _nested(self, event: Mapping[str, Any], query: Mapping[str, str]) -> dict[str, Any]:
        bare = {name: value for name, value in event.items() if name != "markets"}
        if query.get("with_nested_markets") != "true":
            return bare
        return bare | ({"markets": self._shown(event)} if "markets" in event else {})

    def _events(self, query: Mapping[str, str]) -> Answer:
        limit = int(query.get("limit", MAX_EVENTS))
        if limit > MAX_EVENTS:
            return 400, {"error": {"code": "invalid_parameters", "message": "limit"}}
        fitting = [self._nested(event, query) for event in self.events if self._fits(event, query)]
        return self._paged("events", fitting, query, limit)

    def _fits(self, event: Mapping[str, Any], query: Mapping[str, str]) -> bool:
        markets = event.get("markets", [])
        states = {market.get("status") for market in markets}
        closes = max((_second(market["close_time"]) for market in markets if "close_time" in market), default=0)
        return (
            ("status" not in query or bool(states.intersection(SHOWN_AS[query["status"]])))
            and closes >= int(query.get("min_close_ts", 0))
            and query.get("series_ticker", event.get("series_ticker")) == event.get("series_ticker")
        )

    def _event(self, ticker: str, query: Mapping[str, str]) -> Answer:
        event = next((event for event in self.events if event.get("event_ticker") == ticker), None)
        if event is None:
            return _missing()
        shown = [] if query.get("with_nested_markets") == "true" else self._shown(event)
        return 200, {"event": self._nested(event, query), "markets": shown}

    def _markets(self, query: Mapping[str, str], *, archived: bool) -> Answer:
        asked = query["tickers"].split(",") if "tickers" in query else None
        fitting = [
            market
            for market in self._all()
            if (market.get("ticker") in self.archived) == archived
            and (asked is None or market.get("ticker") in asked)
            and query.get("event_ticker", market.get("event_ticker")) == market.get("event_ticker")
        ]
        return self._paged("markets", fitting, query, int(query.get("limit", MAX_MARKETS)))

    def _market(self, ticker: str, *, archived: bool) -> Answer:
        found = next((market for market in self._all() if market.get("ticker") == ticker), None)
        if found is None or (ticker in self.archived) != archived:
            return _missing()
        return 200, {"market": found}

    def _paged(self, name: str, rows: list[Any], query: Mapping[str, str], limit: int) -> Answer:
        start = int(urlsafe_b64decode(query["cursor"])) if query.get("cursor") else 0
        end = start + min(limit, self.page)
        cursor = urlsafe_b64encode(str(end).encode()).decode() if end < len(rows) else ""
        return 200, {name: rows[start:end], "cursor": cursor}


def _second(told: str) -> int:
    return int(datetime.fromisoformat(told).timestamp())


def _missing() -> Answer:
    return 404, {"error": {"code": "not_found", "message": "not found"}}
