"""Small rulers for table rows and cards: scores with intervals, and probabilities with outcomes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import permutations, product
from statistics import median

from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval
from foretell.number_text import bracket, percent, percent_range, plural, signed
from foretell.report.charts.svg import (
    BOLD_LETTER,
    LETTER,
    MARKET_STYLE,
    NARROW,
    WIDE,
    Chart,
    ChartScale,
    SeriesStyle,
    covering,
    empty,
    figure,
    legend,
    line,
    mark,
    polyline,
    rect,
    responsive,
    series_style,
    series_styles,
    text,
    tick_label,
)
from foretell.report.markup import Markup, element, shorten

MARKET, RATE, OURS = "e", "muted", "a"
"""Colours with a fixed meaning: the market is ochre, the base rate grey, our own forecasts blue."""
DIRECT, TREE = SeriesStyle(OURS, 6), SeriesStyle(OURS, 8)
"""A hollow circle for the direct estimate, a hollow diamond for the tree."""
SMALL, TALL = 190, 24


def score_ruler(
    score: tuple[float, float, float], low: float, high: float, *, price: float | None, rate: float | None
) -> Chart:
    """Draw a score with its interval on a scale from `low` to `high`, with ticks for the market and the base rate."""
    x, middle = ChartScale(low=low, high=high, start=4, stop=SMALL - 4), TALL / 2
    estimate, lower, upper = score
    parts = [line(x(low), middle, x(high), middle, "l-grid thin")]
    for value, colour, name in ((rate, RATE, "base rate"), (price, MARKET, "market")):
        if value is not None and math.isfinite(value):
            parts.append(_tick(x(value), middle, colour, 8, f"{name} {value:.1f}"))
    if math.isfinite(lower) and math.isfinite(upper):
        parts.append(line(x(lower), middle, x(upper), middle, f"l-{OURS} bold"))
    numbers = f"{estimate:.1f} {bracket(lower, upper, 1)}".strip()
    parts.append(mark(x(estimate), middle, SeriesStyle(OURS, 0), tip=numbers))
    beside = [f"{name} {value:.1f}" for name, value in (("market", price), ("base rate", rate)) if value is not None]
    return replace(figure(SMALL, TALL, ", ".join([f"Brier index {numbers}", *beside]), *parts), small=True)


def labelled_score(
    score: tuple[float, float, float], *, price: float | None = None, rate: float | None = None
) -> Chart:
    """Draw a run's Brier index with its interval on an axis, with the market and the base rate labelled."""
    return responsive(*(_labelled_score(score, price, rate, width) for width in (WIDE, NARROW)))


def _labelled_score(score: tuple[float, float, float], price: float | None, rate: float | None, width: float) -> Chart:
    beside = [("base rate", rate, RATE), ("market", price, MARKET)]
    known = [(name, value, colour) for name, value, colour in beside if value is not None and math.isfinite(value)]
    x, middle = covering([*score, *(value for _, value, _ in known), 50.0], 60, width - 60), 48.0
    parts = [line(x.start, middle, x.stop, middle, "l-grid bold")]
    for tick in x.ticks(6 if width == WIDE else 4):
        parts += [line(x(tick), middle + 10, x(tick), middle + 16, "l-axis thin")]
        parts += [text(x(tick), middle + 29, tick_label(tick), "s m k")]
    estimate, low, high = score
    if math.isfinite(low) and math.isfinite(high):
        parts.append(line(x(low), middle, x(high), middle, f"l-{OURS} bold"))
        parts += [line(x(end), middle - 5, x(end), middle + 5, f"l-{OURS} bold") for end in (low, high)]
    numbers = f"{estimate:.1f} {bracket(low, high, 1)}".strip()
    labels = [(x(value), f"{name} {value:.1f}", colour) for name, value, colour in known]
    labels.append((x(estimate), f"this run {estimate:.1f}", OURS))
    for (place, label, colour), (lane, anchor) in zip(labels, _places_of_names(labels, width), strict=True):
        parts.append(line(place, 34 - 16 * lane, place, middle + (8 if colour != OURS else 0), f"l-{colour} line"))
        parts.append(text(place + ANCHORS[anchor], 28 - 16 * lane, label, f"s w {anchor} f-{colour}"))
    parts.append(mark(x(estimate), middle, SeriesStyle(OURS, 0), tip=f"this run {numbers}"))
    rows = [{"name": "this run", "Brier index": estimate, "low": low, "high": high}]
    rows += [{"name": name, "Brier index": value, "low": None, "high": None} for name, value, _ in known]
    title = ", ".join([f"Brier index {numbers}", *(f"{name} {value:.1f}" for name, value, _ in known)])
    return figure(width, middle + 34, title, *parts, rows=rows)


