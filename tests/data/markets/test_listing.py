"""Filters of listings, and how pages are read."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.data.http import NotFound, SourceError
from foretell.data.markets.listing import (
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
from foretell.data.payload import MalformedPayload, Payload
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Question, Target

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
    ("options", "listed_event", "reason"),
    [
        ({}, event(), None),
        ({}, event(status="closed"), "closed, not open"),
        ({"closes_after": "2026-12-01"}, event(), None),
        ({"closes_after": "2026-12-02"}, event(), "closes before the window"),
        ({"closes_before": "2026-12-01"}, event(), None),
        ({"closes_before": "2026-11-30"}, event(), "closes after the window"),
        ({"closes_before": "2026-11-30"}, event(closes=None), "no close date is stated"),
        ({}, event(closes=None), None),
        ({"category": "politics"}, event(), None),
        ({"category": "Fed"}, event(tags=("fed",)), None),
        ({"category": "Sports"}, event(), "another category"),
        ({"minimum_volume": 50.0}, event(), None),
        ({"minimum_volume": 50.1}, event(), "volume below the minimum"),
        ({"minimum_volume": 1.0}, event(volume=None), "no volume is stated"),
        ({}, event(volume=None), None),
    ],
)
def test_the_filter_returns_why_an_event_does_not_match(
    options: dict[str, Any], listed_event: ListedEvent, reason: str | None
) -> None:
    assert ListingFilter(as_of=NOW, **options).refusal(listed_event) == reason


@pytest.mark.parametrize(
    "options", [{"limit": 0}, {"pages": 0}, {"closes_after": "2026-12-02", "closes_before": "2026-12-01"}]
)
def test_impossible_filters_raise_value_error(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|later than"):
        ListingFilter(as_of=NOW, **options)


class MemoryCatalogue(MarketEvents):
    """A catalogue in memory; each entry states what happens when it is read."""

    platform = "memory"
    key = "id"

    def __init__(self, *pages: list[Any], cursors: list[str | None] | None = None) -> None:
        self.pages = pages
        self.cursors = cursors or [*(str(n + 1) for n in range(len(pages) - 1)), None]
        self.cursors_read: list[str] = []

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        self.cursors_read.append(cursor)
        n = int(cursor or "0") % len(self.pages)
        whole = Payload(url="https://memory.example/", value={"rows": self.pages[n]})
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


def listed_ids(catalogue: MemoryCatalogue, **options: Any) -> tuple[list[str], ListingReport]:
    async def use() -> tuple[list[str], ListingReport]:
        listing = catalogue.events(ListingFilter(as_of=NOW, **options))
        return [listed.question.id for listed in await listing.all()], listing.ledger

    return asyncio.run(use())


def test_one_unreadable_event_does_not_affect_the_others() -> None:
    bad: list[Any] = [{"id": "nofate"}, {"id": "refused", "fate": "refused"}, "rubbish"]
    ids, ledger = listed_ids(MemoryCatalogue([*bad, *rows("open", "odd", "gone", "left", "closed")], rows("open")))
    assert ids == ["open0"]
    assert [(entry.id, entry.kind) for entry in ledger.skipped] == [
        ("nofate", "malformed"),
        ("refused", "malformed"),
        ("at rows[2]", "malformed"),
        ("odd1", "unsupported"),
        ("gone2", "unknown"),
    ]
    assert "memory event nofate: field rows[0].fate is missing" in ledger.skipped[0].reason
    assert "Question, field id: is empty" in ledger.skipped[1].reason
    assert dict(ledger.left_out) == {"closed, not open": 1}
    assert (ledger.complete, ledger.pages) == (True, 2)
    assert "1 × skipped: it is odd" in ledger.notes()
    assert "1 × left out: closed, not open" in ledger.notes()


def test_a_page_without_any_readable_event_raises() -> None:
    with pytest.raises(
        MalformedPayload, match=r"none of 2 entries could be read; memory event a: field rows\[0\]\.fate"
    ):
        listed_ids(MemoryCatalogue([{"id": "a"}, {"id": "b"}]))
    ids, ledger = listed_ids(MemoryCatalogue([{"id": "a"}]))
    assert (ids, len(ledger.skipped)) == ([], 1)
    ids, ledger = listed_ids(MemoryCatalogue(rows("odd", "odd")))
    assert (ids, len(ledger.skipped)) == ([], 2)


def test_malformed_pages_and_outages_raise() -> None:
    class Wrong(MemoryCatalogue):
        async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
            Payload(url="https://memory.example/", value={}).need("rows")
            raise AssertionError

    with pytest.raises(MalformedPayload, match="memory list: field rows is missing"):
        listed_ids(Wrong([]))
    with pytest.raises(SourceError, match="outage"):
        listed_ids(MemoryCatalogue(rows("open", "down")))


def test_limits_end_a_listing_and_a_repeated_cursor_raises() -> None:
    catalogue = MemoryCatalogue(rows("open"), rows("open"), rows("open"))
    ids, ledger = listed_ids(MemoryCatalogue([{"id": f"{n}", "fate": "open"} for n in range(5)]), limit=3)
    assert (ids, ledger.complete) == (["0", "1", "2"], False)
    ids, ledger = listed_ids(catalogue, pages=2)
    assert (catalogue.cursors_read, ids, ledger.complete) == (["", "1"], ["open0"], False)
    with pytest.raises(MalformedPayload, match="memory list: the cursor leads back"):
        listed_ids(MemoryCatalogue(rows("open"), cursors=["7"]))


def test_a_closed_listing_requests_no_more_pages() -> None:
    catalogue = MemoryCatalogue(rows("open"), [{"id": "later", "fate": "open"}])

    async def use() -> str:
        listing = catalogue.events(ListingFilter(as_of=NOW))
        first = await anext(listing)
        await listing.aclose()
        assert await listing.all() == []
        return first.question.id

    assert (asyncio.run(use()), catalogue.cursors_read) == ("open0", [""])


ROW = Payload(url="", value={})


def market(id: str, status: Any, *, lost: bool = False) -> MarketState:
    return MarketState(row=ROW, target=Target(id=id), status=status, lost=lost)


def test_finished_markets_are_left_out_and_exclusivity_is_adjusted() -> None:
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
    assert (len(over.markets), over.exclusivity, over.status) == (2, "exactly one", "resolved")
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
def test_repeated_formats_have_the_same_template(one: str, other: str) -> None:
    assert recurrence_template(one) == recurrence_template(other)


def test_different_questions_have_different_templates() -> None:
    assert recurrence_template("What may happen?") == "what may happen?"
    assert recurrence_template("Will Ann win?") != recurrence_template("Will Bob win?")


@settings(max_examples=100)
@given(st.text(max_size=60))
def test_the_template_of_a_template_is_itself(title: str) -> None:
    assert recurrence_template(recurrence_template(title)) == recurrence_template(title)
