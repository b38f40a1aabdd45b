"""Bars: how the score of single questions is spread."""

import numpy as np
import numpy.typing as npt

from foretell.arena.report.scales import Scale
from foretell.arena.report.svg import Figure, empty, figure, line, rect, text, x_axis, y_axis
from foretell.arena.report.wording import number, percent

WIDTH, HEIGHT, LEFT, TOP = 380, 250, 44, 44


def correctness_histogram(brier: npt.ArrayLike, *, name: str, bins: int = 20) -> Figure:
    """Share of questions by Brier score; 0 is certain and right, 0.25 is a shrug, 1 is certain and wrong."""
    scores = np.asarray(brier, dtype=np.float64)
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return empty("No scored question")
    count, edges = np.histogram(scores, bins=bins, range=(0, 1))
    share = 100 * count / len(scores)
    bottom, right = HEIGHT - 40, WIDTH - 12
    x = Scale(low=0, high=1, start=LEFT, stop=right)
    y = Scale(low=0, high=float(share.max()) * 1.08, start=bottom, stop=TOP)
    bars = [
        rect(
            x(edges[i]) + 1,
            y(value),
            (right - LEFT) / bins - 2,
            bottom - y(value),
            "f-a bar" if edges[i] < 0.25 else "f-b bar",
            tip=f"Brier {edges[i]:.2f}–{edges[i + 1]:.2f}: {count[i]} questions ({value:.1f} %)",
        )
        for i, value in enumerate(share.tolist())
        if value
    ]
    worse = float(np.mean(scores > 0.25))
    return figure(
        WIDTH,
        HEIGHT,
        f"Distribution of the Brier score of {name} over {len(scores)} questions",
        text(4, 16, "Distribution of correctness", "h"),
        text(4, 32, f"median {number(float(np.median(scores)), 3)} · {percent(worse)} worse than saying 0.5", "s k"),
        y_axis(y, LEFT, right, count=4),
        x_axis(x, bottom, TOP, "Brier score of a question (share in %)"),
        *bars,
        line(x(0.25), TOP, x(0.25), bottom, "l-muted dash"),
    )