ANCHORS = {"m": 0.0, "r": -3.0, "": 3.0}
"""Where a name stands at its line, centred, to the left or to the right, and how far from it."""


def _places_of_names(labels: Sequence[tuple[float, str, str]], width: float) -> Sequence[tuple[int, str]]:
    """Return the row and the anchor of each name, so that none covers another name or its line, if that is possible.

    Names are centred in the lower of two rows if they fit there.
    """

    def span(label: tuple[float, str, str], anchor: str) -> tuple[float, float]:
        room, place = len(label[1]) * BOLD_LETTER, label[0] + ANCHORS[anchor]
        left = place - room * {"m": 0.5, "r": 1.0, "": 0.0}[anchor]
        return left, left + room

    def cost(places: Sequence[tuple[int, str]]) -> tuple[int, int, int]:
        spans = [span(label, anchor) for label, (_, anchor) in zip(labels, places, strict=True)]
        bad = sum(left < 0 or right > width for left, right in spans)
        for (i, (lane, _)), (j, (other, _)) in permutations(enumerate(places), 2):
            (left, right), place = spans[i], labels[j][0]
            bad += lane == other and left < spans[j][1] + 4 and spans[j][0] < right + 4
            bad += other > lane and left < place < right  # The line of the upper name goes through this one.
        return bad, sum(lane for lane, _ in places), sum(anchor != "m" for _, anchor in places)

    choices = [(lane, anchor) for lane in (0, 1) for anchor in ANCHORS]
    return min(product(choices, repeat=len(labels)), key=cost)


@frozen
class ShownAnswer:
    """What to draw on a ruler from 0 to 100 %: an answer, its trials, the market, the base rate and the outcome."""

    p: float | None
    ends: tuple[float, float] | None = None
    """The range of the answer."""
    tree: float | None = None
    direct: float | None = None
    """The tree's value and the direct estimate beside it, if there is a tree."""
    trials: Sequence[float] = ()
    price: float | None = None
    rate: float | None = None
    rate_name: str = "base rate"
    """The base rate, or the estimate without a model, and which of them it is."""
    outcome: int | None = None


def probability_ruler(shown: ShownAnswer, *, large: bool = False) -> Chart:
    """Draw an answer between 0 and 100 % with its trials, the market, the base rate, and the outcome at one end."""
    if large:
        return responsive(*(_probabilities(shown, width, large=True) for width in (WIDE, NARROW)))
    return _small_probabilities(replace(shown, trials=tuple(shown.trials)))


@lru_cache(maxsize=4096)  # A page has dozens, and many are equal.
def _small_probabilities(shown: ShownAnswer) -> Chart:
    return replace(_probabilities(shown, 150, large=False), small=True)


def _probabilities(shown: ShownAnswer, width: float, *, large: bool) -> Chart:
    p, trials, price, rate, outcome = shown.p, shown.trials, shown.price, shown.rate, shown.outcome
    beside = [(shown.direct, "direct", DIRECT), (shown.tree, "tree", TREE)] if large else []
    estimates = [(value, name, style) for value, name, style in beside if value is not None]
    height = (82 if estimates else 64) if large else 20
    middle = 30 if large else height / 2
    x = ChartScale(low=0, high=1, start=8, stop=width - 8)
    parts = [rect(x(0), middle - 2, x(1) - x(0), 4, "f-grid")]
    if large and shown.ends is not None:
        low, high = shown.ends
        parts.append(
            rect(x(low), middle - 3, x(high) - x(low), 6, f"f-{OURS} soft", tip=f"range {percent_range(low, high)}")
        )
    parts += [
        element("circle", cx=x(trial), cy=float(middle), r="2.5", class_=f"f-{OURS} soft") for trial in trials[:50]
    ]
    if rate is not None:
        parts.append(_tick(x(rate), middle, RATE, 9 if large else 6, f"{shown.rate_name} {percent(rate)}"))
    if price is not None:
        parts.append(_tick(x(price), middle, MARKET, 9 if large else 6, f"market {percent(price)}"))
    if p is not None:
        parts.append(_tick(x(p), middle, OURS, 12 if large else 7, f"answer {percent(p)}"))
    if outcome is not None:
        happened = "it happened" if outcome else "it did not happen"
        style = SeriesStyle("c", 0) if outcome else SeriesStyle("b", 1)
        parts.append(mark(x(outcome), middle, style, tip=happened))
    parts += [mark(x(value), middle, style, tip=f"{name} {percent(value)}") for value, name, style in estimates]
    if large:
        parts += _labels(x, shown)
        parts += _estimate_labels(x, estimates)
    labels = [f"answer {percent(p)}"] if p is not None else ["no answer"]
    labels += [f"market {percent(price)}"] if price is not None else []
    labels += [f"base rate {percent(rate)}"] if rate is not None else []
    labels += [f"{name} {percent(value)}" for value, name, _ in estimates]
    labels += [] if outcome is None else ["outcome yes" if outcome else "outcome no"]
    numbers = {"answer": p, "market": price, "base rate": rate, "outcome": outcome}
    numbers |= {name: value for value, name, _ in estimates}
    rows = [numbers, *({"trial": n, "answer": trial} for n, trial in enumerate(trials, 1))] if large else []
    return figure(width, height, ", ".join(labels), *parts, rows=rows)


