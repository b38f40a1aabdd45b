"""Kalshi candlesticks in all their notations."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import ServerFault, busy, failing, garbled
from fakes.markets import FakeKalshi
from foretell.data.http import SourceError
from foretell.data.markets.kalshi import KalshiClient, KalshiPrices
from foretell.data.markets.prices import PriceSource, PricesUnavailable
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.kalshi import SampleKalshiBook
from foretell.questions.as_of import AsOf, instant

TICKER = "KXFED-26MAR-T4.25"
CUTOFF = AsOf(at="2026-02-10T18:30:00Z")


def second(text: str) -> int:
    return int(instant(text).timestamp())


QUOTES = (
    (second("2025-11-01"), 0.10, 0.14),
    (second("2026-02-01"), 0.30, 0.34),
    (second("2026-02-10T17:10:00Z"), 0.40, 0.44),
    (second("2026-02-10T18:10:00Z"), 0.70, 0.74),
    (second("2026-02-11"), 0.99, 1.00),
)


def make(http: Any, url: str) -> PriceSource:
    return KalshiPrices(KalshiClient(http=http, host=f"{url}/trade-api/v2", per_second=1e4))


def fake(*, quotes: Any = QUOTES, archived: bool = False, **options: Any) -> FakeKalshi:
    return FakeKalshi({TICKER: SampleKalshiBook(quotes=quotes, archived=archived)}, **options)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("schema", ["dollars", "cents"])
def test_the_middle_of_the_book_to_the_hour(
    ask: Any, canary: str, schema: Literal["dollars", "cents"], archived: bool
) -> None:
    server = fake(schema=schema, archived=archived, canary=canary, careless=True).server()
    points = ask(server, make, TICKER, CUTOFF)
    # The quotes of 18:10 stand in no candle that was complete at 18:30.
    assert (points[-1].at, points[-1].p) == (instant("2026-02-10T18:00:00Z"), pytest.approx(0.42))
    assert [round(p.p, 6) for p in points if p.at < instant("2026-02-01")][-1] == 0.12
    assert len(points) == 60


def test_settled_markets_are_looked_for_in_the_archive_first_when_the_cutoff_says_so(ask: Any) -> None:
    old = second("2026-06-01")
    ask(fake(archived=True, cutoff=old).server(), make, TICKER, CUTOFF)
    assert [one.path.removeprefix("/trade-api/v2") for one in ask.server.requests] == [
        "/historical/cutoff",
        f"/historical/markets/{TICKER}/candlesticks",
        f"/historical/markets/{TICKER}/candlesticks",
    ]
    ask(fake(cutoff=old).server(), make, TICKER, CUTOFF)
    assert [one.path.rpartition("v2")[2] for one in ask.server.requests[-2:]] == ["/markets/candlesticks"] * 2


def test_windows_end_at_the_cutoff(ask: Any) -> None:
    ask(fake().server(), make, TICKER, CUTOFF, days=10)
    coarse, fine = (one.query for one in ask.server.requests[1:])
    assert int(coarse["end_ts"]) == int(fine["end_ts"]) == second("2026-02-10T18:30:00Z")
    assert int(coarse["start_ts"]) == second("2026-01-31T18:30:00Z")
    assert (coarse["period_interval"], fine["period_interval"]) == ("1440", "60")
    assert coarse["include_latest_before_start"] == "true"


def test_an_empty_book_is_no_price(ask: Any) -> None:
    quotes = ((second("2026-01-01"), 0.2, 0.3), (second("2026-02-05"), 0.0, 1.0))
    points = ask(fake(quotes=quotes).server(), make, TICKER, CUTOFF)
    assert points[-1].at < instant("2026-02-06")
    assert points[-1].p == pytest.approx(0.25)
    with pytest.raises(PricesUnavailable, match="no price history"):
        ask(fake(quotes=quotes[1:]).server(), make, TICKER, CUTOFF)


def test_a_side_without_a_quote_is_left_out(ask: Any) -> None:
    quotes = ((second("2026-01-01"), 0.2, 0.3), (second("2026-02-05"), None, 0.9))
    assert ask(fake(quotes=quotes).server(), make, TICKER, CUTOFF)[-1].p == pytest.approx(0.25)


def test_unknown_and_not_yet_open_markets(ask: Any) -> None:
    with pytest.raises(PricesUnavailable, match="no price history of KXNOPE-1"):
        ask(fake().server(), make, "KXNOPE-1", CUTOFF)
    with pytest.raises(PricesUnavailable):
        ask(fake().server(), make, TICKER, AsOf.day("2025-10-01"))


def test_a_busy_server_and_a_lost_cutoff(ask: Any) -> None:
    assert ask(fake().server(), make, TICKER, CUTOFF, faults=[busy(), busy()])[-1].p == pytest.approx(0.42)
    # The cutoff only tells where to look first.
    assert ask(fake().server(), make, TICKER, CUTOFF, faults=[failing()] * 3)[-1].p == pytest.approx(0.42)
    with pytest.raises(SourceError, match="500"):
        ask(fake().server(), make, TICKER, CUTOFF, faults=[failing()] * 6)


def first_candle(body: Any) -> dict[str, Any]:
    return body["markets"][0]["candlesticks"][0]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body.pop("markets"), "markets is missing"),
        (lambda body: body["markets"][0].pop("market_ticker"), r"markets\[0\]\.market_ticker is missing"),
        (lambda body: body["markets"][0].pop("candlesticks"), r"markets\[0\]\.candlesticks is missing"),
        (lambda body: first_candle(body).pop("end_period_ts"), r"candlesticks\[0\]\.end_period_ts is missing"),
        (lambda body: first_candle(body).pop("yes_bid"), r"candlesticks\[0\]\.yes_bid is missing"),
        (lambda body: first_candle(body)["yes_ask"].pop("close_dollars"), r"yes_ask\.close_dollars is missing"),
        (lambda body: first_candle(body)["yes_ask"].update(close_dollars="1.5"), "close_dollars is not a probability"),
        (
            lambda body: first_candle(body)["yes_ask"].update(close_dollars=0.5),
            "close_dollars is not dollars in a text",
        ),
    ],
)
def test_a_changed_answer_names_the_field(
    ask: Any, canary: str, edited: Callable[..., ServerFault], change: Callable[[Any], None], field: str
) -> None:
    same = edited(lambda body: None)
    with pytest.raises(SourceError, match=field) as caught:
        ask(fake(canary=canary).server(), make, TICKER, CUTOFF, faults=[same, edited(change)])
    assert canary not in str(caught.value)


def test_a_changed_cutoff_or_half_an_answer(ask: Any, edited: Callable[..., ServerFault]) -> None:
    with pytest.raises(MalformedPayload, match="market_settled_ts is missing"):
        ask(fake().server(), make, TICKER, CUTOFF, faults=[edited(lambda body: body.clear())])
    with pytest.raises(MalformedPayload, match="market_settled_ts is not a time"):
        ask(fake().server(), make, TICKER, CUTOFF, faults=[edited(lambda body: body.update(market_settled_ts="x"))])
    number = edited(lambda body: body.update(market_settled_ts=5))
    assert ask(fake().server(), make, TICKER, CUTOFF, faults=[number])
    with pytest.raises(MalformedPayload, match="not JSON"):
        ask(fake().server(), make, TICKER, CUTOFF, faults=[garbled()])


@settings(deadline=None, max_examples=15)
@given(
    quotes=st.lists(
        st.tuples(st.integers(0, 90 * 24), st.integers(0, 100), st.integers(0, 100)),
        max_size=12,
        unique_by=lambda q: q[0],
    ),
    hours=st.integers(0, 90 * 24),
    archived=st.booleans(),
)
def test_the_future_changes_nothing(ask: Any, quotes: list[tuple[int, int, int]], hours: int, archived: bool) -> None:
    start = second("2026-01-01")
    book = tuple((start + 3600 * at + 60, bid / 100, ask_ / 100) for at, bid, ask_ in sorted(quotes))
    cutoff = AsOf(at=instant("2026-01-01").fromtimestamp(start + 3600 * hours + 600, instant("2026-01-01").tzinfo))
    past = tuple(quote for quote in book if quote[0] <= cutoff.at.timestamp())
    answers = []
    for known in (book, past):
        server = fake(quotes=known, archived=archived, careless=known is book).server()
        try:
            answers.append(ask(server, make, TICKER, cutoff))
        except PricesUnavailable:
            answers.append([])
    assert answers[0] == answers[1]


def test_no_days_is_a_mistake(ask: Any) -> None:
    with pytest.raises(ValueError, match="days must be at least 1"):
        ask(fake().server(), make, TICKER, CUTOFF, days=0)
