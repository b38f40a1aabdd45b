"""The exchange over sockets, read by the product's own adapters; and nothing of the future to be had from it."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from fakes.faults import busy, inject
from foretell.data import AsyncHttpClient, HttpLimits, ServiceConfig
from foretell.data.markets import KalshiClient, KalshiEvents, KalshiPrices, ListedEvent, ListingFilter, MarketRef
from foretell.data.search import TavilySearch
from foretell.data.settlements import KalshiSettlements
from foretell.practice import PracticeServer
from foretell.practice.exchange import KALSHI, KEY, FileClock, SimulatedExchange, SimulatedWorld, SimulationSettings
from foretell.practice.markets import Schema
from foretell.questions import AsOf

T = TypeVar("T")
SETTINGS = SimulationSettings(seed=7, days=8, events_per_day=12)
WORLD = SimulatedWorld(SETTINGS)
NOW = SETTINGS.start + timedelta(days=4, hours=10, minutes=30)
QUICK = HttpLimits(attempts=3, wait_seconds=0.0, total_seconds=10.0)


class Market:
    """An exchange at a moment, and clients that read it."""

    def __init__(self, exchange: SimulatedExchange, server: PracticeServer, http: AsyncHttpClient) -> None:
        self.exchange, self.server, self.http = exchange, server, http
        self.client = KalshiClient(http=http, host=f"{server.url}{KALSHI}")

    def as_of(self) -> AsOf:
        return AsOf(at=self.exchange.clock(), mode="live")

    async def listed(self, **wanted: Any) -> list[ListedEvent]:
        listing = KalshiEvents(self.client).events(ListingFilter(as_of=self.as_of(), limit=1000, **wanted))
        found = await listing.all()
        assert listing.ledger.complete
        assert not listing.ledger.skipped
        return found


def at(clock: Callable[[], datetime], use: Callable[[Market], Awaitable[T]], **options: Any) -> T:
    async def main() -> T:
        exchange = SimulatedExchange(WORLD, clock, **options)
        async with exchange.server() as server, AsyncHttpClient(limits=QUICK) as http:
            return await use(Market(exchange, server, http))

    return asyncio.run(main())


def now() -> datetime:
    return NOW


@pytest.mark.parametrize("schema", ["dollars", "cents"])
def test_open_events_are_listed_with_quotes_near_the_truth(schema: Schema):
    async def use(market: Market) -> list[ListedEvent]:
        return await market.listed()

    found = at(now, use, schema=schema, page=7)
    second = NOW.timestamp()
    running = {event.ticker for event in WORLD.events if event.life.opens <= second < event.life.ends}
    assert {event.question.id.removeprefix("kalshi/") for event in found} == running
    assert len(running) > 20
    gaps: list[float] = []
    for event in found:
        sim = WORLD.by_ticker[event.question.id.removeprefix("kalshi/")]
        assert event.question.exclusivity == ("at most one" if sim.exclusive else "independent")
        assert event.question.closes_at is not None
        assert event.question.closes_at.timestamp() == sim.life.closes
        assert event.category == sim.words.category
        for target in event.question.targets:
            if target.snapshot is not None and target.snapshot.price is not None and not sim.thin:
                gaps.append(target.snapshot.price - WORLD.truth(sim.ticker, target.id, NOW))
    assert 0.01 < np.abs(gaps).mean() < 0.1


def test_unopened_closed_and_settled_events_are_listed_as_such():
    async def use(market: Market) -> dict[str, int]:
        return {
            status: len(await market.listed(status=status)) for status in ("unopened", "open", "closed", "resolved")
        }

    counts = at(now, use)
    announced = sum(event.life.announced <= NOW.timestamp() for event in WORLD.events)
    assert sum(counts.values()) == announced
    assert all(counts.values())


def test_an_early_answer_moves_the_close_only_when_it_is_out():
    sim = next(e for e in WORLD.events if e.life.early and not e.life.void and e.life.ends - e.life.opens > 7200)
    clock = [sim.life.ends - 60.0]

    async def use(market: Market) -> list[ListedEvent]:
        found: list[ListedEvent] = []
        for second in (sim.life.ends - 60.0, float(sim.life.ends), float(sim.life.finalized)):
            clock[0] = second
            found.append(await KalshiEvents(market.client).event(sim.ticker, market.as_of()))
        return found

    before, after, final = at(lambda: datetime.fromtimestamp(clock[0], NOW.tzinfo), use)
    assert [one.status for one in (before, after, final)] == ["open", "closed", "resolved"]
    assert before.closes_at is not None
    assert after.closes_at is not None
    assert before.closes_at.timestamp() == sim.life.closes
    assert after.closes_at.timestamp() == sim.life.known < sim.life.closes


@pytest.mark.parametrize("archive_after", [60.0, 0.5])
def test_settlements_come_when_finalized_from_the_list_or_the_archive(archive_after: float):
    clock = [NOW]

    async def use(market: Market) -> None:
        questions = [event.question for event in await market.listed()]
        source = KalshiSettlements(market.client)
        assert await source.settlements(questions) == []
        clock[0] = NOW + timedelta(days=3)
        told = {(one.question_id, one.target_id): one for one in await source.settlements(questions)}
        second = clock[0].timestamp()
        for question in questions:
            sim = WORLD.by_ticker[question.id.removeprefix("kalshi/")]
            for target in question.targets:
                one = told.get((question.id, target.id))
                assert (one is not None) == (sim.life.finalized <= second)
                if one is not None:
                    assert one.outcome == WORLD.outcome(sim.ticker, target.id)
                    assert one.payoff == (0.5 if sim.life.void else None)
        assert len(told) > 20

    at(lambda: clock[0], use, archive_after=archive_after)


@pytest.mark.parametrize("archive_after", [60.0, 0.5])
def test_price_histories_are_read_live_and_from_the_archive(archive_after: float):
    settled = next(e for e in WORLD.events if e.life.finalized < NOW.timestamp() - 86400 and len(e.hours) > 60)
    open_ = next(e for e in WORLD.events if e.life.opens < NOW.timestamp() - 2 * 86400 < NOW.timestamp() < e.life.ends)

    async def use(market: Market) -> None:
        for event in (settled, open_):
            ref = MarketRef(platform="kalshi", id=event.tickers[0])
            points = await KalshiPrices(market.client).prices(ref, market.as_of())
            assert points
            book = WORLD.book(event)
            for point in points:
                assert point.at <= NOW
                place = book.place(point.at.timestamp())
                assert point.p == pytest.approx((book.bid[0, place] + book.ask[0, place]) / 2, abs=1e-9)

    at(now, use, archive_after=archive_after)


def test_candles_tell_trades_and_end_now():
    sim = next(
        e for e in WORLD.events if not e.thin and e.life.opens < NOW.timestamp() - 86400 < NOW.timestamp() < e.life.ends
    )
    exchange = SimulatedExchange(WORLD, now)
    window = {"start_ts": str(sim.life.opens), "end_ts": str(sim.life.closes), "period_interval": "60"}
    status, body = exchange.answer(f"/series/{sim.series}/markets/{sim.tickers[0]}/candlesticks", window)
    assert status == 200
    candles = body["candlesticks"]
    assert candles[-1]["end_period_ts"] == NOW.timestamp() // 3600 * 3600
    book = WORLD.book(sim)
    assert (
        sum(float(one["volume_fp"]) for one in candles)
        == book.volume[0, book.place(NOW.timestamp())] - book.volume[0, 0]
    )
    for one in candles:
        assert one["yes_bid"]["low_dollars"] <= one["yes_bid"]["close_dollars"] <= one["yes_bid"]["high_dollars"]
        assert one["yes_bid"]["close_dollars"] < one["yes_ask"]["close_dollars"]
        # A price that does not exist has no field.
        assert ("close_dollars" not in one["price"]) == (float(one["volume_fp"]) == 0)
    assert exchange.answer("/markets/candlesticks", window | {"market_tickers": ",".join(["x"] * 101)})[0] == 400
    assert (
        exchange.answer(f"/series/x/markets/{sim.tickers[0]}/candlesticks", window | {"period_interval": "7"})[0] == 400
    )
    assert exchange.answer("/series/x/markets/nobody/candlesticks", window)[0] == 404


def everything(exchange: SimulatedExchange, tickers: list[str]) -> str:
    """All that can be read from an exchange, asked about these events in particular."""
    told: list[Any] = []
    for status in ("unopened", "open", "closed", "settled", None):
        query = {"with_nested_markets": "true", "limit": "200"} | ({"status": status} if status else {})
        told.append(exchange.answer("/events", query))
    told += [exchange.answer("/markets", {"limit": "1000"}), exchange.answer("/historical/markets", {"limit": "1000"})]
    told.append(exchange.answer("/historical/cutoff", {}))
    for ticker in tickers:
        event = exchange.world.by_ticker[ticker]
        told.append(exchange.answer(f"/events/{ticker}", {"with_nested_markets": "true"}))
        told.append(exchange.answer(f"/series/{event.series}", {}))
        for minutes in (60, 1440):
            window = {"start_ts": "0", "end_ts": str(2**31), "period_interval": str(minutes)}
            query = window | {"market_tickers": ",".join(event.tickers), "include_latest_before_start": "true"}
            told.append(exchange.answer("/markets/candlesticks", query))
            told.append(exchange.answer(f"/historical/markets/{event.tickers[0]}/candlesticks", window))
        told.append([(page.url, page.text) for page in exchange.news.find(event.words.title)])
    told.append([vars(document) for document in exchange.news.documents()])
    return json.dumps(told, default=str)


@pytest.mark.parametrize("archive_after", [60.0, 2.0])
def test_two_futures_of_one_past_cannot_be_told_apart(archive_after: float):
    """The strongest test of leaks: whatever comes after now is drawn anew, and no answer changes by a byte."""
    small = {"seed": 5, "days": 4, "warm_up": 6, "events_per_day": 3.0, "early": 0.3, "void": 0.1}
    moment = SETTINGS.start + timedelta(days=2, hours=9, minutes=20)
    worlds = [SimulatedWorld(SimulationSettings(**small, turn=moment, other=other)) for other in (1, 2)]
    born = [[e.ticker for e in world.events if e.life.announced <= moment.timestamp()] for world in worlds]
    assert born[0] == born[1]
    clock = [moment]
    exchanges = [SimulatedExchange(world, lambda: clock[0], archive_after=archive_after) for world in worlds]
    one, other = (everything(exchange, born[0]) for exchange in exchanges)
    assert len(one) > 100_000
    assert one == other
    clock[0] += timedelta(hours=6)
    one, other = (everything(exchange, born[0]) for exchange in exchanges)
    assert one != other
    assert [worlds[0].by_ticker[t].outcomes for t in born[0]] != [worlds[1].by_ticker[t].outcomes for t in born[0]]


def test_an_event_that_is_not_announced_does_not_exist():
    exchange = SimulatedExchange(WORLD, now)
    unborn = [event for event in WORLD.events if event.life.announced > NOW.timestamp()]
    listed = json.dumps(exchange.answer("/events", {"with_nested_markets": "true"}))
    window = {"start_ts": "0", "end_ts": str(2**31), "period_interval": "60"}
    for event in unborn:
        assert event.ticker not in listed
        assert exchange.answer(f"/events/{event.ticker}", {})[0] == 404
        assert exchange.answer(f"/markets/{event.tickers[0]}", {})[0] == 404
        assert exchange.answer("/markets", {"tickers": event.tickers[0]})[1]["markets"] == []
        assert exchange.answer(f"/series/x/markets/{event.tickers[0]}/candlesticks", window)[0] == 404
    assert unborn


def test_the_news_are_searched_over_a_socket_and_pages_are_there_once_published():
    item = next(one for one in WORLD.news if one.telling and one.published > NOW)
    sim = WORLD.by_ticker[item.event]
    clock = [item.published - timedelta(minutes=1)]

    async def use(market: Market) -> None:
        engine = TavilySearch(ServiceConfig(http=market.http, key=KEY, address=f"{market.server.url}/tavily"))
        address = f"{market.server.url}/pages{item.path}"
        hits = await engine.search(sim.words.title, market.as_of(), limit=20)
        assert all(hit.published is not None and hit.published <= clock[0] for hit in hits)
        assert not any(hit.url.endswith(item.path) for hit in hits)
        clock[0] = item.published
        hits = await engine.search(sim.words.title, market.as_of(), limit=20)
        found = next(hit for hit in hits if hit.url.endswith(item.path))
        assert found.text == item.text
        assert item.text.split(".")[0] in (await market.http.get(address)).body.decode()

    at(lambda: clock[0], use)


def test_news_tell_what_was_seen_and_appear_afterwards():
    assert all(item.observed < item.published for item in WORLD.news)
    lags = np.array([(item.published - item.observed).total_seconds() for item in WORLD.news]) / 3600
    assert 0.05 < np.mean(lags > 12) < 0.25
    assert 0.15 < np.mean([not item.telling for item in WORLD.news]) < 0.4
    paths = [item.path for item in WORLD.news]
    assert len(set(paths)) == len(paths)


def test_a_busy_exchange_is_asked_again():
    async def use(market: Market) -> int:
        inject(market.server, busy(), busy())
        found = len(await market.listed())
        assert len(market.server.requests) == 3
        return found

    assert at(now, use) > 20


def test_time_is_read_from_a_file(tmp_path: Path):
    clock = FileClock(tmp_path / "now.txt")
    clock.set(NOW)

    async def use(market: Market) -> tuple[int, int]:
        before = len(await market.listed())
        clock.set(SETTINGS.ends + timedelta(days=40))
        return before, len(await market.listed())

    before, after = at(FileClock(tmp_path / "now.txt"), use)
    assert before > 20
    assert after == 0


def test_thin_markets_are_wide_and_little_traded():
    def spread(thin: bool) -> tuple[float, float]:
        books = [WORLD.book(event) for event in WORLD.events if event.thin == thin]
        return (
            float(np.mean([(book.ask - book.bid).mean() for book in books])),
            float(np.median([book.volume[:, -1].sum() for book in books])),
        )

    (wide, little), (narrow, much) = spread(True), spread(False)
    assert wide > 3 * narrow
    assert much > 20 * little


def test_prices_are_biased_towards_longshots():
    """What is nearly sure is too cheap, what is nearly impossible too dear."""
    truth = np.concatenate([e.p[:, len(WORLD.book(e).bid[0]) // 2] for e in WORLD.events if not e.thin])
    books = [WORLD.book(event) for event in WORLD.events if not event.thin]
    price = np.concatenate([(b.bid + b.ask)[:, b.bid.shape[1] // 2] / 2 for b in books])
    assert price[truth < 0.1].mean() > truth[truth < 0.1].mean() + 0.005
    assert price[truth > 0.9].mean() < truth[truth > 0.9].mean() - 0.005


def test_it_serves_other_processes(tmp_path: Path):
    clock = FileClock(tmp_path / "now.txt")
    clock.set(NOW)
    command = [
        sys.executable,
        "-m",
        "foretell.practice.exchange.server",
        "--clock",
        f"file:{clock.path}",
        "--seed",
        "7",
    ]
    command += ["--days", "8", "--events-per-day", "12"]

    async def listed(host: str) -> int:
        async with AsyncHttpClient(limits=QUICK) as http:
            events = KalshiEvents(KalshiClient(http=http, host=host))
            return len(await events.events(ListingFilter(as_of=AsOf(at=NOW, mode="live"), limit=1000)).all())

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        addresses = dict(process.stdout.readline().strip().split("=", 1) for _ in range(7))
        found = asyncio.run(listed(addresses["FORETELL_KALSHI_URL"]))
        process.terminate()
    assert process.returncode == 0
    assert found == sum(e.life.opens <= NOW.timestamp() < e.life.ends for e in WORLD.events)
