"""Endpoints return only data known at the cutoff."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.tools.doubles import CUTOFF, Engine, Judge, Numbers, Prices, at, filtered
from tests.tools.doubles import series as known

from foretell.data.markets.market import PricePoint, PricesUnavailable
from foretell.data.search.engine import SearchHit
from foretell.data.series.series import SeriesInMemory, SeriesUnavailable
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.question import SeriesRef
from foretell.questions.trace import LeakBlocked, TraceEvent
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.notebook.endpoints import (
    Endpoint,
    LocalFile,
    check_parameters,
    days_ahead_endpoint,
    describe_endpoint,
    filtered_tool_endpoint,
    journaled_endpoint,
    local_files_endpoint,
    market_prices_endpoint,
    series_endpoint,
)
from foretell.tools.tool import LeakRefused, ToolFailed
from foretell.tools.web import WebSearch

ROWS = {"2025-10-24": 1.0, "2025-10-25": 2.0, "2025-10-26": 3.0, "2025-10-27": 4.0}
LIVE = AsOf.day("2025-10-26", mode="live")


def call(endpoint: Endpoint, params: Mapping[str, Any], as_of: AsOf = CUTOFF) -> Any:
    return asyncio.run(endpoint.call(check_parameters(endpoint, params), as_of))


def series(**options: Any) -> Endpoint:
    defaults: dict[str, Any] = {"source": Numbers(rows=ROWS), "providers": {"fred": "ids such as DGS10"}}
    return series_endpoint(**{**defaults, **options})


FRED = {"provider": "fred", "id": "DGS10"}


def test_a_series_ends_at_the_cutoff() -> None:
    events: list[TraceEvent] = []
    answer = call(series(emit=events.append), FRED)
    assert answer["rows"] == [{"date": day, "value": value} for day, value in list(ROWS.items())[:3]]
    assert [event.reason for event in events if isinstance(event, LeakBlocked)] == [
        "1 points of fred/DGS10 after the cutoff"
    ]


def test_days_can_be_chosen_up_to_the_cutoff() -> None:
    answer = call(series(), {**FRED, "start": "2025-10-25", "end": "2030-01-01"})
    assert [row["date"] for row in answer["rows"]] == ["2025-10-25", "2025-10-26"]
    assert call(series(), {**FRED, "end": "2025-10-24"})["rows"] == [{"date": "2025-10-24", "value": 1.0}]


def test_revised_series_is_refused_in_a_backtest() -> None:
    corrected = Numbers(rows=ROWS, revised=True)
    with pytest.raises(LeakRefused, match="corrected later"):
        call(series(source=corrected), FRED)
    without_provenance = SeriesInMemory(series={"DGS10": known(ROWS)})
    with pytest.raises(LeakRefused, match="corrected later"):
        call(series(source=without_provenance), FRED)
    assert call(series(source=corrected), FRED, LIVE)["rows"]
    assert call(series(source=corrected, allow_revised=frozenset({"fred"})), FRED)["rows"]


def test_missing_series_and_providers_fail() -> None:
    with pytest.raises(ToolFailed, match="no provider 'x'; providers: fred"):
        call(series(), {"provider": "x", "id": "y"})
    with pytest.raises(ToolFailed, match="Nothing of the series was known"):
        call(series(), FRED, AsOf.day("2020-01-01"))
    with pytest.raises(ToolFailed) as failed:
        call(series(source=SeriesInMemory(series={})), FRED)
    assert isinstance(failed.value.__cause__, SeriesUnavailable)
    assert "ids such as DGS10" in describe_endpoint(series())


def prices(points: Any) -> Endpoint:
    return market_prices_endpoint(sources={"polymarket": Prices(points=points)})


MARKET = {"platform": "polymarket", "id": "0x1"}


def test_prices_end_at_the_cutoff() -> None:
    points = [PricePoint(at=at("2025-10-28"), p=0.9), PricePoint(at=at("2025-10-20"), p=0.4)]
    answer = call(prices(points), {**MARKET, "days": 10_000})
    assert answer == {**MARKET, "rows": [{"at": "2025-10-20T09:00:00+00:00", "p": 0.4}]}
    with pytest.raises(ToolFailed, match="no price was known"):
        call(prices(points[:1]), MARKET)
    with pytest.raises(ToolFailed, match="no platform 'x'"):
        call(prices(points), {"platform": "x", "id": "1"})
    with pytest.raises(ToolFailed) as failed:
        call(prices(PricesUnavailable("closed on Tuesday")), MARKET)
    assert failed.value.__cause__ is not None


HITS = [
    SearchHit(url="https://a.example/1", title="Old news", snippet="before", published=at("2025-10-20")),
    SearchHit(url="https://a.example/2", title="New news", snippet="after", published=at("2025-11-20")),
    SearchHit(url="https://a.example/3", title="Undated", snippet="who knows", published=None, dating="none"),
    SearchHit(url="https://a.example/4", title="Outcome", snippet="it passed", published=at("2025-10-21")),
]


def searching(**options: Any) -> tuple[FilteredTools, list[TraceEvent]]:
    judge = Judge(lambda title, text, cutoff: "Outcome" not in title)
    return filtered(WebSearch(engine=Engine(hits=HITS)), model=judge, **options)


def test_search_endpoint_returns_only_admitted_results() -> None:
    toolbox, events = searching()
    endpoint = filtered_tool_endpoint(toolbox)
    assert endpoint.path == "/search/web"
    assert "query (text, needed)" in describe_endpoint(endpoint)
    answer = call(endpoint, {"query": "bill"})
    assert [row["title"] for row in answer["rows"]] == ["Old news"]
    assert answer["rows"][0]["published"].startswith("2025-10-20")
    assert {event.layer for event in events if isinstance(event, LeakBlocked)} == {"date", "content"}


def test_search_endpoint_with_a_later_cutoff_is_closed() -> None:
    toolbox, _ = searching(as_of=AsOf.day("2026-01-01"))
    with pytest.raises(ToolFailed, match="later cutoff"):
        call(filtered_tool_endpoint(toolbox), {"query": "bill"})


def test_failed_search_returns_the_message_of_the_leakage_filter() -> None:
    toolbox, _ = filtered(WebSearch(engine=Engine(hits=[], filters_dates=False)))
    with pytest.raises(ToolFailed, match="Searching is not possible"):
        call(filtered_tool_endpoint(toolbox), {"query": "bill"})


@pytest.fixture
def tables(tmp_path: Path) -> Endpoint:
    (tmp_path / "sub").mkdir()
    (tmp_path / "polls.csv").write_text(
        "day,share,note\n2025-10-25,41.5,ok\n2025-10-27,44,late\nsoon,1,odd\n2025-10-26T10:00:00Z,7,\n",
        encoding="utf-8",
    )
    (tmp_path / "sub" / "codes.csv").write_text("code,name\n007,Bond\n12,Twelve\n", encoding="utf-8")
    return local_files_endpoint(
        tmp_path,
        polls=LocalFile(path=Path("polls.csv"), meaning="polls by day", date_column="day"),
        codes=LocalFile(path=Path("sub/codes.csv"), meaning="codes", known_since=date(2020, 1, 1)),
        undated=LocalFile(path=Path("sub/codes.csv"), meaning="codes without a date"),
    )


def test_rows_of_a_table_end_at_the_cutoff(tables: Endpoint) -> None:
    answer = call(tables, {"name": "polls"})
    assert answer["columns"] == ["day", "share", "note"]
    assert answer["rows"] == [
        {"day": "2025-10-25", "share": 41.5, "note": "ok"},
        {"day": "2025-10-26T10:00:00Z", "share": 7, "note": None},
    ]
    assert answer["more"] is False
    assert len(call(tables, {"name": "polls"}, AsOf.day("2026-01-01"))["rows"]) == 3


def test_texts_in_a_table_are_filtered_like_pages(tmp_path: Path) -> None:
    """A row with an earlier date may contain a note written later, and a column may be that of a future day."""
    lines = [
        "day,note,deadline,2025-10-20,2025-12-01",
        "2025-10-01,quiet,2026-01-31,1,9",
        '2025-10-02,"Updated 7 December 2025: the bank cut its rate",2026-01-31,1,9',
        "2025-10-03,The bank cut its rate on 6 December 2025.,2026-01-31,1,9",
        "2025-10-04,Q4 2025 results: profit rose,2026-01-31,1,9",
        "2025-10-05,see https://a.example/2025/12/07/cut,2026-01-31,1,9",
        "2025-10-06,The vote is due on 6 December 2025.,2026-01-31,1,9",
        "2025-10-07,Die Bank senkte am 6. Dezember 2025 den Zins.,2026-01-31,1,9",
        "2025-10-08,updated 2025-10-07,2026-01-31,1,9",
        '2025-10-09,"Updated on the seventh of December, two thousand and twenty-five",2026-01-31,1,9',
    ]
    (tmp_path / "notes.csv").write_text("\n".join(lines), encoding="utf-8")
    endpoint = local_files_endpoint(
        tmp_path, notes=LocalFile(path=Path("notes.csv"), meaning="notes", date_column="day")
    )
    answer = call(endpoint, {"name": "notes"})
    assert answer["columns"] == ["day", "note", "deadline", "2025-10-20"]
    assert [row["day"][-2:] for row in answer["rows"]] == ["01", "06", "08"]
    assert answer["rows"][0]["deadline"] == "2026-01-31"
    assert len(call(endpoint, {"name": "notes"}, LIVE)["rows"]) == 9
    assert len(call(endpoint, {"name": "notes", "offset": 1}, CUTOFF)["rows"]) == 2


def test_undated_tables_need_a_publication_day_in_a_backtest(tables: Endpoint) -> None:
    assert call(tables, {"name": "codes"})["rows"][0] == {"code": "007", "name": "Bond"}
    assert call(tables, {"name": "undated"}, LIVE)["rows"]
    with pytest.raises(ToolFailed, match="no table 'undated'; tables: polls, codes"):
        call(tables, {"name": "undated"})
    with pytest.raises(ToolFailed, match="no table 'codes'"):
        call(tables, {"name": "codes"}, AsOf.day("2019-01-01"))


def test_rows_can_be_read_in_parts(tables: Endpoint) -> None:
    first = call(tables, {"name": "codes", "limit": 1})
    assert (first["rows"][0]["name"], first["more"]) == ("Bond", True)
    second = call(tables, {"name": "codes", "limit": 1, "offset": 1})
    assert (second["rows"][0]["name"], second["more"]) == ("Twelve", False)
    assert call(tables, {"name": "codes", "limit": 0, "offset": -5})["rows"] == []


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "polls.csv", "sub/codes.csv", "polls\0", "..", "codes/../polls"]
)
def test_names_never_become_paths(tables: Endpoint, name: str) -> None:
    with pytest.raises(ToolFailed, match="there is no table"):
        call(tables, {"name": name})


def test_files_must_be_inside_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    for path in ("../secret.csv", str(tmp_path / "secret.csv"), "link.csv"):
        with pytest.raises(InputError, match="outside of"):
            local_files_endpoint(folder, secret=LocalFile(path=Path(path), meaning=""))
    with pytest.raises(InputError, match="no such file"):
        local_files_endpoint(folder, gone=LocalFile(path=Path("gone.csv"), meaning=""))


class Journal:
    """Stores the first result of each key."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        if key not in self.kept:
            self.kept[key] = await produce()
        return self.kept[key]


