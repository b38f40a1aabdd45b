"""Dates that a text states about itself: publication and update lines, entries of a live report, dates in addresses."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time
from functools import lru_cache

from foretell.questions.as_of import AsOf, instant
from foretell.tools.addresses import UnreadableAddress, address_of
from foretell.tools.blocklist import is_living
from foretell.tools.tool import SourceItem

MONTHS = {
    "jan": 1, "ene": 1, "fév": 2, "feb": 2, "mar": 3, "mär": 3, "apr": 4, "avr": 4, "abr": 4, "may": 5, "mai": 5,
    "jun": 6, "juin": 6, "jul": 7, "juil": 7, "aug": 8, "aoû": 8, "ago": 8, "sep": 9, "set": 9, "oct": 10, "okt": 10,
    "nov": 11, "dec": 12, "dez": 12, "déc": 12, "dic": 12,
}  # fmt: skip
"""First letters of month names: English, German, French, Spanish; the longest match wins."""
MONTH = (
    r"(?:jan(?:uary|uar|vier|\.)?|ene(?:ro|\.)?|feb(?:ruary|ruar|rero|\.)?|févr?(?:ier|\.)?|mar(?:ch|s|zo|\.)?|märz"
    r"|apr(?:il|\.)?|avr(?:il|\.)|abr(?:il|\.)?|may|mai|mayo|june?|juni|juin|junio|july?|juli|juil(?:let|\.)|julio"
    r"|aug(?:ust|\.)?|août|ago(?:sto|\.)|sept?(?:ember|embre|iembre|\.)?|o[ck]t(?:ober|obre|ubre|\.)?"
    r"|nov(?:ember|embre|iembre|\.)?|dec(?:ember|\.)?|dez(?:ember|\.)?|déc(?:embre|\.)?|dic(?:iembre|\.)?)"
)
ORDINAL = r"(?:st|nd|rd|th|er|\.)?"
DATE = re.compile(
    rf"(?P<iso>\b\d{{4}}-\d{{2}}-\d{{2}})"
    rf"|(?P<cjk>\d{{4}}\s*年\s*\d{{1,2}}\s*月\s*\d{{1,2}}\s*日)"
    rf"|\b(?P<mdy>{MONTH}\s+\d{{1,2}}{ORDINAL},?\s+\d{{4}})\b"
    rf"|\b(?P<dmy>\d{{1,2}}{ORDINAL}[\s-]+(?:of\s+|de\s+)?{MONTH},?[\s-]+(?:de\s+)?\d{{4}})\b"
    rf"|\b(?P<my>{MONTH}\s+\d{{4}})\b"
    rf"|\b(?P<slashed>\d{{1,4}}[/.]\d{{1,2}}[/.]\d{{1,4}})\b",
    re.IGNORECASE,
)
YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
BEFORE_YEAR, AFTER_YEAR = 26, 10
"""How far a date reaches around its year."""
STEMS = (
    *("updat", "modif", "edited", "revised", "correct", "publi", "posted", "date", "editor"),
    *("aktuali", "veröff", "à jour", "actualiz"),
)
STAMP = re.compile(
    r"(?P<word>updated?|modified|edited|revised|corrected|published|posted|aktualisiert|veröffentlicht|à jour|publiée?"
    r"|actualizado|publicado|datemodified|datepublished|editor.s note|correction)\b"
    r"(?P<gap>(?:\s+(?:on|at|am|le|el|date|time))?[\s:=,(\[\"'|·•–—-]{0,6}"
    r"(?:\d{1,2}[:.]\d{2}\s*(?:[ap]\.?m\.?)?\s*(?:[a-z]{2,4})?,?\s*(?:on\s+)?)?"
    r"(?:[a-z]{3,9}day,?\s+|(?:mon|tue|wed|thu|fri|sat|sun)\.?,?\s+)?)"
    r"(?P<rest>[^\n]{0,40})",
    re.IGNORECASE,
)
AGE = re.compile(
    r"^(?:just now|moments ago|today\b|yesterday\b"
    r"|(?:an?|a few|\d+)\s*(?:s|m|h|d|secs?|mins?|minutes?|hrs?|hours?|days?|weeks?|months?|years?)\s+ago)",
    re.IGNORECASE,
)
LEADING_AGE = re.compile(
    r"^\s*(?:an?|\d+)\s+(?:minute|hour|day|week|month|year)s?\s+ago\s*[·•|–—:-]*\s*", re.IGNORECASE
)
FUTURE_BEFORE = re.compile(r"\b(?:be|being|is|are|gets?|not|until)\s+(?:\w+ly\s+)?$", re.IGNORECASE)
PAST_BEFORE = re.compile(
    r"\b(?:was|were|been|last|first|zuletzt|mise?|page|article|story)\s+(?:\w+ly\s+)?$", re.IGNORECASE
)
LINE_START = re.compile(r"(?:^|[\n|·•(\[—–>{,*_\"'])[\s\"']*$")
LIVE_REPORT = re.compile(
    r"\blive ?blog|\blive\b[^\n]{0,40}\b(?:updates?|coverage|results|reaction|ticker|tracker)|\bas it happened\b"
    r"|\bminute[- ]by[- ]minute\b|\brolling coverage\b|^live:|\| live\b",
    re.IGNORECASE,
)
IN_PATH = re.compile(
    r"/((?:19|20)\d{2})/(\d{1,2}|[a-z]{3,9})(?:/(\d{1,2}))?(?=/|$)"
    r"|/(20\d{2})-(\d{2})-(\d{2})(?=[/_-]|$)|/(20\d{2})(\d{2})(\d{2})(?=[/_-]|$)"
)
AGENDA = re.compile(r"event|calendar|schedule|fixture|agenda|conference|ticket|preview")


def dates_in(text: str) -> Iterator[tuple[int, tuple[date, ...]]]:
    """Every date in a text with its position; more than one reading where day and month may be swapped.

    >>> [[d.isoformat() for d in days] for _, days in dates_in("5 March 2026, Mar. 6, 2026, 07/08/2026 and May 2026")]
    [['2026-03-05'], ['2026-03-06'], ['2026-08-07', '2026-07-08'], ['2026-05-01']]
    """
    done = 0
    for year in YEAR.finditer(text):
        for near in DATE.finditer(text, max(done, year.start() - BEFORE_YEAR), year.end() + AFTER_YEAR):
            found = DATE.match(text, near.start()) or near
            done = found.end()
            kind = found.lastgroup or ""
            if readings := tuple(_readings(kind, found[kind])):
                yield found.start(), readings


def _readings(kind: str, text: str) -> Iterator[date]:
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    if kind in {"iso", "cjk"}:
        yield from _day(*numbers)
    elif kind == "slashed":
        a, b, c = numbers
        for year, month, day in ((a, b, c),) if a > 31 else ((c, b, a), (c, a, b)):
            yield from _day(year + 2000 if year < 100 else year, month, day)
    else:
        word = re.findall(r"[^\W\d_]{3,}", text)[0].lower() if kind != "dmy" else _month_word(text)
        yield from _day(numbers[-1], _month(word), numbers[0] if kind != "my" else 1)


def _month_word(text: str) -> str:
    return next(word for word in re.findall(r"[^\W\d_]{3,}", text.lower()) if _month(word))


def _month(word: str) -> int:
    return MONTHS.get(word[:4]) or MONTHS.get(word[:3], 0)


def _day(year: int, month: int, day: int) -> Iterator[date]:
    try:
        yield date(year, month, day)
    except ValueError:
        return


def is_after(day: date, as_of: AsOf) -> bool:
    """Whether a calendar day begins after the cutoff."""
    return not as_of.admits(instant(day))


def late_stamp(text: str, as_of: AsOf) -> str | None:
    """A line in which the text dates itself after the cutoff."""
    for found in _stamps(text):
        dated = DATE.match(found["rest"])
        if dated is None or not _about_itself(text, found):
            continue
        if any(is_after(day, as_of) for day in _readings(dated.lastgroup or "", dated[0])):
            return f"{found['word']} {dated[0]}"
    return None


def age_stamp(text: str) -> str | None:
    """A line in which the text tells its age, which means nothing without the day it was read."""
    for found in _stamps(text):
        age = AGE.match(found["rest"])
        if age is not None and _about_itself(text, found):
            return f"{found['word']} {age[0]}"
    return None


@lru_cache(maxsize=4)
def _stamps(text: str) -> tuple[re.Match[str], ...]:
    """Lines that look like a stamp; kept for the next rule, which reads the same text."""
    return tuple(_stamps_in(text))


def _stamps_in(text: str) -> Iterator[re.Match[str]]:
    """Plain searches for a few stems come first: texts are long and stamps rare."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    for stem in STEMS:
        place = lowered.find(stem)
        while place >= 0:
            found = STAMP.match(text, place) if not (place and text[place - 1].isalnum()) else None
            if found is not None:
                yield found
            place = lowered.find(stem, place + 1)


