"""Metaculus community predictions, for those who may see them."""

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import ServerFault, busy, failing
from fakes.markets import FakeMetaculus
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.metaculus import MetaculusClient, MetaculusPrices
from foretell.data.markets.prices import PriceSource, PricesUnavailable
from foretell.practice.markets.metaculus import SampleCommunityPrediction, SampleMetaculusQuestion
from foretell.questions.as_of import AsOf, instant

TOKEN = "canary-token-77"
CUTOFF = AsOf(at="2026-02-10T18:30:00Z")


def second(text: str) -> float:
    return instant(text).timestamp()


HISTORY = (
    SampleCommunityPrediction(since=second("2025-10-01") + 0.5, centers=(0.1,)),
    SampleCommunityPrediction(since=second("2026-02-01T08:00:00Z"), centers=(0.3,)),
    SampleCommunityPrediction(since=second("2026-02-10T18:00:00Z"), centers=(0.42,)),
    SampleCommunityPrediction(since=second("2026-02-10T19:00:00Z"), centers=(0.97,)),
)
BINARY = SampleMetaculusQuestion(id=555, title="?", history=HISTORY)


def make(http: Any, url: str, token: str = TOKEN) -> PriceSource:
    client = MetaculusClient(http=http, token=token, host=f"{url}/api", per_second=1e4, retry_seconds=0.0)
    return MetaculusPrices(client)


def fake(*questions: SampleMetaculusQuestion, **options: Any) -> FakeMetaculus:
    return FakeMetaculus({"20925": questions or (BINARY,)}, token=TOKEN, **options)


def test_the_community_prediction_of_each_day(ask: Any, canary: str) -> None:
    points = ask(fake(canary=canary).server(), make, "20925", CUTOFF)
    assert [(p.at, p.p) for p in points] == [
        (instant("2026-02-01T08:00:00Z"), 0.3),
        (instant("2026-02-10T18:00:00Z"), 0.42),
    ]
    (request,) = ask.server.requests
    assert (request.path, request.headers["authorization"]) == ("/api/posts/20925/", f"Token {TOKEN}")


def test_old_answers_with_no_and_yes(ask: Any) -> None:
    pair = SampleMetaculusQuestion(
        title="?", id=5, history=(SampleCommunityPrediction(since=second("2026-02-01"), centers=(0.7, 0.3)),)
    )
    assert ask(fake(pair).server(), make, "20925", CUTOFF)[-1].p == 0.3


def test_one_question_of_a_group_by_its_own_number(ask: Any, canary: str) -> None:
    other = SampleMetaculusQuestion(
        title="?", id=556, history=(SampleCommunityPrediction(since=second("2026-01-30"), centers=(0.8,)),)
    )
    server = fake(BINARY, other, canary=canary)
    assert ask(server.server(), make, "20925#556", CUTOFF)[-1].p == 0.8
    assert ask(fake().server(), make, "20925#555", CUTOFF)[-1].p == 0.42
    with pytest.raises(PricesUnavailable, match="names none of the post's questions: 555, 556"):
        ask(server.server(), make, "20925", CUTOFF)


def test_options_of_a_choice_also_those_that_came_and_went(ask: Any) -> None:
    choice = SampleMetaculusQuestion(
        title="?",
        id=9,
        kind="multiple_choice",
        options=("A", "C"),
        ever=("A", "B", "C"),
        history=(
            SampleCommunityPrediction(since=second("2026-02-01"), centers=(0.5, 0.5, None)),
            SampleCommunityPrediction(since=second("2026-02-05"), centers=(0.6, None, 0.4)),
        ),
    )
    plain = SampleMetaculusQuestion(
        title="?",
        id=9,
        kind="multiple_choice",
        options=("A", "C"),
        history=(SampleCommunityPrediction(since=0, centers=(0.9, 0.1)),),
    )
    assert [p.p for p in ask(fake(choice).server(), make, "20925#A", CUTOFF)] == [0.5, 0.6]
    assert [p.p for p in ask(fake(choice).server(), make, "20925#C", CUTOFF)] == [0.4]
    assert [p.p for p in ask(fake(plain).server(), make, "20925#C", CUTOFF)] == [0.1]
    for wrong in ("20925#Z", "20925"):
        with pytest.raises(PricesUnavailable, match="nor an option"):
            ask(fake(choice).server(), make, wrong, CUTOFF)


def test_numbers_and_notebooks_have_no_probability(ask: Any) -> None:
    numeric = SampleMetaculusQuestion(
        id=9, title="?", kind="numeric", history=(SampleCommunityPrediction(since=0, centers=(0.4,)),)
    )
    with pytest.raises(PricesUnavailable, match="no yes-or-no question"):
        ask(fake(numeric).server(), make, "20925", CUTOFF)
    with pytest.raises(PricesUnavailable, match="it has none"):
        ask(FakeMetaculus({"7": ()}, token=TOKEN).server(), make, "7", CUTOFF)


