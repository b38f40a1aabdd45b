"""Formatting of numbers, money, times and names on pages."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from foretell.report.markup import excerpt, markdown, web_address
from foretell.report.numbers import bracket, dollars, duration, signed


def percent(p: float | None) -> str:
    """Format a probability, with more digits near 0 and 1 because 0 % and 0.4 % differ.

    >>> percent(0.234), percent(0.004), percent(0.9995), percent(None)
    ('23 %', '0.4 %', '99.95 %', '–')
    """
    if p is None:
        return "–"
    near = min(p, 1 - p)
    decimals = 0 if near >= 0.0495 or near == 0 else 1 if near >= 0.00095 else 2
    return f"{100 * p:.{decimals}f} %"


def count(number: int) -> str:
    """Format a whole number with thousands separators.

    >>> count(12345)
    '12,345'
    """
    return f"{number:,}"


def when(moment: str | datetime | None, *, day: bool = False) -> str:
    """Format a time to the minute in UTC; at midnight, or if `day` is set, only the date is shown.

    >>> when("2026-07-01T23:59:59.999999+00:00"), when("2026-07-01T00:00:00+00:00"), when(None)
    ('1 Jul 2026, 23:59 UTC', '1 Jul 2026', '–')
    """
    if not moment:
        return "–"
    try:
        at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return str(moment)
    at = at.astimezone(UTC) if at.tzinfo else at
    date = f"{at.day} {at:%b %Y}"
    return date if day or at.hour == at.minute == at.second == 0 else f"{date}, {at:%H:%M} UTC"


def some(number: int, one: str, many: str = "") -> str:
    """Format a count with its noun in the singular or plural.

    >>> some(1, "trial"), some(3, "trial"), some(0, "reply", "replies")
    ('1 trial', '3 trials', '0 replies')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def span(found: Mapping[str, float]) -> str:
    """Format the interval of an estimate given as plain data.

    >>> span({"low": 61.5, "high": 71.7})
    '[61.5, 71.7]'
    """
    return bracket(found["low"], found["high"], 1)


def points(value: float) -> str:
    """Format a difference in points, always with its sign.

    >>> points(0.42), points(-3.0)
    ('+0.4', '−3.0')
    """
    return signed(value, 1)


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
    return words.get(field) or (part or field).replace("_", " ").capitalize()


FILTERS: Mapping[str, Callable[..., Any]] = {
    "percent": percent,
    "dollars": dollars,
    "count": count,
    "when": when,
    "lasting": duration,
    "some": some,
    "span": span,
    "signed": points,
    "markdown": markdown,
    "excerpt": excerpt,
    "web": web_address,
    "setting_label": setting_label,
}
