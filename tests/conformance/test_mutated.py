"""Recorded answers with one damaged record: it is skipped, named and counted, and the other records are read.

Fields are left out, null, of another type, or have an unknown value. Damage is drawn at random with a fixed seed, over
all recordings.
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
from fakes.market_reader import NOW, READERS, asked, client, logged_entries
from foretell.data.http import AsyncHttpClient, HttpResponse
from foretell.data.markets.listing import ListingFilter
from foretell.data.markets.market import MarketRef
from foretell.data.pages import read_captures
from foretell.data.payload import Payload
from foretell.data.search.web import brave_hits, exa_hits, tavily_hits
from foretell.data.series.fred import first_values, fred_values
from foretell.data.series.open_meteo import read_weather
from foretell.data.series.yahoo import read_sessions
from foretell.data.wikipedia import found_articles
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest
from foretell.questions.as_of import AsOf, instant

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"needs the recordings in {FOLDER}")
HOST = "https://market.example"
MOST_RECORDS = 6
DAMAGED, WHOLE = 25, 12
"""How often one record is damaged, and how often another part of an answer."""
SEED = 7
LATER = AsOf(at=instant("2026-11-14T00:00:00Z"))
STRANGE = ("strange-new-word", "", None, [], {}, [[]], {"a": 1}, True, -1, 7.5, 10**400, "0.5", "9999-12-31T00:00:00Z")
Keys = list[str]
Read = tuple[Keys, list[str]]
"""Names of the records that were read, and reasons for the others."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Records of one kind in one answer, and the adapter that reads it."""

    name: str
    records: Callable[[], list[Any]]
    read: Callable[[list[Any]], Read | Awaitable[Read]]
    nothing: tuple[str, ...] = ()
    """Fields without which a record has no price; such a record is skipped without a reason."""
    names: tuple[str, ...] = ()
    """Fields that identify a record; with another value, it is a valid record of another question."""

    def read_now(self, records: list[Any]) -> Read:
        result = self.read(records)
        return asyncio.run(_wait(result)) if not isinstance(result, tuple) else result


async def _wait(result: Awaitable[Read]) -> Read:
    return await result


def bodies(service: str) -> Iterator[Any]:
    """Yield every recorded answer that is not an error."""
    for name in names(service):
        exchange = recording(service, name)
        if int(exchange["status"] or 200) < 400:
            yield exchange["body"]


def lists(service: str, field: str, has: str) -> list[Any]:
    """The records of all lists of this name, or of answers that are lists, that have a field."""
    records: list[Any] = []
    for body in bodies(service):
        rows: Any = body if isinstance(body, list) else body.get(field) if isinstance(body, dict) else None
        records += [row for row in cast("list[Any]", rows or []) if isinstance(row, dict) and has in row]
    return records


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
    """Return a reader of all events that a platform lists, in every status."""

    async def read(records: list[Any]) -> Read:
        def handle(request: HttpRequest) -> Answer:
            if request.url.path.rstrip("/").endswith(path):
                return _json(answer(records))
            # On Kalshi, the category of an event is a field of its series.
            return _json({"series": {"category": "", "tags": []}})

        ids, reasons = list[str](), list[str]()
        async with AsyncHttpClient(limits=ONCE, transport=FunctionTransport(handle)) as http:
            source = READERS[platform][0](client(platform, http, HOST))
            for status in ("unopened", "open", "closed", "resolved"):
                wanted: Any = {"as_of": NOW, "status": status, "pages": 1, "limit": 1000}
                listed = source.events(ListingFilter(**wanted))
                ids += [event.question.id for event in await listed.all()]
                reasons += [
                    f"{entry.platform} {entry.id}: {entry.reason}" for entry in listed.ledger.skipped if entry.reason
                ]
                reasons += [reason for reason in listed.ledger.left_out if not reason.endswith(f", not {status}")]
        return ids, reasons

    return read


