import json
from typing import Any

import pytest

from foretell.data.datasets.prophet_arena import read_events_jsonl
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError

EVENT: dict[str, Any] = {
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


def test_every_window_is_one_asking(write) -> None:
    found = read_events_jsonl(write("events.jsonl", lines(EVENT)))
    first, second = found.questions
    assert {q.id for q in found.questions} == {"prophet_arena/next-mayor"} == {q.cluster for q in found.questions}
    assert (first.due, second.due) == (instant("2026-10-01"), instant("2026-10-08T12:00:00Z"))
    assert first.exclusive
    assert first.closes_at == instant("2026-11-04")
    assert [t.snapshot.last_price if t.snapshot else None for t in second.targets] == [0.7, None]
    assert len(found.outcomes()) == 4
    assert found.outcomes()[first.id, first.due, "Ann"] == 1
    assert [a.title for a in found.contexts[first.id, first.due]] == ["T"]


@pytest.mark.parametrize("told", ["void", None, ""])
def test_void_outcomes_have_no_outcome(write, told) -> None:
    event = EVENT | {"outcomes": [{"name": "Ann", "resolution": told}, {"name": "Bob", "resolution": False}]}
    found = read_events_jsonl(write("events.jsonl", lines(event)))
    assert {key[2] for key in found.outcomes()} == {"Bob"}
    assert found.notes == ("1 outcomes void or unresolved",)


def test_an_event_never_asked_is_counted(write) -> None:
    found = read_events_jsonl(write("events.jsonl", lines(EVENT | {"windows": []})))
    assert (found.questions, found.notes) == ((), ("1 events without a window dropped",))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"outcomes": []}, "column outcomes: event next-mayor: is missing"),
        (
            {"outcomes": [{"name": "Ann", "resolution": "perhaps"}]},
            "resolution 'perhaps' of 'Ann' is not yes, no or void",
        ),
        ({"outcomes": ["Ann"]}, "expected an object"),
        ({"windows": [{}]}, "a window has no taken_at"),
        ({"windows": [EVENT["windows"][0] | {"crowd": {"Ann": 6}}]}, "last_price = 6.0 is outside [0, 1]"),
        ({"windows": [EVENT["windows"][0] | {"taken_at": "yesterday"}]}, "column taken_at: event next-mayor"),
        ({"title": "Again"}, "column windows: event next-mayor: 2026-10-01T00:00:00+00:00 is asked twice"),
        ({"title": None}, "column title: event next-mayor: is missing"),
        ({"mutually_exclusive": "perhaps"}, "column mutually_exclusive"),
    ],
)
def test_a_malformed_event(write, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        read_events_jsonl(write("events.jsonl", lines(EVENT, EVENT | {"slug": "next-mayor"} | changes)))
    assert "row 2" in str(caught.value)
    assert told in str(caught.value)
