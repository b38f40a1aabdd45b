"""Heat map of how far forecasters are apart: the same measure for every pair, symmetric."""

from collections.abc import Sequence

import numpy as np

from foretell.arena.report.markup import Markup, join, shorten
from foretell.arena.report.svg import Figure, empty, figure, rect, text
from foretell.arena.report.wording import number
from foretell.evaluate.arrays import Floats

MOST, NAME, LETTER = 30, 30, 6.5
WIDE, TALL, TOP = 46.0, 26.0, 24.0
STEPS = 4
"""Colour steps above the neutral one."""


def distance_heatmap(names: Sequence[str], distance: Floats, *, label: str, decimals: int = 3) -> Figure:
    """Every forecaster against every other; the darker, the further apart. At most 30, in the order given."""
    size = min(len(names), MOST)
    if size < 2:
        return empty("Fewer than two forecasters to compare")
    shown = distance[:size, :size]
    finite = shown[np.isfinite(shown)]
    largest = float(finite.max()) if finite.size else 0.0
    left = max(len(shorten(name, NAME)) for name in names[:size]) * LETTER + 36
    rows = [_row(i, names[i], shown[i], left, largest or 1.0, decimals=decimals) for i in range(size)]
    note = f"{label}; the first {MOST} of {len(names)}" if len(names) > MOST else label
    return figure(
        left + size * WIDE + 8,
        TOP + size * TALL + 24,
        f"{label}: {size} forecasters, largest {number(largest, decimals)}",
        *(text(left + (j + 0.5) * WIDE, 16, str(j + 1), "s m k", tip=names[j]) for j in range(size)),
        *rows,
        text(left, TOP + size * TALL + 16, note, "xs k"),
    )


def _row(i: int, name: str, values: Floats, left: float, largest: float, *, decimals: int) -> Markup:
    y, told = TOP + i * TALL, shorten(name, NAME)
    parts = [text(22, y + TALL / 2 + 4, str(i + 1), "s r k"), text(30, y + TALL / 2 + 4, told, tip=name)]
    for j, value in enumerate(values.tolist()):
        if j == i or not np.isfinite(value):
            continue
        step = STEPS + round(STEPS * value / largest)
        x = left + j * WIDE
        parts.append(rect(x, y, WIDE - 1, TALL - 1, f"f-d{step}", tip=f"{i + 1} and {j + 1}: {number(value, 4)}"))
        parts.append(text(x + WIDE / 2, y + TALL / 2 + 4, number(value, decimals), f"xs m f-o{step}"))
    return join(*parts)
