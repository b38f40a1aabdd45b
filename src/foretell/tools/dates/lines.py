"""Dates in lines that are not sentences: labels, list entries, signatures and cells.

No verb says whether such a date has passed, so the layout decides. A record (a labelled date, a chronicle, a signed
note, a value for a day) is late unless a word in the line, its label or its heading marks it as a plan.
"""

import re
from collections.abc import Sequence
from datetime import date
from itertools import pairwise

from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import FoundDate, Order, find_in_folded
from foretell.tools.dates.folding import fold, lower
from foretell.tools.dates.places import DatePlace, looks_ahead
from foretell.tools.dates.stamps import MOST_LATE_DATES, is_after, is_far, settled_by
from foretell.tools.dates.tenses import is_edge, is_plan
from foretell.tools.dates.words import FIXTURE, PLAN_KEY, PLAN_LABEL

_WORD = re.compile(r"[^\W\d_]+")
_LABEL = re.compile(r"^[\W_]{0,8}(?P<label>[^\W\d_][^:\n|]{0,48}?)\s?:\s{0,4}(?:[^\W\d_]{2,12}\.?,? )?$")
_FIELD_START = re.compile(r"[|;•·]\s*|\t|\s{2,}")
_EVENT_FIELD = re.compile(
    r"(?:^|[\n·|.])\s*(?:venue|where|location|time|tickets?|place|doors|entry|admission|fee|ort|lieu|heure|lugar|hora|luogo|ora|local|beginn|"
    r"uhrzeit|plaats|tijd|miejsce|godzina|misto|cas|hely|место|время|місце|час|場所|会場|時間|地点|时间|장소|시간)\s?:"
)
_MOST_LABEL_WORDS, _MOST_TAIL_WORDS, _SENTENCE_WORDS = 6, 8, 4
_BULLETS = re.compile(r"^[\W_]*(?:#?\d{1,4}[.)]?\s+)?$")
_ENTRY_AFTER = re.compile(
    r"^(?:[ t,]{0,2}\d{1,2}[:.]\d{2}(?::\d{2})?(?:\s?[ap]m)?(?:z|\s?utc|\s?[a-z]{3,4}(?=\s[-:]))?)?"
    r"[\])]?\s{0,3}[-:|]?\s{0,2}\S"
)
_ODD_CLOCK = re.compile(r"\b\d{1,2}[:.]\d[1-46-9]\b|\b\d{1,2}:\d\d:\d\d\b")
_ANY_CLOCK = re.compile(r"\b\d{1,2}:\d{2}\b(?!:)")
_SPAN_OF_HOURS = re.compile(r"\d{1,2}[:.]\d{2}\s?(?:[-~]|to|bis|a|à)\s?\d{1,2}[:.]\d{2}")
_MEASURED = re.compile(
    r"\d[.,]\d|\d\s?(?:%|°|km|mm|cm|kg|mw|gw|ha\b|pts?\b|points?\b|votes?\b|cases\b|deaths\b|barrels|bn\b|mn\b|million|billion)"
    r"|[a-z.)]\s\d{1,3}\s?[-:]\s?\d{1,3}(?![\d:])|[=:]\s?[-+]?\d{1,3}(?:[.,]\d{3})*(?![\d:.]|\s?[h:]\d)"
)
_PRICE = re.compile(r"[$€£¥]|\b(?:eur|usd|gbp|chf|pln|kr|euro|zl|kc|ft|fee|price|from|ab|des|desde|da)\b")
_CLOCK = re.compile(r"^,? (?:om|um|at|a las|alle|kl\.?|в|o|à|a)? ?\d{1,2}[:.h]\d{2}(?: ?[ap]m)?")
_SIGNATURE = re.compile(r"(?:[A-Z][\w.'-]{0,20} ?){1,4}, (?:[A-Z][a-z]{2,9},? )?")
_NAME = re.compile(
    r"^\W{0,3}(?:[\w.]{2,20}[_\d][\w.]{0,20}|[A-Z]\w{1,15}(?: (?:[A-Z]\w{0,15}\.?|de|van|von|da|di|el|al)){1,3})"
    r"[,\s|·•(-]{1,4}$"
)
"""A user name, or a person's name with initial capitals."""
_SAMPLE = re.compile(r"^[^\n]{0,20}\bn ?= ?\d{3}|^[^\n]{0,20}\bn ?= ?\d,\d{3}")
_MOST_POSTS, _FEWEST_ENTRIES = 6, 3
_SIGNED_BEFORE = re.compile(r"(?:,| -|[·•|]| im| li| den| le| em| dnia| dne| r\.)\s{0,2}(?:[^\W\d_]{2,10}\.?,? )?$")


