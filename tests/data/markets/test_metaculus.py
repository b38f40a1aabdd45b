"""Metaculus: community predictions, posts as events, and results."""

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import FieldDrift, MarketFaults, busy, failing
from fakes.market_reader import CANARY, KEY, NOW, Reader, asked, edited
from fakes.markets import FakeMetaculus
from fakes.samples import (
    SampleCommunityPrediction,
    SampleMetaculusQuestion,
    SampleMetaculusScale,
    metaculus_conditional_body,
    metaculus_post_body,
)
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.listing import ListingFilter, LiveOnly
from foretell.data.markets.market import MarketRef, PricesUnavailable, market_ref
from foretell.data.markets.metaculus import MetaculusClient, MetaculusNamed
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.metaculus import MetaculusCatalogue
from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import from_json, to_json
from foretell.questions.question import NumericRange, Question

metaculus = Reader("metaculus")


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


def fake(*questions: SampleMetaculusQuestion, **options: Any) -> FakeMetaculus:
    return FakeMetaculus({"20925": questions or (BINARY,)}, token=KEY, **options)


def test_a_price_is_the_last_community_prediction_of_each_day() -> None:
    points = metaculus.prices(fake(canary=CANARY), "20925", CUTOFF)
    assert [(p.at, p.p) for p in points] == [
        (instant("2026-02-01T08:00:00Z"), 0.3),
        (instant("2026-02-10T18:00:00Z"), 0.42),
    ]
    (request,) = metaculus.server.requests
    assert (request.path, request.headers["authorization"]) == ("/api/posts/20925/", f"Token {KEY}")


def test_old_predictions_with_no_and_yes_are_read() -> None:
    pair = SampleMetaculusQuestion(
        title="?", id=5, history=(SampleCommunityPrediction(since=second("2026-02-01"), centers=(0.7, 0.3)),)
    )
    assert metaculus.prices(fake(pair), "20925", CUTOFF)[-1].p == 0.3


def test_a_question_of_a_group_is_found_by_its_own_number() -> None:
    other = SampleMetaculusQuestion(
        title="?", id=556, history=(SampleCommunityPrediction(since=second("2026-01-30"), centers=(0.8,)),)
    )
    server = fake(BINARY, other, canary=CANARY)
    assert metaculus.prices(server, "20925#556", CUTOFF)[-1].p == 0.8
    assert metaculus.prices(fake(), "20925#555", CUTOFF)[-1].p == 0.42
    with pytest.raises(PricesUnavailable, match="names none of the post's questions: 555, 556"):
        metaculus.prices(server, "20925", CUTOFF)


def test_prices_of_options_include_added_and_removed_ones() -> None:
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
    assert [p.p for p in metaculus.prices(fake(choice), "20925#A", CUTOFF)] == [0.5, 0.6]
    assert [p.p for p in metaculus.prices(fake(choice), "20925#C", CUTOFF)] == [0.4]
    assert [p.p for p in metaculus.prices(fake(plain), "20925#C", CUTOFF)] == [0.1]
    for wrong in ("20925#Z", "20925"):
        with pytest.raises(PricesUnavailable, match="nor an option"):
            metaculus.prices(fake(choice), wrong, CUTOFF)


def test_numbers_and_notebooks_have_no_probability() -> None:
    numeric = SampleMetaculusQuestion(
        id=9, title="?", kind="numeric", history=(SampleCommunityPrediction(since=0, centers=(0.4,)),)
    )
    with pytest.raises(PricesUnavailable, match="is not a yes-or-no question"):
        metaculus.prices(fake(numeric), "20925", CUTOFF)
    with pytest.raises(PricesUnavailable, match="it has none"):
        metaculus.prices(FakeMetaculus({"7": ()}, token=KEY), "7", CUTOFF)


