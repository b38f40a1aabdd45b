"""Reliability diagram: of the things forecast at 70 %, how many happened?"""

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Floats
from foretell.metrics.calibration import ReliabilityBins, reliability_bins
from foretell.report.charts.svg import Chart, ChartScale, empty, figure, line, polyline, rect, text, x_axis, y_axis
from foretell.report.markup import Markup, element, shorten
from foretell.report.numbers import number, percent

# Conservatism: does the forecaster go as far from 0.5 as the market does?

CONSERVATISM_SIZE, CONSERVATISM_LEFT, CONSERVATISM_TOP = 260, 40, 44
FEW = 200
CELLS = 20
BINS = 10


def conservatism_plot(p: npt.ArrayLike, price: npt.ArrayLike, *, name: str) -> Chart:
    """Forecast against market price; above the diagonal on the left and below on the right is hedging.

    Few points are drawn one by one, many as bubbles on a grid; the line joins the mean forecast per tenth of
    the price.
    """
    forecasts, prices = np.asarray(p, dtype=np.float64), np.asarray(price, dtype=np.float64)
    both = np.isfinite(forecasts) & np.isfinite(prices)
    if not both.any():
        return empty("No forecast has a market price beside it")
    f, m = forecasts[both], prices[both]
    x = ChartScale(low=0, high=1, start=CONSERVATISM_LEFT, stop=CONSERVATISM_LEFT + CONSERVATISM_SIZE)
    y = ChartScale(low=0, high=1, start=CONSERVATISM_TOP + CONSERVATISM_SIZE, stop=CONSERVATISM_TOP)
    far, market_far = float(np.abs(f - 0.5).mean()), float(np.abs(m - 0.5).mean())
    return figure(
        CONSERVATISM_LEFT + CONSERVATISM_SIZE + 20,
        CONSERVATISM_TOP + CONSERVATISM_SIZE + 40,
        f"Forecasts of {name} against market prices: mean distance from 0.5 {far:.2f}, market {market_far:.2f}",
        text(4, 16, shorten(f"{name} against the market", 34), "h", tip=name),
        text(4, 32, f"mean distance from 0.5: {far:.2f}, market {market_far:.2f} · n {len(f):,}", "s k"),
        y_axis(y, CONSERVATISM_LEFT, CONSERVATISM_LEFT + CONSERVATISM_SIZE),
        x_axis(x, CONSERVATISM_TOP + CONSERVATISM_SIZE, CONSERVATISM_TOP, "market price (across), forecast (up)"),
        line(x(0), y(0), x(1), y(1), "l-axis dash"),
        *point_cloud(f, m, x, y),
        *_means(f, m, x, y),
    )


def point_cloud(f: Floats, m: Floats, x: ChartScale, y: ChartScale) -> list[Markup]:
    """Few points one by one, many as bubbles on a grid."""
    return _cloud_points(f, m, x, y) if len(f) <= FEW else _bubbles(f, m, x, y)


def _cloud_points(f: Floats, m: Floats, x: ChartScale, y: ChartScale) -> list[Markup]:
    return [element("circle", cx=x(a), cy=y(b), r="3", class_="f-a soft") for a, b in zip(m, f, strict=True)]


def _bubbles(f: Floats, m: Floats, x: ChartScale, y: ChartScale) -> list[Markup]:
    count, _, _ = np.histogram2d(m, f, bins=CELLS, range=((0, 1), (0, 1)))
    largest, widest = float(count.max()), CONSERVATISM_SIZE / CELLS / 2
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


def _means(f: Floats, m: Floats, x: ChartScale, y: ChartScale) -> list[Markup]:
    code = np.minimum((m * BINS).astype(np.int64), BINS - 1)
    used = [b for b in range(BINS) if np.sum(code == b) >= 3]
    places = [(x(float(m[code == b].mean())), y(float(f[code == b].mean()))) for b in used]
    return [polyline(places, "l-b bold")] if len(places) > 1 else []


# Two forecasters against each other: every target a point, on the diagonal where they say the same.

AGREEMENT_SIZE, AGREEMENT_LEFT, AGREEMENT_TOP = 260, 40, 44


def agreement_plot(first: npt.ArrayLike, second: npt.ArrayLike, *, names: tuple[str, str]) -> Chart:
    """The first one's probability across, the second one's up."""
    p, q = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.isfinite(p) & np.isfinite(q)
    if not both.any():
        return empty("They share no target")
    p, q = p[both], q[both]
    x = ChartScale(low=0, high=1, start=AGREEMENT_LEFT, stop=AGREEMENT_LEFT + AGREEMENT_SIZE)
    y = ChartScale(low=0, high=1, start=AGREEMENT_TOP + AGREEMENT_SIZE, stop=AGREEMENT_TOP)
    apart = float(np.abs(p - q).mean())
    return figure(
        AGREEMENT_LEFT + AGREEMENT_SIZE + 20,
        AGREEMENT_TOP + AGREEMENT_SIZE + 40,
        f"Forecasts of {names[0]} and {names[1]}: {apart:.2f} apart on average",
        text(4, 16, shorten(f"{names[0]} and {names[1]}", 34), "h", tip=f"{names[0]} and {names[1]}"),
        text(4, 32, f"{apart:.2f} apart on average · n {len(p):,}", "s k"),
        y_axis(y, AGREEMENT_LEFT, AGREEMENT_LEFT + AGREEMENT_SIZE),
        x_axis(
            x,
            AGREEMENT_TOP + AGREEMENT_SIZE,
            AGREEMENT_TOP,
            f"{shorten(names[0], 20)} (across), {shorten(names[1], 20)} (up)",
        ),
        line(x(0), y(0), x(1), y(1), "l-axis dash"),
        *point_cloud(q, p, x, y),
    )


