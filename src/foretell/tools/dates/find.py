"""Finds dates in texts, in many languages, digits, calendars and orders of day and month."""

import json
import re
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any, Literal

from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.tools.dates.folding import fold, lower


@cache
def _calendar_words() -> dict[str, Any]:
    return json.loads(files("foretell.tools.dates").joinpath("calendar_words.json").read_text(encoding="utf-8"))


@cache
def months() -> dict[str, tuple[int, ...]]:
    """Return the month names of all languages, folded; some mean different months in different languages."""
    return {name.strip("'"): tuple(numbers) for name, numbers in _calendar_words()["months"].items()}


@cache
def weekdays() -> frozenset[str]:
    """Return the words of the weekday names of all languages."""
    return frozenset(word for name in _calendar_words()["weekdays"] for word in _WORD.findall(name))


@cache
def age_patterns() -> tuple[str, ...]:
    """Return the ways to say "3 hours ago", with {} for the number."""
    return tuple(_calendar_words()["ages"])


_WORD = pattern(r"[^\W\d_]+")

Precision = Literal["day", "month", "year"]


@frozen(kw_only=False)
class FoundDate:
    """A date in a folded text. It has several readings if day and month may be swapped."""

    start: int
    end: int
    readings: tuple[date, ...]
    precision: Precision = "day"


Order = Literal["day first", "month first", "unknown"]
"""How to read a date such as 05/06/2024."""