def test_a_prediction_hidden_at_the_cutoff_is_not_returned() -> None:
    hidden = SampleMetaculusQuestion(id=1, title="?", history=HISTORY, revealed="2026-02-11T00:00:00Z")
    with pytest.raises(PricesUnavailable, match="still hidden"):
        metaculus.prices(fake(hidden), "20925", CUTOFF)
    assert metaculus.prices(fake(hidden), "20925", AsOf.day("2026-02-11"))[-1].p == 0.97


def test_refusals_state_the_reason() -> None:
    with pytest.raises(PricesUnavailable, match=r"refuses this account post 20925 \(status 403\).*access tier"):
        metaculus.prices(fake(forbidden=frozenset({"20925"})), "20925", CUTOFF)
    assert len(metaculus.server.requests) == 2
    with pytest.raises(PricesUnavailable, match=r"status 401.*wrong token"):
        metaculus.prices(fake().server(), "20925", CUTOFF, key="canary-wrong")
    with pytest.raises(PricesUnavailable, match="none was given"):
        metaculus.prices(fake().server(), "20925", CUTOFF, key="")
    assert not metaculus.server.requests
    with pytest.raises(PricesUnavailable, match=r"no post 555; the number in a question's address is the post's"):
        metaculus.prices(fake(), "555", CUTOFF)
    with pytest.raises(PricesUnavailable, match="does not show this account"):
        metaculus.prices(
            fake(SampleMetaculusQuestion(id=1, title="?", history=HISTORY, visible=False)),
            "20925",
            CUTOFF,
        )


def test_one_status_403_is_retried() -> None:
    assert metaculus.prices(fake(), "20925", CUTOFF, faults=[failing(403)])[-1].p == 0.42
    assert metaculus.prices(fake(), "20925", CUTOFF, faults=[busy(), failing(502)])[-1].p == 0.42


def test_the_token_appears_in_no_error_or_repr() -> None:
    wrong = "canary-wrong-token"
    with pytest.raises(PricesUnavailable) as refused:
        metaculus.prices(fake().server(), "20925", CUTOFF, key=wrong)
    assert wrong not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(SourceError) as down:
        metaculus.prices(fake(), "20925", CUTOFF, faults=[failing()] * 3)
    assert KEY not in "".join(traceback.format_exception(down.value))
    assert KEY not in repr(MetaculusClient(http=AsyncHttpClient(), token=KEY))


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
def test_an_error_about_a_changed_response_names_the_field(change: Callable[[Any], None], field: str) -> None:
    with pytest.raises(SourceError, match=field) as caught:
        metaculus.prices(fake(canary=CANARY), "20925", CUTOFF, faults=[edited(change)])
    assert CANARY not in str(caught.value)


def first(body: Any) -> dict[str, Any]:
    return body["question"]["aggregations"]["recency_weighted"]["history"][0]


def test_an_entry_without_a_prediction_is_left_out() -> None:
    empty = edited(lambda body: first(body).update(centers=None))
    assert metaculus.prices(fake(), "20925", CUTOFF, faults=[empty])[-1].p == 0.42


@settings(max_examples=20)
@given(hours_of_predictions=st.lists(st.integers(0, 90 * 24), max_size=20), hours=st.integers(0, 90 * 24))
def test_predictions_after_the_cutoff_do_not_change_prices(hours_of_predictions: list[int], hours: int) -> None:
    start = second("2026-01-01")
    predictions = tuple(
        SampleCommunityPrediction(since=start + 3600 * at, centers=((i + 1) / 40,))
        for i, at in enumerate(sorted(hours_of_predictions))
    )
    cutoff = AsOf(at=instant("2026-01-01").fromtimestamp(start + 3600 * hours, instant("2026-01-01").tzinfo))
    answers = []
    for known in (
        predictions,
        tuple(prediction for prediction in predictions if prediction.since <= cutoff.at.timestamp()),
    ):
        try:
            answers.append(
                metaculus.prices(fake(SampleMetaculusQuestion(id=1, title="?", history=known)), "20925", cutoff)
            )
        except PricesUnavailable:
            answers.append([])
    assert answers[0] == answers[1]


