"""The past of a series in equally spaced steps, and the origins at which its models are tested."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from foretell.data.series.series import Days, Values
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints

DAYS_PER_YEAR = 365.2425
WEEK = 7
SLOWEST_DAILY_GAP = 8.0
"""Largest median gap, in days, at which a series is laid out by calendar day rather than by observation."""
WEEKLY_GAP = 5.0
"""Median gap, in days, from which every observation counts. In a daily series, a missing day changes little."""
STALE_AFTER = 10.0
LONGEST_DAYS = 25 * 365
"""Maximum number of days of a daily record: older days cost time and describe a different climate or market."""


@frozen(kw_only=False)
class SeriesQuery:
    """A question about a series: whether it is above or below a threshold on some days."""

    days: Days
    values: Values
    due: np.datetime64
    resolution: Days
    threshold: float | None = None
    """None means the last value on or before the due day."""

    @cached_property
    def known(self) -> int:
        """Number of observations dated on or before the due day."""
        known = int(np.searchsorted(self.days, np.asarray(self.due, "M8[D]"), side="right"))
        if known == 0:
            raise ValueError("days: the series has no value on or before the due day")
        return known

    @property
    def threshold_value(self) -> float:
        """The threshold as a number."""
        return float(self.values[self.known - 1]) if self.threshold is None else self.threshold


@frozen
class SeriesChances:
    """P(y > v) and P(y < v) per resolution day; they sum to 1 − P(y = v)."""

    above: Floats
    below: Floats

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> "SeriesChances":
        """Build it from pairs (above, below)."""
        table: Floats = np.asarray(pairs, np.float64).reshape(len(pairs), 2)
        return cls(above=table[:, 0], below=table[:, 1])

    @property
    def atom(self) -> Floats:
        """P(y = v), which matters because series that move in steps often stay where they are."""
        return np.clip(1.0 - self.above - self.below, 0.0, 1.0)


@frozen
class SeriesHistory:
    """A series up to its due day, on an index of equal steps.

    A daily, business-daily or weekly series is laid out by calendar day, and each day has the last value on or before
    it, as in the questions. Slower series are laid out by observation. Origins are the past steps at which the same
    question could have been asked, `stride` steps apart; the last one is now.
    """

    values: Values
    day: Floats
    """The date of each step (for a slow series: of each observation), in days since 1970."""
    fresh: Bools
    """Whether the value of each step is recent, rather than carried across a gap in the record."""
    stride: int
    due: int
    """The due day, in days since 1970."""
    slow: bool
    months: int
    """Months between observations of a slow series that follows the calendar, else 0."""
    gap: float
    wait: int = 0
    """Steps from the last known value to the reference value, which may be published only after the due day."""

    @cached_property
    def per_year(self) -> float:
        """Number of steps in a year."""
        return DAYS_PER_YEAR / self.gap if self.slow else DAYS_PER_YEAR

    @cached_property
    def origins(self) -> Ints:
        """Indices of the origins' steps, ascending; the last one is now."""
        last = len(self.values) - 1
        return np.arange(last % self.stride, last + 1, self.stride, dtype=np.int64)

    @property
    def last(self) -> float:
        """The reference value: the last one on or before the due day."""
        return float(self.values[-1])

    def steps(self, query: SeriesQuery) -> Ints:
        """Number of steps from now to each resolution day.

        With a fixed threshold, the value moves from the last observation on. Otherwise what counts is the change
        between the due day and the resolution day, however old the last observation is.
        """
        resolution, from_last = query.resolution.astype("M8[D]").astype(np.int64), query.threshold is not None
        if not self.slow:
            late = max(0, int(self.due - self.day[-1]) - int(STALE_AFTER)) if from_last else 0
            return np.where(resolution > self.due, resolution - self.due + late, 0)
        passed = 0 if from_last else self.unseen
        return np.where(resolution > self.due, np.maximum(self._observations_until(resolution) - passed, 0), 0)

    @property
    def unseen(self) -> int:
        """Number of observations of a slow series that are dated on or before the due day but not yet published."""
        return max(0, int(self._observations_until(np.array([self.due]))[0]))

    def early_chance(self, resolution: Days) -> Floats:
        """Return the chance of a new observation by each day although none is due, from past intervals.

        It is zero for a series that is always dated on the same day of the month.
        """
        dates = self.day.astype(np.int64).astype("M8[D]")
        day_of_month = dates - dates.astype("M8[M]").astype("M8[D]")
        if not self.slow or (self.months and len(np.unique(day_of_month)) == 1):
            return np.zeros(len(resolution))
        apart, waited = np.diff(self.day), self.due - self.day[-1]
        apart = apart[apart > waited]
        until = resolution.astype("M8[D]").astype(np.int64) - self.day[-1]
        return (apart[None, :] <= until[:, None]).sum(axis=1) / (len(apart) + 1)

    def _observations_until(self, day: Ints) -> Ints:
        """Number of observations after the last one that are expected on or before each day."""
        if not self.months:
            return np.floor((day - self.day[-1]) / self.gap + 1e-9).astype(np.int64)
        last = np.datetime64(int(self.day[-1]), "D")
        first = last.astype("M8[M]")
        within = int((last - first.astype("M8[D]")).astype(int))
        days = day.astype("M8[D]")
        month = days.astype("M8[M]")
        # A series dated on the 31st is dated on the last day of a shorter month.
        length = ((month + np.timedelta64(1, "M")).astype("M8[D]") - month.astype("M8[D]")).astype(np.int64)
        reached = (days - month.astype("M8[D]")).astype(np.int64) >= np.minimum(within, length - 1)
        elapsed = (month - first).astype(np.int64) - np.where(reached, 0, 1)
        return np.maximum(elapsed, 0) // self.months


