"""What is wanted of a listing, and how one is walked through."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.data import MalformedPayload, NotFound, Payload, SourceError
from foretell.data.markets import (
    CataloguePage,
    ListedEvent,
    ListingFilter,
    ListingReport,
    LiveOnly,
    MarketEvents,
    MarketState,
    UnsupportedEvent,
    event_state,
    recurrence_template,
    require_live,
)
from foretell.questions import AsOf, Question, Target, instant

NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")


def event(id: str = "a", **fields: Any) -> ListedEvent:
    closes = fields.pop("closes", "2026-12-01")
    category = fields.pop("category", "Politics")
    question = Question(
        id=id,
        source="own",
        text="?",
        due=NOW.at,
        targets=(Target(id="yes"),),
        closes_at=None if closes is None else instant(closes),
        category=category,
    )
    return ListedEvent(question=question, **{"status": "open", "recurrence": "x", "volume": 50.0, **fields})


def test_a_backtest_gets_no_listing() -> None:
    with pytest.raises(LiveOnly, match="stored snapshots"):
        ListingFilter(as_of=AsOf(at=NOW.at))
    with pytest.raises(LiveOnly):
        require_live(AsOf.day("2026-01-01"))


@pytest.mark.parametrize(
    ("wish", "listed_event", "reason"),
    [
        ({}, event(), None),
        ({}, event(status="closed"), "closed, not open"),
        ({"closes_after": "2026-12-01"}, event(), None),
        ({"closes_after": "2026-12-02"}, event(), "closes before the window"),
        ({"closes_before": "2026-12-01"}, event(), None),
        ({"closes_before": "2026-11-30"}, event(), "closes after the window"),
        ({"closes_before": "2026-11-30"}, event(closes=None), "no close date is told"),
        ({}, event(closes=None), None),
        ({"category": "politics"}, event(), None),
        ({"category": "Fed"}, event(tags=("fed",)), None),
        ({"category": "Sports"}, event(), "another category"),
        ({"minimum_volume": 50.0}, event(), None),
        ({"minimum_volume": 50.1}, event(), "volume below the minimum"),
        ({"minimum_volume": 1.0}, event(volume=None), "no volume is told"),
        ({}, event(volume=None), None),
    ],
)
def test_why_an_event_is_not_wanted(wish: dict[str, Any], listed_event: ListedEvent, reason: str | None) -> None:
    assert ListingFilter(as_of=NOW, **wish).refusal(listed_event) == reason


@pytest.mark.parametrize(
    "wish", [{"limit": 0}, {"pages": 0}, {"closes_after": "2026-12-02", "closes_before": "2026-12-01"}]
)
def test_impossible_wishes(wish: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|later than"):
        ListingFilter(as_of=NOW, **wish)


class Shelf(MarketEvents):
    """A catalogue in memory: each entry says what happens to it."""

    platform = "shelf"
    key = "id"

    def __init__(self, *pages: list[Any], cursors: list[str | None] | None = None) -> None:
        self.pages = pages
        self.cursors = cursors or [*(str(n + 1) for n in range(len(pages) - 1)), None]
        self.asked: list[str] = []

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        self.asked.append(cursor)
        n = int(cursor or "0") % len(self.pages)
        whole = Payload(url="https://shelf.example/", value={"rows": self.pages[n]})
        return CataloguePage(rows=whole.need("rows").items(), following=self.cursors[n])

    async def fetch(self, id: str) -> Payload:
        raise NotImplementedError

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> Any:
        fate = row.need("fate").text()
        fates: dict[str, Callable[[], Any]] = {
            "odd": lambda: (_ for _ in ()).throw(UnsupportedEvent("it is odd")),
            "gone": lambda: (_ for _ in ()).throw(NotFound("no", url="", status=404)),
            "down": lambda: (_ for _ in ()).throw(SourceError("outage", url="", status=500)),
            "refused": lambda: event(""),
            "left": lambda: None,
        }
        return fates[fate]() if fate in fates else event(row.need("id").name(), status=fate)


def rows(*fates: str) -> list[dict[str, str]]:
    return [{"id": f"{fate}{n}", "fate": fate} for n, fate in enumerate(fates)]


def walked(shelf: Shelf, **wish: Any) -> tuple[list[str], ListingReport]:
    async def use() -> tuple[list[str], ListingReport]:
        listing = shelf.events(ListingFilter(as_of=NOW, **wish))
        return [one.question.id for one in await listing.all()], listing.ledger

    return asyncio.run(use())


def test_one_bad_event_never_kills_a_page() -> None:
    bad: list[Any] = [{"id": "nofate"}, {"id": "refused", "fate": "refused"}, "rubbish"]
    found, ledger = walked(Shelf([*bad, *rows("open", "odd", "gone", "left", "closed")], rows("open")))
    assert found == ["open0"]
    assert [(one.id, one.kind) for one in ledger.skipped] == [
        ("nofate", "malformed"),
        ("refused", "malformed"),
        ("at rows[2]", "malformed"),
        ("odd1", "unsupported"),
        ("gone2", "unknown"),
    ]
    assert "shelf event nofate: field rows[0].fate is missing" in ledger.skipped[0].reason
    assert "a question needs an id" in ledger.skipped[1].reason
    assert dict(ledger.left_out) == {"closed, not open": 1}
    assert (ledger.complete, ledger.pages) == (True, 2)
    assert "1 × skipped: it is odd" in ledger.notes()
    assert "1 × left out: closed, not open" in ledger.notes()


def test_a_page_on_which_nothing_can_be_read_fails_loudly() -> None:
    with pytest.raises(
        MalformedPayload, match=r"none of 2 entries could be read; shelf event a: field rows\[0\]\.fate"
    ):
        walked(Shelf([{"id": "a"}, {"id": "b"}]))
    found, ledger = walked(Shelf([{"id": "a"}]))
    assert (found, len(ledger.skipped)) == ([], 1)
    found, ledger = walked(Shelf(rows("odd", "odd")))
    assert (found, len(ledger.skipped)) == ([], 2)


def test_wrong_pages_and_outages_are_errors() -> None:
    class Wrong(Shelf):
        async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
            Payload(url="https://shelf.example/", value={}).need("rows")
            raise AssertionError

    with pytest.raises(MalformedPayload, match="shelf list: field rows is missing"):
        walked(Wrong([]))
    with pytest.raises(SourceError, match="outage"):
        walked(Shelf(rows("open", "down")))


def test_limits_pages_and_cursors_that_lead_in_circles() -> None:
    shelf = Shelf(rows("open"), rows("open"), rows("open"))
    found, ledger = walked(Shelf([{"id": f"{n}", "fate": "open"} for n in range(5)]), limit=3)
    assert (found, ledger.complete) == (["0", "1", "2"], False)
    found, ledger = walked(shelf, pages=2)
    assert (shelf.asked, found, ledger.complete) == (["", "1"], ["open0"], False)
    with pytest.raises(MalformedPayload, match="shelf list: the cursor leads back"):
        walked(Shelf(rows("open"), cursors=["7"]))


def test_reading_may_be_stopped() -> None:
    shelf = Shelf(rows("open"), [{"id": "later", "fate": "open"}])

    async def use() -> str:
        listing = shelf.events(ListingFilter(as_of=NOW))
        first = await anext(listing)
        await listing.aclose()
        assert await listing.all() == []
        return first.question.id

    assert (asyncio.run(use()), shelf.asked) == ("open0", [""])


ROW = Payload(url="", value={})


def market(id: str, status: Any, *, lost: bool = False) -> MarketState:
    return MarketState(row=ROW, target=Target(id=id), status=status, lost=lost)


def test_what_is_over_is_not_asked_and_exclusivity_is_kept_only_if_it_holds() -> None:
    a, b = market("a", "open"), market("b", "unopened")
    whole = event_state([a, b], exclusivity="exactly one")
    assert (whole.exclusivity, whole.status, whole.finished) == ("exactly one", "open", ())
    lost = event_state([a, b, market("c", "resolved", lost=True)], exclusivity="exactly one")
    assert (lost.exclusivity, lost.finished) == ("exactly one", ("c",))
    for left_out in (market("c", "closed"), None):
        assert event_state([a, b, left_out], exclusivity="exactly one").exclusivity == "at most one"
        assert event_state([a, b, left_out], exclusivity="at most one").exclusivity == "at most one"
        assert event_state([a, b, left_out], exclusivity="independent").exclusivity == "independent"
    over = event_state([market("a", "resolved"), market("b", "resolved", lost=True)], exclusivity="exactly one")
    assert (len(over.asked), over.exclusivity, over.status) == (2, "exactly one", "resolved")
    assert event_state([market("a", "resolved"), market("b", "closed")], exclusivity="independent").status == "closed"
    assert event_state([b], exclusivity="independent").status == "unopened"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Fed funds rate in Mar 2024?", "Fed funds rate in December 2026?"),
        ("Highest temperature in NYC on Nov 1?", "Highest temperature in NYC on May 12?"),
        ("Will X win on 2026-11-03?", "Will X win on 2027-01-15?"),
        ("Bitcoin above $95k on Friday?", "Bitcoin above $120,000.50 on Monday?"),
    ],
)
def test_repeated_formats_look_alike(one: str, other: str) -> None:
    assert recurrence_template(one) == recurrence_template(other)


def test_different_questions_do_not() -> None:
    assert recurrence_template("What may happen?") == "what may happen?"
    assert recurrence_template("Will Ann win?") != recurrence_template("Will Bob win?")


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=60))
def test_a_template_is_its_own_template(title: str) -> None:
    assert recurrence_template(recurrence_template(title)) == recurrence_template(title)
