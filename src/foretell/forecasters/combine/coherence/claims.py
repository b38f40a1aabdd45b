"""A claim as a template with its strikes and deadlines taken out: claims that differ in nothing else can be ordered."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from foretell.forecasters.combine.coherence.deadlines import DEADLINE, Deadline, read_deadline
from foretell.forecasters.combine.coherence.strikes import STRIKE, Strike, read_strike

NEGATED = re.compile(
    r"\b(?:not|never|no|none|neither|nor|without|unless|except|excluding|fails?|failed|avoids?|cannot|only|exactly)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
"""Words that may turn the order round, or leave none."""
COMING_AND_GOING = re.compile(
    r"\b(?:still|remain\w*|stay\w*|keep\w*|hold\w*|increas\w*|decreas\w*|ris(?:e|es|en|ing)|rose|fall\w*|fell|higher"
    r"|lower|compared|relative|change\w*|until|between|average|past|previous|preceding)\b",
    re.IGNORECASE,
)
"""Words of claims about how things stand on a day: such a claim may be true by March and no longer by June."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A wording with places for its strikes and deadlines, and what stood there, in order."""

    template: str
    slots: tuple[Strike | Deadline, ...]
    bare: bool = False
    """Whether it says nothing but its one strike. Only then is "3.1 or below" sure to be what "above 3.1" is not: a
    price may well be above and below it "in March"."""

    @property
    def lasting(self) -> bool:
        """Whether it stays true once it is, as far as the wording tells: only then do later deadlines hold more."""
        return not COMING_AND_GOING.search(self.template)


def read_claim(text: str, asked: date) -> Claim | None:
    """The claim, or None where nothing in it can be ordered or its wording leaves the order in doubt.

    >>> claim = read_claim("Will it reach $110,000 by December 31, 2025?", date(2025, 3, 2))
    >>> claim.template, [type(slot).__name__ for slot in claim.slots]
    ('will it {reach $} {by day}', ['Strike', 'Deadline'])
    >>> read_claim("Between 16 and 20 storms", date(2025, 3, 2)) is None
    True
    """
    found = sorted(_slots(text, asked), key=lambda one: one[0].start)
    pieces, at = list[str](), 0
    for place, slot in found:
        pieces += [text[at : place.start], f" {{{slot.kind}}} "]
        at = place.stop
    template = _plain("".join([*pieces, text[at:]]))
    if not found or NEGATED.search(template):
        return None
    slots = tuple(slot for _, slot in found)
    return Claim(template=template, slots=slots, bare=template == f"{{{slots[0].kind}}}")


def _slots(text: str, asked: date) -> Iterator[tuple[slice, Strike | Deadline]]:
    rest = text
    for found in DEADLINE.finditer(text):
        deadline = read_deadline(found, asked)
        if deadline is not None:
            yield slice(*found.span()), deadline
            # A year or a day of the month is no strike.
            rest = rest[: found.start()] + "\0" * len(found[0]) + rest[found.end() :]
    for found in STRIKE.finditer(rest):
        yield slice(*found.span()), read_strike(found)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w{}$€£%°'#&]+", " ", text).casefold().split())
