"""Numbers on a small ruler, to be read row by row: scores with their interval, probabilities with what happened."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median

from foretell.metrics.bootstrap import Interval
from foretell.report.charts.scales import ChartScale
from foretell.report.charts.svg import (
    MARKET_STYLE,
    NARROW,
    WIDE,
    Chart,
    SeriesStyle,
    empty,
    figure,
    legend,
    line,
    mark,
    rect,
    responsive,
    series_styles,
    text,
)
from foretell.report.markup import Markup, element, shorten
from foretell.report.numbers import bracket, plural, probability_text

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


@dataclass(frozen=True, kw_only=True)
class ShownAnswer:
    """What stands on a ruler between 0 and 100 %: an answer, its trials, the yardsticks, and what happened."""

    p: float | None
    trials: Sequence[float] = ()
    price: float | None = None
    rate: float | None = None
    """The base rate."""
    outcome: int | None = None


def probability_ruler(shown: ShownAnswer, *, large: bool = False) -> Chart:
    """An answer between 0 and 100 %, its trials, market and base rate, and what happened at one of the ends."""
    if large:
        return responsive(*(_probabilities(shown, width, large=True) for width in (WIDE, NARROW)))
    return _small_probabilities(replace(shown, trials=tuple(shown.trials)))


@lru_cache(maxsize=4096)  # Dozens stand on a page, and many are alike.
def _small_probabilities(shown: ShownAnswer) -> Chart:
    return replace(_probabilities(shown, 150, large=False), small=True)


def _probabilities(shown: ShownAnswer, width: float, *, large: bool) -> Chart:
    p, trials, price, rate, outcome = shown.p, shown.trials, shown.price, shown.rate, shown.outcome
    height = 64 if large else 20
    middle = 30 if large else height / 2
    x = ChartScale(low=0, high=1, start=8, stop=width - 8)
    parts = [rect(x(0), middle - 2, x(1) - x(0), 4, "f-grid")]
    parts += [element("circle", cx=x(one), cy=float(middle), r="2.5", class_=f"f-{OURS} soft") for one in trials[:50]]
    if rate is not None:
        parts.append(_tick(x(rate), middle, RATE, 9 if large else 6, f"base rate {probability_text(rate)}"))
    if price is not None:
        parts.append(_tick(x(price), middle, MARKET, 9 if large else 6, f"market {probability_text(price)}"))
    if p is not None:
        parts.append(_tick(x(p), middle, OURS, 12 if large else 7, f"answer {probability_text(p)}"))
    if outcome is not None:
        happened = "it happened" if outcome else "it did not happen"
        style = SeriesStyle("c", 0) if outcome else SeriesStyle("b", 1)
        parts.append(mark(x(outcome), middle, style, tip=happened))
    if large:
        parts += _labels(x, shown)
    said = [f"answer {probability_text(p)}"] if p is not None else ["no answer"]
    said += [f"market {probability_text(price)}"] if price is not None else []
    said += [f"base rate {probability_text(rate)}"] if rate is not None else []
    said += [] if outcome is None else ["outcome yes" if outcome else "outcome no"]
    numbers = {"answer": p, "market": price, "base rate": rate, "outcome": outcome}
    rows = [numbers, *({"trial": n, "answer": one} for n, one in enumerate(trials, 1))] if large else []
    return figure(width, height, ", ".join(said), *parts, rows=rows)


@dataclass(frozen=True, kw_only=True)
class RulerRow:
    """One outcome of an event: what each forecaster gave it, the market's price, and whether it came true."""

    name: str
    said: Mapping[str, float]
    price: float | None = None
    outcome: str = ""


def everybody_ruler(rows: Sequence[RulerRow], styles: Mapping[str, SeriesStyle]) -> Chart:
    """What everybody said about each outcome, between 0 and 100 %, with the market and the median."""
    if not any(row.said or row.price is not None for row in rows):
        return empty("Nobody has said anything yet")
    return responsive(*(_everybody(rows, styles, width) for width in (WIDE, NARROW)))


