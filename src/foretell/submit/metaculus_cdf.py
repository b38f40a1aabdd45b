"""A numeric forecast as Metaculus takes it: cumulative probabilities at the edges of equal cells, under strict rules.

With N cells there are N + 1 numbers; every step is at least 0.01/N and at most 40/N (for N = 200: 0.00005 and 0.2);
a closed end holds nothing beyond it, an open end at least 0.001.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretell.questions.forecast import Numeric
from foretell.questions.numeric_range import DEFAULT_CELLS, NumericRange

Floats = npt.NDArray[np.float64]
DIGITS = 10
OUTSIDE = 0.001
"""Least probability beyond an open end."""
SLACK = 1e-9
"""Kept away from the limits, so that rounding breaks none of them."""
NOWHERE = 1e-9
"""A tail with no more than this is none, and a distribution with less within a closed range says nothing about it."""


def least_step(outcomes: int) -> float:
    """Least probability of a cell."""
    return round(0.01 / outcomes, 9)


def greatest_step(outcomes: int) -> float:
    """Greatest probability of a cell."""
    return min(1.0, 0.2 * DEFAULT_CELLS / outcomes)


def continuous_cdf(distribution: Numeric, scale: NumericRange) -> list[float]:
    """The distribution on a question's scale, within the rules, and with its median in the same cell.

    Tails beyond the outermost stated points go on falling exponentially, as they fell over the last step, and end at
    a closed bound. What was stated beyond a closed bound is impossible: the rest is the distribution given that. A
    cell with more than is allowed hands on to its neighbours, first away from the median; one with less is filled up
    at the cost of the others on its side. So half stays on either side of the median, except within three cells of a
    closed end.

    >>> d = Numeric.from_quantiles({0.05: 20.0, 0.5: 40.0, 0.95: 70.0})
    >>> cdf = continuous_cdf(d, NumericRange(minimum=0, maximum=100, open_upper=True))
    >>> len(cdf), cdf[0], round(cdf[80], 6), round(cdf[-1], 4)
    (201, 0.0, 0.5, 0.995)
    """
    cells = _cells(distribution, scale)
    ends = np.array([scale.open_lower, scale.open_upper], dtype=float)
    most = greatest_step(scale.outcomes)
    low = _around(ends * (OUTSIDE + SLACK), np.full(scale.outcomes, least_step(scale.outcomes) + SLACK))
    high = _around(ends, np.full(scale.outcomes, most if most >= 1 else most - SLACK))
    half, share = _median(cells)
    left, right = cells[: half + 1].copy(), cells[half:].copy()
    left[-1], right[0] = cells[half] * share, cells[half] * (1 - share)
    lows, highs = _parts(low, half, share), _parts(high, half, share)
    sides = _capped(left[::-1], highs[0][::-1], right, highs[1])
    filled = _filled(sides[0], lows[0][::-1])[::-1], _filled(sides[1], lows[1])
    return _cumulated(np.concatenate([filled[0][:-1], [filled[0][-1] + filled[1][0]], filled[1][1:]]), scale)


def share_outside(distribution: Numeric, scale: NumericRange) -> float:
    """How much of the distribution lies beyond closed ends. A tail that begins within the range is taken to end there.

    >>> share_outside(Numeric(x=(-10, 30), cdf=(0, 1)), NumericRange(minimum=0, maximum=100))
    0.25
    """
    x = distribution.x
    below = 0.0 if scale.open_lower or x[0] > scale.minimum else distribution.below(scale.minimum)
    above = 0.0 if scale.open_upper or x[-1] < scale.maximum else distribution.above(scale.maximum)
    return below + above


def cdf_problems(cdf: Sequence[float], scale: NumericRange) -> tuple[str, ...]:
    """Which rules a list of cumulative probabilities breaks."""
    if len(cdf) != scale.outcomes + 1:
        return (f"{len(cdf)} cumulative probabilities instead of {scale.outcomes + 1}",)
    steps = np.round(np.diff(np.round(cdf, DIGITS)), DIGITS)
    least, most = least_step(scale.outcomes), greatest_step(scale.outcomes)
    found = [
        (float(steps.min()) < least, f"a step of {steps.min():g} is less than {least:g}"),
        (float(steps.max()) > most, f"a step of {steps.max():g} is more than {most:g}"),
        (scale.open_lower and cdf[0] < OUTSIDE, f"{cdf[0]:g} below an open range is less than {OUTSIDE}"),
        (not scale.open_lower and cdf[0] != 0, f"{cdf[0]:g} below a closed range is not 0"),
        (scale.open_upper and cdf[-1] > 1 - OUTSIDE, f"{1 - cdf[-1]:g} above an open range is less than {OUTSIDE}"),
        (not scale.open_upper and cdf[-1] != 1, f"{1 - cdf[-1]:g} above a closed range is not 0"),
    ]
    return tuple(told for wrong, told in found if wrong)


def _cells(distribution: Numeric, scale: NumericRange) -> Floats:
    """Probability below the range, in each cell, and above the range; nothing beyond closed ends."""
    reached = _below(distribution, scale, np.array(scale.edges()))
    low = 0.0 if scale.open_lower else float(reached[0])
    high = 1.0 if scale.open_upper else float(reached[-1])
    if high - low < NOWHERE:
        reached, low, high = np.where(np.arange(len(reached)) > 0, 1.0, 0.0), 0.0, 1.0
        if distribution.quantile(0.5) > scale.minimum:
            reached = np.where(np.arange(len(reached)) == len(reached) - 1, 1.0, 0.0)
    reached = np.clip((reached - low) / (high - low), 0.0, 1.0)
    return np.diff(np.concatenate([[0.0], reached, [1.0]]))


def _below(distribution: Numeric, scale: NumericRange, values: Floats) -> Floats:
    """P(X ≤ value), with tails beyond the outermost points."""
    x, cdf = np.array(distribution.x), np.array(distribution.cdf)
    found = np.interp(values, x, cdf)
    width = x[-1] - x[0]
    room = np.inf if scale.open_lower or scale.minimum >= x[0] else x[0] - scale.minimum
    lower = _tail(np.maximum(x[0] - values, 0), cdf[0], _rate(cdf[0], cdf[1] - cdf[0], x[1] - x[0], width), room)
    room = np.inf if scale.open_upper or scale.maximum <= x[-1] else scale.maximum - x[-1]
    rate = _rate(1 - cdf[-1], cdf[-1] - cdf[-2], x[-1] - x[-2], width)
    upper = _tail(np.maximum(values - x[-1], 0), 1 - cdf[-1], rate, room)
    return np.where(values < x[0], lower, np.where(values > x[-1], 1 - upper, found))


def _rate(mass: float, step: float, length: float, width: float) -> float:
    """How fast a tail falls off: as over the last step before it, and at least once over the whole width."""
    return max(float(np.log1p(step / mass)) / length, 1 / width) if mass > NOWHERE else 0.0


def _tail(distance: Floats, mass: float, rate: float, room: float) -> Floats:
    """How much of a tail lies further out than a distance from its beginning; none lies further than its room."""
    if mass <= NOWHERE:
        return np.zeros_like(distance)
    if not np.isfinite(room):
        return mass * np.exp(-rate * distance)
    if rate * room < 1e-9:
        return mass * np.clip(1 - distance / room, 0.0, 1.0)
    left = np.maximum(room - distance, 0.0)
    return mass * np.exp(-rate * distance) * np.expm1(-rate * left) / np.expm1(-rate * room)


def _around(ends: Floats, inside: Floats) -> Floats:
    return np.concatenate([ends[:1], inside, ends[1:]])


def _median(cells: Floats) -> tuple[int, float]:
    """The cell that holds the median, and which share of it lies before the median."""
    reached = np.cumsum(cells)
    half = int(np.searchsorted(reached, 0.5))
    before = float(reached[half - 1]) if half else 0.0
    return half, min(max((0.5 - before) / float(cells[half]), 0.0), 1.0)


def _parts(limits: Floats, half: int, share: float) -> tuple[Floats, Floats]:
    left, right = limits[: half + 1].copy(), limits[half:].copy()
    left[-1], right[0] = limits[half] * share, limits[half] * (1 - share)
    return left, right


def _capped(left: Floats, left_most: Floats, right: Floats, right_most: Floats) -> tuple[Floats, Floats]:
    """Both sides, from the median outwards, no cell above its ceiling; what a side cannot hold goes to the other."""
    left, spilt = _outwards(left, left_most, 0.0)
    right, back = _outwards(right, right_most, spilt)
    if back > 0:
        left, _ = _outwards(left, left_most, back)
    return left, right


def _outwards(cells: Floats, most: Floats, carried: float) -> tuple[Floats, float]:
    """Hand on from cell to cell what is too much for it, and what was brought along; from a closed end it comes back.

    Returns the cells and what they have no room for.
    """
    kept = np.empty_like(cells)
    for i, (cell, limit) in enumerate(zip(cells, most, strict=True)):
        kept[i] = min(cell + carried, limit)
        carried = cell + carried - kept[i]
    for i in reversed(range(len(kept))):
        more = min(carried, most[i] - kept[i])
        kept[i] += more
        carried -= more
    return kept, float(carried)


def _filled(cells: Floats, least: Floats) -> Floats:
    """The same total, no cell below its floor: the others are scaled down by one factor."""
    total = cells.sum()
    short = cells <= least
    while True:
        free = total - least[short].sum()
        rest = cells[~short].sum()
        factor = free / rest if rest > 0 else 0.0
        below = ~short & (cells * factor < least)
        if not below.any():
            return np.where(short, least, cells * factor)
        short |= below


def _cumulated(cells: Floats, scale: NumericRange) -> list[float]:
    reached = np.round(np.cumsum(cells)[:-1], DIGITS)
    if not scale.open_lower:
        reached[0] = 0.0
    if not scale.open_upper:
        reached[-1] = 1.0
    return [float(value) for value in reached]
