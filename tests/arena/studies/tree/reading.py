"""Numbers out of the cells of a study's tables."""

from foretell.arena.study import Value
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison


def num(value: Value) -> float:
    """What a cell says, without its interval."""
    if isinstance(value, Interval):
        return value.estimate
    if isinstance(value, Comparison):
        return value.diff
    assert isinstance(value, int | float), value
    return float(value)