async def _settlements(records: list[Any]) -> Read:
    """Read the outcomes of closed markets of Polymarket in one request."""
    wanted = [row["conditionId"] for row in lists("polymarket", "markets", "conditionId") if row.get("closed")]
    questions = [asked(f"polymarket/{condition}", condition) for condition in dict.fromkeys(wanted)]

    def handle(request: HttpRequest) -> Answer:
        ends = request.url.path.endswith
        return _json({"markets": records}) if ends("/markets/keyset") else respond(404, json={})

    async with AsyncHttpClient(limits=ONCE, transport=FunctionTransport(handle)) as http:
        source = READERS["polymarket"][1](client("polymarket", http, HOST))
        settlements = await source.settlements(questions)
        return [settlement.question_id for settlement in settlements], [entry.reason for entry in source.skipped]


def history(platform: str, path: str, answer: Callable[[list[Any]], Any], id: str) -> Callable[[Any], Awaitable[Read]]:
    """The prices of one market."""

    async def read(records: list[Any]) -> Read:
        def handle(request: HttpRequest) -> Answer:
            if request.url.path.endswith("/historical/cutoff"):
                return _json({"market_settled_ts": "2020-01-01T00:00:00Z"})
            return _json(answer(records) if request.url.path.endswith(path) else {})

        async with AsyncHttpClient(limits=ONCE, transport=FunctionTransport(handle)) as http:
            source = READERS[platform][2](client(platform, http, HOST))
            with logged_entries() as skipped:
                points = await source.prices(MarketRef(platform=platform, id=id), LATER, 3000)
        return [point.at.isoformat() for point in points], [entry.reason for entry in skipped]

    return read


def _json(body: Any) -> Answer:
    return respond(200, content=json.dumps(body).encode())


