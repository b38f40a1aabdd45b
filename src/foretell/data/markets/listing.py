"""Events that platforms list now, with their markets' quotes. For live use only: all of it is told as of today."""

import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from foretell.data.http import NotFound, SourceError
from foretell.data.payload import MalformedPayload, Payload
from foretell.data.untrusted import for_log
from foretell.questions.as_of import AsOf, UtcDatetime, instant
from foretell.questions.question import Exclusivity, Question, Target, with_some_left_out

T = TypeVar("T")
log = logging.getLogger(__name__)
MarketStatus = Literal["unopened", "open", "closed", "resolved"]
VolumeUnit = Literal["USD", "MANA"]
REFUSED = (400, 410, 413, 414, 422, 451)
"""What a server says to a request that it cannot bear or will not answer, whatever it says to others."""


class LiveOnly(ValueError):
    """Listings tell results, moved close times and final volumes: in a backtest they would be leaks."""


@dataclass(frozen=True, kw_only=True)
class ListedEvent:
    """One event of a platform: what can be asked about it, and how much it is traded."""

    question: Question
    """Its markets are the targets, each with the quotes of this moment."""
    status: MarketStatus
    recurrence: str
    """The same for events that repeat one format: the platform's series, else the title without dates and numbers."""
    volume: float | None = None
    volume_24h: float | None = None
    liquidity: float | None = None
    open_interest: float | None = None
    unit: VolumeUnit = "USD"
    """What the four numbers above are counted in."""
    traders: int | None = None
    """People who traded or forecast, where the platform tells."""
    tags: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    """Ids of markets of an open event that can no longer be asked about, and so are no targets."""

    @property
    def platform(self) -> str:
        """Where it is listed."""
        return self.question.source

    @property
    def category(self) -> str:
        """As the platform files it."""
        return self.question.category

    @property
    def closes_at(self) -> datetime | None:
        """When the last of its markets is expected to end."""
        return self.question.closes_at


@dataclass(frozen=True, kw_only=True)
class SkippedEntry:
    """Something a platform offered that could not be used, and why."""

    platform: str
    id: str
    reason: str
    kind: Literal["malformed", "unsupported", "unknown"] = "malformed"
    """Not in the shape we rely on; of a sort we do not handle; not there at all."""

    @classmethod
    def because(cls, error: Exception, platform: str, id: str) -> "SkippedEntry":
        """The entry that an error is about."""
        kind = "malformed" if isinstance(error, MalformedPayload) else "unknown"
        if not isinstance(error, SourceError):
            return cls(platform=platform, id=id, reason=str(error), kind="unsupported")
        return cls(platform=platform, id=id, reason=error.problem, kind=kind)


OnSkipped = Callable[[SkippedEntry], None]


def ignore_skipped(skipped: SkippedEntry) -> None:
    """The listener of those who do not care what was skipped."""


def log_skipped(skipped: SkippedEntry) -> None:
    """The listener of those who keep no list: what was skipped is named in the log."""
    log.warning("skipped %s %s: %s", skipped.platform, for_log(skipped.id), for_log(skipped.reason))


@dataclass(frozen=True, kw_only=True)
class ListingFilter:
    """Which events to list.

    >>> ListingFilter(as_of=AsOf.day("2026-11-01"))
    Traceback (most recent call last):
    ...
    foretell.data.markets.listing.LiveOnly: listings tell what is known today; a backtest reads stored snapshots instead
    """

    as_of: AsOf
    """The moment of the listing, which its snapshots carry. Its mode must be live."""
    closes_after: UtcDatetime | None = None
    closes_before: UtcDatetime | None = None
    category: str = ""
    """Also matches a tag; upper and lower case are the same."""
    minimum_volume: float = 0.0
    """In the platform's own unit. An event whose volume is not told reaches no minimum."""
    status: MarketStatus = "open"
    limit: int = 100
    """Most events handed over."""
    pages: int = 50
    """Most pages asked for."""

    def __post_init__(self) -> None:
        require_live(self.as_of)
        for name in ("closes_after", "closes_before"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, instant(getattr(self, name)))
        if self.limit < 1 or self.pages < 1:
            raise ValueError("limit and pages must be at least 1")
        if self.closes_after and self.closes_before and self.closes_after > self.closes_before:
            raise ValueError("closes_after is later than closes_before")

    def refusal(self, event: ListedEvent) -> str | None:
        """Why this event is not wanted, or None."""
        if event.status != self.status:
            return f"{event.status}, not {self.status}"
        if event.closes_at is None and (self.closes_after or self.closes_before):
            return "no close date is told"
        if self.category and self.category.casefold() not in {n.casefold() for n in (event.category, *event.tags)}:
            return "another category"
        if self.minimum_volume > 0 and event.volume is None:
            return "no volume is told"
        return self.outside(event.closes_at, event.volume or 0.0)

    def outside(self, closes: datetime | None, volume: float) -> str | None:
        """Why what closes then and is traded so much is not wanted, or None."""
        if closes is not None and self.closes_before and closes > self.closes_before:
            return "closes after the window"
        if closes is not None and self.closes_after and closes < self.closes_after:
            return "closes before the window"
        return "volume below the minimum" if volume < self.minimum_volume else None


