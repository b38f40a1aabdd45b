"""The simulated exchange over sockets, read by the clients for real markets; it reveals nothing of the future."""

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
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.markets.kalshi import KalshiClient, KalshiEvents, KalshiPrices
from foretell.data.markets.listing import ListedEvent, ListingFilter
from foretell.data.markets.market import MarketRef
from foretell.data.search.web import TavilySearch
from foretell.data.service import ServiceConfig
from foretell.data.settlements.kalshi import KalshiSettlements
from foretell.practice.exchange.events import SimulationSettings
from foretell.practice.exchange.server import KALSHI, KEY, FileClock, SimulatedExchange
from foretell.practice.exchange.world import SimulatedWorld
from foretell.practice.markets.kalshi import Schema
from foretell.practice.server import PracticeServer
from foretell.questions.as_of import AsOf

T = TypeVar("T")
SETTINGS = SimulationSettings(seed=7, days=8, events_per_day=12)
WORLD = SimulatedWorld(SETTINGS)
NOW = SETTINGS.start + timedelta(days=4, hours=10, minutes=30)
QUICK = HttpLimits(attempts=3, wait_seconds=0.0, total_seconds=10.0)


class Market:
    """An exchange at a time, and clients that read it."""

    def __init__(self, exchange: SimulatedExchange, server: PracticeServer, http: AsyncHttpClient) -> None:
        self.exchange, self.server, self.http = exchange, server, http
        self.client = KalshiClient(http=http, host=f"{server.url}{KALSHI}")

    def as_of(self) -> AsOf:
        return AsOf(at=self.exchange.clock(), mode="live")

    async def listed(self, **wanted: Any) -> list[ListedEvent]:
        listing = KalshiEvents(self.client).events(ListingFilter(as_of=self.as_of(), limit=1000, **wanted))
        events = await listing.all()
        assert listing.ledger.complete
        assert not listing.ledger.skipped
        return events


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

    events = at(now, use, schema=schema, page=7)
    second = NOW.timestamp()
    running = {event.ticker for event in WORLD.events if event.life.opens <= second < event.life.ends}
    assert {event.question.id.removeprefix("kalshi/") for event in events} == running
    assert len(running) > 20
    gaps: list[float] = []
    for event in events:
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


def test_an_early_answer_changes_the_close_only_once_it_is_known():
    sim = next(e for e in WORLD.events if e.life.early and not e.life.void and e.life.ends - e.life.opens > 7200)
    clock = [sim.life.ends - 60.0]

    async def use(market: Market) -> list[ListedEvent]:
        events: list[ListedEvent] = []
        for second in (sim.life.ends - 60.0, float(sim.life.ends), float(sim.life.finalized)):
            clock[0] = second
            events.append(await KalshiEvents(market.client).event(sim.ticker, market.as_of()))
        return events

    before, after, final = at(lambda: datetime.fromtimestamp(clock[0], NOW.tzinfo), use)
    assert [event.status for event in (before, after, final)] == ["open", "closed", "resolved"]
    assert before.closes_at is not None
    assert after.closes_at is not None
    assert before.closes_at.timestamp() == sim.life.closes
    assert after.closes_at.timestamp() == sim.life.known < sim.life.closes


@pytest.mark.parametrize("archive_after", [60.0, 0.5])
def test_settlements_are_read_from_the_list_or_the_archive_once_finalized(archive_after: float):
    clock = [NOW]

    async def use(market: Market) -> None:
        questions = [event.question for event in await market.listed()]
        source = KalshiSettlements(market.client)
        assert await source.settlements(questions) == []
        clock[0] = NOW + timedelta(days=3)
        settlements = {
            (settlement.question_id, settlement.target_id): settlement
            for settlement in await source.settlements(questions)
        }
        second = clock[0].timestamp()
        for question in questions:
            sim = WORLD.by_ticker[question.id.removeprefix("kalshi/")]
            for target in question.targets:
                settlement = settlements.get((question.id, target.id))
                assert (settlement is not None) == (sim.life.finalized <= second)
                if settlement is not None:
                    assert settlement.outcome == WORLD.outcome(sim.ticker, target.id)
                    assert settlement.payoff == (0.5 if sim.life.void else None)
        assert len(settlements) > 20

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


def test_candles_contain_trades_and_end_now():
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
        sum(float(candle["volume_fp"]) for candle in candles)
        == book.volume[0, book.place(NOW.timestamp())] - book.volume[0, 0]
    )
    for candle in candles:
        assert (
            candle["yes_bid"]["low_dollars"] <= candle["yes_bid"]["close_dollars"] <= candle["yes_bid"]["high_dollars"]
        )
        assert candle["yes_bid"]["close_dollars"] < candle["yes_ask"]["close_dollars"]
        # A missing price has no field.
        assert ("close_dollars" not in candle["price"]) == (float(candle["volume_fp"]) == 0)
    assert exchange.answer("/markets/candlesticks", window | {"market_tickers": ",".join(["x"] * 101)})[0] == 400
    assert (
        exchange.answer(f"/series/x/markets/{sim.tickers[0]}/candlesticks", window | {"period_interval": "7"})[0] == 400
    )
    assert exchange.answer("/series/x/markets/nobody/candlesticks", window)[0] == 404


