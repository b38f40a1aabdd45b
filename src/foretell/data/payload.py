"""Read JSON responses of other servers field by field: required fields must be present, all others are ignored."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NoReturn, TypeVar, cast

from foretell.data.http import HttpResponse, SourceError
from foretell.frozen import frozen
from foretell.questions.as_of import instant

Row = TypeVar("Row")
Read = TypeVar("Read")
FARTHEST_SECOND = 3.0e10
"""Largest Unix time accepted, in seconds. Times beyond the year 2900 are mistakes, and arithmetic would overflow."""


class MalformedPayload(SourceError):
    """The response does not have the expected structure. The message names the field but never quotes its content."""


@frozen
class Payload:
    """One value inside a JSON response, with its path.

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
        """Parse the body of a response."""
        url = answer.hops[-1] if answer.hops else ""
        try:
            return cls(url=url, value=json.loads(answer.body))
        except (ValueError, RecursionError):
            # The decoder's message quotes the text, so it must not become the cause.
            pass
        raise MalformedPayload("the response is not JSON", url=url)

    def wrong(self, expected: str) -> NoReturn:
        """Raise `MalformedPayload`, saying what this value should have been."""
        raise MalformedPayload(f"field {self.path or '(the whole response)'} is not {expected}", url=self.url)

    def missing(self) -> NoReturn:
        """Raise `MalformedPayload`, saying that this field is missing."""
        raise MalformedPayload(f"field {self.path} is missing", url=self.url)

    # Access to fields.

    def has(self, name: str) -> bool:
        """Whether the object has the field, even if its value is null."""
        return name in self._fields()

    def get(self, *names: str) -> "Payload | None":
        """Return a field, or a nested field; None if any field on the way is missing or null."""
        field = self
        for name in names:
            field = field._at(name, field._fields().get(name))
            if field.value is None:
                return None
        return field

    def need(self, *names: str) -> "Payload":
        """Return a field, or a nested field; raise if any field on the way is missing or null."""
        field = self
        for name in names:
            field = field._at(name, field._fields().get(name))
            if field.value is None:
                field.missing()
        return field

    def present(self, name: str) -> "Payload | None":
        """Return a field that must be present; None if its value is null."""
        return self.get(name) if self.has(name) else self.need(name)

    def items(self) -> list["Payload"]:
        """Return the entries of a list."""
        if not isinstance(self.value, list):
            self.wrong("a list")
        entries = cast("list[Any]", self.value)
        return [Payload(url=self.url, path=f"{self.path}[{i}]", value=value) for i, value in enumerate(entries)]

    def rows(self, name: str) -> list["Payload"]:
        """Return the entries of the list in a field; empty if the field is missing or null."""
        field = self.get(name)
        return [] if field is None else field.items()

    def members(self) -> dict[str, "Payload"]:
        """Return the fields of an object by name."""
        return {name: self._at(name, value) for name, value in self._fields().items()}

    # The value as a type.

    def text(self) -> str:
        """Return the value, which must be a string."""
        return self.value if isinstance(self.value, str) else self.wrong("a text")

    def name(self) -> str:
        """Return an identifier as a string; some servers send it as a number."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int):
            self.wrong("an identifier")
        return str(self.value)

    def flag(self) -> bool:
        """Return the value, which must be true or false."""
        return self.value if isinstance(self.value, bool) else self.wrong("true or false")

    def number(self) -> float:
        """Return a finite number, which may also be written as a string."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | str):
            self.wrong("a number")
        try:
            value = float(self.value)
        except (ValueError, OverflowError):
            value = math.nan
        return value if math.isfinite(value) else self.wrong("a finite number")

    def probability(self) -> float:
        """Return a number from 0 to 1."""
        value = self.number()
        return value if 0.0 <= value <= 1.0 else self.wrong("a probability")

    def unix_time(self, *, per_second: int = 1) -> datetime:
        """Convert a Unix time to a datetime; it is in seconds or, with `per_second=1000`, in milliseconds."""
        seconds = self.number() / per_second
        return datetime.fromtimestamp(seconds, UTC) if abs(seconds) < FARTHEST_SECOND else self.wrong("a time")

    def time(self) -> datetime:
        """Parse an ISO timestamp with a time zone."""
        try:
            return instant(self.text())
        except ValueError:
            pass
        self.wrong("a time")

    def day(self) -> date:
        """Parse a calendar day such as 2025-10-26."""
        try:
            day = date.fromisoformat(self.text())
        except ValueError:
            day = None
        return day if day is not None and day.year < date.max.year else self.wrong("a date")

    def embedded(self) -> "Payload":
        """Parse a value that some servers send as JSON inside a string; return it as it is if it is not a string."""
        if not isinstance(self.value, str):
            return self
        try:
            return Payload(url=self.url, path=self.path, value=json.loads(self.value))
        except (ValueError, RecursionError):
            pass
        self.wrong("JSON inside a string")

    # The value of a field as a type.

    def address(self, name: str) -> str:
        """Return a web address, which must be present and not empty."""
        field = self.need(name)
        return field.text() or field.wrong("an address")

    def stated_text(self, name: str) -> str:
        """Return a text that must be present; empty if it is null."""
        present = self.present(name)
        return "" if present is None else present.text()

    def optional_text(self, name: str) -> str:
        """Return a text; empty if it is missing or null."""
        field = self.get(name)
        return "" if field is None else field.text()

    def words(self, name: str) -> str:
        """Return a text without surrounding whitespace; empty if it is missing or null."""
        return self.optional_text(name).strip()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list; empty if it is missing or null."""
        return tuple(item.text() for item in self.rows(name))

    def optional_time(self, name: str) -> datetime | None:
        """Parse an ISO timestamp; None if the field is missing, null or empty."""
        field = self.get(name)
        return None if field is None or field.value == "" else field.time()

    def is_set(self, name: str) -> bool:
        """Return a flag; False if it is missing or null."""
        field = self.get(name)
        return field is not None and field.flag()

    def amount(self, *names: str) -> float | None:
        """Return the number in the first of these fields that is set; None if there is none.

        A negative number also counts as None, because these amounts cannot be negative.
        """
        value = next((field for name in names if (field := self.get(name)) is not None), None)
        number = None if value is None else value.number()
        return None if number is None or number < 0 else number

    def count(self, name: str) -> int | None:
        """Return a whole number of people or things; None if it is missing, null or negative."""
        number = self.amount(name)
        return None if number is None else int(number)

    def _fields(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            self.wrong("an object")
        return cast("Mapping[str, Any]", self.value)

    def _at(self, name: str, value: Any) -> "Payload":
        return Payload(url=self.url, path=f"{self.path}.{name}" if self.path else name, value=value)


def readable(rows: Sequence[Row], read: Callable[[Row], Read]) -> tuple[list[Read], tuple[str, ...]]:
    """Return the rows that can be read, and a note with the number of the others and the problem of the first of them.

    If no row at all can be read, the response has an unknown structure, and the first problem is raised.

    >>> answer = Payload(url="", value=[{"p": 1}, {}, {"p": "x"}])
    >>> readable(answer.items(), lambda row: row.need("p").number())
    ([1.0], ('2 of 3 rows cannot be read: field [1].p is missing',))
    """
    reads: list[Read] = []
    problems: list[MalformedPayload] = []
    for row in rows:
        try:
            reads.append(read(row))
        except MalformedPayload as problem:
            problems.append(problem)
    if problems and not reads:
        raise problems[0]
    notes = (f"{len(problems)} of {len(rows)} rows cannot be read: {problems[0].problem}",) if problems else ()
    return reads, notes