@frozen
class RulerRow:
    """One outcome of an event: each forecaster's probability, the market price, and whether it came true."""

    name: str
    forecasts: Mapping[str, float]
    price: float | None = None
    outcome: str = ""


def everybody_ruler(rows: Sequence[RulerRow], styles: Mapping[str, SeriesStyle]) -> Chart:
    """Draw all forecasts of each outcome between 0 and 100 %, with the market and the median."""
    if not any(row.forecasts or row.price is not None for row in rows):
        return empty("No forecast yet")
    return responsive(*(_everybody(rows, styles, width) for width in (WIDE, NARROW)))


def _everybody(rows: Sequence[RulerRow], styles: Mapping[str, SeriesStyle], width: float) -> Chart:
    stacked, names = width == NARROW, list(dict.fromkeys(name for row in rows for name in row.forecasts))
    known = series_styles(names, styles)
    keys, top = legend([*((name, known[name]) for name in names), ("market", MARKET_STYLE)], 4, 16, width)
    left, right, tall = (14.0, width - 14.0, 58) if stacked else (260.0, width - 150.0, 40)
    x = ChartScale(low=0, high=1, start=left, stop=right)
    top += 22
    parts: list[Markup] = [keys]
    for p in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            line(x(p), top, x(p), top + tall * len(rows), "l-grid thin"),
            text(min(x(p), width - 18), top - 6, f"{100 * p:.0f}" + " %" * (p == 1), "xs m k"),
        ]
    csv_rows: list[dict[str, object]] = []
    for i, row in enumerate(rows):
        base = top + tall * i
        middle = base + (40 if stacked else tall / 2)
        style = "w f-c" if row.outcome == "yes" else "w"
        name = shorten(row.name, 44 if stacked else 36) + (" ✓" if row.outcome == "yes" else "")
        parts.append(text(4, base + 14 if stacked else middle + 4, name, style, tip=row.name))
        parts.append(rect(x(0), middle - 1.5, x(1) - x(0), 3, "f-grid"))
        if row.price is not None:
            parts.append(_tick(x(row.price), middle, MARKET, 11, f"market {percent(row.price)}"))
        order = sorted(row.forecasts.items(), key=lambda item: item[1])
        for n, (who, p) in enumerate(order):
            # Marks that are close are moved apart vertically.
            close = n and x(p) - x(order[n - 1][1]) < 9
            shift = (0, -7, 7)[n % 3] if close or (n + 1 < len(order) and x(order[n + 1][1]) - x(p) < 9) else 0
            parts.append(mark(x(p), middle + shift, known[who], tip=f"{who}: {percent(p)}"))
            csv_rows.append({"outcome": row.name, "name": who, "probability": p})
        if row.price is not None:
            csv_rows.append({"outcome": row.name, "name": "market", "probability": row.price})
        if not stacked:
            shown = [f"market {percent(row.price)}"] if row.price is not None else []
            shown += [f"median {percent(median(row.forecasts.values()))}"] if row.forecasts else []
            for k, label in enumerate(shown):
                parts.append(text(right + 16, middle + 4 + 14 * (k - (len(shown) - 1) / 2), label, "s"))
    title = f"What everybody said about {plural(len(rows), 'outcome')}"
    return figure(width, top + tall * len(rows) + 6, title, *parts, rows=csv_rows)


