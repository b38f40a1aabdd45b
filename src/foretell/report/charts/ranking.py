"""Charts of forecasters' scores: forest plot, and frontier of score against cost; and the tornado chart of inputs."""

import math
from collections.abc import Sequence

from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval
from foretell.number_text import percent, percent_range
from foretell.report.charts.svg import (
    LETTER,
    NARROW,
    WIDE,
    Chart,
    SeriesStyle,
    covering,
    empty,
    figure,
    line,
    mark,
    polyline,
    rect,
    responsive,
    series_styles,
    text,
    x_axis,
    y_axis,
)
from foretell.report.markup import Markup, shorten
from foretell.report.numbers import estimate

TOP = 14


@frozen
class ForestRow:
    """A row of a forest plot."""

    name: str
    interval: Interval
    baseline: bool = False
    """Whether the row is a baseline (market price, base rate, always 0.5), which is drawn on a band."""


def forest_plot(
    rows: Sequence[ForestRow], *, label: str, decimals: int = 1, reference: str | float | None = None
) -> Chart:
    """Draw a forest plot, rows in the order given; `reference`, a row's name or a value, is drawn as a dashed line.

    On a phone, names are above the intervals.
    """
    shown = [row for row in rows if math.isfinite(row.interval.estimate)]
    if not shown:
        return empty("No score to show")
    if isinstance(reference, str):
        reference = next((row.interval.estimate for row in shown if row.name == reference), None)
    at = math.nan if reference is None else reference
    return responsive(
        _forest(shown, label, decimals, at, WIDE, stacked=False),
        _forest(shown, label, decimals, at, NARROW, stacked=True),
    )


def _forest(rows: Sequence[ForestRow], label: str, decimals: int, at: float, width: float, *, stacked: bool) -> Chart:
    """Draw the plot; `at` is the value of the reference, NaN without one."""
    height, letters = (36, 34) if stacked else (22, 44)
    longest = max(8, *(len(shorten(row.name, letters)) for row in rows))
    left, right = (10, width - 10) if stacked else (longest * LETTER + 16, width - 150)
    values = [v for row in rows for v in (row.interval.estimate, row.interval.low, row.interval.high)]
    x, base = covering([*values, at], left, right), TOP + height * len(rows)
    note = " (dashed: reference)"
    bands, dashes, marks = list[Markup](), list[Markup](), list[Markup]()
    for i, row in enumerate(rows):
        top = TOP + height * i
        # The line of the reference is broken where it would cross the numbers of a stacked plot.
        begin = top + height / 2 if stacked else top
        bands += [rect(0, top, width, height, "f-highlight")] if row.baseline else []
        if math.isfinite(at):
            dashes.append(line(x(at), begin, x(at), top + height, "l-muted dash"))
        y, text_at = (top + height * 0.72, top + 13) if stacked else (top + height / 2, top + height / 2 + 4)
        numbers = estimate(row.interval, decimals)
        style = series_styles([row.name])[row.name]
        style = SeriesStyle("muted", 2) if row.baseline and style.shape == 0 else style
        if math.isfinite(row.interval.low):
            marks.append(line(x(row.interval.low), y, x(row.interval.high), y, f"l-{style.colour} bold"))
        marks.append(mark(x(row.interval.estimate), y, style, tip=f"{row.name}: {numbers}"))
        # Of a stacked plot, name and numbers share a line.
        name = shorten(row.name, max(int(width / LETTER) - len(numbers) - 2, 8) if stacked else letters)
        marks.append(text(4, text_at, name, tip=row.name if name != row.name else None))
        marks.append(text(width - 4, text_at, numbers, "s r"))
    return figure(
        width,
        base + 36,
        f"{label} with intervals: {len(rows)} rows, best is {rows[0].name}",
        *bands,
        x_axis(x, base, TOP, label + (note if dashes and len(label + note) * LETTER < width else "")),
        *dashes,
        *marks,
        rows=[
            {"name": row.name, label: row.interval.estimate, "low": row.interval.low, "high": row.interval.high}
            for row in rows
        ],
    )


# Frontier: forecasters with the best score for their cost.

BOTTOM, LEFT = 336, 46
LabelBox = tuple[float, float, float, float]


@frozen
class FrontierPoint:
    """A forecaster with its cost, in dollars, seconds or the share left unanswered."""

    name: str
    cost: float
    interval: Interval


def pareto(points: Sequence[FrontierPoint], *, low_is_better: bool = False) -> tuple[FrontierPoint, ...]:
    """Return the points that no other point beats on score without costing more, cheapest first."""
    sign = -1 if low_is_better else 1
    best, front = -math.inf, list[FrontierPoint]()
    for point in sorted(points, key=lambda q: (q.cost, -sign * q.interval.estimate)):
        if sign * point.interval.estimate > best:
            best = sign * point.interval.estimate
            front.append(point)
    return tuple(front)


def frontier(
    points: Sequence[FrontierPoint],
    *,
    label: str,
    cost_label: str = "dollars per forecast",
    decimals: int = 1,
    low_is_better: bool = False,
) -> Chart:
    """Plot score against cost, with the Pareto front as a line; on a log axis if costs span a factor of ten."""
    shown = [q for q in points if math.isfinite(q.cost) and math.isfinite(q.interval.estimate)]
    if not shown:
        return empty("No cost is known")

    def draw(width: float) -> Chart:
        return _frontier(shown, width, label, cost_label, decimals, pareto(shown, low_is_better=low_is_better))

    return responsive(draw(WIDE), draw(NARROW))


