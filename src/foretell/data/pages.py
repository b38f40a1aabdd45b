"""Web pages, live and as stored by the Internet Archive at or before a cutoff."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from foretell.data.dates import latest_page_date, parse_stated_date
from foretell.data.http import AsyncHttpClient, HttpResponse, SourceError
from foretell.frozen import frozen
from foretell.outgoing.public_address import Resolve, is_public, look_up
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.errors import MissingExtra

# A page of the web, as text.


@frozen
class Page:
    """The readable text of an address, with every address in its chain of redirects."""

    url: str
    hops: tuple[str, ...]
    """All addresses of a chain of redirects; the text came from the last."""
    title: str
    text: str
    published: datetime | None
    """The page's own date; None if it states none that can be parsed."""
    captured: datetime | None = None
    """When this version was stored, for archives and revisions; it cannot have changed since."""


class PageUnavailable(Exception):
    """The page could not be fetched; the message says why."""


class PageSource(Protocol):
    """Fetches pages. The leakage filter decides what may be seen at a cutoff."""

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """Return the page, or raise `PageUnavailable`."""
        ...


class PageHistory(Protocol):
    """Knows how the page at an address changes over time."""

    async def is_rewritten(self, url: str) -> bool:
        """Whether its versions differ in content."""
        ...


# Which addresses may be fetched: those of the public web, not those of private networks.


class PublicAddressGuard:
    """Admits http and https addresses whose host is on the public internet.

    The connection goes to the address that was checked, so a name cannot be redirected after the check.
    """

    def __init__(self, *, allow_private: bool = False, resolve: Resolve | None = None) -> None:
        self._allow_private = allow_private
        self._resolve = resolve or look_up

    async def admit(self, url: str) -> str | None:
        """Return the numeric host to connect to; None for any. Raises `PageUnavailable` if it may not be fetched."""
        parts = _web_address(url)
        if self._allow_private:
            return None
        host = parts.hostname or ""
        try:
            addresses = await self._resolve(host, parts.port or (443 if parts.scheme == "https" else 80))
        except (OSError, UnicodeError):
            raise PageUnavailable(f"{url}: the host {host} is not known") from None
        if not addresses or not all(is_public(address) for address in addresses):
            raise PageUnavailable(f"{url}: {host} is not on the public web")
        return min(addresses, key=lambda address: ":" in address)


def _web_address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise PageUnavailable(f"{url}: not a web address") from None
    if not usable:
        raise PageUnavailable(f"{url}: only http and https addresses can be fetched")
    if parts.username or parts.password:
        raise PageUnavailable(f"{parts.scheme}://{parts.hostname}: an address with a user name is not fetched")
    return parts


# Title, text and stated date of a page.

MAX_BYTES = 5_000_000
"""Parsing a larger page would take minutes."""
_TEXT_TYPES = (
    "text/",
    "application/xhtml",
    "application/xml",
    "application/json",
    "application/rss",
    "application/atom",
)


@frozen
class PageText:
    """A page as text."""

    title: str
    text: str
    published: datetime | None


def read_page(body: bytes, content_type: str, url: str) -> PageText:
    """Return the readable part of a response, or raise `PageUnavailable` with the reason."""
    kind = content_type.split(";")[0].strip().lower()
    if len(body) > MAX_BYTES:
        raise PageUnavailable(f"{url}: larger than {MAX_BYTES:,} bytes, too large for an article")
    if kind == "application/pdf" or body.startswith(b"%PDF-"):
        raise PageUnavailable(f"{url}: PDF files cannot be read")
    if (kind and not kind.startswith(_TEXT_TYPES)) or b"\0" in body[:1024]:
        raise PageUnavailable(f"{url}: not text but {kind or 'binary data'}")
    if kind in ("text/plain", "text/markdown", "text/csv", "application/json"):
        return _plain(body.decode("utf-8", "replace"), url)
    return read_html(body, url)


def read_html(body: bytes | str, url: str) -> PageText:
    """Return the article in an HTML page, without menus and advertisements."""
    try:
        import trafilatura
    except ImportError:
        raise MissingExtra("reading web pages", "llm") from None

    tree = trafilatura.load_html(body)
    if tree is None:
        raise PageUnavailable(f"{url}: the page cannot be read as HTML")
    title, published = _title(tree), latest_page_date(tree)
    extract = trafilatura.extract(tree, include_comments=False, include_tables=True)
    if not extract:
        raise PageUnavailable(f"{url}: no readable text; the page may need JavaScript")
    return PageText(title=title, text=extract, published=published)


