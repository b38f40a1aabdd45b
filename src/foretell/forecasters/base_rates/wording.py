"""Parses the wording of a question: its deadline, how its probability changes with time, and significant phrases."""

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

from foretell.data.dates import MONTHS
from foretell.frozen import frozen
from foretell.patterns import pattern

# Dates in a question's text, the deadline they set, and the text without them.

Timing = Literal["by", "at", "none"]
"""by: at any time up to the date; at: the state on the date; none: the date is part of a name."""

MASK = "‹date›"
"""Replaces every date in the text, so that only the horizon distinguishes near and far deadlines."""

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_UNITS = {"day": 1.0, "week": 7.0, "month": 365.25 / 12, "year": 365.25, "decade": 3652.5}
_M = (
    r"(?P<m>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_Y = r"(?P<y>20\d\d|21\d\d)(?![\d%+]|[,.]\d)"
_D = r"(?P<d>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?(?![\d%:]|[,.]\d)"
_N = rf"(?P<n>\d{{1,3}}|an?|{'|'.join(_NUMBERS)})"
_U = r"(?P<u>day|week|month|year|decade)s?\b"
_PATTERNS = tuple(
    pattern(rf"(?<![\w$€£.]){written}", re.IGNORECASE)
    for written in (
        r"(?P<y>20\d\d)-(?P<m>[01]\d)-(?P<d>[0-3]\d)\b",
        rf"{_D}\s+(?:of\s+)?{_M},?\s+{_Y}",
        rf"{_M}\s+{_D},?\s+{_Y}",
        rf"{_M}\s+{_D}",
        rf"{_D}\s+{_M}",
        rf"{_M},?\s+(?:of\s+)?{_Y}",
        rf"{_Y}\s+{_M}",
        rf"(?P<q>[QH][1-4])\s*(?:of\s+)?{_Y}",
        rf"{_Y}\s*(?P<q>[QH][1-4])\b",
        r"(?P<y>20\d\d)\s?[-–/]\s?(?P<to>\d\d(?:\d\d)?)\b(?![-–/]\d)",
        rf"(?:EOY\s*)?{_Y}\b",
        rf"(?:next|coming)\s+(?:{_N}\s+)?{_U}",
        rf"(?<=within\s){_N}\s+{_U}",
        rf"{_N}\s+{_U}(?=\s+from\s+now)",
        r"(?<=this\s)(?P<this>week|month|year|decade)\b",
        r"(?<=end\sof\sthe\s)(?P<this>week|month|year|decade)\b",
        _M,
    )
)
"""Patterns from the most to the least exact. Text matched by one is not matched by the next."""
_PART = r"(?:(?:the\s+)?(?:end|close|start|beginning)\s+of\s+|early\s+|mid[\s-]+|late\s+)?"
_LEAD = pattern(
    r"\b(?P<lead>before|by|until|till|through|throughout|during|within|in|this|over|on|at|as\s+of|between|and|to|for"
    rf"|antes\s+de|hasta|en)\s+{_PART}(?:the\s+)?$",
    re.IGNORECASE,
)
_WITHIN = {
    *("before", "by", "until", "till", "through", "throughout", "during", "within", "in", "this", "over", "between"),
    *("and", "to", "antes", "hasta", "en"),
}
_STANDS = pattern(rf"\b(?:(?:on|at|as\s+of)\s+{_PART}(?:the\s+)?|finales\s+de\s+)$", re.IGNORECASE)
_ENDS = pattern(r"\b(?:end|close)\s+of\s", re.IGNORECASE)


@frozen
class DateMention:
    """A date or period in a text."""

    begin: int
    end: int
    """End of its position: text[begin:end]."""
    first: date
    last: date
    timing: Timing
    strictly_before: bool = False

    @property
    def deadline(self) -> date:
        """The last day on which the event it refers to can happen."""
        return self.first - timedelta(days=1) if self.strictly_before else self.last


def mentions(text: str, due: date) -> tuple[DateMention, ...]:
    """Return all dates in a text, in order; a day or month without a year is the next one after `due`.

    >>> [m.deadline.isoformat() for m in mentions("Will it rain before April or by 30 June 2026?", date(2025, 11, 3))]
    ['2026-03-31', '2026-06-30']
    """
    dates: list[DateMention] = []
    for written in _PATTERNS:
        for match in written.finditer(text):
            if any(m.begin < match.end() and match.start() < m.end for m in dates):
                continue
            parts = {name: part for name, part in match.groupdict().items() if part}
            period = _period(parts, due)
            if period is not None and (parts.keys() != {"m"} or _is_month(text, match)):
                dates.append(_mention(text, match, *period))
    return tuple(sorted(dates, key=lambda m: m.begin))


def masked(text: str, dates: tuple[DateMention, ...]) -> str:
    """Return the text with every date replaced by `MASK`."""
    for mention in reversed(dates):
        text = text[: mention.begin] + MASK + text[mention.end :]
    return text


def deadline(dates: tuple[DateMention, ...], due: date) -> DateMention | None:
    """Return the mention that sets the deadline: the latest one ahead, if possible one after "by", "before" or "on"."""
    ahead = [m for m in dates if m.deadline >= due]
    governed = [m for m in ahead if m.timing != "none"]
    return max(governed or ahead, key=lambda m: m.deadline, default=None)


def _mention(text: str, match: re.Match[str], first: date, last: date) -> DateMention:
    before, phrase = text[: match.start()], match[0].lower()
    lead = _LEAD.search(before)
    word = lead["lead"].lower().split()[0] if lead else ""
    timing: Timing = "none"
    # In "the 2026 election" the year is part of a name.
    if not (phrase.isdigit() and re.search(r"\bthe\s+$", before, re.IGNORECASE)):
        if _STANDS.search(before):
            timing = "at"
        elif word in _WITHIN or phrase.startswith(("next", "coming")):
            timing = "by"
    at_end = phrase.startswith("eoy") or (lead is not None and _ENDS.search(lead[0]) is not None)
    # "by 2030" means before that year begins, as most question writers use it; "by end of 2030" does not.
    by_year = word == "by" and phrase.isdigit()
    strictly = not at_end and (word in ("before", "antes") or by_year)
    return DateMention(
        begin=match.start(), end=match.end(), first=first, last=last, timing=timing, strictly_before=strictly
    )


def _is_month(text: str, match: re.Match[str]) -> bool:
    """Whether a lone "May" or "March" is a month: it is capitalised and follows a preposition."""
    return match[0][0].isupper() and _LEAD.search(text[: match.start()]) is not None


def _period(parts: dict[str, str], due: date) -> tuple[date, date] | None:
    """Return the first and last day of the period in a match; None for a day that does not exist."""
    try:
        return _named(parts, due)
    except (ValueError, OverflowError):
        return None


def _named(parts: dict[str, str], due: date) -> tuple[date, date]:
    if "u" in parts:
        word = parts.get("n", "one").lower()
        count = int(word) if word.isdigit() else _NUMBERS.index(word) + 1 if word in _NUMBERS else 1
        return due, due + timedelta(days=round(count * _UNITS[parts["u"].lower()]))
    if "this" in parts:
        return due, _end_of_this(parts["this"].lower(), due)
    if "m" in parts:
        return _of_month(parts, due)
    year = int(parts["y"])
    if "q" in parts:
        length = 3 if parts["q"][0] in "qQ" else 6
        month = min(int(parts["q"][1]) * length, 12)
        return date(year, month - length + 1, 1), date(year, month, monthrange(year, month)[1])
    if "to" not in parts:
        return date(year, 1, 1), date(year, 12, 31)
    if len(parts["to"]) == 4:
        return date(year, 1, 1), date(int(parts["to"]), 12, 31)
    # A season such as 2025–26 is over by summer.
    return date(year, 1, 1), date(year - year % 100 + int(parts["to"]), 6, 30)


def _of_month(parts: dict[str, str], due: date) -> tuple[date, date]:
    month = int(parts["m"]) if parts["m"].isdigit() else MONTHS.index(parts["m"][:3].lower()) + 1

    def in_year(year: int) -> tuple[date, date]:
        last = int(parts["d"]) if "d" in parts else monthrange(year, month)[1]
        return date(year, month, int(parts.get("d", 1))), date(year, month, last)

    if "y" in parts:
        return in_year(int(parts["y"]))
    this_year = in_year(due.year)
    return this_year if this_year[1] >= due else in_year(due.year + 1)


def _end_of_this(unit: str, due: date) -> date:
    if unit == "week":
        return due + timedelta(days=6 - due.weekday())
    if unit == "month":
        return date(due.year, due.month, monthrange(due.year, due.month)[1])
    return date(due.year if unit == "year" else due.year - due.year % 10 + 9, 12, 31)


Course = Literal["by", "still", "at", "none"]
"""How the probability changes with a later deadline: by, it can only grow; still, only shrink; at and none, unknown."""


TURNS: Mapping[str, tuple[str, str]] = {
    "before": (r"\bbefore\b|\bantes de\b", 'it asks for something "before" a date or event'),
    "by": (r"\bby\b", 'it asks for something "by" a date'),
    "threshold": (
        r"\bat least\b|\bor (?:more|higher|above)\b|\bmore than\b|\bover\b|\babove\b|\breach|\bhit\b|≥|>|\d\+",
        "a number has to be reached",
    ),
    "under": (
        r"\bat most\b|\bor (?:less|fewer|lower|below)\b|\bless than\b|\bfewer than\b|\bbelow\b|\bdip\b|≤|<",
        "a number has to be undercut",
    ),
    "between": (r"\bbetween\b|\d\s?[-–]\s?\d|\bexactly\b", "a narrow range has to be met"),
    "record": (r"\brecord|\ball[- ]time\b|\bhottest\b|\bhighest\b|\blargest\b", "a record is needed"),
    "first": (r"\bfirst\b", 'something has to be the "first"'),
    "ever": (r"\bever\b", 'it says "ever"'),
    "any": (r"\bany(?:one|body|thing)?\b|\banother\b|\ba new\b", '"any" case counts'),
    "win": (
        r"\bwin(?:s|ner)?\b|\bchampions?\b|\bnominee\b|\bnext (?:president|mayor|prime|pope|leader|chancellor)"
        r"|\bganar",
        "it asks for a win",
    ),
    "most": (r"\bmost\b|\btop\b|\bbest\b|#\s?1\b", "it has to come out on top"),
    "out": (
        r"\bout\b|\bresign|\bcease|\bleav|\bstep(?:s)? down\b|\bremoved?\b|\bimpeach|\bfired\b|\boust",
        "somebody or something has to go",
    ),
    "negated": (
        r"\bstill\b|\bremain|\bstay|\bcontinu|\bsurviv|\bno\b|\bnot\b|\bnever\b|\bwithout\b|\bavoid|\bmaintain"
        r"|\bretain|\bkeeps?\b|\brefrain|\bseguir",
        "it asks whether things stay as they are",
    ),
    "either": (r"\bor\b|\beither\b", "it names alternatives"),
    "both": (r"\band\b|\bboth\b", "it joins several conditions"),
    "condition": (r"^\W*if\b|\bif\b.*\bwill\b", "it depends on a condition"),
    "money": (r"[$€£]\s?\d", "it is about a sum or a price"),
    "number": (r"\d", "it holds a number besides dates"),
    "will": (r"^\W*will\b", 'it begins with "Will"'),
    "exists": (r"\bthere be\b|\boccur|\bhappen", "it asks whether something happens at all"),
}
"""Phrases: the pattern of each in a text without dates, and its description for readers."""
_COMPILED = {name: pattern(phrase) for name, (phrase, _) in TURNS.items()}


@frozen
class QuestionWording:
    """A question's text as the outside view sees it."""

    text: str
    """The text without dates, which is the same for questions that differ only in their deadline."""
    course: Course
    deadline: date | None
    """The deadline stated in the text, if still ahead; None if the text states none."""
    turns: frozenset[str]

    @property
    def stands(self) -> bool:
        """Whether the deadline is stated explicitly, rather than as the year in an event's name."""
        return self.deadline is not None and self.course != "none"


@lru_cache(maxsize=1 << 16)
def read(text: str, due: date) -> QuestionWording:
    """Parse a text as of the day it is asked.

    >>> wording = read("Will Ada still be champion by 30 June 2026?", date(2026, 1, 2))
    >>> wording.course, wording.deadline.isoformat(), wording.text
    ('still', '2026-06-30', 'Will Ada still be champion by ‹date›?')
    """
    dates = mentions(text, due)
    last = deadline(dates, due)
    plain = masked(text, dates)
    lowered = plain.lower()
    turns = frozenset(name for name, phrase in _COMPILED.items() if phrase.search(lowered))
    course: Course = "none" if last is None else last.timing
    if course == "by" and "negated" in turns:
        course = "still"
    return QuestionWording(text=plain, course=course, deadline=last.deadline if last else None, turns=turns)
