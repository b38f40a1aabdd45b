"""Heat map of paired differences: every forecaster against every other on the targets both answered."""

from collections.abc import Sequence

import numpy as np

from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.comparison import PairwiseMatrix, stars
from foretell.report.charts.svg import Chart, empty, figure, rect, text
from foretell.report.markup import Markup, element, join, shorten
from foretell.report.numbers import bracket, number, signed

MOST_ROWS = 30
ROOMY = 12
HEATMAP_NAME = 28
HEATMAP_LETTER = 6.5
MIDDLE = 4

HeatmapBox = tuple[float, float, float, float]


LEGEND_WIDTH = 18 * 9 + 12 + 190
"""Of the colour steps and the text beside them."""


def difference_heatmap(
    names: Sequence[str], matrix: PairwiseMatrix, *, label: str, decimals: int = 1, low_is_better: bool = False
) -> Chart:
    """Row minus column with stars; blue where the row is better. At most 30 rows, in the order given."""
    size = min(len(names), MOST_ROWS)
    if size < 2:
        return empty("Fewer than two forecasters to compare")
    tall = 32.0 if size <= ROOMY else 26.0
    shown = [[_brief(v, decimals, tight=size > ROOMY) for v in row] for row in matrix.diff[:size, :size]]
    wide = max(len(told) for row in shown for told in row) * (7.4 if size <= ROOMY else 5.9) + 6
    left = max(len(shorten(name, HEATMAP_NAME)) for name in names[:size]) * HEATMAP_LETTER + 36
    top, right = 24.0, left + size * wide
    note = f"the first {MOST_ROWS} of {len(names)} forecasters" if len(names) > MOST_ROWS else ""
    steps = _steps(matrix.diff[:size, :size] * (-1 if low_is_better else 1))
    rows = [
        join(
            _heatmap_name(i, names[i], top + (i + 0.5) * tall),
            _cells(i, matrix, steps[i], shown[i], (left, top + i * tall, wide, tall), decimals=decimals),
        )
        for i in range(size)
    ]
    bottom = top + size * tall
    return figure(
        max(right + 8, left + LEGEND_WIDTH),
        bottom + 40,
        f"{label}: paired differences of {size} forecasters, row minus column",
        *(text(left + (j + 0.5) * wide, 16, str(j + 1), "s m k", tip=names[j]) for j in range(size)),
        *rows,
        _legend(left, bottom + 12, note),
    )


def _steps(better: Floats) -> Ints:
    """Colour step 0 (worse) to 8 (better); the largest fifth of the differences share the last one."""
    finite = np.abs(better[np.isfinite(better) & (better != 0)])
    scale = float(np.quantile(finite, 0.8)) if len(finite) else 1.0
    share = np.clip(np.nan_to_num(better / scale), -1, 1)
    return np.rint(MIDDLE * share).astype(np.int64) + MIDDLE


def _brief(value: float, decimals: int, *, tight: bool) -> str:
    """A difference short enough for its cell: in a large map 12.3 becomes 12 and 0.012 becomes .012."""
    told = signed(value, 0 if tight and abs(value) >= 10 else decimals)
    return told.replace("0.", ".", 1) if decimals > 1 and told.lstrip("+−").startswith("0.") else told


def _heatmap_name(i: int, name: str, middle: float) -> Markup:
    shown = shorten(name, HEATMAP_NAME)
    tip = name if shown != name else None
    return join(text(22, middle + 4, str(i + 1), "s r k"), text(30, middle + 4, shown, tip=tip))


