"""Turns claims into templates without their strikes and deadlines: claims with the same template can be ordered."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

import numpy as np

from foretell.data.dates import MONTHS
from foretell.frozen import frozen
from foretell.patterns import pattern

# Deadlines in a claim's wording: "by 2026-03-01", "before March 2025", "by the end of 2030".

_MONTH = (
    r"(?P<{}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR = r"(?P<{}>(?:19|20)\d\d)(?![\d,.]*\d|\s?%|-)"
_DAY = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th)?"
DEADLINE = pattern(
    r"\b(?<!days )(?<!weeks )(?<!months )(?<!years )(?<!hours )"
    r"(?P<word>on or before|no later than|by|before)\s+(?P<end>(?:the )?(?:end|start|beginning) of )?(?:"
    r"(?P<iso>\d{4}-\d{2}-\d{2})\b"
    rf"|{_MONTH.format('month1')}\s+{_DAY.format('day1')}\b(?:,?\s+{_YEAR.format('year1')})?"
    rf"|{_DAY.format('day2')}\s+{_MONTH.format('month2')}\b(?:,?\s+{_YEAR.format('year2')})?"
    rf"|{_MONTH.format('month3')}\b(?:,?\s+{_YEAR.format('year3')})?"
    rf"|{_YEAR.format('year4')}"
    r")",
    re.IGNORECASE,
)
BACK = timedelta(days=60)
"""A day without a year is its first occurrence from this long before the asking, because it may be just over."""


@frozen
class Deadline:
    """The first day of the period, and its kind; deadlines of the same kind are ordered by day."""

    day: date
    kind: str
    """Word, end or start, and precision, e.g. "by end of year"."""


def read_deadline(match: re.Match[str], asked_on: date) -> Deadline | None:
    """Parse the deadline from a match of `DEADLINE`; None for a day that does not exist."""
    parts = {name.rstrip("1234"): text for name, text in match.groupdict().items() if text}
    precision = "day" if "iso" in parts or "day" in parts else "month" if "month" in parts else "year"
    kind = " ".join([parts["word"].lower(), *parts.get("end", "").lower().replace("the ", "").split(), precision])
    try:
        if "iso" in parts:
            return Deadline(day=date.fromisoformat(parts["iso"]), kind=kind)
        first = asked_on - BACK
        month = 1 + MONTHS.index(parts["month"][:3].lower()) if "month" in parts else 1
        day = date(int(parts.get("year", first.year)), month, int(parts.get("day", "1")))
        if "year" not in parts and day < first:
            day = date(first.year + 1, month, day.day)
        return Deadline(day=day, kind=kind)
    except ValueError:
        return None


# Strikes in a claim's wording: "above 3.5", "$99,250 or above", "at least 100k", "fewer than 5", "reach $110,000".

Side = Literal["above", "below", "reach", "dip"]
SCALES = {
    **dict.fromkeys(("k", "thousand"), 1e3),
    **dict.fromkeys(("m", "million"), 1e6),
    **dict.fromkeys(("b", "bn", "billion"), 1e9),
    **dict.fromkeys(("t", "tn", "trillion"), 1e12),
}
_VALUE = (
    r"(?P<{0}minus>[-−])?(?P<{0}currency>[$€£])?(?P<{0}number>\d[\d,]*(?:\.\d+)?)"
    r"(?:(?P<{0}letter>k|m|bn|b|tn|t)\b|\s?(?P<{0}scale>thousand|million|billion|trillion)\b)?(?![\d.,]*\d)"
    r"(?P<{0}unit>\s?(?:%|percent\b|°\s?[cf]?\b|bps\b))?"
)
_BEFORE = (
    r"(?P<least>at least|no less than|no fewer than|>=|≥)|(?P<most>at most|no more than|<=|≤)"
    r"|(?P<over>above|over|more than|greater than|higher than|exceeds?|in excess of|>)"
    r"|(?P<under>below|under|less than|fewer than|lower than|<)"
    r"|(?P<reach>reach(?:es)?)|(?P<dip>(?:dip|fall|drop)s? to)"
)
_AFTER = (
    r"\s*(?:or|and) (?:(?P<upward>above|more|higher|greater|over)|(?P<downward>below|less|lower|fewer|under))\b"
    r"|(?P<plus>\+)"
)
STRIKE = pattern(
    rf"(?:(?<!\w)|(?=[<>≤≥]))(?:{_BEFORE})\s*{_VALUE.format('a')}|(?<![\w.,$€£]){_VALUE.format('b')}(?:{_AFTER})",
    re.IGNORECASE,
)


@frozen
class Strike:
    """One side of a value: `above` and `below` are about the final value, `reach` and `dip` about any value."""

    side: Side
    value: float
    included: bool
    """Whether the value itself makes the claim true."""
    unit: str = ""
    """Currency and unit; strikes in different units are never compared."""

    @property
    def below(self) -> bool:
        """Whether lower values make the claim true."""
        return self.side == "below"

    @property
    def kind(self) -> str:
        """The kind of the strike; strikes of the same kind can be compared."""
        word = "value" if self.side in ("above", "below") else self.side
        return f"{word} {self.unit}".strip()


def read_strike(match: re.Match[str]) -> Strike:
    """Parse the strike from a match of `STRIKE`."""
    parts = {name: text for name, text in match.groupdict().items() if text}
    letter = "a" if "anumber" in parts else "b"
    scale = SCALES.get(parts.get(f"{letter}letter", parts.get(f"{letter}scale", "")).lower(), 1.0)
    sign = -1 if f"{letter}minus" in parts else 1
    upward = bool(parts.keys() & {"least", "over", "upward", "plus"})
    unit = parts.get(f"{letter}unit", "").replace(" ", "").replace("percent", "%").casefold()
    return Strike(
        side="reach" if "reach" in parts else "dip" if "dip" in parts else "above" if upward else "below",
        value=sign * scale * float(parts[f"{letter}number"].replace(",", "")),
        included=not parts.keys() & {"over", "under"},
        unit=parts.get(f"{letter}currency", "") + unit,
    )


Slot = Strike | Deadline
NEGATED = pattern(
    r"\b(?:not|never|no|none|neither|nor|without|unless|except|excluding|fails?|failed|avoids?|cannot|only|exactly)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
"""Words that may reverse the order or remove it."""
TEMPORARY = pattern(
    r"\b(?:still|remain\w*|stay\w*|keep\w*|hold\w*|increas\w*|decreas\w*|ris(?:e|es|en|ing)|rose|fall\w*|fell|higher"
    r"|lower|compared|relative|change\w*|until|between|average|past|previous|preceding)\b",
    re.IGNORECASE,
)
"""Words of claims about the state on a day, which may be true in March and false in June."""


@frozen
class ClaimTemplate:
    """A wording with placeholders for its strikes and deadlines, and the values replaced, in order."""

    template: str
    slots: tuple[Slot, ...]
    bare: bool = False
    """Whether the claim is only its strike. Only then is "3.1 or below" certain to be the complement of "above 3.1": in
    March, a price may be both above and below it."""

    @property
    def lasting(self) -> bool:
        """Whether, by its wording, the claim stays true once it is, so that it is likelier with a later deadline."""
        return not TEMPORARY.search(self.template)


@lru_cache(maxsize=1 << 14)
def read_claim(text: str, asked_on: date) -> ClaimTemplate | None:
    """Parse a claim; None if it has no strike or deadline, or if its wording makes the order doubtful.

    >>> claim = read_claim("Will it reach $110,000 by December 31, 2025?", date(2025, 3, 2))
    >>> claim.template, [type(slot).__name__ for slot in claim.slots]
    ('will it {reach $} {by day}', ['Strike', 'Deadline'])
    """
    slots: list[tuple[int, int, Slot]] = []
    rest = text
    for match in DEADLINE.finditer(text):
        if (deadline := read_deadline(match, asked_on)) is not None:
            slots.append((*match.span(), deadline))
            # A year or a day of the month is not a strike.
            rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    slots += [(*match.span(), read_strike(match)) for match in STRIKE.finditer(rest)]
    slots.sort(key=lambda item: item[0])
    template, at = "", 0
    for start, stop, slot in slots:
        template += f"{text[at:start]} {{{slot.kind}}} "
        at = stop
    template = " ".join(re.sub(r"[^\w{}$€£%°'#&]+", " ", template + text[at:]).casefold().split())
    if not slots or NEGATED.search(template):
        return None
    bare = template == f"{{{slots[0][2].kind}}}"
    return ClaimTemplate(template=template, slots=tuple(slot for _, _, slot in slots), bare=bare)


# The order of claims by probability, from their wording alone.


@frozen
class OrderedClaims:
    """Claims in a total order: a higher level is likelier, and claims on one level are equivalent."""

    rule: Literal["ladder", "by date"]
    names: tuple[str, ...]
    level: tuple[int, ...]
    flipped: tuple[bool, ...]
    """Whether the claim's complement is ordered instead: "below 5" among "above …"."""


