"""Numeric forecasts on Metaculus: cumulative probabilities at the edges of equal cells.

With N cells there are N + 1 numbers. Every step is at least 0.01/N and at most 40/N (for N = 200: 0.00005 and 0.2). The
mass is zero beyond a closed end, and at least 0.001 beyond an open end.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foretell.metrics.arrays import Floats
from foretell.questions.forecast import Numeric
from foretell.questions.question import DEFAULT_CELLS, NumericRange

DIGITS = 10
OUTSIDE = 0.001
"""Minimum probability beyond an open end."""
SLACK = 1e-9
"""Margin kept from the limits, so that rounding violates none of them."""
NOWHERE = 1e-9
"""Mass below which a tail counts as empty, as does the part of a distribution within a closed range."""


def least_step(outcomes: int) -> float:
    """Return the minimum probability of a cell."""
    return round(0.01 / outcomes, 9)


def greatest_step(outcomes: int) -> float:
    """Return the maximum probability of a cell."""
    return min(1.0, 0.2 * DEFAULT_CELLS / outcomes)


def continuous_cdf(distribution: Numeric, scale: NumericRange) -> list[float]:
    """Return the CDF on a question's scale, adjusted to the platform's rules, with the median in the same cell.

    Tails beyond the outermost stated points continue to fall exponentially, at the rate of the last step, and end at a
    closed bound. Mass stated beyond a closed bound is impossible, so the distribution is conditioned on the rest. A
    cell above its maximum passes the excess to its neighbours, first away from the median. A cell below its minimum is
    filled up from the others on its side. So half of the mass stays on either side of the median, except within three
    cells of a closed end.

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
    """Return the share of the distribution beyond closed ends; a tail that starts inside is assumed to end there.

    >>> share_outside(Numeric(x=(-10, 30), cdf=(0, 1)), NumericRange(minimum=0, maximum=100))
    0.25
    """
    x = distribution.x
    below = 0.0 if scale.open_lower or x[0] > scale.minimum else distribution.below(scale.minimum)
    above = 0.0 if scale.open_upper or x[-1] < scale.maximum else distribution.above(scale.maximum)
    return below + above


def cdf_problems(cdf: Sequence[float], scale: NumericRange) -> tuple[str, ...]:
    """Return the rules that a list of cumulative probabilities violates, as messages."""
    if len(cdf) != scale.outcomes + 1:
        return (f"{len(cdf)} cumulative probabilities instead of {scale.outcomes + 1}",)
    steps = np.round(np.diff(np.round(cdf, DIGITS)), DIGITS)
    least, most = least_step(scale.outcomes), greatest_step(scale.outcomes)
    rules = [
        (float(steps.min()) < least, f"a step of {steps.min():g} is less than {least:g}"),
        (float(steps.max()) > most, f"a step of {steps.max():g} is more than {most:g}"),
        (scale.open_lower and cdf[0] < OUTSIDE, f"{cdf[0]:g} below an open range is less than {OUTSIDE}"),
        (not scale.open_lower and cdf[0] != 0, f"{cdf[0]:g} below a closed range is not 0"),
        (scale.open_upper and cdf[-1] > 1 - OUTSIDE, f"{1 - cdf[-1]:g} above an open range is less than {OUTSIDE}"),
        (not scale.open_upper and cdf[-1] != 1, f"{1 - cdf[-1]:g} above a closed range is not 0"),
    ]
    return tuple(message for wrong, message in rules if wrong)


def _cells(distribution: Numeric, scale: NumericRange) -> Floats:
    """Return the probability below the range, in each cell, and above the range; it is zero beyond closed ends."""
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
    """Return P(X ≤ value) for each value; tails end at closed bounds."""
    x = distribution.x
    lowest = None if scale.open_lower or scale.minimum >= x[0] else scale.minimum
    highest = None if scale.open_upper or scale.maximum <= x[-1] else scale.maximum
    bounded = replace(distribution, lowest=lowest, highest=highest)
    return np.array([bounded.below(value) for value in values.tolist()])


def _around(ends: Floats, inside: Floats) -> Floats:
    return np.concatenate([ends[:1], inside, ends[1:]])


def _median(cells: Floats) -> tuple[int, float]:
    """Return the cell that contains the median, and the share of that cell below the median."""
    reached = np.cumsum(cells)
    half = int(np.searchsorted(reached, 0.5))
    before = float(reached[half - 1]) if half else 0.0
    return half, min(max((0.5 - before) / float(cells[half]), 0.0), 1.0)


def _parts(limits: Floats, half: int, share: float) -> tuple[Floats, Floats]:
    left, right = limits[: half + 1].copy(), limits[half:].copy()
    left[-1], right[0] = limits[half] * share, limits[half] * (1 - share)
    return left, right


def _capped(left: Floats, left_most: Floats, right: Floats, right_most: Floats) -> tuple[Floats, Floats]:
    """Cap the cells of both sides, from the median outwards; excess mass of one side goes to the other."""
    left, excess = _outwards(left, left_most, 0.0)
    right, left_over = _outwards(right, right_most, excess)
    if left_over > 0:
        left, _ = _outwards(left, left_most, left_over)
    return left, right


def _outwards(cells: Floats, most: Floats, carried: float) -> tuple[Floats, float]:
    """Move excess mass outwards from cell to cell; at a closed end it moves back.

    Returns the cells and the mass that they have no room for.
    """
    moved = np.empty_like(cells)
    for i, (cell, limit) in enumerate(zip(cells, most, strict=True)):
        moved[i] = min(cell + carried, limit)
        carried = cell + carried - moved[i]
    for i in reversed(range(len(moved))):
        more = min(carried, most[i] - moved[i])
        moved[i] += more
        carried -= more
    return moved, float(carried)


def _filled(cells: Floats, least: Floats) -> Floats:
    """Raise every cell to its minimum, keeping the total: the other cells are scaled down by one factor."""
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
