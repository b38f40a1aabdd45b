"""Dates as engines write them: read where they are stated, never guessed."""

import re
from datetime import UTC, date, datetime, time
from email.utils import parsedate_to_datetime

from foretell.sources.search import Dating

EARLIEST = date(2000, 1, 1)
"""Where ranges begin for engines that ask for both ends."""

_OLDEST_YEAR = 1900
"""Zero dates such as 0001-01-01 stand for "unknown" in many databases."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_RELATIVE = re.compile(r"(just now|today|yesterday|(an?|\d+)\s*[a-z]+\.?\s+ago)", re.IGNORECASE)
WRITTEN = re.compile(
    r"(?:(?P<m1>[a-z]{3})[a-z]*\.?\s+(?P<d1>\d{1,2})|(?P<d2>\d{1,2})\s+(?P<m2>[a-z]{3})[a-z]*\.?),?\s+(?P<y>\d{4})",
    re.IGNORECASE,
)
"""A day in words, such as Mar 3, 2026 or 3 March 2026."""


def stated(text: str | None) -> tuple[datetime | None, Dating]:
    """The moment a text states, and how it was dated. Ages told from now ("2 days ago") give no moment.

    A day without a clock time is its first moment, and a clock time without a zone is taken as UTC.

    >>> stated("2026-03-03T09:30:00")[0].isoformat()
    '2026-03-03T09:30:00+00:00'
    >>> stated("Mar 3, 2026")[0].date(), stated("2 days ago"), stated("soon"), stated(None)
    (datetime.date(2026, 3, 3), (None, 'relative'), (None, 'none'), (None, 'none'))
    """
    text = (text or "").strip()
    if not text:
        return None, "none"
    if _RELATIVE.fullmatch(text):
        return None, "relative"
    moment = _iso(text) or _written(text) or _mail(text)
    if moment is None or moment.year < _OLDEST_YEAR:
        return None, "none"
    return moment, "published"


def _iso(text: str) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _written(text: str) -> datetime | None:
    found = WRITTEN.fullmatch(text)
    if found is None:
        return None
    try:
        month = _MONTHS.index((found["m1"] or found["m2"]).lower()) + 1
        return datetime.combine(date(int(found["y"]), month, int(found["d1"] or found["d2"])), time.min, UTC)
    except ValueError:
        return None


def _mail(text: str) -> datetime | None:
    try:
        return _utc(parsedate_to_datetime(text))
    except (ValueError, OverflowError):
        return None


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