def _about_itself(text: str, found: re.Match[str]) -> bool:
    before = text[max(0, found.start() - 40) : found.start()]
    if FUTURE_BEFORE.search(before):
        return False
    return found["word"][0].isupper() or bool(LINE_START.search(before) or PAST_BEFORE.search(before))


def late_entry(title: str, text: str, as_of: AsOf) -> str | None:
    """A line of a live report that begins with a date after the cutoff."""
    if not LIVE_REPORT.search(title):
        return None
    for line in text.splitlines():
        opening = line.lstrip(" \t#*-[(•")
        for position, days in dates_in(opening[:40]):
            if position <= 12 and any(is_after(day, as_of) for day in days):
                return opening[:40]
    return None


def late_path(url: str, as_of: AsOf) -> str | None:
    """A publication date after the cutoff in an address, such as /2026/03/05/. Addresses of agendas do not count."""
    try:
        address = address_of(url)
    except UnreadableAddress:
        return None
    if address is None:
        return None
    for found in IN_PATH.finditer(address.path):
        year, month, *rest = filter(None, found.groups())
        days = tuple(_day(int(year), int(month) if month.isdigit() else _month(month), int(rest[0]) if rest else 1))
        if days and is_after(days[0], as_of) and not AGENDA.search(address.path[: found.start()]):
            return found[0]
    return None


def without_age(text: str) -> str:
    """A snippet without the age that engines put before it."""
    return LEADING_AGE.sub("", text)


# The date layer: an item is admitted only if something says that its words are no younger than the cutoff.

OLDEST_YEAR = 1990
"""Dates before the web stand for "unknown" in many databases (1970-01-01 is zero)."""


def date_refusal(item: SourceItem, as_of: AsOf, *, crawl_dates: bool = True) -> str | None:
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


def _states_late_date(item: SourceItem, as_of: AsOf) -> str | None:
    words = _words(item)
    if (stamp := late_stamp(words, as_of)) is not None:
        return f"it states a date after the cutoff: {stamp!r}"
    if (entry := late_entry(item.title, words, as_of)) is not None:
        return f"a live report with an entry after the cutoff: {entry!r}"
    for url in (item.url, *item.hops):
        if url and (path := late_path(url, as_of)) is not None:
            return f"its address is dated after the cutoff: {path!r}"
    return None


def _words(item: SourceItem) -> str:
    return "\n".join(filter(None, (item.title, item.snippet, item.text if item.text != item.snippet else "")))