WAR = metaculus_post_body(20925, "Will it end?", SampleMetaculusQuestion(id=1, title="Will it end?", centers=(0.42,)))
CHOICE = metaculus_post_body(
    301,
    "Who wins in 2027?",
    SampleMetaculusQuestion(
        id=2,
        title="Who?",
        kind="multiple_choice",
        options=("Ann", "Bob"),
        ever=("Ann", "Cat", "Bob"),
        centers=(0.6, None, 0.4),
    ),
)


def group(n: int, **fields: Any) -> dict[str, Any]:
    questions = [
        SampleMetaculusQuestion(id=50 + i, title=f"How many ({i})", label=f"{i}", centers=(i / 10,), **fields)
        for i in range(n)
    ]
    return metaculus_post_body(400 + n, "How many?", *questions)


def server(*posts: Any, trouble: MarketFaults | None = None, **options: Any) -> Any:
    catalogue = MetaculusCatalogue(posts or (WAR, CHOICE))
    return FakeMetaculus({}, token=KEY, **options).having(catalogue, trouble).server()


def test_a_yes_or_no_question_becomes_an_event_with_one_target() -> None:
    (war, _), ledger = metaculus.listing(server())
    question, (yes,) = war.question, war.question.targets
    assert (question.id, question.text, question.exclusivity) == ("metaculus/20925", "Will it end?", "independent")
    assert (question.criteria, question.background) == ("Resolves as reported.", "What is known so far.")
    assert yes.snapshot is not None
    assert (yes.id, yes.resolves_at, yes.snapshot.last_price) == ("yes", instant("2027-02-01"), 0.42)
    assert (war.closes_at, war.status, war.traders, war.volume) == (instant("2027-01-01"), "open", 40, None)
    assert (war.category, war.tags, war.recurrence) == ("Politics", ("Politics", "Cup"), "will it end?")
    assert market_ref(question) == MarketRef(platform="metaculus", id="20925")
    assert ledger.notes() == ()
    (request,) = metaculus.server.requests
    assert request.headers["authorization"] == f"Token {KEY}"
    assert (request.query["statuses"], request.query["with_cp"], request.query["include_descriptions"]) == (
        "open",
        "true",
        "true",
    )


def test_targets_of_a_choice_exclude_removed_options() -> None:
    (_, choice), _ = metaculus.listing(server())
    assert [(t.id, t.snapshot.last_price) for t in choice.question.targets] == [("Ann", 0.6), ("Bob", 0.4)]
    assert choice.question.exclusivity == "exactly one"
    assert market_ref(choice.question, choice.question.targets[1]) == MarketRef(platform="metaculus", id="301#Bob")


def test_a_large_group_is_fetched_separately_for_its_predictions() -> None:
    (small,), _ = metaculus.listing(server(group(3)))
    assert len(metaculus.server.requests) == 1
    assert small.question.exclusivity == "independent"
    assert [(t.id, t.label) for t in small.question.targets] == [("50", "0"), ("51", "1"), ("52", "2")]
    (large,), _ = metaculus.listing(server(group(5)))
    assert [request.path for request in metaculus.server.requests] == ["/api/posts/", "/api/posts/405/"]
    assert [t.snapshot.last_price for t in large.question.targets] == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert market_ref(large.question, large.question.targets[4]) == MarketRef(platform="metaculus", id="405#54")


def test_the_last_open_question_of_a_group_still_refers_to_its_own_price() -> None:
    post = group(2)
    post["group_of_questions"]["questions"][0].update(status="resolved", resolution="no")
    (left,), _ = metaculus.listing(server(post))
    assert (market_ref(left.question), left.finished) == (MarketRef(platform="metaculus", id="402#51"), ("50",))


def numbers(id: int, kind: str, scale: SampleMetaculusScale, **fields: Any) -> dict[str, Any]:
    question = SampleMetaculusQuestion(id=id, title="How much?", kind=kind, scale=scale, **fields)
    return metaculus_post_body(id * 10, "How much?", question)


