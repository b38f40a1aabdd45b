"""Conservatism: does the forecaster go as far from 0.5 as the market does?"""

import numpy as np
import numpy.typing as npt

from foretell.arena.report.markup import Markup, element, shorten
from foretell.arena.report.scales import Scale
from foretell.arena.report.svg import Figure, empty, figure, line, polyline, text, x_axis, y_axis
from foretell.evaluate.arrays import Floats

SIZE, LEFT, TOP = 260, 40, 44
FEW = 200
CELLS = 20
BINS = 10


def conservatism_plot(p: npt.ArrayLike, price: npt.ArrayLike, *, name: str) -> Figure:
    """Forecast against market price; above the diagonal on the left and below on the right is hedging.

    Few points are drawn one by one, many as bubbles on a grid; the line joins the mean forecast per tenth of
    the price.
    """
    forecasts, prices = np.asarray(p, dtype=np.float64), np.asarray(price, dtype=np.float64)
    both = np.isfinite(forecasts) & np.isfinite(prices)
    if not both.any():
        return empty("No forecast has a market price beside it")
    f, m = forecasts[both], prices[both]
    x = Scale(low=0, high=1, start=LEFT, stop=LEFT + SIZE)
    y = Scale(low=0, high=1, start=TOP + SIZE, stop=TOP)
    far, market_far = float(np.abs(f - 0.5).mean()), float(np.abs(m - 0.5).mean())
    return figure(
        LEFT + SIZE + 20,
        TOP + SIZE + 40,
        f"Forecasts of {name} against market prices: mean distance from 0.5 {far:.2f}, market {market_far:.2f}",
        text(4, 16, shorten(f"{name} against the market", 34), "h", tip=name),
        text(4, 32, f"mean distance from 0.5: {far:.2f}, market {market_far:.2f} · n {len(f):,}", "s k"),
        y_axis(y, LEFT, LEFT + SIZE),
        x_axis(x, TOP + SIZE, TOP, "market price (across), forecast (up)"),
        line(x(0), y(0), x(1), y(1), "l-axis dash"),
        *cloud(f, m, x, y),
        *_means(f, m, x, y),
    )


def cloud(f: Floats, m: Floats, x: Scale, y: Scale) -> list[Markup]:
    """Few points one by one, many as bubbles on a grid."""
    return _points(f, m, x, y) if len(f) <= FEW else _bubbles(f, m, x, y)


def _points(f: Floats, m: Floats, x: Scale, y: Scale) -> list[Markup]:
    return [element("circle", cx=x(a), cy=y(b), r="3", class_="f-a soft") for a, b in zip(m, f, strict=True)]


def _bubbles(f: Floats, m: Floats, x: Scale, y: Scale) -> list[Markup]:
    count, _, _ = np.histogram2d(m, f, bins=CELLS, range=((0, 1), (0, 1)))
    largest, widest = float(count.max()), SIZE / CELLS / 2
    return [
        element(
            "circle",
            element("title", f"{count[i, j]:.0f} forecasts"),
            cx=x((i + 0.5) / CELLS),
            cy=y((j + 0.5) / CELLS),
            r=max(1.2, 1.5 * widest * float(count[i, j] / largest) ** 0.5),
            class_="f-a soft",
        )
        for i, j in np.argwhere(count)
    ]


def _means(f: Floats, m: Floats, x: Scale, y: Scale) -> list[Markup]:
    code = np.minimum((m * BINS).astype(np.int64), BINS - 1)
    used = [b for b in range(BINS) if np.sum(code == b) >= 3]
    places = [(x(float(m[code == b].mean())), y(float(f[code == b].mean()))) for b in used]
    return [polyline(places, "l-b bold")] if len(places) > 1 else []
