"""Which dates a text gives to itself: lines of publication and update, datelines, rows of numbers, states.

A date in prose is no leak by itself: plans, deadlines and forecasts name days to come. What counts is a date that tells
when the text, or a part of it, was written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property

from foretell.questions.as_of import AsOf, instant
from foretell.tools.dates.find import FoundDate, Order, find_in_folded, fold, lower, month_numbers, weekdays
from foretell.tools.dates.words import (
    ASIAN_STAMP,
    FUTURE_SIGN,
    SCHEDULED,
    SMALL,
    TOKEN,
    WILL,
    is_future,
    is_stamp,
)


def is_after(day: date, as_of: AsOf) -> bool:
    """Whether a calendar day begins after the cutoff."""
    return not as_of.admits(instant(day))


def is_late(found: FoundDate, as_of: AsOf) -> bool:
    """Whether a date may lie after the cutoff, in any of its readings."""
    return any(is_after(day, as_of) for day in found.readings)


def _settled_by(found: FoundDate, published: date | None) -> bool:
    """Whether one of several readings is the day on which the text is said to have appeared."""
    if published is None or len(found.readings) < 2:
        return False
    return any(abs((day - published).days) <= 1 for day in found.readings)


def late_stamp(text: str, as_of: AsOf, *, order: Order = "unknown", published: date | None = None) -> str | None:
    """A place in which a text dates itself after the cutoff, or None.

    `published` is the date it is said to have: of two readings of 05/06/2024 the one that fits it is taken.

    >>> late_stamp("Aktualisiert: 05.06.2024, 14:30 Uhr", AsOf.day("2024-04-01"))
    'Aktualisiert: 05.06.2024'
    >>> late_stamp("Der Bericht wird am 05.06.2024 veröffentlicht.", AsOf.day("2024-04-01"))
    """
    return next((shown for _, shown in late_stamps(text, as_of, order=order, published=published)), None)


def late_stamps(
    text: str, as_of: AsOf, *, order: Order = "unknown", published: date | None = None
) -> Iterator[tuple[int, str]]:
    """Every such place: where its date begins in the folded text, and how it reads."""
    plain = fold(text)
    low = lower(plain)
    for found in find_in_folded(low, order):
        if is_late(found, as_of) and not _settled_by(found, published):
            place = _DatePlace(plain, low, found)
            if place.is_stamp():
                yield found.start, place.shown()
    yield from _late_copyright(low, as_of)
    yield from _late_unix_time(low, as_of)


_COPYRIGHT = re.compile(r"(?:©|\(c\)|\bcopyright\b|&copy;)[^\n\d]{0,30}(?:(?:19|20)\d\d\s*[-,/]\s*)?((?:19|20)\d\d)")
_UNIX_TIME = re.compile(r"1\d{9}(?:\d{3})?(?!\d)")
_UNIX_KEY = re.compile(
    r"(?:timestamp|updated|modified|published|created|resolved|settled|retrieved|fetched|last|\bts|\btime|\bt)"
    r"[a-z_]*\"?\s*[:=]\s*\"?$"
)


def _late_copyright(low: str, as_of: AsOf) -> Iterator[tuple[int, str]]:
    if "©" in low or "c)" in low or "copy" in low:
        yield from ((one.start(), one[0].strip()) for one in _COPYRIGHT.finditer(low) if int(one[1]) > as_of.at.year)


def _late_unix_time(low: str, as_of: AsOf) -> Iterator[tuple[int, str]]:
    for one in _UNIX_TIME.finditer(low):
        key = _UNIX_KEY.search(low, max(0, one.start() - 30), one.start())
        if key is not None and not as_of.admits(datetime.fromtimestamp(int(one[0][:10]), UTC)):
            yield one.start(), key[0] + one[0]


_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[^\Wa-z]|[\"'(\[])|\n\s*\n|[。！？]")
_AS_OF = re.compile(
    r"(?:\bas (?:of|at)|\bdata (?:to|through|until)|\bcurrent (?:as of|to|through)|\bstand|\bau|\bal"
    r"|по состоянию(?: на)?|時点|现在|截至|截止)\W{0,4}(?:[a-z]{3,9},?\s+)?$"
)
_LABEL = re.compile(r"^[\W_]{0,8}([^\W\d_]+(?:[\s'-]{1,3}[^\W\d_]+){0,4})\s{0,2}[:：]\s*$")
_CLOCK_AFTER = re.compile(
    r"^[\s,t|·•@-]*(?:at|um|a las|kl\.?|as|alle|ore)?\s*\d{1,2}\s*(?:[:h]\s*\d{2}|\.\d{2}\s*uhr|\s*[ap]\.?m\b)"
)
_ASIAN_CLOCK = re.compile(r"^[\s\d:時时分秒시분초()\[\]日曜月火水木金土,.-]{0,18}")
_CITY_BEFORE = re.compile(
    r"^[\W_]{0,8}(?:\([^)\n]{2,30}\)\s?)?[^\W\d_][^\d\n|:;?!()]{1,40}?(?:\([^)\n]{2,25}\))?\s?[,/:-]?\s?"
    r"(?:[^\W\d_]{2,12}\.?,?\s+)?$"
)
_AGENCY_AFTER = re.compile(
    r"^[\s,]*(?:\([^)\n]{2,30}\)\s*(?:--?|:)|/[^/\n]{2,30}/|(?:--?|:)\s*\([^)\n]{2,30}\)|\s--?\s)"
)
_BYLINE = re.compile(
    r"^[\W_]{0,8}(?:by|von|par|por|di|door|av|af|od|autor|auteur|author|oleh|автор|от|yazan|ecrit par|text|reporter"
    r"|記者|기자)\s*:?\s+[^\n]{2,60}$"
)
_BRACKET_BEFORE = re.compile(r"^[^\n(\[]{0,30}[(\[]\s*$")
_BRACKET_AFTER = re.compile(r"^\s*[)\]]\s*\S[^(]*$")
_WORDS = re.compile(r"[^\W\d_]+")
_SEPARATOR_BEFORE, _SEPARATOR_AFTER = re.compile(r"[|·•]\s*$"), re.compile(r"^\s*[|·•]")
_HEAD_LINES, _HEAD_CHARACTERS = 3, 300
_LONGEST_HEAD_LINE = 160
_REACH = 200
"""Characters of a line that are looked at on each side of a date: lines of strangers may be endless."""


@dataclass(frozen=True)
class _DatePlace:
    """A date in its text, and what stands around it."""

    plain: str
    """Folded, with its capitals."""
    low: str
    found: FoundDate

    @cached_property
    def line_start(self) -> int:
        """Where its line begins, or as far back as is looked at."""
        least = max(0, self.found.start - _REACH)
        found = self.low.rfind("\n", least, self.found.start)
        return least if found < 0 else found + 1

    @cached_property
    def line_end(self) -> int:
        """Where its line ends, or as far on as is looked at."""
        most = min(len(self.low), self.found.end + _REACH)
        found = self.low.find("\n", self.found.end, most)
        return most if found < 0 else found

    @cached_property
    def opens_line(self) -> bool:
        """Whether `before` reaches back to the beginning of the line."""
        return self.line_start == 0 or self.low[self.line_start - 1] == "\n"

    @property
    def before(self) -> str:
        """The line up to the date."""
        return self.low[self.line_start : self.found.start]

    @property
    def after(self) -> str:
        """The line behind the date."""
        return self.low[self.found.end : self.line_end]

    def sentence_before(self, place: int) -> str:
        part = self.plain[max(0, place - 90) : place]
        ends = [one.end() for one in _SENTENCE_END.finditer(part)]
        return lower(part[ends[-1] :] if ends else part)

    def sentence_after(self) -> str:
        part = self.plain[self.found.end : self.found.end + 90]
        end = _SENTENCE_END.search(part)
        return lower(part[: end.start()] if end is not None else part)

    def shown(self) -> str:
        """The date with a few words before it."""
        return " ".join(self.plain[max(self.line_start, self.found.start - 30) : self.found.end].split())

    def is_stamp(self) -> bool:
        """Whether the date is that of the text or of a part of it."""
        if self.stamp_word_before() or self._labelled() or self._data_as_of():
            return True
        return self.found.precision == "day" and (self._stamp_word_after() or self._heads_a_report())

    def stamp_word_before(self) -> bool:
        """Whether a stamp word stands before the date, with nothing but weekday, clock and small words between."""
        start = max(0, self.found.start - 60)
        before = self.low[start : self.found.start]
        if ASIAN_STAMP.search(before[-14:]):
            return not FUTURE_SIGN.search(before[-30:] + self.low[self.found.end : self.found.end + 20])
        for place, token in enumerate(reversed(list(TOKEN.finditer(before)))):
            word = token[0]
            if is_stamp(word) and not (word in SMALL and place == 0 and word != "update"):
                return self._tells_of_the_past(start + token.start())
            small = word.isdigit() or word in SMALL or word in weekdays() or len(word) <= 2 or bool(month_numbers(word))
            if place >= 6 or not small or (is_future(word) and word not in SMALL):
                return False
        return False

    def _tells_of_the_past(self, stamp: int) -> bool:
        """Whether a stamp word is no plan: "will be published on" is one, "Published on" is none."""
        sentence = TOKEN.findall(self.sentence_before(stamp))
        if any(map(is_future, sentence[-3:])):
            return False
        if len(sentence) <= 3 or self.plain[stamp].isupper():
            return True
        return not WILL.intersection(TOKEN.findall(self.sentence_after()))

    def _stamp_word_after(self) -> bool:
        """Whether a stamp word follows the date, as in many languages of Asia, in Turkish and in brackets."""
        after = self.low[self.found.end : self.found.end + 40].split("\n\n", 1)[0]
        if _looks_ahead(self.sentence_before(self.found.start)[-50:]) or FUTURE_SIGN.search(after):
            return False
        if ASIAN_STAMP.match(_ASIAN_CLOCK.sub("", after)):
            return True
        tokens = TOKEN.findall(after)[:4]
        for place, word in enumerate(tokens):
            if is_stamp(word) and word not in SMALL:
                return not any(map(is_future, tokens[place + 1 : place + 3]))
            if not (word.isdigit() or word in SMALL or len(word) <= 2 or word in weekdays()):
                return False
        return False

    def _data_as_of(self) -> bool:
        """Whether a sentence or a line begins with "as of" the date, and tells no plan."""
        sentence = self.sentence_before(self.found.start)
        if _AS_OF.search(sentence) is None or len(TOKEN.findall(sentence)) > 4:
            return False
        return not _looks_ahead(f"{sentence} {self.after[:60]}")

    def _labelled(self) -> bool:
        """Whether the line is a label in a language of other letters and the date: most likely when it was written."""
        label = _LABEL.match(self.plain[self.line_start : self.found.start]) if self.opens_line else None
        if label is None or label[1].isascii() or TOKEN.search(_CLOCK_AFTER.sub("", self.after)):
            return False
        return not (_looks_ahead(self.before) or SCHEDULED.search(self.before))

    def _heads_a_report(self) -> bool:
        """Datelines, bylines, lines of date and time alone, and dates between separators at the head of a text."""
        if not self.opens_line:
            return False
        before, after = self.before, self.after
        ahead = _looks_ahead(before)
        in_head = self.line_start <= _HEAD_CHARACTERS and self.low.count("\n", 0, self.line_start) <= _HEAD_LINES
        if in_head and not ahead and _BYLINE.match(before):
            return True
        if ahead or SCHEDULED.search(before):
            return False
        if _AGENCY_AFTER.match(after) and (_CITY_BEFORE.match(before) or after.lstrip()[:1] in ("(", "/")):
            return True
        if _BRACKET_BEFORE.match(before) and _BRACKET_AFTER.match(after):
            return True
        if (in_head or _CLOCK_AFTER.match(after)) and self._alone():
            return True
        separated = _SEPARATOR_BEFORE.search(before) or _SEPARATOR_AFTER.match(after)
        line = self.low[self.line_start : self.line_end]
        return in_head and bool(separated) and len(line) < _LONGEST_HEAD_LINE and not SCHEDULED.search(line)

    def _alone(self) -> bool:
        """Whether the line holds nothing but day and time, and what follows is no entry of an agenda."""
        words = _WORDS.findall(f"{self.before} {_CLOCK_AFTER.sub('', self.after, count=1)}")
        if not all(word in SMALL or word in weekdays() for word in words):
            return False
        follows = self.low[self.line_end : self.line_end + 120].split(".")[0]
        headings = self.low[max(0, self.line_end - 2 * _HEAD_CHARACTERS) : self.line_end]
        return not (SCHEDULED.search(headings + follows[:40]) or WILL.intersection(TOKEN.findall(follows)))


def _looks_ahead(words: str) -> bool:
    return bool(FUTURE_SIGN.search(words)) or any(map(is_future, TOKEN.findall(words)))


# Days without a year.

_UPDATED = re.compile(
    r"\b(?:updated?|modified|edited|revised|corrected|aktualisiert|a jour|actualizado|atualizado|aggiornato|обновлено"
    r"|bijgewerkt)\b"
)
_MONTH_DAY = re.compile(
    r"([^\W\d_]{3,12})\.?\s+(\d{1,2})(?!\d|[:.,]?\d|\s*,?\s*(?:19|20)\d\d)"
    r"|(\d{1,2})\.?(?:\s+de)?\s+([^\W\d_]{3,12})\.?(?!\s*,?\s*(?:de\s+)?(?:19|20)\d\d|[^\W\d_])"
)


def late_yearless_stamp(text: str, published: date, as_of: AsOf) -> str | None:
    """A day without a year beside a word of update ("Updated June 5"), which is the next such day after publication."""
    low = lower(fold(text))
    for start, end, month, day in _yearless(low):
        following = _following(published, month, day)
        if following is not None and is_after(following, as_of):
            place = _DatePlace(low, low, FoundDate(start, end, (following,)))
            if place.stamp_word_before():
                return place.shown()
    return None


def _yearless(low: str) -> Iterator[tuple[int, int, int, int]]:
    for word in _UPDATED.finditer(low):
        for found in _MONTH_DAY.finditer(low, word.end(), min(len(low), word.end() + 40)):
            name, day = (found[1], found[2]) if found[1] else (found[4], found[3])
            for month in month_numbers(name):
                yield found.start(), found.end(), month, int(day)


def _following(published: date, month: int, day: int) -> date | None:
    """The day of that name at or after publication; a few days before it count as the same."""
    for year in (published.year, published.year + 1):
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if (found - published).days >= -3:
            return found
    return None


# Titles, rows, states and live reports.

_FORECAST = re.compile(
    r"forecast|projec|predict|expect|estimat|outlook|schedul|calendar|prognos|previs|fixture|futures|maturity|model"
    r"|予測|预测|예측|прогноз"
)
_NUMBERS = re.compile(r"^[\s,;|:\t\"'()\[\]=]*[-+$€£¥]?\d[\d.,%\s;|\t\"'$€£¥+()\[\]a-z/-]{0,60}$")
_ROW_START = re.compile(r"[\W_]*(?:\"?[a-z_]+\"?\s*:\s*\"?)?")
_CLOCK = re.compile(r"^[t\s]*\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?")
_ENDED = r"resolved|settled|finali[sz]ed|closed|determined|ended"
_STATE = re.compile(
    r"\"(?:closed|is_?resolved|resolved|settled|finali[sz]ed|is_?closed)\"\s*:\s*true\b"
    r"|\"(?:result|resolution|outcome|winner|resolved_?to|winning_?outcome|final_?result)\"\s*:\s*"
    r"(?:\"[^\"\s]|true|false|[01](?:\.0+)?\b)"
    rf"|\"(?:status|state)\"\s*:\s*\"(?:{_ENDED}|final|completed)\""
    r"|(?:^|\n)\W{0,8}(?:market |question |contract |poll )?(?:status|state|resolution|outcome|result|final result"
    r"|final outcome|verdict|winner|ergebnis|resultat|resultado|risultato|результат|итог|結果|结果|결과)"
    r"\s*[:=]\s*\**\s*"
    rf"(?:{_ENDED}|final\b|yes\b|no\b|ja\b|nein\b|oui\b|non\b|si\b|да\b|нет\b|はい|いいえ|是|否)"
    r"|(?:^|\n)\W{0,8}(?:this )?(?:market|question|contract)?\W{0,3}(?:has |was |is )?(?:resolved|settled)"
    r"\s*(?:as|to|:)?\s*[\"'*]*(?:yes|no)\b",
)
_LIVE_REPORT = re.compile(
    r"\blive ?blog|\blive\b[^\n]{0,40}\b(?:updates?|coverage|results|reaction|ticker|tracker)|\bas it happened\b"
    r"|\bminute[- ]by[- ]minute\b|\brolling coverage\b|^live:|\| live\b"
    r"|\bliveticker\b|\ben direct\b|\ben vivo\b|\bao vivo\b"
)


def late_title(title: str, as_of: AsOf, *, published: date | None = None) -> str | None:
    """A headline with a day after the cutoff that does not speak of something to come."""
    low = lower(fold(title))
    for found in find_in_folded(low):
        if found.precision == "day" and is_late(found, as_of) and not _settled_by(found, published):
            rest = f"{low[: found.start]} {low[found.end :]}"
            if not SCHEDULED.search(rest) and not _looks_ahead(rest):
                return title
    return None


def late_row(title: str, text: str, as_of: AsOf) -> str | None:
    """A row of numbers for a day after the cutoff, in a table that is no forecast."""
    low = lower(fold(text))
    for found in find_in_folded(low):
        if not all(is_after(day, as_of) for day in found.readings):
            continue
        place = _DatePlace(low, low, found)
        if not (
            place.opens_line and _ROW_START.fullmatch(place.before) and _NUMBERS.match(_CLOCK.sub("", place.after))
        ):
            continue
        if not _FORECAST.search(lower(fold(title)) + low[max(0, place.line_start - 600) : place.line_start]):
            return low[place.line_start : place.line_end][:60]
    return None


def told_state(text: str) -> str | None:
    """A field or a line that tells how a question, a market or a contest ended."""
    found = _STATE.search(lower(fold(text)))
    return found[0].strip() if found is not None else None


def late_entry(title: str, text: str, as_of: AsOf) -> str | None:
    """A line of a live report that begins with a date after the cutoff."""
    if not _LIVE_REPORT.search(lower(fold(title))):
        return None
    for line in text.splitlines():
        opening = line.lstrip(" \t#*-[(•")[:40]
        for found in find_in_folded(lower(fold(opening))):
            if found.start <= 12 and is_late(found, as_of):
                return opening
    return None
