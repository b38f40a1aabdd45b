"""Dates as search engines write them: parsed if they are stated, never guessed."""

import contextlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from foretell.patterns import pattern

Dating = Literal["published", "crawled", "relative", "none"]
"""Origin of a date: stated by the page, seen by a crawler, given as an age ("2 months ago"), or none."""
EARLIEST = date(2000, 1, 1)
"""Start of ranges for engines that need both ends."""

_OLDEST_YEAR = 1900
"""Zero dates such as 0001-01-01 mean "unknown" in many databases."""

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_RELATIVE = pattern(r"(just now|today|yesterday|(an?|\d+)\s*[a-z]+\.?\s+ago)", re.IGNORECASE)
WRITTEN = pattern(
    r"(?:(?P<m1>[a-z]{3})[a-z]*\.?\s+(?P<d1>\d{1,2})|(?P<d2>\d{1,2})\s+(?P<m2>[a-z]{3})[a-z]*\.?),?\s+(?P<y>\d{4})",
    re.IGNORECASE,
)
"""A day in words, such as Mar 3, 2026 or 3 March 2026."""


def parse_stated_date(text: str | None) -> tuple[datetime | None, Dating]:
    """Return the time that a text states, and how it was dated. Relative ages ("2 days ago") give no time.

    A day without a clock time means its start. A clock time without a zone is taken as UTC.

    >>> parse_stated_date("2026-03-03T09:30:00")[0].isoformat()
    '2026-03-03T09:30:00+00:00'
    >>> parse_stated_date("Mar 3, 2026")[0].date()
    datetime.date(2026, 3, 3)
    >>> parse_stated_date("2 days ago"), parse_stated_date("soon"), parse_stated_date(None)
    ((None, 'relative'), (None, 'none'), (None, 'none'))
    """
    text = (text or "").strip()
    if not text:
        return None, "none"
    if _RELATIVE.fullmatch(text):
        return None, "relative"
    parsed = _parse_datetime(text)
    if parsed is None or parsed.year < _OLDEST_YEAR:
        return None, "none"
    return parsed, "published"


def _parse_datetime(text: str) -> datetime | None:
    """Parse a time in ISO format, in words, or in the format of e-mail; the first that matches."""
    for read in (datetime.fromisoformat, _parse_day_in_words, parsedate_to_datetime):
        try:
            parsed = read(text)
            return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            continue
    return None


def _parse_day_in_words(text: str) -> datetime:
    match = WRITTEN.fullmatch(text)
    if match is None:
        raise ValueError("not a day in words")
    month = MONTHS.index((match["m1"] or match["m2"]).lower()) + 1
    return datetime(int(match["y"]), month, int(match["d1"] or match["d2"]), tzinfo=UTC)


# The dates that a web page states, in its markup or in its text.

_META = frozenset(
    {
        "article:published_time", "article:modified_time", "og:published_time", "og:updated_time",
        "og:article:published_time", "og:article:modified_time", "datepublished", "datemodified", "datecreated",
        "pubdate", "publishdate", "publish-date", "publish_date", "publication_date", "date", "dc.date",
        "dc.date.issued", "dc.date.modified", "dcterms.date", "dcterms.created", "dcterms.issued",
        "dcterms.modified", "dcterms.available", "last-modified", "lastmod", "modified", "revised",
        "parsely-pub-date", "sailthru.date", "citation_publication_date", "citation_date", "citation_online_date",
        "timestamp", "updated", "updated_time",
    }
)  # fmt: skip
_LINKED_DATA = frozenset({"datePublished", "dateModified", "dateCreated", "uploadDate"})
_VISIBLE_DATE = pattern(
    lambda: (
        r"\b(?:updated|modified|edited|revised|reviewed|corrected)\b(?:\s+(?:on|at))?\s*:?\s*"
        rf"(?P<day>{re.sub('[?]P<[a-z0-9]+>', '?:', WRITTEN.pattern)}|\d{{4}}-\d\d-\d\d)"
    ),
    re.IGNORECASE,
)


def latest_page_date(tree: Any) -> datetime | None:
    """Return the latest date of publication or update that a page states; None if its markup states none.

    An update may add information that was not known before, so it counts like a publication. Words such as "updated 5
    March" can only make the date later. Alone they do not date a page, because they may refer to something else.
    """
    marked = [stated for text in _in_markup(tree) if (stated := parse_stated_date(text)[0]) is not None]
    if not marked:
        return None
    text = " ".join(tree.xpath("//body//text()[not(parent::script or parent::style)]"))
    visible = (parse_stated_date(match["day"])[0] for match in _VISIBLE_DATE.finditer(text))
    return max(stated for stated in (*marked, *visible) if stated is not None)


def _in_markup(tree: Any) -> Iterator[str]:
    for meta in tree.iter("meta"):
        names = (meta.get(key, "").strip().lower() for key in ("property", "name", "itemprop", "http-equiv"))
        if any(name in _META for name in names):
            yield meta.get("content", "")
    for element in tree.iter("time"):
        if element.get("pubdate") is not None or (element.get("itemprop") or "").lower() in _META:
            yield element.get("datetime", "")
    for script in tree.iter("script"):
        if (script.get("type") or "").lower() == "application/ld+json":
            with contextlib.suppress(ValueError, RecursionError):
                yield from _dates_under(json.loads(script.text or "", strict=False), depth=8)


def _dates_under(data: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    if isinstance(data, dict):
        for key, value in data.items():
            if key in _LINKED_DATA and isinstance(value, str):
                yield value
            else:
                yield from _dates_under(value, depth - 1)
    elif isinstance(data, list):
        for value in data:
            yield from _dates_under(value, depth - 1)