def test_questions_about_numbers_and_dates_have_a_range() -> None:
    cdf = (*(n / 200 for n in range(200)), 1.0000000002)
    day = 86400
    posts = [
        numbers(1, "numeric", SampleMetaculusScale(low=0, high=200, open_upper=True, unit="km"), values=cdf),
        numbers(2, "numeric", SampleMetaculusScale(low=1, high=100, zero=0, cells=200)),
        numbers(3, "discrete", SampleMetaculusScale(low=-0.5, high=3.5, cells=4)),
        numbers(4, "date", SampleMetaculusScale(low=0, high=400 * day, open_lower=True)),
    ]
    (km, log, few, when), ledger = metaculus.listing(server(*posts))
    assert ledger.notes() == ()
    assert km.question.range == NumericRange(minimum=0, maximum=200, open_upper=True, unit="km")
    assert [(t.id, t.label, t.snapshot.last_price) for t in km.question.targets] == [
        (">50", ">50 km", 0.75),
        (">100", ">100 km", 0.5),
        (">150", ">150 km", 0.25),
    ]
    assert km.question.background.endswith("0 to 200 km; it may end up above, but not below.")
    assert [t.id for t in log.question.targets] == [">3.16227766", ">10", ">31.6227766"]
    assert few.question.range.values == (0, 1, 2, 3)
    assert [t.id for t in few.question.targets] == [">0.5", ">1.5", ">2.5"]
    assert (when.question.range.dates, when.question.subtype, few.question.subtype) == (True, "date", "numeric")
    assert [(t.id, t.label) for t in when.question.targets][1] == (f">{200 * day}", "after 1970-07-20")
    assert "1970-01-01 to 1971-02-05; it may end up earlier, but not later." in when.question.background
    for listed in (km, when):
        assert from_json(to_json(listed.question), Question) == listed.question


def test_groups_about_numbers_and_conditional_pairs_are_several_questions() -> None:
    scale = SampleMetaculusScale(low=0, high=10)
    parts = [
        SampleMetaculusQuestion(id=n, title=f"How many? ({n})", label=str(n), kind="numeric", scale=scale)
        for n in (61, 62)
    ]
    group = metaculus_post_body(6, "How many?", *parts)
    no, yes = (SampleMetaculusQuestion(id=n, title="?", centers=(n / 100,)) for n in (71, 72))
    pair = metaculus_conditional_body(7, "Does it rain?", "Does it flood?", yes, no)
    listed, ledger = metaculus.listing(server(group, pair))
    assert [event.question.id for event in listed] == [
        "metaculus/6#61",
        "metaculus/6#62",
        "metaculus/7#72",
        "metaculus/7#71",
    ]
    assert (listed[1].question.text, listed[1].question.criteria) == ("How many? (62)", "Resolves as reported.")
    assert ledger.notes() == ()
    wet = listed[2].question
    assert wet.text == "If “Does it rain?” resolves yes: Does it flood?"
    assert "counts only if “Does it rain?” resolves yes" in wet.criteria
    assert wet.targets[0].snapshot.last_price == 0.72
    assert market_ref(wet) == MarketRef(platform="metaculus", id="7#72")
    assert metaculus.event(server(pair), "7#71").question.text.startswith("If “Does it rain?” resolves no")
    with pytest.raises(SourceError, match="name one of them, as POST#QUESTION: 61, 62"):
        metaculus.event(server(group), "6")
    with pytest.raises(SourceError):
        metaculus.event(server({**group, "group_of_questions": None}), "6#61")

    def named(name: str) -> list[str]:
        async def read(client: MetaculusClient) -> Any:
            return await MetaculusNamed(client, name).events(ListingFilter(as_of=NOW)).all()

        return [event.question.id for event in metaculus.run(server(group, pair), read)]

    assert named("6") == ["metaculus/6#61", "metaculus/6#62"]
    assert named("7#71") == ["metaculus/7#71"]
    assert len(named("minibench")) == len(named("33121")) == 4


