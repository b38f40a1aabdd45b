"""Manifold markets as events, over sockets."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, cut_off
from fakes.markets import FakeManifold
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventSource, ListedEvent, ListingFilter, ListingReport, LiveOnly
from foretell.data.markets.manifold import ManifoldClient, ManifoldEvents
from foretell.data.markets.prices import MarketRef, market_ref
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.manifold import (
    ManifoldCatalogue,
    SampleManifoldAnswer,
    SampleManifoldMarket,
    manifold_market_body,
)
from foretell.questions.as_of import AsOf, instant

NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")
RAIN = SampleManifoldMarket(
    id="rain000001", question="Will it rain on Nov 5?", p=0.62, topics=("weather", "fun"), volume=250
)
RACE = SampleManifoldMarket(
    id="race000001",
    question="Who wins?",
    kind="MULTIPLE_CHOICE",
    answers=(
        SampleManifoldAnswer(id="annanswer1", text="Ann", p=0.7),
        SampleManifoldAnswer(id="bobanswer1", text="Bob", p=0.3),
    ),
    token="CASH",
)


def server(*contracts: SampleManifoldMarket, trouble: MarketFaults | None = None) -> Any:
    catalogue = ManifoldCatalogue(manifold_market_body(contract) for contract in contracts or (RAIN, RACE))
    return FakeManifold({}).having(catalogue, trouble).server()


def make(http: Any, url: str) -> EventSource:
    return ManifoldEvents(ManifoldClient(http=http, host=f"{url}/v0", per_second=1e4))


def listing(ask: Any, fake: Any, *, faults: Any = None, **wish: Any) -> tuple[Any, ListingReport]:
    async def use(http: Any, url: str) -> Any:
        found = make(http, url).events(ListingFilter(as_of=NOW, **wish))
        return await found.all(), found.ledger

    return ask.run(fake, use, faults=faults)


def one(ask: Any, fake: Any, id: str, as_of: AsOf = NOW) -> ListedEvent:
    return ask.run(fake, lambda http, url: make(http, url).event(id, as_of))


def test_a_yes_or_no_market(ask: Any) -> None:
    (rain, _), ledger = listing(ask, server())
    question = rain.question
    assert (question.id, question.text, question.exclusive) == ("manifold/rain000001", "Will it rain on Nov 5?", False)
    (yes,) = question.targets
    assert yes.snapshot is not None
    assert (yes.id, yes.snapshot.last_price, yes.snapshot.price, yes.snapshot.yes_ask) == ("yes", 0.62, 0.62, None)
    assert (question.criteria, question.opens_at) == ("Resolves yes if it happens.", instant("2026-01-01"))
    assert (rain.closes_at, rain.unit, rain.traders) == (instant("2027-01-01"), "MANA", 12)
    assert (rain.volume, rain.volume_24h, rain.liquidity, rain.open_interest) == (250, 25, 1000, None)
    assert (rain.category, rain.tags, rain.recurrence) == ("weather", ("weather", "fun"), "will it rain on #?")
    assert market_ref(question) == MarketRef(platform="manifold", id="rain000001")
    assert ledger.notes() == ()


def test_a_choice_with_one_answer_and_one_with_several(ask: Any) -> None:
    free = SampleManifoldMarket(
        id="free000001",
        question="Which of these?",
        kind="MULTIPLE_CHOICE",
        sums_to_one=False,
        answers=(*RACE.answers, SampleManifoldAnswer(id="catanswer1", text="Cat", p=0.9, resolution="YES")),
    )
    (race, several), _ = listing(ask, server(RACE, free))
    assert [(target.id, target.label) for target in race.question.targets] == [
        ("annanswer1", "Ann"),
        ("bobanswer1", "Bob"),
    ]
    assert (race.question.exclusive, race.unit) == (True, "USD")
    assert (several.question.exclusive, several.finished) == (False, ("catanswer1",))
    assert market_ref(race.question, race.question.targets[1]) == MarketRef(
        platform="manifold", id="race000001#bobanswer1"
    )


def test_the_last_answer_left_is_still_told_from_the_market(ask: Any) -> None:
    answers = (RACE.answers[0], SampleManifoldAnswer(id="bobanswer1", text="Bob", p=0.0, resolution="NO"))
    last = SampleManifoldMarket(
        id="last000001", question="?", kind="MULTIPLE_CHOICE", sums_to_one=False, answers=answers
    )
    (found,), _ = listing(ask, server(last))
    assert market_ref(found.question) == MarketRef(platform="manifold", id="last000001#annanswer1")


def test_what_the_list_already_tells_saves_reading_a_market(ask: Any) -> None:
    far = SampleManifoldMarket(id="far0000001", question="?", p=0.5, closes_ms=4_000_000_000_000)
    small = SampleManifoldMarket(id="small00001", question="?", p=0.5, volume=1)
    poll = SampleManifoldMarket(id="poll000001", question="?", kind="POLL")
    window = {"closes_after": "2026-11-02", "closes_before": "2027-06-01", "minimum_volume": 50}
    found, ledger = listing(ask, server(far, small, poll, RAIN), **window)
    assert [event.question.id for event in found] == ["manifold/rain000001"]
    assert dict(ledger.left_out) == {"closes after the window": 1, "volume below the minimum": 1}
    assert [(skipped.id, skipped.reason) for skipped in ledger.skipped] == [
        ("poll000001", "a market of type POLL has no yes-or-no targets")
    ]
    paths = [request.path for request in ask.server.requests]
    assert paths == ["/v0/search-markets", "/v0/market/rain000001"]
    query = ask.server.requests[0].query
    assert (query["sort"], query["filter"], query["contractType"]) == ("close-date", "open", "ALL")
    listing(ask, server())
    assert ask.server.requests[0].query["sort"] == "most-popular"


def test_pages_go_on_until_one_is_short(ask: Any) -> None:
    many = [SampleManifoldMarket(id=f"m{n:09}", question=f"{n}?", p=0.5) for n in range(520)]
    found, ledger = listing(ask, server(*many), limit=1000, minimum_volume=1e6)
    assert (found, ledger.pages, ledger.left_out["volume below the minimum"]) == ([], 2, 520)
    assert listing(ask, server(), category="none such")[1].left_out["another category"] == 2
    listing(ask, server(*many), minimum_volume=1e6)
    assert [r.query["offset"] for r in ask.server.requests if r.path.endswith("search-markets")] == ["0", "500"]


def test_one_market_by_id_or_slug(ask: Any) -> None:
    assert one(ask, server(), "rain000001") == one(ask, server(), "slug:slug-rain000001")
    assert ask.server.requests[0].path == "/v0/slug/slug-rain000001"
    done = SampleManifoldMarket(id="done000001", question="?", p=0.99, resolution="YES", resolved_ms=1_790_000_000_000)
    shut = SampleManifoldMarket(id="shut000001", question="?", p=0.5, closes_ms=1_790_000_000_000)
    assert one(ask, server(done), "done000001").status == "resolved"
    assert one(ask, server(shut), "shut000001").status == "closed"
    with pytest.raises(SourceError, match="manifold event nope is not there"):
        one(ask, server(), "nope")
    with pytest.raises(SourceError, match="manifold event poll cannot be asked: a market of type POLL"):
        one(ask, server(SampleManifoldMarket(id="poll", question="?", kind="POLL")), "poll")
    with pytest.raises(LiveOnly):
        one(ask, server(), "rain000001", AsOf(at=NOW.at))


def test_a_market_that_vanished_meanwhile(ask: Any) -> None:
    fake = FakeManifold({}).having(ManifoldCatalogue([manifold_market_body(RAIN), manifold_market_body(RACE)]))
    whole = fake.catalogue.answer
    fake.catalogue.answer = lambda path, query: None if path.endswith("rain000001") else whole(path, query)
    found, ledger = listing(ask, fake.server())
    assert [event.question.id for event in found] == ["manifold/race000001"]
    assert [(skipped.id, skipped.kind) for skipped in ledger.skipped] == [("rain000001", "unknown")]


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        ("0.outcomeType", "drop", "field [0].outcomeType is missing"),
        ("0.volume", "retype", "field [0].volume is not a number"),
        ("question", "drop", "field question is missing"),
        ("probability", "drop", "field probability is missing"),
        ("textDescription", "rename", "field textDescription is missing"),
        ("isResolved", "retype", "field isResolved is not true or false"),
        ("createdTime", "drop", "field createdTime is missing"),
    ],
)
def test_drift_names_platform_event_and_field(ask: Any, path: str, change: Any, reason: str) -> None:
    other = SampleManifoldMarket(id="poll000001", question="?", kind="POLL")
    found, ledger = listing(
        ask, server(RAIN, other, trouble=MarketFaults(drifts=(FieldDrift(path=path, change=change),)))
    )
    assert found == []
    assert (ledger.skipped[0].kind, ledger.skipped[0].reason) == ("malformed", f"manifold event rain000001: {reason}")


def test_answers_that_changed_and_new_fields(ask: Any) -> None:
    for path, reason in (
        ("answers.1.id", "answers[1].id is missing"),
        ("answers.1.probability", "answers[1].probability is missing"),
        ("answers.1.text", "answers[1].text is missing"),
        ("shouldAnswersSumToOne", "shouldAnswersSumToOne is missing"),
        ("answers", "answers is missing"),
    ):
        found, ledger = listing(ask, server(trouble=MarketFaults(drifts=(FieldDrift(path=path),))))
        assert [event.question.id for event in found] == ["manifold/rain000001"]
        assert reason in ledger.skipped[0].reason
    new = MarketFaults(drifts=(FieldDrift(path="answers.*.mood", change="add"),))
    assert listing(ask, server(trouble=new))[1].notes() == ("2 × unknown field ignored: answer.mood",)


def test_wrong_pages_and_outages(ask: Any) -> None:
    with pytest.raises(SourceError, match=r"/market/rain000001.*503"):
        listing(ask, server(trouble=MarketFaults(down=("/market/",))))
    assert len(listing(ask, server(), faults=[busy(), cut_off()])[0]) == 2
    fake = FakeManifold({}).having(ManifoldCatalogue())
    fake.catalogue.answer = lambda path, query: (200, {"markets": []})
    with pytest.raises(MalformedPayload, match=r"manifold list: field \(the whole answer\) is not a list"):
        listing(ask, fake.server())