def _frontier(
    shown: Sequence[FrontierPoint],
    width: float,
    label: str,
    cost_label: str,
    decimals: int,
    best: Sequence[FrontierPoint],
) -> Chart:
    costs = [q.cost for q in shown]
    log = min(costs) > 0 and max(costs) > 10 * min(costs)
    values = [v for q in shown for v in (q.interval.estimate, q.interval.low, q.interval.high)]
    x, y = covering(costs, LEFT + 8, width - 74, log=log), covering(values, BOTTOM, TOP)
    taken: list[LabelBox] = [(x(q.cost) - 6, y(q.interval.estimate) - 6, 12, 12) for q in shown]
    parts: list[Markup] = []
    for point in (*best, *(q for q in shown if q not in best)):
        chosen, interval, at = point in best, point.interval, x(point.cost)
        tip = f"{point.name}: {estimate(interval, decimals)}, {point.cost:.3g} {cost_label}"
        if math.isfinite(interval.low):
            parts.append(line(at, y(interval.low), at, y(interval.high), f"l-{'a' if chosen else 'axis'} thin"))
        parts.append(mark(at, y(interval.estimate), 0 if chosen else 1, tip=tip))
        name = shorten(point.name, 26)
        parts += _placed(name, at, y(interval.estimate), taken, width, style="s w" if chosen else "s k")
    steps = [(x(q.cost), y(q.interval.estimate)) for q in best]
    return figure(
        width,
        BOTTOM + 44,
        f"{label} against {cost_label}; best for their cost: {', '.join(q.name for q in best)}",
        y_axis(y, LEFT, width - 14),
        x_axis(x, BOTTOM, TOP, cost_label + (" (logarithmic)" if log else "")),
        text(LEFT + 4, TOP + 8, label, "s k"),
        *([polyline(steps, "l-a dash bold")] if len(steps) > 1 else []),
        *parts,
        rows=[
            {
                "name": q.name,
                cost_label: q.cost,
                label: q.interval.estimate,
                "low": q.interval.low,
                "high": q.interval.high,
                "best for its cost": "yes" if q in best else "no",
            }
            for q in shown
        ],
    )


def _placed(name: str, x: float, y: float, taken: list[LabelBox], limit: float, *, style: str) -> list[Markup]:
    """Place the name at the first free position around its mark; omit it if all are taken (the tooltip has it)."""
    width = len(name) * 5.9
    for left, base in ((x + 8, y + 4), (x - 8 - width, y + 4), (x - width / 2, y - 9), (x - width / 2, y + 17)):
        box = (left, base - 10, width, 13.0)
        inside = left >= LEFT and left + width <= limit and box[1] >= 0 and base <= BOTTOM
        if inside and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return [text(left, base, name, style)]
    return []


def _overlap(a: LabelBox, b: LabelBox) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


# Tornado chart: how far an answer moves with each of its inputs, the widest bar on top.


@frozen
class TornadoRow:
    """An input, and the answer at both ends of its range."""

    name: str
    at_low: float
    at_high: float


def tornado_plot(rows: Sequence[TornadoRow], base: float, *, label: str = "probability") -> Chart:
    """Draw a tornado chart around the current answer, rows in the order given; low inputs are orange, high blue."""
    if not rows:
        return empty("Nothing moves it")
    return responsive(
        _tornado(rows, base, label, WIDE, stacked=False), _tornado(rows, base, label, NARROW, stacked=True)
    )


def _tornado(rows: Sequence[TornadoRow], base: float, label: str, width: float, *, stacked: bool) -> Chart:
    height, letters = (44, 44) if stacked else (24, 50)
    left, right = (10, width - 10) if stacked else (letters * LETTER + 10, width - 100)
    bottom = TOP + height * len(rows)
    ends = [end for row in rows for end in (row.at_low, row.at_high)]
    x = covering([*ends, base], left, right, within=(0.0, 1.0))
    parts: list[Markup] = []
    for i, row in enumerate(rows):
        top, shown = TOP + height * i, shorten(row.name, letters)
        begin, tall = (top + 18, 14) if stacked else (top + 5, height - 10)
        tip = f"{row.name}: {percent(row.at_low)} to {percent(row.at_high)}"
        text_at = top + 13 if stacked else top + height / 2 + 4
        parts.append(text(4, text_at, shown, tip=row.name if shown != row.name else None))
        for end, style in ((row.at_low, "f-b bar"), (row.at_high, "f-a bar")):
            parts.append(rect(min(x(base), x(end)), begin, abs(x(end) - x(base)), tall, style, tip=tip))
        parts.append(text(width - 4, text_at, percent_range(row.at_low, row.at_high), "s r"))
    return figure(
        width,
        bottom + 36,
        f"{label} at the ends of each input's range: {len(rows)} inputs, widest is {rows[0].name}",
        x_axis(x, bottom, TOP, f"{label} (input low: orange, high: blue)"),
        *parts,
        line(x(base), TOP, x(base), bottom, "l-muted dash"),
        rows=[{"input": row.name, "at low": row.at_low, "at high": row.at_high} for row in rows],
    )
