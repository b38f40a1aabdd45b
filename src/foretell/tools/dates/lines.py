"""Dates in lines that are not sentences: labels, list entries, signatures and cells.

Such a line has no verb that shows whether the date has passed, so the layout decides. A record (a labelled date, a
chronicle, a signed note, a value for a day) is late unless a word in the line, its label or its heading marks it as a
plan.
"""

from collections.abc import Sequence
from datetime import date
from itertools import pairwise

from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import FoundDate, Order, find_in_folded
from foretell.tools.dates.folding import fold, lower
from foretell.tools.dates.places import YEAR, DatePlace, looks_ahead
from foretell.tools.dates.stamps import MOST_LATE_DATES, is_after, is_far, settled_by
from foretell.tools.dates.tenses import is_edge, is_plan
from foretell.tools.dates.words import FIXTURE, PLAN_KEY, PLAN_LABEL, TRADED

_WORD = pattern(r"[^\W\d_]+")
_LABEL = pattern(r"^[\W_]{0,8}(?P<label>[^\W\d_][^:\n|]{0,48}?)\s?:\s{0,4}(?:[^\W\d_]{2,12}\.?,? )?$")
_FIELD_START = pattern(r"[|;•·]\s*|\t|\s{2,}")
_EVENT_FIELD = pattern(
    r"(?:^|[\n·|.])\s*(?:venue|where|location|time|tickets?|place|doors|entry|admission|fee|ort|lieu|heure|lugar|hora|luogo|ora|local|beginn|"
    r"uhrzeit|plaats|tijd|miejsce|godzina|misto|cas|hely|место|время|місце|час|場所|会場|時間|地点|时间|장소|시간)\s?:"
)
_EVENT_PLACE = pattern(
    r"^,[^:;|\n]{2,30}\b(?:arena|stadium|stadion|theatre|theater|hall|dome|auditorium|circuit|park)\b"
)
"""The place of an event after its day."""
_MOST_LABEL_WORDS, _MOST_TAIL_WORDS, _SENTENCE_WORDS = 6, 8, 4
_BULLETS = pattern(r"^[\W_]*(?:#?\d{1,4}[.)]?\s+)?$")
_ENTRY_AFTER = pattern(
    r"^(?:[ t,]{0,2}\d{1,2}[:.]\d{2}(?::\d{2})?(?:\s?[ap]m)?(?:z|\s?utc|\s?[a-z]{3,4}(?=\s[-:]))?)?"
    r"[\])]?\s{0,3}[-:|]?\s{0,2}\S"
)
_ODD_CLOCK = pattern(r"\b\d{1,2}[:.]\d[1-46-9]\b|\b\d{1,2}:\d\d:\d\d\b")
_ANY_CLOCK = pattern(r"\b\d{1,2}:\d{2}\b(?!:)")
_SPAN_OF_HOURS = pattern(r"\d{1,2}[:.]\d{2}\s?(?:[-~]|to|bis|a|à)\s?\d{1,2}[:.]\d{2}")
_MEASURED = pattern(
    r"\d[.,]\d|\d\s?(?:%|°|km|mm|cm|kg|mw|gw|ha\b|pts?\b|points?\b|votes?\b|cases\b|deaths\b|barrels|bn\b|mn\b|million|billion)"
    r"|[a-z.)]\s\d{1,3}\s?[-:]\s?\d{1,3}(?![\d:])|[=:]\s?[-+]?\d{1,3}(?:[.,]\d{3})*(?![\d:.]|\s?[h:]\d)"
)
_PRICE = pattern(r"[$€£¥]|\b(?:eur|usd|gbp|chf|pln|kr|euro|zl|kc|ft|fee|price|from|ab|des|desde|da)\b")
_CLOCK = pattern(r"^,? (?:om|um|at|a las|alle|kl\.?|в|o|à|a)? ?\d{1,2}[:.h]\d{2}(?: ?[ap]m)?")
_SIGNATURE = pattern(r"(?:[A-Z][\w.'-]{0,20} ?){1,4}, (?:[A-Z][a-z]{2,9},? )?")
_NAME = pattern(
    r"^\W{0,3}(?:[\w.]{2,20}[_\d][\w.]{0,20}|[A-Z]\w{1,15}(?: (?:[A-Z]\w{0,15}\.?|de|van|von|da|di|el|al)){1,3})"
    r"[,\s|·•(-]{1,4}(?:[A-Z][a-z]{2,8},? )?$"
    r"|^\W{0,3}(?:(?:[Pp]ost )?[Bb]y [\w.-]{2,20} »|[a-z][\w.]{1,20}(?: [-–—»]|,)) (?:[A-Z][a-z]{2,8},? )?$"
)
"""A user name, or a person's name with initial capitals."""
_SAMPLE = pattern(r"^[^\n]{0,20}\bn ?= ?\d{3}|^[^\n]{0,20}\bn ?= ?\d,\d{3}")
_MOST_POSTS, _FEWEST_ENTRIES = 6, 3
_SIGNED_BEFORE = pattern(r"(?:,| -|[·•|]| im| li| den| le| em| dnia| dne| r\.)\s{0,2}(?:[^\W\d_]{2,10}\.?,? )?$")