def interval_ruler(interval: Interval, ends: tuple[float, float], at: float | None, style: SeriesStyle) -> Chart:
    """Draw a number with its interval between two ends, and a line at the reference; for a table row."""
    x, middle = ChartScale(low=ends[0], high=ends[1], start=4, stop=SMALL - 4), TALL / 2
    parts = [line(x(ends[0]), middle, x(ends[1]), middle, "l-grid thin")]
    if at is not None:
        parts.append(line(x(at), 1, x(at), TALL - 1, f"l-{MARKET} bold"))
    if math.isfinite(interval.low) and math.isfinite(interval.high):
        parts.append(line(x(interval.low), middle, x(interval.high), middle, f"l-{style.colour} bold"))
    parts.append(mark(x(interval.estimate), middle, style))
    numbers = f"{interval.estimate:.4f} {bracket(interval.low, interval.high, 4)}".strip()
    return replace(figure(SMALL, TALL, numbers, *parts), small=True)


def _labels(x: ChartScale, shown: ShownAnswer) -> list[Markup]:
    p, price, rate, outcome = shown.p, shown.price, shown.rate, shown.outcome
    parts = [text(x(1), 60, "100 %", "s k r")]
    if p is not None:
        parts.append(text(x(p), 13, f"foretell {percent(p)}", f"s w f-{OURS} {_side(p)}"))
    under = [
        (value, f"{name} {percent(value)}", colour)
        for value, name, colour in ((price, "market", MARKET), (rate, shown.rate_name, RATE))
        if value is not None
    ]
    # Labels that are close are aligned away from each other.
    apart = len(under) == 2 and abs(x(under[0][0]) - x(under[1][0])) < 110
    low = min((value for value, _, _ in under), default=0.0)
    for value, label, colour in under:
        side = _side(value) if not apart else "r" if value == low and value > 0.12 else ""
        parts.append(text(x(value), 54, label, f"s f-{colour} {side}"))
    if not under or low > 0.1:
        parts.append(text(x(0), 60, "0", "s k m"))
    if outcome is not None and not (p is not None and abs(x(p) - x(outcome)) < 130):
        parts.append(
            text(x(outcome), 13, "it happened" if outcome else "it did not happen", "s w" + (" r" if outcome else ""))
        )
    return parts


def _estimate_labels(x: ChartScale, estimates: Sequence[tuple[float, str, SeriesStyle]]) -> list[Markup]:
    """Name the direct estimate and the tree in a row below the others; close names are aligned away from each other."""
    ordered = sorted(estimates, key=lambda estimate: estimate[0])
    close = len(ordered) == 2 and x(ordered[1][0]) - x(ordered[0][0]) < 110
    sides = [_side(value) for value, _, _ in ordered]
    if close:
        sides = ["r", ""] if 0.2 < ordered[0][0] < 0.8 else ["", ""] if ordered[0][0] <= 0.2 else ["r", "r"]
    if close and sides[0] == sides[1]:
        # At an end of the ruler both names stand in one text.
        both = " · ".join(f"{name} {percent(value)}" for value, name, _ in ordered)
        return [text(x(ordered[0][0] if sides[0] == "" else ordered[1][0]), 72, both, f"s f-{OURS} {sides[0]}")]
    labels = zip(ordered, sides, strict=True)
    return [text(x(value), 72, f"{name} {percent(value)}", f"s f-{OURS} {side}") for (value, name, _), side in labels]


def _side(value: float) -> str:
    """Return the text anchor at a position that keeps a label inside the figure."""
    return "" if value < 0.12 else "r" if value > 0.88 else "m"


def _tick(x: float, middle: float, colour: str, half: float, tip: str) -> Markup:
    return rect(x - 1.25, middle - half, 2.5, 2 * half, f"f-{colour}", tip=tip)


# Thumbnails for cards that link to a page: scores, beliefs, a tree, and lines relative to the market.


WIDTH, HEIGHT = 260.0, 104.0
PLOT = 158.0
"""X position where the plot ends and the labels begin."""
MOST_LINES = 4
"""Maximum number of lines drawn and named in a thumbnail."""
NAME_LENGTH, ROOMY = 20, 296.0


def score_thumbnail(scores: Mapping[str, tuple[float, float, float]]) -> Chart:
    """Draw estimate and interval of a run above the market and the base rate."""
    x = covering([value for score in scores.values() for value in score], 84, WIDTH - 14)
    parts: list[Markup] = []
    for place, (name, (estimate, low, high)) in enumerate(scores.items()):
        y, colour = 20.0 + 32 * place, {"market": MARKET, "base rate": RATE}.get(name, OURS)
        parts += [text(0, y + 4, name, "s k"), line(x.start, y, x.stop, y, "l-grid thin")]
        if colour == OURS:
            parts.append(line(x(low), y, x(high), y, f"l-{OURS} bold"))
        parts.append(mark(x(estimate), y, SeriesStyle(colour, 0), tip=f"{name} {estimate:.1f}"))
        parts.append(text(x(estimate), y - 7, f"{estimate:.1f}", f"s w m f-{colour}"))
    summary = ", ".join(f"{name} {score[0]:.1f}" for name, score in scores.items())
    return replace(figure(WIDTH, HEIGHT, f"Brier index: {summary}", *parts), small=True)


