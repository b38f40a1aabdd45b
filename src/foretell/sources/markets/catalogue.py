"""Walking through a platform's list page by page: one event that cannot be read is skipped, a wrong page is not."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from foretell.sources.http import SourceError
from foretell.sources.listing import Ledger, ListedEvent, Listing, Skipped, Wanted
from foretell.sources.payload import Malformed, Payload


class Unsupported(Exception):
    """An event of a sort that cannot be asked as yes-or-no targets."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """Entries as sent, and the way to the next page."""

    rows: list[Payload]
    following: str | None = None
    """None at the end."""


class Catalogue(Protocol):
    """What differs between platforms."""

    @property
    def platform(self) -> str:
        """Its name."""
        ...

    @property
    def key(self) -> str:
        """The field that identifies an entry."""
        ...

    async def page(self, wanted: Wanted, cursor: str) -> Page:
        """The page a cursor leads to; an empty cursor is the first."""
        ...

    async def parsed(self, row: Payload, wanted: Wanted, ledger: Ledger) -> ListedEvent | None:
        """The entry as an event; None where it was left out before all of it was read. May raise `Unsupported`."""
        ...


def listed(catalogue: Catalogue, wanted: Wanted) -> Listing:
    """The events of a catalogue that fit the wish."""
    ledger = Ledger()
    return Listing(_walk(catalogue, wanted, ledger), ledger)


async def _walk(catalogue: Catalogue, wanted: Wanted, ledger: Ledger) -> AsyncGenerator[ListedEvent]:
    cursor, met, left = "", set[str](), wanted.limit
    while ledger.pages < wanted.pages:
        with about(f"{catalogue.platform} list"):
            page = await catalogue.page(wanted, cursor)
        ledger.pages += 1
        async for event in _readable(catalogue, page, wanted, ledger):
            if event.question.id in met:
                # Lists that shift while they are read show an entry twice.
                continue
            met.add(event.question.id)
            yield event
            left -= 1
            if left == 0:
                return
        if page.following is None:
            ledger.complete = True
            return
        if f"cursor {page.following}" in met:
            raise Malformed(f"{catalogue.platform} list: the cursor leads back to a page already read", url=_url(page))
        met.add(f"cursor {page.following}")
        cursor = page.following


async def _readable(catalogue: Catalogue, page: Page, wanted: Wanted, ledger: Ledger) -> AsyncIterator[ListedEvent]:
    """Wanted events of a page. If not a single entry can be read, the platform has changed and that is an error."""
    broken: list[Skipped] = []
    for row in page.rows:
        name = named(row, catalogue.key)
        try:
            with about(f"{catalogue.platform} event {name}", row.url):
                event = await catalogue.parsed(row, wanted, ledger)
        except Malformed as error:
            broken.append(Skipped(platform=catalogue.platform, id=name, reason=error.problem))
            ledger.skipped.append(broken[-1])
        except Unsupported as error:
            told = Skipped(platform=catalogue.platform, id=name, reason=str(error), kind="unsupported")
            ledger.skipped.append(told)
        except SourceError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            gone = Skipped(platform=catalogue.platform, id=name, reason=error.problem, kind="unknown")
            ledger.skipped.append(gone)
        else:
            if event is None:
                continue
            if reason := wanted.refusal(event):
                ledger.left_out[reason] += 1
            else:
                yield event
    if len(broken) == len(page.rows) > 1:
        raise Malformed(f"none of {len(broken)} entries could be read; {broken[0].reason}", url=_url(page))


def named(row: Payload, key: str) -> str:
    """The id of an entry for reports, even where the entry is broken."""
    value = row.value.get(key) if isinstance(row.value, dict) else None
    return str(value) if isinstance(value, str | int) else f"at {row.path or 'the top'}"


@contextmanager
def about(what: str, url: str = "") -> Generator[None]:
    """Says in every complaint what it is about; a value our own types refuse is a complaint like the others."""
    try:
        yield
    except Malformed as error:
        raise Malformed(f"{what}: {error.problem}", url=error.url) from None
    except ValueError as error:
        raise Malformed(f"{what}: {error}", url=url) from None
    except SourceError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        raise SourceError(f"{what} is not there", url=error.url, status=error.status) from None


def _url(page: Page) -> str:
    return page.rows[0].url if page.rows else ""
