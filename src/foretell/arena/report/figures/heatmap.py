"""Heat map of paired differences: every forecaster against every other on the targets both answered."""

from collections.abc import Sequence

import numpy as np

from foretell.arena.report.markup import Markup, element, join, shorten
from foretell.arena.report.svg import Figure, empty, figure, rect, text
from foretell.arena.report.wording import bracket, signed
from foretell.evaluate.arrays import Floats, Ints
from foretell.evaluate.compare import PairwiseMatrix
from foretell.evaluate.significance import stars

MOST = 30
ROOMY = 12
NAME = 28
LETTER = 6.5
MIDDLE = 4

Box = tuple[float, float, float, float]


def difference_heatmap(
    names: Sequence[str], matrix: PairwiseMatrix, *, label: str, decimals: int = 1, low_is_better: bool = False
) -> Figure:
    """Row minus column with stars; blue where the row is better. At most 30 rows, in the order given."""
    size = min(len(names), MOST)
    if size < 2:
        return empty("Fewer than two forecasters to compare")
    tall = 32.0 if size <= ROOMY else 26.0
    shown = [[_brief(v, decimals, tight=size > ROOMY) for v in row] for row in matrix.diff[:size, :size]]
    wide = max(len(told) for row in shown for told in row) * (7.4 if size <= ROOMY else 5.9) + 6
    left = max(len(shorten(name, NAME)) for name in names[:size]) * LETTER + 36
    top, right = 24.0, left + size * wide
    note = f"the first {MOST} of {len(names)} forecasters" if len(names) > MOST else ""
    steps = _steps(matrix.diff[:size, :size] * (-1 if low_is_better else 1))
    rows = [
        join(
            _name(i, names[i], top + (i + 0.5) * tall),
            _cells(i, matrix, steps[i], shown[i], (left, top + i * tall, wide, tall), decimals=decimals),
        )
        for i in range(size)
    ]
    bottom = top + size * tall
    return figure(
        right + 8,
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


def _name(i: int, name: str, middle: float) -> Markup:
    shown = shorten(name, NAME)
    tip = name if shown != name else None
    return join(text(22, middle + 4, str(i + 1), "s r k"), text(30, middle + 4, shown, tip=tip))


def _cells(i: int, matrix: PairwiseMatrix, steps: Ints, shown: Sequence[str], box: Box, *, decimals: int) -> Markup:
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
