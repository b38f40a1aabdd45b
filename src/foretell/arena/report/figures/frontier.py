"""Frontier: which forecasters give the best score for what they cost?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foretell.arena.report.markup import Markup, shorten
from foretell.arena.report.scales import Scale, covering
from foretell.arena.report.svg import Figure, empty, figure, line, mark, polyline, text, x_axis, y_axis
from foretell.arena.report.wording import estimate
from foretell.evaluate.intervals import Interval

WIDTH, HEIGHT, LEFT, TOP = 620, 380, 46, 14
LETTER = 5.9

Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class FrontierPoint:
    """A forecaster with its price; the price may be dollars, seconds or a share left unanswered."""

    name: str
    cost: float
    interval: Interval


def pareto(points: Sequence[FrontierPoint], *, low_is_better: bool = False) -> tuple[FrontierPoint, ...]:
    """Points that no other beats on score without costing more, cheapest first."""
    sign = -1 if low_is_better else 1
    best, kept = -math.inf, list[FrontierPoint]()
    for point in sorted(points, key=lambda q: (q.cost, -sign * q.interval.estimate)):
        if sign * point.interval.estimate > best:
            best = sign * point.interval.estimate
            kept.append(point)
    return tuple(kept)


def frontier(
    points: Sequence[FrontierPoint],
    *,
    label: str,
    cost_label: str = "dollars per forecast",
    decimals: int = 1,
    low_is_better: bool = False,
) -> Figure:
    """Score against cost, on a logarithmic axis when costs span a factor of ten; the best deals joined by a line."""
    shown = [q for q in points if math.isfinite(q.cost) and math.isfinite(q.interval.estimate)]
    if not shown:
        return empty("No cost is known")
    costs = [q.cost for q in shown]
    log = min(costs) > 0 and max(costs) > 10 * min(costs)
    bottom, right = HEIGHT - 44, WIDTH - 14
    x = covering(costs, LEFT + 8, right - 60, log=log)
    y = covering([v for q in shown for v in (q.interval.estimate, q.interval.low, q.interval.high)], bottom, TOP)
    best = pareto(shown, low_is_better=low_is_better)
    taken: list[Box] = [(x(q.cost) - 6, y(q.interval.estimate) - 6, 12, 12) for q in shown]
    parts: list[Markup] = []
    for point in (*best, *(q for q in shown if q not in best)):
        tip = f"{point.name}: {estimate(point.interval, decimals)}, {point.cost:.3g} {cost_label}"
        parts += _point(point, x, y, tip, on_line=point in best)
        style = "s w" if point in best else "s k"
        parts += _placed(shorten(point.name, 26), x(point.cost), y(point.interval.estimate), taken, style=style)
    steps = [(x(q.cost), y(q.interval.estimate)) for q in best]
    return figure(
        WIDTH,
        HEIGHT,
        f"{label} against {cost_label}; best for their cost: {', '.join(q.name for q in best)}",
        y_axis(y, LEFT, right),
        x_axis(x, bottom, TOP, cost_label + (" (logarithmic)" if log else "")),
        text(LEFT + 4, TOP + 8, label, "s k"),
        *([polyline(steps, "l-a dash bold")] if len(steps) > 1 else []),
        *parts,
    )


def _point(point: FrontierPoint, x: Scale, y: Scale, tip: str, *, on_line: bool) -> list[Markup]:
    at, interval = x(point.cost), point.interval
    dot = mark(at, y(interval.estimate), 0 if on_line else 1, tip=tip)
    if not math.isfinite(interval.low):
        return [dot]
    return [line(at, y(interval.low), at, y(interval.high), f"l-{'a' if on_line else 'axis'} thin"), dot]


def _placed(name: str, x: float, y: float, taken: list[Box], *, style: str) -> list[Markup]:
    """The name at the first free place around its mark; nowhere when all are taken (the tooltip has it)."""
    width = len(name) * LETTER
    for left, base in ((x + 8, y + 4), (x - 8 - width, y + 4), (x - width / 2, y - 9), (x - width / 2, y + 17)):
        box = (left, base - 10, width, 13.0)
        inside = left >= LEFT and left + width <= WIDTH and box[1] >= 0 and base <= HEIGHT - 44
        if inside and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return [text(left, base, name, style)]
    return []


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
