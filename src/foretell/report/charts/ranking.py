"""Forest plot: one number with its interval per row, best on top."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foretell.metrics.bootstrap import Interval
from foretell.report.charts.svg import (
    Chart,
    ChartScale,
    covering,
    empty,
    figure,
    line,
    mark,
    polyline,
    rect,
    text,
    x_axis,
    y_axis,
)
from foretell.report.markup import Markup, join, shorten
from foretell.report.numbers import estimate

FOREST_WIDTH, NARROW, FOREST_TOP = 760, 380, 14
FOREST_NAME = 44
FOREST_LETTER = 6.5
"""Average width of a letter at the figures' text size."""


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One line of the plot."""

    name: str
    interval: Interval
    anchor: bool = False
    """A yardstick (crowd, base rate, always 0.5): drawn on a band."""


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """Where a row's parts go: beside each other, or the name above its interval where there is little room."""

    width: float
    row: float
    left: float
    right: float
    names: int
    """Characters of a name that fit."""
    stacked: bool

    def scale_height(self, i: int) -> float:
        """Height of the interval of row i."""
        return FOREST_TOP + self.row * i + (self.row * 0.72 if self.stacked else self.row / 2)

    def text_height(self, i: int) -> float:
        """Base line of the name of row i."""
        return FOREST_TOP + self.row * i + (13 if self.stacked else self.row / 2 + 4)


def forest_plot(
    rows: Sequence[ForestRow],
    *,
    label: str,
    decimals: int = 1,
    reference: str | float | None = None,
    stacked: bool = False,
) -> Chart:
    """Rows in the order given; `reference` is a row's name or a value, drawn as a dashed line.

    `stacked` puts names above the intervals: the same plot for a phone.
    """
    shown = [row for row in rows if math.isfinite(row.interval.estimate)]
    if not shown:
        return empty("No score to show")
    layout = _stacked() if stacked else _beside(shown)
    base = FOREST_TOP + layout.row * len(shown)
    line_at = _reference(shown, reference)
    values = [v for row in shown for v in (row.interval.estimate, row.interval.low, row.interval.high)]
    scale = covering([*values, line_at], layout.left, layout.right)
    dashed = _dashes(scale(line_at), layout, len(shown)) if math.isfinite(line_at) else []
    bands = [i for i, row in enumerate(shown) if row.anchor]
    return figure(
        layout.width,
        base + 36,
        f"{label} with intervals: {len(shown)} rows, best is {shown[0].name}",
        *(rect(0, FOREST_TOP + layout.row * i, layout.width, layout.row, "f-anchor") for i in bands),
        x_axis(scale, base, FOREST_TOP, label + (" (dashed: reference)" if dashed else "")),
        *dashed,
        *(_forest_row(row, i, scale, layout, decimals) for i, row in enumerate(shown)),
    )


def _beside(rows: Sequence[ForestRow]) -> _Layout:
    left = max(8, *(len(shorten(row.name, FOREST_NAME)) for row in rows)) * FOREST_LETTER + 16
    return _Layout(width=FOREST_WIDTH, row=22, left=left, right=FOREST_WIDTH - 138, names=FOREST_NAME, stacked=False)


def _stacked() -> _Layout:
    return _Layout(width=NARROW, row=36, left=10, right=NARROW - 10, names=34, stacked=True)


def _dashes(x: float, layout: _Layout, rows: int) -> list[Markup]:
    """The line of the reference, broken where it would cross the numbers of a stacked plot."""
    if not layout.stacked:
        return [line(x, FOREST_TOP, x, FOREST_TOP + layout.row * rows, "l-muted dash")]
    ends = [FOREST_TOP + layout.row * (i + 1) for i in range(rows)]
    return [line(x, end - layout.row / 2, x, end, "l-muted dash") for end in ends]


def _reference(rows: Sequence[ForestRow], reference: str | float | None) -> float:
    if reference is None or isinstance(reference, float | int):
        return math.nan if reference is None else float(reference)
    return next((row.interval.estimate for row in rows if row.name == reference), math.nan)


def _forest_row(row: ForestRow, place: int, scale: ChartScale, layout: _Layout, decimals: int) -> Markup:
    y, base, told = layout.scale_height(place), layout.text_height(place), estimate(row.interval, decimals)
    name, colour = shorten(row.name, layout.names), "muted" if row.anchor else "a"
    parts = [text(4, base, name, tip=row.name if name != row.name else None)]
    if math.isfinite(row.interval.low):
        parts.append(line(scale(row.interval.low), y, scale(row.interval.high), y, f"l-{colour} bold"))
    shape = 2 if row.anchor else 0
    parts.append(mark(scale(row.interval.estimate), y, shape, colour=colour, tip=f"{row.name}: {told}"))
    return join(*parts, text(layout.width - 4, base, told, "s r"))


# Frontier: which forecasters give the best score for what they cost?

FRONTIER_WIDTH, FRONTIER_HEIGHT, FRONTIER_LEFT, FRONTIER_TOP = 620, 380, 46, 14
FRONTIER_LETTER = 5.9