def _plain(text: str, url: str) -> PageText:
    if not text.strip():
        raise PageUnavailable(f"{url}: the page is empty")
    return PageText(title=text.strip().splitlines()[0][:200], text=text.strip(), published=None)


def _title(tree: Any) -> str:
    for meta in tree.iter("meta"):
        if meta.get("property") == "og:title" and meta.get("content"):
            return " ".join(meta.get("content").split())
    return " ".join("".join(tree.xpath("string(//title)")).split())


# Pages that the Internet Archive stored.

WAYBACK_URL = "https://web.archive.org"
_STAMP = "%Y%m%d%H%M%S"
_REPLAY = pattern(r"/web/(?P<at>\d{14})[a-z_]*/(?P<url>.+)")
STORED = "memento-datetime"
"""Header with the time at which a page was stored. A response without it is the archive's own page."""
EXCLUDED = b"This URL has been excluded from the Wayback Machine"
SHOWN_STATUS = ("200", "-")
"""Statuses of pages shown to the archive's crawler, and of unchanged ones (`warc/revisit`)."""
COMPARED_AMONG = 40
"""Number of newest captures of which the first and the last are compared."""
SAME_TEXT = 0.5
"""Share of common four-word phrases above which two versions count as the same text."""
MOST_COMPARED = 5_000
"""Maximum number of words compared per version."""
STABLE_FOR = timedelta(days=2)
"""How far a page's own date may move."""
TRIES = 3
"""How many captures are tried, from the newest back, if one cannot be replayed."""


@frozen
class Capture:
    """One line of the archive's index."""

    stamp: str
    at: datetime
    url: str
    status: str
    """`-` if nothing had changed since an earlier capture."""


class WaybackPages:
    """Fetches the newest archived version at or before the cutoff.

    The archive may answer with a neighbouring capture, so every step is checked again.
    """

    facts = "recorded responses of 2020 to 2024, EDGI's client of July 2026"

    def __init__(self, client: AsyncHttpClient, base_url: str = WAYBACK_URL) -> None:
        self._client = client
        self._url = base_url
        client.stand_in(base_url, WAYBACK_URL)

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """Return the archived page with its capture time, or raise `PageUnavailable`."""
        if not url.startswith(("http://", "https://")):
            raise PageUnavailable(f"{url}: only http and https addresses are archived")
        refused: PageUnavailable | None = None
        for capture in await self._captures(url, as_of):
            try:
                return await self._replayed(url, capture, as_of)
            except PageUnavailable as reason:
                refused = refused or reason
        raise refused or PageUnavailable(f"{url}: no version is archived at or before {as_of.at:%Y-%m-%d}")

    async def is_rewritten(self, url: str) -> bool:
        """Whether stored versions of an address differ in content or in their stated date.

        False if the archive has no two versions of different days, because then it is unknown.
        """
        if not url.startswith(("http://", "https://")):
            return False
        whenever = AsOf(at=datetime.max.replace(tzinfo=UTC), mode="live")
        try:
            captures = await self._captures(url, whenever, COMPARED_AMONG)
            if len(captures) < 2 or captures[0].at - captures[-1].at < timedelta(days=1):
                return False
            newest, oldest = [await self._replayed(url, capture, whenever) for capture in (captures[0], captures[-1])]
        except PageUnavailable:
            return False
        return versions_differ(oldest, newest)

    async def _replayed(self, url: str, capture: Capture, as_of: AsOf) -> Page:
        address = f"{self._url}/web/{capture.stamp}id_/{capture.url}"
        try:
            answer = await self._client.get(address, stored_mark=STORED)
        except SourceError as error:
            raise PageUnavailable(str(error)) from None
        steps = [_step(hop) for hop in answer.hops]
        captured = stored_at(answer, url)
        late = [at for at in (captured, *(at for at, _ in steps)) if not as_of.admits(at)]
        if late:
            raise PageUnavailable(
                f"{url}: the archive redirected to a version of {max(late):%Y-%m-%d}, after the cutoff"
            )
        kind = answer.headers.get("content-type", "")
        page = await asyncio.to_thread(read_page, answer.body, kind, url)
        return Page(
            url=url,
            hops=tuple(dict.fromkeys((url, *(address for _, address in steps)))),
            title=page.title,
            text=page.text,
            published=page.published,
            captured=captured,
        )

    async def _captures(self, url: str, as_of: AsOf, most: int = TRIES) -> list[Capture]:
        """Return the newest captures at the cutoff, newest first."""
        params = {"url": url, "filter": "statuscode:" + "|".join(SHOWN_STATUS), "resolveRevisits": "true"}
        params |= {"output": "json", "fl": "timestamp,original,statuscode", "limit": f"-{most}"}
        if as_of.mode == "backtest":
            params["to"] = as_of.at.strftime(_STAMP)
        try:
            captures = read_captures(await self._client.get(f"{self._url}/cdx/search/cdx", params=params))
        except SourceError as error:
            excluded = error.status == HTTPStatus.FORBIDDEN
            raise PageUnavailable(f"{url}: excluded from the archive" if excluded else str(error)) from None
        # A page stored several times within a second is listed several times.
        shown = {
            capture.stamp: capture
            for capture in captures
            if capture.status in SHOWN_STATUS and as_of.admits(capture.at)
        }
        return sorted(shown.values(), key=lambda capture: capture.at, reverse=True)[:most]


