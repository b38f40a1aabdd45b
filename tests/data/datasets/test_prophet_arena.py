"""Prophet Arena's events, from its published CSV and from its SDK's JSONL."""

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import pytest

from fakes.markets import FakeProphetArena
from foretell.data.datasets.dataset import DatasetRequest
from foretell.data.datasets.prophet_arena import (
    dataset_name,
    download_events,
    literal,
    prophet_arena,
    read_arena_file,
    read_events_csv,
    read_events_jsonl,
    unpack_events,
)
from foretell.data.http import AsyncHttpClient
from foretell.data.markets.prophet_arena import ProphetArenaClient
from foretell.practice.server import ServerRequest
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.runs.question_sets import open_benchmark
from foretell.scoring.arena_table import arena_table_from_prophet_arena

QUOTE: dict[str, Any] = {
    "yes_bid": 58,
    "yes_ask": 59,
    "no_ask": 42,
    "last_price": 59,
    "volume": 8522,
    "open_time": "2025-06-26T12:00:00Z",
    "close_time": "2027-06-26T17:10:00Z",
    "expected_expiration_time": "2025-06-26T20:10:00Z",
    "rules_primary": "If Detroit wins, then Yes.",
    "rules_secondary": "Postponed games wait.",
}
EVENT = {
    "event_ticker": "GAME",
    "title": "A's vs Detroit",
    "category": "Sports",
    "markets": repr(["Detroit", "A's"]),
    "close_time": "2025-06-26 19:42:36.700504+00:00",
    "market_outcome": repr({"Detroit": 1, "A's": 0}),
    "sources": "[{'source_id': UUID('040df6a5-e4e9'), 'ranking': 1, 'title': 'T', 'url': 'u', 'summary': \"It's\"}]",
    "market_info": repr({"Detroit": QUOTE, "A's": QUOTE | {"last_price": 0, "volume": 0}}),
    "snapshot_time": "2025-06-26 17:01:39.572199+00:00",
}


@pytest.fixture
def events(tmp_path: Path):
    def writer(*rows: dict[str, Any]) -> Path:
        path = tmp_path / "events.csv"
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, list(EVENT))
            table.writeheader()
            table.writerows(rows)
        return path

    return writer


def test_an_event_becomes_a_question_with_outcomes(events) -> None:
    question_set = read_events_csv(events(EVENT))
    (question,) = question_set.questions
    assert (question.id, question.category, question.exclusivity) == ("prophet_arena/GAME", "Sports", "independent")
    assert question.due == instant("2025-06-26T17:01:39.572199Z")
    assert question.as_of.at == question.due, "the cutoff is the time of the snapshot"
    first, second = question.targets
    assert (first.id, second.id) == ("Detroit", "A's")
    quote = first.snapshot
    assert quote is not None
    assert (quote.yes_bid, quote.yes_ask, quote.no_ask, quote.last_price) == (0.58, 0.59, 0.42, 0.59)
    assert quote.volume == 8522, "one-dollar contracts, not cents"
    assert second.snapshot is not None
    assert second.snapshot.last_price is None, "0 means never traded"
    assert "Detroit: If Detroit wins, then Yes." in question.criteria
    assert question.criteria.count("Postponed") == 1
    assert question_set.outcomes() == {(question.id, question.due, "Detroit"): 1, (question.id, question.due, "A's"): 0}
    assert question_set.notes == ()


def test_the_actual_close_time_is_not_in_the_question(events) -> None:
    question_set = read_events_csv(events(EVENT))
    assert question_set.questions[0].closes_at == instant("2025-06-26T20:10:00Z")
    assert question_set.resolutions[0].resolved_at == instant("2025-06-26T19:42:36.700504Z")


def test_an_expected_end_in_the_past_is_replaced_by_the_listed_close(events) -> None:
    passed = QUOTE | {"expected_expiration_time": "2025-06-26T13:00:00Z"}
    question_set = read_events_csv(events(EVENT | {"market_info": repr({"Detroit": passed, "A's": passed})}))
    assert question_set.questions[0].closes_at == instant("2027-06-26T17:10:00Z")


def test_articles_are_stored_separately_from_the_question(events) -> None:
    question_set = read_events_csv(events(EVENT))
    (article,) = question_set.contexts[question_set.questions[0].id, question_set.questions[0].due]
    assert (article.title, article.summary, article.rank) == ("T", "It's", 1)


