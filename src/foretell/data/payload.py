"""JSON answers of other people's servers, read field by field: what we need must be there, the rest is ignored."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, NoReturn, TypeVar, cast

from foretell.data.http import HttpResponse, SourceError
from foretell.questions.as_of import instant

Row = TypeVar("Row")
Read = TypeVar("Read")
FARTHEST_SECOND = 3.0e10
"""Times beyond the year 2900 are mistakes, and reckoning with them would overflow."""


class MalformedPayload(SourceError):
    """The server answered, but not in the shape we rely on. Names the field, and never quotes what stood there."""


@dataclass(frozen=True, kw_only=True)
class Payload:
    """One value inside an answer, and the way to it.

    >>> answer = Payload(url="https://example.org/", value={"rows": [{"p": "0.5"}, {"p": None}]})
    >>> answer.rows("rows")[0].need("p").number()
    0.5
    >>> answer.rows("rows")[1].need("p")
    Traceback (most recent call last):
    ...
    foretell.data.payload.MalformedPayload: https://example.org/: field rows[1].p is missing
    """

    url: str
    value: Any
    path: str = ""

    @classmethod
    def of(cls, answer: HttpResponse) -> "Payload":
        """The body of an answer."""
        url = answer.hops[-1] if answer.hops else ""
        try:
            return cls(url=url, value=json.loads(answer.body))
        except ValueError:
            # The decoder's own message quotes the text; it must not travel along as the cause.
            pass
        raise MalformedPayload("the answer is not JSON", url=url)

    def wrong(self, expected: str) -> NoReturn:
        """Complain about this value."""
        raise MalformedPayload(f"field {self.path or '(the whole answer)'} is not {expected}", url=self.url)

    def missing(self) -> NoReturn:
        """Complain that this field is not there."""
        raise MalformedPayload(f"field {self.path} is missing", url=self.url)

    # The way to a field.

    def has(self, name: str) -> bool:
        """Whether the object has the field, even if it holds null."""
        return name in self._fields()

    def get(self, *names: str) -> "Payload | None":
        """A field, or a field of a field, of which any may be missing or null."""
        found = self
        for name in names:
            found = found._at(name, found._fields().get(name))
            if found.value is None:
                return None
        return found

    def need(self, *names: str) -> "Payload":
        """A field, or a field of a field, all of which must be there."""
        found = self
        for name in names:
            found = found._at(name, found._fields().get(name))
            if found.value is None:
                found.missing()
        return found

    def present(self, name: str) -> "Payload | None":
        """A field that must be there, though it may hold null."""
        return self.get(name) if self.has(name) else self.need(name)

    def items(self) -> list["Payload"]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            self.wrong("a list")
        entries = cast("list[Any]", self.value)
        return [Payload(url=self.url, path=f"{self.path}[{i}]", value=value) for i, value in enumerate(entries)]

    def rows(self, name: str) -> list["Payload"]:
        """The entries of a list in a field; none where it is missing or null."""
        found = self.get(name)
        return [] if found is None else found.items()

    def members(self) -> dict[str, "Payload"]:
        """The fields of an object by name."""
        return {name: self._at(name, value) for name, value in self._fields().items()}

    # What stands here.

    def text(self) -> str:
        """A string."""
        return self.value if isinstance(self.value, str) else self.wrong("a text")

    def name(self) -> str:
        """An identifier, which some servers send as a number."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int):
            self.wrong("an identifier")
        return str(self.value)

    def flag(self) -> bool:
        """True or false."""
        return self.value if isinstance(self.value, bool) else self.wrong("true or false")

    def number(self) -> float:
        """A finite number, also one written as a string."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | str):
            self.wrong("a number")
        try:
            value = float(self.value)
        except (ValueError, OverflowError):
            value = math.nan
        return value if math.isfinite(value) else self.wrong("a finite number")

    def probability(self) -> float:
        """A number from 0 to 1."""
        value = self.number()
        return value if 0.0 <= value <= 1.0 else self.wrong("a probability")

    def moment(self, *, per_second: int = 1) -> datetime:
        """A Unix time in seconds, or in thousandths of one."""
        seconds = self.number() / per_second
        return datetime.fromtimestamp(seconds, UTC) if abs(seconds) < FARTHEST_SECOND else self.wrong("a time")

    def time(self) -> datetime:
        """A moment written out, with a time zone."""
        try:
            return instant(self.text())
        except ValueError:
            pass
        self.wrong("a time")

    def day(self) -> date:
        """A calendar day such as 2025-10-26."""
        try:
            day = date.fromisoformat(self.text())
        except ValueError:
            day = None
        return day if day is not None and day.year < date.max.year else self.wrong("a date")

    def embedded(self) -> "Payload":
        """A value that some servers send as JSON inside a string, others as itself."""
        if not isinstance(self.value, str):
            return self
        try:
            return Payload(url=self.url, path=self.path, value=json.loads(self.value))
        except ValueError:
            pass
        self.wrong("JSON inside a text")

    # What stands in a field.

    def address(self, name: str) -> str:
        """A web address, which must be there and not empty."""
        found = self.need(name)
        return found.text() or found.wrong("an address")

    def stated_text(self, name: str) -> str:
        """A text that must be there; an explicit null is an empty one."""
        found = self.present(name)
        return "" if found is None else found.text()

    def optional_text(self, name: str) -> str:
        """A text, empty where it is missing."""
        found = self.get(name)
        return "" if found is None else found.text()

    def words(self, name: str) -> str:
        """The same without spaces around it."""
        return self.optional_text(name).strip()

    def texts(self, name: str) -> tuple[str, ...]:
        """The texts of a list, none where it is missing."""
        return tuple(item.text() for item in self.rows(name))

    def optional_time(self, name: str) -> datetime | None:
        """A moment written out, None where the field is missing, null or empty."""
        found = self.get(name)
        return None if found is None or found.value == "" else found.time()

    def is_set(self, name: str) -> bool:
        """A flag that is off where it is missing."""
        found = self.get(name)
        return found is not None and found.flag()

    def amount(self, *names: str) -> float | None:
        """The number in the first of these fields that holds one. What cannot be negative and is, was not told."""
        found = next((field for name in names if (field := self.get(name)) is not None), None)
        number = None if found is None else found.number()
        return None if number is None or number < 0 else number

    def count(self, name: str) -> int | None:
        """A whole number of people or things."""
        number = self.amount(name)
        return None if number is None else int(number)

    def _fields(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            self.wrong("an object")
        return cast("Mapping[str, Any]", self.value)

    def _at(self, name: str, value: Any) -> "Payload":
        return Payload(url=self.url, path=f"{self.path}.{name}" if self.path else name, value=value)


def readable(rows: Sequence[Row], read: Callable[[Row], Read]) -> tuple[list[Read], tuple[str, ...]]:
    """What can be read of the rows, and a note that counts the others and names what is wrong with the first of them.

    Where not a single row can be read, the answer has another shape than we know, and that is an error.

    >>> answer = Payload(url="", value=[{"p": 1}, {}, {"p": "x"}])
    >>> readable(answer.items(), lambda row: row.need("p").number())
    ([1.0], ('2 of 3 rows cannot be read: field [1].p is missing',))
    """
    found: list[Read] = []
    problems: list[MalformedPayload] = []
    for row in rows:
        try:
            found.append(read(row))
        except MalformedPayload as problem:
            problems.append(problem)
    if problems and not found:
        raise problems[0]
    notes = (f"{len(problems)} of {len(rows)} rows cannot be read: {problems[0].problem}",) if problems else ()
    return found, notes
