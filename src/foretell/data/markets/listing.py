"""Events that platforms list now, with the quotes of their markets. For live use only: everything is as of today."""

import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from foretell.data.http import NotFound, SourceError
from foretell.data.payload import MalformedPayload, Payload
from foretell.data.untrusted import for_log
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf, UtcDatetime, instant
from foretell.questions.errors import InputError, WrongValue
from foretell.questions.field_checks import check_least
from foretell.questions.question import Exclusivity, Question, Target, with_some_left_out

T = TypeVar("T")
log = logging.getLogger(__name__)
MarketStatus = Literal["unopened", "open", "closed", "resolved"]
VolumeUnit = Literal["USD", "MANA"]
REFUSED = (400, 410, 413, 414, 422, 451)
"""Status codes with which a server rejects this one request, whatever it says to others."""


class LiveOnly(ValueError):
    """A listing was requested in a backtest. It would leak results, moved close times and final volumes."""


@frozen
class ListedEvent:
    """One event of a platform: the question about it, and its trading figures."""

    question: Question
    """The question; its targets are the event's markets, each with its current quotes."""
    status: MarketStatus
    recurrence: str
    """Same value for events that repeat one format: the platform's series, else the title without dates and numbers."""
    volume: float | None = None
    volume_24h: float | None = None
    liquidity: float | None = None
    open_interest: float | None = None
    unit: VolumeUnit = "USD"
    """Unit of the four numbers above."""
    traders: int | None = None
    """Number of people who traded or forecast, if the platform says."""
    tags: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    """Ids of markets of an open event that can no longer be asked about and therefore are not targets."""

    @property
    def platform(self) -> str:
        """The platform that lists the event."""
        return self.question.source

    @property
    def category(self) -> str:
        """Category given by the platform."""
        return self.question.category

    @property
    def closes_at(self) -> datetime | None:
        """When the last of its markets is expected to end."""
        return self.question.closes_at


@frozen
class SkippedEntry:
    """An entry of a platform that could not be used, and why."""

    platform: str
    id: str
    reason: str
    kind: Literal["malformed", "unsupported", "unknown"] = "malformed"
    """Malformed: unexpected structure. Unsupported: a type that we do not handle. Unknown: it does not exist."""

    @classmethod
    def because(cls, error: Exception, platform: str, id: str) -> "SkippedEntry":
        """Create the entry for an error."""
        kind = "malformed" if isinstance(error, MalformedPayload) else "unknown"
        if not isinstance(error, SourceError):
            return cls(platform=platform, id=id, reason=str(error), kind="unsupported")
        return cls(platform=platform, id=id, reason=error.problem, kind=kind)


def log_skipped(skipped: SkippedEntry) -> None:
    """Log a skipped entry, for callers that keep no list."""
    log.warning("skipped %s %s: %s", skipped.platform, for_log(skipped.id), for_log(skipped.reason))


