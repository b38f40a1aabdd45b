"""What the wording of a question gives away: its deadline, which way time works, and turns of phrase that matter."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

from foretell.forecasters.outside.deadlines import deadline, masked, mentions

Course = Literal["by", "still", "at", "none"]
"""How the chance moves with the deadline: by, it can only grow; still, it can only shrink; at and none, unknown."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A turn of phrase: how it is recognised in a text without dates, and how it is named to a reader."""

    pattern: str
    told: str


TURNS: Mapping[str, Turn] = {
    "before": Turn(pattern=r"\bbefore\b|\bantes de\b", told='it asks for something "before" a date or event'),
    "by": Turn(pattern=r"\bby\b", told='it asks for something "by" a date'),
    "threshold": Turn(
        pattern=r"\bat least\b|\bor (?:more|higher|above)\b|\bmore than\b|\bover\b|\babove\b|\breach|\bhit\b|≥|>|\d\+",
        told="a number has to be reached",
    ),
    "under": Turn(
        pattern=r"\bat most\b|\bor (?:less|fewer|lower|below)\b|\bless than\b|\bfewer than\b|\bbelow\b|\bdip\b|≤|<",
        told="a number has to be undercut",
    ),
    "between": Turn(pattern=r"\bbetween\b|\d\s?[-–]\s?\d|\bexactly\b", told="a narrow range has to be met"),
    "record": Turn(pattern=r"\brecord|\ball[- ]time\b|\bhottest\b|\bhighest\b|\blargest\b", told="a record is needed"),
    "first": Turn(pattern=r"\bfirst\b", told='something has to be the "first"'),
    "ever": Turn(pattern=r"\bever\b", told='it says "ever"'),
    "any": Turn(pattern=r"\bany(?:one|body|thing)?\b|\banother\b|\ba new\b", told='"any" case counts'),
    "win": Turn(
        pattern=r"\bwin(?:s|ner)?\b|\bchampions?\b|\bnominee\b|\bnext (?:president|mayor|prime|pope|leader|chancellor)"
        r"|\bganar",
        told="one of several rivals has to win",
    ),
    "most": Turn(pattern=r"\bmost\b|\btop\b|\bbest\b|#\s?1\b", told="it has to come out on top"),
    "out": Turn(
        pattern=r"\bout\b|\bresign|\bcease|\bleav|\bstep(?:s)? down\b|\bremoved?\b|\bimpeach|\bfired\b|\boust",
        told="somebody or something has to go",
    ),
    "negated": Turn(
        pattern=r"\bstill\b|\bremain|\bstay|\bcontinu|\bsurviv|\bno\b|\bnot\b|\bnever\b|\bwithout\b|\bavoid|\bmaintain"
        r"|\bretain|\bkeeps?\b|\brefrain|\bseguir",
        told="it asks whether things stay as they are",
    ),
    "either": Turn(pattern=r"\bor\b|\beither\b", told="it names alternatives"),
    "both": Turn(pattern=r"\band\b|\bboth\b", told="it joins several conditions"),
    "condition": Turn(pattern=r"^\W*if\b|\bif\b.*\bwill\b", told="it depends on a condition"),
    "money": Turn(pattern=r"[$€£]\s?\d", told="it is about a sum or a price"),
    "number": Turn(pattern=r"\d", told="it holds a number besides dates"),
    "will": Turn(pattern=r"^\W*will\b", told='it begins with "Will"'),
    "exists": Turn(pattern=r"\bthere be\b|\boccur|\bhappen", told="it asks whether something happens at all"),
}
_COMPILED = {name: re.compile(turn.pattern) for name, turn in TURNS.items()}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A question's text as the outside view sees it."""

    text: str
    """Without dates: two questions that differ only in their deadline have the same."""
    course: Course
    deadline: date | None
    """Named in the text and still ahead; None where the text names none."""
    turns: frozenset[str]

    @property
    def stands(self) -> bool:
        """Whether the deadline is named outright, rather than being the year in some event's name."""
        return self.deadline is not None and self.course != "none"


@lru_cache(maxsize=1 << 16)
def read(text: str, due: date) -> Reading:
    """The reading of a text on the day it is asked.

    >>> seen = read("Will Ada still be champion by 30 June 2026?", date(2026, 1, 2))
    >>> seen.course, seen.deadline.isoformat(), seen.text
    ('still', '2026-06-30', 'Will Ada still be champion by ‹date›?')
    """
    found = mentions(text, due)
    last = deadline(found, due)
    plain = masked(text, found)
    lowered = plain.lower()
    turns = frozenset(name for name, pattern in _COMPILED.items() if pattern.search(lowered))
    course: Course = "none" if last is None else last.timing
    if course == "by" and "negated" in turns:
        course = "still"
    return Reading(text=plain, course=course, deadline=last.deadline if last else None, turns=turns)