def test_the_community_prediction_is_read_by_the_method_that_the_question_names() -> None:
    plain = SampleMetaculusQuestion(id=1, title="?", centers=(0.3,), history=HISTORY, method="unweighted")
    post = metaculus_post_body(20925, "?", plain)
    empty = {"history": [], "latest": None}
    post["question"]["aggregations"]["recency_weighted"] = empty
    assert metaculus.event(server(post), "20925").question.targets[0].snapshot.last_price == 0.3
    assert metaculus.prices(server(post), "20925", CUTOFF)
    # Old questions that name no method, and responses without the named method.
    for named in (None, "single_aggregation"):
        post["question"]["default_aggregation_method"] = named
        assert metaculus.event(server(post), "20925").question.targets[0].snapshot.last_price == 0.3
    post["question"]["aggregations"] = {"recency_weighted": empty}
    assert metaculus.event(server(post), "20925").question.targets[0].snapshot is None


def test_posts_without_a_supported_question_are_skipped_with_the_reason() -> None:
    malformed = metaculus_post_body(1, "?", SampleMetaculusQuestion(id=1, title="?", kind="numeric"))
    strange = metaculus_post_body(2, "?", SampleMetaculusQuestion(id=2, title="?", kind="ranking"))
    pair = {"id": 5, "title": "?", "status": "open", "conditional": {"question_yes": {}, "question_no": {}}}
    words = {"id": 6, "title": "?", "status": "open", "notebook": {"markdown": "words"}}
    listed, ledger = metaculus.listing(server(malformed, strange, pair, words, WAR))
    assert [event.question.id for event in listed] == ["metaculus/20925"]
    assert [(s.id, s.reason, s.kind) for s in ledger.skipped] == [
        ("1", "metaculus event 1: field results[0].question.scaling.range_min is missing", "malformed"),
        ("2", "a question of type ranking is not supported", "unsupported"),
        ("5", "metaculus event 5: field results[2].conditional.condition is missing", "malformed"),
        ("6", "a notebook has no question", "unsupported"),
    ]


def test_hidden_predictions_are_not_listed() -> None:
    secret = SampleMetaculusQuestion(id=1, title="?", centers=(0.9,), revealed="2026-11-05T00:00:00Z")
    (listed,), _ = metaculus.listing(server(metaculus_post_body(1, "?", secret)))
    assert listed.question.targets[0].snapshot is None
    old = SampleMetaculusQuestion(id=1, title="?", centers=(0.7, 0.3), revealed="2026-10-05T00:00:00Z")
    assert metaculus.event(server(metaculus_post_body(1, "?", old)), "1").question.targets[0].snapshot.last_price == 0.3
    withheld = SampleMetaculusQuestion(id=1, title="?")
    assert metaculus.event(server(metaculus_post_body(1, "?", withheld)), "1").question.targets[0].snapshot is None


def test_a_listing_sends_pages_tournaments_and_the_window() -> None:
    many = [
        metaculus_post_body(n, f"{n}?", SampleMetaculusQuestion(id=n, title="?", centers=(0.5,))) for n in range(1, 131)
    ]
    listed, ledger = metaculus.listing(
        server(*many), limit=1000, tournaments=("minibench", "33121"), closes_after="2026-12-01"
    )
    assert (len(listed), ledger.pages, ledger.complete) == (130, 2, True)
    assert [request.query["offset"] for request in metaculus.server.requests] == ["0", "100"]
    assert "tournaments=minibench&tournaments=33121" in metaculus.server.requests[0].target
    assert metaculus.server.requests[0].query["scheduled_resolve_time__gte"] == "2026-12-01T00:00:00+00:00"


