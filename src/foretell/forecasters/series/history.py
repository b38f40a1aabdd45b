"""The past of a series as equally spaced steps, and the origins from which its models are tried."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from foretell.data.series.series import Days, Values
from foretell.metrics.arrays import Bools, Floats, Ints

DAYS_PER_YEAR = 365.2425
WEEK = 7
SLOWEST_DAILY_GAP = 8.0
"""Median days between observations up to which a series is laid out by calendar day, not by observation."""
WEEKLY_GAP = 5.0
"""Median days between observations from which each of them counts: with daily ones a missing day changes little."""
STALE_AFTER = 10.0
LONGEST_DAYS = 25 * 365
"""A daily record is read no further back: older days cost time and describe another climate or market."""


@dataclass(frozen=True)
class AskedSeries:
    """What is asked of a series: to stand above a threshold on some days, or below it."""

    days: Days
    values: Values
    due: np.datetime64
    resolution: Days
    threshold: float | None = None
    """None: the last value on or before the due day."""

    @cached_property
    def known(self) -> int:
        """How many observations are dated on or before the due day."""
        known = int(np.searchsorted(self.days, np.asarray(self.due, "M8[D]"), side="right"))
        if known == 0:
            raise ValueError("days: nothing of the series was known on the due day")
        return known

    @property
    def bar(self) -> float:
        """The threshold as a number."""
        return float(self.values[self.known - 1]) if self.threshold is None else self.threshold


@dataclass(frozen=True, kw_only=True)
class SeriesChances:
    """P(y > v) and P(y < v) per resolution day; what is missing to one is P(y = v)."""

    above: Floats
    below: Floats

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> "SeriesChances":
        """From pairs of both."""
        table: Floats = np.asarray(pairs, np.float64).reshape(len(pairs), 2)
        return cls(above=table[:, 0], below=table[:, 1])

    @property
    def atom(self) -> Floats:
        """P(y = v): series that move in steps often stay where they are."""
        return np.clip(1.0 - self.above - self.below, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class SeriesHistory:
    """A series until its due day on an index of equal steps.

    A daily, business-daily or weekly series is laid out by calendar day, each day holding the last value on or
    before it: exactly how a question reads it. Slower series are laid out by observation. Origins are the past
    moments at which the same question could have been asked, `stride` steps apart, the last one being now.
    """

    values: Values
    day: Floats
    """Days since 1970 of each step; for a slow series of each observation."""
    fresh: Bools
    """Whether the value of the step is recent, not carried over a hole in the record."""
    stride: int
    due: int
    """Due day, counted from 1970."""
    slow: bool
    months: int
    """Months between observations of a slow series that keeps to the calendar, else 0."""
    gap: float
    wait: int = 0
    """Steps from the last known value to the reference value: values dated before the due day may come out after it."""

    @cached_property
    def per_year(self) -> float:
        """Steps in a year."""
        return DAYS_PER_YEAR / self.gap if self.slow else DAYS_PER_YEAR

    @cached_property
    def origins(self) -> Ints:
        """Step numbers of the origins, ascending, the last one now."""
        last = len(self.values) - 1
        return np.arange(last % self.stride, last + 1, self.stride, dtype=np.int64)

    @property
    def last(self) -> float:
        """The reference value: the last one on or before the due day."""
        return float(self.values[-1])

    def steps(self, asked: AskedSeries) -> Ints:
        """Steps from now to each resolution day.

        With a fixed threshold the value moves from the last observation on; otherwise what counts is the change
        between the due day and the resolution day, however late the last observation is.
        """
        resolution, from_last = asked.resolution.astype("M8[D]").astype(np.int64), asked.threshold is not None
        if not self.slow:
            late = max(0, int(self.due - self.day[-1]) - int(STALE_AFTER)) if from_last else 0
            return np.where(resolution > self.due, resolution - self.due + late, 0)
        passed = 0 if from_last else self.unseen
        return np.where(resolution > self.due, np.maximum(self._observations_until(resolution) - passed, 0), 0)

    @property
    def unseen(self) -> int:
        """How many observations of a slow series are dated on or before the due day and not out yet."""
        return max(0, int(self._observations_until(np.array([self.due]))[0]))

    def surprise(self, resolution: Days) -> Floats:
        """Chance of a new observation by each day though none is due: as often as one had come by then after others.

        A series that is always dated on the same day of its months has no surprises.
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
        """How many observations after the last one are to be expected on or before a day."""
        if not self.months:
            return np.floor((day - self.day[-1]) / self.gap + 1e-9).astype(np.int64)
        last = np.datetime64(int(self.day[-1]), "D")
        first = last.astype("M8[M]")
        within = int((last - first.astype("M8[D]")).astype(int))
        days = day.astype("M8[D]")
        month = days.astype("M8[M]")
        # A series dated on the 31st is dated on the last day of a shorter month.
        length = ((month + 1).astype("M8[D]") - month.astype("M8[D]")).astype(np.int64)
        reached = (days - month.astype("M8[D]")).astype(np.int64) >= np.minimum(within, length - 1)
        elapsed = (month - first).astype(np.int64) - np.where(reached, 0, 1)
        return np.maximum(elapsed, 0) // self.months


def history(asked: AskedSeries) -> SeriesHistory:
    """Lay out what is known of a series on its due day; later observations are dropped."""
    number, values = asked.days[: asked.known].astype("M8[D]").astype(np.int64), asked.values[: asked.known]
    today = int(np.asarray(asked.due, "M8[D]").astype(np.int64))
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
        return slow if asked.threshold is not None else replace(slow, wait=slow.unseen)
    # A weekly value that is due by now but not out yet is the reference all the same: both ends of the change are open.
    unseen = int((today - number[-1]) // gap) if gap >= WEEKLY_GAP and asked.threshold is None else 0
    wait = unseen * round(gap)
    day = np.arange(number[0], max(int(number[-1]), today - wait) + 1, dtype=np.int64)
    index = np.searchsorted(number, day, side="right") - 1
    age = day - number[index]
    # A due day far beyond the record adds nothing but carried values: stop where the last value is still fresh.
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
    """Mean of the last `width` values at each place, fewer at the start."""
    total = np.concatenate([[0.0], np.cumsum(y)])
    place = np.arange(len(y))
    start = np.maximum(place - width + 1, 0)
    return (total[place + 1] - total[start]) / (place + 1 - start)


def running_products(table: Floats, size: int) -> tuple[Ints, Floats]:
    """Numbers of rows at which to fit again, and the products of all columns summed over as many rows.

    The first is none, then comes one every `size` rows, and the last is all of them.
    """
    n, width = table.shape
    edges = np.unique(np.concatenate([[0], np.arange(n % size, n + 1, size)])).astype(np.int64)
    sums = np.zeros((len(edges), width, width))
    for i, (start, stop) in enumerate(pairwise(edges.tolist()), start=1):
        sums[i] = table[start:stop].T @ table[start:stop]
    return edges, np.cumsum(sums, axis=0)