def test_markets_and_outcomes_that_do_not_match_are_counted(events) -> None:
    row = EVENT | {"market_outcome": repr({"Detroit": 1, "Draw": 0}), "market_info": repr({})}
    question_set = read_events_csv(events(row))
    assert [t.id for t in question_set.questions[0].targets] == ["Detroit"]
    assert set(question_set.notes) == {
        "1 listed markets without an outcome dropped",
        "1 outcomes without a listed market dropped",
        "1 events whose listed markets and outcomes differ",
        "1 markets without a quote kept",
    }
    assert question_set.questions[0].targets[0].snapshot is None


def test_an_event_without_a_resolved_market_is_dropped(events) -> None:
    question_set = read_events_csv(events(EVENT | {"market_outcome": "{}"}))
    assert question_set.questions == ()
    assert "1 events without a resolved market dropped" in question_set.notes


def test_events_are_exclusive_only_if_stated(events) -> None:
    assert read_events_csv(events(EVENT), exclusivity={"GAME": "at most one"}).questions[0].exclusivity == "at most one"
    exclusivity = {"GAME": "exactly one"}
    assert read_events_csv(events(EVENT), exclusivity=exclusivity).questions[0].exclusivity == "exactly one"
    more = EVENT | {"markets": repr(["Detroit", "A's", "A draw"])}
    assert read_events_csv(events(more), exclusivity=exclusivity).questions[0].exclusivity == "at most one"


def test_newer_prices_in_dollars_are_read(events) -> None:
    quote = QUOTE | {"yes_ask_dollars": "0.6050"}
    question_set = read_events_csv(events(EVENT | {"market_info": repr({"Detroit": quote, "A's": quote})}))
    assert question_set.questions[0].targets[0].snapshot.yes_ask == 0.605


def test_lists_in_place_of_dollar_prices_are_counted_and_cents_are_used(events) -> None:
    spoilt = {f"{name}_dollars": ["0.10", "0.20"] for name in ("yes_bid", "yes_ask", "no_ask", "last_price")}
    info = {"Detroit": QUOTE | spoilt, "A's": QUOTE | {"yes_ask": [61], "volume": {}}}
    question_set = read_events_csv(events(EVENT | {"event_ticker": "FINE"}, EVENT | {"market_info": repr(info)}))
    good, read = (question.targets for question in question_set.questions)
    assert read[0].snapshot == good[0].snapshot
    assert (read[1].snapshot.yes_ask, read[1].snapshot.volume, read[1].snapshot.yes_bid is None) == (None, None, False)
    assert "6 quotes that are lists or objects passed over in event GAME" in question_set.notes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"market_info": "print('x')"}, "column market_info: event GAME: not a plain Python literal"),
        ({"markets": "{}"}, "column markets: event GAME: expected a list, found a dict"),
        ({"market_outcome": repr({"Detroit": 2, "A's": 0})}, "column market_outcome: event GAME: 2 is neither 0 nor 1"),
        ({"snapshot_time": ""}, "column snapshot_time: event GAME: is missing"),
        ({"snapshot_time": "2025-06-26 17:01:39"}, "has no time zone"),
        (
            {"market_info": repr({"Detroit": QUOTE | {"yes_ask": 140}})},
            "event GAME, 'Detroit': yes_ask is 1.4; expected",
        ),
        ({"sources": "['x']"}, "column sources: event GAME: expected an object"),
        ({"event_ticker": ""}, "column event_ticker: is missing"),
    ],
)
def test_a_malformed_event_raises_with_row_and_column(events, changes: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_events_csv(events(EVENT | {"event_ticker": "FINE"}, EVENT | changes))
    assert "row 2" in str(caught.value)
    assert message in str(caught.value)


def test_one_malformed_event_of_several_is_left_out_named_and_counted(events) -> None:
    good = [EVENT | {"event_ticker": ticker} for ticker in ("FINE", "GOOD")]
    question_set = read_events_csv(events(*good, EVENT | {"market_outcome": repr({"Detroit": 2, "A's": 0})}))
    assert [question.id for question in question_set.questions] == ["prophet_arena/FINE", "prophet_arena/GOOD"]
    (note,) = (note for note in question_set.notes if "cannot be read" in note)
    assert note.startswith("1 event left out")
    assert "event GAME: 2 is neither 0 nor 1" in note


def test_the_same_event_at_the_same_time_raises(events) -> None:
    later = EVENT | {"snapshot_time": "2025-06-26 18:00:00+00:00"}
    assert len(read_events_csv(events(EVENT, later)).questions) == 2
    with pytest.raises(InputError, match="row 2, column event_ticker: event GAME: occurs twice for the same time"):
        read_events_csv(events(EVENT, EVENT))


@pytest.mark.parametrize(
    "text", ["open('x')", "a", "1 + x", "[x for x in y]", "UUID(open('x'))", "'unclosed", "f'{1}'"]
)
def test_literals_never_run_code(text: str) -> None:
    with pytest.raises(ValueError, match="not a plain Python literal"):
        literal(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': UUID('x-1'), 'b': [Decimal(\"1.5\"), None, True]}", {"a": "x-1", "b": ["1.5", None, True]}),
        (r"""["it's UUID('x')", 'say \'UUID("y")\'']""", ["it's UUID('x')", "say 'UUID(\"y\")'"]),
        (" 3 ", 3),
    ],
)
def test_plain_literals_are_evaluated(text: str, value: object) -> None:
    assert literal(text) == value