@frozen
class NestedClaims:
    """Claims that differ in several slots, so that only some pairs can be compared."""

    names: tuple[str, ...]
    implications: tuple[tuple[str, str], ...]
    """Pairs of claims of which the first cannot be true without the second."""
    rule: Literal["nested"] = "nested"


Order = OrderedClaims | NestedClaims


def orders(claims: Mapping[str, ClaimTemplate]) -> list[Order]:
    """Return all orders among claims that share their wording except for strikes or deadlines.

    Claims about the two sides of a value are in one order only if they are bare.
    """
    alike: dict[tuple[str, tuple[bool, ...]], list[str]] = {}
    for name, claim in claims.items():
        sides = () if claim.bare else tuple(_flipped(slot) for slot in claim.slots)
        alike.setdefault((claim.template, sides), []).append(name)
    candidates = (_order([(name, claims[name]) for name in names]) for names in alike.values() if len(names) > 1)
    return [order for order in candidates if order is not None]


def _order(claims: Sequence[tuple[str, ClaimTemplate]]) -> Order | None:
    columns = list(zip(*(claim.slots for _, claim in claims), strict=True))
    moving = [column for column in columns if len({(_key(slot), _flipped(slot)) for slot in column}) > 1]
    if not moving:
        return None
    if any(isinstance(column[0], Deadline) for column in moving) and not claims[0][1].lasting:
        return None
    names = tuple(name for name, _ in claims)
    if len(moving) > 1:
        return _nested(names, moving)
    column = moving[0]
    keys = [_key(slot) for slot in column]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys), reverse=True))}
    return OrderedClaims(
        rule="by date" if isinstance(column[0], Deadline) else "ladder",
        names=names,
        level=tuple(ranks[key] for key in keys),
        flipped=tuple(_flipped(slot) for slot in column),
    )