# Each pattern begins with one rare character, and the surroundings are checked afterwards. Searching for a character is
# several times faster than for anything else, including a repeated one (`\d{1,4}`).
_DIGIT = pattern(r"[0-9]")
_YEARS = tuple(pattern(rf"{first}[0-9]{{3}}(?!\d|%|[.,]\d{{3}}(?!\d))") for first in "12")
_NUMERIC = pattern(
    r"[0-9][0-9]{0,3}[ \t]{0,2}(?P<s>[-/._~·:])[ \t]{0,2}[0-9]{1,2}[ \t]{0,2}(?P=s)[ \t]{0,2}[0-9]{1,4}(?![0-9])"
)
_COMPACT = pattern(r"20\d{6}(?:\d{6})?(?!\d)")
_NAMED = pattern(r"[0-9](?P<s>[-/.]?)(?P<m>[^\W\d_]{3,9})(?P=s)'?\d{2}(?!\w)")
_QUOTED_YEAR = pattern(r"'2\d(?!\d)")
_NAMED_AFTER = pattern(r"(?<![\d.,/])(?P<d>\d{1,2})(?:st|nd|rd|th)?\.? (?P<m>[a-z]{3,9})\.? '(?P<y>\d\d)$")
_ROW_YEAR = pattern(r" 2[0-9](?=\s{2}|\s?[|,;\t\n]|$)")
_ROW_DATE = pattern(r"(?<![^\n])(?P<d>\d{1,2}) (?P<m>[a-z]{3,9}) (?P<y>2\d)$")
"""A day at the start of a row, which may have a two-digit year."""
_NAMED_FIRST = pattern(r"\b(?P<m>[a-z]{3,9})\.? (?P<d>\d{1,2}),? '(?P<y>\d\d)$")
_SHORT_YEAR = pattern(r"2[0-9](?<=[-']..)(?![\w-])")
_NAMED_MONTH = pattern(r"\b(?P<m>[a-z]{3})[-'](?P<y>2\d)$")
_CLOCK_YEAR = pattern(r":\d{2}(?: [a-z]{3,4})? 20\d\d(?!\d)")
_CLOCK_WITHIN = pattern(
    r"\b(?P<m>[a-z]{3,9}) {1,2}(?P<d>\d{1,2}),? \d{2}:\d{2}(?::\d{2})?(?: [a-z]{3,4})? (?P<y>20\d\d)$"
)
_WEEK = pattern(r"(?P<y>20\d\d)-?w(?P<w>\d\d)(?:-?(?P<d>[1-7]))?(?!\w)")
_YEAR_MONTH = pattern(r"20[0-9]{2}-(?:0[1-9]|1[0-2])(?![0-9]|[-/.][0-9])")
_ORDINAL = pattern(r"(?P<y>20\d\d)(?P<s>-?)(?P<n>[0-3]\d\d)(?!\d|-\d|[.,]\d{3})")
_ORDINAL_WORDS = pattern(r"day (?P<n>\d{1,3}),? (?:of )?(?P<y>20\d\d)(?!\d)")
_NO_DATE_BEFORE = frozenset("0123456789.,/$€£-")
_NO_YEAR_BEFORE = frozenset(",$€£")
_EAST_ASIAN = pattern(r"(?P<y>\d{4})\s*[年년]\s*(?P<m>\d{1,2})\s*[月월](?:\s*(?P<d>\d{1,2})\s*[日号號일])?")
_THAI = pattern(r"(?P<d>\d{1,2}) ?(?P<m>[\u0e01-\u0e2e]{2,10})\.? ?(?P<y>[67]\d)(?!\d)")
_THAI_LETTER = pattern("[\u0e01-\u0e2e]")
_MONGOLIAN = pattern(r"(?P<y>20\d\d) оны (?P<m>\d{1,2})(?:-?\w{1,7})? сарын (?P<d>\d{1,2})")
_YEAR_LAST = pattern(r"(?P<m>\d{1,2})[月월]\s?(?P<d>\d{1,2})[日号號일][^\d\n,]{0,4}(?P<y>20\d\d)[年년](?!\s?\d)")
_ERA = pattern(r"(?P<era>令和|平成|民[國国])\s*(?P<n>\d{1,3}|元)\s*年\s*(?P<m>\d{1,2})\s*月(?:\s*(?P<d>\d{1,2})\s*日)?")
_SHORT_ERA = pattern(r"\br(?P<n>\d{1,2})[./-](?P<m>\d{1,2})[./-](?P<d>\d{1,2})(?!\d)")
"""The Reiwa era in Latin letters, as used in forms: R6.6.5."""
_CHINESE = pattern("[\u3040-\u30ff\u4e00-\u9fff]")
_ERA_START = {"令和": 2018, "平成": 1988, "民國": 1911, "民国": 1911}
_HEBREW = pattern(
    r"(?:(?<!\w)(?P<d>[א-ל](?:['\"]?[א-ט])?)'? )?(?<!\w)(?P<m>ב?[א-ת]{2,6})(?: [אב]')?,? "
    r"ה?'?(?P<y>תש[נ-צ]?['\"]{0,2}[א-צ])(?!\w)"
)
"""A Hebrew month and year, and a day in letters: י"ד בטבת תשפ"ד."""
_HEBREW_NUMBERS = {letter: number for number, letter in enumerate("אבגדהוזחט", start=1)} | {
    letter: 10 * number for number, letter in enumerate("יכלמנסעפצ", start=1)
}
_VIETNAMESE = pattern(
    r"(?:(?P<d>\d{1,2})\s*)?(?:thang|thg|th\.?)\s*(?P<m>\d{1,2})\s*(?:,|nam|/)?\s*(?:nam\s*)?(?P<y>20\d\d)"
)
_VIETNAMESE_SEEN = pattern(r"th(?:ang|g|\.)?\s*\d")
_VIETNAMESE_MONTHS = ("thang", "thg", " th ", " th.", " th1", "0th", "1th", "2th")
_TOKEN = pattern(r"\d+|[^\W\d_]+")
_GAP = pattern(r"[\s.,'/()\-ºª°*_~]{0,5}\Z")
_FILLERS = frozenset(
    _WORD.findall(
        "of de del di d den the st nd rd th er re e o a os as ano r y u yil yili year anno annee г года год року р ж "
        "gada m men ga ta ste ого го η ος της του bv an vom la el en do em ad ce nam i fundit ko oni оны พศ ศ พ ค สน "
        "ه م میلادی لسنة عام سنة शक सन dhu dhul qi al წლის жылғы жылдың жылы թվականի թ godine godini "
        "leta metų evi yilinin ilin il cu ci yilning "
        "الاخر الاول الثانی الاولی الاخرة"
    )
)
"""Words that may stand between day, month and year."""
_ROMAN_NUMBERS = "i ii iii iv v vi vii viii ix x xi xii"
_ROMAN = {word: place for place, word in enumerate(_ROMAN_NUMBERS.split(), start=1)}
"""Month numbers in dates such as 5.VI.2024."""
_BEFORE, _AFTER = 44, 36
"""How many characters a date in words may extend before and after its year."""


def valid_days(year: int, month: int, day: int) -> Iterator[date]:
    """Yield the day, if it is one of the calendar."""
    try:
        yield date(year, month, day)
    except ValueError:
        return


def find_dates(text: str, *, order: Order = "unknown") -> list[FoundDate]:
    """Return every date in a text, in order of position in the folded text.

    >>> [str(found.readings[0]) for found in find_dates("5 March 2026, 2026年3月7日, 8 มีนาคม 2569, May 2026")]
    ['2026-03-05', '2026-03-07', '2026-03-08', '2026-05-01']
    """
    return list(_find(lower(fold(text)), order))


