"""A page of the web, as text."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from foretell.questions.clock import AsOf


@dataclass(frozen=True, kw_only=True)
class Page:
    """The readable text of an address, with every address passed on the way."""

    url: str
    hops: tuple[str, ...]
    """All addresses of a chain of redirects, the last being where the text came from."""
    title: str
    text: str
    published: datetime | None
    """What the page says of its own date; None where it says nothing that can be read."""
    captured: datetime | None = None
    """When this version was stored, for archives and revisions; such a version cannot have changed since."""


class PageUnavailable(Exception):
    """The page could not be had, and why."""


class PageSource(Protocol):
    """Fetches pages. What may be fetched at a cutoff is decided by the fence, not here."""

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """The page, or `PageUnavailable`."""
        ...