def _everybody(rows: Sequence[RulerRow], styles: Mapping[str, SeriesStyle], width: float) -> Chart:
    stacked, names = width == NARROW, list(dict.fromkeys(name for row in rows for name in row.said))
    known = series_styles(names, styles)
    keys, top = legend([*((name, known[name]) for name in names), ("market", MARKET_STYLE)], 4, 16, width)
    left, right, tall = (14.0, width - 14.0, 58) if stacked else (260.0, width - 150.0, 40)
    x = ChartScale(low=0, high=1, start=left, stop=right)
    top += 22
    parts: list[Markup] = [keys]
    for p in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            line(x(p), top, x(p), top + tall * len(rows), "l-grid thin"),
            text(x(p), top - 6, f"{100 * p:.0f}" + " %" * (p == 1), "xs m k"),
        ]
    told: list[dict[str, object]] = []
    for i, row in enumerate(rows):
        base = top + tall * i
        middle = base + (40 if stacked else tall / 2)
        style = "w f-c" if row.outcome == "yes" else "w"
        name = shorten(row.name, 44 if stacked else 36) + (" ✓" if row.outcome == "yes" else "")
        parts.append(text(4, base + 14 if stacked else middle + 4, name, style, tip=row.name))
        parts.append(rect(x(0), middle - 1.5, x(1) - x(0), 3, "f-grid"))
        if row.price is not None:
            parts.append(_tick(x(row.price), middle, MARKET, 11, f"market {probability_text(row.price)}"))
        order = sorted(row.said.items(), key=lambda one: one[1])
        for n, (who, p) in enumerate(order):
            # Those that say nearly the same stand above each other.
            close = n and x(p) - x(order[n - 1][1]) < 9
            shift = (0, -7, 7)[n % 3] if close or (n + 1 < len(order) and x(order[n + 1][1]) - x(p) < 9) else 0
            parts.append(mark(x(p), middle + shift, known[who], tip=f"{who}: {probability_text(p)}"))
            told.append({"outcome": row.name, "name": who, "probability": p})
        if row.price is not None:
            told.append({"outcome": row.name, "name": "market", "probability": row.price})
        if not stacked:
            shown = [f"market {probability_text(row.price)}"] if row.price is not None else []
            shown += [f"median {probability_text(median(row.said.values()))}"] if row.said else []
            for k, one in enumerate(shown):
                parts.append(text(right + 16, middle + 4 + 14 * (k - (len(shown) - 1) / 2), one, "s"))
    title = f"What everybody said about {plural(len(rows), 'outcome')}"
    return figure(width, top + tall * len(rows) + 6, title, *parts, rows=told)


def interval_ruler(interval: Interval, ends: tuple[float, float], at: float | None, style: SeriesStyle) -> Chart:
    """A number with its interval between two ends, and a line where the reference stands; for a row of a table."""
    x, middle = ChartScale(low=ends[0], high=ends[1], start=4, stop=SMALL - 4), TALL / 2
    parts = [line(x(ends[0]), middle, x(ends[1]), middle, "l-grid thin")]
    if at is not None:
        parts.append(line(x(at), 1, x(at), TALL - 1, f"l-{MARKET} bold"))
    if math.isfinite(interval.low) and math.isfinite(interval.high):
        parts.append(line(x(interval.low), middle, x(interval.high), middle, f"l-{style.colour} bold"))
    parts.append(mark(x(interval.estimate), middle, style))
    said = f"{interval.estimate:.4f} {bracket(interval.low, interval.high, 4)}".strip()
    return replace(figure(SMALL, TALL, said, *parts), small=True)


def _labels(x: ChartScale, shown: ShownAnswer) -> list[Markup]:
    p, price, rate, outcome = shown.p, shown.price, shown.rate, shown.outcome
    parts = [text(x(1), 60, "100 %", "s k r")]
    if p is not None:
        parts.append(text(x(p), 13, f"foretell {probability_text(p)}", f"s w f-{OURS} {_side(p)}"))
    under = [
        (value, f"{name} {probability_text(value)}", colour)
        for value, name, colour in ((price, "market", MARKET), (rate, "base rate", RATE))
        if value is not None
    ]
    # Two that stand close are written away from each other.
    apart = len(under) == 2 and abs(x(under[0][0]) - x(under[1][0])) < 110
    low = min((value for value, _, _ in under), default=0.0)
    for value, told, colour in under:
        side = _side(value) if not apart else "r" if value == low and value > 0.12 else ""
        parts.append(text(x(value), 54, told, f"s f-{colour} {side}"))
    if not under or low > 0.1:
        parts.append(text(x(0), 60, "0", "s k m"))
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