def find_in_folded(low: str, order: Order = "unknown") -> list[FoundDate]:
    """Return every date in a text that is already folded and in lower case."""
    return list(_find(low, order))


@lru_cache(maxsize=8)
def _find(low: str, order: Order) -> tuple[FoundDate, ...]:
    if _DIGIT.search(low) is None and "תש" not in low:
        return ()
    found_dates: dict[int, FoundDate] = {}
    end = -1
    chinese = not low.isascii() and _CHINESE.search(low) is not None
    candidates = (
        *_in_signs(low, chinese=chinese),
        *_in_digits(low, order, chinese=chinese),
        *_in_numbers(low),
        *_with_names(low),
    )
    for candidate in sorted(candidates, key=lambda entry: (entry.start, -entry.end)):
        if candidate.start >= end and candidate.readings:
            found_dates[candidate.start] = candidate
            end = candidate.end
    covered = {place for found_date in found_dates.values() for place in range(found_date.start, found_date.end)}
    for year in sorted(chain.from_iterable(years.finditer(low) for years in _YEARS), key=re.Match.start):
        number, before = int(year[0]), low[max(0, year.start() - 1) : year.start()]
        known = 1900 <= number < 2100 or 1300 <= number < 1500 or 2550 <= number < 2600
        if not known or before.isdigit() or before in _NO_YEAR_BEFORE:
            continue
        if year.start() in covered:
            continue
        worded = _in_words(low, year)
        if worded is not None and worded.readings:
            found_dates[worded.start] = worded
    return tuple(found_dates[start] for start in sorted(found_dates))


def _in_signs(low: str, *, chinese: bool) -> Iterator[FoundDate]:
    """Yield dates that mark year, month and day with signs or words: 2024年6月5日, 5 thang 6 nam 2024."""
    east_asian = "年" in low or "년" in low
    if east_asian:
        for match in _ERA.finditer(low):
            year = _ERA_START[match["era"]] + (1 if match["n"] == "元" else int(match["n"]))
            yield _signed(match, year)
    vietnamese = _VIETNAMESE_SEEN.search(low) is not None and any(map(low.__contains__, _VIETNAMESE_MONTHS))
    mongolian = " сарын " in low
    for signs in (_EAST_ASIAN, _YEAR_LAST) * east_asian + (_VIETNAMESE,) * vietnamese + (_MONGOLIAN,) * mongolian:
        for match in signs.finditer(low):
            yield _signed(match, int(match["y"]))
    for match in _THAI.finditer(low) if not low.isascii() and _THAI_LETTER.search(low) else ():
        days = (
            day for month in month_numbers(match["m"]) for day in _day(2500 + int(match["y"]), month, int(match["d"]))
        )
        yield FoundDate(match.start(), match.end(), tuple(days))
    for match in _HEBREW.finditer(low) if "תש" in low else ():
        day = sum(_HEBREW_NUMBERS[letter] for letter in (match["d"] or "").replace("'", "").replace('"', ""))
        days = (
            reading
            for month in month_numbers(match["m"])
            for reading in _day(_hebrew_year(match["y"]), month, day or 1)
        )
        yield FoundDate(match.start(), match.end(), tuple(days), "day" if day else "month")
    if chinese:
        for match in _SHORT_ERA.finditer(low):
            yield _signed(match, 2018 + int(match["n"]))


def _signed(match: re.Match[str], year: int) -> FoundDate:
    readings = tuple(_day(year, int(match["m"]), int(match["d"] or 1)))
    return FoundDate(match.start(), match.end(), readings, "day" if match["d"] else "month")


def _in_digits(low: str, order: Order, *, chinese: bool) -> Iterator[FoundDate]:
    for match in _NUMERIC.finditer(low):
        before, after = low[max(0, match.start() - 2) : match.start()], low[match.end() : match.end() + 2]
        clock = before[-1:] == ":" and before[:1].isdigit()
        longer = after[:1] in (".", "/") and after[1:].isdigit()
        # "rates,2024-06-05" and "rates-2024-06-05.csv"
        year_first = match[0][:4].isdigit() and (before[-1:] == "," or (before[-1:] == "-" and before[:1].isalpha()))
        if (year_first or before[-1:] not in _NO_DATE_BEFORE) and not clock and not longer and after[:1] != "%":
            days = _numeric(match[0], match["s"], order, taiwanese=chinese)
            yield FoundDate(match.start(), match.end(), tuple(dict.fromkeys(days)))
    for match in _COMPACT.finditer(low):
        digits = match[0]
        if not low[max(0, match.start() - 1) : match.start()].isdigit() and (len(digits) == 8 or digits[8:12] < "2400"):
            days = tuple(_day(int(digits[:4]), int(digits[4:6]), int(digits[6:8])))
            yield FoundDate(match.start(), match.end(), days)


