"""Metaculus posts as events, over sockets."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, failing
from fakes.markets import FakeMetaculus
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventSource, ListedEvent, ListingFilter, ListingReport, LiveOnly
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents
from foretell.data.markets.prices import MarketRef, market_ref
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.metaculus import MetaculusCatalogue, SampleMetaculusQuestion, metaculus_post_body
from foretell.questions.as_of import AsOf, instant

TOKEN = "canary-token-78"
NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")
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
    asked = [
        SampleMetaculusQuestion(id=50 + i, title=f"How many ({i})", label=f"{i}", centers=(i / 10,), **fields)
        for i in range(n)
    ]
    return metaculus_post_body(400 + n, "How many?", *asked)


def server(*posts: Any, trouble: MarketFaults | None = None, **options: Any) -> Any:
    catalogue = MetaculusCatalogue(posts or (WAR, CHOICE))
    return FakeMetaculus({}, token=TOKEN, **options).having(catalogue, trouble).server()


def make(http: Any, url: str, token: str = TOKEN, **options: Any) -> EventSource:
    client = MetaculusClient(http=http, token=token, host=f"{url}/api", per_second=1e4, retry_seconds=0.0)
    return MetaculusEvents(client, **options)


def listing(
    ask: Any, fake: Any, *, faults: Any = None, tournaments: Any = (), **wish: Any
) -> tuple[Any, ListingReport]:
    async def use(http: Any, url: str) -> Any:
        found = make(http, url, tournaments=tournaments).events(ListingFilter(as_of=NOW, **wish))
        return await found.all(), found.ledger

    return ask.run(fake, use, faults=faults)


def one(ask: Any, fake: Any, id: str, as_of: AsOf = NOW, token: str = TOKEN) -> ListedEvent:
    return ask.run(fake, lambda http, url: make(http, url, token).event(id, as_of))


def test_a_yes_or_no_question(ask: Any) -> None:
    (war, _), ledger = listing(ask, server())
    question, (yes,) = war.question, war.question.targets
    assert (question.id, question.text, question.exclusive) == ("metaculus/20925", "Will it end?", False)
    assert (question.criteria, question.background) == ("Resolves as reported.", "What is known so far.")
    assert yes.snapshot is not None
    assert (yes.id, yes.resolves_at, yes.snapshot.last_price) == ("yes", instant("2027-02-01"), 0.42)
    assert (war.closes_at, war.status, war.traders, war.volume) == (instant("2027-01-01"), "open", 40, None)
    assert (war.category, war.tags, war.recurrence) == ("Politics", ("Politics", "Cup"), "will it end?")
    assert market_ref(question) == MarketRef(platform="metaculus", id="20925")
    assert ledger.notes() == ()
    (request,) = ask.server.requests
    assert request.headers["authorization"] == f"Token {TOKEN}"
    assert (request.query["statuses"], request.query["with_cp"], request.query["include_descriptions"]) == (
        "open",
        "true",
        "true",
    )


def test_a_choice_also_with_options_taken_away(ask: Any) -> None:
    (_, choice), _ = listing(ask, server())
    assert [(t.id, t.snapshot.last_price) for t in choice.question.targets] == [("Ann", 0.6), ("Bob", 0.4)]
    assert choice.question.exclusive
    assert market_ref(choice.question, choice.question.targets[1]) == MarketRef(platform="metaculus", id="301#Bob")


def test_a_group_is_read_whole_where_the_list_keeps_predictions_back(ask: Any) -> None:
    (small,), _ = listing(ask, server(group(3)))
    assert len(ask.server.requests) == 1
    assert not small.question.exclusive
    assert [(t.id, t.label) for t in small.question.targets] == [("50", "0"), ("51", "1"), ("52", "2")]
    (large,), _ = listing(ask, server(group(5)))
    assert [request.path for request in ask.server.requests] == ["/api/posts/", "/api/posts/405/"]
    assert [t.snapshot.last_price for t in large.question.targets] == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert market_ref(large.question, large.question.targets[4]) == MarketRef(platform="metaculus", id="405#54")


def test_the_last_open_question_of_a_group(ask: Any) -> None:
    post = group(2)
    post["group_of_questions"]["questions"][0].update(status="resolved", resolution="no")
    (left,), _ = listing(ask, server(post))
    assert (market_ref(left.question), left.finished) == (MarketRef(platform="metaculus", id="402#51"), ("50",))


def test_what_has_no_yes_or_no_is_skipped_with_the_reason(ask: Any) -> None:
    posts = [
        *(
            metaculus_post_body(n, "?", SampleMetaculusQuestion(id=n, title="?", kind=kind))
            for n, kind in ((1, "numeric"), (2, "date"))
        ),
        metaculus_post_body(3, "?", SampleMetaculusQuestion(id=3, title="?", kind="discrete")),
        group(4, kind="numeric"),
        {"id": 5, "title": "?", "status": "open", "conditional": {"question_yes": {}, "question_no": {}}},
        {"id": 6, "title": "?", "status": "open", "notebook": {"markdown": "words"}},
        WAR,
    ]
    found, ledger = listing(ask, server(*posts))
    assert [event.question.id for event in found] == ["metaculus/20925"]
    assert [(s.id, s.reason, s.kind) for s in ledger.skipped] == [
        ("1", "a question of type numeric has no yes-or-no targets", "unsupported"),
        ("2", "a question of type date has no yes-or-no targets", "unsupported"),
        ("3", "a question of type discrete has no yes-or-no targets", "unsupported"),
        ("404", "a question of type numeric has no yes-or-no targets", "unsupported"),
        ("5", "a conditional has no yes-or-no targets of its own", "unsupported"),
        ("6", "a notebook has no yes-or-no targets of its own", "unsupported"),
    ]


def test_hidden_predictions_stay_hidden(ask: Any) -> None:
    secret = SampleMetaculusQuestion(id=1, title="?", centers=(0.9,), revealed="2026-11-05T00:00:00Z")
    (found,), _ = listing(ask, server(metaculus_post_body(1, "?", secret)))
    assert found.question.targets[0].snapshot is None
    old = SampleMetaculusQuestion(id=1, title="?", centers=(0.7, 0.3), revealed="2026-10-05T00:00:00Z")
    assert one(ask, server(metaculus_post_body(1, "?", old)), "1").question.targets[0].snapshot.last_price == 0.3
    withheld = SampleMetaculusQuestion(id=1, title="?")
    assert one(ask, server(metaculus_post_body(1, "?", withheld)), "1").question.targets[0].snapshot is None


def test_pages_tournaments_and_the_window(ask: Any) -> None:
    many = [
        metaculus_post_body(n, f"{n}?", SampleMetaculusQuestion(id=n, title="?", centers=(0.5,))) for n in range(1, 131)
    ]
    found, ledger = listing(
        ask, server(*many), limit=1000, tournaments=("minibench", "33121"), closes_after="2026-12-01"
    )
    assert (len(found), ledger.pages, ledger.complete) == (130, 2, True)
    assert [request.query["offset"] for request in ask.server.requests] == ["0", "100"]
    assert "tournaments=minibench&tournaments=33121" in ask.server.requests[0].target
    assert ask.server.requests[0].query["scheduled_resolve_time__gte"] == "2026-12-01T00:00:00+00:00"


def test_refusals(ask: Any) -> None:
    with pytest.raises(SourceError, match="none was given"):
        one(ask, server(), "20925", token="")
    assert not ask.server.requests
    with pytest.raises(SourceError, match="401") as wrong:
        one(ask, server(), "20925", token="canary-wrong")
    assert "canary-wrong" not in str(wrong.value)
    with pytest.raises(SourceError, match="403"):
        one(ask, server(forbidden=frozenset({"20925"})), "20925")
    with pytest.raises(SourceError, match="metaculus post 7 is not there"):
        one(ask, server(), "7")
    with pytest.raises(LiveOnly):
        one(ask, server(), "20925", AsOf(at=NOW.at))
    assert len(listing(ask, server(), faults=[failing(403), busy(), failing(502)])[0]) == 2


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
def test_drift_names_platform_event_and_field(ask: Any, path: str, change: Any, reason: str) -> None:
    found, ledger = listing(ask, server(trouble=MarketFaults(drifts=(FieldDrift(path=path, change=change),))))
    assert [event.question.id for event in found] == ["metaculus/301"]
    assert ledger.skipped[0].reason.startswith("metaculus event 20925: field ")
    assert reason in ledger.skipped[0].reason


def test_wrong_pages(ask: Any) -> None:
    for path in ("results", "next"):
        with pytest.raises(MalformedPayload, match=f"metaculus list: field {path} is missing"):
            listing(ask, server(trouble=MarketFaults(drifts=(FieldDrift(path=path),))))
    with pytest.raises(SourceError, match="503"):
        listing(ask, server(trouble=MarketFaults(down=("/posts",))))
    new = MarketFaults(drifts=(FieldDrift(path="results.*.question.brand_new", change="add"),))
    assert listing(ask, server(trouble=new))[1].notes() == ("2 × unknown field ignored: question.brand_new",)