def test_what_was_hidden_at_the_cutoff_stays_hidden(ask: Any) -> None:
    hidden = SampleMetaculusQuestion(id=1, title="?", history=HISTORY, revealed="2026-02-11T00:00:00Z")
    with pytest.raises(PricesUnavailable, match="still hidden"):
        ask(fake(hidden).server(), make, "20925", CUTOFF)
    assert ask(fake(hidden).server(), make, "20925", AsOf.day("2026-02-11"))[-1].p == 0.97


def test_refusals_say_why(ask: Any) -> None:
    with pytest.raises(PricesUnavailable, match=r"refuses this account post 20925 \(status 403\).*access tier"):
        ask(fake(forbidden=frozenset({"20925"})).server(), make, "20925", CUTOFF)
    assert len(ask.server.requests) == 2
    with pytest.raises(PricesUnavailable, match=r"status 401.*wrong token"):
        ask(fake().server(), lambda http, url: make(http, url, "canary-wrong"), "20925", CUTOFF)
    with pytest.raises(PricesUnavailable, match="none was given"):
        ask(fake().server(), lambda http, url: make(http, url, ""), "20925", CUTOFF)
    assert not ask.server.requests
    with pytest.raises(PricesUnavailable, match=r"no post 555; the number in a question's address is the post's"):
        ask(fake().server(), make, "555", CUTOFF)
    with pytest.raises(PricesUnavailable, match="does not show this account"):
        ask(
            fake(SampleMetaculusQuestion(id=1, title="?", history=HISTORY, visible=False)).server(),
            make,
            "20925",
            CUTOFF,
        )


def test_one_refusal_at_the_door_is_forgiven(ask: Any) -> None:
    assert ask(fake().server(), make, "20925", CUTOFF, faults=[failing(403)])[-1].p == 0.42
    assert ask(fake().server(), make, "20925", CUTOFF, faults=[busy(), failing(502)])[-1].p == 0.42


def test_the_token_shows_nowhere(ask: Any) -> None:
    wrong = "canary-wrong-token"
    with pytest.raises(PricesUnavailable) as refused:
        ask(fake().server(), lambda http, url: make(http, url, wrong), "20925", CUTOFF)
    assert wrong not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(SourceError) as down:
        ask(fake().server(), make, "20925", CUTOFF, faults=[failing()] * 3)
    assert TOKEN not in "".join(traceback.format_exception(down.value))
    assert TOKEN not in repr(MetaculusClient(http=AsyncHttpClient(), token=TOKEN))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body["question"].pop("id"), r"question\.id is missing"),
        (lambda body: body["question"].pop("type"), r"question\.type is missing"),
        (lambda body: body["question"].update(cp_reveal_time="soon"), r"question\.cp_reveal_time is not a time"),
        (lambda body: first(body).pop("start_time"), r"history\[0\]\.start_time is missing"),
        (lambda body: first(body).pop("centers"), r"history\[0\]\.centers is missing"),
        (lambda body: first(body).update(centers=[3]), r"history\[0\]\.centers\[0\] is not a probability"),
    ],
)
def test_a_changed_answer_names_the_field(
    ask: Any, canary: str, edited: Callable[..., ServerFault], change: Callable[[Any], None], field: str
) -> None:
    with pytest.raises(SourceError, match=field) as caught:
        ask(fake(canary=canary).server(), make, "20925", CUTOFF, faults=[edited(change)])
    assert canary not in str(caught.value)


def first(body: Any) -> dict[str, Any]:
    return body["question"]["aggregations"]["recency_weighted"]["history"][0]


def test_an_entry_without_a_prediction_is_left_out(ask: Any, edited: Callable[..., ServerFault]) -> None:
    empty = edited(lambda body: first(body).update(centers=None))
    assert ask(fake().server(), make, "20925", CUTOFF, faults=[empty])[-1].p == 0.42


@settings(deadline=None, max_examples=20)
@given(moments=st.lists(st.integers(0, 90 * 24), max_size=20), hours=st.integers(0, 90 * 24))
def test_the_future_changes_nothing(ask: Any, moments: list[int], hours: int) -> None:
    start = second("2026-01-01")
    crowd = tuple(
        SampleCommunityPrediction(since=start + 3600 * at, centers=((i + 1) / 40,))
        for i, at in enumerate(sorted(moments))
    )
    cutoff = AsOf(at=instant("2026-01-01").fromtimestamp(start + 3600 * hours, instant("2026-01-01").tzinfo))
    answers = []
    for known in (crowd, tuple(one for one in crowd if one.since <= cutoff.at.timestamp())):
        try:
            answers.append(
                ask(fake(SampleMetaculusQuestion(id=1, title="?", history=known)).server(), make, "20925", cutoff)
            )
        except PricesUnavailable:
            answers.append([])
    assert answers[0] == answers[1]
