"""Texts and names as other formats can bear them."""

import re

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def one_line(text: str) -> str:
    r"""The text on one line, without characters that steer a terminal or turn its direction.

    >>> one_line("a\n  b\x1b[31m")
    'a b [31m'
    """
    return " ".join(_STEERING.sub(" ", text).split())


class Names:
    """Plain names for ids, each its own: letters, digits and underscores only.

    >>> names = Names(lower=True)
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
            self._given[key] = self._free(name.lower() if self._lower else name)
        return self._given[key]

    def _free(self, name: str) -> str:
        # No second name differs from another by case alone: some readers ignore it.
        while name.lower() in self._taken:
            name += "_b"
        self._taken.add(name.lower())
        return name


def decimal(value: float) -> str:
    """The shortest text that reads back as this number, without an exponent.

    >>> decimal(0.1), decimal(1e-07), decimal(1.0)
    ('0.1', '0.0000001', '1.0')
    """
    from decimal import Decimal

    text = f"{Decimal(repr(float(value))):f}"
    return text if "." in text else f"{text}.0"
