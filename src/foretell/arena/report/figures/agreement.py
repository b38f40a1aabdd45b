"""Two forecasters against each other: every target a point, on the diagonal where they say the same."""

import numpy as np
import numpy.typing as npt

from foretell.arena.report.figures.conservatism import cloud
from foretell.arena.report.markup import shorten
from foretell.arena.report.scales import Scale
from foretell.arena.report.svg import Figure, empty, figure, line, text, x_axis, y_axis

SIZE, LEFT, TOP = 260, 40, 44


def agreement_plot(first: npt.ArrayLike, second: npt.ArrayLike, *, names: tuple[str, str]) -> Figure:
    """The first one's probability across, the second one's up."""
    p, q = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.isfinite(p) & np.isfinite(q)
    if not both.any():
        return empty("They share no target")
    p, q = p[both], q[both]
    x = Scale(low=0, high=1, start=LEFT, stop=LEFT + SIZE)
    y = Scale(low=0, high=1, start=TOP + SIZE, stop=TOP)
    apart = float(np.abs(p - q).mean())
    return figure(
        LEFT + SIZE + 20,
        TOP + SIZE + 40,
        f"Forecasts of {names[0]} and {names[1]}: {apart:.2f} apart on average",
        text(4, 16, shorten(f"{names[0]} and {names[1]}", 34), "h", tip=f"{names[0]} and {names[1]}"),
        text(4, 32, f"{apart:.2f} apart on average · n {len(p):,}", "s k"),
        y_axis(y, LEFT, LEFT + SIZE),
        x_axis(x, TOP + SIZE, TOP, f"{shorten(names[0], 20)} (across), {shorten(names[1], 20)} (up)"),
        line(x(0), y(0), x(1), y(1), "l-axis dash"),
        *cloud(q, p, x, y),
    )
