"""Wikipedia as it stood at a date: pages by revision, read from their source."""

import asyncio
import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, unquote, urlsplit

from foretell.questions.clock import AsOf, instant
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import SourceError, user_agent
from foretell.sources.page import Page, PageUnavailable
from foretell.sources.payload import Payload
from foretell.sources.search import SearchHit
from foretell.sources.wikitext import HEADING, readable

WIKIPEDIA_URL = "https://en.wikipedia.org"
MAX_REDIRECTS = 3
_REDIRECT = re.compile(r"\s*#redirect\s*:?\s*\[\[([^\]|#]+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One version of a page, as its authors wrote it."""

    title: str
    revid: int
    at: datetime
    wikitext: str


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A line of the table of contents."""

    number: str
    """As in a book: 2, 2.1, 2.1.3. The text before the first heading is 0."""
    heading: str
    start: int
    end: int
    """Where the section with all its subsections ends in the wikitext."""


class Wikipedia:
    """Reads revisions through the API. Rendered pages are never used: they show today's templates."""

    def __init__(self, client: AsyncHttpClient, base_url: str = WIKIPEDIA_URL, *, contact: str = "") -> None:
        """`contact` goes into the User-Agent, as Wikipedia asks of heavy users."""
        client.pace(base_url, per_second=20.0, burst=10)
        self._client = client
        self._site = base_url
        told = f"probability forecasts from dated evidence{'; ' + contact if contact else ''}"
        self._headers = {"User-Agent": f"{user_agent()} ({told})"}

    async def revision(self, title: str, as_of: AsOf) -> Revision:
        """The newest version at or before the cutoff, following redirects as they stood then."""
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._revision(title, as_of)
            led = _REDIRECT.match(found.wikitext)
            if led is None:
                return found
            title = led[1].strip()
        raise PageUnavailable(f"{title}: more than {MAX_REDIRECTS} redirects")

    async def contents(self, title: str, as_of: AsOf) -> list[Heading]:
        """The table of contents, beginning with the introduction as number 0."""
        return headings((await self.revision(title, as_of)).wikitext)

    async def section(self, title: str, which: str | int, as_of: AsOf) -> str:
        """The text of a section with its subsections, by number or by heading."""
        found = await self.revision(title, as_of)
        listed = headings(found.wikitext)
        wanted = str(which).strip().casefold()
        for one in listed:
            if wanted in (one.number, one.heading.casefold()):
                return readable(found.wikitext[one.start : one.end])
        known = ", ".join(f"{one.number} {one.heading}" for one in listed[:40])
        raise PageUnavailable(f"{found.title} has no section {which}; it has: {known}")

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """An article by its address, as a page that cannot have changed since its capture."""
        parts = urlsplit(url)
        if not parts.path.startswith("/wiki/") or parts.path == "/wiki/":
            raise PageUnavailable(f"{url}: not the address of an article")
        title = unquote(parts.path.removeprefix("/wiki/")).replace("_", " ")
        found = await self.revision(title, as_of)
        return Page(
            url=url,
            hops=(url,) if found.title == title else (url, self._address(found.title)),
            title=found.title,
            text=readable(found.wikitext),
            published=found.at,
            captured=found.at,
        )

    async def search(self, query: str, as_of: AsOf, limit: int = 5) -> list[SearchHit]:
        """Articles that existed at the cutoff. Ranking and titles are today's; in a backtest no snippet is given."""
        asked = {"list": "search", "srsearch": query, "srlimit": str(limit), "srprop": "snippet"}
        rows = (await self._ask(asked)).need("query").need("search").items()
        known = await asyncio.gather(*(self._known_since(row.need("title").text(), as_of) for row in rows))
        return [
            SearchHit(
                url=self._address(row.need("title").text()),
                title=row.need("title").text(),
                snippet="" if as_of.mode == "backtest" else readable(row.need("snippet").text()),
                published=at,
            )
            for row, at in zip(rows, known, strict=True)
            if at is not None
        ]

    async def _revision(self, title: str, as_of: AsOf) -> Revision:
        page = await self._page(title, as_of, "ids|timestamp|content")
        found = page.get("revisions")
        if found is None or not found.items():
            reason = "is not there" if page.get("missing") else f"did not exist at {as_of.at:%Y-%m-%d}"
            raise PageUnavailable(f"the article {title!r} {reason}")
        revision = found.items()[0]
        content = revision.need("slots").need("main").get("content")
        if content is None:
            raise PageUnavailable(f"the version of {title!r} at that date is hidden")
        return Revision(
            title=page.need("title").text(),
            revid=int(revision.need("revid").number()),
            at=_moment(revision),
            wikitext=content.text(),
        )

    async def _known_since(self, title: str, as_of: AsOf) -> datetime | None:
        """When the version current at the cutoff was written; None where there was no version yet."""
        found = (await self._page(title, as_of, "ids|timestamp")).get("revisions")
        return _moment(found.items()[0]) if found is not None and found.items() else None

    async def _page(self, title: str, as_of: AsOf, what: str) -> Payload:
        asked = {
            "prop": "revisions",
            "titles": title,
            "rvlimit": "1",
            "rvdir": "older",
            "rvprop": what,
            "rvslots": "main",
        }
        if as_of.mode == "backtest":
            asked["rvstart"] = f"{as_of.at:%Y-%m-%dT%H:%M:%S}Z"
        pages = (await self._ask(asked)).need("query").need("pages")
        return pages.items()[0] if pages.items() else pages.missing()

    async def _ask(self, asked: dict[str, str]) -> Payload:
        params = {"action": "query", "format": "json", "formatversion": "2", **asked}
        url = f"{self._site}/w/api.php"
        answer = Payload.of(await self._client.get(url, params=params, headers=self._headers), url)
        if (error := answer.get("error")) is not None:
            raise SourceError(f"Wikipedia refused: {self._client.redact(error.need('info').text()[:200])}", url=url)
        return answer

    def _address(self, title: str) -> str:
        return f"{self._site}/wiki/{quote(title.replace(' ', '_'), safe='/:(),')}"


def headings(wikitext: str) -> list[Heading]:
    r"""The sections of a page in order, numbered as in a table of contents.

    >>> [(one.number, one.heading) for one in headings("Lead\n== A ==\n=== B ===\n== C ==\n")]
    [('0', 'Introduction'), ('1', 'A'), ('1.1', 'B'), ('2', 'C')]
    """
    found = [(len(m[1]) - 1, readable(m[2]), m.start()) for m in HEADING.finditer(wikitext)]
    ends = [
        next((start for depth, _, start in found[i + 1 :] if depth <= level), len(wikitext))
        for i, (level, _, _) in enumerate(found)
    ]
    counts: list[int] = []
    listed = [Heading(number="0", heading="Introduction", start=0, end=found[0][2] if found else len(wikitext))]
    for (level, heading, start), end in zip(found, ends, strict=True):
        counts = [*counts[:level], *[0] * (level - len(counts))]
        counts[level - 1] += 1
        listed.append(Heading(number=".".join(map(str, counts)), heading=heading, start=start, end=end))
    return listed


def _moment(revision: Payload) -> datetime:
    stamp = revision.need("timestamp")
    try:
        return instant(stamp.text())
    except ValueError:
        stamp.wrong("a time")