def _in_numbers(low: str) -> Iterator[FoundDate]:
    """Yield months, weeks and days given by their number in the year: 2024-06, 2024-W23, 2024-158."""
    for match in _YEAR_MONTH.finditer(low):
        if not low[max(0, match.start() - 1) : match.start()].isalnum():
            yield FoundDate(match.start(), match.end(), (date(int(match[0][:4]), int(match[0][5:]), 1),), "month")
    for match in _WEEK.finditer(low) if "w" in low else ():
        yield FoundDate(match.start(), match.end(), tuple(_week(match)))
    for match in _ORDINAL.finditer(low):
        # 2024158 may be any number. It counts as a day only right after a word of publishing.
        bare = not match["s"] and low[max(0, match.start() - 2) : match.start()] != ": "
        if low[max(0, match.start() - 1) : match.start()] not in _NO_DATE_BEFORE and not bare:
            yield FoundDate(match.start(), match.end(), tuple(_day_of_year(match)))
    for match in _ORDINAL_WORDS.finditer(low) if "day " in low else ():
        yield FoundDate(match.start(), match.end(), tuple(_day_of_year(match)))


def _week(match: re.Match[str]) -> Iterator[date]:
    """Yield the first day of a week of the year, or the given day of that week; nothing if there is no such week."""
    try:
        yield date.fromisocalendar(int(match["y"]), int(match["w"]), int(match.groupdict().get("d") or 1))
    except ValueError:
        return


def _day_of_year(match: re.Match[str]) -> Iterator[date]:
    """Yield the day by its number in the year, such as 2024-158."""
    if 1 <= int(match["n"]) <= 366:
        yield date(int(match["y"]), 1, 1) + timedelta(days=int(match["n"]) - 1)


def _numeric(text: str, separator: str, order: Order, *, taiwanese: bool = False) -> list[date]:
    a, b, c = (part.strip() for part in text.split(separator))
    if len(a) == 4 and len(c) <= 2:
        # Day and month are sometimes swapped after the year as well.
        return list(_day(int(a), int(b), int(c))) or list(_day(int(a), int(c), int(b)))
    if taiwanese and len(a) == 3 and a.startswith("1") and len(c) <= 2:
        return list(_day(int(a) + 1911, int(b), int(c)))
    if len(a) > 2 or len(c) not in (2, 4) or separator == ":":
        return []
    if len(c) == 2:
        # 05.06.24 and 5/6/24 are dates; 24-06-05 and 1-2-24 may be anything.
        if separator not in "./":
            return []
        c = f"20{c}"
    day_first, month_first = list(_day(int(c), int(b), int(a))), list(_day(int(c), int(a), int(b)))
    if separator != "/" or order == "day first":
        return day_first or month_first
    if order == "month first":
        return month_first or day_first
    return day_first + month_first


def _with_names(low: str) -> Iterator[FoundDate]:
    """Yield dates with a month name that do not end in a plain year, or have a time before it.

    Examples: 5-Jun-24, Jun 5, '24, Jun-24, Jun 5 08:15:42 2024.
    """
    for match in _NAMED.finditer(low):
        start = match.start() - low[max(0, match.start() - 1) : match.start()].isdigit()
        if not low[max(0, start - 1) : start].isalnum():
            day, year = int(low[start : match.start() + 1]), 2000 + int(match[0][-2:])
            days = tuple(reading for number in month_numbers(match["m"]) for reading in _day(year, number, day))
            yield FoundDate(start, match.end(), days)
    for ends, *wholes in _NAMES_BY_ENDING:
        for whole, end in ((whole, end) for end in ends.finditer(low) for whole in wholes):
            match = whole.search(low, max(0, end.start() - 29), end.end())
            if match is not None:
                year = int(match["y"]) + (2000 if len(match["y"]) == 2 else 0)
                day = int(match.groupdict().get("d") or 0)
                days = tuple(
                    reading for number in month_numbers(match["m"]) for reading in _day(year, number, day or 1)
                )
                yield FoundDate(match.start(), match.end(), days, "day" if day else "month")


_NAMES_BY_ENDING = (
    (_QUOTED_YEAR, _NAMED_FIRST, _NAMED_AFTER),
    (_ROW_YEAR, _ROW_DATE),
    (_CLOCK_YEAR, _CLOCK_WITHIN),
    (_SHORT_YEAR, _NAMED_MONTH),
)
"""The ending of a date, which is rare and fast to find, and patterns of the whole date."""


