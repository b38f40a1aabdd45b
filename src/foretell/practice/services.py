"""The practice world: every outside service at once, on this machine, with made-up data known beforehand."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import count, repeat
from math import sin
from typing import Any

from foretell.practice.forecastbench import PracticeBucket, serve_rounds
from foretell.practice.markets.kalshi import (
    KalshiCatalogue,
    PracticeKalshi,
    SampleKalshiBook,
    SampleKalshiEvent,
    SampleKalshiMarket,
    kalshi_event_body,
)
from foretell.practice.markets.manifold import (
    ManifoldCatalogue,
    PracticeManifold,
    SampleManifoldAnswer,
    SampleManifoldBet,
    SampleManifoldMarket,
    manifold_market_body,
)
from foretell.practice.markets.metaculus import (
    MetaculusCatalogue,
    MetaculusInbox,
    PracticeMetaculus,
    SampleCommunityPrediction,
    SampleMetaculusQuestion,
    SampleMetaculusScale,
    metaculus_conditional_body,
    metaculus_post_body,
)
from foretell.practice.markets.polymarket import (
    PolymarketCatalogue,
    PracticePolymarket,
    SamplePolymarketEvent,
    SamplePolymarketMarket,
    polymarket_event_body,
    polymarket_tokens,
)
from foretell.practice.markets.prophet_arena import (
    PracticeProphetArena,
    prophet_arena_body,
    weekly_event_body,
    weekly_release_body,
)
from foretell.practice.models.scripts import arena_script
from foretell.practice.models.server import PracticeModels, Script
from foretell.practice.series import (
    PracticeAcled,
    PracticeDbnomics,
    PracticeFred,
    PracticeOpenMeteo,
    PracticeYahoo,
    SampleConflictEvent,
    SampleDbnomicsSeries,
    SampleFredSeries,
    SampleFredValue,
    SampleShare,
)
from foretell.practice.server import PracticeServer, PracticeService, ServerRequest, ServerResponse, json_response
from foretell.practice.web import (
    ENGINES,
    PageVersion,
    SampleWebPage,
    sample_world,
    search_server,
    wayback_server,
    web_server,
    wikipedia_server,
)
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
SPREAD = 0.03
Strikes = Mapping[str, tuple[str, float | None, float | None]]
"""How the number of a market is compared, and the lowest and highest for which it comes true."""


def data_services(now: datetime, key: str) -> dict[str, PracticeService]:
    """Series and markets. Their data begin and end around a moment; inboxes go by the real clock."""
    return {
        "fred": _fred(now.date(), key),
        "yahoo": _yahoo(now.date()),
        "dbnomics": _dbnomics(now.date()),
        "open_meteo": PracticeOpenMeteo(_curve(9.0, 8.0, 2.5), today=now.date()),
        "acled": _acled(now, key),
        "kalshi": _kalshi(now),
        "manifold": _manifold(now),
        "polymarket": _polymarket(now),
        "metaculus": _metaculus(now, key),
        "prophet_arena": _prophet_arena(now, key),
    }


def _curve(level: float, year: float, month: float) -> Callable[[date], float]:
    """A value for every day: a level with two waves on it, so that nothing is random and nothing stands still."""

    def at(day: date) -> float:
        n = day.toordinal()
        return round(level + year * sin(n / 58.1) + month * sin(n / 4.7), 3)

    return at


def _days(until: date, count: int) -> list[date]:
    return [until - n * DAY for n in range(count, -1, -1)]


def _fred(today: date, key: str) -> PracticeFred:
    """A yield on working days, each value out on the day after."""
    curve = _curve(4.0, 0.5, 0.08)
    values = tuple(
        SampleFredValue(day=day, value=curve(day), since=day + DAY)
        for day in _days(today - DAY, SERIES_DAYS)
        if day.weekday() < 5
    )
    return PracticeFred({FRED_ID: SampleFredSeries(observations=values)}, key=key, today=today)


def _yahoo(today: date) -> PracticeYahoo:
    """A share on working days."""
    curve = _curve(600.0, 40.0, 6.0)
    days = [day for day in _days(today - DAY, SERIES_DAYS) if day.weekday() < 5]
    return PracticeYahoo({TICKER: SampleShare(sessions=tuple((datetime.combine(d, OPENS), curve(d)) for d in days))})


def _dbnomics(today: date) -> PracticeDbnomics:
    """A temperature on every day."""
    curve = _curve(14.0, 7.0, 2.0)
    values = tuple((day, curve(day)) for day in _days(today - DAY, SERIES_DAYS))
    return PracticeDbnomics({DBNOMICS_ID: SampleDbnomicsSeries(values=values)})


def _acled(now: datetime, key: str) -> PracticeAcled:
    """Protests of half a year, each row written a week after its day; one in ten was corrected later."""
    days = _days(now.date() - 7 * DAY, 180)
    events = [
        SampleConflictEvent(
            id=f"IRQ{n}{m}",
            day=day,
            changed=datetime.combine(day + (60 if n % 10 == 0 else 7) * DAY, time(12, tzinfo=UTC)),
        )
        for n, day in enumerate(days)
        for m in range(2 + n % 3)
    ]
    return PracticeAcled([one for one in events if one.changed <= now], password=key, deleted={"IRQ900": now - 2 * DAY})


def _prices(now: datetime) -> list[tuple[int, float]]:
    """A price at every noon before now, as (Unix second, price)."""
    curve = _curve(0.4, 0.15, 0.03)
    moments = [datetime.combine(day, time(12, tzinfo=UTC)) for day in _days(now.date(), PRICE_DAYS)]
    return [(int(at.timestamp()), curve(at.date())) for at in moments if at <= now]


def _in(now: datetime, days: float) -> str:
    return (now + timedelta(days=days)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _kalshi(now: datetime) -> PracticeKalshi:
    """Events of every sort: choices, a list of names that is not whole, ranges that are, a ladder, a single market.

    And prices of one market more.
    """

    def event(
        series: str,
        title: str,
        category: str,
        days: int,
        volume: int,
        *markets: tuple[str, str, float],
        strikes: Strikes | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        ticker = f"{series}-NEXT"
        sample = SampleKalshiEvent(
            ticker=ticker,
            series=series,
            title=title,
            category=category,
            markets=tuple(
                SampleKalshiMarket(
                    ticker=f"{ticker}-{id}",
                    label=label,
                    # Nobody bids for what is all but impossible; such a field is left out.
                    bid=round(p - SPREAD / 2, 2) if p > SPREAD else None,
                    ask=round(p + SPREAD / 2, 2),
                    last=p,
                    strike=(strikes or {}).get(id, ("custom", None, None)),
                    volume=volume,
                    volume_24h=volume / 20,
                    open_interest=volume / 2,
                    closes=_in(now, days),
                    rules=f"Resolves to yes if it is {label}.",
                )
                for id, label, p in markets
            ),
            **more,
        )
        return kalshi_event_body(sample)

    rate = ("CUT", "Cut", 0.41), ("HOLD", "Hold", 0.55), ("HIKE", "Hike", 0.04)
    decides = "What does Norges Bank do with its rate?"
    change: Strikes = {"CUT": ("less", None, 0.0), "HOLD": ("between", 0.0, 0.0), "HIKE": ("greater", 0.0, None)}
    snow = ("5", "Above 5 cm", 0.7), ("10", "Above 10 cm", 0.45), ("20", "Above 20 cm", 0.2)
    # The next governor may be somebody else.
    names = ("BERG", "Ada Berg", 0.3), ("LIND", "Bo Lind", 0.12), ("DAHL", "Cy Dahl", 0.02)
    warm = ("T4", "3° or below", 0.2), ("B5", "4° to 5°", 0.45), ("T5", "6° or above", 0.35)
    bounds: Strikes = {"T4": ("less", None, 4.0), "B5": ("between", 4.0, 5.0), "T5": ("greater", 5.0, None)}
    launch, science = ("YES", "It launches", 0.35), "Science and Technology"
    weather = "Climate and Weather"
    events = [
        event("KXNORGES", decides, "Economics", 12, 4000, *rate, exclusive=True, strikes=change),
        event("KXSNOWOSLO", "How much snow falls in Oslo this week?", weather, 3, 900, *snow),
        event("KXGOVERNOR", "Who is the next governor of Norges Bank?", "Politics", 20, 700, *names, exclusive=True),
        event("KXTEMPOSLO", "How warm does it get in Oslo?", weather, 2, 600, *warm, exclusive=True, strikes=bounds),
        event("KXLAUNCH", "Does the rocket launch this month?", science, 30, 2500, launch),
    ]
    # With a spread of two cents.
    quotes = tuple((at, round(p - 0.01, 2), round(p + 0.01, 2)) for at, p in _prices(now))
    return PracticeKalshi({KALSHI_ID: SampleKalshiBook(quotes=quotes)}, catalogue=KalshiCatalogue(events))


def _polymarket(now: datetime) -> PracticePolymarket:
    """A race with two candidates, of whom one wins; and a market with a trade a day on either side."""
    candidates = tuple(
        SamplePolymarketMarket(
            condition="0x" + f"{n:x}" * 64,
            question=f"Does {name} win the race?",
            label=name,
            bid=p - 0.01,
            ask=p + 0.01,
            last=p,
            prices=(f"{p:g}", f"{1 - p:g}"),
            volume=8000,
            ends=_in(now, 20),
        )
        for n, (name, p) in enumerate((("Ada Berg", 0.52), ("Bo Lind", 0.47)), start=1)
    )
    race = SamplePolymarketEvent(
        id="701",
        title="Who wins the race?",
        markets=candidates,
        negative_risk=True,
        tags=("Politics",),
        figures={"volume": 16000, "volume24hr": 900, "liquidity": 3000, "openInterest": 5000},
    )
    priced = SamplePolymarketMarket(condition=POLYMARKET_ID, question="Is the rate cut?", ends=_in(now, 60))
    alone = SamplePolymarketEvent(id="702", title="Is the rate cut?", markets=(priced,), tags=("Economy",))
    yes = tuple(_prices(now))
    first, second = polymarket_tokens(POLYMARKET_ID)
    trades = {first: yes, second: tuple((at, round(1 - p, 3)) for at, p in yes)}
    bodies = [
        polymarket_event_body(race) | {"endDate": _in(now, 20)},
        polymarket_event_body(alone) | {"endDate": _in(now, 60)},
    ]
    return PracticePolymarket(PolymarketCatalogue(bodies), trades)


def _manifold(now: datetime) -> PracticeManifold:
    """A yes-or-no market, one with answers, and one with a bet a day."""
    closes = int((now + timedelta(days=9)).timestamp() * 1000)
    model = SampleManifoldMarket(
        id="madeUpModel1", question="A new AI model by then?", p=0.63, volume=2000, closes_ms=closes
    )
    league = SampleManifoldMarket(
        id="madeUpLeague",
        question="Who leads the league then?",
        answers=tuple(
            SampleManifoldAnswer(id=f"ans{n}abcdefgh", text=f"Team {n}", p=p) for n, p in enumerate((0.5, 0.3, 0.2))
        ),
        kind="MULTIPLE_CHOICE",
        volume=1500,
        closes_ms=closes,
    )
    bets = tuple(SampleManifoldBet(id=f"b{at}", at_ms=at * 1000, after=p) for at, p in _prices(now))
    catalogue = ManifoldCatalogue([manifold_market_body(model), manifold_market_body(league)])
    return PracticeManifold({MANIFOLD_ID: bets}, catalogue=catalogue)


def _metaculus(now: datetime, key: str) -> PracticeMetaculus:
    """A question of every kind, a group, a conditional pair, and one with a long history of community predictions."""
    times: dict[str, Any] = {"opens": _in(now, -30), "closes": _in(now, 25), "resolves": _in(now, 26)}

    def question(id: int, title: str, **fields: Any) -> SampleMetaculusQuestion:
        return SampleMetaculusQuestion(id=id, title=title, **times, **fields)

    year = SampleMetaculusScale(low=now.timestamp(), high=(now + 365 * DAY).timestamp(), open_upper=True)
    cm = SampleMetaculusScale(low=0, high=100, open_upper=True, unit="cm")
    goals = SampleMetaculusScale(low=-0.5, high=8.5, open_upper=True, cells=9, unit="goals")
    history = tuple(SampleCommunityPrediction(since=float(at), centers=(p,)) for at, p in _prices(now))
    alone = [
        question(9101, "Is the treaty signed this month?", centers=(0.28,)),
        question(
            9102,
            "Who wins the cup?",
            kind="multiple_choice",
            options=("Red", "Blue", "Green"),
            centers=(0.5, 0.3, 0.2),
            # As generated questions are shown.
            method="unweighted",
        ),
        question(9103, "How many cm of snow fall in Oslo this month?", kind="numeric", scale=cm),
        question(9104, "How many goals are scored in the final?", kind="discrete", scale=goals),
        question(9105, "When does the tunnel open?", kind="date", scale=year),
    ]
    places = ("Ada Pass", "Bo Pass")
    titles = [f"Which passes are closed by snow? ({place})" for place in places]
    labelled = list(zip(range(9111, 9113), titles, places, strict=True))
    passes = [question(id, title, label=place, centers=(0.4,)) for id, title, place in labelled]
    snow = [question(id + 10, title, label=place, kind="numeric", scale=cm) for id, title, place in labelled]
    pair = [question(id, "If the treaty is signed", centers=(p,)) for id, p in ((9131, 0.6), (9132, 0.2))]
    posts = [metaculus_post_body(one.id - 100, one.title, one) for one in alone]
    posts += [
        metaculus_post_body(9011, "Which passes are closed by snow?", *passes),
        metaculus_post_body(9021, "How many cm of snow fall on the pass?", *snow),
        metaculus_conditional_body(9031, "Is the treaty signed this month?", "Does trade grow this year?", *pair),
    ]
    rate = question(1, "Is the rate cut?", history=history, centers=(0.4,))
    posts.append(metaculus_post_body(int(METACULUS_ID), rate.title, rate))
    inbox = MetaculusInbox(now=lambda: datetime.now(UTC))
    return PracticeMetaculus(MetaculusCatalogue(posts), token=key, inbox=inbox)


def _prophet_arena(now: datetime, key: str) -> PracticeProphetArena:
    """A live event with a crowd, a week of two questions, and a data set of one event."""
    crowd = {"Red": 0.6, "Blue": 0.4}
    fields = {"close_at": _in(now, 6), "crowd": crowd, "category": "Sports"}
    event = prophet_arena_body("cup-final", "Who wins the cup?", {"Red": None, "Blue": None}, **fields)
    rules = {"Yes": "Resolves to yes if the bank says so.", "No": "Resolves to yes if the bank says so."}
    tiers = {"Above 5 cm": "More than 5 cm fall.", "Above 10 cm": "More than 10 cm fall."}
    release = weekly_release_body(
        f"{now - timedelta(days=(now.weekday() + 1) % 7):%Y-%m-%d}",
        _in(now, 5),
        weekly_event_body("weekly-rate", "KXRATE-W", "Is the rate cut?", rules, close_at=_in(now, 12)),
        weekly_event_body("weekly-snow", "KXSNOW-W", "How much snow falls?", tiers, close_at=_in(now, 12)),
    )
    window = {"round": 1, "closes_at": _in(now, -30), "taken_at": _in(now, -31), "crowd": crowd, "context": []}
    done = {"slug": "cup-2025", "title": "Who won the cup?", "category": "Sports", "criteria": "As reported."}
    done |= {"mutually_exclusive": True, "close_at": _in(now, -29), "windows": [window]}
    done["outcomes"] = [{"name": "Red", "resolution": "yes"}, {"name": "Blue", "resolution": "no"}]
    arena = PracticeProphetArena([event], key=key, release=release, datasets={"cups@1": [done]})
    arena.weekly_agent = "practice-agent"
    return arena


KEY = "practice"
"""Taken by every service that wants a key."""
PORTS = 15
"""Servers that are started: requests are paced by host and port, so every service has its own."""
STOP = "/practice/stop"
BENCHMARK, BUCKETS = "/forecastbench", "/buckets"
EXAMPLE_PAGE = SampleWebPage(
    url="https://example.com/",
    title="Example Domain",
    text="This domain is for use in examples.",
    versions=(PageVersion(at=instant("2026-01-02"), text="This domain is for use in documentation examples."),),
)
"""Everybody's page for trying out an archive; `foretell services check` asks for it."""


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How the services are started."""

    now: datetime
    """The day it is in the practice world."""
    port: int = 0
    """The first of `PORTS` ports in a row; 0 takes free ones."""
    latency: float = 0.0
    """Seconds before every answer."""
    script: Script = arena_script
    """What the models reply."""
    pages: tuple[SampleWebPage, ...] = ()
    """That search engines find beside those of the practice web; they keep their addresses, so a trace can be kept."""


@asynccontextmanager
async def all_services(
    options: ServiceOptions, stop: Callable[[], None] | None = None
) -> AsyncGenerator[dict[str, str]]:
    """Serves while in use; hands over the base address of each service by its name.

    Args:
        options: How they are started.
        stop: Called when somebody posts to `STOP` at the address of the models.
    """
    ports = count(options.port) if options.port else repeat(0)

    def stop_all(_request: ServerRequest) -> ServerResponse:
        if stop is None:
            return json_response({"error": "this world is stopped by whoever started it"}, 405)
        stop()
        return json_response({"stopped": True})

    async with AsyncExitStack() as stack:

        async def start(server: PracticeServer) -> str:
            server.port, server.latency = next(ports), options.latency
            return (await stack.enter_async_context(server)).url

        provider = PracticeModels(options.script)
        provider.route("POST", STOP, stop_all)
        models = await start(provider)
        # Pages are named, not numbered: the fence refuses hosts that are only a number.
        web = web_server(sample_world(options.now))
        serve_rounds(web, BENCHMARK, options.now)
        PracticeBucket(KEY).serve(web, BUCKETS)
        pages = (await start(web)).replace("127.0.0.1", "localhost")
        world = sample_world(options.now, pages, options.pages)
        search = await start(search_server(world, KEY))
        archive = replace(world, pages=[*world.pages, EXAMPLE_PAGE])
        others = {"wikipedia": wikipedia_server(world), "wayback": wayback_server(archive)}
        others |= {name: service.server() for name, service in data_services(options.now, KEY).items()}
        yield {
            "openai": f"{models}/v1",
            "openrouter": f"{models}/api/v1",
            "anthropic": models,
            "google": models,
            **{engine: f"{search}/{engine}" for engine in ENGINES},
            "pages": pages,
            "forecastbench": f"{pages}{BENCHMARK}",
            "buckets": f"{pages}{BUCKETS}",
            **{name: await start(server) for name, server in others.items()},
        }
