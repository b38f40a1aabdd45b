"""Question sets: files, data sets and markets by name, with the same options for all commands."""

import asyncio
import csv
import json
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import closing
from datetime import date, timedelta
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from fakes.answers import respond
from fakes.published_sets import PUBLISHED_ROWS
from foretell import plugins
from foretell.arena.spec import arena_from_json
from foretell.data.datasets.forecastbench_tables import QUESTION_COLUMNS
from foretell.data.datasets.question_set import QuestionSet, SetFilter
from foretell.data.http import AsyncHttpClient, NotFound
from foretell.data.markets.listing import EventListing, ListedEvent, ListingFilter, ListingReport
from foretell.data.markets.market import Market, NamedEvents, events_named
from foretell.data.service import ServiceConfig
from foretell.operations.backtest import backtest
from foretell.operations.data_show import show_questions
from foretell.operations.requests.data import BacktestRequest, DataShowRequest
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest
from foretell.plugins import names
from foretell.practice.series import PracticeDbnomics, SampleDbnomicsSeries
from foretell.questions.as_of import AsOf, instant
from foretell.questions.backtest import Backtest
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.report.document import write_outputs
from foretell.runs.question_sets import open_benchmark
from foretell.runs.runner import execute_run, prepare_run
from foretell.runs.services import open_markets
from foretell.runs.set_names import SetName, find_set, set_names
from foretell.runs.settings import load_settings
from foretell.runs.spec import spec_from_mapping
from foretell.runs.store import RunStore