def _in_words(low: str, year: re.Match[str]) -> FoundDate | None:
    """Return a date with the name of its month before or after a year, or None."""
    for backwards in (True, False):
        start, end = (max(0, year.start() - _BEFORE), year.start()) if backwards else (year.end(), year.end() + _AFTER)
        day, month, edge = _day_and_month(low, _tokens(low, start, end, backwards=backwards), backwards=backwards)
        if month:
            days = tuple(reading for number in month for reading in _day(int(year[0]), number, day or 1))
            place = (edge, year.end()) if backwards else (year.start(), edge)
            return FoundDate(*place, days, "day" if day else "month")
    return None


_DECIMAL_BEFORE = pattern(r"\d[.,]$")


def _day_and_month(
    low: str, tokens: list[tuple[str, int, int]], *, backwards: bool
) -> tuple[int, tuple[int, ...], int]:
    """Return the day (0 if none), the possible months, and where the date ends on that side of the year."""
    day, month, edge, roman = 0, (), 0, False
    for word, start, end in tokens:
        if word.isdigit():
            # Decimals are not days. In a table, the line above may end in one.
            if (
                day
                or len(word) > 2
                or not 1 <= int(word) <= 31
                or _DECIMAL_BEFORE.search(low, max(0, start - 2), start)
            ):
                break
            day = int(word)
        elif not month and (numbers := month_numbers(word)):
            month = numbers
        elif not month and word in _ROMAN and not low[start - 1 : start].isalnum():
            month, roman = (_ROMAN[word],), True
        elif word in _FILLERS or (len(word) <= 3 and not word.isascii()):
            continue
        else:
            break
        edge = start if backwards else end
        if day and month:
            break
    return (0, (), 0) if roman and not day else (day, month, edge)


def _tokens(low: str, start: int, end: int, *, backwards: bool) -> list[tuple[str, int, int]]:
    """Return words and numbers next to a year, nearest first, up to the first gap that is more than a separator."""
    tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(low, start, min(end, len(low)))]
    if backwards:
        # A word cut by the window does not count.
        if tokens and start > 0 and tokens[0][1] == start and low[start - 1].isalnum():
            tokens = tokens[1:]
        tokens.reverse()
    near: list[tuple[str, int, int]] = []
    edge = end if backwards else start
    for word, left, right in tokens[:6]:
        gap = low[right:edge] if backwards else low[edge:left]
        if not _GAP.match(gap):
            break
        near.append((word, left, right))
        edge = left if backwards else right
    return near


def month_names() -> Iterator[str]:
    """Return every month name, folded and in lower case."""
    return chain(months(), _more_months())


@lru_cache(maxsize=4096)
def month_numbers(word: str) -> tuple[int, ...]:
    """Return the months that a folded lower-case word can mean; Persian ones count from 101, Islamic ones from 201."""
    table = months()
    # Inflected forms come first: without vowel signs, the Hindi name of June equals a short January.
    if (numbers := _more_months().get(word) or table.get(word)) is not None:
        return numbers
    if (number := _other_months().get(word)) is not None:
        return (number,)
    # Hebrew "in June" and Khmer "month of June" are one word; Latvian and Basque have cases.
    for base in _bases(word):
        if (numbers := table.get(base)) is not None:
            return numbers
    # Abbreviations of four and five letters that CLDR writes with three, and inflected endings.
    if len(word) >= 4 and word.isascii():
        return table.get(word[:3], ()) if word in _LONGER_ABBREVIATIONS else ()
    return ()


def _bases(word: str) -> Iterator[str]:
    if word[:1] in ("ב", "ខ"):
        yield word[1:]
    if word.endswith(("ija", "ila", "ta")):
        yield f"{word[:-1]}s"
    if (compound := _COMPOUND.match(word)) is not None:
        yield compound[1]
    if word.endswith(("aren", "ren")) and len(word) > 6:
        yield from (word[:-3], word[:-2], f"{word[:-3]}a")


