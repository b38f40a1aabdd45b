import csv
from pathlib import Path
from typing import Any

import pytest

from foretell.data.datasets.prophet_arena import literal, read_events_csv
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError

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


def test_an_event(events) -> None:
    found = read_events_csv(events(EVENT))
    (question,) = found.questions
    assert (question.id, question.category, question.exclusive) == ("prophet_arena/GAME", "Sports", False)
    assert question.due == instant("2025-06-26T17:01:39.572199Z")
    assert question.as_of.at == question.due, "the cutoff is the very moment of the snapshot"
    first, second = question.targets
    assert (first.id, second.id) == ("Detroit", "A's")
    quote = first.snapshot
    assert quote is not None
    assert (quote.yes_bid, quote.yes_ask, quote.no_ask, quote.last_price) == (0.58, 0.59, 0.42, 0.59)
    assert quote.volume == 8522, "one-dollar contracts, not cents"
    assert second.snapshot is not None
    assert second.snapshot.last_price is None, "0 stands for: never traded"
    assert "Detroit: If Detroit wins, then Yes." in question.criteria
    assert question.criteria.count("Postponed") == 1
    assert found.outcomes() == {(question.id, question.due, "Detroit"): 1, (question.id, question.due, "A's"): 0}
    assert found.notes == ()


def test_when_it_really_closed_stays_out_of_the_question(events) -> None:
    found = read_events_csv(events(EVENT))
    assert found.questions[0].closes_at == instant("2025-06-26T20:10:00Z")
    assert found.resolutions[0].resolved_at == instant("2025-06-26T19:42:36.700504Z")


def test_an_expected_end_that_has_passed_gives_way_to_the_listed_one(events) -> None:
    late = QUOTE | {"expected_expiration_time": "2025-06-26T13:00:00Z"}
    found = read_events_csv(events(EVENT | {"market_info": repr({"Detroit": late, "A's": late})}))
    assert found.questions[0].closes_at == instant("2027-06-26T17:10:00Z")


def test_articles_stand_beside_the_question(events) -> None:
    found = read_events_csv(events(EVENT))
    (article,) = found.contexts[found.questions[0].id, found.questions[0].due]
    assert (article.title, article.summary, article.rank) == ("T", "It's", 1)


def test_markets_and_outcomes_that_do_not_match_are_counted(events) -> None:
    row = EVENT | {"market_outcome": repr({"Detroit": 1, "Draw": 0}), "market_info": repr({})}
    found = read_events_csv(events(row))
    assert [t.id for t in found.questions[0].targets] == ["Detroit"]
    assert set(found.notes) == {
        "1 listed markets without an outcome dropped",
        "1 outcomes without a listed market dropped",
        "1 events whose listed markets and outcomes differ",
        "1 markets without a quote kept",
    }
    assert found.questions[0].targets[0].snapshot is None


def test_an_event_without_a_resolved_market_is_dropped(events) -> None:
    found = read_events_csv(events(EVENT | {"market_outcome": "{}"}))
    assert found.questions == ()
    assert "1 events without a resolved market dropped" in found.notes


def test_exclusive_only_where_someone_says_so(events) -> None:
    assert read_events_csv(events(EVENT), exclusive=frozenset({"GAME"})).questions[0].exclusive


def test_newer_prices_in_dollars(events) -> None:
    quote = QUOTE | {"yes_ask_dollars": "0.6050"}
    found = read_events_csv(events(EVENT | {"market_info": repr({"Detroit": quote, "A's": quote})}))
    assert found.questions[0].targets[0].snapshot.yes_ask == 0.605


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"market_info": "print('x')"}, "column market_info: event GAME: not a plain Python literal"),
        ({"markets": "{}"}, "column markets: event GAME: expected a list, found a dict"),
        ({"market_outcome": repr({"Detroit": 2, "A's": 0})}, "column market_outcome: event GAME: 2 is neither 0 nor 1"),
        ({"snapshot_time": ""}, "column snapshot_time: event GAME: is missing"),
        ({"snapshot_time": "2025-06-26 17:01:39"}, "has no time zone"),
        (
            {"market_info": repr({"Detroit": QUOTE | {"yes_ask": 140}})},
            "event GAME, 'Detroit': yes_ask = 1.4 is outside",
        ),
        ({"sources": "['x']"}, "column sources: event GAME: expected an object"),
        ({"event_ticker": ""}, "column event_ticker: is missing"),
    ],
)
def test_a_malformed_event(events, changes: dict[str, str], told: str) -> None:
    with pytest.raises(InputError) as caught:
        read_events_csv(events(EVENT | {"event_ticker": "FINE"}, EVENT | changes))
    assert "row 2" in str(caught.value)
    assert told in str(caught.value)


def test_an_event_may_not_be_there_twice_for_one_moment(events) -> None:
    later = EVENT | {"snapshot_time": "2025-06-26 18:00:00+00:00"}
    assert len(read_events_csv(events(EVENT, later)).questions) == 2
    with pytest.raises(InputError, match="row 2, column event_ticker: event GAME: is there twice for the same moment"):
        read_events_csv(events(EVENT, EVENT))


@pytest.mark.parametrize(
    "text", ["open('x')", "a", "1 + x", "[x for x in y]", "UUID(open('x'))", "'unclosed", "f'{1}'"]
)
def test_nothing_is_ever_run(text: str) -> None:
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
def test_plain_literals(text: str, value: object) -> None:
    assert literal(text) == value


@pytest.mark.shared_data
def test_the_published_subset(shared_data: Path) -> None:
    found = read_events_csv(shared_data / "prophet_arena/subset_100_half.csv")
    assert (len(found.questions), len(found.resolutions)) == (42, 433)
    assert set(found.notes) == {
        "56 markets without a quote kept",
        "6 outcomes without a listed market dropped",
        "2 events whose listed markets and outcomes differ",
    }
    assert sorted(map(len, found.contexts.values())) == [4, 8] + [10] * 36 + [11] * 4
    quotes = [t.snapshot for q in found.questions for t in q.targets if t.snapshot]
    assert len(quotes) == 377
    assert all(round(q.yes_bid + q.no_ask, 6) == 1 for q in quotes), (
        "both in dollars, so a bid and the other ask are one"
    )
    assert all(q.closes_at is not None and q.closes_at > q.due for q in found.questions)
