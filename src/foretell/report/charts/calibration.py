"""Plots on the unit square: forecasts against outcomes, against the market and against each other."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Floats
from foretell.metrics.calibration import ReliabilityBins, reliability_bins
from foretell.number_text import number, percent, percent_range, plural
from foretell.report.charts.svg import (
    NARROW,
    Chart,
    ChartScale,
    CsvRow,
    empty,
    figure,
    line,
    polyline,
    rect,
    text,
    x_axis,
    y_axis,
)
from foretell.report.markup import Markup, element, shorten

SIZE, LEFT, TOP = 235, 50, 44
X = ChartScale(low=0, high=1, start=LEFT, stop=LEFT + SIZE)
Y = ChartScale(low=0, high=1, start=TOP + SIZE, stop=TOP)
FEW = 200
"""Maximum number of points drawn individually; more are drawn as bubbles on a grid."""
CELLS, BINS, BARS = 20, 10, 20
MOST_POINTS = 2000
"""Maximum number of points included in the CSV data of a scatter plot."""


def _square(
    title: str, numbers: str, axes: str, label: str, *children: Markup, rows: Sequence[CsvRow], below: float = 40
) -> Chart:
    """Draw a unit square with its diagonal, below a title and a line of numbers; `label` is for screen readers."""
    return figure(
        LEFT + SIZE + 25,
        TOP + SIZE + below,
        label,
        text(4, 16, shorten(title, 38), "h", tip=title),
        text(4, 32, numbers, "s k"),
        y_axis(Y, LEFT, LEFT + SIZE, percent=True),
        x_axis(X, TOP + SIZE, TOP, axes, percent=True),
        line(X(0), Y(0), X(1), Y(1), "l-axis dash"),
        *children,
        rows=rows,
    )


def conservatism_plot(p: npt.ArrayLike, price: npt.ArrayLike, *, name: str) -> Chart:
    """Plot forecasts against market prices; above the diagonal on the left and below it on the right is hedging.

    The line joins the mean forecast for each tenth of the price.
    """
    f, m = _shared(p, price)
    if not len(f):
        return empty("No forecast has a market price")
    far, market_far = float(np.abs(f - 0.5).mean()), float(np.abs(m - 0.5).mean())
    distances = f"distance from 50 %: {percent(far)}, market {percent(market_far)}"
    tenth = np.minimum((m * BINS).astype(np.int64), BINS - 1)
    used = [tenth == b for b in range(BINS) if np.sum(tenth == b) >= 3]
    means = [(X(float(m[mine].mean())), Y(float(f[mine].mean()))) for mine in used]
    return _square(
        f"{name} against the market",
        f"{distances} · n {len(f):,}",
        "market price (across), forecast (up)",
        f"Forecasts of {name} against market prices: mean {distances}",
        *_cloud(m, f),
        *([polyline(means, "l-b bold")] if len(means) > 1 else []),
        rows=[{"price": float(a), "forecast": float(b)} for a, b in zip(m[:MOST_POINTS], f, strict=False)],
    )


def agreement_plot(first: npt.ArrayLike, second: npt.ArrayLike, *, names: tuple[str, str]) -> Chart:
    """Plot the probabilities of two forecasters, the first on the x-axis and the second on the y-axis."""
    p, q = _shared(first, second)
    if not len(p):
        return empty("They share no target")
    apart = float(np.abs(p - q).mean())
    return _square(
        f"{names[0]} and {names[1]}",
        f"{percent(apart)} apart on average · n {len(p):,}",
        f"{shorten(names[0], 14)} (across), {shorten(names[1], 14)} (up)",
        f"Forecasts of {names[0]} and {names[1]}: {percent(apart)} apart on average",
        *_cloud(p, q),
        rows=[{names[0]: float(a), names[1]: float(b)} for a, b in zip(p[:MOST_POINTS], q, strict=False)],
    )


def _shared(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the values of both at the positions where both are finite."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    return a[both], b[both]


def _cloud(across: Floats, up: Floats) -> list[Markup]:
    """Draw few points individually, and many as bubbles on a grid."""
    if len(across) <= FEW:
        return [element("circle", cx=X(a), cy=Y(b), r="3", class_="f-a soft") for a, b in zip(across, up, strict=True)]
    count, _, _ = np.histogram2d(across, up, bins=CELLS, range=((0, 1), (0, 1)))
    widest = 1.5 * SIZE / CELLS / 2
    return [
        element(
            "circle",
            element("title", f"{count[i, j]:.0f} forecasts"),
            cx=X((i + 0.5) / CELLS),
            cy=Y((j + 0.5) / CELLS),
            r=max(1.2, widest * float(count[i, j] / count.max()) ** 0.5),
            class_="f-a soft",
        )
        for i, j in np.argwhere(count)
    ]


def reliability_diagram(
    p: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, name: str, bins: int = 10
) -> Chart:
    """Plot observed frequency against mean forecast per bin, with Wilson intervals and a histogram of the forecasts.

    Rows whose p is NaN (not answered) are left out. The intervals treat rows as independent.
    """
    forecasts = np.asarray(p, dtype=np.float64)
    answered = ~np.isnan(forecasts)
    if not answered.any():
        return empty(f"{shorten(name, 30)}: no forecast")
    f, o = forecasts[answered], np.asarray(outcome, dtype=np.float64)[answered]
    w = np.ones(len(f)) if weight is None else np.asarray(weight, dtype=np.float64)[answered]
    reliability = reliability_bins(f, o, w, bins=bins)
    ece = f"{number(100 * reliability.ece, 1)} points"
    return _square(
        name,
        f"calibration error {ece} · {plural(len(f), 'forecast')}",
        "forecast (across), how often it happened (up)",
        f"Reliability of {name}: calibration error {ece}, {len(f)} forecasts",
        *_reliability_points(reliability),
        *_forecast_bars(f, w),
        below=104,
        rows=[
            {
                "forecast": float(reliability.mean_p[i]),
                "happened": float(reliability.frequency[i]),
                "low": float(reliability.frequency_low[i]),
                "high": float(reliability.frequency_high[i]),
                "forecasts": int(reliability.count[i]),
            }
            for i in range(len(reliability.mean_p))
        ],
    )


def _reliability_points(reliability: ReliabilityBins) -> list[Markup]:
    places = [(X(a), Y(b)) for a, b in zip(reliability.mean_p, reliability.frequency, strict=True)]
    parts = [polyline(places, "l-a soft bold")] if len(places) > 1 else []
    largest = float(reliability.weight.max())
    for i, (x, y) in enumerate(places):
        parts.append(line(x, Y(reliability.frequency_low[i]), x, Y(reliability.frequency_high[i]), "l-a"))
        radius = 2.5 + 3.5 * float(reliability.weight[i] / largest) ** 0.5
        tip = (
            f"forecast {percent(float(reliability.mean_p[i]))}, happened {percent(float(reliability.frequency[i]))}, "
            f"{percent_range(float(reliability.frequency_low[i]), float(reliability.frequency_high[i]))}, "
            f"n {reliability.count[i]}"
        )
        parts.append(element("circle", element("title", tip), cx=x, cy=y, r=radius, class_="f-a"))
    return parts


def _forecast_bars(p: Floats, weight: Floats) -> list[Markup]:
    """Draw a histogram of the forecasts below the diagram."""
    base, height = TOP + SIZE + 86, 44
    share, edges = np.histogram(p, bins=BARS, range=(0, 1), weights=weight)
    share = share / share.sum()
    parts = [line(X(0), base, X(1), base, "l-axis thin")]
    for i in np.flatnonzero(share):
        tall = max(1.0, height * float(share[i] / share.max()))
        tip = f"{percent_range(edges[i], edges[i + 1])}: {percent(float(share[i]))} of forecasts"
        parts.append(rect(X(edges[i]) + 1, base - tall, SIZE / BARS - 2, tall, "f-a bar", tip=tip))
    return [*parts, text(LEFT, base + 13, "how often each probability was given", "xs k")]


def correctness_histogram(brier: npt.ArrayLike, *, name: str) -> Chart:
    """Plot the share of questions by Brier score: 0 is certain and right, 0.25 is p = 0.5, 1 is certain and wrong."""
    scores = np.asarray(brier, dtype=np.float64)
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return empty("No scored question")
    worse = float(np.mean(scores > 0.25))
    summary = f"median {number(float(np.median(scores)), 3)} · {percent(worse)} worse than 0.5"
    title = f"Distribution of the Brier score of {name} over {len(scores)} questions"
    heads = ("Distribution of correctness", summary)
    return histogram(scores, title, heads, what="Brier score", of="question", middle=0.25)


def histogram(  # noqa: PLR0913 - what histograms differ in
    values: Floats,
    title: str,
    heads: tuple[str, str],
    *,
    what: str,
    of: str,
    middle: float,
    ends: tuple[float, float] = (0.0, 1.0),
) -> Chart:
    """Plot a histogram of numbers between two ends; those to the left of `middle` have another colour.

    `heads` are the two lines above the plot; `what` the numbers are and `of` what, in the singular, each belongs to.
    """
    count, edges = np.histogram(values, bins=BARS, range=ends)
    share = 100 * count / len(values)
    top, bottom, right = 44, 210, NARROW - 12
    x = ChartScale(low=ends[0], high=ends[1], start=44, stop=right)
    y = ChartScale(low=0, high=float(share.max()) * 1.08, start=bottom, stop=top)
    bars = [
        rect(
            x(edges[i]) + 1,
            y(share[i]),
            (x.stop - x.start) / BARS - 2,
            bottom - y(share[i]),
            "f-a bar" if edges[i] < middle else "f-b bar",
            tip=f"{what} {percent_range(edges[i], edges[i + 1])}: {count[i]} {of}s ({share[i]:.1f} %)",
        )
        for i in np.flatnonzero(count)
    ]
    rows: list[CsvRow] = [
        {f"{what} from": float(edges[i]), "to": float(edges[i + 1]), "count": n} for i, n in enumerate(count.tolist())
    ]
    return figure(
        NARROW,
        250,
        title,
        text(4, 16, heads[0], "h"),
        text(4, 32, heads[1], "s k"),
        y_axis(y, x.start, right, count=4),
        x_axis(x, bottom, top, f"{what} of a {of} (share in %)"),
        *bars,
        line(x(middle), top, x(middle), bottom, "l-muted dash"),
        rows=rows,
    )
