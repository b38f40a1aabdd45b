"""Shapes of field that the catalogues of markets share."""

from collections.abc import Iterable
from datetime import datetime

from foretell.questions.clock import instant
from foretell.sources.payload import Payload


def iso(field: Payload) -> datetime:
    """A moment written out, with a time zone."""
    try:
        return instant(field.text())
    except ValueError:
        pass
    field.wrong("a time")


def moment(row: Payload, name: str) -> datetime | None:
    """A moment written out in a field that may be missing, null or empty."""
    found = row.get(name)
    return None if found is None or found.value == "" else iso(found)


def flag(field: Payload) -> bool:
    """True or false."""
    return field.value if isinstance(field.value, bool) else field.wrong("true or false")


def is_set(row: Payload, name: str) -> bool:
    """A flag that is off where it is missing."""
    found = row.get(name)
    return found is not None and flag(found)


def text(row: Payload, name: str) -> str:
    """A text that must be there; an explicit null is an empty one."""
    found = row.present(name)
    return "" if found is None else found.text().strip()


def words(row: Payload, name: str) -> str:
    """A text, empty where it is missing."""
    found = row.get(name)
    return "" if found is None else found.text().strip()


def amount(row: Payload, *names: str) -> float | None:
    """The number in the first of these fields that holds one. What cannot be negative and is, was not told."""
    found = next((told for name in names if (told := row.get(name)) is not None), None)
    number = None if found is None else found.number()
    return None if number is None or number < 0 else number


def total(amounts: Iterable[float | None]) -> float | None:
    """The sum of what was told; None where nothing was."""
    told = [one for one in amounts if one is not None]
    return sum(told) if told else None