_COMPOUND = pattern(
    r"(januari?|februari?|august|september|oktober|november|de[cszk]ember)(?:mot|sitz|runde|sammantr|rapport|bericht|wahl|val"
    r"|valg|rante|hoj|sank|tref|zitting|cijfer|tal|spel|kamp|derby|streik|strejk|storm|hochwasser|schnee)[a-z]{0,16}"
)
"""Germanic compounds such as "decembermötet", the meeting in December."""
_LONGER_ABBREVIATIONS = frozenset(("sept", "juin", "juil", "mars", "avril", "mayo", "janv", "fevr"))
_PERSIAN = (
    ("فروردین", "اردیبهشت", "خرداد", "تیر", "مرداد", "شهریور", "مهر", "آبان", "آذر", "دی", "بهمن", "اسفند")
)  # fmt: skip
_ISLAMIC = {
    1: ("محرم",), 2: ("صفر",), 7: ("رجب",), 8: ("شعبان",), 9: ("رمضان",), 10: ("شوال",), 11: ("القعدة", "القعده"),
    12: ("الحجة", "الحجه"), 4: ("ربيع",), 6: ("جمادى",),
}  # fmt: skip
"""Islamic months whose names are one word, or end in a word that only they have."""
_PERSIAN_LATIN = "farvardin ordibehesht khordad tir mordad shahrivar mehr aban azar dey bahman esfand"
_ISLAMIC_LATIN = "muharram safar - - - - rajab shaban ramadan shawwal qidah hijjah"
_ETHIOPIC = (
    "መስከረም", "ጥቅምት", "ኅዳር ህዳር", "ታኅሣሥ ታህሳስ ታኅሳስ", "ጥር", "የካቲት", "መጋቢት", "ሚያዝያ", "ግንቦት", "ሰኔ", "ሐምሌ ሀምሌ",
    "ነሐሴ ነሃሴ", "ጳጉሜን ጳጉሜ",
)  # fmt: skip
_NEPALI = (
    "बैशाख वैशाख", "जेठ जेष्ठ", "असार आषाढ", "साउन श्रावण", "भदौ भाद्र", "असोज आश्विन", "कात्तिक कार्तिक", "मंसिर मङ्सिर",
    "पुस पौष", "माघ", "फागुन फाल्गुन", "चैत चैत्र",
)  # fmt: skip
_HEBREW_MONTHS = (
    "תשרי", "חשון חשוון מרחשון מרחשוון", "כסלו כסליו", "טבת", "שבט", "אדר", "ניסן", "אייר איר", "סיון סיוון", "תמוז",
    "אב", "אלול",
)  # fmt: skip


@cache
def _other_months() -> dict[str, int]:
    """Return the months of other calendars, folded, with 100 (Persian) to 500 (Hebrew) added to their number."""
    return (
        {fold(name): 100 + place for place, name in enumerate(_PERSIAN, start=1)}
        | {name: 100 + place for place, name in enumerate(_PERSIAN_LATIN.split(), start=1) if len(name) > 4}
        | {fold(name): 200 + place for place, forms in _ISLAMIC.items() for name in forms}
        | {name: 200 + place for place, name in enumerate(_ISLAMIC_LATIN.split(), start=1) if name != "-"}
        | {fold(name): 300 + place for place, forms in enumerate(_ETHIOPIC, start=1) for name in forms.split()}
        | {fold(name): 400 + place for place, forms in enumerate(_NEPALI, start=1) for name in forms.split()}
        | {
            prefix + name: 500 + place
            for place, forms in enumerate(_HEBREW_MONTHS, start=1)
            for name in forms.split()
            for prefix in ("", "ב")
        }
        | {"qadah": 211, "qada": 211, "dah": 211, "hijja": 212, "ramazan": 209}
    )


