"""Deadlines in a claim's wording: "by 2026-03-01", "before March 2025", "by the end of 2030"."""

import re
from dataclasses import dataclass
from datetime import date, timedelta

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<{}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR = r"(?P<{}>(?:19|20)\d\d)(?![\d,.]*\d|\s?%|-)"
_DAY = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th)?"
DEADLINE = re.compile(
    r"\b(?<!days )(?<!weeks )(?<!months )(?<!years )(?<!hours )"
    r"(?P<word>on or before|no later than|by|before)\s+(?P<end>(?:the )?(?:end|start|beginning) of )?(?:"
    r"(?P<iso>\d{4}-\d{2}-\d{2})\b"
    rf"|{_MONTH.format('month1')}\s+{_DAY.format('day1')}\b(?:,?\s+{_YEAR.format('year1')})?"
    rf"|{_DAY.format('day2')}\s+{_MONTH.format('month2')}\b(?:,?\s+{_YEAR.format('year2')})?"
    rf"|{_MONTH.format('month3')}\b(?:,?\s+{_YEAR.format('year3')})?"
    rf"|{_YEAR.format('year4')}"
    r")",
    re.IGNORECASE,
)
BACK = timedelta(days=60)
"""A day without a year is its first after this long before the asking: some markets outlive their day a little."""


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """The first day of the period named, and how it was named; deadlines named alike are in the order of their days."""

    day: date
    kind: str
    """Word, end or start, and precision, e.g. "by end of year"."""


def read_deadline(found: re.Match[str], asked: date) -> Deadline | None:
    """The deadline of a match of `DEADLINE`; None for a day that does not exist.

    >>> read_deadline(DEADLINE.search("out by June 30?"), date(2025, 12, 7))
    Deadline(day=datetime.date(2026, 6, 30), kind='by day')
    """
    said = {name.rstrip("1234"): text for name, text in found.groupdict().items() if text}
    precision = "day" if "iso" in said or "day" in said else "month" if "month" in said else "year"
    kind = " ".join([said["word"].lower(), *said.get("end", "").lower().replace("the ", "").split(), precision])
    try:
        return Deadline(day=_day(said, asked), kind=kind)
    except ValueError:
        return None


def _day(said: dict[str, str], asked: date) -> date:
    if "iso" in said:
        return date.fromisoformat(said["iso"])
    month = 1 + MONTHS.index(said["month"][:3].lower()) if "month" in said else 1
    day = int(said.get("day", "1"))
    if "year" in said:
        return date(int(said["year"]), month, day)
    first = asked - BACK
    this_year = date(first.year, month, day)
    return this_year if this_year >= first else date(first.year + 1, month, day)
