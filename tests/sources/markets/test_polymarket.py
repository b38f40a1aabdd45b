"""Polymarket: catalogue, data service, order-book service."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import ServerFault, busy, failing
from fakes.markets import FakePolymarket, PolymarketListing
from foretell.data.http import SourceError
from foretell.data.markets.polymarket import PolymarketClient, PolymarketHosts, PolymarketPrices
from foretell.data.markets.prices import PriceSource, PricesUnavailable
from foretell.practice.server import json_response
from foretell.questions.as_of import AsOf, instant

CONDITION = "0x" + "5c" * 32
CUTOFF = AsOf(at="2026-02-10T18:30:00Z")
YES, NO = "1001", "1002"


def second(text: str) -> int:
    return int(instant(text).timestamp())


TRADES = (
    (second("2025-10-01"), 0.05),
    (second("2026-01-05T06:00:00Z"), 0.20),
    (second("2026-01-05T13:00:00Z"), 0.25),
    (second("2026-02-10T17:00:00Z"), 0.40),
    (second("2026-02-10T19:00:00Z"), 0.95),
    (second("2026-02-12"), 1.0),
)


def listing(trades: Any = TRADES, **options: Any) -> PolymarketListing:
    other = tuple((at, 1 - p) for at, p in trades)
    fields: dict[str, Any] = {"slug": "will-it", "outcomes": ("No", "Yes"), "tokens": (NO, YES), **options}
    return PolymarketListing(trades={YES: tuple(trades), NO: other}, **fields)


def make(http: Any, url: str) -> PriceSource:
    hosts = PolymarketHosts(gamma=f"{url}/gamma", data=f"{url}/data", clob=f"{url}/clob")
    return PolymarketPrices(PolymarketClient(http=http, hosts=hosts, per_second=1e4))


def fake(trades: Any = TRADES, *, closed: bool = False, **options: Any) -> FakePolymarket:
    return FakePolymarket({CONDITION: listing(trades, closed=closed)}, **options)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_yes_wherever_it_stands_in_the_list(ask: Any, canary: str, closed: bool, nested: bool) -> None:
    server = fake(closed=closed, nested=nested, canary=canary).server()
    points = ask(server, make, CONDITION, CUTOFF)
    # The trade of 17:00 counts as known when its bucket is over.
    assert (points[-1].at, points[-1].p) == (instant("2026-02-10T18:00:00Z"), 0.40)
    assert points[0].p == 0.25
    asked = [one.query.get("closed") for one in ask.server.requests if one.path == "/gamma/markets"]
    assert asked == (["false", "true"] if closed else ["false"])


def test_a_bucket_still_open_at_the_cutoff_is_not_read(ask: Any) -> None:
    """The fake stamps buckets with their beginning: that of 18:00 holds the price of 19:00."""
    assert max(p.p for p in ask(fake(careless=True).server(), make, CONDITION, CUTOFF)) == 0.40


def test_other_outcomes_slugs_and_unknown_markets(ask: Any) -> None:
    assert ask(fake().server(), make, f"{CONDITION}#no", CUTOFF)[-1].p == pytest.approx(0.60)
    assert ask(fake().server(), make, "slug:will-it", CUTOFF)[-1].p == 0.40
    with pytest.raises(PricesUnavailable, match="lists no market 0xdead"):
        ask(fake().server(), make, "0xdead", CUTOFF)
    teams = FakePolymarket({CONDITION: listing(outcomes=("Up", "Down"))})
    with pytest.raises(PricesUnavailable, match=r"no outcome 'yes'; name one with .*#<outcome>"):
        ask(teams.server(), make, CONDITION, CUTOFF)


def test_windows_are_short_and_pages_are_followed(ask: Any) -> None:
    many = tuple((second("2026-01-01") + 10_800 * i, 0.3 + i / 1000) for i in range(300))
    points = ask(fake(many, page=50).server(), make, CONDITION, CUTOFF)
    whole = ask(fake(many).server(), make, CONDITION, CUTOFF)
    assert points == whole
    windows = [one.query for one in ask.server.requests if one.path == "/data/v2/prices-history"]
    assert len(windows) == 5
    assert all(int(one["end"]) - int(one["start"]) <= 15 * 86400 for one in windows)
    assert int(windows[-1]["end"]) == second("2026-02-10T18:30:00Z") + 1


def test_a_quiet_market_has_the_price_that_still_stands(ask: Any, canary: str) -> None:
    points = ask(fake(TRADES[:1], canary=canary).server(), make, CONDITION, CUTOFF)
    assert [(p.at, p.p) for p in points] == [(instant("2025-10-01"), 0.05)]
    assert ask.server.requests[-1].query["as_of"] == str(second("2026-02-10T18:30:00Z"))


@pytest.mark.parametrize("closed", [False, True])
def test_without_the_data_service_half_days_from_the_order_book(ask: Any, canary: str, closed: bool) -> None:
    server = fake(data_service=False, closed=closed, canary=canary, careless=True).server()
    points = ask(server, make, CONDITION, CUTOFF)
    assert [p.p for p in points[-2:]] == [0.25, 0.40]
    windows = [one.query for one in ask.server.requests if one.path == "/clob/prices-history"]
    assert all(int(one["endTs"]) - int(one["startTs"]) <= 14 * 86400 for one in windows)
    assert {one["fidelity"] for one in windows} == {"720"}


def test_an_outage_of_the_data_service_is_survived(ask: Any, edited: Callable[..., ServerFault]) -> None:
    same = edited(lambda body: None)
    assert ask(fake().server(), make, CONDITION, CUTOFF, faults=[same, *[failing()] * 3])[-1].p in (0.25, 0.40)
    assert any(one.path == "/clob/prices-history" for one in ask.server.requests)
    with pytest.raises(SourceError, match="500"):
        ask(fake().server(), make, CONDITION, CUTOFF, faults=[same, *[failing()] * 6])
    assert ask(fake().server(), make, CONDITION, CUTOFF, faults=[busy(), same, busy()])[-1].p == 0.40


def test_before_the_first_trade(ask: Any) -> None:
    with pytest.raises(PricesUnavailable, match="shows no price"):
        ask(fake().server(), make, CONDITION, AsOf.day("2025-09-01"))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body[0].pop("outcomes"), r"\[0\]\.outcomes is missing"),
        (lambda body: body[0].pop("clobTokenIds"), "clobTokenIds is missing"),
        (lambda body: body[0].update(outcomes="[Yes"), "outcomes is not JSON inside a text"),
        (lambda body: body[0].update(clobTokenIds='["1"]'), "clobTokenIds is not as long as outcomes"),
    ],
)
def test_a_changed_catalogue_names_the_field(
    ask: Any, canary: str, edited: Callable[..., ServerFault], change: Callable[[Any], None], field: str
) -> None:
    with pytest.raises(SourceError, match=field) as caught:
        ask(fake(canary=canary).server(), make, CONDITION, CUTOFF, faults=[edited(change)])
    assert canary not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body.pop("data"), "data is missing"),
        (lambda body: body["data"][0].pop("price"), r"data\[0\]\.price is missing"),
        (lambda body: body["data"][0].pop("timestamp"), r"data\[0\]\.timestamp is missing"),
        (lambda body: body["data"][0].update(price=40), "price is not a probability"),
    ],
)
def test_a_changed_history_is_told_and_not_papered_over(
    ask: Any, edited: Callable[..., ServerFault], change: Callable[[Any], None], field: str
) -> None:
    same = edited(lambda body: None)
    busy_market = tuple((second("2025-12-13") + 86_400 * i, 0.5) for i in range(30))
    with pytest.raises(SourceError, match=field):
        ask(fake(busy_market).server(), make, CONDITION, CUTOFF, faults=[same, edited(change)])


def test_a_new_catalogue_envelope_is_understood(ask: Any) -> None:
    server = fake().server()
    catalogue = fake()

    def enveloped(request: Any) -> Any:
        return json_response({"markets": catalogue.get(request)[1], "next_cursor": None})

    server.route("GET", "/gamma/markets", enveloped)
    assert ask(server, make, CONDITION, CUTOFF)[-1].p == 0.40


@settings(deadline=None, max_examples=15)
@given(
    trades=st.lists(
        st.tuples(st.integers(0, 90 * 24 * 60), st.integers(0, 100)), max_size=12, unique_by=lambda t: t[0]
    ),
    minutes=st.integers(0, 90 * 24 * 60),
    data_service=st.booleans(),
)
def test_the_future_changes_nothing(ask: Any, trades: list[tuple[int, int]], minutes: int, data_service: bool) -> None:
    start = second("2026-01-01")
    all_trades = tuple((start + 60 * at, p / 100) for at, p in sorted(trades))
    end = start + 60 * minutes + 30
    cutoff = AsOf(at=instant("2026-01-01").fromtimestamp(end, instant("2026-01-01").tzinfo))
    answers = []
    for known in (all_trades, tuple(one for one in all_trades if one[0] <= end)):
        server = fake(known, data_service=data_service, careless=known is all_trades and not data_service).server()
        try:
            answers.append(ask(server, make, CONDITION, cutoff))
        except PricesUnavailable:
            answers.append([])
    assert answers[0] == answers[1]
