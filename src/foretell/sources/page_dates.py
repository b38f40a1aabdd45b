"""What a web page says of its own date, in markup made for that or in so many words."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from foretell.sources.engines.dates import WRITTEN, stated

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
_SAID = re.compile(
    r"\b(?:updated|modified|edited|revised|reviewed|corrected)\b(?:\s+(?:on|at))?\s*:?\s*"
    rf"(?P<day>{re.sub('[?]P<[a-z0-9]+>', '?:', WRITTEN.pattern)}|\d{{4}}-\d\d-\d\d)",
    re.IGNORECASE,
)


def latest_stated(tree: Any) -> datetime | None:
    """The latest date a page states, whether of publishing or of an update; None where its markup states none.

    An update may bring in what was not known before, so it counts like a publication. Words such as "updated 5 March"
    only ever make a page younger: in prose they may speak of something else, so they date no page by themselves.
    """
    marked = [moment for one in _in_markup(tree) if (moment := stated(one)[0]) is not None]
    if not marked:
        return None
    text = " ".join(tree.xpath("//body//text()[not(parent::script or parent::style)]"))
    said = (stated(found["day"])[0] for found in _SAID.finditer(text))
    return max(one for one in (*marked, *said) if one is not None)


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
            yield from _in_linked_data(script.text or "")


def _in_linked_data(text: str) -> Iterable[str]:
    try:
        data = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return []
    return list(_dates_under(data, depth=8))


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
