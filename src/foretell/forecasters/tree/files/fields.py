"""Reading JSON objects field by field, collecting what is wrong instead of stopping at the first."""

import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

from foretell.forecasters.tree.problems import Problem


class Repeated(dict[str, Any]):
    """A JSON object in which some names occur twice."""

    names: tuple[str, ...] = ()


def object_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads(object_pairs_hook=…)`: a dict that knows which names were given twice."""
    found = Repeated(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        found.names = tuple(name for name, _ in pairs if name in seen or seen.add(name))
    return found


class Fields:
    """The fields of one object. Whatever does not fit becomes a `Problem` and reads as its default."""

    def __init__(self, data: object, problems: list[Problem], *, node: str = "", within: str = "") -> None:
        self.node = node
        self.within = within
        self.problems = problems
        self._read: set[str] = set()
        self.data: Mapping[str, Any] = {}
        if isinstance(data, dict):
            self.data = cast("dict[str, Any]", data)
            for name in data.names if isinstance(data, Repeated) else ():
                self.wrong(name, "is given twice")
        else:
            self.wrong("", f"expected an object {{…}}, found {_told(data)}")

    def wrong(self, name: str, text: str, hint: str = "") -> None:
        """Something does not fit."""
        field = ".".join(filter(None, [self.within, name]))
        self.problems.append(Problem(node=self.node, field=field, text=text, hint=hint))

    def take(self, name: str) -> Any:
        """The raw value; None where absent."""
        self._read.add(name)
        return self.data.get(name)

    def text(self, name: str, default: str | None = "") -> str:
        """A text; without a default it must be there."""
        value = self.take(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self.wrong(name, "is missing" if value is None else f"expected a text, found {_told(value)}")
            return default or ""
        return value

    def number(self, name: str, default: float | None = None, *, required: bool = False) -> float | None:
        """A finite number."""
        value = self.take(name)
        if value is None:
            if required:
                self.wrong(name, "is missing")
            return default
        return default if not self._is_number(name, value) else float(value)

    def flag(self, name: str) -> bool:
        """True or false; false where absent."""
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            self.wrong(name, f"expected true or false, found {_told(value)}")
        return value is True

    def numbers(self, name: str, *, required: bool = False) -> dict[str, float]:
        """Numbers by id."""
        value = self.take(name)
        if value is None:
            if required:
                self.wrong(name, "is missing")
            return {}
        inner = Fields(value, self.problems, node=self.node, within=".".join(filter(None, [self.within, name])))
        return {key: float(item) for key, item in inner.data.items() if inner._is_number(key, item)}

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self.take(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
            self.wrong(name, f"expected a list of texts, found {_told(value)}")
            return ()
        return tuple(cast("list[str]", value))

    def inner(self, name: str) -> "Fields | None":
        """An object within this one; None where absent."""
        value = self.take(name)
        within = ".".join(filter(None, [self.within, name]))
        return None if value is None else Fields(value, self.problems, node=self.node, within=within)

    def done(self) -> None:
        """Every field that nobody asked for is a mistake worth telling."""
        for name in self.data:
            if name not in self._read:
                near = get_close_matches(name, sorted(self._read), n=1)
                self.wrong(name, "is not a field here", f"did you mean {near[0]}?" if near else "")

    def _is_number(self, name: str, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(name, f"expected a number, found {_told(value)}")
            return False
        if not math.isfinite(value):
            self.wrong(name, f"{value} is not a finite number")
            return False
        return True


def _told(value: object) -> str:
    kinds: Mapping[type, str] = {dict: "an object", list: "a list", bool: "true or false"}
    if value is None:
        return "nothing"
    for kind, words in kinds.items():
        if isinstance(value, kind):
            return words
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "…"
