"""Faults that tests can switch on."""

import asyncio
import json
from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults
from foretell.data.http import AsyncHttpClient
from foretell.practice.markets.kalshi import (
    SampleKalshiEvent,
    SampleKalshiMarket,
    kalshi_event_body,
    kalshi_market_body,
)
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response

BODY = {"events": [{"t": 1, "markets": [{"p": 0.1}, {"p": 0.2}]}, {"t": 2, "markets": [{"p": 0.3}]}]}


def request(target: str = "/v2/events") -> ServerRequest:
    return ServerRequest(method="GET", path=target.partition("?")[0], target=target, query={}, headers={})


@pytest.mark.parametrize(
    ("drift", "expected"),
    [
        (FieldDrift(path="events.*.t"), [{"markets": [{"p": 0.1}, {"p": 0.2}]}, {"markets": [{"p": 0.3}]}]),
        (FieldDrift(path="events.1.t", change="null"), [BODY["events"][0], {"t": None, "markets": [{"p": 0.3}]}]),
        (
            FieldDrift(path="events.1.t", change="retype"),
            [BODY["events"][0], {"t": {"value": 2}, "markets": [{"p": 0.3}]}],
        ),
        (
            FieldDrift(path="events.*.markets.*.p", change="rename"),
            [{"t": 1, "markets": [{"p_v2": 0.1}, {"p_v2": 0.2}]}, {"t": 2, "markets": [{"p_v2": 0.3}]}],
        ),
        (
            FieldDrift(path="**.p", change="drop"),
            [{"t": 1, "markets": [{}, {}]}, {"t": 2, "markets": [{}]}],
        ),
        (FieldDrift(path="events.7.t"), BODY["events"]),
        (FieldDrift(path="nowhere.at.all"), BODY["events"]),
    ],
)
def test_field_drift_changes_only_the_field_at_its_path(drift: FieldDrift, expected: Any) -> None:
    assert drift.applied(BODY) == {"events": expected}
    assert BODY["events"][0]["t"] == 1


def test_market_switches_spoil_answers_as_configured() -> None:
    def good(_: ServerRequest) -> ServerResponse:
        return json_response(BODY)

    faults = MarketFaults()
    assert faults(request(), good).status == 200
    faults.down = ("/events",)
    assert faults(request(), good).status == 503
    assert faults(request("/v2/markets"), good).status == 200
    faults = MarketFaults(drifts=(FieldDrift(path="events"),))
    assert faults(request(), good).body == b"{}"
    assert b"events" in faults(request(), lambda _: json_response({"error": "no events"}, 404)).body


def test_repeated_names_are_joined() -> None:
    async def main() -> None:
        server = PracticeServer()
        server.route("GET", "/x", lambda request: json_response(dict(request.query)))
        async with server, AsyncHttpClient() as http:
            answer = await http.get(f"{server.url}/x?ids=1&ids=2&limit=&closed=true")
            assert json.loads(answer.body) == {"ids": "1,2", "limit": "", "closed": "true"}

    asyncio.run(main())


def test_kalshi_bodies_in_dollars_and_in_cents() -> None:
    market = SampleKalshiMarket(ticker="KXA-1-B", label="B", bid=0.41, ask=0.44, last=0.42, volume=10, paid=1.0)
    new, old = kalshi_market_body(market, "KXA-1"), kalshi_market_body(market, "KXA-1", "cents")
    assert (new["yes_bid_dollars"], new["no_ask_dollars"], new["volume_fp"]) == ("0.4100", "0.5900", "10.00")
    assert (old["yes_bid"], old["no_ask"], old["volume"], old["settlement_value"]) == (41, 59, 10, 100)
    assert not [name for name in old if name.endswith(("_dollars", "_fp"))]
    assert not {"yes_bid", "volume", "liquidity"} & set(new)
    bare = kalshi_event_body(
        SampleKalshiEvent(ticker="KXA-1", series="KXA", title="?", category=None, markets=(market,))
    )
    assert "category" not in bare