@frozen
class ListingFilter:
    """Which events to list.

    >>> ListingFilter(as_of=AsOf.day("2026-11-01"))
    Traceback (most recent call last):
    ...
    foretell.data.markets.listing.LiveOnly: listings show what is known today; a backtest reads stored snapshots instead
    """

    as_of: AsOf
    """Time of the listing, which its snapshots carry. Its mode must be live."""
    closes_after: UtcDatetime | None = None
    closes_before: UtcDatetime | None = None
    category: str = ""
    """Category or tag to match, ignoring case."""
    minimum_volume: float = 0.0
    """Minimum volume in the platform's own unit. An event of unknown volume never reaches a minimum."""
    status: MarketStatus = "open"
    limit: int = 100
    """Maximum number of events returned."""
    pages: int = 50
    """Maximum number of pages requested."""

    def __post_init__(self) -> None:
        require_live(self.as_of)
        for name in ("closes_after", "closes_before"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, instant(getattr(self, name)))
        check_least(self, limit=1, pages=1)
        if self.closes_after and self.closes_before and self.closes_after > self.closes_before:
            raise ValueError("closes_after is later than closes_before")

    def refusal(self, event: ListedEvent) -> str | None:
        """Return why this event does not match, or None if it does."""
        if event.status != self.status:
            return f"{event.status}, not {self.status}"
        if event.closes_at is None and (self.closes_after or self.closes_before):
            return "no close date is stated"
        if self.category and self.category.casefold() not in {n.casefold() for n in (event.category, *event.tags)}:
            return "another category"
        if self.minimum_volume > 0 and event.volume is None:
            return "no volume is stated"
        return self.outside(event.closes_at, event.volume or 0.0)

    def outside(self, closes: datetime | None, volume: float) -> str | None:
        """Return why an event with this close time and volume does not match, or None if it does."""
        if closes is not None and self.closes_before and closes > self.closes_before:
            return "closes after the window"
        if closes is not None and self.closes_after and closes < self.closes_after:
            return "closes before the window"
        return "volume below the minimum" if volume < self.minimum_volume else None


class ListingReport:
    """What a listing skipped, left out and noticed while reading."""

    def __init__(self) -> None:
        self.skipped: list[SkippedEntry] = []
        self.left_out: Counter[str] = Counter()
        """Readable events that did not match the filter, counted by reason."""
        self.noted: Counter[str] = Counter()
        """Other observations that may be of interest, counted."""
        self.pages = 0
        self.complete = False
        """Whether the platform had nothing more to list; False if the limit or the page limit was reached first."""

    def add(self, other: "ListingReport") -> None:
        """Add what another listing skipped and left out."""
        self.skipped += other.skipped
        self.left_out.update(other.left_out)
        self.pages, self.complete = self.pages + other.pages, other.complete

    def notes(self) -> tuple[str, ...]:
        """Return readable notes with counts."""
        skipped = Counter(f"skipped: {entry.reason}" for entry in self.skipped)
        left_out = Counter({f"left out: {reason}": n for reason, n in self.left_out.items()})
        counted = [line for counts in (skipped, left_out, self.noted) for line in counts.most_common()]
        return tuple(f"{n} × {line}" for line, n in counted)


class EventListing(AsyncIterator[ListedEvent]):
    """Events as they arrive, with a report on those skipped or left out, which is complete once all are read."""

    def __init__(self, events: AsyncGenerator[ListedEvent], ledger: ListingReport) -> None:
        self._events = events
        self.ledger = ledger

    async def __anext__(self) -> ListedEvent:
        """Return the next event."""
        return await anext(self._events)

    async def aclose(self) -> None:
        """Stop reading."""
        await self._events.aclose()

    async def all(self) -> list[ListedEvent]:
        """Return all remaining events."""
        return [event async for event in self]


class EventSource(Protocol):
    """Lists the events of a platform as they are now."""

    @property
    def platform(self) -> str:
        """The platform it reads."""
        ...

    def events(self, wanted: ListingFilter) -> EventListing:
        """Return matching events in the platform's order. Events that cannot be read are skipped and reported."""
        ...

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """Return one event by the platform's own id, whatever its status. Raises `SourceError` if it cannot be read."""
        ...


def require_live(as_of: AsOf) -> None:
    """Raise `LiveOnly` in a backtest."""
    if as_of.mode != "live":
        raise LiveOnly("listings show what is known today; a backtest reads stored snapshots instead")


class UnsupportedEvent(Exception):
    """An event of a type that cannot be asked as yes/no targets."""


@frozen
class CataloguePage:
    """Entries of a page as sent, and the cursor of the next page."""

    rows: list[Payload]
    following: str | None = None
    """Cursor of the next page; None on the last page."""


