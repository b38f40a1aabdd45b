"""The date layer of the fence: an item is admitted only if there is evidence that its text predates the cutoff."""

from collections.abc import Callable
from datetime import date, datetime, time

from foretell.questions.as_of import AsOf, instant
from foretell.tools.addresses import is_living
from foretell.tools.dates.addresses import late_address, late_link
from foretell.tools.dates.ages import age_stamp, without_age
from foretell.tools.dates.find import Order
from foretell.tools.dates.lines import late_line
from foretell.tools.dates.partial_dates import late_year, late_yearless_day
from foretell.tools.dates.periods import late_period
from foretell.tools.dates.records import late_column, late_entry, late_row, late_title, told_state
from foretell.tools.dates.stamps import late_stamp
from foretell.tools.tool import SourceItem

OLDEST_YEAR = 1990
"""Dates before the web mean "unknown" in many databases (1970-01-01 is zero)."""
MONTH_FIRST = frozenset({"us", "gov", "mil", "ph"})
"""Top-level domains where 05/06/2024 is 6 May."""
ANY_ORDER = frozenset({"com", "org", "net", "info", "io", "co", "news", "edu", "int", "tv", "ca", "za", ""})


def date_refusal(item: SourceItem, as_of: AsOf, *, crawl_dates: bool = True) -> str | None:
    """Return why an item cannot be shown to be old enough, or None.

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


def _without_version(item: SourceItem, as_of: AsOf, *, crawl_dates: bool) -> str | None:
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
    if item.rewritten or any(is_living(url) for url in (item.url, *item.hops) if url):
        return "the page is rewritten for ever under its address: only a stored version can be old"
    if (state := told_state(_words(item))) is not None:
        return f"it tells how something ended, and not when: {state!r}"
    return None


def _reaches(moment: datetime, as_of: AsOf) -> bool:
    """Whether a time lies before the cutoff. Exactly midnight stands for a whole day, which must be over."""
    try:
        moment = instant(moment)
    except ValueError:
        return False
    return as_of.admits_day(moment.date()) if moment.time() == time.min else as_of.admits(moment)


def _states_late_date(item: SourceItem, as_of: AsOf) -> str | None:
    """Return what in an item's own text or address is dated after the cutoff, by the first rule that matches."""
    words, order, title = _words(item), _order(item.url), item.title
    published = item.published.date() if item.published is not None else None
    rules: tuple[tuple[str, Callable[[], str | None]], ...] = (
        ("it states a date after the cutoff", lambda: late_stamp(words, as_of, order=order, published=published)),
        ("it states a day after the cutoff", lambda: _late_yearless(words, published, as_of)),
        ("its title is dated after the cutoff", lambda: late_title(title, as_of, published=published)),
        ("it holds numbers of a day after the cutoff", lambda: late_row(title, words, as_of)),
        ("it holds numbers of a month after the cutoff", lambda: late_column(words, as_of)),
        ("it records a day after the cutoff", lambda: late_line(words, as_of, order=order, published=published)),
        ("it tells results of a time after the cutoff", lambda: late_period(words, as_of)),
        ("it tells of a year after the cutoff", lambda: late_year(words, as_of)),
        ("a live report with an entry after the cutoff", lambda: late_entry(title, words, as_of)),
        ("it holds a link to a page of a day after the cutoff", lambda: late_link(words, as_of, title=title)),
        ("its address is dated after the cutoff", lambda: _late_address(item, as_of)),
    )
    for reason, rule in rules:
        if (found := rule()) is not None:
            return f"{reason}: {found!r}"
    return None


def _late_yearless(words: str, published: date | None, as_of: AsOf) -> str | None:
    return late_yearless_day(words, published, as_of) if published is not None else None


def _late_address(item: SourceItem, as_of: AsOf) -> str | None:
    found = (late_address(url, as_of, title=item.title) for url in (item.url, *item.hops) if url)
    return next((path for path in found if path is not None), None)


def _order(url: str) -> Order:
    """Return the order of day and month in the country of an address."""
    domain = url.split("//", 1)[-1].split("/", 1)[0].split(":", 1)[0].rsplit(".", 1)[-1].lower()
    if domain in MONTH_FIRST:
        return "month first"
    return "unknown" if domain in ANY_ORDER or not domain.isalpha() else "day first"


def _words(item: SourceItem) -> str:
    """Return all text of an item, without the age that a search engine put before its excerpt."""
    text = item.text if item.text != item.snippet else ""
    return "\n".join(filter(None, (item.title, without_age(item.snippet), text)))
