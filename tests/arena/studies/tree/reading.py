"""Numbers out of the cells of a study's tables."""

from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.report.study import CellValue


def num(value: CellValue) -> float:
    """What a cell says, without its interval."""
    if isinstance(value, Interval):
        return value.estimate
    if isinstance(value, Comparison):
        return value.diff
    assert isinstance(value, int | float), value
    return float(value)
