"""Finds dates that date the text itself: publication and update lines, datelines, copyright years, Unix times.

A date in prose is not a leak by itself, because plans, deadlines and forecasts name future days. Only a date on which
the text, or a part of it, was written is a leak.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime

from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import FoundDate, Order, find_in_folded
from foretell.tools.dates.folding import fold, lower
from foretell.tools.dates.own_dates import dates_its_text
from foretell.tools.dates.places import DatePlace
from foretell.tools.dates.stamp_words import has_stamp_word_before

MOST_LATE_DATES = 300
"""Maximum number of late dates checked in one text. A text with more counts as late."""


def is_after(day: date, as_of: AsOf) -> bool:
    """Whether a calendar day begins after the cutoff, which is a time in UTC."""
    return day > as_of.at.date()


FARTHEST = 10
"""Years after the cutoff from which a date belongs to a bond, a projection or a novel."""


def is_late(found_date: FoundDate, as_of: AsOf) -> bool:
    """Whether a date may lie after the cutoff, in any of its readings."""
    return any(is_after(day, as_of) for day in found_date.readings)


def is_far(found_date: FoundDate, as_of: AsOf) -> bool:
    """Whether a date is so long after the cutoff that it dates a page only next to a word of publishing."""
    return all(day.year >= as_of.at.year + FARTHEST for day in found_date.readings)


def settled_by(found_date: FoundDate, published: date | None) -> bool:
    """Whether one of several readings is the text's stated publication day, or next to it."""
    if published is None or len(found_date.readings) < 2:
        return False
    return any(abs((day - published).days) <= 1 for day in found_date.readings)


def late_stamp(text: str, as_of: AsOf, *, order: Order = "unknown", published: date | None = None) -> str | None:
    """Return the first passage in which a text dates itself after the cutoff, or None.

    `published` is the stated publication date: of two readings of 05/06/2024, the one that matches it is taken.

    >>> late_stamp("Aktualisiert: 05.06.2024, 14:30 Uhr", AsOf.day("2024-04-01"))
    'Aktualisiert: 05.06.2024'
    >>> late_stamp("Der Bericht wird am 05.06.2024 veröffentlicht.", AsOf.day("2024-04-01"))
    """
    return next((shown for _, shown in late_stamps(text, as_of, order=order, published=published)), None)


def late_stamps(
    text: str, as_of: AsOf, *, order: Order = "unknown", published: date | None = None
) -> Iterator[tuple[int, str]]:
    """Yield every such passage: where its date starts in the folded text, and its text."""
    plain = fold(text)
    low = lower(plain)
    late = [found_date for found_date in find_in_folded(low, order) if is_late(found_date, as_of)]
    for found_date in late[:MOST_LATE_DATES]:
        if not settled_by(found_date, published) and not _read_otherwise(found_date, plain, as_of):
            place = DatePlace(plain, low, found_date, text, far=is_far(found_date, as_of))
            if dates_its_text(place):
                yield found_date.start, place.shown()
    if len(late) > MOST_LATE_DATES:
        yield late[MOST_LATE_DATES].start, f"more than {MOST_LATE_DATES} dates after the cutoff"
    yield from _late_year(plain, low, as_of)
    yield from _late_copyright(low, as_of)
    yield from _late_unix_time(low, as_of)


_MONTH_FIRST = pattern(r"\b[A-Z][a-z]{2,8}\.? \d{1,2}, (?:19|20)\d\d\b|\b\d{1,2}:\d\d ?(?:[AP]M|[ap]\.?m\.?)\b")
_DAY_FIRST = pattern(r"\b\d{1,2} [A-Z][a-z]{2,8} (?:19|20)\d\d\b|\b\d{1,2}\.\d{1,2}\.(?:19|20)\d\d\b")
_DAY_FIRST_BEFORE = pattern(
    r"\b(?:le|du|am|vom|el|del|al|il|dal|em|op|den|dnia|dne|la|na|ngay|tanggal|jour|dia|di|de)\W{1,3}$|[^\x00-\x7f]\W{0,4}$"
)
_AROUND = 2_000


def _read_otherwise(found_date: FoundDate, plain: str, as_of: AsOf) -> bool:
    """Whether the text writes its other dates in the order in which this one is not late."""
    if len(found_date.readings) < 2 or all(is_after(day, as_of) for day in found_date.readings):
        return False
    near = plain[max(0, found_date.start - _AROUND) : found_date.end + _AROUND]
    month_first, day_first = _MONTH_FIRST.search(near) is not None, _DAY_FIRST.search(near) is not None
    if month_first == day_first and "/" in plain[found_date.start : found_date.end]:
        # Languages other than English put the day first.
        day_first = _DAY_FIRST_BEFORE.search(plain, max(0, found_date.start - 16), found_date.start) is not None
        month_first = False
    # The first reading is the one with the day first.
    return month_first != day_first and not is_after(found_date.readings[0 if day_first else 1], as_of)


# Years alone.

