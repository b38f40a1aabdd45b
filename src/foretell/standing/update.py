"""What moves a belief: a price that moved by more than usual, and new evidence added to the last belief."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from math import sqrt
from statistics import median

from foretell.data.markets.market import PricePoint
from foretell.forecasters.combine.clamp import CLAMPS, Clamp
from foretell.forecasters.combine.default import moved_price
from foretell.questions.question import Exclusivity, scaled

LEAST_STEP = 0.02
"""Smallest move of a price that is ever news."""
FEWEST_SPANS = 5
"""Past changes over equal spans below which the usual step is scaled from shorter ones."""
NORMAL = 1.4826
"""Standard deviation of a normal distribution in medians of its absolute values."""
SHORTEST = timedelta(minutes=1)


def usual_step(points: Sequence[PricePoint], span: timedelta) -> float:
    """Return the usual change of a price over a span: a robust spread of its own past changes over such spans.

    With too few of them, the changes between neighbouring points are scaled by the square root of time. 0 without any.

    >>> from foretell.questions.as_of import instant
    >>> days = [PricePoint(at=instant(f"2026-01-{n:02}"), p=0.5 + 0.01 * (n % 2)) for n in range(1, 12)]
    >>> round(usual_step(days, timedelta(days=1)), 4)
    0.0148
    """
    span = max(span, SHORTEST)
    points = sorted(points, key=lambda point: point.at)
    changes: list[float] = []
    last = 0
    for place, start in enumerate(points):
        last = max(last, place)
        while last + 1 < len(points) and points[last + 1].at <= start.at + span:
            last += 1
        if points[last].at - start.at >= span / 2:
            changes.append(abs(points[last].p - start.p))
    if len(changes) >= FEWEST_SPANS:
        return NORMAL * median(changes)
    pairs = [(a, b, (b.at - a.at) / span) for a, b in pairwise(points) if b.at > a.at]
    if not pairs:
        return 0.0
    return NORMAL * median(abs(b.p - a.p) / sqrt(share) for a, b, share in pairs)


def has_moved(price: float, before: float, points: Sequence[PricePoint], span: timedelta, steps: float) -> bool:
    """Whether a price moved by more than `steps` of its usual ones, and by enough to matter."""
    return abs(price - before) > max(LEAST_STEP, steps * usual_step(points, span))


def with_prices(
    own: Mapping[str, float], prices: Mapping[str, float], exclusivity: Exclusivity = "independent"
) -> dict[str, float]:
    """Return the probabilities that follow from one's own and fresh prices; targets without a price stay as they are.

    >>> {target: round(p, 3) for target, p in with_prices({"yes": 0.2}, {"yes": 0.8}).items()}
    {'yes': 0.75}
    """
    blended = {target: moved_price(prices[target], p) if target in prices else p for target, p in own.items()}
    return scaled(blended, exclusivity)


def bounded(p: Mapping[str, float], exclusivity: Exclusivity, clamp: Clamp | None = None) -> dict[str, float]:
    """Return the belief within its bounds, which are applied once, at the end."""
    return (clamp or CLAMPS["once"]).bounded(p, exclusivity)
