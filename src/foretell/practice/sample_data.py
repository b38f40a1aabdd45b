"""A small made-up world for trying things out: dated pages, series and market prices, all of them known beforehand."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from math import sin
from typing import Any

from foretell.practice.markets.kalshi import (
    KalshiCatalogue,
    SampleKalshiBook,
    SampleKalshiEvent,
    SampleKalshiMarket,
    kalshi_event_body,
)
from foretell.practice.markets.manifold import (
    ManifoldCatalogue,
    SampleManifoldAnswer,
    SampleManifoldBet,
    SampleManifoldMarket,
    manifold_market_body,
)
from foretell.practice.markets.metaculus import (
    MetaculusCatalogue,
    SampleCommunityPrediction,
    SampleMetaculusQuestion,
    SampleMetaculusScale,
    metaculus_post_body,
)
from foretell.practice.markets.polymarket import (
    PolymarketCatalogue,
    SamplePolymarketEvent,
    SamplePolymarketMarket,
    TokenTrades,
    polymarket_event_body,
)
from foretell.practice.markets.prophet_arena import prophet_arena_body
from foretell.practice.series import SampleDbnomicsSeries, SampleFredSeries, SampleFredValue, SampleShare
from foretell.practice.world import PageVersion, SampleWebPage, SampleWorld, small_world
from foretell.questions.as_of import instant

DAY = timedelta(days=1)
SERIES_DAYS = 1200
PRICE_DAYS = 90
OPENS = time(14, 30, tzinfo=UTC)
FRED_ID = "DGS10"
TICKER = "SPY"
DBNOMICS_ID = "meteofrance/TEMPERATURE/celsius.07607.D"
KALSHI_ID = "KXRATE-27JAN"
MANIFOLD_ID = "fakeRate2027"
POLYMARKET_ID = "0x" + "fa" * 32
METACULUS_ID = "12345"


@dataclass(frozen=True, kw_only=True)
class SampleCurve:
    """A value for every day: a level with two waves on it, so that nothing is random and nothing stands still."""

    level: float
    year: float
    month: float

    def at(self, day: date) -> float:
        """The value of a day."""
        n = day.toordinal()
        return round(self.level + self.year * sin(n / 58.1) + self.month * sin(n / 4.7), 3)


def sample_world(now: datetime, site: str = "https://news.example") -> SampleWorld:
    """Pages and articles whose dates do not move; only ages are counted from `now`."""
    small = small_world()
    pages = [replace(page, url=site + page.path) for page in [*small.pages, *_more_pages()]]
    return SampleWorld(now=now, pages=pages, articles=small.articles)


def _more_pages() -> list[SampleWebPage]:
    pages = (
        ("snow-outlook", "2026-08-25", "Winter outlook for Oslo", "Forecasters see even chances of snow by Christmas."),
        ("launch-delayed", "2026-07-10", "Launch moved to December", "The rocket will not fly before December 2026."),
        ("poll-close", "2026-09-02", "Election race is close", "A poll puts the two candidates at 48 and 47 per cent."),
        (
            "shares-steady",
            "2026-06-30",
            "Shares end the quarter higher",
            "The index closed the quarter two per cent up.",
        ),
        (
            "model-release",
            "2026-08-01",
            "New AI model announced",
            "The company plans a release before the end of 2026.",
        ),
    )
    return [_page(*one) for one in pages]


def _page(path: str, day: str, title: str, text: str) -> SampleWebPage:
    at = instant(f"{day}T09:00:00Z")
    versions = (PageVersion(at=at + timedelta(hours=3), text=text),)
    return SampleWebPage(
        url=f"https://news.example/{path}", title=title, text=text, published=at, crawled=at, versions=versions
    )


def _days(until: date, count: int) -> list[date]:
    return [until - n * DAY for n in range(count, -1, -1)]


def fred_series(today: date) -> dict[str, SampleFredSeries]:
    """A yield on working days, each value out on the day after."""
    curve = SampleCurve(level=4.0, year=0.5, month=0.08)
    rows = [
        SampleFredValue(day=day, value=curve.at(day), since=day + DAY)
        for day in _days(today - DAY, SERIES_DAYS)
        if day.weekday() < 5
    ]
    return {FRED_ID: SampleFredSeries(observations=tuple(rows))}


def shares(today: date) -> dict[str, SampleShare]:
    """A share on working days."""
    curve = SampleCurve(level=600.0, year=40.0, month=6.0)
    days = [day for day in _days(today - DAY, SERIES_DAYS) if day.weekday() < 5]
    return {TICKER: SampleShare(sessions=tuple((datetime.combine(day, OPENS), curve.at(day)) for day in days))}


def temperatures(today: date) -> dict[str, SampleDbnomicsSeries]:
    """A temperature on every day."""
    curve = SampleCurve(level=14.0, year=7.0, month=2.0)
    return {
        DBNOMICS_ID: SampleDbnomicsSeries(values=tuple((day, curve.at(day)) for day in _days(today - DAY, SERIES_DAYS)))
    }


def _prices(now: datetime) -> list[tuple[int, float]]:
    """A price at every noon before now, as (Unix second, price)."""
    curve = SampleCurve(level=0.4, year=0.15, month=0.03)
    noon = time(12, tzinfo=UTC)
    moments = [datetime.combine(day, noon) for day in _days(now.date(), PRICE_DAYS)]
    return [(int(at.timestamp()), curve.at(at.date())) for at in moments if at <= now]


def kalshi_books(now: datetime) -> dict[str, SampleKalshiBook]:
    """One market with a spread of two cents."""
    quotes = tuple((at, round(p - 0.01, 2), round(p + 0.01, 2)) for at, p in _prices(now))
    return {KALSHI_ID: SampleKalshiBook(quotes=quotes)}


def manifold_bets(now: datetime) -> dict[str, tuple[SampleManifoldBet, ...]]:
    """One market with a bet a day."""
    return {MANIFOLD_ID: tuple(SampleManifoldBet(id=f"b{at}", at_ms=at * 1000, after=p) for at, p in _prices(now))}


def polymarket_trades(now: datetime) -> dict[str, TokenTrades]:
    """A trade a day on either side of one market."""
    yes = tuple(_prices(now))
    return {f"{POLYMARKET_ID}1": yes, f"{POLYMARKET_ID}2": tuple((at, round(1 - p, 3)) for at, p in yes)}


SPREAD = 0.03


def _in(now: datetime, days: float) -> str:
    return (now + timedelta(days=days)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _market(ticker: str, label: str, p: float, closes: str, volume: float) -> SampleKalshiMarket:
    return SampleKalshiMarket(
        ticker=ticker,
        label=label,
        bid=round(p - SPREAD / 2, 2),
        ask=round(p + SPREAD / 2, 2),
        last=p,
        volume=volume,
        volume_24h=volume / 20,
        open_interest=volume / 2,
        closes=closes,
        rules=f"Resolves to yes if it is {label}.",
    )


def kalshi_events(now: datetime) -> KalshiCatalogue:
    """One of which exactly one market comes true, a ladder, and a single market."""
    soon, later, last = _in(now, 3), _in(now, 12), _in(now, 30)
    rate = [("CUT", "Cut", 0.41), ("HOLD", "Hold", 0.55), ("HIKE", "Hike", 0.04)]
    snow = [("5", "Above 5 cm", 0.7), ("10", "Above 10 cm", 0.45), ("20", "Above 20 cm", 0.2)]
    events = [
        SampleKalshiEvent(
            ticker="KXNORGES-NEXT",
            series="KXNORGES",
            title="What does Norges Bank do with its rate?",
            exclusive=True,
            category="Economics",
            markets=tuple(_market(f"KXNORGES-NEXT-{id}", label, p, later, 4000) for id, label, p in rate),
        ),
        SampleKalshiEvent(
            ticker="KXSNOWOSLO-NEXT",
            series="KXSNOWOSLO",
            title="How much snow falls in Oslo this week?",
            category="Climate and Weather",
            markets=tuple(_market(f"KXSNOWOSLO-NEXT-{id}", label, p, soon, 900) for id, label, p in snow),
        ),
        SampleKalshiEvent(
            ticker="KXLAUNCH-NEXT",
            series="KXLAUNCH",
            title="Does the rocket launch this month?",
            category="Science and Technology",
            markets=(_market("KXLAUNCH-NEXT-YES", "It launches", 0.35, last, 2500),),
        ),
    ]
    return KalshiCatalogue([kalshi_event_body(event) for event in events])


def polymarket_events(now: datetime) -> PolymarketCatalogue:
    """A race with two candidates, of whom one wins."""
    ends = _in(now, 20)
    names = (("Ada Berg", 0.52), ("Bo Lind", 0.47))
    markets = tuple(
        SamplePolymarketMarket(
            condition="0x" + f"{n:x}" * 64,
            question=f"Does {name} win the race?",
            label=name,
            bid=p - 0.01,
            ask=p + 0.01,
            last=p,
            prices=(f"{p:g}", f"{1 - p:g}"),
            volume=8000,
            ends=ends,
        )
        for n, (name, p) in enumerate(names, start=1)
    )
    figures = {"volume": 16000, "volume24hr": 900, "liquidity": 3000, "openInterest": 5000}
    group = SamplePolymarketEvent(
        id="701", title="Who wins the race?", markets=markets, negative_risk=True, tags=("Politics",), figures=figures
    )
    priced = SamplePolymarketMarket(condition=POLYMARKET_ID, question="Is the rate cut?", ends=_in(now, 60))
    alone = SamplePolymarketEvent(id="702", title="Is the rate cut?", markets=(priced,), tags=("Economy",))
    return PolymarketCatalogue(
        [
            polymarket_event_body(group) | {"endDate": ends},
            polymarket_event_body(alone) | {"endDate": _in(now, 60)},
        ]
    )


def manifold_events(now: datetime) -> ManifoldCatalogue:
    """A yes-or-no market and one with answers."""
    closes = int((now + timedelta(days=9)).timestamp() * 1000)
    answers = tuple(
        SampleManifoldAnswer(id=f"ans{n}abcdefgh", text=f"Team {n}", p=p) for n, p in enumerate((0.5, 0.3, 0.2))
    )
    return ManifoldCatalogue(
        [
            manifold_market_body(
                SampleManifoldMarket(
                    id="madeUpModel1", question="A new AI model by then?", p=0.63, volume=2000, closes_ms=closes
                )
            ),
            manifold_market_body(
                SampleManifoldMarket(
                    id="madeUpLeague",
                    question="Who leads the league then?",
                    answers=answers,
                    kind="MULTIPLE_CHOICE",
                    volume=1500,
                    closes_ms=closes,
                )
            ),
        ]
    )


def metaculus_events(now: datetime) -> MetaculusCatalogue:
    """Yes or no, a choice, a number, and a question with a long history of community predictions."""
    times: dict[str, Any] = {"opens": _in(now, -30), "closes": _in(now, 25), "resolves": _in(now, 26)}
    history = tuple(SampleCommunityPrediction(since=float(at), centers=(p,)) for at, p in _prices(now))
    questions = (
        SampleMetaculusQuestion(id=9101, title="Is the treaty signed this month?", centers=(0.28,), **times),
        SampleMetaculusQuestion(
            id=9102,
            title="Who wins the cup?",
            kind="multiple_choice",
            options=("Red", "Blue", "Green"),
            centers=(0.5, 0.3, 0.2),
            **times,
        ),
        SampleMetaculusQuestion(
            id=9103,
            title="How many cm of snow fall in Oslo this month?",
            kind="numeric",
            scale=SampleMetaculusScale(low=0, high=100, open_upper=True),
            **times,
        ),
    )
    posts = [metaculus_post_body(question.id - 100, question.title, question) for question in questions]
    priced = SampleMetaculusQuestion(id=1, title="Is the rate cut?", history=history, centers=(0.4,), **times)
    return MetaculusCatalogue([*posts, metaculus_post_body(int(METACULUS_ID), priced.title, priced)])


def arena_events(now: datetime) -> list[dict[str, object]]:
    """One event with a crowd."""
    window = {"taken_at": _in(now, -1), "crowd": {"Red": 0.6, "Blue": 0.4}}
    fields = {"close_at": _in(now, 6), "windows": [window], "category": "Sports"}
    return [prophet_arena_body("cup-final", "Who wins the cup?", {"Red": None, "Blue": None}, **fields)]