def belief_thumbnail(paths: Sequence[Sequence[float]], answer: float, price: float | None) -> Chart:
    """Draw how belief changed in every trial, the answer, and the market as a dashed line."""
    values = [*(p for path in paths for p in path), answer, *([] if price is None else [price])]
    y = covering(values, HEIGHT - 12, 14, within=(0.0, 1.0))
    longest = max((len(path) for path in paths), default=1)
    x = ChartScale(low=0, high=max(longest - 1, 1), start=6, stop=PLOT)
    parts: list[Markup] = []
    if price is not None:
        apart = 14 if abs(y(price) - y(answer)) < 14 else 0
        parts.append(line(x.start, y(price), PLOT + 18, y(price), f"l-{MARKET} thin dash"))
        higher = -apart if price >= answer else apart
        parts.append(text(PLOT + 24, y(price) + 4 + higher / 2, f"market {percent(price)}", f"s f-{MARKET}"))
    else:
        higher = 0
    for place, path in enumerate(paths):
        points = [(x(step), y(p)) for step, p in enumerate(path)]
        first = place == 0
        parts += [polyline(points, f"l-{OURS} {'bold' if first else 'thin faint'}")] if len(points) > 1 else []
        parts += (
            [mark(*point, SeriesStyle(OURS, 0), tip=percent(p)) for point, p in zip(points, path, strict=True)]
            if first
            else []
        )
    parts.append(text(PLOT + 24, y(answer) + 4 - higher / 2, percent(answer), f"w f-{OURS}"))
    return replace(figure(WIDTH, HEIGHT, f"Belief over the steps; answer {percent(answer)}", *parts), small=True)


def tree_thumbnail(levels: Sequence[Sequence[tuple[float | None, int]]]) -> Chart:
    """Draw the claims of a tree by level, given the probability of each and the position of its parent."""
    parts: list[Markup] = []
    across = [2 + (WIDTH - 46) * n / max(len(levels) - 1, 1) for n in range(len(levels))]
    down = [[HEIGHT * (n + 0.5) / len(level) for n in range(len(level))] for level in levels]
    for depth in range(1, len(levels)):
        for (_, parent), y in zip(levels[depth], down[depth], strict=True):
            parts.append(line(across[depth - 1] + 40, down[depth - 1][parent], across[depth], y, "l-c faint"))
    for depth, level in enumerate(levels):
        for (p, _), y in zip(level, down[depth], strict=True):
            tall = 22.0 if not depth else 9.0
            parts.append(rect(across[depth], y - tall / 2, 40, tall, f"f-{OURS}" if not depth else "f-grid"))
            if not depth:
                parts.append(text(across[0] + 20, y + 4, "" if p is None else percent(p), "s w m f-paper"))
            elif p is not None:
                parts.append(rect(across[depth] + 4, y - 2, 32 * p, 4, f"f-{OURS}", tip=percent(p)))
    claims = sum(map(len, levels))
    return replace(figure(WIDTH, HEIGHT, f"A tree of {claims} claims", *parts), small=True)


def lines_thumbnail(courses: Mapping[str, Sequence[float]], decimals: int) -> Chart:
    """Draw how far entries are ahead of the market over time; the market is the line at 0."""
    shown = dict(list(courses.items())[:MOST_LINES])
    y = covering([0.0, *(value for course in shown.values() for value in course)], HEIGHT - 10, 12)
    longest = max((min(len(name), NAME_LENGTH) for name in shown), default=0) + decimals + 4
    end = max(ROOMY - longest * LETTER - 6, 60.0)
    parts = [line(6, y(0), end, y(0), f"l-{MARKET} dash")]
    order = sorted(shown, key=lambda name: y(shown[name][-1]))
    for place, (name, course) in enumerate(shown.items()):
        x, style = ChartScale(low=0, high=max(len(course) - 1, 1), start=6, stop=end), series_style(place)
        parts.append(polyline([(x(n), y(value)) for n, value in enumerate(course)], f"{style.stroke} line"))
        at = 14 + (HEIGHT - 20) * order.index(name) / max(len(order) - 1, 1)
        label = f"{shorten(name, NAME_LENGTH)} {signed(course[-1], decimals)}"
        parts.append(text(end + 6, at, label, f"xs w f-{style.colour}", tip=name))
    return replace(figure(ROOMY, HEIGHT, f"Score against the market over time: {', '.join(shown)}", *parts), small=True)