class MarketEvents(ABC):
    """Reads a platform's list page by page. An event that cannot be read is skipped; a malformed page raises."""

    platform: str
    key = "id"
    """Name of the field that identifies an entry."""
    noun = "event"

    @abstractmethod
    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return the page at a cursor; an empty cursor is the first page."""

    @abstractmethod
    async def fetch(self, id: str) -> Payload:
        """Return one complete entry by the platform's own id."""

    @abstractmethod
    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Parse a complete entry as an event; may raise `UnsupportedEvent`."""

    async def read_listed(self, row: Payload, wanted: ListingFilter, report: ListingReport) -> ListedEvent | None:
        """Parse an entry of a page as an event; None if it was left out before it was read in full."""
        return await self.read(row, wanted.as_of, report)

    def events(self, wanted: ListingFilter) -> EventListing:
        """Return matching events in the platform's order. Events that cannot be read are skipped and reported."""
        report = ListingReport()
        return EventListing(self._walk(wanted, report), report)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """Return one event by the platform's own id, whatever its status. Raises `SourceError` if it cannot be read."""
        require_live(as_of)
        name = f"{self.platform} {self.noun} {id}"
        with error_context(name):
            row = await self.fetch(id)
            try:
                return await self.read(row, as_of, ListingReport())
            except UnsupportedEvent as error:
                raise SourceError(f"{name} cannot be used: {error}", url=row.url) from None

    async def _walk(self, wanted: ListingFilter, report: ListingReport) -> AsyncGenerator[ListedEvent]:
        cursor, cursors, met = "", {""}, set[str]()
        while report.pages < wanted.pages:
            with error_context(f"{self.platform} list"):
                page = await self.page(wanted, cursor)
                if page.following in cursors:
                    url = page.rows[0].url if page.rows else ""
                    raise MalformedPayload("the cursor leads back to a page already read", url=url)
            report.pages += 1
            async for event in self._readable(page, wanted, report):
                # An entry may be listed twice, because lists shift while they are read.
                if event.question.id not in met:
                    met.add(event.question.id)
                    yield event
                if len(met) == wanted.limit:
                    return
            if page.following is None:
                report.complete = True
                return
            cursor = page.following
            cursors.add(cursor)

    async def _readable(
        self, page: CataloguePage, wanted: ListingFilter, report: ListingReport
    ) -> AsyncIterator[ListedEvent]:
        """Yield matching events of a page. If no entry can be read, the platform has changed, and that raises."""
        unreadable: list[SkippedEntry] = []
        for row in page.rows:
            value = row.value.get(self.key) if isinstance(row.value, dict) else None
            id = str(value) if isinstance(value, str | int) else f"at {row.path or 'the top'}"
            try:
                with error_context(f"{self.platform} event {id}", row.url):
                    event = await self.read_listed(row, wanted, report)
            except (UnsupportedEvent, SourceError) as error:
                # Failures of the whole service are not about one entry.
                if isinstance(error, SourceError) and not (
                    isinstance(error, MalformedPayload | NotFound) or error.status in REFUSED
                ):
                    raise
                report.skipped.append(SkippedEntry.because(error, self.platform, id))
                unreadable += report.skipped[-1:] if isinstance(error, MalformedPayload) else []
                continue
            if event is not None and (reason := wanted.refusal(event)):
                report.left_out[reason] += 1
            elif event is not None:
                yield event
        if len(unreadable) == len(page.rows) > 1:
            problem = f"none of {len(unreadable)} entries could be read; {unreadable[0].reason}"
            raise MalformedPayload(problem, url=page.rows[0].url)


@contextmanager
def error_context(what: str, url: str = "") -> Generator[None]:
    """Prefix every error with what it is about; a `ValueError` of our own types becomes `MalformedPayload`."""
    try:
        yield
    except MalformedPayload as error:
        raise MalformedPayload(f"{what}: {error.problem}", url=error.url) from None
    except ValueError as error:
        if isinstance(error, InputError) and not isinstance(error, WrongValue):
            raise
        raise MalformedPayload(f"{what}: {error}", url=url) from None
    except NotFound as error:
        raise NotFound(f"{what} does not exist", url=error.url, status=error.status) from None