EXAMPLE = Path(__file__).parents[1] / "example_plugin"
NOW = AsOf(at=instant("2026-11-15T10:00:00Z"), mode="live")
ROWS = [
    {"id": "a", "text": "Will A?", "due": "2026-01-05", "by": "2026-01-10", "category": "Weather"},
    {"id": "b", "text": "Will B?", "due": "2026-01-05", "closes": "2026-03-01", "category": "Sport"},
    {"id": "c", "text": "Will C?", "due": "2026-01-05", "category": "sport"},
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    plugins.register("markets", "example_market", import_module("foretell_example.market").MARKET)
    plugins.register("datasets", "example_set", import_module("foretell_example.dataset").example_set)
    yield tmp_path
    plugins.unregister("markets", "example_market")
    plugins.unregister("datasets", "example_set")
    for name in [name for name in sys.modules if name.partition(".")[0] == "foretell_example"]:
        del sys.modules[name]


def show(name: str, limit: int | None = None, **chosen: Any) -> Any:
    settings = {f"questions.{key}": value for key, value in chosen.items()}
    return asyncio.run(show_questions(DataShowRequest.read({"dataset": name, "limit": limit, "set": settings})))


def shown(name: str, **options: Any) -> list[str]:
    return [question.id for question in show(name, **options).questions]


@pytest.mark.parametrize(
    ("name", "kind", "plugin", "argument"),
    [
        ("demo", "datasets", "demo", ""),
        ("forecastbench", "datasets", "forecastbench", ""),
        ("forecastbench:2026-03-15", "datasets", "forecastbench", "2026-03-15"),
        ("mine.jsonl", "datasets", "questions", "mine.jsonl"),
        ("questions:mine.jsonl", "datasets", "questions", "mine.jsonl"),
        ("prophet_arena:mine.jsonl", "datasets", "prophet_arena", "mine.jsonl"),
        ("prophet_arena:gone.csv", "datasets", "prophet_arena", "gone.csv"),
        ("prophet_arena:dataset/weekly@3", "datasets", "prophet_arena", "dataset/weekly@3"),
        ("prophet_arena:live", "markets", "prophet_arena", "live"),
        ("prophet_arena:weekly/2026-11-15", "markets", "prophet_arena", "weekly/2026-11-15"),
        ("prophet-arena", "markets", "prophet_arena", ""),
        ("kalshi", "markets", "kalshi", ""),
        ("kalshi:KXFED", "markets", "kalshi", "KXFED"),
        ("metaculus:minibench", "markets", "metaculus", "minibench"),
        ("https://kalshi.com/markets/kxfed/kxfed-26dec", "markets", "kalshi", "KXFED-26DEC"),
        ("https://www.metaculus.com/questions/12345/will-it/", "markets", "metaculus", "12345"),
        ("https://polymarket.com/event/who-wins", "markets", "polymarket", "slug:who-wins"),
    ],
)
def test_name_refers_to_one_question_set(name: str, kind: Any, plugin: str, argument: str):
    assert find_set(name) == SetName(kind=kind, name=plugin, argument=argument)


def test_file_may_have_the_name_of_a_market(folder: Path):
    (folder / "kalshi").write_text("{}", encoding="utf-8")
    assert find_set("kalshi").kind == "datasets"
    assert find_set("kalshi:X").kind == "markets"


def test_unknown_name_lists_known_ones():
    for name in ("nothing", "gone.csv", "kalsi:KXFED", "https://example.org/x"):
        with pytest.raises(InputError) as raises:
            find_set(name)
        assert "kalshi" in str(raises.value)
    with pytest.raises(InputError, match="did you mean kalshi:KXFED"):
        find_set("kalsi:KXFED")
    for name_form in ("FILE", "forecastbench", "prophet_arena:FILE", "prophet_arena:NAME", "metaculus:NAME"):
        assert name_form in set_names()


def test_options_choose_among_questions_of_any_set():
    assert shown("mine.jsonl") == ["a", "b", "c"]
    assert shown("mine.jsonl", limit=1) == ["a"]
    assert shown("mine.jsonl", category="SPORT") == ["b", "c"]
    assert shown("mine.jsonl", closes_before="2026-02-01") == ["a"]
    assert shown("mine.jsonl", closes_after="2026-02-01") == ["b"]
    assert shown("demo", limit=2, rounds=[]) == shown("demo")[:2]
    for option in ({"status": "open"}, {"minimum_volume": 5}):
        with pytest.raises(InputError, match="for markets"):
            shown("mine.jsonl", **option)
    with pytest.raises(InputError, match="later than closes_before"):
        shown("mine.jsonl", closes_after="2026-02-01", closes_before="2026-01-01")
    with pytest.raises(InputError, match="no such question"):
        shown("mine.jsonl", category="Opera")
    spec = spec_from_mapping(
        {"questions": {"dataset": "mine.jsonl", "category": "sport", "closes_after": "2026-02-01"}}
    )
    benchmark = open_benchmark(spec.questions.dataset, wanted=spec.questions)
    assert [question.id for question in benchmark.questions.questions] == ["b"]
    assert spec.id != spec_from_mapping({"questions": "mine.jsonl"}).id


def test_question_sets_of_a_backtest_can_be_shown_and_saved(folder: Path):
    result = backtest(BacktestRequest.read({"dataset": "demo", "forecasters": ("always",), "limit": 3}))
    assert len(result.backtest.questions) == 3
    saved = show("demo", limit=3)
    assert saved.outcomes > 0
    write_outputs(saved, [folder / "saved.jsonl"])
    assert open_benchmark("saved.jsonl").questions.questions == result.backtest.questions
    # A data set of a plug-in. An outcome without a date applies to every due date.
    assert shown("example_set") == [question.id for question in open_benchmark("example_set").questions.questions]


QUOTE = {"yes_bid": 58, "yes_ask": 59, "no_ask": 42, "last_price": 59, "volume": 8522}
QUOTE |= {"rules_primary": "If Detroit wins, then Yes.", "open_time": "2025-06-26T12:00:00Z"}
ARENA_EVENT = {
    "event_ticker": "GAME",
    "title": "A vs B",
    "category": "Sports",
    "markets": repr(["A", "B"]),
    "close_time": "2025-06-26 19:42:36.700504+00:00",
    "market_outcome": repr({"A": 1, "B": 0}),
    "sources": "[]",
    "market_info": repr({"A": QUOTE, "B": QUOTE}),
    "snapshot_time": "2025-06-26 17:01:39.572199+00:00",
}
CLAIM = {"id": "x", "claim": "It holds.", "label": True, "published": "2025-02-01", "category": "a;b", "split": "test"}
TASK = {"id": "t", "question": "Long?", "options": {"long": 1.3, "short": 0.7}, "cutoff": "2024-06-01"}
MARKET = {"source": "manifold", "question_id": "m1", "question": "Will it?", "source_type": "market"}
MARKET |= {"market_close": "2026-01-01T00:00:00+00:00", "subtype": "market", "freeze_value": "0.3"}
MARKET |= {"freeze_date": "2025-10-16", "price_on_due_date": "0.4"}
RATE = {"source": "fred", "question_id": "DAAA", "question": "Up by {resolution_date}?", "source_type": "dataset"}
RATE |= {"subtype": "all", "freeze_value": "5.13", "freeze_date": "2025-10-16"}
ANSWERS = [
    {"source": "manifold", "question_id": "m1", "resolution_date": "2025-12-01", "outcome": "1", "resolved": "true"},
    {"source": "fred", "question_id": "DAAA", "resolution_date": "2025-11-25", "outcome": "0", "resolved": "true"},
]


def table(columns: Sequence[str], *rows: dict[str, Any]) -> str:
    text = StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows({"forecast_due_date": "2025-10-26", **row} if "question_id" in row else row for row in rows)
    return text.getvalue()


OFFLINE: dict[str, dict[str, str]] = {
    "demo": {},
    "mine.jsonl": {},
    "mine.csv": {"mine.csv": "id,text,due,options,price\nq,Who?,2026-01-05,a;b,\nr,Will it?,2026-01-05,,0.4\n"},
    "mine.yaml": {"mine.yaml": json.dumps([{"text": "How?", "due": "2026-01-05", "dates": ["2026-02-01"]}])},
    "mine.json": {"mine.json": json.dumps({"questions": [{"text": "Why?", "due": "2026-01-05", "by": "2026-02-01"}]})},
    "questions:mine.jsonl": {},
    "c.jsonl": {"c.jsonl": json.dumps(CLAIM)},
    "options:t.jsonl": {"t.jsonl": json.dumps(TASK)},
    "prophet_arena:events.csv": {"events.csv": table(list(ARENA_EVENT), ARENA_EVENT)},
    "built:set": {
        "set/questions.jsonl": json.dumps(ROWS[0]),
        "set/outcomes.csv": "question,due,target,outcome\na,2026-01-05,yes,1\n",
    },
    "tables:rounds": {
        "rounds/questions.csv": table(QUESTION_COLUMNS, MARKET, RATE),
        "rounds/resolutions.csv": table(["forecast_due_date", *ANSWERS[0]], *ANSWERS),
    },
    **{
        f"{name}:rows.jsonl": {"rows.jsonl": "".join(f"{json.dumps(row(place))}\n" for place in range(10))}
        for name, row in PUBLISHED_ROWS.items()
    },
}
"""Question sets that need no network → their files."""


def test_all_offline_question_sets_are_covered():
    tried = {find_set(name).name for name in OFFLINE if ":" in name or name == "demo"} | {"claims"}
    # An arena is in the store; tests/runs/test_contexts.py reads one.
    assert tried == {*names("datasets")} - {"arena", "forecastbench", "example_set"}


@pytest.mark.parametrize("name", OFFLINE)
def test_saved_set_is_read_back_unchanged(name: str, folder: Path):
    for file, content in OFFLINE[name].items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(content, encoding="utf-8")
    saved = show(name)
    assert write_outputs(saved, [folder / "saved.jsonl"]) == [folder / "saved.jsonl"]
    assert show("saved.jsonl").questions == saved.questions
    assert prepare_run(spec_from_mapping({"questions": "saved.jsonl", "forecaster": "always"})).questions
    result = backtest(BacktestRequest.read({"dataset": "saved.jsonl", "forecasters": ("always",), "folder": None}))
    assert result.backtest.questions == open_benchmark(name).questions.questions
    # A folder also has the known outcomes.
    write_outputs(saved, [folder / "whole"])
    whole = show("whole")
    assert whole.questions == saved.questions
    assert whole.question_set.outcomes() == saved.question_set.outcomes()


def test_topics_are_the_categories_of_a_saved_set(folder: Path):
    (folder / "mine.jsonl").write_text('{"text": "Will the ceasefire in Gaza hold?", "due": "2026-01-01"}\n')
    shown = asyncio.run(show_questions(DataShowRequest.read({"dataset": "mine.jsonl", "topics": True})))
    write_outputs(shown, [folder / "saved.jsonl"])
    assert show("saved.jsonl").questions[0].category == "Geopolitics & Conflict"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"questions.catgory": "x"}, r"--set questions.catgory: .*did you mean questions.category\?"),
        ({"category": "x"}, r"--set category: .*did you mean questions.category\?"),
        ({"questions.minimum_volum": "5"}, r"did you mean questions.minimum_volume\?"),
        (
            {"models.agent": "openai:x"},
            r"--set models.agent: does not select questions \(known: questions.rounds",
        ),
        ({"questions.dataset": "demo"}, "--set questions.dataset: does not select questions"),
        ({"questions.status": "opened"}, "questions.status"),
        ({"questions.closes_after": "soon"}, "questions"),
    ],
)
def test_unknown_setting_of_a_set_suggests_a_similar_one(settings: dict[str, str], problem: str):
    with pytest.raises(InputError, match=problem):
        asyncio.run(show_questions(DataShowRequest.read({"dataset": "mine.jsonl", "set": settings})))


