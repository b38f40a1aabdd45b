"""Recorded answers with one record spoilt: it is skipped, named and counted, its neighbours are read all the same.

Fields are left out, are null, are of another type, or say what nobody has said before. What is spoilt where is drawn
from a fixed seed, over whatever recordings are in the folder.
"""

import asyncio
import contextlib
import copy
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

import pytest

from conformance.reading import ONCE, REFUSALS
from conformance.recordings import FOLDER, names, recording
from fakes.answers import respond
from fakes.market_reader import NOW, READERS, asked, client
from foretell.data import AsyncHttpClient, HttpResponse, Payload, read_captures
from foretell.data.markets import ListingFilter, MarketRef, SkippedEntry
from foretell.data.search import brave_hits, exa_hits, tavily_hits
from foretell.data.series.fred import first_values, fred_values
from foretell.data.series.open_meteo import read_weather
from foretell.data.series.yahoo import read_sessions
from foretell.data.wikipedia import found_articles
from foretell.outgoing import Answer, FunctionTransport, HttpRequest
from foretell.questions import AsOf, instant

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"needs the recordings in {FOLDER}")
HOST = "https://market.example"
MOST_RECORDS = 6
SPOILT, WHOLE = 25, 12
"""How often one record is spoilt, and how often anything else of an answer."""
SEED = 7
LATER = AsOf(at=instant("2026-11-14T00:00:00Z"))
STRANGE = ("strange-new-word", "", None, [], {}, [[]], {"a": 1}, True, -1, 7.5, 10**400, "0.5", "9999-12-31T00:00:00Z")
Keys = list[str]
Read = tuple[Keys, list[str]]
"""What was read, by the names of records; and what was said about the rest."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Records of one kind that come in one answer, and the adapter that reads it."""

    name: str
    records: Callable[[], list[Any]]
    read: Callable[[list[Any]], Read | Awaitable[Read]]
    nothing: tuple[str, ...] = ()
    """Fields that tell of no price where they are null or left out: nobody misses such a record."""
    names: tuple[str, ...] = ()
    """Fields that say what a record is about: with another name it is good, and another's."""

    def read_now(self, records: list[Any]) -> Read:
        found = self.read(records)
        return asyncio.run(_wait(found)) if not isinstance(found, tuple) else found


async def _wait(found: Awaitable[Read]) -> Read:
    return await found


def bodies(service: str) -> Iterator[Any]:
    """Every good answer that was recorded."""
    for name in names(service):
        exchange = recording(service, name)
        if int(exchange["status"] or 200) < 400:
            yield exchange["body"]


def lists(service: str, field: str, has: str) -> list[Any]:
    """The records of all lists of this name, or of answers that are lists, that have a field."""
    found: list[Any] = []
    for body in bodies(service):
        rows: Any = body if isinstance(body, list) else body.get(field) if isinstance(body, dict) else None
        found += [row for row in cast("list[Any]", rows or []) if isinstance(row, dict) and has in row]
    return found


def kalshi_events() -> list[Any]:
    alone = [
        {**body["event"], "markets": body["event"].get("markets") or body.get("markets") or []}
        for body in bodies("kalshi")
        if isinstance(body, dict) and isinstance(body.get("event"), dict)
    ]
    return [row for row in [*lists("kalshi", "events", "event_ticker"), *alone] if row.get("markets")]


def metaculus_posts() -> list[Any]:
    alone = [body for body in bodies("metaculus") if isinstance(body, dict) and "results" not in body]
    kinds = ("question", "group_of_questions", "conditional")
    return [post for post in [*alone, *lists("metaculus", "results", "id")] if any(post.get(kind) for kind in kinds)]


def arena_events() -> list[Any]:
    alone = [body for body in bodies("prophet_arena") if isinstance(body, dict) and "slug" in body]
    return [*alone, *lists("prophet_arena", "data", "slug")]