@pytest.mark.shared_data
def test_the_published_subset_is_read(shared_data: Path) -> None:
    question_set = read_events_csv(shared_data / "prophet_arena/subset_100_half.csv")
    assert (len(question_set.questions), len(question_set.resolutions)) == (42, 433)
    assert set(question_set.notes) == {
        "56 markets without a quote kept",
        "6 outcomes without a listed market dropped",
        "2 events whose listed markets and outcomes differ",
    }
    assert sorted(map(len, question_set.contexts.values())) == [4, 8] + [10] * 36 + [11] * 4
    quotes = [t.snapshot for q in question_set.questions for t in q.targets if t.snapshot]
    assert len(quotes) == 377
    assert all(round(q.yes_bid + q.no_ask, 6) == 1 for q in quotes), (
        "both in dollars, so a bid and the other ask are one"
    )
    assert all(q.closes_at is not None and q.closes_at > q.due for q in question_set.questions)


WINDOWED: dict[str, Any] = {
    "slug": "next-mayor",
    "title": "Who will be mayor?",
    "category": "Politics",
    "criteria": "As certified.",
    "mutually_exclusive": True,
    "close_at": "2026-11-04T00:00:00Z",
    "outcomes": [{"name": "Ann", "resolution": "yes"}, {"name": "Bob", "resolution": "no"}],
    "windows": [
        {
            "round": 1,
            "closes_at": "2026-10-02T00:00:00Z",
            "taken_at": "2026-10-01T00:00:00Z",
            "crowd": {"Ann": 0.6, "Bob": 0.4},
            "context": [{"title": "T", "url": "u", "summary": "s"}],
        },
        {"round": 2, "taken_at": "2026-10-08T12:00:00Z", "crowd": {"Ann": 0.7}, "context": []},
    ],
}


def lines(*events: dict[str, Any]) -> str:
    return "\n".join(json.dumps(event) for event in events) + "\n"


def test_every_window_is_a_separate_asking(write) -> None:
    question_set = read_events_jsonl(write("events.jsonl", lines(WINDOWED)))
    first, second = question_set.questions
    assert (
        {q.id for q in question_set.questions}
        == {"prophet_arena/next-mayor"}
        == {q.cluster for q in question_set.questions}
    )
    assert (first.due, second.due) == (instant("2026-10-01"), instant("2026-10-08T12:00:00Z"))
    assert first.exclusivity == "at most one"
    assert first.closes_at == instant("2026-11-04")
    assert [t.snapshot.last_price if t.snapshot else None for t in second.targets] == [0.7, None]
    assert len(question_set.outcomes()) == 4
    assert question_set.outcomes()[first.id, first.due, "Ann"] == 1
    assert [a.title for a in question_set.contexts[first.id, first.due]] == ["T"]


@pytest.mark.parametrize("resolution", ["void", None, ""])
def test_void_outcomes_have_no_outcome(write, resolution) -> None:
    event = WINDOWED | {"outcomes": [{"name": "Ann", "resolution": resolution}, {"name": "Bob", "resolution": False}]}
    question_set = read_events_jsonl(write("events.jsonl", lines(event)))
    assert {key[2] for key in question_set.outcomes()} == {"Bob"}
    assert question_set.notes == ("1 outcomes void or unresolved",)


