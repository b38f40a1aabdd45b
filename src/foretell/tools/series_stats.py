"""How a series has moved: its past changes over a span, and how often they would have passed a threshold."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from foretell.data.series.series import Series
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.tools.series import SeriesTool
from foretell.tools.tool import SERIES_STATS, ToolFailed, ToolMaterial, optional_number

CHANGE_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels of the quantiles of past changes."""
FEWEST = 3
"""Smallest number of past spans from which anything is counted."""
LONGEST_SPAN = 3_660


@frozen(eq=False)
class PastChanges:
    """The changes of a series over all past spans of some days."""

    days: int
    changes: Floats
    """Change from the first to the last day of each span."""
    rises: Floats
    """Largest rise within each span, from its first day."""
    falls: Floats
    """Largest fall within each span, from its first day, as a number of at most 0."""

    def __str__(self) -> str:
        shown = ", ".join(
            f"{level:.0%} below {value:+.4g}"
            for level, value in zip(CHANGE_LEVELS, np.quantile(self.changes, CHANGE_LEVELS), strict=True)
        )
        return f"Past changes over {self.days} days, from {len(self.changes)} starting days: {shown}."

    def passing(self, distance: float) -> str:
        """Return in words how often a change as large as the distance to a threshold came about."""
        up = distance >= 0
        at_end = self.changes >= distance if up else self.changes <= distance
        within = self.rises >= distance if up else self.falls <= distance
        return (
            f"A change of {distance:+.4g} or more, as the threshold needs, was there at the end of "
            f"{np.mean(at_end):.1%} of these spans, and at some time within {np.mean(within):.1%} of them."
        )


def past_changes(series: Series, span: int) -> PastChanges | None:
    """Return the changes over all past spans of so many days; None if there are too few.

    >>> days = np.arange("2026-01-01", "2026-01-11", dtype="M8[D]")
    >>> print(past_changes(Series(id="x", days=days, values=np.arange(10.0)), 2).passing(2))
    A change of +2 or more, as the threshold needs, was there at the end of 100.0% of these spans, and at some time
    within 100.0% of them.
    """
    days, values = series.days, series.values
    if span < 1 or len(values) < FEWEST:
        return None
    ends = days + np.timedelta64(span, "D")
    starts = np.flatnonzero(ends <= days[-1])
    if len(starts) < FEWEST:
        return None
    last = np.searchsorted(days, ends[starts], side="right") - 1
    spans = [values[start : end + 1] - values[start] for start, end in zip(starts, last, strict=True)]
    return PastChanges(
        days=span,
        changes=values[last] - values[starts],
        rises=np.array([moved.max() for moved in spans]),
        falls=np.array([moved.min() for moved in spans]),
    )


STATS_SPEC = ToolSpec(
    name=SERIES_STATS,
    description=(
        "Get the last value of the series that decides this question, the quantiles of its past changes over a span, "
        "and how often it passed a threshold."
    ),
    parameters={
        "type": "object",
        "properties": {
            "days": {"type": "integer", "minimum": 1, "description": "Length of the span."},
            "threshold": {"type": "number"},
        },
        "required": ["days"],
        "additionalProperties": False,
    },
)


@frozen
class SeriesStats(SeriesTool):
    """Describes the series of one question by a few numbers."""

    spec = STATS_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return one item with its last value and counts."""
        ref = self.ref
        days, threshold = optional_number(arguments, "days"), optional_number(arguments, "threshold")
        if days is None or not 1 <= days <= LONGEST_SPAN:
            raise ToolFailed(f"The argument 'days' must be a number from 1 to {LONGEST_SPAN:,}.")
        known = await self.known(as_of)
        threshold = ref.threshold if threshold is None else threshold
        # The dated rows show the leakage filter which days the numbers cover.
        rows = dict.fromkeys(f"{known.days[n]}, {known.values[n]:.10g}" for n in (0, -1))
        lines = ["first and last observation:", *rows, *stats_lines(known, int(days), threshold)]
        return self.material(f"Statistics of the series over {int(days)} days:", lines)


def stats_lines(series: Series, span: int, threshold: float | None) -> Iterator[str]:
    """Yield sentences on the past changes of a series, and on a threshold if there is one."""
    yield f"{len(series)} observations."
    moved = past_changes(series, span)
    yield f"There are too few observations for spans of {span} days." if moved is None else str(moved)
    if threshold is None:
        return
    last, above = float(series.values[-1]), series.values > threshold
    yield f"{np.mean(above):.1%} of all observations are above {threshold:g}."
    crossed = np.flatnonzero(above[1:] != above[:-1]) + 1
    if len(crossed):
        yield f"It passed {threshold:g} {len(crossed)} times, the last time on {series.days[crossed[-1]]}."
    else:
        yield f"It never passed {threshold:g}."
    if moved is not None and last != threshold:
        yield moved.passing(threshold - last)
