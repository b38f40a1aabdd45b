"""Numbers on a small ruler, to be read row by row: scores with their interval, probabilities with what happened."""

import math
from collections.abc import Sequence
from dataclasses import replace

from foretell.report.charts.scales import ChartScale
from foretell.report.charts.svg import NARROW, WIDE, Chart, SeriesStyle, figure, line, mark, rect, responsive, text
from foretell.report.markup import Markup, element
from foretell.report.numbers import bracket, probability_text

MARKET, RATE, OURS = "e", "muted", "a"
"""Colours that mean the same everywhere: the market ochre, the base rate grey, ours blue."""
SMALL, TALL = 190, 24


def score_ruler(
    score: tuple[float, float, float], low: float, high: float, *, price: float | None, rate: float | None
) -> Chart:
    """A score with its interval between two ends, and where the market and the base rate stand."""
    x, middle = ChartScale(low=low, high=high, start=4, stop=SMALL - 4), TALL / 2
    estimate, lower, upper = score
    parts = [line(x(low), middle, x(high), middle, "l-grid thin")]
    for value, colour, name in ((rate, RATE, "base rate"), (price, MARKET, "market")):
        if value is not None and math.isfinite(value):
            parts.append(_tick(x(value), middle, colour, 8, f"{name} {value:.1f}"))
    if math.isfinite(lower) and math.isfinite(upper):
        parts.append(line(x(lower), middle, x(upper), middle, f"l-{OURS} bold"))
    said = f"{estimate:.1f} {bracket(lower, upper, 1)}".strip()
    parts.append(mark(x(estimate), middle, SeriesStyle(OURS, 0), tip=said))
    beside = [f"{name} {value:.1f}" for name, value in (("market", price), ("base rate", rate)) if value is not None]
    return replace(figure(SMALL, TALL, ", ".join([f"Brier index {said}", *beside]), *parts), small=True)


def probability_ruler(
    p: float | None, trials: Sequence[float], price: float | None, outcome: int | None, *, large: bool = False
) -> Chart:
    """An answer between 0 and 100 %, its trials, the market's price, and what happened at one of the ends."""
    if large:
        return responsive(*(_probabilities(p, trials, price, outcome, width, large=True) for width in (WIDE, NARROW)))
    return replace(_probabilities(p, trials, price, outcome, 150, large=False), small=True)


def _probabilities(
    p: float | None, trials: Sequence[float], price: float | None, outcome: int | None, width: float, *, large: bool
) -> Chart:
    height = 64 if large else 20
    middle = 30 if large else height / 2
    x = ChartScale(low=0, high=1, start=8, stop=width - 8)
    parts = [rect(x(0), middle - 2, x(1) - x(0), 4, "f-grid")]
    parts += [element("circle", cx=x(one), cy=float(middle), r="2.5", class_=f"f-{OURS} soft") for one in trials[:50]]
    if price is not None:
        parts.append(_tick(x(price), middle, MARKET, 9 if large else 6, f"market {probability_text(price)}"))
    if p is not None:
        parts.append(_tick(x(p), middle, OURS, 12 if large else 7, f"answer {probability_text(p)}"))
    if outcome is not None:
        happened = "it happened" if outcome else "it did not happen"
        style = SeriesStyle("c", 0) if outcome else SeriesStyle("b", 1)
        parts.append(mark(x(outcome), middle, style, tip=happened))
    if large:
        parts += _labels(x, p, price, outcome)
    said = [f"answer {probability_text(p)}"] if p is not None else ["no answer"]
    said += [f"market {probability_text(price)}"] if price is not None else []
    said += [] if outcome is None else ["outcome yes" if outcome else "outcome no"]
    numbers = {"answer": p, "market": price, "outcome": outcome}
    rows = [numbers, *({"trial": n, "answer": one} for n, one in enumerate(trials, 1))] if large else []
    return figure(width, height, ", ".join(said), *parts, rows=rows)


def _labels(x: ChartScale, p: float | None, price: float | None, outcome: int | None) -> list[Markup]:
    parts = [text(x(0), 60, "0", "s k m"), text(x(1), 60, "100 %", "s k r")]
    if p is not None:
        parts.append(text(x(p), 13, f"foretell {probability_text(p)}", f"s w f-{OURS} {_side(p)}"))
    if price is not None:
        parts.append(text(x(price), 54, f"market {probability_text(price)}", f"s f-{MARKET} {_side(price)}"))
    if outcome is not None and not (p is not None and abs(p - outcome) < 0.2):
        parts.append(
            text(x(outcome), 13, "YES happened" if outcome else "NO happened", "s w" + (" r" if outcome else ""))
        )
    return parts


def _side(value: float) -> str:
    """How text is put at a place, so that it stays inside."""
    return "" if value < 0.12 else "r" if value > 0.88 else "m"


def _tick(x: float, middle: float, colour: str, half: float, tip: str) -> Markup:
    return rect(x - 1.25, middle - half, 2.5, 2 * half, f"f-{colour}", tip=tip)
