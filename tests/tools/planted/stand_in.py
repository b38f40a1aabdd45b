"""A stand-in for the filter model: a few rules about tense and dates. It shows that the road works, not how well a
real model reads: it cannot know that an outcome told without a date is one."""

import re
from datetime import date

from tests.tools.doubles import Judge

from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import find_dates
from foretell.tools.dates.stamps import is_after

SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z\"'({])|\n+")
DONE = re.compile(
    r"\b(?:was|were|won|lost|beat|rose|fell|held|cut|struck|came|left|lifted|signed|walked|made|took|went|said"
    r"|\w{2,}ed)\b",
    re.IGNORECASE,
)
AHEAD = re.compile(
    r"\b(?:will|would|may|might|could|shall|if|is to|are to|due|set (?:for|to)|scheduled|planned|expected|expects?"
    r"|opens?|starts?|ends?|expires?|matures|until|forecast|forecasts|outlook|odds|poll|usually|any year|expect"
    r"|weather like|ahead of)\b",
    re.IGNORECASE,
)


def keeps(title: str, text: str, cutoff: str) -> bool:
    """KEEP unless a sentence tells, as done, something about a day after the cutoff."""
    as_of = AsOf.day(date.fromisoformat(cutoff))
    return not any(_tells(sentence, as_of) for sentence in SENTENCE.split(f"{title}\n{text}"))


def _tells(sentence: str, as_of: AsOf) -> bool:
    late = any(all(is_after(day, as_of) for day in found.readings) for found in find_dates(sentence))
    return late and bool(DONE.search(sentence)) and not AHEAD.search(sentence)


def stand_in() -> Judge:
    return Judge(keeps)
