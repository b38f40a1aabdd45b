"""Reading a JSON answer field by field, so that a change of format is told by name and not met as a KeyError."""

import json
from typing import Any

from foretell.sources.http import Answer, SourceError


class Fields:
    """One JSON object of an answer, with the place where it stands.

    >>> Fields({"hits": [{"link": 3}]}, "https://example.org/").objects("hits")[0].text("link")
    Traceback (most recent call last):
    ...
    foretell.sources.http.SourceError: https://example.org/: field hits[0].link holds a int where text was expected
    """

    def __init__(self, data: Any, url: str, place: str = "") -> None:
        if not isinstance(data, dict):
            raise SourceError(f"{place or 'the answer'} is not a JSON object", url=url)
        self._data: dict[str, Any] = data
        self._url = url
        self._place = place

    def __contains__(self, name: str) -> bool:
        return self._data.get(name) is not None

    def inner(self, name: str) -> "Fields":
        """The object in this field."""
        return Fields(self._need(name), self._url, self._path(name))

    def objects(self, name: str) -> list["Fields"]:
        """The list of objects in this field."""
        found = self._need(name)
        if not isinstance(found, list):
            raise self._wrong(name, found, "a list")
        return [Fields(one, self._url, f"{self._path(name)}[{i}]") for i, one in enumerate(found)]

    def text(self, name: str) -> str:
        """The text in this field, which must be there; an explicit null is an empty text."""
        if name not in self._data:
            raise self.problem(name, "is missing")
        return self.maybe(name) or ""

    def address(self, name: str) -> str:
        """The web address in this field, which must be there and not empty."""
        found = self.text(name)
        if not found:
            raise self.problem(name, "is empty")
        return found

    def maybe(self, name: str) -> str | None:
        """The text in this field, or None where there is none."""
        found = self._data.get(name)
        if found is not None and not isinstance(found, str):
            raise self._wrong(name, found, "text")
        return found

    def texts(self, name: str) -> list[str]:
        """The texts in this field, none where it is absent."""
        found = self._data.get(name) or []
        if not isinstance(found, list):
            raise self._wrong(name, found, "a list of texts")
        return [one for one in found if isinstance(one, str)]

    def problem(self, name: str, what: str) -> SourceError:
        """An error that names the field."""
        return SourceError(f"field {self._path(name)} {what}", url=self._url)

    def _need(self, name: str) -> Any:
        if name not in self._data:
            raise self.problem(name, "is missing")
        return self._data[name]

    def _path(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def _wrong(self, name: str, found: Any, expected: str) -> SourceError:
        return self.problem(name, f"holds a {type(found).__name__} where {expected} was expected")


def read_fields(answer: Answer) -> Fields:
    """The JSON object of an answer. Its text is not quoted in errors, because servers echo what they were sent."""
    url = answer.hops[-1]
    try:
        data = json.loads(answer.body)
    except ValueError:
        kind = answer.headers.get("content-type", "no stated type")
        raise SourceError(f"the answer is not JSON ({kind}, {len(answer.body):,} bytes)", url=url) from None
    return Fields(data, url)