def readable(
    rows: Sequence[Payload],
    read: Callable[[Payload], T | None],
    platform: str,
    id: str,
    tell: Callable[[SkippedEntry], None] = log_skipped,
) -> list[T]:
    """Parse entries about one thing; those that cannot be read are counted and reported, and the rest is returned.

    If none of several can be read, the platform has changed, and that raises `MalformedPayload`.
    """
    values: list[T] = []
    unreadable: list[MalformedPayload] = []
    for row in rows:
        try:
            with error_context(f"{platform} {id}", row.url):
                value = read(row)
        except MalformedPayload as error:
            unreadable.append(error)
            continue
        values += [] if value is None else [value]
    if unreadable:
        problem = f"{len(unreadable)} of {len(rows)} entries could not be read; {unreadable[0].problem}"
        if len(unreadable) == len(rows) > 1:
            raise MalformedPayload(problem, url=unreadable[0].url)
        tell(SkippedEntry(platform=platform, id=id, reason=problem))
    return values


def total(amounts: Iterable[float | None]) -> float | None:
    """Return the sum of the known amounts; None if none is known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


# Recognising repeated formats by their titles, for platforms that do not name a series.

MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?)"
LATE_MONTH = r"(?:nov(?:ember)?|dec(?:ember)?|may(?=\W+\d)|(?<=\d )may)"
DAY = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day"
NUMBER = r"[-+]?[$€£]?\d[\d,.:]*(?:st|nd|rd|th|k|m|bn?|t|bps?|%|°[cf]?|am|pm|c|f)*"
VARYING = pattern(rf"\b{MONTH}\b\.?|\b{LATE_MONTH}\b\.?|\b{DAY}\b|(?<!\w){NUMBER}(?!\w)")


def recurrence_template(title: str) -> str:
    """Replace the dates and numbers of a title, so that repeated formats get the same template.

    >>> recurrence_template("Bitcoin above $120,000 on October 11, 2026?")
    'bitcoin above # on #?'
    >>> recurrence_template("Bitcoin above $95k on May 3?")
    'bitcoin above # on #?'
    """
    bare = VARYING.sub("#", " ".join(title.casefold().split()))
    return re.sub(r"#(?:[\s,/–-]*#)+", "#", bare)


# Which markets of an event can still be asked about.

ACTIVE_STATUSES: tuple[MarketStatus, ...] = ("open", "unopened")


@frozen
class MarketState:
    """One market of an event."""

    row: Payload
    target: Target
    status: MarketStatus
    lost: bool = False
    """Whether it is known to have resolved to no."""


@frozen
class EventState:
    """State of an event: the markets that can still be asked about, and its overall status."""

    markets: tuple[MarketState, ...]
    """The markets that are still active, or all of them if none is."""
    finished: tuple[str, ...]
    exclusivity: Exclusivity
    status: MarketStatus


def event_state(markets: Sequence[MarketState | None], *, exclusivity: Exclusivity) -> EventState:
    """Separate the markets that are over from those that can still be asked about.

    If the platform says that exactly one market resolves to yes, this holds for the remaining ones only if all others
    have lost. If a closed one has won, none of the remaining resolves to yes, so it becomes "at most one".
    """
    known = [market for market in markets if market is not None]
    active = [market for market in known if market.status in ACTIVE_STATUSES]
    finished = [market for market in known if market not in active] if active else []
    certain = len(known) == len(markets) and all(market.lost for market in finished)
    statuses: set[MarketStatus] = {market.status for market in known}
    over: MarketStatus = "resolved" if statuses == {"resolved"} else "closed"
    return EventState(
        markets=tuple(active or known),
        finished=tuple(market.target.id for market in finished),
        exclusivity=exclusivity if certain else with_some_left_out(exclusivity),
        status="open" if "open" in statuses else "unopened" if "unopened" in statuses else over,
    )
