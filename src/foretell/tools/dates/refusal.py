"""The date layer of the leakage filter: an item passes only with evidence that its text predates the cutoff."""

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
from foretell.tools.dates.records import late_column, late_entry, late_row, late_title, stated_outcome
from foretell.tools.dates.relative import late_age, late_anniversary, late_counted_time
from foretell.tools.dates.stamps import late_stamp
from foretell.tools.tool import SourceItem

OLDEST_YEAR = 1990
"""Dates before the web mean "unknown" in many databases (1970-01-01 is zero)."""
MONTH_FIRST = frozenset({"us", "gov", "mil", "ph"})
"""Top-level domains where 05/06/2024 is 6 May."""
ANY_ORDER = frozenset({"com", "org", "net", "info", "io", "co", "news", "edu", "int", "tv", "ca", "za", ""})


def date_refusal(item: SourceItem, as_of: AsOf, *, crawl_dates: bool = True) -> str | None:
    """Return why an item cannot be shown to be old enough, or None.

    A version stored before the cutoff is proof. A version stored later is treated like today's page.
    """
    if item.captured is not None and _reaches(item.captured, as_of):
        if item.published is not None and not _reaches(item.published, as_of):
            return "it is dated after the cutoff although stored before it"
        return _states_late_date(item, as_of)
    if (reason := _without_version(item, as_of, crawl_dates=crawl_dates)) is not None:
        return reason
    if (age := age_stamp(_words(item))) is not None:
        return f"it states only its age: {age!r}"
    return _states_late_date(item, as_of)


def _without_version(item: SourceItem, as_of: AsOf, *, crawl_dates: bool) -> str | None:
    if item.dating == "relative":
        return "it is dated only by an age, which needs the day of reading"
    if item.published is None or item.dating == "none":
        return "it has no date"
    if item.published.year < OLDEST_YEAR:
        return f"its date, {item.published.date()}, is a placeholder for an unknown date"
    if not _reaches(item.published, as_of):
        return "it is dated after the cutoff, or on a day that was not over"
    if item.dating == "crawled" and not crawl_dates:
        return "it is dated by a crawler, and such dates are not accepted here"
    if item.rewritten or any(is_living(url) for url in (item.url, *item.hops) if url):
        return "the page is continually rewritten under its address; only a stored version can be old"
    if (state := stated_outcome(_words(item))) is not None:
        return f"it states an outcome without a date: {state!r}"
    return None


def _reaches(at: datetime, as_of: AsOf) -> bool:
    """Whether a time is before the cutoff. Exactly midnight means a whole day, which must be over."""
    try:
        at = instant(at)
    except ValueError:
        return False
    return as_of.admits_day(at.date()) if at.time() == time.min else as_of.admits(at)


def _states_late_date(item: SourceItem, as_of: AsOf) -> str | None:
    """Return what in an item's own text or address is dated after the cutoff, by the first rule that matches."""
    words, order, title = _words(item), _order(item.url), item.title
    published = item.published.date() if item.published is not None else None
    rules: tuple[tuple[str, Callable[[], str | None]], ...] = (
        ("it states a date after the cutoff", lambda: late_stamp(words, as_of, order=order, published=published)),
        ("it states a day after the cutoff", lambda: _late_yearless(words, published, as_of)),
        ("it counts from a day to one after the cutoff", lambda: late_counted_time(words, published, as_of)),
        ("it looks back from an anniversary after the cutoff", lambda: late_anniversary(words, as_of)),
        ("it describes something as lasting past the cutoff", lambda: late_age(words, as_of)),
        ("its title is dated after the cutoff", lambda: late_title(title, as_of, published=published)),
        ("it has numbers for a day after the cutoff", lambda: late_row(title, words, as_of)),
        ("it has numbers for a month after the cutoff", lambda: late_column(words, as_of)),
        ("it records a day after the cutoff", lambda: late_line(words, as_of, order=order, published=published)),
        ("it has results for a period after the cutoff", lambda: late_period(words, as_of)),
        ("it describes a year after the cutoff", lambda: late_year(words, as_of)),
        ("it is a live report with an entry after the cutoff", lambda: late_entry(title, words, as_of)),
        ("it links to a page dated after the cutoff", lambda: late_link(words, as_of, title=title)),
        ("its address is dated after the cutoff", lambda: _late_address(item, as_of)),
    )
    for reason, rule in rules:
        if (passage := rule()) is not None:
            return f"{reason}: {passage!r}"
    return None


def _late_yearless(words: str, published: date | None, as_of: AsOf) -> str | None:
    return late_yearless_day(words, published, as_of) if published is not None else None


def _late_address(item: SourceItem, as_of: AsOf) -> str | None:
    late_dates = (late_address(url, as_of, title=item.title) for url in (item.url, *item.hops) if url)
    return next((path for path in late_dates if path is not None), None)


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
