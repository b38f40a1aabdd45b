"""Texts, numbers and names as reports and other formats can show them."""

import re
from collections.abc import Sequence
from decimal import Decimal

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def one_line(text: str) -> str:
    r"""The text on one line, without characters that steer a terminal or turn its direction.

    >>> one_line("a\n  b\x1b[31m")
    'a b [31m'
    """
    return " ".join(_CONTROL.sub(" ", text).split())


def format_probability(p: float | None) -> str:
    """A probability as reports show it.

    >>> format_probability(0.87196), format_probability(0.0004), format_probability(1.0), format_probability(None)
    ('0.872', '0.0004', '1', '–')
    """
    if p is None:
        return "–"
    if 0 < p < 0.001 or 0.999 < p < 1:
        return f"{p:.4f}"
    return f"{p:.0f}" if p in (0, 1) else f"{p:.3f}"


def decimal(value: float) -> str:
    """The shortest text that reads back as this number, without an exponent: for files that other programs read.

    >>> decimal(0.1), decimal(1e-07), decimal(1.0)
    ('0.1', '0.0000001', '1.0')
    """
    text = f"{Decimal(repr(float(value))):f}"
    return text if "." in text else f"{text}.0"


def enumeration(parts: Sequence[str]) -> str:
    """The parts as a list in a sentence.

    >>> enumeration(["a"]), enumeration(["a", "b"]), enumeration(["a", "b", "c"])
    ('a', 'a and b', 'a, b, and c')
    """
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


class ExportNames:
    """Plain names for ids, each its own: letters, digits and underscores only.

    >>> names = ExportNames(lower=True)
    >>> names.of("P1.2"), names.of("P1_2"), names.of("P1.2")
    ('p1_2', 'p1_2_b', 'p1_2')
    """

    def __init__(self, *, lower: bool = False) -> None:
        self._lower = lower
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, key: str) -> str:
        """The name that stands for this key."""
        if key not in self._given:
            name = re.sub(r"\W", "_", key, flags=re.ASCII)
            name = name.lower() if self._lower else name
            # No second name differs from another by case alone: some readers ignore it.
            while name.lower() in self._taken:
                name += "_b"
            self._taken.add(name.lower())
            self._given[key] = name
        return self._given[key]