def late_line(text: str, as_of: AsOf, *, order: Order = "unknown", published: date | None = None) -> str | None:
    r"""Return a line that records something about a day after the cutoff, or None.

    >>> late_line("Type: steel truss\nOstatni przegląd: 11.06.2024", AsOf.day("2024-04-01"))
    'Ostatni przeglad: 11.06.2024'
    >>> late_line("Closing date: 11 June 2024\nPrize: 500", AsOf.day("2024-04-01"))
    """
    plain = fold(text)
    low = lower(plain)
    dates = find_in_folded(low, order)
    late = [one for one in dates if all(is_after(day, as_of) for day in one.readings)]
    for found in late[:MOST_LATE_DATES]:
        if found.precision == "year" or is_far(found, as_of) or settled_by(found, published):
            continue
        line = _Line(DatePlace(plain, low, found, text), dates, late)
        if line.is_record():
            return line.place.shown()
    return None


class _Line:
    """A date with its line and the other dates of the text."""

    def __init__(self, place: DatePlace, dates: Sequence[FoundDate], late: Sequence[FoundDate]) -> None:
        self.place, self.found, self.dates, self.late = place, place.found, dates, late
        self.before, self.after = place.before, place.after
        self.words_before, self.words_after = _WORD.findall(self.before), _WORD.findall(self.after)

    def is_record(self) -> bool:
        """Whether the line has the layout of a record, and nothing in or above it marks it as a plan."""
        if self.found.precision == "month" and not (self._labelled() or self._entry()):
            return False
        if not self.place.opens_line:
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
            is_edge(*self.place.written_place) or (self._worded() and is_plan(*self.place.written_place))
        )

    def _worded(self) -> bool:
        """Whether the line has enough words to contain a verb."""
        return len(self.words_before) + len(self.words_after) >= _SENTENCE_WORDS

    def _labelled(self) -> bool:
        """Whether the line is a label and the date: "Last inspection: 12 June 2024"."""
        field = _FIELD_START.split(self.before)[-1]
        label = _LABEL.match(field)
        if label is None or len(_WORD.findall(label["label"])) > _MOST_LABEL_WORDS:
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
        days = [one for one in self.dates if _opens_line(self.place.low, one)]
        over = len(days) - sum(_opens_line(self.place.low, one) for one in self.late)
        return len(days) >= _FEWEST_ENTRIES and 2 * over >= len(days)

    def _runs_backwards(self) -> bool:
        """Whether the newest entry comes first: its date is then that of the entry, whatever the entry is about."""
        days = [one.readings[0] for one in self.dates if _opens_line(self.place.low, one)]
        return len(days) > 1 and all(later < earlier for earlier, later in pairwise(days))

    def _closes_a_list(self) -> bool:
        """Whether it ends a list of dates in brackets, the others past: "West (3 May 2019), East (9 Jan 2022)"."""
        if len(self.late) > 1 or not self._in_brackets(self.found):
            return False
        over = [
            one
            for one in self.dates
            if self.place.wide_start <= one.start < self.found.start and self._in_brackets(one)
        ]
        return len(over) >= _FEWEST_ENTRIES - 1 and not (self.place.line_plans or self.place.heading_plans)

    def _in_brackets(self, found: FoundDate) -> bool:
        low = self.place.low
        return low[found.start - 1 : found.start] == "(" and low[found.end : found.end + 1] == ")"

    def _signed(self) -> bool:
        """Whether a short line ends with a name or place and the date, which is the text's only late date."""
        place = self.place
        if len(self.late) > 1 or self.after.strip(" .)r") or not 1 <= len(self.words_before) <= _MOST_TAIL_WORDS:
            return False
        if not _SIGNED_BEFORE.search(self.before) or looks_ahead(self.before):
            return False
        named = place.plain[place.line_start : place.found.start].lstrip(" -*•([")
        if place.line_start == place.wide_start:
            return named[:1].isupper() or not named.isascii()
        # Behind the last sentence of a paragraph stands the name of who wrote it.
        return place.line_end == place.wide_end and _SIGNATURE.fullmatch(named) is not None

    def _named(self) -> bool:
        """Whether the line says who wrote the lines below, and when: "marco_b, 4 agosto 2024"."""
        place = self.place
        if (
            place.line_start != place.wide_start
            or _CLOCK.sub("", self.after).strip(" .:")
            or len(self.late) > _MOST_POSTS
        ):
            return False
        follows = place.low[place.line_end : place.line_end + 80].strip()
        name = _NAME.match(place.plain[place.line_start : place.found.start])
        return bool(follows) and name is not None and not looks_ahead(self.before)

    def _measured(self) -> bool:
        """Whether a measurement of that day follows a colon: "Station 4411, 15 June 2024: max 31.4"."""
        if len(self.words_before) > _MOST_LABEL_WORDS or not self.after.startswith(":"):
            return bool(_SAMPLE.search(self.after))
        return bool(_MEASURED.search(self.after)) and not (_PRICE.search(self.after) or PLAN_LABEL.search(self.before))


def _opens_line(low: str, found: FoundDate) -> bool:
    start = low.rfind("\n", max(0, found.start - 20), found.start) + 1
    return (start > 0 or found.start < 6) and _BULLETS.match(low[start : found.start]) is not None
