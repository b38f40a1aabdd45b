"""Strikes in a claim's wording: "above 3.5", "$99,250 or above", "at least 100k", "fewer than 5", "reach $110,000"."""

import re
from dataclasses import dataclass
from typing import Literal

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
STRIKE = re.compile(
    rf"(?:(?<!\w)|(?=[<>≤≥]))(?:{_BEFORE})\s*{_VALUE.format('a')}|(?<![\w.,$€£]){_VALUE.format('b')}(?:{_AFTER})",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A side of a value. `above` and `below` are about where a quantity ends, `reach` and `dip` about where it goes."""

    side: Side
    value: float
    included: bool
    """Whether the value itself makes the claim true."""
    unit: str = ""
    """Currency and measure: strikes in different units are never compared."""

    @property
    def below(self) -> bool:
        """Whether lower values make the claim true."""
        return self.side == "below"

    @property
    def kind(self) -> str:
        """Strikes of one kind can be compared."""
        word = "value" if self.side in ("above", "below") else self.side
        return f"{word} {self.unit}".strip()


def read_strike(found: re.Match[str]) -> Strike:
    """The strike of a match of `STRIKE`.

    >>> read_strike(STRIKE.search("$2.75 million or above"))
    Strike(side='above', value=2750000.0, included=True, unit='$')
    """
    said = {name: text for name, text in found.groupdict().items() if text}
    value = {name[1:]: text for name, text in said.items() if name[0] in "ab" and name[1:] in _PARTS}
    scale = SCALES.get(value.get("letter", value.get("scale", "")).lower(), 1.0)
    sign = -1 if "minus" in value else 1
    return Strike(
        side=_side(said),
        value=sign * scale * float(value["number"].replace(",", "")),
        included=not said.keys() & {"over", "under"},
        unit=value.get("currency", "") + value.get("unit", "").replace(" ", "").replace("percent", "%").casefold(),
    )


_PARTS = ("minus", "currency", "number", "letter", "scale", "unit")


def _side(said: dict[str, str]) -> Side:
    if "reach" in said:
        return "reach"
    if "dip" in said:
        return "dip"
    return "above" if said.keys() & {"least", "over", "upward", "plus"} else "below"
