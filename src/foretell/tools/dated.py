"""The date layer: an item is admitted only if something says that its words are no younger than the cutoff."""

from datetime import datetime, time

from foretell.questions.clock import AsOf, instant
from foretell.tools.blocklist import is_living
from foretell.tools.stamps import age_stamp, late_entry, late_path, late_stamp
from foretell.tools.tool import Item

OLDEST_YEAR = 1990
"""Dates before the web stand for "unknown" in many databases (1970-01-01 is zero)."""


def undated(item: Item, as_of: AsOf, *, crawl_dates: bool = True) -> str | None:
    """Why an item cannot be shown to be old enough, or None.

    A version stored before the cutoff is proof; a version stored later proves nothing, just like today's page.
    """
    if item.captured is not None and _reaches(item.captured, as_of):
        if item.published is not None and not _reaches(item.published, as_of):
            return "it is dated after the cutoff although stored before it"
        return _states_late_date(item, as_of)
    if (reason := _without_version(item, as_of, crawl_dates=crawl_dates)) is not None:
        return reason
    if (age := age_stamp(_words(item))) is not None:
        return f"it tells only its age: {age!r}"
    return _states_late_date(item, as_of)


def _without_version(item: Item, as_of: AsOf, *, crawl_dates: bool) -> str | None:
    if item.dating == "relative":
        return "it is dated by an age, which means nothing without the day of reading"
    if item.published is None or item.dating == "none":
        return "it has no date"
    if item.published.year < OLDEST_YEAR:
        return f"its date, {item.published.date()}, stands for an unknown one"
    if not _reaches(item.published, as_of):
        return "it is dated after the cutoff, or on a day that was not over"
    if item.dating == "crawled" and not crawl_dates:
        return "it is dated by a crawler, and such dates are not accepted here"
    if any(is_living(url) for url in (item.url, *item.hops) if url):
        return "the page is rewritten for ever under its address: only a stored version can be old"
    return None


def _reaches(moment: datetime, as_of: AsOf) -> bool:
    """Whether a moment lies before the cutoff. Midnight sharp stands for a day, and that day must be over."""
    try:
        moment = instant(moment)
    except ValueError:
        return False
    return as_of.admits_day(moment.date()) if moment.time() == time.min else as_of.admits(moment)


def _states_late_date(item: Item, as_of: AsOf) -> str | None:
    words = _words(item)
    if (stamp := late_stamp(words, as_of)) is not None:
        return f"it states a date after the cutoff: {stamp!r}"
    if (entry := late_entry(item.title, words, as_of)) is not None:
        return f"a live report with an entry after the cutoff: {entry!r}"
    for url in (item.url, *item.hops):
        if url and (path := late_path(url, as_of)) is not None:
            return f"its address is dated after the cutoff: {path!r}"
    return None


def _words(item: Item) -> str:
    return "\n".join(filter(None, (item.title, item.snippet, item.text if item.text != item.snippet else "")))