_CASES = (
    "januarja februarja - - - - - avgusta - - - -",  # Slovene
    "јануара фебруара марта априла маја јуна јула августа септембра октобра новембра децембра",
    "janvārī februārī martā aprīlī maijā jūnijā jūlijā augustā septembrī oktobrī novembrī decembrī",
    "janvāra - - - - - - - - - - -",
    "jaanuaril veebruaril märtsil aprillil mail juunil juulil augustil septembril oktoobril novembril detsembril",
    "tammikuussa helmikuussa maaliskuussa huhtikuussa toukokuussa kesäkuussa heinäkuussa elokuussa syyskuussa "
    "lokakuussa marraskuussa joulukuussa",
    "tammikuun helmikuun maaliskuun huhtikuun toukokuun kesäkuun heinäkuun elokuun syyskuun lokakuun marraskuun "
    "joulukuun",
    "januárban februárban márciusban áprilisban májusban júniusban júliusban augusztusban szeptemberben októberben "
    "novemberben decemberben",
    "ocakta şubatta martta nisanda mayısta haziranda temmuzda ağustosta eylülde ekimde kasımda aralıkta",
    "jänner feber - - - - - - setiembre - studenog -",
    "- - - - - - - - सितम्बर अक्तूबर नवम्बर दिसम्बर",
    "იანვრის თებერვლის მარტის აპრილის მაისის ივნისის ივლისის აგვისტოს სექტემბრის ოქტომბრის ნოემბრის დეკემბრის",
    "იანვარს თებერვალს მარტს აპრილს მაისს ივნისს ივლისს - სექტემბერს ოქტომბერს ნოემბერს დეკემბერს",
    "იანვარში თებერვალში მარტში აპრილში მაისში ივნისში ივლისში აგვისტოში სექტემბერში ოქტომბერში ნოემბერში დეკემბერში",
    "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
    "січні лютому березні квітні травні червні липні серпні вересні жовтні листопаді грудні",
    "студзені лютым сакавіку красавіку маі чэрвені ліпені жніўні верасні кастрычніку лістападзе снежні",
    "јануару фебруару марту априлу мају јуну јулу августу септембру октобру новембру децембру",
    "қаңтарда ақпанда наурызда сәуірде мамырда маусымда шілдеде тамызда қыркүйекте қазанда қарашада желтоқсанда",
    "қаңтардың ақпанның наурыздың сәуірдің мамырдың маусымның шілденің тамыздың қыркүйектің қазанның қарашаның "
    "желтоқсанның",
    "styczniu lutym marcu kwietniu maju czerwcu lipcu sierpniu wrześniu październiku listopadzie grudniu",
    "lednu únoru březnu dubnu květnu červnu červenci srpnu září říjnu listopadu prosinci",
    "januári februári marci apríli máji júni júli auguste septembri októbri novembri decembri",
    "siječnju veljači ožujku travnju svibnju lipnju - kolovozu rujnu - studenom prosincu",
    "januaru februaru martu aprilu - junu julu avgustu septembru oktobru novembru decembru",
    "januarju februarju - - - juniju juliju - - - - -",
    "sausį vasarį kovą balandį gegužę birželį liepą rugpjūtį rugsėjį spalį lapkritį gruodį",
    "jaanuaris veebruaris märtsis aprillis - juunis juulis augustis septembris oktoobris novembris detsembris",
    "- - márciusi áprilisi májusi júniusi júliusi augusztusi szeptemberi októberi novemberi decemberi",
    "Ιανουάριο Φεβρουάριο Μάρτιο Απρίλιο Μάιο Ιούνιο Ιούλιο Αύγουστο Σεπτέμβριο Οκτώβριο Νοέμβριο Δεκέμβριο",
    "- - - - মে জুন - - - - - -",
    "- - - - मे जून - - - - - -",
    "- - - - મે જૂન - - - - - -",
    "- - - - - ਜੂਨ - - - - - -",
    "- - - - மே ஜூன் - - - - - -",
    "- - - - మే జూన్ - - - - - -",
    "- - - - ಮೇ ಜೂನ್ - - - - - -",
    "- - - - - ජූනි - - - - - -",
    "ဇန်နဝါရီလ ဖေဖော်ဝါရီလ မတ်လ ဧပြီလ မေလ ဇွန်လ ဇူလိုင်လ ဩဂုတ်လ စက်တင်ဘာလ အောက်တိုဘာလ နိုဝင်ဘာလ ဒီဇင်ဘာလ",
    "հունվարին փետրվարին մարտին ապրիլին մայիսին հունիսին հուլիսին օգոստոսին սեպտեմբերին հոկտեմբերին նոյեմբերին "
    "դեկտեմբերին",
    "יאנואר פעברואר מערץ - מיי - - אויגוסט סעפטעמבער אקטאבער נאוועמבער דעצעמבער",
    "جانفي فيفري - أفريل - جوان جويلية - - - - -",
    "- فبروري - - - - جولای اګست سپتمبر - - -",
    "Eanáir Feabhra - Aibreán Bealtaine Meitheamh Iúil Lúnasa - - Samhain Nollaig",
    "- - - - - - - - - - Shamhna Nollag",
    "Jannar Frar Marzu - Mejju Ġunju Lulju Awwissu Settembru Ottubru - Diċembru",
    "januaro februaro marto aprilo majo - - aŭgusto septembro oktobro - -",
    "Janairu Faburairu - Afirilu Mayu Yuni Yuli - Satumba - Nuwamba Disamba",
    "Januwari Februwari - Ephreli - - Julayi Agasti Septhemba Okthoba - Disemba",
    "Janaayo Febraayo Maarso Abriil - Juun Luuliyo - Sebtembar Oktoobar Nofembar Desembar",
    "Ianuarii Februarii Martii - Maii Iunii Iulii Augusti - Octobris - -",
    "yanvarın fevralın martın aprelin mayın iyunun iyulun avqustun sentyabrın oktyabrın noyabrın dekabrın",
    "yanvarda fevralda martda aprelda mayda iyunda iyulda avqustda sentyabrda oktyabrda noyabrda dekabrda",
)
"""Month names in inflected forms and spellings that the CLDR lacks."""


