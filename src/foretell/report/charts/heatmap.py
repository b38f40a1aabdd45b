"""Heat maps of every forecaster against every other: paired differences, and how far they are apart."""

from collections.abc import Sequence

import numpy as np

from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.comparison import PairwiseMatrix, stars
from foretell.report.charts.svg import Chart, CsvRow, empty, figure, rect, text
from foretell.report.markup import Markup, join, shorten
from foretell.report.numbers import bracket, number, signed

MOST_ROWS = 30
ROOMY = 12
"""Rows up to which cells are large."""
NAME = 28
MIDDLE = 4
"""The neutral one of nine colour steps."""


def difference_heatmap(
    names: Sequence[str], matrix: PairwiseMatrix, *, label: str, decimals: int = 1, low_is_better: bool = False
) -> Chart:
    """Row minus column with stars; blue where the row is better. At most 30 rows, in the order given."""
    size = min(len(names), MOST_ROWS)
    if size < 2:
        return empty("Fewer than two forecasters to compare")
    roomy = size <= ROOMY
    diff = matrix.diff[:size, :size]
    shown = [[_brief(v, decimals, tight=not roomy) for v in row] for row in diff]
    tall = 32.0 if roomy else 26.0
    wide = max(len(value) for row in shown for value in row) * (7.4 if roomy else 5.9) + 6
    steps = _steps(-diff if low_is_better else diff)
    left, heads = _names(names[:size], wide, tall)
    cells, rows = list[Markup](), list[CsvRow]()
    for i, j in np.argwhere(~np.eye(size, dtype=np.bool_)).tolist():
        x, y, step, level = left + j * wide, 24 + i * tall, steps[i, j], stars(float(matrix.p[i, j]))
        interval = bracket(matrix.low[i, j], matrix.high[i, j], decimals)
        tip = f"{names[i]} − {names[j]}: {shown[i][j]}{level} {interval} n {matrix.n[i, j]}"
        numbers = {name: float(getattr(matrix, name)[i, j]) for name in ("diff", "low", "high", "p")}
        rows.append({"row": names[i], "column": names[j], **numbers, "n": int(matrix.n[i, j])})
        middle, style = x + wide / 2 - 0.5, f"m f-o{step}"
        base = y + tall / 2 + (-2.5 if level else 4.5)
        cells.append(rect(x, y, wide - 1, tall - 1, f"f-d{step}", tip=tip))
        cells.append(text(middle, base, shown[i][j], f"{'s' if roomy else 'xs'} {style}{' w' if level else ''}"))
        if level:
            cells.append(text(middle, y + tall - 3.5, level, f"xs {style}"))
    bottom = 24 + size * tall
    note = f"; the first {MOST_ROWS} of {len(names)} forecasters" if len(names) > MOST_ROWS else ""
    beside = left + 18 * (2 * MIDDLE + 1)
    return figure(
        max(left + size * wide + 8, beside + 202),
        bottom + 40,
        f"{label}: paired differences of {size} forecasters, row minus column",
        heads,
        *cells,
        *(rect(left + 18 * i, bottom + 12, 17, 10, f"f-d{i}") for i in range(2 * MIDDLE + 1)),
        text(left, bottom + 34, "row worse", "xs k"),
        text(beside - 1, bottom + 34, "row better", "xs r k"),
        text(beside + 12, bottom + 21, f"Row minus column{note}.", "xs k"),
        text(beside + 12, bottom + 34, "* p < 0.05, ** < 0.01, *** < 0.001", "xs k"),
        rows=rows,
    )


def distance_heatmap(names: Sequence[str], distance: Floats, *, label: str, decimals: int = 3) -> Chart:
    """Every forecaster against every other; the darker, the further apart. At most 30, in the order given."""
    size = min(len(names), MOST_ROWS)
    if size < 2:
        return empty("Fewer than two forecasters to compare")
    shown = distance[:size, :size]
    known = np.isfinite(shown) & ~np.eye(size, dtype=np.bool_)
    largest = float(np.max(shown, where=np.isfinite(shown), initial=0.0))
    wide, tall = 46.0, 26.0
    left, heads = _names(names[:size], wide, tall)
    cells: list[Markup] = []
    for i, j in np.argwhere(known).tolist():
        value, x, y = float(shown[i, j]), left + j * wide, 24 + i * tall
        step = MIDDLE + round(MIDDLE * value / (largest or 1.0))
        tip = f"{names[i]} and {names[j]}: {number(value, 4)}"
        cells.append(rect(x, y, wide - 1, tall - 1, f"f-d{step}", tip=tip))
        cells.append(text(x + wide / 2, y + tall / 2 + 4, number(value, decimals), f"xs m f-o{step}"))
    note = f"{label}; the first {MOST_ROWS} of {len(names)}" if len(names) > MOST_ROWS else label
    return figure(
        left + size * wide + 8,
        24 + size * tall + 24,
        f"{label}: {size} forecasters, largest {number(largest, decimals)}",
        heads,
        *cells,
        text(left, 24 + size * tall + 16, note, "xs k"),
        rows=[
            {"first": names[i], "second": names[j], "distance": float(shown[i, j])}
            for i, j in np.argwhere(known).tolist()
        ],
    )


def _names(names: Sequence[str], wide: float, tall: float) -> tuple[float, Markup]:
    """Where the cells begin, with numbered names at the left and their numbers on top."""
    left = max(len(shorten(name, NAME)) for name in names) * 6.5 + 36
    parts: list[Markup] = []
    for i, name in enumerate(names):
        middle, shown = 24 + (i + 0.5) * tall, shorten(name, NAME)
        parts.append(text(left + (i + 0.5) * wide, 16, str(i + 1), "s m k", tip=name))
        parts.append(text(22, middle + 4, str(i + 1), "s r k"))
        parts.append(text(30, middle + 4, shown, tip=name if shown != name else None))
    return left, join(*parts)


def _steps(better: Floats) -> Ints:
    """Colour step 0 (worse) to 8 (better); the largest fifth of the differences share the last one."""
    finite = np.abs(better[np.isfinite(better) & (better != 0)])
    scale = float(np.quantile(finite, 0.8)) if len(finite) else 1.0
    share = np.clip(np.nan_to_num(better / scale), -1, 1)
    return np.rint(MIDDLE * share).astype(np.int64) + MIDDLE


def _brief(value: float, decimals: int, *, tight: bool) -> str:
    """A difference short enough for its cell: in a large map 12.3 becomes 12 and 0.012 becomes .012."""
    shown = signed(value, 0 if tight and abs(value) >= 10 else decimals)
    return shown.replace("0.", ".", 1) if decimals > 1 and shown.lstrip("+−").startswith("0.") else shown
