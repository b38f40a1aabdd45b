"""Formatting of numbers, money, times and names on pages."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from foretell.number_text import (
    bracket,
    brief_percent,
    dollars,
    duration,
    elapsed,
    exact_duration,
    number,
    percent,
    percent_range,
    plural,
    signed,
)
from foretell.report.markup import capital, excerpt, markdown, sentence, web_address


def when(time: str | datetime | None, *, day: bool = False) -> str:
    """Format a time to the minute in UTC; at midnight, or if `day` is set, only the date is shown.

    >>> when("2026-07-01T23:59:59.999999+00:00"), when("2026-07-01T00:00:00+00:00"), when(None)
    ('1 Jul 2026, 23:59 UTC', '1 Jul 2026', '–')
    """
    if not time:
        return "–"
    try:
        at = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        return str(time)
    at = at.astimezone(UTC) if at.tzinfo else at
    date = f"{at.day} {at:%b %Y}"
    return date if day or at.hour == at.minute == at.second == 0 else f"{date}, {at:%H:%M} UTC"


def clock(seconds: float) -> str:
    """Format a time in seconds since 1970 as a time of day in UTC.

    >>> clock(43_390.7)
    '12:03:10 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S} UTC"


def instant(seconds: float) -> str:
    """Format a time in seconds since 1970 for machines.

    >>> instant(43_390.7)
    '1970-01-01T12:03:10.700+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def span(interval: Mapping[str, float]) -> str:
    """Format the interval of an estimate given as plain data.

    >>> span({"low": 61.5, "high": 71.7})
    '[61.5, 71.7]'
    """
    return bracket(interval["low"], interval["high"], 1)


def range_text(ends: Sequence[float]) -> str:
    """Format the two ends of a range of probabilities.

    >>> range_text([0.12, 0.28])
    '12–28 %'
    """
    low, high = ends
    return percent_range(low, high)


def setting_label(name: str) -> str:
    """Return a readable label for a run setting given by its dotted name.

    >>> [setting_label(name) for name in ("models.agent", "budget.run", "prices.openai:gpt-5", "options.steps")]
    ['Model: agent', 'Spend at most, dollars', 'Price of openai:gpt-5, read/written per million tokens', 'Steps']
    """
    field, _, part = name.partition(".")
    words = {
        "models": f"Model: {part}",
        "prices": f"Price of {part}, read/written per million tokens",
        "budget": "Spend at most, dollars" if part == "run" else "Spend at most on a question, dollars",
        "combine": "Combine trials by",
        "search": "Search with",
    }
    return words.get(field) or capital((part or field).replace("_", " "))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "percent": percent,
    "brief": brief_percent,
    "range": range_text,
    "number": number,
    "dollars": dollars,
    "price": dollars,
    "count": "{:,}".format,
    "when": when,
    "clock": clock,
    "instant": instant,
    "lasting": duration,
    "elapsed": elapsed,
    "took": exact_duration,
    "some": plural,
    "span": span,
    "signed": partial(signed, decimals=1),
    "capital": capital,
    "markdown": markdown,
    "excerpt": excerpt,
    "sentence": sentence,
    "web": web_address,
    "setting_label": setting_label,
}
