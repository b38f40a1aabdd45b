"""Regular expressions that are compiled when they are first used, because a command that reads no dates needs none."""

import re
from typing import cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern like that of `re.compile`, which is compiled by the first call of one of its methods."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


class _Pattern:
    """Compiles itself once, and then has the methods of the compiled pattern as its own."""

    def __init__(self, text: str, flags: int) -> None:
        self.pattern, self.flags = text, flags

    def __getattr__(self, name: str) -> object:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(self, name)