def bets() -> list[Any]:
    rows = [row for row in lists("manifold", "bets", "probAfter") if row.get("contractId") and row.get("createdTime")]
    busiest = Counter(row["contractId"] for row in rows).most_common(1)[0][0]
    # At most one bet a day is shown: the last.
    days = {row["createdTime"] // 86_400_000: row for row in rows if row["contractId"] == busiest}
    return list(days.values())


def candles() -> list[Any]:
    rows = [row for market in lists("kalshi", "markets", "candlesticks") for row in market["candlesticks"]]
    return list({row["end_period_ts"]: row for row in rows}.values())


def candles_of_a(rows: list[Any]) -> Any:
    return {"markets": [{"market_ticker": "A", "candlesticks": rows}]}


def hits(read: Callable[[Payload], Any], wrap: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Read]:
    def read_hits(records: list[Any]) -> Read:
        results = read(Payload(url="", value=wrap(records)))
        return [hit.url for hit in results], list(results.notes)

    return read_hits


def web_results() -> list[Any]:
    results = [body.get("web") or {} for body in bodies("brave") if isinstance(body, dict)]
    return [row for web in results for row in web.get("results", [])]


def observations(records: list[Any]) -> Read:
    page = Payload(url="", value={"observations": records})
    values, notes = fred_values([page])
    first_values([page], known_by=date.max)
    return [day.isoformat() for day in values], list(notes)


def fred_rows() -> list[Any]:
    rows = lists("fred", "observations", "value")
    return list({row["date"]: row for row in rows if row["value"] != "." and "date" in row}.values())


def sessions(records: list[Any]) -> Read:
    """Read a chart, which has parallel lists; a record is one index of all lists."""
    times, closes = ([row.get(name) for row in records] for name in ("time", "close"))
    table = {**daily_chart(), "timestamp": times, "indicators": {"quote": [{"close": closes}]}}
    read, notes = read_sessions(Payload(url="", value=table))
    return [day.isoformat() for day, _, _ in read], list(notes)


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
    read = read_weather(Payload(url="", value={"utc_offset_seconds": 0, "daily": table}), "daily")
    return [time.isoformat() for time in read.times], list(read.notes)


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
    read, notes = found_articles(Payload(url="", value={"query": {"search": records}}))
    return [title for title, _, _ in read], list(notes)


def wiki_rows() -> list[Any]:
    searches = [(body.get("query") or {}).get("search") for body in bodies("wikipedia") if isinstance(body, dict)]
    return list({row["title"]: row for rows in searches for row in rows or []}.values())


def captures(records: list[Any]) -> Read:
    """Read the index, whose rows are lists, of which one is damaged."""
    lines = [[record.get(name) for name in CAPTURE] for record in records]
    read = read_captures(HttpResponse(status=200, body=json.dumps([list(CAPTURE), *lines]).encode()))
    # Only the newest capture is needed, so unreadable rows are not reported one by one.
    return [capture.url for capture in read], ["lines are left out"]


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


def damage(value: Any, chance: random.Random) -> str:
    """Change one field anywhere in a value, and return what was changed."""
    places: list[tuple[Any, Any, str]] = []

    def walk(inside: Any, path: str) -> None:
        keys: Any = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
        for key in keys:
            places.append((inside, key, f"{path}.{key}"))
            walk(inside[key], f"{path}.{key}")

    walk(value, "")
    # Prefer top-level fields, which adapters rely on; there are many more nested ones.
    shallow = [place for place in places if place[2].count(".") == 1]
    container, key, path = chance.choice(shallow if chance.random() < 0.6 else places)
    if isinstance(container, dict) and chance.random() < 0.25:
        del container[key]
        return f"{path} left out"
    container[key] = chance.choice(STRANGE)
    return f"{path} = {str(container[key])[:40]}"


@pytest.mark.parametrize("batch", BATCHES, ids=[batch.name for batch in BATCHES])
def test_one_damaged_record_does_not_affect_the_others(batch: Batch):
    recorded = batch.records()
    # Duplicate records are read once; records that are skipped anyway are not tested.
    distinct: dict[tuple[str, ...], Any] = {}
    for record in recorded[:: max(1, len(recorded) // (5 * MOST_RECORDS))]:
        with contextlib.suppress(*REFUSALS):
            if keys := batch.read_now([record])[0]:
                distinct[tuple(keys)] = record
        if len(distinct) == MOST_RECORDS:
            break
    records, alone = list(distinct.values()), [Counter(keys) for keys in distinct]
    assert len(records) >= 2
    chance = random.Random(f"{batch.name} {SEED}")
    for _ in range(DAMAGED):
        place = chance.randrange(len(records))
        damaged: list[Any] = copy.deepcopy(records)
        done = damage(damaged[place], chance)
        keys, reasons = batch.read_now(damaged)
        others = sum((alone[n] for n in range(len(records)) if n != place), Counter[str]())
        assert not others - Counter(keys), f"record {place}, {done}: lost {others - Counter(keys)}"
        field = done.split()[0].split(".")[1]
        silent = done.endswith(("left out", "= None", "= {}", "= {'a': 1}")) and field in batch.nothing
        fine = Counter(keys) - others or field in batch.names or silent
        assert reasons or fine, f"record {place}, {done}: it is missing without a reason"
        assert all(reasons), f"record {place}, {done}: an empty reason"


@pytest.mark.parametrize("batch", BATCHES, ids=[batch.name for batch in BATCHES])
def test_values_that_are_not_records_are_refused_with_a_reason(batch: Batch):
    chance = random.Random(f"{batch.name} {SEED} whole")
    records = batch.records()[:3]
    for _ in range(WHOLE):
        rows: Any = copy.deepcopy(records)
        rows[chance.randrange(len(rows))] = chance.choice(STRANGE) if chance.random() < 0.5 else {}
        if chance.random() < 0.3:
            rows = [chance.choice(STRANGE) for _ in rows]
        if batch.name in PARALLEL and not all(isinstance(row, dict) for row in rows):
            continue  # Such records are composed here from parallel lists.
        with contextlib.suppress(*REFUSALS):
            batch.read_now(rows)