# Bars: how the score of single questions is spread.

HISTOGRAM_WIDTH, HISTOGRAM_HEIGHT, HISTOGRAM_LEFT, HISTOGRAM_TOP = 380, 250, 44, 44


def correctness_histogram(brier: npt.ArrayLike, *, name: str, bins: int = 20) -> Chart:
    """Share of questions by Brier score; 0 is certain and right, 0.25 is a shrug, 1 is certain and wrong."""
    scores = np.asarray(brier, dtype=np.float64)
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return empty("No scored question")
    count, edges = np.histogram(scores, bins=bins, range=(0, 1))
    share = 100 * count / len(scores)
    bottom, right = HISTOGRAM_HEIGHT - 40, HISTOGRAM_WIDTH - 12
    x = ChartScale(low=0, high=1, start=HISTOGRAM_LEFT, stop=right)
    y = ChartScale(low=0, high=float(share.max()) * 1.08, start=bottom, stop=HISTOGRAM_TOP)
    bars = [
        rect(
            x(edges[i]) + 1,
            y(value),
            (right - HISTOGRAM_LEFT) / bins - 2,
            bottom - y(value),
            "f-a bar" if edges[i] < 0.25 else "f-b bar",
            tip=f"Brier {edges[i]:.2f}–{edges[i + 1]:.2f}: {count[i]} questions ({value:.1f} %)",
        )
        for i, value in enumerate(share.tolist())
        if value
    ]
    worse = float(np.mean(scores > 0.25))
    return figure(
        HISTOGRAM_WIDTH,
        HISTOGRAM_HEIGHT,
        f"Distribution of the Brier score of {name} over {len(scores)} questions",
        text(4, 16, "Distribution of correctness", "h"),
        text(4, 32, f"median {number(float(np.median(scores)), 3)} · {percent(worse)} worse than saying 0.5", "s k"),
        y_axis(y, HISTOGRAM_LEFT, right, count=4),
        x_axis(x, bottom, HISTOGRAM_TOP, "Brier score of a question (share in %)"),
        *bars,
        line(x(0.25), HISTOGRAM_TOP, x(0.25), bottom, "l-muted dash"),
    )


RELIABILITY_SIZE, RELIABILITY_LEFT, RELIABILITY_TOP = 240, 40, 40
BARS = 20


def reliability_diagram(
    p: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, name: str, bins: int = 10
) -> Chart:
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
    x = ChartScale(low=0, high=1, start=RELIABILITY_LEFT, stop=RELIABILITY_LEFT + RELIABILITY_SIZE)
    y = ChartScale(low=0, high=1, start=RELIABILITY_TOP + RELIABILITY_SIZE, stop=RELIABILITY_TOP)
    ece = number(found.ece, 3)
    return figure(
        RELIABILITY_LEFT + RELIABILITY_SIZE + 20,
        RELIABILITY_TOP + RELIABILITY_SIZE + 100,
        f"Reliability of {name}: calibration error {ece}, {len(f)} forecasts",
        text(4, 16, shorten(name, 32), "h", tip=name),
        text(4, 31, f"ECE {ece} · {len(f):,} forecasts", "s k"),
        y_axis(y, RELIABILITY_LEFT, RELIABILITY_LEFT + RELIABILITY_SIZE),
        x_axis(x, RELIABILITY_TOP + RELIABILITY_SIZE, RELIABILITY_TOP, "forecast (across), how often it happened (up)"),
        line(x(0), y(0), x(1), y(1), "l-axis dash"),
        *_reliability_points(found, x, y),
        *_bars(f, w, x),
    )


def _reliability_points(found: ReliabilityBins, x: ChartScale, y: ChartScale) -> list[Markup]:
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


def _bars(p: Floats, weight: Floats, x: ChartScale) -> list[Markup]:
    """A histogram of the forecasts under the diagram."""
    base, height = RELIABILITY_TOP + RELIABILITY_SIZE + 86, 44
    share, edges = np.histogram(p, bins=BARS, range=(0, 1), weights=weight)
    share = share / share.sum()
    parts = [line(x(0), base, x(1), base, "l-axis thin")]
    for i, value in enumerate(share):
        if value:
            tall = max(1.0, height * float(value / share.max()))
            tip = f"{edges[i]:.2f}–{edges[i + 1]:.2f}: {percent(float(value))} of forecasts"
            parts.append(rect(x(edges[i]) + 1, base - tall, RELIABILITY_SIZE / BARS - 2, tall, "f-a bar", tip=tip))
    return [*parts, text(RELIABILITY_LEFT, base + 12, "how often each probability was said", "xs k")]
