"""From the bytes of a page to its title, its text and the date it states."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foretell.questions.problems import MissingExtra
from foretell.sources.page import PageUnavailable
from foretell.sources.page_dates import latest_stated

MAX_BYTES = 5_000_000
"""Beyond this, taking a page apart would take minutes."""
_TEXT_TYPES = (
    "text/",
    "application/xhtml",
    "application/xml",
    "application/json",
    "application/rss",
    "application/atom",
)


@dataclass(frozen=True, kw_only=True)
class Readable:
    """A page as text."""

    title: str
    text: str
    published: datetime | None


def read(body: bytes, content_type: str, url: str) -> Readable:
    """The readable part of an answer, or `PageUnavailable` with the reason."""
    kind = content_type.split(";")[0].strip().lower()
    if len(body) > MAX_BYTES:
        raise PageUnavailable(f"{url}: larger than {MAX_BYTES:,} bytes, too large for an article")
    if kind == "application/pdf" or body.startswith(b"%PDF-"):
        raise PageUnavailable(f"{url}: a PDF, whose text is not read here")
    if (kind and not kind.startswith(_TEXT_TYPES)) or b"\0" in body[:1024]:
        raise PageUnavailable(f"{url}: not text but {kind or 'binary data'}")
    if kind in ("text/plain", "text/markdown", "text/csv", "application/json"):
        return _plain(body.decode("utf-8", "replace"), url)
    return read_html(body, url)


def read_html(body: bytes | str, url: str) -> Readable:
    """The article in a page of HTML, without menus and adverts."""
    try:
        import trafilatura
    except ImportError:
        raise MissingExtra("reading web pages", "llm") from None

    tree = trafilatura.load_html(body)
    if tree is None:
        raise PageUnavailable(f"{url}: the page cannot be read as HTML")
    title, published = _title(tree), latest_stated(tree)
    found = trafilatura.extract(tree, include_comments=False, include_tables=True)
    if not found:
        raise PageUnavailable(f"{url}: no readable text, perhaps because a script would have to run")
    return Readable(title=title, text=found, published=published)


def _plain(text: str, url: str) -> Readable:
    if not text.strip():
        raise PageUnavailable(f"{url}: the page is empty")
    return Readable(title=text.strip().splitlines()[0][:200], text=text.strip(), published=None)


def _title(tree: Any) -> str:
    for meta in tree.iter("meta"):
        if meta.get("property") == "og:title" and meta.get("content"):
            return " ".join(meta.get("content").split())
    return " ".join("".join(tree.xpath("string(//title)")).split())