_LATE_YEAR = pattern(r"20\d\d(?=\s?(?:[.,;:)\]|]|$|\n|年|году|година|року|r\.))", re.MULTILINE)
_CITED = pattern(
    r"(?:\bet al\.?,?|[A-Z][a-z]{2,20},? [A-Z]\.(?: ?[A-Z]\.)?|\([A-Z][\w-]{2,20}(?: and| &) [A-Z][\w-]{2,20},?"
    r"|\bedition,"
    r"|\bPress,|\bVerlag,|\bdoi:\S{4,60}|\bJournal [^\n.]{3,60},?) ?[([]?(?P<y>20\d\d)[a-z]?(?!\d)"
)
_ANY_YEAR = pattern(r"20\d\d(?!\d)")
_ARXIV = pattern(r"\barxiv: ?(?P<y>2\d)(?P<m>0[1-9]|1[0-2])\.\d{4,5}")


def _late_year(plain: str, low: str, as_of: AsOf) -> Iterator[tuple[int, str]]:
    """Yield years after the cutoff's next to a word of updating, or of a cited work."""
    year = as_of.at.year
    if not any(str(later) in low for later in range(year + 1, year + 6)) and "arxiv" not in low:
        return
    for match in _LATE_YEAR.finditer(low):
        if int(match[0]) > year:
            place = DatePlace(plain, low, FoundDate(match.start(), match.end(), (date(int(match[0]), 1, 1),), "year"))
            if has_stamp_word_before(place):
                yield match.start(), place.shown()
    for near in _ANY_YEAR.finditer(plain):
        first = max(0, near.start() - 90)
        if int(near[0]) <= year or not _may_be_cited(plain[first : near.start()]):
            continue
        cited = _CITED.search(plain, first, near.end() + 1)
        if cited is not None and int(cited["y"]) > year:
            yield cited.start(), cited[0]
    for match in _ARXIV.finditer(low) if "arxiv" in low else ():
        if is_after(date(2000 + int(match["y"]), int(match["m"]), 1), as_of):
            yield match.start(), match[0]


def _may_be_cited(before: str) -> bool:
    """Whether an author or a title may precede a year; most years in prose follow neither."""
    return before.rstrip(" ([")[-1:] in (".", ",", "l") or any(map(before.__contains__, ("(", "doi:", "Journal ")))


_COPYRIGHT = pattern(
    r"(?:©|℗|\(c\)|\bcopyright\b|\bcopr\.|\banno\b|\bprinted in\b|\ball rights reserved\b)[^\n\d]{0,30}?(?:(?:19"
    r"|20)\d\d\s?[-,/]\s?)?"
    r"(?P<year>(?:19|20)\d\d|\bmmxx[ivx]{0,5}\b)"
    r"|\b(?:printed|bound|press|verlag|filmed)\b[^\n]{0,40}?\b(?P<roman>mmxx[ivx]{1,5})\b"
)
_UNIX_TIME = pattern(r"1\d{9}(?:\d{3})?(?!\d)")
_UNIX_KEY = pattern(
    r"(?:timestamp|actualizad|atualizad|aktualis|aggiornat|fecha|updated|modified|published|created|posted|sent|seen|resolved|settled|retrieved|fetched|last|epoch"
    r"|\bts|\btime|\bt)[a-z_]*\"?\s?[:=]\s?\"?$|(?<!end)(?<!close)(?<!start)(?<!expires)(?<!expire)(?<!due)(?<!valid)(?<!next)(?:_at|_time|_date|_utc|_on|_ts|time|date)"
    r"\"?\s?[:=]\s?\"?$|\bepoch $|(?:^|[\n\[{|;,])\s?\"?$"
)
_UNIX_ROW = pattern(r"(?<=\d)\] |\"?\s?[,;|\t ]\s?(?:[a-z_]{1,20}[\s=]\s?)?[-+\"$]?\d+(?:[.,]\d+)?(?![\d:])")
_ROMAN_ENDS = {"": 0, "i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10}


_COPYRIGHT_WORDS = ("©", "℗", "(c)", "cop", "reserved", "mmxx", "printed in")


def _late_copyright(low: str, as_of: AsOf) -> Iterator[tuple[int, str]]:
    if not any(map(low.__contains__, _COPYRIGHT_WORDS)):
        return
    for match in _COPYRIGHT.finditer(low):
        year = match["year"] or match["roman"]
        number = int(year) if year.isdigit() else 2020 + _ROMAN_ENDS.get(year[4:], -20)
        if number > as_of.at.year:
            yield match.start(), match[0].strip()


def _late_unix_time(low: str, as_of: AsOf) -> Iterator[tuple[int, str]]:
    """Yield late Unix times, in seconds or milliseconds, after a key or at the start of a row of numbers."""
    for match in _UNIX_TIME.finditer(low):
        key = _UNIX_KEY.search(low, max(0, match.start() - 30), match.start())
        if key is None or as_of.admits(datetime.fromtimestamp(int(match[0][:10]), UTC)):
            continue
        if ":" in key[0] or "=" in key[0] or "epoch" in key[0] or _UNIX_ROW.match(low, match.end()):
            yield match.start(), key[0] + match[0]
