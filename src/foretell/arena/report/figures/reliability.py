"""Reliability diagram: of the things forecast at 70 %, how many happened?"""

import numpy as np
import numpy.typing as npt

from foretell.arena.report.markup import Markup, element, shorten
from foretell.arena.report.scales import Scale
from foretell.arena.report.svg import Figure, empty, figure, line, polyline, rect, text, x_axis, y_axis
from foretell.arena.report.wording import number, percent
from foretell.evaluate.arrays import Floats
from foretell.evaluate.reliability import ReliabilityBins, reliability_bins

SIZE, LEFT, TOP = 240, 40, 40
BARS = 20


def reliability_diagram(
    p: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, name: str, bins: int = 10
) -> Figure:
    """Observed frequency against mean forecast per bin with Wilson intervals, and how often each p was said.

    Rows whose p is NaN (not answered) are left out. The intervals take rows as independent.
    """
    forecasts = np.asarray(p, dtype=np.float64)
    answered = ~np.isnan(forecasts)
    if not answered.any():
        return empty(f"{shorten(name, 30)}: no forecast")
    f, o = forecasts[answered], np.asarray(outcome, dtype=np.float64)[answered]
    w = np.ones(len(f)) if weight is None else np.asarray(weight, dtype=np.float64)[answered]
    found = reliability_bins(f, o, w, bins=bins)
    x = Scale(low=0, high=1, start=LEFT, stop=LEFT + SIZE)
    y = Scale(low=0, high=1, start=TOP + SIZE, stop=TOP)
    ece = number(found.ece, 3)
    return figure(
        LEFT + SIZE + 20,
        TOP + SIZE + 100,
        f"Reliability of {name}: calibration error {ece}, {len(f)} forecasts",
        text(4, 16, shorten(name, 32), "h", tip=name),
        text(4, 31, f"ECE {ece} · {len(f):,} forecasts", "s k"),
        y_axis(y, LEFT, LEFT + SIZE),
        x_axis(x, TOP + SIZE, TOP, "forecast (across), how often it happened (up)"),
        line(x(0), y(0), x(1), y(1), "l-axis dash"),
        *_points(found, x, y),
        *_bars(f, w, x),
    )


def _points(found: ReliabilityBins, x: Scale, y: Scale) -> list[Markup]:
    places = [(x(a), y(b)) for a, b in zip(found.mean_p, found.frequency, strict=True)]
    parts = [polyline(places, "l-a soft bold")] if len(places) > 1 else []
    largest = float(found.weight.max())
    for i, (px, py) in enumerate(places):
        parts.append(line(px, y(found.frequency_low[i]), px, y(found.frequency_high[i]), "l-a"))
        radius = 2.5 + 3.5 * float(found.weight[i] / largest) ** 0.5
        tip = (
            f"forecast {found.mean_p[i]:.2f}, happened {found.frequency[i]:.2f} "
            f"[{found.frequency_low[i]:.2f}, {found.frequency_high[i]:.2f}], n {found.count[i]}"
        )
        parts.append(element("circle", element("title", tip), cx=px, cy=py, r=radius, class_="f-a"))
    return parts


def _bars(p: Floats, weight: Floats, x: Scale) -> list[Markup]:
    """A histogram of the forecasts under the diagram."""
    base, height = TOP + SIZE + 86, 44
    share, edges = np.histogram(p, bins=BARS, range=(0, 1), weights=weight)
    share = share / share.sum()
    parts = [line(x(0), base, x(1), base, "l-axis thin")]
    for i, value in enumerate(share):
        if value:
            tall = max(1.0, height * float(value / share.max()))
            tip = f"{edges[i]:.2f}–{edges[i + 1]:.2f}: {percent(float(value))} of forecasts"
            parts.append(rect(x(edges[i]) + 1, base - tall, SIZE / BARS - 2, tall, "f-a bar", tip=tip))
    return [*parts, text(LEFT, base + 12, "how often each probability was said", "xs k")]
