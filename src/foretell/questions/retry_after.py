"""Reads how long a server asks clients to wait."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asked us to wait: in milliseconds, in seconds, or as a date by its own clock.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after-ms": "250"}), retry_after({})
    (1.5, 0.25, None)
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = read_seconds(headers.get(name, ""))
        if seconds is not None:
            return seconds * scale
    try:
        until = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    try:
        now = parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        now = datetime.now(UTC)
    return max(0.0, (_aware(until) - _aware(now)).total_seconds())


def read_seconds(text: str) -> float | None:
    """A time that can be waited; None where the text is not a number.

    >>> read_seconds("-1"), read_seconds("inf"), read_seconds("soon")
    (0.0, None, None)
    """
    try:
        seconds = float(text)
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