def test_refused_tokens_missing_posts_and_backtests_raise() -> None:
    with pytest.raises(SourceError, match="none was given"):
        metaculus.event(server(), "20925", key="")
    assert not metaculus.server.requests
    with pytest.raises(SourceError, match="401") as wrong:
        metaculus.event(server(), "20925", key="canary-wrong")
    assert "canary-wrong" not in str(wrong.value)
    with pytest.raises(SourceError, match="403"):
        metaculus.event(server(forbidden=frozenset({"20925"})), "20925")
    with pytest.raises(SourceError, match="metaculus post 7 does not exist"):
        metaculus.event(server(), "7")
    with pytest.raises(LiveOnly):
        metaculus.event(server(), "20925", AsOf(at=NOW.at))
    assert len(metaculus.listing(server(), faults=[failing(403), busy(), failing(502)])[0]) == 2


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        ("results.0.title", "drop", "field results[0].title is missing"),
        ("results.0.question", "drop", "field results[0].question is missing"),
        ("results.0.question.type", "rename", "field results[0].question.type is missing"),
        ("results.0.question.status", "drop", "question.status is missing"),
        ("results.0.question.scheduled_close_time", "drop", "question.scheduled_close_time is missing"),
        ("results.0.question.scheduled_close_time", "retype", "question.scheduled_close_time is not a text"),
        ("results.0.question.resolution_criteria", "drop", "question.resolution_criteria is missing"),
    ],
)
def test_an_error_about_a_changed_field_names_platform_event_and_field(path: str, change: Any, reason: str) -> None:
    listed, ledger = metaculus.listing(server(trouble=MarketFaults(drifts=(FieldDrift(path=path, change=change),))))
    assert [event.question.id for event in listed] == ["metaculus/301"]
    assert ledger.skipped[0].reason.startswith("metaculus event 20925: field ")
    assert reason in ledger.skipped[0].reason


def test_malformed_pages_raise() -> None:
    for path in ("results", "next"):
        with pytest.raises(MalformedPayload, match=f"metaculus list: field {path} is missing"):
            metaculus.listing(server(trouble=MarketFaults(drifts=(FieldDrift(path=path),))))
    with pytest.raises(SourceError, match="503"):
        metaculus.listing(server(trouble=MarketFaults(down=("/posts",))))
    new = MarketFaults(drifts=(FieldDrift(path="results.*.question.brand_new", change="add"),))
    assert metaculus.listing(server(trouble=new))[1].notes() == ()


OVER: dict[str, Any] = {"status": "resolved", "resolved": "2026-12-11T00:00:00Z"}


def settled_server(*posts: Any, trouble: MarketFaults | None = None, **options: Any) -> Any:
    return FakeMetaculus({}, token=KEY, **options).having(MetaculusCatalogue(posts), trouble).server()


def binary(id: int, resolution: str | None, **fields: Any) -> dict[str, Any]:
    return metaculus_post_body(
        id, "?", SampleMetaculusQuestion(id=id * 10, title="?", resolution=resolution, **{**OVER, **fields})
    )


@pytest.mark.parametrize("takes_ids", [True, False])
def test_questions_resolve_to_yes_no_or_neither(takes_ids: bool) -> None:
    posts = [
        binary(1, "yes"),
        binary(2, "no"),
        binary(3, "ambiguous"),
        binary(4, "annulled"),
        binary(5, None, status="closed"),
        binary(6, None, status="open"),
        binary(7, None),
        binary(8, "42", kind="numeric"),
        binary(9, "perhaps"),
    ]
    questions = [asked(f"metaculus/{n}") for n in [*range(1, 10), 77]]
    metaculus.settle(settled_server(*posts, takes_ids=takes_ids), questions)
    assert {resolution.question_id: (resolution.outcome, resolution.payoff) for resolution in metaculus.settled} == {
        "metaculus/1": (1, None),
        "metaculus/2": (0, None),
        "metaculus/3": (None, None),
        "metaculus/4": (None, None),
    }
    assert {resolution.resolved_at for resolution in metaculus.settled} == {instant("2026-12-11")}
    assert metaculus.reasons == {
        "7": "its resolution is not shown to this account",
        "8": "a number does not decide 'yes'",
        "9": "metaculus market 9: field results[8].question.resolution is not yes, no, ambiguous or annulled",
        "77": "the platform has no such market",
    }
    # One list, and one request for the post that is missing from it.
    assert [request.path for request in metaculus.server.requests] == ["/api/posts/", "/api/posts/77/"]
    assert metaculus.server.requests[0].target.count("ids=") == 10