def test_limit_cannot_be_given_twice():
    request = DataShowRequest.read({"dataset": "mine.jsonl", "limit": 1, "set": {"questions.limit": "2"}})
    with pytest.raises(InputError, match=r"questions\.limit is the same as --limit"):
        request.wanted()


def test_outcomes_without_a_date_stay_with_their_questions():
    question = Question(id="a", source="own", text="?", due=NOW.at, targets=(Target(id="yes"),))
    resolutions = tuple(Resolution(question_id=id, target_id="yes", outcome=1) for id in ("a", "b"))
    question_set = QuestionSet(name="x", questions=(question,), resolutions=resolutions)
    assert [resolution.question_id for resolution in question_set.only([question]).resolutions] == ["a"]


def test_listing_rejects_backtests():
    for name in ("kalshi", "metaculus:minibench", "prophet_arena:live", "example_market"):
        with pytest.raises(InputError, match="known today, which a backtest must not see"):
            backtest(BacktestRequest.read({"dataset": name}))
    with pytest.raises(InputError, match="has no rounds"):
        shown("kalshi", rounds=["2026-01-01"])


def test_market_of_a_plugin_is_a_question_set(folder: Path):
    assert "example_market:NAME" in set_names()
    assert shown("example_market") == ["example_market/m1"]
    assert shown("example_market:m1") == ["example_market/m1"]
    # Questions are stored as first seen, and the run is identified by the name of the set.
    first = open_benchmark("example_market:m1", live=True)
    assert first.grows
    assert open_benchmark("example_market:m1", live=True).questions.questions == first.questions.questions
    arena: dict[str, Any] = {
        "name": "x",
        "platforms": ["example_market", "example_market:m1"],
        "entries": {"a": "always"},
    }
    assert arena_from_json(arena).platforms == ("example_market", "example_market:m1")
    with pytest.raises(InputError, match="there is no 'nowhere:x'; there are"):
        arena_from_json({**arena, "platforms": ["nowhere:x"]})
    with pytest.raises(InputError, match="twice"):
        arena_from_json({**arena, "platforms": ["example_market", "example_market"]})

    async def listed() -> list[str]:
        async with AsyncHttpClient() as http:
            markets = open_markets(load_settings(), http, arena["platforms"])
            assert set(markets.events) == {"example_market", "example_market:m1"}
            assert set(markets.settlements) == {"example_market"}
            events = await markets.events["example_market:m1"].events(ListingFilter(as_of=NOW)).all()
            return [event.question.id for event in events]

    assert asyncio.run(listed()) == ["example_market/m1"]


