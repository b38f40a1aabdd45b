"""Kalshi's events and markets as values, and as the JSON the exchange sends in its old and its new notation."""

from dataclasses import dataclass
from typing import Any, Literal

Schema = Literal["dollars", "cents"]
QUOTES = ("yes_bid", "yes_ask", "no_bid", "no_ask", "last_price")


@dataclass(frozen=True, kw_only=True)
class FakeMarket:
    """One market of an event; prices in dollars, times written out."""

    ticker: str
    label: str
    bid: float = 0.0
    ask: float = 1.0
    last: float = 0.0
    volume: float = 0.0
    volume_24h: float = 0.0
    open_interest: float = 0.0
    liquidity: float = 0.0
    status: str = "active"
    result: str = ""
    opens: str = "2026-01-01T00:00:00Z"
    closes: str = "2027-01-01T00:00:00Z"
    expected: str | None = None
    settled: str | None = None
    paid: float | None = None
    rules: str = "The market resolves to yes if it happens."
    kind: str = "binary"


@dataclass(frozen=True, kw_only=True)
class FakeEvent:
    """An event with its markets."""

    ticker: str
    series: str
    title: str
    markets: tuple[FakeMarket, ...]
    period: str = ""
    exclusive: bool = False
    category: str | None = "Economics"
    """None: told by the series only."""


def event_body(event: FakeEvent, schema: Schema = "dollars") -> dict[str, Any]:
    """An event as sent, its markets nested."""
    body: dict[str, Any] = {
        "event_ticker": event.ticker,
        "series_ticker": event.series,
        "title": event.title,
        "sub_title": event.period,
        "collateral_return_type": "MECNET" if event.exclusive else "",
        "mutually_exclusive": event.exclusive,
        "markets": [market_body(market, event.ticker, schema) for market in event.markets],
    }
    return body | ({"category": event.category} if event.category is not None else {})


def market_body(market: FakeMarket, event: str, schema: Schema = "dollars") -> dict[str, Any]:
    """A market as sent."""
    return {
        "ticker": market.ticker,
        "event_ticker": event,
        "market_type": market.kind,
        "yes_sub_title": market.label,
        "no_sub_title": market.label,
        "open_time": market.opens,
        "close_time": market.closes,
        "latest_expiration_time": market.closes,
        "settlement_timer_seconds": 1800,
        "status": market.status,
        "result": market.result,
        "can_close_early": True,
        "expiration_value": market.result,
        "strike_type": "custom",
        "rules_primary": market.rules,
        "rules_secondary": "",
        **({"expected_expiration_time": market.expected} if market.expected else {}),
        **(_new(market) if schema == "dollars" else _old(market)),
    }


def _quotes(market: FakeMarket) -> dict[str, float]:
    return dict(zip(QUOTES, (market.bid, market.ask, 1 - market.ask, 1 - market.bid, market.last), strict=True))


def _new(market: FakeMarket) -> dict[str, Any]:
    body: dict[str, Any] = {f"{name}_dollars": f"{value:.4f}" for name, value in _quotes(market).items()}
    body |= {
        "volume_fp": f"{market.volume:.2f}",
        "volume_24h_fp": f"{market.volume_24h:.2f}",
        "open_interest_fp": f"{market.open_interest:.2f}",
        "liquidity_dollars": "0.0000",
        "notional_value_dollars": "1.0000",
        "price_level_structure": "linear_cent",
    }
    body |= {"settlement_ts": market.settled} if market.settled else {}
    return body | ({"settlement_value_dollars": f"{market.paid:.4f}"} if market.paid is not None else {})


def _old(market: FakeMarket) -> dict[str, Any]:
    body: dict[str, Any] = {name: round(value * 100) for name, value in _quotes(market).items()}
    body |= {
        "title": market.label,
        "subtitle": "",
        "volume": round(market.volume),
        "volume_24h": round(market.volume_24h),
        "open_interest": round(market.open_interest),
        "liquidity": round(market.liquidity * 100),
        "response_price_units": "usd_cent",
        "notional_value": 100,
        "tick_size": 1,
    }
    return body | ({"settlement_value": round(market.paid * 100)} if market.paid is not None else {})
