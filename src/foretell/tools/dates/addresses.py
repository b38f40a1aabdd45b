"""Dates in addresses: in folders, slugs, queries, fragments and file names."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import islice
from urllib.parse import unquote

from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.tools.addresses import UnreadableAddress, address_of
from foretell.tools.dates.find import find_in_folded, month_numbers, valid_days
from foretell.tools.dates.folding import fold, lower
from foretell.tools.dates.periods import late_period
from foretell.tools.dates.stamps import is_after
from foretell.tools.dates.words import FIXTURE, PLANNED, SCHEDULED

_FOLDERS = pattern(r"/((?:19|20)\d{2})/(\d{1,2}|[a-z]{3,9})(?:/(\d{1,2}))?(?=/|$)|/((?:19|20)\d{2})-(\d{2})(?=/|$)")
_FOLDED = pattern(r"/(20\d\d)(0[1-9]|1[0-2])/(0[1-9]|[12]\d|3[01])(?=/|$)")
_COMPACT = pattern(r"(?<!\d)(20\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")
_LONG_COMPACT = pattern(r"(?<!\d)(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])\d{2,6}(?!\d)")
_DAY_FIRST = pattern(r"(?<!\d)(0[1-9]|[12]\d|3[01])(0[1-9]|1[0-2])(20\d\d)(?!\d)")
_SHORT_YEAR = pattern(r"(?<=[-_/])(\d\d)([-_.])(\d\d)\2(\d\d)(?=[./?#]|$|[-_][a-z])")
_SHORT_COMPACT = pattern(r"(?<=/)(2\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=[-_][a-z])")
_PARTS = pattern(r"\bd(?:ay)? (?P<d>\d{1,2}) m(?:onth)? (?P<m>\d{1,2}) y(?:ear)? (?P<y>20\d\d)(?!\d)")
_PARTS_BACK = pattern(r"\by(?:ear)? ?(?P<y>20\d\d) m(?:onth)? ?(?P<m>\d{1,2}) d(?:ay)? ?(?P<d>\d{1,2})(?!\d)")
_WEEK = pattern(r"(?<!\d)(20\d\d)-?w(\d\d)(?!\w)")
_SPACED = pattern(r"(?<!\d)(\d{1,2}) (\d{1,2}) (20\d\d)(?!\d)")
_OLDEST = 2015
_DIGIT = pattern(r"\d")
_SEPARATORS = pattern(r"[-_+./?&=#,%]+")
_MAY_BE_DATED = pattern(r"\d(?:[a-z]|(?<=[a-z].)|\D*\d\D*\d\D*\d)|[^\x00-\x7f]|'")
"""Matches the words of any address that contains a date: four digits, or a number next to letters (5jun24, q224)."""


def late_address(url: str, as_of: AsOf, *, title: str = "") -> str | None:
    """Return a date after the cutoff in an address, such as /2026/03/05/ or -on-6-june-2024, or None.

    Addresses of agendas and future events do not count.
    """
    try:
        address = address_of(url)
    except UnreadableAddress:
        return None
    if address is None:
        return None
    query = "&".join(f"{name}={value}" for name, value in sorted(address.params))
    fragment = url.split("#", 1)[1] if "#" in url else ""
    place = lower(fold(unquote(f"{address.path}?{query}#{fragment}")))
    if _DIGIT.search(place) is None:
        return None
    for text, before, days in _in_folders(place):
        if all(is_after(day, as_of) for day in days) and not SCHEDULED.search(before):
            return text
    if (late_time := _late_unix_time(address.params, as_of) or _late_number(address.host, place, as_of)) is not None:
        return late_time
    words = f"{_SEPARATORS.sub(' ', place)} "
    if _MAY_BE_DATED.search(words) is None:
        return None
    late = _late_words(place, words, as_of)
    if late is None or any(plan.search(text) for plan in _PLANS for text in (words, lower(fold(title)))):
        return None
    return late


_BOOKING = pattern(r"check ?(?:in|out)|arriv|depart|availab|\bbook|nights|\bstay")
_PLANS = (SCHEDULED, PLANNED, FIXTURE, _BOOKING)


def _late_words(place: str, words: str, as_of: AsOf) -> str | None:
    if (period := late_period(words, as_of)) is not None:
        return period
    for text, days in (
        *_in_digits(place, words),
        *((match[0], tuple(valid_days(int(match[1]), int(match[2]), 1))) for match in _MONTH_SLUG.finditer(place)),
        *((words[f.start : f.end], f.readings) for f in find_in_folded(words)),
    ):
        if days and all(is_after(day, as_of) for day in days):
            return text
    return None


_UNIX_TIME = pattern(r"1[5-9]\d{8}(?:\d{3})?")
_NAMES_OF_THINGS = frozenset(
    ("id", "p", "a", "pid", "aid", "article", "story", "post", "user", "uid", "item", "page", "n")
)


def _late_unix_time(params: frozenset[tuple[str, str]], as_of: AsOf) -> str | None:
    """Return a late Unix time in a query, except in parameters that hold ids, which may look like one."""
    for name, value in sorted(params):
        match = _UNIX_TIME.fullmatch(value) if name not in _NAMES_OF_THINGS else None
        if match is not None and not as_of.admits(datetime.fromtimestamp(int(value[:10]), UTC)):
            return f"{name}={value}"
    return None


_POST = pattern(r"/status(?:es)?/(\d{15,20})(?!\d)")
_TWITTER = pattern(r"(?:^|\.)(?:twitter|x|fxtwitter|vxtwitter|fixupx|nitter)\b")
_POSTS = (
    (_TWITTER, _POST, 22, 1288834974657),
    (pattern(r"(?:^|\.)discord"), pattern(r"/(\d{17,20})(?=[/?#]|$)"), 22, 1420070400000),
    (pattern(r""), pattern(r"/@[\w.@-]{1,60}/(1[01]\d{16})(?!\d)"), 16, 0),
)
"""Host pattern, pattern of a post's id in the address, and the bit shift and epoch that give its milliseconds."""
_UNIX_FOLDER = pattern(r"/(1[67]\d{8})(?:\d{3})?(?=[/?#]|$|[-_.][a-z])")


