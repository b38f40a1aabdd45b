"""From numbers and dates to places on a picture: linear, logarithmic and calendar scales with round ticks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from foretell.report.markup import compact


@dataclass(frozen=True, kw_only=True)
class ChartScale:
    """Maps [low, high] onto the pixels [start, stop], evenly or by powers of ten."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Place of the value; values outside the scale are put on its edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, count: int = 5) -> tuple[float, ...]:
        """About `count` round numbers within the scale."""
        return log_ticks(self.low, self.high, count) if self.log else nice_ticks(self.low, self.high, count)


def covering(
    values: Iterable[float], start: float, stop: float, *, within: tuple[float, float] | None = None, log: bool = False
) -> ChartScale:
    """A scale that shows every finite value with a little air, but nothing outside `within`.

    >>> scale = covering([2.0, 4.0, math.nan], 0, 100)
    >>> scale.low < 2 < 4 < scale.high
    True
    """
    shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 10.0) if log else (0.0, 1.0)
    if log:
        air = max((high / low) ** 0.06, 1.3)
        return ChartScale(low=low / air, high=high * air, start=start, stop=stop, log=True)
    air = 0.06 * (high - low) or 0.1 * abs(high) or 0.5
    low, high = low - air, high + air
    if within is not None:
        low, high = max(low, within[0]), min(high, within[1])
    return ChartScale(low=low, high=high, start=start, stop=stop)


def nice_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten inside [low, high], about `count` of them.

    >>> nice_ticks(0, 1)
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    >>> nice_ticks(61.3, 84.2)
    (65.0, 70.0, 75.0, 80.0)
    """
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.75)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(round(i * step, 12) + 0.0 for i in range(first, last + 1))


def log_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Powers of ten inside [low, high], with their doubles and fives where there is room for them.

    >>> log_ticks(0.04, 30)
    (0.1, 1.0, 10.0)
    >>> log_ticks(0.4, 3)
    (0.5, 1.0, 2.0)
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for marks in ((1, 2, 5), (1,)):
        found = tuple(round(m * 10.0**k, 12) for k in decades for m in marks if low <= m * 10.0**k <= high)
        if len(found) <= count:
            break
    return found[:: max(1, math.ceil(len(found) / count))] or (low,)


def tick_label(value: float) -> str:
    """A tick as text, without the zeros that say nothing.

    >>> tick_label(0.25), tick_label(70.0), tick_label(-1.5), tick_label(20000.0)
    ('0.25', '70', '−1.5', '20k')
    """
    if abs(value) >= 10_000:
        return f"{compact(value / 1000).replace('-', '−')}k"
    return compact(value, 6).replace("-", "−")


# Dates: a scale over seconds since 1970 with ticks where days, weeks, months and years begin.

HOUR, DAY = 3600.0, 86_400.0
_HOURS = (1, 2, 3, 6, 12)
_DAYS = (1, 2, 7, 14)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)


def date_scale(moments: Iterable[datetime], start: float, stop: float) -> ChartScale:
    """From the first moment to the last, at least an hour."""
    seconds = [at.timestamp() for at in moments] or [0.0]
    return ChartScale(low=min(seconds), high=max(max(seconds), min(seconds) + HOUR), start=start, stop=stop)


def date_ticks(low: float, high: float, count: int = 6) -> list[tuple[float, str]]:
    """At most about `count` beginnings of hours, days, weeks (Mondays), months or years within, with what to call them.

    The year is said at the first tick and wherever it changes; times are UTC.

    >>> day = lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    >>> [name for _, name in date_ticks(day("2026-08-24"), day("2026-11-15"), 4)]
    ['Sep 2026', 'Oct', 'Nov']
    >>> [name for _, name in date_ticks(day("2026-12-30"), day("2027-01-02"), 5)]
    ['30 Dec 2026', '31 Dec', '1 Jan 2027', '2 Jan']
    """
    span = max(high - low, 1.0)
    first = datetime.fromtimestamp(low, UTC)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    found: list[datetime] = []
    by_hours = by_months = False
    if step := next((hours for hours in _HOURS if span / (hours * HOUR) <= count), None):
        by_hours = True
        found = [midnight + timedelta(hours=step * n) for n in range(int(span / HOUR / step) + 26 // step + 2)]
    elif step := next((days for days in _DAYS if span / (days * DAY) <= count), None):
        begin = midnight - timedelta(days=midnight.weekday()) if step >= 7 else midnight
        found = [begin + timedelta(days=step * n) for n in range(int(span / DAY / step) + 3)]
    else:
        by_months = True
        step = next((months for months in _MONTHS if span / (months * 30.4 * DAY) <= count), _MONTHS[-1])
        begin = 12 * first.year // step * step if step >= 12 else 12 * first.year + (first.month - 1) // step * step
        months = range(begin, begin + int(span / (28 * DAY)) + 2 * step + 2, step)
        found = [datetime(n // 12, n % 12 + 1, 1, tzinfo=UTC) for n in months if n < 12 * 9999]
    shown = [at for at in found if low <= at.timestamp() <= high] or [first]
    names: list[tuple[float, str]] = []
    for i, at in enumerate(shown):
        year = f" {at.year}" if not i or at.year != shown[i - 1].year else ""
        clock = f"{at:%H:%M}" if by_hours and at.hour else ""
        if by_months:
            name = str(at.year) if step >= 12 else f"{at:%b}{year}"
        else:
            name = clock if clock and i else f"{at.day} {at:%b}{year} {clock}".strip()
        names.append((at.timestamp(), name))
    return names


def date_text(at: datetime) -> str:
    """A moment as people write it, in UTC; without the clock at midnight.

    >>> date_text(datetime(2026, 11, 7, 6, tzinfo=UTC)), date_text(datetime(2026, 11, 7, tzinfo=UTC))
    ('7 Nov 2026, 06:00 UTC', '7 Nov 2026')
    """
    at = at.astimezone(UTC)
    clock = f", {at:%H:%M} UTC" if (at.hour, at.minute) != (0, 0) else ""
    return f"{at.day} {at:%b %Y}{clock}"


# Labels beside the ends of lines, so that none covers another.


def spread_labels(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places as near as can be to those wanted, `gap` apart, between `low` and `high`, in the same order.

    >>> spread_labels([10, 11, 50], 12, 0, 100)
    [4.5, 16.5, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups: list[tuple[float, int]] = []  # Sum of the places wanted, and how many labels stand together.
    for i in order:
        groups.append((wanted[i], 1))
        while len(groups) > 1:
            (above, n), (below, m) = groups[-2], groups[-1]
            if below / m - above / n >= gap * (n + m) / 2:
                break
            groups[-2:] = [(above + below, n + m)]
    places: list[float] = []
    for total, n in groups:
        middle = total / n
        places += [middle + (k - (n - 1) / 2) * gap for k in range(n)]
    if places and places[-1] > high:
        places[-1] = high
        for k in range(len(places) - 2, -1, -1):
            places[k] = min(places[k], places[k + 1] - gap)
    if places and places[0] < low:
        places[0] = low
        for k in range(1, len(places)):
            places[k] = max(places[k], places[k - 1] + gap)
    found = [0.0] * len(places)
    for place, i in zip(places, order, strict=True):
        found[i] = place
    return found