def _cells(
    i: int, matrix: PairwiseMatrix, steps: Ints, shown: Sequence[str], box: HeatmapBox, *, decimals: int
) -> Markup:
    """One row of coloured cells; tooltips name the pair by its numbers."""
    left, y, wide, tall = box
    small, parts = "s" if tall > 30 else "xs", list[Markup]()
    for j, step in enumerate(steps.tolist()):
        if j == i:
            continue
        x, level = left + j * wide, stars(float(matrix.p[i, j]))
        told = f"{i + 1} − {j + 1}: {shown[j]}{level} {bracket(matrix.low[i, j], matrix.high[i, j], decimals)}"
        parts.append(rect(x, y, wide - 1, tall - 1, f"f-d{step}", tip=f"{told} n {matrix.n[i, j]}"))
        middle, style = x + wide / 2 - 0.5, f"m f-o{step}"
        lift = -3.5 if level else 3.5
        parts.append(text(middle, y + tall / 2 + lift + 1, shown[j], f"{small} {style}{' w' if level else ''}"))
        if level:
            parts.append(text(middle, y + tall - 3.5, level, f"xs {style}"))
    return join(*parts)


def _legend(x: float, y: float, note: str) -> Markup:
    parts = [rect(x + 18 * i, y, 17, 10, f"f-d{i}") for i in range(2 * MIDDLE + 1)]
    told = f"Row minus column; {note}." if note else "Row minus column."
    return element(
        "g",
        *parts,
        text(x, y + 22, "row worse", "xs k"),
        text(x + 18 * 9 - 1, y + 22, "row better", "xs r k"),
        text(x + 18 * 9 + 12, y + 9, told, "xs k"),
        text(x + 18 * 9 + 12, y + 22, "* p < 0.05, ** < 0.01, *** < 0.001", "xs k"),
    )


# Heat map of how far forecasters are apart: the same measure for every pair, symmetric.

DISTANCE_MOST_ROWS, DISTANCE_NAME, DISTANCE_LETTER = 30, 30, 6.5
WIDE, TALL, TOP = 46.0, 26.0, 24.0
STEPS = 4
"""Colour steps above the neutral one."""


def distance_heatmap(names: Sequence[str], distance: Floats, *, label: str, decimals: int = 3) -> Chart:
    """Every forecaster against every other; the darker, the further apart. At most 30, in the order given."""
    size = min(len(names), DISTANCE_MOST_ROWS)
    if size < 2:
        return empty("Fewer than two forecasters to compare")
    shown = distance[:size, :size]
    finite = shown[np.isfinite(shown)]
    largest = float(finite.max()) if finite.size else 0.0
    left = max(len(shorten(name, DISTANCE_NAME)) for name in names[:size]) * DISTANCE_LETTER + 36
    rows = [_row(i, names[i], shown[i], left, largest or 1.0, decimals=decimals) for i in range(size)]
    note = f"{label}; the first {DISTANCE_MOST_ROWS} of {len(names)}" if len(names) > DISTANCE_MOST_ROWS else label
    return figure(
        left + size * WIDE + 8,
        TOP + size * TALL + 24,
        f"{label}: {size} forecasters, largest {number(largest, decimals)}",
        *(text(left + (j + 0.5) * WIDE, 16, str(j + 1), "s m k", tip=names[j]) for j in range(size)),
        *rows,
        text(left, TOP + size * TALL + 16, note, "xs k"),
    )


def _row(i: int, name: str, values: Floats, left: float, largest: float, *, decimals: int) -> Markup:
    y, told = TOP + i * TALL, shorten(name, DISTANCE_NAME)
    parts = [text(22, y + TALL / 2 + 4, str(i + 1), "s r k"), text(30, y + TALL / 2 + 4, told, tip=name)]
    for j, value in enumerate(values.tolist()):
        if j == i or not np.isfinite(value):
            continue
        step = STEPS + round(STEPS * value / largest)
        x = left + j * WIDE
        parts.append(rect(x, y, WIDE - 1, TALL - 1, f"f-d{step}", tip=f"{i + 1} and {j + 1}: {number(value, 4)}"))
        parts.append(text(x + WIDE / 2, y + TALL / 2 + 4, number(value, decimals), f"xs m f-o{step}"))
    return join(*parts)