LabelBox = tuple[float, float, float, float]


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
) -> Chart:
    """Score against cost, on a logarithmic axis when costs span a factor of ten; the best deals joined by a line."""
    shown = [q for q in points if math.isfinite(q.cost) and math.isfinite(q.interval.estimate)]
    if not shown:
        return empty("No cost is known")
    costs = [q.cost for q in shown]
    log = min(costs) > 0 and max(costs) > 10 * min(costs)
    bottom, right = FRONTIER_HEIGHT - 44, FRONTIER_WIDTH - 14
    x = covering(costs, FRONTIER_LEFT + 8, right - 60, log=log)
    y = covering(
        [v for q in shown for v in (q.interval.estimate, q.interval.low, q.interval.high)], bottom, FRONTIER_TOP
    )
    best = pareto(shown, low_is_better=low_is_better)
    taken: list[LabelBox] = [(x(q.cost) - 6, y(q.interval.estimate) - 6, 12, 12) for q in shown]
    parts: list[Markup] = []
    for point in (*best, *(q for q in shown if q not in best)):
        tip = f"{point.name}: {estimate(point.interval, decimals)}, {point.cost:.3g} {cost_label}"
        parts += _point(point, x, y, tip, on_line=point in best)
        style = "s w" if point in best else "s k"
        parts += _placed(shorten(point.name, 26), x(point.cost), y(point.interval.estimate), taken, style=style)
    steps = [(x(q.cost), y(q.interval.estimate)) for q in best]
    return figure(
        FRONTIER_WIDTH,
        FRONTIER_HEIGHT,
        f"{label} against {cost_label}; best for their cost: {', '.join(q.name for q in best)}",
        y_axis(y, FRONTIER_LEFT, right),
        x_axis(x, bottom, FRONTIER_TOP, cost_label + (" (logarithmic)" if log else "")),
        text(FRONTIER_LEFT + 4, FRONTIER_TOP + 8, label, "s k"),
        *([polyline(steps, "l-a dash bold")] if len(steps) > 1 else []),
        *parts,
    )


def _point(point: FrontierPoint, x: ChartScale, y: ChartScale, tip: str, *, on_line: bool) -> list[Markup]:
    at, interval = x(point.cost), point.interval
    dot = mark(at, y(interval.estimate), 0 if on_line else 1, tip=tip)
    if not math.isfinite(interval.low):
        return [dot]
    return [line(at, y(interval.low), at, y(interval.high), f"l-{'a' if on_line else 'axis'} thin"), dot]


def _placed(name: str, x: float, y: float, taken: list[LabelBox], *, style: str) -> list[Markup]:
    """The name at the first free place around its mark; nowhere when all are taken (the tooltip has it)."""
    width = len(name) * FRONTIER_LETTER
    for left, base in ((x + 8, y + 4), (x - 8 - width, y + 4), (x - width / 2, y - 9), (x - width / 2, y + 17)):
        box = (left, base - 10, width, 13.0)
        inside = (
            left >= FRONTIER_LEFT and left + width <= FRONTIER_WIDTH and box[1] >= 0 and base <= FRONTIER_HEIGHT - 44
        )
        if inside and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return [text(left, base, name, style)]
    return []


def _overlap(a: LabelBox, b: LabelBox) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


# Tornado chart: how far an answer moves with each of its inputs, the widest bar on top.

TORNADO_WIDTH, TORNADO_ROW, TORNADO_TOP, TORNADO_LEFT, TORNADO_RIGHT = 760, 24, 14, 300, 96
TORNADO_NAME = 42


@dataclass(frozen=True, kw_only=True)
class TornadoRow:
    """One input and where the answer stands at the ends of its range."""

    name: str
    at_low: float
    at_high: float


def tornado_plot(rows: Sequence[TornadoRow], base: float, *, label: str = "probability") -> Chart:
    """Rows in the order given, around the answer as it is; orange where the input is low, blue where it is high."""
    if not rows:
        return empty("Nothing moves it")
    bottom = TORNADO_TOP + TORNADO_ROW * len(rows)
    ends = [end for row in rows for end in (row.at_low, row.at_high)]
    scale = covering([*ends, base], TORNADO_LEFT, TORNADO_WIDTH - TORNADO_RIGHT, within=(0.0, 1.0))
    return figure(
        TORNADO_WIDTH,
        bottom + 36,
        f"{label} at the ends of each input's range: {len(rows)} inputs, widest is {rows[0].name}",
        x_axis(scale, bottom, TORNADO_TOP, f"{label} (input low: orange, high: blue)"),
        *(_tornado_row(row, i, base, scale) for i, row in enumerate(rows)),
        line(scale(base), TORNADO_TOP, scale(base), bottom, "l-muted dash"),
    )


def _tornado_row(row: TornadoRow, place: int, base: float, scale: ChartScale) -> Markup:
    y = TORNADO_TOP + TORNADO_ROW * place
    shown = shorten(row.name, TORNADO_NAME)
    tip = f"{row.name}: {row.at_low:.3f} to {row.at_high:.3f}"
    bars = [
        rect(min(scale(base), scale(end)), y + 5, abs(scale(end) - scale(base)), TORNADO_ROW - 10, style, tip=tip)
        for end, style in ((row.at_low, "f-b bar"), (row.at_high, "f-a bar"))
    ]
    numbers = f"{row.at_low:.3f} – {row.at_high:.3f}"
    return join(
        text(4, y + TORNADO_ROW / 2 + 4, shown, tip=row.name if shown != row.name else None),
        *bars,
        text(TORNADO_WIDTH - 4, y + TORNADO_ROW / 2 + 4, numbers, "s r"),
    )
