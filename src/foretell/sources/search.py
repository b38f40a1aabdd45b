"""What a search engine answers, and what it promises about dates."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from foretell.questions.clock import AsOf

Dating = Literal["published", "crawled", "relative", "none"]
"""How an engine came by a date: stated by the page, seen by a crawler, told as an age ("2 months ago"), or not."""


@dataclass(frozen=True, kw_only=True)
class SearchHit:
    """One result, as the engine gave it. Nothing here has been checked against a cutoff yet."""

    url: str
    title: str
    snippet: str
    published: datetime | None
    dating: Dating = "published"
    text: str | None = None
    """The page's text, where the engine hands it over with the result."""
    text_as_of: datetime | None = None
    """For stored versions of a page: when this version was captured."""


class CannotSearch(Exception):
    """The engine cannot answer as asked, e.g. it has no date filter and this is a backtest."""


class SearchEngine(Protocol):
    """Finds pages published by a cutoff."""

    @property
    def name(self) -> str:
        """As written in settings and traces."""
        ...

    @property
    def filters_dates(self) -> bool:
        """Whether the engine itself can leave out what is newer than a cutoff; if not, backtests are refused."""
        ...

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in the engine's order."""
        ...