class ListingReport:
    """What was met while reading and not handed over."""

    def __init__(self) -> None:
        self.skipped: list[SkippedEntry] = []
        self.left_out: Counter[str] = Counter()
        """Good events that were not wanted, by reason."""
        self.noted: Counter[str] = Counter()
        """What else was met that somebody may want to know."""
        self.pages = 0
        self.complete = False
        """Whether the platform had nothing more to offer; not so where the limit or the page cap came first."""

    def add(self, other: "ListingReport") -> None:
        """Also what another listing met."""
        self.skipped += other.skipped
        self.left_out.update(other.left_out)
        self.pages, self.complete = self.pages + other.pages, other.complete

    def notes(self) -> tuple[str, ...]:
        """What happened, with counts, for people."""
        skipped = Counter(f"skipped: {one.reason}" for one in self.skipped)
        left_out = Counter({f"left out: {reason}": n for reason, n in self.left_out.items()})
        counted = [line for counts in (skipped, left_out, self.noted) for line in counts.most_common()]
        return tuple(f"{n} × {line}" for line, n in counted)


class EventListing(AsyncIterator[ListedEvent]):
    """Events as they come in, and beside them the ledger of what did not get through; whole once it is exhausted."""

    def __init__(self, events: AsyncGenerator[ListedEvent], ledger: ListingReport) -> None:
        self._events = events
        self.ledger = ledger

    async def __anext__(self) -> ListedEvent:
        """The next event."""
        return await anext(self._events)

    async def aclose(self) -> None:
        """Stop reading."""
        await self._events.aclose()

    async def all(self) -> list[ListedEvent]:
        """All the events that are left."""
        return [event async for event in self]


class EventSource(Protocol):
    """Lists the events of a platform as they are now."""

    @property
    def platform(self) -> str:
        """The platform it reads."""
        ...

    def events(self, wanted: ListingFilter) -> EventListing:
        """Events fit for the wish, in the platform's order. One that cannot be read is skipped and told."""
        ...

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One event by the platform's own id, whatever its status. Raises `SourceError` where it cannot be read."""
        ...


def require_live(as_of: AsOf) -> None:
    """Refuse a backtest."""
    if as_of.mode != "live":
        raise LiveOnly("listings tell what is known today; a backtest reads stored snapshots instead")


class UnsupportedEvent(Exception):
    """An event of a sort that cannot be asked as yes-or-no targets."""


@dataclass(frozen=True, kw_only=True)
class CataloguePage:
    """Entries as sent, and the way to the next page."""

    rows: list[Payload]
    following: str | None = None
    """None at the end."""


class MarketEvents(ABC):
    """Walks through a platform's list page by page: one event that cannot be read is skipped, a wrong page is not."""

    platform: str
    key = "id"
    """The field that identifies an entry."""
    noun = "event"

    @abstractmethod
    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """The page a cursor leads to; an empty cursor is the first."""

    @abstractmethod
    async def fetch(self, id: str) -> Payload:
        """One whole entry by the platform's own id."""

    @abstractmethod
    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """A whole entry as an event; may raise `UnsupportedEvent`."""

    async def read_listed(self, row: Payload, wanted: ListingFilter, report: ListingReport) -> ListedEvent | None:
        """An entry of a page as an event; None where it was left out before all of it was read."""
        return await self.read(row, wanted.as_of, report)

    def events(self, wanted: ListingFilter) -> EventListing:
        """Events fit for the wish, in the platform's order. One that cannot be read is skipped and told."""
        report = ListingReport()
        return EventListing(self._walk(wanted, report), report)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One event by the platform's own id, whatever its status. Raises `SourceError` where it cannot be read."""
        require_live(as_of)
        name = f"{self.platform} {self.noun} {id}"
        with error_context(name):
            row = await self.fetch(id)
            try:
                return await self.read(row, as_of, ListingReport())
            except UnsupportedEvent as error:
                raise SourceError(f"{name} cannot be asked: {error}", url=row.url) from None

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
                # Lists that shift while they are read show an entry twice.
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
        """Wanted events of a page. If not a single entry can be read, the platform has changed and that is an error."""
        broken: list[SkippedEntry] = []
        for row in page.rows:
            value = row.value.get(self.key) if isinstance(row.value, dict) else None
            id = str(value) if isinstance(value, str | int) else f"at {row.path or 'the top'}"
            try:
                with error_context(f"{self.platform} event {id}", row.url):
                    event = await self.read_listed(row, wanted, report)
            except (UnsupportedEvent, SourceError) as error:
                # Trouble with the whole service is no matter of one entry.
                if isinstance(error, SourceError) and not (
                    isinstance(error, MalformedPayload | NotFound) or error.status in REFUSED
                ):
                    raise
                report.skipped.append(SkippedEntry.because(error, self.platform, id))
                broken += report.skipped[-1:] if isinstance(error, MalformedPayload) else []
                continue
            if event is not None and (reason := wanted.refusal(event)):
                report.left_out[reason] += 1
            elif event is not None:
                yield event
        if len(broken) == len(page.rows) > 1:
            problem = f"none of {len(broken)} entries could be read; {broken[0].reason}"
            raise MalformedPayload(problem, url=page.rows[0].url)


