"""Format numbers and metric names for reports."""

import math

from foretell.metrics.bootstrap import Interval
from foretell.metrics.format import bracket as bracket
from foretell.metrics.format import number as number
from foretell.metrics.format import plural as plural
from foretell.metrics.format import signed as signed
from foretell.metrics.metric import metric_text as metric_text
from foretell.report.markup import clean
from foretell.scoring.scoreboard import difference_text as difference_text
from foretell.scoring.verdict import Verdict

CellValue = str | int | float | Interval | Verdict | None
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
    "Baseline": "Metaculus baseline",
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


def estimate(interval: Interval | None, decimals: int) -> str:
    """Format an estimate with its interval, e.g. 73.3 [70.1, 76.4]."""
    if interval is None:
        return "–"
    return f"{number(interval.estimate, decimals)} {bracket(interval.low, interval.high, decimals)}".rstrip()


def value_text(value: CellValue, decimals: int, *, brief: bool = False, gain: bool = False) -> str:
    """Format a cell value; `brief` leaves intervals out, `gain` shows differences so that above 0 is better.

    >>> value_text(Interval(estimate=71.25, low=69.0, high=73.5, se=1.1, n_clusters=40, draws=100), 1)
    '71.2 [69.0, 73.5]'
    >>> value_text(None, 1), value_text(1234, 0), value_text("past only", 1)
    ('–', '1,234', 'past only')
    """
    if isinstance(value, Interval):
        return number(value.estimate, decimals) if brief else estimate(value, decimals)
    if isinstance(value, Verdict):
        ends = "" if brief else interval_ends(value, decimals, gain=gain)
        return f"{difference_text(value, decimals, gain=gain)} {ends}".rstrip()
    if isinstance(value, float):
        return number(value, decimals)
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else clean(value)


def interval_ends(value: CellValue, decimals: int, *, gain: bool = False) -> str:
    """Format the interval of a cell in brackets; empty if it has none."""
    if isinstance(value, Verdict):
        value = value.gain_interval if gain else value.interval
    return bracket(value.low, value.high, decimals) if isinstance(value, Interval) else ""


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


def duration(seconds: float | None) -> str:
    """Format a number of seconds as a duration.

    >>> duration(42), duration(200), duration(8000), duration(None)
    ('42 s', '3 min', '2 h 13 min', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def probability_text(p: float) -> str:
    """Format a probability in whole percent, with one decimal near 0 and 1.

    >>> probability_text(0.234), probability_text(0.023), probability_text(1.0)
    ('23 %', '2.3 %', '100 %')
    """
    return f"{100 * p:.{0 if 0.05 <= p <= 0.95 or p in (0, 1) else 1}f} %"