def listing(platform: str, answer: Callable[[list[Any]], Any], path: str) -> Callable[[list[Any]], Awaitable[Read]]:
    """Everything that a platform lists, whatever its status."""

    async def read(records: list[Any]) -> Read:
        def handle(request: HttpRequest) -> Answer:
            if request.url.path.rstrip("/").endswith(path):
                return _json(answer(records))
            # Kalshi tells the category of an event with its series.
            return _json({"series": {"category": "", "tags": []}})

        found, told = list[str](), list[str]()
        async with AsyncHttpClient(limits=ONCE, transport=FunctionTransport(handle)) as http:
            source = READERS[platform][0](client(platform, http, HOST))
            for status in ("unopened", "open", "closed", "resolved"):
                wanted: Any = {"as_of": NOW, "status": status, "pages": 1, "limit": 1000}
                listed = source.events(ListingFilter(**wanted))
                found += [event.question.id for event in await listed.all()]
                told += [f"{one.platform} {one.id}: {one.reason}" for one in listed.ledger.skipped if one.reason]
                told += [reason for reason in listed.ledger.left_out if not reason.endswith(f", not {status}")]
        return found, told

    return read


async def _settlements(records: list[Any]) -> Read:
    """How closed markets of Polymarket came out, asked for all at once."""
    wanted = [row["conditionId"] for row in lists("polymarket", "markets", "conditionId") if row.get("closed")]
    questions = [asked(f"polymarket/{condition}", condition) for condition in dict.fromkeys(wanted)]

    def handle(request: HttpRequest) -> Answer:
        ends = request.url.path.endswith
        return _json({"markets": records}) if ends("/markets/keyset") else respond(404, json={})

    async with AsyncHttpClient(limits=ONCE, transport=FunctionTransport(handle)) as http:
        source = READERS["polymarket"][1](client("polymarket", http, HOST))
        found = await source.settlements(questions)
        return [one.question_id for one in found], [one.reason for one in source.skipped]


def history(platform: str, path: str, answer: Callable[[list[Any]], Any], id: str) -> Callable[[Any], Awaitable[Read]]:
    """The prices of one market."""

    async def read(records: list[Any]) -> Read:
        def handle(request: HttpRequest) -> Answer:
            if request.url.path.endswith("/historical/cutoff"):
                return _json({"market_settled_ts": "2020-01-01T00:00:00Z"})
            return _json(answer(records) if request.url.path.endswith(path) else {})

        told: list[str] = []

        def noted(one: SkippedEntry) -> None:
            told.append(one.reason)

        async with AsyncHttpClient(limits=ONCE, transport=FunctionTransport(handle)) as http:
            source = READERS[platform][2](client(platform, http, HOST), tell=noted)
            points = await source.prices(MarketRef(platform=platform, id=id), LATER, 3000)
        return [point.at.isoformat() for point in points], told

    return read


def _json(body: Any) -> Answer:
    return respond(200, content=json.dumps(body).encode())