def test_an_event_without_windows_is_counted(write) -> None:
    question_set = read_events_jsonl(write("events.jsonl", lines(WINDOWED | {"windows": []})))
    assert (question_set.questions, question_set.notes) == ((), ("1 events without a window dropped",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcomes": []}, "column outcomes: event next-mayor: is missing"),
        (
            {"outcomes": [{"name": "Ann", "resolution": "perhaps"}]},
            "resolution 'perhaps' of 'Ann' is not yes, no or void",
        ),
        ({"outcomes": ["Ann"]}, "expected an object"),
        ({"windows": [{}]}, "a window has no taken_at"),
        (
            {"windows": [WINDOWED["windows"][0] | {"crowd": {"Ann": 6}}]},
            "last_price is 6.0; expected a number from 0 to 1",
        ),
        ({"windows": [WINDOWED["windows"][0] | {"taken_at": "yesterday"}]}, "column taken_at: event next-mayor"),
        ({"title": "Again"}, "column windows: event next-mayor: 2026-10-01T00:00:00+00:00 is asked twice"),
        ({"title": None}, "column title: event next-mayor: is missing"),
        ({"mutually_exclusive": "perhaps"}, "column mutually_exclusive"),
    ],
)
def test_a_malformed_line_raises_with_row_and_column(write, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_events_jsonl(write("events.jsonl", lines(WINDOWED, WINDOWED | {"slug": "next-mayor"} | changes)))
    assert "row 2" in str(caught.value)
    assert message in str(caught.value)


def test_both_kinds_of_files_are_recognised_by_their_first_line(events, write) -> None:
    for path, text in (
        (events(EVENT), "A's vs Detroit"),
        (write("events.jsonl", lines(WINDOWED)), "Who will be mayor?"),
    ):
        arena_file = read_arena_file(path)
        assert arena_file is not None
        assert {question.text for question in arena_file.questions} == {text}
        assert open_benchmark(str(path)).questions.questions == arena_file.questions
        assert arena_table_from_prophet_arena(path).markets


@pytest.mark.parametrize("text", ["text,id\nWill it?,1\n", "", "not,an\narena", "[1]", '{"slug": "x"}'])
def test_other_files_are_not_recognised(write, text: str) -> None:
    for name in ("file.csv", "file.jsonl", "file.yaml"):
        path = write(name, text)
        assert read_arena_file(path) is None
        with pytest.raises(InputError, match="not a file of Prophet Arena"):
            arena_table_from_prophet_arena(path)


def test_a_data_set_is_downloaded_checked_and_opened_by_name(tmp_path: Path) -> None:
    arena = FakeProphetArena([], key="k", datasets={"cups@1": [WINDOWED], "cups@2": [WINDOWED]})

    async def pull(name: str) -> Path:
        async with arena.server() as server, AsyncHttpClient() as http:
            client = ProphetArenaClient(http=http, key="k", host=f"{server.url}/api/v1")
            return await download_events(client, name, tmp_path)

    assert asyncio.run(pull("cups@1")).name == "cups@1.jsonl"
    assert asyncio.run(pull("cups")).name == "cups@2.jsonl"
    for name in ("cups", "cups@1"):
        request = DatasetRequest(argument=f"dataset/{name}", folder=tmp_path)
        assert {question.id for question in prophet_arena(request).questions} == {"prophet_arena/next-mayor"}
    for name in ("../etc", "a@..", "", "cups/x"):
        with pytest.raises(InputError, match="is not a name of a data set"):
            dataset_name(name)
    with pytest.raises(InputError, match="data pull prophet-arena --dataset other"):
        prophet_arena(DatasetRequest(argument="dataset/other", folder=tmp_path))


def test_a_data_set_with_a_wrong_checksum_or_no_events_is_refused() -> None:
    packed = FakeProphetArena([], key="k", datasets={"cups@1": [WINDOWED]})
    headers = {"authorization": "Bearer k"}
    path = "/datasets/cups/versions/1/download"
    request = ServerRequest(method="GET", path=path, target=path, query={}, headers=headers)
    answer = packed.download(request)
    assert unpack_events(answer.body, answer.headers["X-Content-Hash"]).startswith(b'{"slug"')
    with pytest.raises(InputError, match="checksum"):
        unpack_events(answer.body, "0" * 64)
    with pytest.raises(InputError, match=r"no readable events\.jsonl"):
        unpack_events(b"no archive", "")
