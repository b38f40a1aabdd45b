"""Three sentences out of a text without asking anybody: those that share most words with the question."""

import re

from foretell.forecasters.context.context import LONGEST_SUMMARY, one_line

SENTENCES = 3
READ = 20_000
"""Characters of a text that are looked at."""
SHORTEST, LONGEST = 25, 600
"""Shorter pieces are headings and captions; longer ones are cut."""
_END = re.compile(r"(?<=[.!?…。])[\"'”’)]*\s+(?=[^\sa-z])")
_TAG = re.compile(r"<[^<>]{1,300}>")
_WORD = re.compile(r"\w{3,}")
LEAD = 0.5
"""What standing first is worth, in shared words: reports tell what matters at their beginning."""
COMMON = frozenset(
    _WORD.findall(
        "the and for with that this from will was were are has have had not but its his her their they who what when "
        "which while been after before into over more than about would could may might can does did any all one new"
    )
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, each on one line.

    >>> sentences("Rates were held at 4.5 %. “More in May,” said the governor.   It snowed!")
    ['Rates were held at 4.5 %.', '“More in May,” said the governor.', 'It snowed!']
    """
    return [line for piece in _END.split(text[:READ]) if (line := one_line(piece, LONGEST))]


def words(text: str) -> frozenset[str]:
    """Telling words, in lower case."""
    return frozenset(_WORD.findall(text.casefold())) - COMMON


def first_sentences(text: str, count: int = SENTENCES) -> str:
    """At most so many sentences from the beginning."""
    return one_line(" ".join(sentences(text)[:count]), LONGEST_SUMMARY)


def extract(text: str, asked: str, count: int = SENTENCES) -> str:
    """The sentences with most words of the question, in their own order; the beginning where none has any."""
    found = [one for one in sentences(_TAG.sub(" ", text)) if len(one) >= SHORTEST]
    if len(found) <= count:
        return one_line(" ".join(found or sentences(_TAG.sub(" ", text))), LONGEST_SUMMARY)
    wanted = words(asked)
    scores = [len(words(one) & wanted) + LEAD * (place == 0) for place, one in enumerate(found)]
    chosen = sorted(sorted(range(len(found)), key=lambda place: (-scores[place], place))[:count])
    return one_line(" ".join(found[place] for place in chosen), LONGEST_SUMMARY)