class Source:
    """A platform that lists some events."""

    platform = "made"

    def __init__(self, *ids: str, status: Any = "open", fails: Exception | None = None) -> None:
        self.known = {id: self._event(id, status) for id in ids}
        self.fails, self.sought = fails, list[str]()

    def _event(self, id: str, status: Any) -> ListedEvent:
        question = Question(id=f"made/{id}", source="made", text="?", due=NOW.at, targets=(Target(id="yes"),))
        return ListedEvent(question=question, status=status, recurrence=id)

    def events(self, wanted: ListingFilter) -> EventListing:
        async def walk() -> AsyncGenerator[ListedEvent]:
            if self.fails is not None:
                raise self.fails
            for event in self.known.values():
                yield event

        return EventListing(walk(), ListingReport())

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        self.sought.append(id)
        if id not in self.known:
            raise NotFound("not there", url="", status=404)
        return self.known[id]


def listed(
    whole: Source, part: Source | None, ids: tuple[str, ...] = ("x", "slug:x")
) -> tuple[list[str], ListingReport]:
    async def read() -> tuple[list[str], ListingReport]:
        listing = NamedEvents("made", "x", whole, part, ids).events(ListingFilter(as_of=NOW))
        return [event.question.id for event in await listing.all()], listing.ledger

    return asyncio.run(read())


def test_name_may_be_a_part_or_an_event():
    whole = Source("x", "y")
    assert listed(whole, Source("p", "q"))[0] == ["made/p", "made/q"]
    assert whole.sought == []
    assert listed(whole, Source())[0] == ["made/x"]
    assert listed(Source("slug:x"), None)[0] == ["made/slug:x"]
    # A service may reject unknown names instead of listing nothing.
    refusing = Source(fails=NotFound("no such tag", url="", status=404))
    assert listed(whole, refusing)[0] == ["made/x"]
    assert listed(Source("y"), refusing)[0] == []
    with pytest.raises(NotFound, match="made:x: nothing is listed under this name"):
        listed(Source("y"), None)
    ids, ledger = listed(Source("x", status="resolved"), None)
    assert (ids, list(ledger.left_out)) == ([], ["resolved, not open"])