def bets() -> list[Any]:
    rows = [row for row in lists("manifold", "bets", "probAfter") if row.get("contractId") and row.get("createdTime")]
    busiest = Counter(row["contractId"] for row in rows).most_common(1)[0][0]
    # One a day at most is shown: of several the last.
    days = {row["createdTime"] // 86_400_000: row for row in rows if row["contractId"] == busiest}
    return list(days.values())


def candles() -> list[Any]:
    rows = [row for one in lists("kalshi", "markets", "candlesticks") for row in one["candlesticks"]]
    return list({row["end_period_ts"]: row for row in rows}.values())


def candles_of_a(rows: list[Any]) -> Any:
    return {"markets": [{"market_ticker": "A", "candlesticks": rows}]}


def hits(read: Callable[[Payload], Any], wrap: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Read]:
    def found(records: list[Any]) -> Read:
        results = read(Payload(url="", value=wrap(records)))
        return [hit.url for hit in results], list(results.notes)

    return found


def web_results() -> list[Any]:
    found = [body.get("web") or {} for body in bodies("brave") if isinstance(body, dict)]
    return [row for web in found for row in web.get("results", [])]


def observations(records: list[Any]) -> Read:
    page = Payload(url="", value={"observations": records})
    values, notes = fred_values([page])
    first_values([page], known_by=date.max)
    return [day.isoformat() for day in values], list(notes)


def fred_rows() -> list[Any]:
    rows = lists("fred", "observations", "value")
    return list({row["date"]: row for row in rows if row["value"] != "." and "date" in row}.values())


def sessions(records: list[Any]) -> Read:
    """A chart is parallel lists: a record is what stands at one place of all."""
    times, closes = ([row.get(name) for row in records] for name in ("time", "close"))
    table = {**daily_chart(), "timestamp": times, "indicators": {"quote": [{"close": closes}]}}
    found, notes = read_sessions(Payload(url="", value=table))
    return [day.isoformat() for day, _, _ in found], list(notes)


def daily_chart() -> Any:
    """The first recorded chart in steps of a day."""
    for body in bodies("yahoo"):
        for chart in ((body.get("chart") or {}) if isinstance(body, dict) else {}).get("result") or []:
            if chart["meta"].get("dataGranularity") == "1d" and len(chart.get("timestamp") or []) > MOST_RECORDS:
                return chart
    raise AssertionError("no chart is recorded")


def chart_rows() -> list[Any]:
    chart = daily_chart()
    rows = zip(chart["timestamp"], chart["indicators"]["quote"][0]["close"], strict=True)
    return [{"time": time, "close": close} for time, close in rows if close is not None]


def weather(records: list[Any]) -> Read:
    table = {"time": [row.get("time") for row in records], "temperature_2m_max": [row.get("value") for row in records]}
    found = read_weather(Payload(url="", value={"utc_offset_seconds": 0, "daily": table}), "daily")
    return [time.isoformat() for time in found.times], list(found.notes)


def weather_rows() -> list[Any]:
    for body in bodies("open_meteo"):
        places: list[Any] = body if isinstance(body, list) else [body]
        for place in places:
            daily: Any = place.get("daily") or {}
            column = next((name for name in daily if name != "time"), None)
            if column is not None and len(daily["time"]) > 2:
                return [{"time": t, "value": v} for t, v in zip(daily["time"], daily[column], strict=True)]
    return []


def articles(records: list[Any]) -> Read:
    found, notes = found_articles(Payload(url="", value={"query": {"search": records}}))
    return [title for title, _, _ in found], list(notes)


def wiki_rows() -> list[Any]:
    found = [(body.get("query") or {}).get("search") for body in bodies("wikipedia") if isinstance(body, dict)]
    return list({row["title"]: row for rows in found for row in rows or []}.values())


def captures(records: list[Any]) -> Read:
    """The index as a table: its lines are lists, of which one is spoilt."""
    lines = [[record.get(name) for name in CAPTURE] for record in records]
    found = read_captures(HttpResponse(status=200, body=json.dumps([list(CAPTURE), *lines]).encode()))
    # Whoever asks wants the newest capture: lines that cannot be read are not told one by one.
    return [one.url for one in found], ["lines are left out"]


CAPTURE = ("timestamp", "original", "statuscode")
BATCHES = [
    Batch(
        name="kalshi events",
        records=kalshi_events,
        read=listing("kalshi", lambda rows: {"events": rows, "cursor": ""}, "/events"),
    ),
    Batch(
        name="kalshi candles",
        records=candles,
        read=history("kalshi", "/markets/candlesticks", candles_of_a, "A"),
        nothing=("yes_bid", "yes_ask", "price"),
        names=("end_period_ts",),
    ),
    Batch(
        name="polymarket events",
        records=lambda: [row for row in lists("polymarket", "events", "title") if row.get("markets")],
        read=listing("polymarket", lambda rows: {"events": rows}, "/events/keyset"),
    ),
    Batch(
        name="polymarket results",
        records=lambda: [row for row in lists("polymarket", "markets", "conditionId") if row.get("closed")],
        read=_settlements,
        names=("conditionId",),
    ),
    Batch(
        name="manifold bets",
        records=bets,
        read=history("manifold", "/bets", lambda rows: rows, "rIR6mWqaO9xKLifr6cLL"),
        names=("outcome", "answerId", "createdTime"),
    ),
    Batch(
        name="metaculus posts",
        records=metaculus_posts,
        read=listing("metaculus", lambda rows: {"results": rows, "next": None}, "/posts"),
    ),
    Batch(
        name="prophet_arena events",
        records=arena_events,
        read=listing("prophet_arena", lambda rows: {"data": rows, "next_cursor": None}, "/events"),
    ),
    Batch(
        name="brave results",
        records=web_results,
        read=hits(brave_hits, lambda rows: {"type": "search", "web": {"results": rows}}),
    ),
    Batch(
        name="exa results",
        records=lambda: [
            {**row, "url": f"{row['url']}#{n}"} for n in range(2) for row in lists("exa", "results", "url")
        ],
        read=hits(exa_hits, lambda rows: {"results": rows}),
    ),
    Batch(
        name="tavily results",
        records=lambda: lists("tavily", "results", "url"),
        read=hits(tavily_hits, lambda rows: {"results": rows}),
    ),
    Batch(name="fred observations", records=fred_rows, read=observations),
    Batch(name="yahoo sessions", records=chart_rows, read=sessions, nothing=("close",)),
    Batch(name="open_meteo days", records=weather_rows, read=weather),
    Batch(name="wikipedia articles", records=wiki_rows, read=articles),
    Batch(
        name="wayback captures",
        records=lambda: [
            {"timestamp": f"2024010{n}000000", "original": f"http://a.org/{n}", "statuscode": "200"}
            for n in range(1, 6)
        ],
        read=captures,
    ),
]


PARALLEL = ("yahoo sessions", "open_meteo days", "wayback captures")


def spoil(value: Any, chance: random.Random) -> str:
    """Change one place anywhere in a value, and say what was done."""
    places: list[tuple[Any, Any, str]] = []

    def walk(inside: Any, path: str) -> None:
        keys: Any = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
        for key in keys:
            places.append((inside, key, f"{path}.{key}"))
            walk(inside[key], f"{path}.{key}")

    walk(value, "")
    # Fields of the record itself are what adapters rely on; of what lies deeper there is much more.
    shallow = [place for place in places if place[2].count(".") == 1]
    container, key, path = chance.choice(shallow if chance.random() < 0.6 else places)
    if isinstance(container, dict) and chance.random() < 0.25:
        del container[key]
        return f"{path} left out"
    container[key] = chance.choice(STRANGE)
    return f"{path} = {str(container[key])[:40]}"


@pytest.mark.parametrize("batch", BATCHES, ids=[batch.name for batch in BATCHES])
def test_one_spoilt_record_costs_only_itself(batch: Batch):
    every = batch.records()
    # What is recorded twice is read once; what is left out by itself can tell nothing.
    distinct: dict[tuple[str, ...], Any] = {}
    for record in every[:: max(1, len(every) // (5 * MOST_RECORDS))]:
        with contextlib.suppress(*REFUSALS):
            if keys := batch.read_now([record])[0]:
                distinct[tuple(keys)] = record
        if len(distinct) == MOST_RECORDS:
            break
    records, alone = list(distinct.values()), [Counter(keys) for keys in distinct]
    assert len(records) >= 2
    chance = random.Random(f"{batch.name} {SEED}")
    for _ in range(SPOILT):
        place = chance.randrange(len(records))
        spoilt: list[Any] = copy.deepcopy(records)
        done = spoil(spoilt[place], chance)
        keys, told = batch.read_now(spoilt)
        others = sum((alone[n] for n in range(len(records)) if n != place), Counter[str]())
        assert not others - Counter(keys), f"record {place}, {done}: lost {others - Counter(keys)}"
        field = done.split()[0].split(".")[1]
        silent = done.endswith(("left out", "= None", "= {}", "= {'a': 1}")) and field in batch.nothing
        fine = Counter(keys) - others or field in batch.names or silent
        assert told or fine, f"record {place}, {done}: it is gone and nobody says so"
        assert all(told), f"record {place}, {done}: a reason without words"


@pytest.mark.parametrize("batch", BATCHES, ids=[batch.name for batch in BATCHES])
def test_whatever_is_no_record_is_refused_with_a_reason(batch: Batch):
    chance = random.Random(f"{batch.name} {SEED} whole")
    records = batch.records()[:3]
    for _ in range(WHOLE):
        rows: Any = copy.deepcopy(records)
        rows[chance.randrange(len(rows))] = chance.choice(STRANGE) if chance.random() < 0.5 else {}
        if chance.random() < 0.3:
            rows = [chance.choice(STRANGE) for _ in rows]
        if batch.name in PARALLEL and not all(isinstance(row, dict) for row in rows):
            continue  # Such records are put together here, from what stands at one place of several lists.
        with contextlib.suppress(*REFUSALS):
            batch.read_now(rows)
