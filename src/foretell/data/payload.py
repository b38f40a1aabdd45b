"""JSON answers of other people's servers, read field by field: what we need must be there, the rest is ignored."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, NoReturn, cast

from foretell.data.http import AsyncHttpClient, HttpResponse, SourceError

Strings = Mapping[str, str]
FARTHEST_SECOND = 3.0e10
"""Times beyond the year 2900 are mistakes, and reckoning with them would overflow."""


class MalformedPayload(SourceError):
    """The server answered, but not in the shape we rely on. Names the field, and never quotes what stood there."""


@dataclass(frozen=True, kw_only=True)
class Payload:
    """One value inside an answer, and the way to it.

    >>> answer = Payload(url="https://example.org/", value={"rows": [{"p": "0.5"}, {"p": None}]})
    >>> [row.need("p").number() for row in answer.need("rows").items()[:1]]
    [0.5]
    >>> answer.need("rows").items()[1].need("p")
    Traceback (most recent call last):
    ...
    foretell.data.payload.MalformedPayload: https://example.org/: field rows[1].p is missing
    """

    url: str
    value: Any
    path: str = ""

    @classmethod
    def of(cls, answer: HttpResponse, url: str) -> "Payload":
        """The body of an answer."""
        shown = answer.hops[-1] if answer.hops else url
        try:
            return cls(url=shown, value=json.loads(answer.body))
        except ValueError:
            # The decoder's own message quotes the text; it must not travel along as the cause.
            pass
        raise MalformedPayload("the answer is not JSON", url=shown)

    def wrong(self, expected: str) -> NoReturn:
        """Complain about this value."""
        raise MalformedPayload(f"field {self.path or '(the whole answer)'} is not {expected}", url=self.url)

    def has(self, name: str) -> bool:
        """Whether the object has the field, even if it holds null."""
        return name in self._fields()

    def present(self, name: str) -> "Payload | None":
        """A field that must be there, though it may hold null."""
        return self.get(name) if self.has(name) else self.need(name)

    def get(self, name: str) -> "Payload | None":
        """A field that may be missing or null."""
        value = self._fields().get(name)
        return None if value is None else self._at(f".{name}" if self.path else name, value)

    def need(self, name: str) -> "Payload":
        """A field that must be there."""
        found = self.get(name)
        if found is None:
            self._at(f".{name}" if self.path else name, None).missing()
        return found

    def missing(self) -> NoReturn:
        """Complain that this field is not there."""
        raise MalformedPayload(f"field {self.path} is missing", url=self.url)

    def items(self) -> list["Payload"]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            self.wrong("a list")
        return [self._at(f"[{i}]", value) for i, value in enumerate(cast("list[Any]", self.value))]

    def members(self) -> list["Payload"]:
        """The values of an object whose keys do not matter."""
        return [self._at(f".{name}" if self.path else name, value) for name, value in self._fields().items()]

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            self.wrong("a text")
        return self.value

    def name(self) -> str:
        """An identifier, which some servers send as a number."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int):
            self.wrong("an identifier")
        return str(self.value)

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

    def _fields(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            self.wrong("an object")
        return cast("Mapping[str, Any]", self.value)

    def _at(self, step: str, value: Any) -> "Payload":
        return Payload(url=self.url, path=f"{self.path}{step}", value=value)


async def fetch_payload(
    http: AsyncHttpClient, url: str, *, params: Strings | None = None, headers: Strings | None = None
) -> Payload:
    """The JSON at an address."""
    return Payload.of(await http.get(url, params=params, headers=headers), http.redact(url))
