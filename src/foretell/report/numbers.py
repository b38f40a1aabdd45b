"""Format the cells and headings of tables."""

from collections.abc import Mapping
from typing import Literal

from foretell.metrics.bootstrap import Interval
from foretell.number_text import bracket, dollars, number, percent, points, signed_decimals
from foretell.report.markup import clean
from foretell.scoring.scoreboard import difference_text
from foretell.scoring.verdict import Finding, Verdict

CellValue = str | int | float | Interval | Verdict | None
"""Value of a table cell; None is shown as a dash."""
CellUnit = Literal["", "percent", "points", "dollars"]
"""What the numbers of a column are: shares as percentages, differences of shares in points, or amounts of money."""
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
    "market − entry": "Against the market",
    "Return": "Return per $1",
    "events": "Events",
    "answered": "Completion",
    "$": "Cost per forecast",
    "s": "Seconds per forecast",
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
    return f"{number(interval.estimate, _places(interval, decimals))} {interval_ends(interval, decimals)}".rstrip()


def _places(value: Interval | Verdict, decimals: int) -> int:
    """Return the number of decimals that shows the sign of a value whose interval excludes zero."""
    if isinstance(value, Verdict):
        return value.places(decimals)
    return signed_decimals(lambda _: value.estimate, value.low, value.high, decimals)


def value_text(value: CellValue, decimals: int, *, brief: bool = False, gain: bool = False, unit: CellUnit = "") -> str:
    """Format a cell value; `brief` leaves intervals out, `gain` shows differences so that above 0 is better.

    >>> value_text(Interval(estimate=71.25, low=69.0, high=73.5, se=1.1, n_clusters=40, draws=100), 1)
    '71.2 [69.0, 73.5]'
    >>> value_text(None, 1), value_text(1234, 0), value_text("past only", 1), value_text(0.25, 1, unit="percent")
    ('–', '1,234', 'past only', '25 %')
    >>> value_text(Interval(estimate=0.057, low=0.041, high=0.08, se=0.1, n_clusters=9, draws=9), 3, unit="points")
    '5.7 pts [4.1, 8.0]'
    """
    if isinstance(value, Interval | Verdict):
        ends = "" if brief else interval_ends(value, decimals, gain=gain, unit=unit)
        if isinstance(value, Interval):
            return f"{_with_unit(value.estimate, _places(value, decimals), unit)} {ends}".rstrip()
        return f"{difference_text(value, decimals, gain=gain, points=unit == 'points')} {ends}".rstrip()
    if isinstance(value, float):
        return _with_unit(value, decimals, unit)
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else clean(value)


def _with_unit(value: float, decimals: int, unit: CellUnit) -> str:
    match unit:
        case "percent":
            return percent(value)
        case "points":
            return points(value)
        case "dollars":
            return dollars(value)
        case _:
            return number(value, decimals)


def interval_ends(value: CellValue, decimals: int, *, gain: bool = False, unit: CellUnit = "") -> str:
    """Format the interval of a cell in brackets; empty if it has none."""
    if not isinstance(value, Interval | Verdict):
        return ""
    decimals = _places(value, decimals)
    if isinstance(value, Verdict):
        value = value.gain_interval if gain else value.interval
    if unit in ("percent", "points"):
        return bracket(100 * value.low, 100 * value.high, int(unit == "points"))
    return bracket(value.low, value.high, decimals)


def half_text(behind: Mapping[str, Finding]) -> str:
    """Say who scored below always 0.5, and whether that is more than chance.

    >>> half_text({"knn": "worse", "prior": "could be chance"})
    'Below always 0.5: knn (worse), prior (could be chance).'
    """
    return f"Below always 0.5: {', '.join(f'{clean(name)} ({says})' for name, says in behind.items())}."
