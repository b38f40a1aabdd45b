"""Regular expressions that are compiled when they are first used, because a command that reads no dates needs none."""

import re
from collections.abc import Callable
from typing import AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")
_FACTS = ("groups", "groupindex")


def pattern(text: AnyStr | Callable[[], AnyStr], flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern like that of `re.compile`, which is compiled by the first call of one of its methods.

    A text that takes time to make is given as a function.
    """
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))


class _Pattern:
    """Compiles itself once, and then has the methods of the compiled pattern as its own."""

    def __init__(self, text: str | bytes | Callable[[], str | bytes], flags: int) -> None:
        self._text, self.flags = text, flags

    @property
    def pattern(self) -> str | bytes:
        """The text of the pattern."""
        return self._text() if callable(self._text) else self._text

    def __getattr__(self, name: str) -> object:
        if name not in _METHODS and name not in _FACTS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        for own in (*_METHODS, *_FACTS):
            setattr(self, own, getattr(compiled, own))
        return getattr(self, name)