@cache
def _more_months() -> dict[str, tuple[int, ...]]:
    """Return the months of `_CASES`, folded."""
    return {
        lower(fold(name)): (place,)
        for names in _CASES
        for place, name in enumerate(names.split(), start=1)
        if name != "-"
    } | {lower(fold("كانون")): (12, 1), lower(fold("تشرين")): (10, 11)}  # The first and the second of each.


def _day(year: int, month: int, day: int) -> Iterator[date]:
    """Yield the day in the Gregorian calendar; nothing if there is no such day."""
    try:
        if 2500 <= year < 2600:
            yield date(year - 543, month, day)
        elif month > 500:
            yield from (_hebrew(year, month - 500, day),) if year > 5700 else ()
        elif month > 300:
            yield _ethiopic(year, month - 300, day) if month < 400 else _nepali(year, month - 400, day)
        elif month > 100 and not 1300 <= year < 1500:
            # "Ramadan 2024": a month of one calendar with a year of another is not a day.
            return
        elif month > 200:
            yield _islamic(year, month - 200, day)
        elif month > 100 or 1300 <= year < 1410:
            yield _persian(year, month - 100 if month > 100 else month, day)
        elif 1410 <= year < 1500:
            yield _islamic(year, month, day)
        else:
            yield date(year, month, day)
    except ValueError:
        return


def _persian(year: int, month: int, day: int) -> date:
    """Convert from Iran's solar calendar: six months of 31 days from the equinox, then months of 30.

    >>> _persian(1403, 3, 16)
    datetime.date(2024, 6, 5)
    """
    if not (1 <= month <= 12 and 1 <= day <= (31 if month <= 6 else 30)):
        raise ValueError("no such day")
    cycles, rest = divmod(year - 1, 33)
    leaps = cycles * 8 + sum(1 for place in (1, 5, 9, 13, 17, 22, 26, 30) if place <= rest)
    days = (year - 1) * 365 + leaps + (month - 1) * 31 - max(0, month - 7) + day
    return date(622, 3, 20) + timedelta(days=days)


def _ethiopic(year: int, month: int, day: int) -> date:
    """Convert from the Ethiopian calendar: twelve months of 30 days from September on, and five or six more days.

    >>> _ethiopic(2017, 13, 4)
    datetime.date(2025, 9, 9)
    """
    if not (1990 <= year < 2050 and 1 <= month <= 13 and 1 <= day <= 30):
        raise ValueError("no such day")
    return date.fromordinal(2_400 + 365 * year + year // 4 + 30 * month + day)


_NEPALI_STARTS = (
    (4, 14),
    (5, 15),
    (6, 15),
    (7, 17),
    (8, 17),
    (9, 17),
    (10, 18),
    (11, 17),
    (12, 16),
    (1, 14),
    (2, 13),
    (3, 14),
)


def _nepali(year: int, month: int, day: int) -> date:
    """Convert from Nepal's calendar, whose months are announced year by year; accurate to a day or two.

    >>> abs(_nepali(2082, 5, 24) - date(2025, 9, 9)) <= timedelta(days=1)
    True
    """
    if not (2060 <= year < 2100 and 1 <= day <= 32):
        raise ValueError("no such day")
    start, first = _NEPALI_STARTS[month - 1]
    return date(year - (57 if month < 10 else 56), start, first) + timedelta(days=day - 1)


def _hebrew_year(letters: str) -> int:
    return 5700 + sum(_HEBREW_NUMBERS.get(letter, 0) for letter in letters[2:])


def _hebrew(year: int, month: int, day: int) -> date:
    """Convert from the Hebrew calendar by the mean length of its months; accurate to a day or two.

    >>> abs(_hebrew(5784, 4, 14) - date(2023, 12, 26)) <= timedelta(days=2)
    True
    """
    if not 1 <= day <= 30:
        raise ValueError("no such day")
    months = (235 * year - 234) // 19
    # In a leap year a second Adar precedes the spring.
    extra = (7 * year + 1) % 19 < 7 and month >= 6
    return date.fromordinal(round(29.530594 * (months + month - 1 + extra) + 0.53) - 1_373_428 + day)


def _islamic(year: int, month: int, day: int) -> date:
    """Convert from the tabular Islamic calendar; accurate to a day or two.

    >>> abs(_islamic(1445, 11, 28) - date(2024, 6, 5)) <= timedelta(days=1)
    True
    """
    if not (1 <= month <= 12 and 1 <= day <= 30):
        raise ValueError("no such day")
    days = day + (59 * (month - 1) + 1) // 2 + (year - 1) * 354 + (3 + 11 * year) // 30
    return date(622, 7, 18) + timedelta(days=days)
