"""The reference values of event counts as published: which can be believed, and what stands in for one that cannot."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from foretell.questions.question import Question

INCREASE, SPIKE = "increase", "10x_spike"
ABOUT = re.compile(r"(?:more|as many) (?:'(?P<kind>[^']+)'|(?P<deaths>fatalities)) in (?P<place>.+?) for the 30 days")
FEWEST = 8
"""A round whose references are all nil, these many at least, was published while the feed was down: about four in
ten places are quiet, so that eight of eight by chance is one round in a thousand."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The average month of the past year, of one kind of event in one place."""

    kind: str
    place: str
    average: float


def reference_of(question: Question) -> Reference:
    """What the question compares with; a spike is published as one plus the average.

    >>> from foretell.questions.question import LastValue, Target
    >>> q = Question(id="acled/1", source="acled", due="2025-10-26", targets=(Target(id="t"),), subtype="10x_spike",
    ...              text="… ten times as many 'Riots' in Mali for the 30 days …", last_value=LastValue(value=1.5,
    ...              at="2025-10-16"))
    >>> reference_of(q)
    Reference(kind='Riots', place='Mali', average=0.5)
    """
    value = 0.0 if question.last_value is None else question.last_value.value
    found = ABOUT.search(question.text)
    return Reference(
        kind="events" if found is None else found["kind"] or found["deaths"],
        place="" if found is None else found["place"],
        average=max(value - 1.0, 0.0) if question.subtype == SPIKE else value,
    )


@dataclass(frozen=True, kw_only=True)
class References:
    """Every reference of rounds that can be believed, by place, and the days of those that cannot."""

    seen: Mapping[str, list[tuple[date, Reference]]]
    outages: frozenset[date]

    @classmethod
    def of(cls, questions: Iterable[Question]) -> "References":
        """From questions that carry a reference."""
        rounds: dict[date, list[Reference]] = {}
        for question in questions:
            rounds.setdefault(question.due.date(), []).append(reference_of(question))
        outages = {due for due, found in rounds.items() if len(found) >= FEWEST and not any(r.average for r in found)}
        seen: dict[str, list[tuple[date, Reference]]] = {}
        for due in sorted(rounds.keys() - outages):
            for reference in rounds[due]:
                seen.setdefault(reference.place, []).append((due, reference))
        return cls(seen=seen, outages=frozenset(outages))

    def before(self, place: str, day: date) -> list[Reference]:
        """What was published of a place before a day, the newest last."""
        return [reference for due, reference in self.seen.get(place, []) if due < day]