def history(query: SeriesQuery) -> SeriesHistory:
    """Lay out what is known of a series on its due day, dropping later observations."""
    number, values = query.days[: query.known].astype("M8[D]").astype(np.int64), query.values[: query.known]
    today = int(np.asarray(query.due, "M8[D]").astype(np.int64))
    gap = float(np.median(np.diff(number))) if len(number) > 1 else 1.0
    if gap > SLOWEST_DAILY_GAP:
        months = round(gap / (DAYS_PER_YEAR / 12)) if gap >= 28 else 0
        slow = SeriesHistory(
            values=values,
            day=number.astype(np.float64),
            fresh=np.ones(len(number), dtype=np.bool_),
            stride=1,
            due=today,
            slow=True,
            months=months,
            gap=months * DAYS_PER_YEAR / 12 if months else gap,
        )
        return slow if query.threshold is not None else replace(slow, wait=slow.unseen)
    # A weekly value that is due but not published yet is still the reference: both ends of the change are unknown.
    unseen = int((today - number[-1]) // gap) if gap >= WEEKLY_GAP and query.threshold is None else 0
    wait = unseen * round(gap)
    day = np.arange(number[0], max(int(number[-1]), today - wait) + 1, dtype=np.int64)
    index = np.searchsorted(number, day, side="right") - 1
    age = day - number[index]
    # A due day far beyond the record would add only carried values: stop where the last value is still fresh.
    keep = int(np.searchsorted(day, number[-1] + int(STALE_AFTER), side="right"))
    rows = slice(max(0, keep - LONGEST_DAYS), keep)
    return SeriesHistory(
        values=values[index[rows]],
        day=day[rows].astype(np.float64),
        fresh=age[rows] <= STALE_AFTER,
        stride=WEEK,
        due=today,
        slow=False,
        months=0,
        gap=gap,
        wait=wait,
    )


def trailing_mean(y: Floats, width: int) -> Floats:
    """Mean of the last `width` values at each position, or of fewer at the start."""
    total = np.concatenate([[0.0], np.cumsum(y)])
    place = np.arange(len(y))
    start = np.maximum(place - width + 1, 0)
    return (total[place + 1] - total[start]) / (place + 1 - start)


def running_products(table: Floats, size: int) -> tuple[Ints, Floats]:
    """Row counts at which to refit, and the products of all columns summed over that many rows.

    The first count is zero, then there is one every `size` rows, and the last covers all rows.
    """
    n, width = table.shape
    edges = np.unique(np.concatenate([[0], np.arange(n % size, n + 1, size)])).astype(np.int64)
    sums = np.zeros((len(edges), width, width))
    for i, (start, stop) in enumerate(pairwise(edges.tolist()), start=1):
        sums[i] = table[start:stop].T @ table[start:stop]
    return edges, np.cumsum(sums, axis=0)