def late_line(text: str, as_of: AsOf, *, order: Order = "unknown", published: date | None = None) -> str | None:
    r"""Return a line that records something about a day after the cutoff, or None.

    >>> late_line("Type: steel truss\nOstatni przegląd: 11.06.2024", AsOf.day("2024-04-01"))
    'Ostatni przeglad: 11.06.2024'
    >>> late_line("Closing date: 11 June 2024\nPrize: 500", AsOf.day("2024-04-01"))
    """
    plain = fold(text)
    low = lower(plain)
    dates = find_in_folded(low, order)
    late = [date for date in dates if all(is_after(day, as_of) for day in date.readings)]
    for found_date in late[:MOST_LATE_DATES]:
        if found_date.precision == "year" or is_far(found_date, as_of) or settled_by(found_date, published):
            continue
        line = _Line(DatePlace(plain, low, found_date, text), dates, late)
        if line.is_record():
            return line.place.shown()
    return None


class _Line:
    """A date with its line and the other dates of the text."""

    def __init__(self, place: DatePlace, dates: Sequence[FoundDate], late: Sequence[FoundDate]) -> None:
        self.place, self.date, self.dates, self.late = place, place.date, dates, late
        self.before, self.after = place.before, place.after
        self.words_before, self.words_after = _WORD.findall(self.before), _WORD.findall(self.after)

    def is_record(self) -> bool:
        """Whether the line has the layout of a record, and nothing in or above it marks it as a plan."""
        if self.date.precision == "month" and not (self._labelled() or self._entry()):
            return False
        if not self.place.opens_line or self.place.result == "missing" or _EVENT_PLACE.search(self.after):
            return False
        if self.date.precision == "month" and TRADED.match(self.after):
            return False
        if self._closes_a_list():
            return True
        if not (self._labelled() or self._entry() or self._signed() or self._named() or self._measured()):
            return False
        backwards = self._entry() and self._runs_backwards()
        if (
            self.place.heading_plans
            or (self.place.line_plans and not backwards)
            or FIXTURE.search(f"{self.before} {self.after}")
        ):
            return False
        return backwards or not (
            is_edge(*self.place.original_span)
            or ((self._worded() or not self._labelled()) and is_plan(*self.place.original_span))
        )

    def _worded(self) -> bool:
        """Whether the line has enough words to contain a verb."""
        return len(self.words_before) + len(self.words_after) >= _SENTENCE_WORDS

    def _labelled(self) -> bool:
        """Whether the line is a label and the date: "Last inspection: 12 June 2024"."""
        field = _FIELD_START.split(self.before)[-1]
        label = _LABEL.match(field)
        if label is None or len(_WORD.findall(label["label"])) > _MOST_LABEL_WORDS or YEAR.search(self.after):
            return False
        if PLAN_LABEL.search(label["label"]) or PLAN_KEY.search(label["label"]) or looks_ahead(label["label"]):
            return False
        near = self.place.low[max(0, self.place.wide_start - 120) : self.place.wide_end + 120]
        return _EVENT_FIELD.search(near) is None

    def _entry(self) -> bool:
        """Whether the line begins with the date and belongs to a chronicle."""
        if not _BULLETS.match(self.before) or not _ENTRY_AFTER.match(self.after) or not self.words_after:
            return False
        if _SPAN_OF_HOURS.search(self.after) or len(_ANY_CLOCK.findall(self.after)) > 1:
            return False
        if _ODD_CLOCK.search(self.after[:16]) or self._is_chronicle():
            return True
        return bool(_MEASURED.search(_ODD_CLOCK.sub("", self.after))) and not _PRICE.search(self.after)

    def _is_chronicle(self) -> bool:
        """Whether the dates that start lines run backwards, or most of them are past; a list of plans does neither."""
        if self._runs_backwards():
            return True
        days = [date for date in self.dates if _opens_line(self.place.low, date)]
        over = len(days) - sum(_opens_line(self.place.low, found_date) for found_date in self.late)
        return len(days) >= _FEWEST_ENTRIES and 2 * over >= len(days)

    def _runs_backwards(self) -> bool:
        """Whether the newest entry comes first. Each date is then that of its entry."""
        days = [date.readings[0] for date in self.dates if _opens_line(self.place.low, date)]
        return len(days) > 1 and all(later < earlier for earlier, later in pairwise(days))

    def _closes_a_list(self) -> bool:
        """Whether it ends a list of dates in brackets, the others past: "West (3 May 2019), East (9 Jan 2022)"."""
        if len(self.late) > 1 or not self._in_brackets(self.date):
            return False
        over = [
            date
            for date in self.dates
            if self.place.wide_start <= date.start < self.date.start and self._in_brackets(date)
        ]
        return len(over) >= _FEWEST_ENTRIES - 1 and not (self.place.line_plans or self.place.heading_plans)

    def _in_brackets(self, found_date: FoundDate) -> bool:
        low = self.place.low
        return low[found_date.start - 1 : found_date.start] == "(" and low[found_date.end : found_date.end + 1] == ")"

    def _signed(self) -> bool:
        """Whether a short line ends with a name or place and the date, which is the text's only late date."""
        place = self.place
        if len(self.late) > 1 or self.after.strip(" .)r") or not 1 <= len(self.words_before) <= _MOST_TAIL_WORDS:
            return False
        if not _SIGNED_BEFORE.search(self.before) or looks_ahead(self.before):
            return False
        if len(self.words_before) <= _FEWEST_ENTRIES - 1 and PLAN_LABEL.search(self.words_before[0]):
            return False
        name = place.plain[place.line_start : place.date.start].lstrip(" -*•([")
        if place.line_start == place.wide_start:
            return name[:1].isupper() or not name.isascii()
        # The name of the author follows the last sentence of a paragraph.
        return place.line_end == place.wide_end and _SIGNATURE.fullmatch(name) is not None

    def _named(self) -> bool:
        """Whether the line names the author and date of the lines below: "marco_b, 4 agosto 2024"."""
        place = self.place
        if (
            place.line_start != place.wide_start
            or _CLOCK.sub("", self.after).strip(" .:")
            or len(self.late) > _MOST_POSTS
        ):
            return False
        follows = place.low[place.line_end : place.line_end + 80].strip()
        name = _NAME.match(place.plain[place.line_start : place.date.start])
        return bool(follows) and name is not None and not looks_ahead(self.before)

    def _measured(self) -> bool:
        """Whether a measurement of that day follows a colon: "Station 4411, 15 June 2024: max 31.4"."""
        if len(self.words_before) > _MOST_LABEL_WORDS or not self.after.startswith(":"):
            return bool(_SAMPLE.search(self.after))
        return bool(_MEASURED.search(self.after)) and not (_PRICE.search(self.after) or PLAN_LABEL.search(self.before))


def _opens_line(low: str, found_date: FoundDate) -> bool:
    start = low.rfind("\n", max(0, found_date.start - 20), found_date.start) + 1
    return (start > 0 or found_date.start < 6) and _BULLETS.match(low[start : found_date.start]) is not None