def everything(exchange: SimulatedExchange, tickers: list[str]) -> str:
    """Return all answers of an exchange, including those about these events."""
    answers: list[Any] = []
    for status in ("unopened", "open", "closed", "settled", None):
        query = {"with_nested_markets": "true", "limit": "200"} | ({"status": status} if status else {})
        answers.append(exchange.answer("/events", query))
    answers += [
        exchange.answer("/markets", {"limit": "1000"}),
        exchange.answer("/historical/markets", {"limit": "1000"}),
    ]
    answers.append(exchange.answer("/historical/cutoff", {}))
    for ticker in tickers:
        event = exchange.world.by_ticker[ticker]
        answers.append(exchange.answer(f"/events/{ticker}", {"with_nested_markets": "true"}))
        answers.append(exchange.answer(f"/series/{event.series}", {}))
        for minutes in (60, 1440):
            window = {"start_ts": "0", "end_ts": str(2**31), "period_interval": str(minutes)}
            query = window | {"market_tickers": ",".join(event.tickers), "include_latest_before_start": "true"}
            answers.append(exchange.answer("/markets/candlesticks", query))
            answers.append(exchange.answer(f"/historical/markets/{event.tickers[0]}/candlesticks", window))
        answers.append([(page.url, page.text) for page in exchange.news.find(event.words.title)])
    answers.append([vars(document) for document in exchange.news.documents()])
    return json.dumps(answers, default=str)


@pytest.mark.parametrize("archive_after", [60.0, 2.0])
def test_different_futures_do_not_change_any_answer_about_the_past(archive_after: float):
    """Draw everything after now again with another seed: no answer changes by a byte."""
    small = {"seed": 5, "days": 4, "warm_up": 6, "events_per_day": 3.0, "early": 0.3, "void": 0.1}
    turn = SETTINGS.start + timedelta(days=2, hours=9, minutes=20)
    worlds = [SimulatedWorld(SimulationSettings(**small, turn=turn, other=other)) for other in (1, 2)]
    announced = [[e.ticker for e in world.events if e.life.announced <= turn.timestamp()] for world in worlds]
    assert announced[0] == announced[1]
    clock = [turn]
    exchanges = [SimulatedExchange(world, lambda: clock[0], archive_after=archive_after) for world in worlds]
    one, other = (everything(exchange, announced[0]) for exchange in exchanges)
    assert len(one) > 100_000
    assert one == other
    clock[0] += timedelta(hours=6)
    one, other = (everything(exchange, announced[0]) for exchange in exchanges)
    assert one != other
    assert [worlds[0].by_ticker[t].outcomes for t in announced[0]] != [
        worlds[1].by_ticker[t].outcomes for t in announced[0]
    ]


def test_unannounced_events_are_not_served():
    exchange = SimulatedExchange(WORLD, now)
    unannounced = [event for event in WORLD.events if event.life.announced > NOW.timestamp()]
    listed = json.dumps(exchange.answer("/events", {"with_nested_markets": "true"}))
    window = {"start_ts": "0", "end_ts": str(2**31), "period_interval": "60"}
    for event in unannounced:
        assert event.ticker not in listed
        assert exchange.answer(f"/events/{event.ticker}", {})[0] == 404
        assert exchange.answer(f"/markets/{event.tickers[0]}", {})[0] == 404
        assert exchange.answer("/markets", {"tickers": event.tickers[0]})[1]["markets"] == []
        assert exchange.answer(f"/series/x/markets/{event.tickers[0]}/candlesticks", window)[0] == 404
    assert unannounced


def test_news_pages_are_found_and_served_only_after_publication():
    item = next(item for item in WORLD.news if item.informative and item.published > NOW)
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
        hit = next(hit for hit in hits if hit.url.endswith(item.path))
        assert hit.text == item.text
        assert item.text.split(".")[0] in (await market.http.get(address)).body.decode()

    at(lambda: clock[0], use)


def test_news_are_published_after_the_observed_time():
    assert all(item.observed < item.published for item in WORLD.news)
    lags = np.array([(item.published - item.observed).total_seconds() for item in WORLD.news]) / 3600
    assert 0.05 < np.mean(lags > 12) < 0.25
    assert 0.15 < np.mean([not item.informative for item in WORLD.news]) < 0.4
    paths = [item.path for item in WORLD.news]
    assert len(set(paths)) == len(paths)


def test_requests_to_a_busy_exchange_are_retried():
    async def use(market: Market) -> int:
        inject(market.server, busy(), busy())
        count = len(await market.listed())
        assert len(market.server.requests) == 3
        return count

    assert at(now, use) > 20


def test_the_clock_reads_its_time_from_a_file(tmp_path: Path):
    clock = FileClock(tmp_path / "now.txt")
    clock.set(NOW)

    async def use(market: Market) -> tuple[int, int]:
        before = len(await market.listed())
        clock.set(SETTINGS.ends + timedelta(days=40))
        return before, len(await market.listed())

    before, after = at(FileClock(tmp_path / "now.txt"), use)
    assert before > 20
    assert after == 0


def test_thin_markets_have_wide_spreads_and_low_volume():
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
    """Likely outcomes are underpriced, and unlikely ones are overpriced."""
    truth = np.concatenate([e.p[:, len(WORLD.book(e).bid[0]) // 2] for e in WORLD.events if not e.thin])
    books = [WORLD.book(event) for event in WORLD.events if not event.thin]
    price = np.concatenate([(b.bid + b.ask)[:, b.bid.shape[1] // 2] / 2 for b in books])
    assert price[truth < 0.1].mean() > truth[truth < 0.1].mean() + 0.005
    assert price[truth > 0.9].mean() < truth[truth > 0.9].mean() - 0.005


def test_the_exchange_serves_other_processes(tmp_path: Path):
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
        count = asyncio.run(listed(addresses["FORETELL_KALSHI_URL"]))
        process.terminate()
    assert process.returncode == 0
    assert count == sum(e.life.opens <= NOW.timestamp() < e.life.ends for e in WORLD.events)
