"""A small made-up world for trying things out: dated pages, series and market prices, all of them known beforehand."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import sin

from foretell.fakes.dbnomics import FakePeriods
from foretell.fakes.fred import FakeFredSeries, FakeObservation
from foretell.fakes.markets import FakeBet, FakeBook, FakeCrowd, FakeListing, FakeQuestion
from foretell.fakes.world import Version, WebPage, World, small_world
from foretell.fakes.yahoo import FakeShare
from foretell.questions.clock import instant

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
class Curve:
    """A value for every day: a level with two waves on it, so that nothing is random and nothing stands still."""

    level: float
    year: float
    month: float

    def at(self, day: date) -> float:
        """The value of a day."""
        n = day.toordinal()
        return round(self.level + self.year * sin(n / 58.1) + self.month * sin(n / 4.7), 3)


def made_up_world(now: datetime, site: str = "https://news.example") -> World:
    """Pages and articles whose dates do not move; only ages are counted from `now`."""
    small = small_world()
    pages = [
        WebPage(
            url=site + page.path,
            title=page.title,
            text=page.text,
            published=page.published,
            updated=page.updated,
            shown=page.shown,
            crawled=page.crawled,
            versions=page.versions,
        )
        for page in [*small.pages, *_more_pages()]
    ]
    return World(now=now, pages=pages, articles=small.articles)


def _more_pages() -> list[WebPage]:
    told = (
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
    return [_page(*one) for one in told]


def _page(path: str, day: str, title: str, text: str) -> WebPage:
    at = instant(f"{day}T09:00:00Z")
    kept = (Version(at=at + timedelta(hours=3), text=text),)
    return WebPage(url=f"https://news.example/{path}", title=title, text=text, published=at, crawled=at, versions=kept)


def _days(until: date, count: int) -> list[date]:
    return [until - n * DAY for n in range(count, -1, -1)]


def fred_series(today: date) -> dict[str, FakeFredSeries]:
    """A yield on working days, each value out on the day after."""
    curve = Curve(level=4.0, year=0.5, month=0.08)
    rows = [
        FakeObservation(day=day, value=curve.at(day), since=day + DAY)
        for day in _days(today - DAY, SERIES_DAYS)
        if day.weekday() < 5
    ]
    return {FRED_ID: FakeFredSeries(observations=tuple(rows))}


def shares(today: date) -> dict[str, FakeShare]:
    """A share on working days."""
    curve = Curve(level=600.0, year=40.0, month=6.0)
    days = [day for day in _days(today - DAY, SERIES_DAYS) if day.weekday() < 5]
    return {TICKER: FakeShare(sessions=tuple((datetime.combine(day, OPENS), curve.at(day)) for day in days))}


def temperatures(today: date) -> dict[str, FakePeriods]:
    """A temperature on every day."""
    curve = Curve(level=14.0, year=7.0, month=2.0)
    return {DBNOMICS_ID: FakePeriods(values=tuple((day, curve.at(day)) for day in _days(today - DAY, SERIES_DAYS)))}


def _prices(now: datetime) -> list[tuple[int, float]]:
    """A price at every noon before now, as (Unix second, price)."""
    curve = Curve(level=0.4, year=0.15, month=0.03)
    noon = time(12, tzinfo=UTC)
    moments = [datetime.combine(day, noon) for day in _days(now.date(), PRICE_DAYS)]
    return [(int(at.timestamp()), curve.at(at.date())) for at in moments if at <= now]


def kalshi_books(now: datetime) -> dict[str, FakeBook]:
    """One market with a spread of two cents."""
    quotes = tuple((at, round(p - 0.01, 2), round(p + 0.01, 2)) for at, p in _prices(now))
    return {KALSHI_ID: FakeBook(quotes=quotes)}


def manifold_bets(now: datetime) -> dict[str, tuple[FakeBet, ...]]:
    """One market with a bet a day."""
    return {MANIFOLD_ID: tuple(FakeBet(id=f"b{at}", at_ms=at * 1000, after=p) for at, p in _prices(now))}


def polymarket_listings(now: datetime) -> dict[str, FakeListing]:
    """One market with a trade a day on either side."""
    yes = tuple(_prices(now))
    trades = {"1": yes, "2": tuple((at, round(1 - p, 3)) for at, p in yes)}
    return {POLYMARKET_ID: FakeListing(slug="rate-cut", outcomes=("Yes", "No"), tokens=("1", "2"), trades=trades)}


def metaculus_posts(now: datetime) -> dict[str, tuple[FakeQuestion, ...]]:
    """One binary question."""
    history = tuple(FakeCrowd(since=float(at), centers=(p,)) for at, p in _prices(now))
    return {METACULUS_ID: (FakeQuestion(id=1, history=history),)}
