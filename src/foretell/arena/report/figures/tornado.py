"""Tornado chart: how far an answer moves with each of its inputs, the widest bar on top."""

from collections.abc import Sequence
from dataclasses import dataclass

from foretell.arena.report.markup import Markup, join, shorten
from foretell.arena.report.scales import Scale, covering
from foretell.arena.report.svg import Figure, empty, figure, line, rect, text, x_axis

WIDTH, ROW, TOP, LEFT, RIGHT = 760, 24, 14, 300, 96
NAME = 42


@dataclass(frozen=True, kw_only=True)
class TornadoRow:
    """One input and where the answer stands at the ends of its range."""

    name: str
    at_low: float
    at_high: float


def tornado_plot(rows: Sequence[TornadoRow], base: float, *, label: str = "probability") -> Figure:
    """Rows in the order given, around the answer as it is; orange where the input is low, blue where it is high."""
    if not rows:
        return empty("Nothing moves it")
    bottom = TOP + ROW * len(rows)
    ends = [end for row in rows for end in (row.at_low, row.at_high)]
    scale = covering([*ends, base], LEFT, WIDTH - RIGHT, within=(0.0, 1.0))
    return figure(
        WIDTH,
        bottom + 36,
        f"{label} at the ends of each input's range: {len(rows)} inputs, widest is {rows[0].name}",
        x_axis(scale, bottom, TOP, f"{label} (input low: orange, high: blue)"),
        *(_row(row, i, base, scale) for i, row in enumerate(rows)),
        line(scale(base), TOP, scale(base), bottom, "l-muted dash"),
    )


def _row(row: TornadoRow, place: int, base: float, scale: Scale) -> Markup:
    y = TOP + ROW * place
    shown = shorten(row.name, NAME)
    tip = f"{row.name}: {row.at_low:.3f} to {row.at_high:.3f}"
    bars = [
        rect(min(scale(base), scale(end)), y + 5, abs(scale(end) - scale(base)), ROW - 10, style, tip=tip)
        for end, style in ((row.at_low, "f-b bar"), (row.at_high, "f-a bar"))
    ]
    numbers = f"{row.at_low:.3f} – {row.at_high:.3f}"
    return join(
        text(4, y + ROW / 2 + 4, shown, tip=row.name if shown != row.name else None),
        *bars,
        text(WIDTH - 4, y + ROW / 2 + 4, numbers, "s r"),
    )