def _late_number(host: str, place: str, as_of: AsOf) -> str | None:
    """Return a post id, which encodes when the post was written, or a Unix time as a folder, if it is late."""
    for hosts, number, shift, epoch in _POSTS:
        for match in number.finditer(place) if hosts.search(host) else ():
            at = datetime.fromtimestamp(((int(match[1]) >> shift) + epoch) / 1000, UTC)
            if not as_of.admits(at):
                return match[0]
    for match in _UNIX_FOLDER.finditer(place):
        if not as_of.admits(datetime.fromtimestamp(int(match[1]), UTC)):
            return match[0]
    return None


_LINK = pattern(r"(?:https?://|(?:href|src)=[\"']/|\]\(/)[^\s\"'<>)\]]{4,300}")
_MOST_LINKS = 200


def late_link(text: str, as_of: AsOf, *, title: str = "") -> str | None:
    """Return a link in a text whose address is dated after the cutoff, or None."""
    if "//" not in text and "=" not in text and "](" not in text:
        return None
    for match in islice(_LINK.finditer(text), _MOST_LINKS):
        link = match[0] if match[0].startswith("http") else f"https://a.example/{match[0].partition('/')[2]}"
        if _DIGIT.search(link) is not None and (late := late_address(link, as_of, title=title)) is not None:
            return late
    return None


def _in_folders(place: str) -> Iterator[tuple[str, str, tuple[date, ...]]]:
    """Yield the dates formed by folders, each with the text before it."""
    for match in _FOLDERS.finditer(place):
        year, month, *rest = filter(None, match.groups())
        numbers = (int(month),) if month.isdigit() else month_numbers(month)
        days = tuple(day for number in numbers for day in valid_days(int(year), number, int(rest[0]) if rest else 1))
        if days:
            yield match[0], place[: match.start()], days


_MONTH_SLUG = pattern(r"/(20\d\d)-(0[1-9]|1[0-2])-(?=[a-z]{3})")


def _in_digits(place: str, words: str) -> Iterator[tuple[str, tuple[date, ...]]]:
    for compact in (_COMPACT, _FOLDED, _LONG_COMPACT, _SHORT_COMPACT):
        for match in compact.finditer(place):
            year = int(match[1]) + (2000 if len(match[1]) == 2 else 0)
            yield match[0], tuple(valid_days(year, int(match[2]), int(match[3])))
    for match in _DAY_FIRST.finditer(place):
        yield match[0], tuple(valid_days(int(match[3]), int(match[2]), int(match[1])))
    for match in _SHORT_YEAR.finditer(place):
        a, b, c = int(match[1]), int(match[3]), int(match[4])
        days = (*valid_days(2000 + c, b, a), *valid_days(2000 + c, a, b), *valid_days(2000 + a, b, c))
        yield match[0], tuple(day for day in days if day.year >= _OLDEST)
    for match in _WEEK.finditer(place):
        if 1 <= int(match[2]) <= 52:
            yield match[0], (date.fromisocalendar(int(match[1]), int(match[2]), 1),)
    for parts in (_PARTS, _PARTS_BACK):
        for match in parts.finditer(words):
            yield match[0], tuple(valid_days(int(match["y"]), int(match["m"]), int(match["d"])))
    for match in _SPACED.finditer(words):
        a, b, year = (int(number) for number in match.groups())
        yield match[0], (*valid_days(year, b, a), *valid_days(year, a, b))