@contextmanager
def error_context(what: str, url: str = "") -> Generator[None]:
    """Says in every complaint what it is about; a value our own types refuse is a complaint like the others."""
    try:
        yield
    except MalformedPayload as error:
        raise MalformedPayload(f"{what}: {error.problem}", url=error.url) from None
    except ValueError as error:
        raise MalformedPayload(f"{what}: {error}", url=url) from None
    except NotFound as error:
        raise NotFound(f"{what} is not there", url=error.url, status=error.status) from None


def readable(
    rows: Sequence[Payload], read: Callable[[Payload], T | None], platform: str, id: str, tell: OnSkipped
) -> list[T]:
    """What can be read of some entries about one thing; those that cannot are counted and told, and spare the rest.

    If not a single one of several can be read, the platform has changed and that is an error.
    """
    found: list[T] = []
    broken: list[MalformedPayload] = []
    for row in rows:
        try:
            with error_context(f"{platform} {id}", row.url):
                value = read(row)
        except MalformedPayload as error:
            broken.append(error)
            continue
        found += [] if value is None else [value]
    if broken:
        problem = f"{len(broken)} of {len(rows)} entries could not be read; {broken[0].problem}"
        if len(broken) == len(rows) > 1:
            raise MalformedPayload(problem, url=broken[0].url)
        tell(SkippedEntry(platform=platform, id=id, reason=problem))
    return found


def total(amounts: Iterable[float | None]) -> float | None:
    """The sum of what was told; None where nothing was."""
    told = [one for one in amounts if one is not None]
    return sum(told) if told else None


# Telling repeated formats by their titles, for platforms that do not name a series.

MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?)"
LATE_MONTH = r"(?:nov(?:ember)?|dec(?:ember)?|may(?=\W+\d)|(?<=\d )may)"
DAY = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day"
NUMBER = r"[-+]?[$€£]?\d[\d,.:]*(?:st|nd|rd|th|k|m|bn?|t|bps?|%|°[cf]?|am|pm|c|f)*"
VARYING = re.compile(rf"\b{MONTH}\b\.?|\b{LATE_MONTH}\b\.?|\b{DAY}\b|(?<!\w){NUMBER}(?!\w)")


def recurrence_template(title: str) -> str:
    """What stays of a title when its dates and numbers are taken out, so that repeated formats look alike.

    >>> recurrence_template("Bitcoin above $120,000 on October 11, 2026?")
    'bitcoin above # on #?'
    >>> recurrence_template("Bitcoin above $95k on May 3?")
    'bitcoin above # on #?'
    """
    bare = VARYING.sub("#", " ".join(title.casefold().split()))
    return re.sub(r"#(?:[\s,/–-]*#)+", "#", bare)


# Which markets of an event can still be asked about.

ACTIVE_STATUSES: tuple[MarketStatus, ...] = ("open", "unopened")


@dataclass(frozen=True, kw_only=True)
class MarketState:
    """One market of an event."""

    row: Payload
    target: Target
    status: MarketStatus
    lost: bool = False
    """It is known to have come out no."""


@dataclass(frozen=True, kw_only=True)
class EventState:
    """An event by the state of its markets."""

    asked: tuple[MarketState, ...]
    """Those that are still going on, or all of them where none is."""
    finished: tuple[str, ...]
    exclusivity: Exclusivity
    status: MarketStatus


def event_state(markets: Sequence[MarketState | None], *, exclusivity: Exclusivity) -> EventState:
    """Sort out what is over.

    The platform's word that exactly one market comes true holds for the rest only if all that was left out has lost:
    among markets still open none may come true when one that is already closed has won, so there it is at most one.
    """
    known = [market for market in markets if market is not None]
    active = [market for market in known if market.status in ACTIVE_STATUSES]
    finished = [market for market in known if market not in active] if active else []
    certain = len(known) == len(markets) and all(market.lost for market in finished)
    statuses: set[MarketStatus] = {market.status for market in known}
    over: MarketStatus = "resolved" if statuses == {"resolved"} else "closed"
    return EventState(
        asked=tuple(active or known),
        finished=tuple(market.target.id for market in finished),
        exclusivity=exclusivity if certain else with_some_left_out(exclusivity),
        status="open" if "open" in statuses else "unopened" if "unopened" in statuses else over,
    )