def _nested(names: tuple[str, ...], columns: Sequence[Sequence[Slot]]) -> NestedClaims | None:
    strength = [[_key(slot) for slot in column] for column in columns]
    places = [{key: place for place, key in enumerate(sorted(set(column)))} for column in strength]
    table = np.array([[place[key] for key in column] for place, column in zip(places, strength, strict=True)])
    table[[_flipped(column[0]) for column in columns]] *= -1
    stronger = np.all(table[:, :, None] >= table[:, None, :], axis=0) & ~np.eye(len(names), dtype=np.bool_)
    # Equivalent claims imply each other. Other implications that follow from two others are left out.
    strict = stronger & ~stronger.T
    direct = stronger & ~((strict.astype(int) @ strict.astype(int)) > 0)
    pairs = tuple((names[i], names[j]) for i, j in np.argwhere(direct).tolist())
    return NestedClaims(names=names, implications=pairs) if pairs else None


def _key(slot: Slot) -> tuple[float, int]:
    """Return the sort key: the larger, the less likely the claim, or for `below` its complement."""
    if isinstance(slot, Deadline):
        return -float(slot.day.toordinal()), 0
    if slot.side == "dip":
        return -slot.value, 0
    above = slot.included != slot.below
    return slot.value, 0 if above else 1


def _flipped(slot: Slot) -> bool:
    return isinstance(slot, Strike) and slot.below