def versions_differ(old: Page, new: Page) -> bool:
    """Whether two versions of a page are different texts. A small correction does not make a text different."""
    if old.published is not None and new.published is not None and abs(new.published - old.published) > STABLE_FOR:
        return True
    before, after = _phrases(old.text), _phrases(new.text)
    return len(before & after) < SAME_TEXT * len(before | after)


def _phrases(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()[:MOST_COMPARED]
    return {tuple(words[place : place + 4]) for place in range(max(1, len(words) - 3))}


def stored_at(answer: HttpResponse, url: str) -> datetime:
    """Return when the archive stored this response; raise `PageUnavailable` if it contains no stored page."""
    if STORED not in answer.headers:
        reason = "excluded from the archive" if EXCLUDED in answer.body else "the archive sent no stored page"
        raise PageUnavailable(f"{url}: {reason}")
    if answer.status != HTTPStatus.OK:
        raise PageUnavailable(f"{url}: archived as a response with status {answer.status}, without the page")
    captured, _ = parse_stated_date(answer.headers[STORED])
    if captured is None:
        raise PageUnavailable(f"{url}: the archive does not say when it stored the page")
    return captured


CDX_COLUMNS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""Columns of the index if none were chosen."""


def read_captures(answer: HttpResponse) -> list[Capture]:
    """Parse the lines of the index, a JSON table with a header or plain text; unreadable lines are skipped."""
    body = answer.body.decode("utf-8", "replace").strip()
    if not body:
        return []
    try:
        rows: Any = json.loads(body) if body.startswith("[") else None
    except (ValueError, RecursionError):
        rows = [None]
    if rows is None:
        # After an empty line comes the key of the next page, which is not a line of the index.
        rows = [CDX_COLUMNS, *(line.split(" ") for line in body.partition("\n\n")[0].splitlines())]
    lines = [dict(zip(rows[0], row, strict=False)) for row in rows[1:] if isinstance(row, list)] if rows[:1] else []
    captures = [capture for line in lines if (capture := _capture(line)) is not None]
    if (lines and not captures) or rows[:1] == [None]:
        raise SourceError("the index of captures is not a table of captures", url=answer.hops[-1])
    return captures


def _capture(line: Mapping[str, Any]) -> Capture | None:
    stamp, url = str(line.get("timestamp", "")), str(line.get("original", ""))
    try:
        at = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    readable = len(stamp) == len("YYYYMMDDhhmmss") and url.startswith(("http://", "https://"))
    return Capture(stamp=stamp, at=at, url=url, status=str(line.get("statuscode", "200"))) if readable else None


def _step(hop: str) -> tuple[datetime, str]:
    match = _REPLAY.search(hop)
    if match is None:
        raise PageUnavailable(f"{hop}: the archive redirected to another site")
    try:
        return datetime.strptime(match["at"], _STAMP).replace(tzinfo=UTC), match["url"]
    except ValueError:
        raise PageUnavailable(f"{hop}: not the address of a stored page") from None


# Pages of the live web, as text.


class WebPages:
    """Fetches a page as it is now, following redirects, but never from a private network.

    It always returns today's text, even in a backtest: the leakage filter decides whether it may be shown.
    """

    def __init__(self, client: AsyncHttpClient, *, allow_private: bool = False, resolve: Resolve | None = None) -> None:
        self._client = client
        self._web = PublicAddressGuard(allow_private=allow_private, resolve=resolve)

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """Return the page, or raise `PageUnavailable`."""
        headers = {"Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.1"}
        try:
            answer = await self._client.get(url, headers=headers, admit=self._web.admit)
        except SourceError as error:
            raise PageUnavailable(str(error)) from None
        kind = answer.headers.get("content-type", "")
        page = await asyncio.to_thread(read_page, answer.body, kind, answer.hops[-1])
        return Page(url=url, hops=answer.hops, title=page.title, text=page.text, published=page.published)