@pytest.mark.parametrize(
    ("kind", "resolution", "outcomes"),
    [
        ("numeric", "60.0", [1, 0, 0]),
        ("numeric", "above_upper_bound", [1, 1, 1]),
        ("numeric", "below_lower_bound", [0, 0, 0]),
        ("numeric", "annulled", [None, None, None]),
        ("discrete", "100", [1, 0, 0]),
        ("date", "1970-01-01 00:02:00+00:00", [1, 1, 0]),
        ("date", "1970-01-01T00:01:00Z", [1, 0, 0]),
    ],
)
def test_numbers_and_dates_decide_thresholds(kind: str, resolution: str, outcomes: list[int | None]) -> None:
    post = numbers(1, kind, SampleMetaculusScale(low=0, high=200, open_upper=True, open_lower=True))
    (listed,), _ = metaculus.listing(server(post))
    post["question"] |= {"status": "resolved", "resolution": resolution}
    resolutions = metaculus.settle(settled_server(post), [listed.question])
    assert [resolutions[target.id].outcome for target in listed.question.targets] == outcomes


def test_choices_and_groups_resolve_by_option_and_question() -> None:
    chosen = SampleMetaculusQuestion(
        id=5,
        title="?",
        kind="multiple_choice",
        options=("Ann", "Bob"),
        ever=("Ann", "Cat", "Bob"),
        resolution="Bob",
        **OVER,
    )
    resolutions = metaculus.settle(
        settled_server(metaculus_post_body(1, "?", chosen)), [asked("metaculus/1", "Ann", "Bob", "Cat", "Zoe")]
    )
    assert {label: resolution.outcome for label, resolution in resolutions.items()} == {"Ann": 0, "Bob": 1, "Cat": 0}
    assert metaculus.reasons == {"1#Zoe": "the question has no option 'Zoe'"}
    group = metaculus_post_body(
        2,
        "?",
        SampleMetaculusQuestion(id=21, title="?", label="a", resolution="yes", **OVER),
        SampleMetaculusQuestion(id=22, title="?", label="b"),
    )
    resolutions = metaculus.settle(settled_server(group), [asked("metaculus/2", "21", "22", "99")])
    assert {label: resolution.outcome for label, resolution in resolutions.items()} == {"21": 1}
    assert metaculus.reasons == {"2#99": "the post has no question 99"}
    assert metaculus.settle(settled_server(group), [asked("metaculus/2")]) == {}
    assert metaculus.reasons == {"2": "the post has no question of its own"}


def test_refused_and_changed_results_are_reported_and_outages_raise() -> None:
    questions = [asked("metaculus/1"), asked("metaculus/2")]
    resolutions = metaculus.settle(settled_server(binary(1, "yes"), forbidden=frozenset({"2"})), questions)
    assert resolutions["yes"].provenance == "https://www.metaculus.com/questions/1/"
    assert metaculus.reasons == {"2": "this account may not read the post"}
    trouble = MarketFaults(drifts=(FieldDrift(path="results.0.question.status", change="rename"),))
    assert metaculus.settle(settled_server(binary(1, "yes"), trouble=trouble), questions[:1]) == {}
    assert "question.status is missing" in metaculus.reasons["1"]
    with pytest.raises(SourceError, match="results is missing"):
        metaculus.settle(settled_server(trouble=MarketFaults(drifts=(FieldDrift(path="results"),))), questions)
    assert (
        metaculus.settle(settled_server(binary(1, "no")), questions[:1], faults=[busy(), failing(403)])["yes"].outcome
        == 0
    )
    with pytest.raises(SourceError, match="401"):
        metaculus.settle(FakeMetaculus({}, token="other"), questions)