@pytest.mark.parametrize(
    ("platform", "name", "parameters"),
    [
        ("kalshi", "kxfed", {"series_ticker": "KXFED"}),
        ("polymarket", "fed", {"tag_slug": "fed"}),
        ("manifold", "fed", {"topicSlug": "fed"}),
        ("metaculus", "minibench", {"tournaments": "minibench"}),
    ],
)
def test_markets_list_only_the_named_part(platform: str, name: str, parameters: dict[str, str]):
    sent: list[HttpRequest] = []
    empty = {
        "kalshi": {"events": [], "cursor": ""},
        "polymarket": {"events": []},
        "metaculus": {"results": [], "next": None},
    }

    def answer(request: HttpRequest) -> Answer:
        sent.append(request)
        single = request.url.path.rstrip("/").rsplit("/", 1)[-1] == name
        if single:
            return respond(404, json={})
        return respond(200, json=empty.get(platform, []))

    async def read() -> list[ListedEvent]:
        async with AsyncHttpClient(transport=FunctionTransport(answer)) as http:
            market: Market = plugins.load("markets", platform)
            client = market.client(ServiceConfig(http=http, key="k", address="http://127.0.0.1:9"))
            return await events_named(platform, market, client, name).events(ListingFilter(as_of=NOW)).all()

    assert asyncio.run(read()) == []
    assert parameters.items() <= dict(sent[0].url.query).items()


def test_invalid_filters_are_rejected():
    all_wrong: list[dict[str, Any]] = [{"limit": 0}, {"again": 0}, {"minimum_volume": -1}, {"closes_after": "soon"}]
    for wrong in all_wrong:
        with pytest.raises(ValueError):
            SetFilter(**wrong)
    assert SetFilter(limit=3, category="x").changed() == {"limit": 3, "category": "x"}
    with pytest.raises(InputError, match="again"):
        spec_from_mapping({"questions": {"dataset": "demo", "again": -1}})


def test_series_that_own_questions_name_are_read_without_a_model(folder: Path, monkeypatch: pytest.MonkeyPatch):
    rising = tuple((date(2025, 1, 1) + timedelta(days=n), float(n)) for n in range(400))
    rows = [
        {"id": "web", "series": "dbnomics/a/b/c", "above": 5},
        {"id": "csv", "series": "csv/mine", "below": 5},
        {"id": "key", "series": "fred/DGS10", "above": 5},
        {"id": "gone", "series": "dbnomics/a/b/gone", "above": 5},
        {"id": "nobody", "series": "elsewhere/x", "above": 5},
    ]
    questions = [{"text": "Will it?", "due": "2026-01-15", "dates": ["2026-01-25"], **row} for row in rows]
    (folder / "series.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8")
    lines = ["date,value", *(f"{day},{value}" for day, value in rising)]
    (folder / "home" / "series").mkdir(parents=True)
    (folder / "home" / "series" / "mine.csv").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.delenv("FRED_API_KEY", raising=False)

    async def both() -> tuple[Backtest, dict[str, Any]]:
        async with PracticeDbnomics({"a/b/c": SampleDbnomicsSeries(values=rising)}).server() as server:
            monkeypatch.setenv("FORETELL_DBNOMICS_URL", server.url)
            request = BacktestRequest.read({"dataset": "series.jsonl"})
            tables = (await asyncio.to_thread(backtest, request)).backtest
            return tables, await run_spec({"questions": "series.jsonl", "forecaster": "auto"})

    tables, run = asyncio.run(both())
    assert {forecast.question_id: round(forecast.p["2026-01-25"]) for forecast in tables.forecasts} == {
        "web": 1,
        "csv": 0,
    }
    why = {failure.question_id: failure.error for failure in tables.failures}
    assert "FRED_API_KEY" in why["key"]
    assert "has no series 'a/b/gone'" in why["gone"]
    assert "no source supplies elsewhere" in why["nobody"]
    assert run == {forecast.question_id: forecast.p for forecast in tables.forecasts}, "a run answers like a backtest"
    # A published round uses only its own series, which are the same on every machine.
    assert not open_benchmark("demo").own


async def run_spec(spec: dict[str, Any]) -> dict[str, Any]:
    settings, prepared = load_settings(), prepare_run(spec_from_mapping(spec))
    await execute_run(prepared, settings)
    with closing(RunStore(settings.store)) as store:
        return {
            answer.question_id: answer.p for answer in store.answers(prepared.spec.id) if isinstance(answer, Forecast)
        }