def test_endpoint_answers_and_failures_are_replayed() -> None:
    journal = Journal()
    journaled = journaled_endpoint(series(), journal=journal)
    empty = journaled_endpoint(series(source=Numbers(rows={})), journal=journal)
    first = call(journaled, FRED)
    assert call(empty, FRED) == first
    assert (journaled.path, journaled.parameters, journaled.documentation) == (
        empty.path,
        empty.parameters,
        empty.documentation,
    )
    refused = journaled_endpoint(series(source=Numbers(rows=ROWS, revised=True)), journal=journal, scope="b")
    broken = journaled_endpoint(series(source=SeriesInMemory(series={})), journal=journal, scope="c")
    for _ in range(2):
        with pytest.raises(LeakRefused, match="corrected later"):
            call(refused, FRED)
        with pytest.raises(ToolFailed, match="could not be read") as failed:
            call(broken, FRED)
        assert failed.value.__cause__ is not None
    assert len(journal.kept) == 3


def test_days_ahead_endpoint_returns_what_was_known() -> None:
    class Foreseeing:
        async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Any:
            raise SeriesUnavailable("no numbers")

        async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
            return (f"warm after {as_of.at.date()}",)

    endpoint = days_ahead_endpoint(Foreseeing(), {"open_meteo": "weather"})
    params = {"provider": "open_meteo", "id": "x"}
    answer = asyncio.run(endpoint.call(params, AsOf.day("2026-05-01")))
    assert answer == {**params, "lines": ["warm after 2026-05-01"]}
    with pytest.raises(ToolFailed, match="no provider"):
        asyncio.run(endpoint.call({"provider": "y", "id": "x"}, AsOf.day("2026-05-01")))
