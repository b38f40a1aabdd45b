"""Forest plot: one number with its interval per row, best on top."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foretell.arena.report.markup import Markup, join, shorten
from foretell.arena.report.scales import Scale, covering
from foretell.arena.report.svg import Figure, empty, figure, line, mark, rect, text, x_axis
from foretell.arena.report.wording import estimate
from foretell.evaluate.intervals import Interval

WIDTH, NARROW, TOP = 760, 380, 14
NAME = 44
LETTER = 6.5
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
        return TOP + self.row * i + (self.row * 0.72 if self.stacked else self.row / 2)

    def text_height(self, i: int) -> float:
        """Base line of the name of row i."""
        return TOP + self.row * i + (13 if self.stacked else self.row / 2 + 4)


def forest_plot(
    rows: Sequence[ForestRow],
    *,
    label: str,
    decimals: int = 1,
    reference: str | float | None = None,
    stacked: bool = False,
) -> Figure:
    """Rows in the order given; `reference` is a row's name or a value, drawn as a dashed line.

    `stacked` puts names above the intervals: the same plot for a phone.
    """
    shown = [row for row in rows if math.isfinite(row.interval.estimate)]
    if not shown:
        return empty("No score to show")
    layout = _stacked() if stacked else _beside(shown)
    base = TOP + layout.row * len(shown)
    line_at = _reference(shown, reference)
    values = [v for row in shown for v in (row.interval.estimate, row.interval.low, row.interval.high)]
    scale = covering([*values, line_at], layout.left, layout.right)
    dashed = _dashes(scale(line_at), layout, len(shown)) if math.isfinite(line_at) else []
    bands = [i for i, row in enumerate(shown) if row.anchor]
    return figure(
        layout.width,
        base + 36,
        f"{label} with intervals: {len(shown)} rows, best is {shown[0].name}",
        *(rect(0, TOP + layout.row * i, layout.width, layout.row, "f-anchor") for i in bands),
        x_axis(scale, base, TOP, label + (" (dashed: reference)" if dashed else "")),
        *dashed,
        *(_row(row, i, scale, layout, decimals) for i, row in enumerate(shown)),
    )


def _beside(rows: Sequence[ForestRow]) -> _Layout:
    left = max(8, *(len(shorten(row.name, NAME)) for row in rows)) * LETTER + 16
    return _Layout(width=WIDTH, row=22, left=left, right=WIDTH - 138, names=NAME, stacked=False)


def _stacked() -> _Layout:
    return _Layout(width=NARROW, row=36, left=10, right=NARROW - 10, names=34, stacked=True)


def _dashes(x: float, layout: _Layout, rows: int) -> list[Markup]:
    """The line of the reference, broken where it would cross the numbers of a stacked plot."""
    if not layout.stacked:
        return [line(x, TOP, x, TOP + layout.row * rows, "l-muted dash")]
    ends = [TOP + layout.row * (i + 1) for i in range(rows)]
    return [line(x, end - layout.row / 2, x, end, "l-muted dash") for end in ends]


def _reference(rows: Sequence[ForestRow], reference: str | float | None) -> float:
    if reference is None or isinstance(reference, float | int):
        return math.nan if reference is None else float(reference)
    return next((row.interval.estimate for row in rows if row.name == reference), math.nan)


def _row(row: ForestRow, place: int, scale: Scale, layout: _Layout, decimals: int) -> Markup:
    y, base, told = layout.scale_height(place), layout.text_height(place), estimate(row.interval, decimals)
    name, colour = shorten(row.name, layout.names), "muted" if row.anchor else "a"
    parts = [text(4, base, name, tip=row.name if name != row.name else None)]
    if math.isfinite(row.interval.low):
        parts.append(line(scale(row.interval.low), y, scale(row.interval.high), y, f"l-{colour} bold"))
    shape = 2 if row.anchor else 0
    parts.append(mark(scale(row.interval.estimate), y, shape, colour=colour, tip=f"{row.name}: {told}"))
    return join(*parts, text(layout.width - 4, base, told, "s r"))
