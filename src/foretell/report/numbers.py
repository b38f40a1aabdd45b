"""Format numbers and metric names for reports."""

import math

from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.metrics.metric import metric_text as metric_text
from foretell.report.markup import clean

CellValue = str | int | float | Interval | Comparison | None
"""Value of a table cell; None is shown as a dash."""
COLUMN_NAMES = {
    "due": "due date",
    "resolved_on": "resolution date",
    "horizon": "horizon (days)",
    "lead_time": "lead time (days)",
}


def column_name(column: str) -> str:
    """Return the name of a column in words.

    >>> column_name("due"), column_name("market_volume")
    ('due date', 'market volume')
    """
    return COLUMN_NAMES.get(column, column.replace("_", " "))


HEADINGS = {
    "BI": "Brier index",
    "Brier": "Brier score",
    "MS": "Metaculus baseline",
    "Log": "Log score",
    "ECE": "Calibration error",
    "vs ref": "Against the reference",
    "n": "Targets",
    "done": "Answered",
    "Δ": "Change",
    "Δ two-way": "Change, days resampled too",
    "targets": "Targets",
    "target": "Target",
    "price": "Market price",
    "outcome": "Outcome",
    "gained": "Gained",
    "ahead by": "Ahead by",
}
"""Full column headings for pages, by the short ones used in terminals."""


def column_heading(label: str) -> str:
    """Return the full heading of a column, for where there is room.

    >>> column_heading("BI"), column_heading("always 0.5")
    ('Brier index', 'always 0.5')
    """
    return HEADINGS.get(label, label)


def number(value: float, decimals: int) -> str:
    """Format a number with a true minus sign; None and NaN become a dash.

    >>> number(-1.25, 1), number(math.nan, 1), number(-0.01, 1)
    ('−1.2', '–', '0.0')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def signed(value: float, decimals: int) -> str:
    """Format a difference, always with its sign.

    >>> signed(2.04, 1), signed(-2.04, 1), signed(0.01, 1)
    ('+2.0', '−2.0', '0.0')
    """
    text = number(value, decimals)
    return f"+{text}" if value > 0 and any(c in "123456789∞" for c in text) else text


def bracket(low: float, high: float, decimals: int) -> str:
    """Format an interval; empty if there is none.

    >>> bracket(0.4, 3.9, 1)
    '[0.4, 3.9]'
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{number(low, decimals)}, {number(high, decimals)}]"


def estimate(interval: Interval | None, decimals: int) -> str:
    """Format an estimate with its interval, e.g. 73.3 [70.1, 76.4]."""
    if interval is None:
        return "–"
    return f"{number(interval.estimate, decimals)} {bracket(interval.low, interval.high, decimals)}".rstrip()


def difference(comparison: Comparison | None, decimals: int) -> str:
    """Format a difference with its stars, e.g. +2.1**."""
    return "–" if comparison is None else signed(comparison.diff, decimals) + comparison.stars


def value_text(value: CellValue, decimals: int, *, brief: bool = False) -> str:
    """Format a cell value; `brief` leaves intervals out.

    >>> value_text(Interval(estimate=71.25, low=69.0, high=73.5, se=1.1, n_clusters=40, draws=100), 1)
    '71.2 [69.0, 73.5]'
    >>> value_text(None, 1), value_text(1234, 0), value_text("past only", 1)
    ('–', '1,234', 'past only')
    """
    if isinstance(value, Interval):
        return number(value.estimate, decimals) if brief else estimate(value, decimals)
    if isinstance(value, Comparison):
        ends = "" if brief else bracket(value.low, value.high, decimals)
        return f"{difference(value, decimals)} {ends}".rstrip()
    if isinstance(value, float):
        return number(value, decimals)
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else clean(value)


def percent(share: float) -> str:
    """Format a share as a whole percentage that is never rounded up to 100 % or down to 0 %.

    >>> percent(1.0), percent(0.998), percent(0.001), percent(math.nan)
    ('100 %', '>99 %', '<1 %', '–')
    """
    if math.isnan(share):
        return "–"
    if 0.99 < share < 1:
        return ">99 %"
    return "<1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def dollars(amount: float | None) -> str:
    """Format an amount of money to the cent; below a cent, to one significant digit.

    >>> dollars(0.0), dollars(0.00421), dollars(0.063), dollars(1234.5), dollars(None)
    ('$0', '$0.004', '$0.06', '$1,234.50', '–')
    """
    if amount is None or math.isnan(amount):
        return "–"
    places = 2 if abs(amount) >= 0.0095 or not amount else -math.floor(math.log10(abs(amount)))
    return f"${amount:,.{places}f}" if amount else "$0"


def probability_text(p: float) -> str:
    """Format a probability in whole percent, with one decimal near 0 and 1.

    >>> probability_text(0.234), probability_text(0.023), probability_text(1.0)
    ('23 %', '2.3 %', '100 %')
    """
    return f"{100 * p:.{0 if 0.05 <= p <= 0.95 or p in (0, 1) else 1}f} %"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun in the singular or plural.

    >>> plural(1, "question"), plural(1200, "question")
    ('1 question', '1,200 questions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
