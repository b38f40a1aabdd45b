"""Numbers and metric names as every report writes them."""

import math

from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.metrics.metric import metric_text as metric_text

COLUMN_NAMES = {
    "due": "due date",
    "resolved_on": "resolution date",
    "horizon": "horizon (days)",
    "lead_time": "lead time (days)",
}


def column_name(column: str) -> str:
    """A column of the table in words.

    >>> column_name("due"), column_name("market_volume")
    ('due date', 'market volume')
    """
    return COLUMN_NAMES.get(column, column.replace("_", " "))


def number(value: float, decimals: int) -> str:
    """A number with a true minus sign, a dash where there is none.

    >>> number(-1.25, 1), number(math.nan, 1), number(-0.01, 1)
    ('−1.2', '–', '0.0')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    told = f"{value:.{decimals}f}"
    return told.lstrip("-") if float(told) == 0 else told.replace("-", "−")


def signed(value: float, decimals: int) -> str:
    """A difference, its sign always shown.

    >>> signed(2.04, 1), signed(-2.04, 1), signed(0.01, 1)
    ('+2.0', '−2.0', '0.0')
    """
    told = number(value, decimals)
    return f"+{told}" if value > 0 and any(c in "123456789∞" for c in told) else told


def bracket(low: float, high: float, decimals: int) -> str:
    """An interval; empty when there is none.

    >>> bracket(0.4, 3.9, 1)
    '[0.4, 3.9]'
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{number(low, decimals)}, {number(high, decimals)}]"


def estimate(interval: Interval | None, decimals: int) -> str:
    """Estimate and interval, e.g. 73.3 [70.1, 76.4]."""
    if interval is None:
        return "–"
    told = bracket(interval.low, interval.high, decimals)
    return f"{number(interval.estimate, decimals)} {told}".rstrip()


def difference(comparison: Comparison | None, decimals: int) -> str:
    """Difference with stars, e.g. +2.1**."""
    return "–" if comparison is None else signed(comparison.diff, decimals) + comparison.stars


def percent(share: float) -> str:
    """A share as a whole percentage that is never rounded up to 100 % or down to 0 %.

    >>> percent(1.0), percent(0.998), percent(0.001), percent(math.nan)
    ('100 %', '>99 %', '<1 %', '–')
    """
    if math.isnan(share):
        return "–"
    if 0.99 < share < 1:
        return ">99 %"
    return "<1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "question"), plural(1200, "question")
    ('1 question', '1,200 questions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
