"""Scores by group: a line where the groups follow each other, dots on rows where they do not."""

import math
from collections.abc import Sequence

from foretell.metrics.bootstrap import Interval
from foretell.metrics.calibration import wilson_interval
from foretell.report.charts.svg import (
    Chart,
    ChartScale,
    covering,
    empty,
    figure,
    line,
    mark,
    polyline,
    rect,
    text,
    x_axis,
    y_axis,
)
from foretell.report.markup import Markup, element, join, shorten
from foretell.report.numbers import column_name, estimate, percent
from foretell.report.theme import SERIES
from foretell.scoring.breakdown import UNKNOWN, Breakdown

GROUPS_LETTER = 6.3
GROUPS_WIDTH = 460
MOST = len(SERIES)
FIRST_LINE = 40


def score_by_group(found: Breakdown, *, label: str, decimals: int = 1, zero: bool = False) -> Chart:
    """Up to five forecasters over the groups of a column, with intervals; `zero` draws the line of no difference.

    A forecaster that answered clearly fewer of a group's targets than the others is drawn faintly there: its score
    is about other questions.
    """
    names = list(found.scores)[:MOST]
    values = [v for name in names for i in found.scores[name] if i is not None for v in (i.estimate, i.low, i.high)]
    if not any(math.isfinite(v) for v in values):
        return empty(f"No score by {column_name(found.column)}")
    values += [0.0] * zero
    if found.ordered and 2 <= len(found.groups) <= 30:
        return _lines(found, names, values, f"{label} by {column_name(found.column)}", decimals)
    return _dots(found, names, values, f"{label} by {column_name(found.column)}", decimals)


def _lines(found: Breakdown, names: Sequence[str], values: Sequence[float], title: str, decimals: int) -> Chart:
    keys, legend = _legend(names, 46, FIRST_LINE)
    top = FIRST_LINE + legend
    left, right, bottom = 46.0, GROUPS_WIDTH - 14.0, top + 210.0
    y = covering(values, bottom, top)
    step = (right - left) / len(found.groups)
    parts: list[Markup] = []
    for s, name in enumerate(names):
        shift = (s - (len(names) - 1) / 2) * min(9.0, step / (len(names) + 1))
        places = [left + (g + 0.5) * step + shift for g in range(len(found.groups))]
        parts += _series(name, found, places, y, s, decimals)
    every = max(1, math.ceil(len(found.groups) * (max(map(len, found.groups)) * GROUPS_LETTER + 8) / (right - left)))
    ticks = [
        join(
            text(left + (g + 0.5) * step, bottom + 15, name, "s m"),
            text(left + (g + 0.5) * step, bottom + 28, f"n {found.n[g]:,}", "xs m k"),
        )
        for g, name in enumerate(found.groups)
        if g % every == 0
    ]
    return figure(
        GROUPS_WIDTH,
        bottom + 36,
        f"{title}: {', '.join(names)}",
        text(4, 16, title, "h"),
        keys,
        y_axis(y, left, right),
        *([line(left, y(0), right, y(0), "l-muted dash")] if y.low < 0 < y.high else []),
        *ticks,
        *parts,
    )


def _series(name: str, found: Breakdown, x: Sequence[float], y: ChartScale, s: int, decimals: int) -> list[Markup]:
    parts: list[Markup] = []
    run: list[tuple[float, float]] = []
    for g, interval in enumerate(found.scores[name]):
        if interval is None or not math.isfinite(interval.estimate):
            continue
        if found.groups[g] != UNKNOWN:
            run.append((x[g], y(interval.estimate)))
        whisker = line(x[g], y(interval.low), x[g], y(interval.high), f"l-{SERIES[s]}")
        dot = mark(x[g], y(interval.estimate), s, tip=_tip(name, g, found, interval, decimals))
        parts.append(_drawn(whisker if math.isfinite(interval.low) else None, dot, found, name, g))
    return [polyline(run, f"l-{SERIES[s]} soft bold"), *parts] if len(run) > 1 else parts


def _dots(found: Breakdown, names: Sequence[str], values: Sequence[float], title: str, decimals: int) -> Chart:
    keys, legend = _legend(names, 4, FIRST_LINE)
    top = FIRST_LINE + legend - 4
    row = max(22.0, 10.0 * len(names) + 8)
    left = max(max(len(shorten(g, 24)) for g in found.groups) * GROUPS_LETTER + 8, 70.0) + 46
    right, bottom = GROUPS_WIDTH - 14.0, top + row * len(found.groups)
    x = covering(values, left, right)
    parts: list[Markup] = []
    for g, group in enumerate(found.groups):
        y = top + row * g
        if g % 2:
            parts.append(rect(0, y, GROUPS_WIDTH, row, "f-panel"))
        parts.append(text(4, y + row / 2 + 4, shorten(group, 24), tip=group))
        parts.append(text(left - 12, y + row / 2 + 4, f"n {found.n[g]:,}", "xs r k"))
    marks: list[Markup] = []
    for s, name in enumerate(names):
        for g, interval in enumerate(found.scores[name]):
            if interval is None or not math.isfinite(interval.estimate):
                continue
            y = top + row * g + row / 2 + (s - (len(names) - 1) / 2) * 10
            whisker = line(x(interval.low), y, x(interval.high), y, f"l-{SERIES[s]}")
            dot = mark(x(interval.estimate), y, s, tip=_tip(name, g, found, interval, decimals))
            marks.append(_drawn(whisker if math.isfinite(interval.low) else None, dot, found, name, g))
    return figure(
        GROUPS_WIDTH,
        bottom + 36,
        f"{title}: {', '.join(names)}",
        text(4, 16, title, "h"),
        keys,
        *parts,
        x_axis(x, bottom, top, title.partition(" by ")[0]),
        *([line(x(0), top, x(0), bottom, "l-muted dash")] if x.low < 0 < x.high else []),
        *marks,
    )


def _legend(names: Sequence[str], left: float, y: float) -> tuple[Markup, float]:
    """Keys of the series in as many lines as they need, and the height they take."""
    x, parts = left, list[Markup]()
    start = y
    for s, name in enumerate(names):
        shown = shorten(name, 34)
        need = len(shown) * GROUPS_LETTER + 30
        if x > left and x + need > GROUPS_WIDTH:
            x, y = left, y + 16
        parts += [mark(x + 5, y - 4, s), text(x + 14, y, shown, "s", tip=name)]
        x += need
    return join(*parts), y - start + 14


def _drawn(whisker: Markup | None, dot: Markup, found: Breakdown, name: str, g: int) -> Markup:
    """Whisker and mark, faint where the forecaster answered fewer than nine tenths of what the fullest did."""
    fullest = max(counts[g] for counts in found.answered.values())
    faint = found.answered[name][g] < 0.9 * fullest
    return element("g", whisker, dot, class_="soft") if faint else join(whisker, dot)


def _tip(name: str, g: int, found: Breakdown, interval: Interval, decimals: int) -> str:
    return f"{name}, {found.groups[g]}: {estimate(interval, decimals)}, n {found.answered[name][g]:,}"


# Pictures of a question set: how many in each group, and how often the answer was yes.

QUESTIONS_WIDTH, QUESTIONS_ROW, QUESTIONS_LETTER = 460, 22, 6.3
HEAD = 44


def question_set(found: Breakdown, *, title: str | None = None) -> Chart:
    """Targets per group as bars, share of yes as dots with a Wilson interval (rows taken as independent)."""
    if not found.groups:
        return empty("No question")
    left = max(max(len(shorten(g, 24)) for g in found.groups) * QUESTIONS_LETTER + 16, 60.0)
    counts = ChartScale(low=0, high=max(1, *found.n), start=left, stop=left + 110)
    rates = ChartScale(low=0, high=1, start=left + 165, stop=QUESTIONS_WIDTH - 54)
    bottom = HEAD + QUESTIONS_ROW * len(found.groups)
    shown = title or f"Questions by {column_name(found.column)}"
    grid = [line(rates(v), HEAD, rates(v), bottom, "l-grid thin") for v in (0, 0.25, 0.5, 0.75, 1)]
    labels = [text(rates(v), bottom + 14, percent(v), "xs m k") for v in (0, 0.5, 1)]
    return figure(
        QUESTIONS_WIDTH,
        bottom + 22,
        f"{shown}: number of targets and share of yes",
        text(4, 16, shown, "h"),
        text(counts.start, HEAD - 8, "targets", "s k"),
        text(rates.start, HEAD - 8, "resolved yes", "s k"),
        *grid,
        *labels,
        *(part for i in range(len(found.groups)) for part in _questions_row(found, i, counts, rates)),
    )


def _questions_row(found: Breakdown, i: int, counts: ChartScale, rates: ChartScale) -> list[Markup]:
    y, name, n, rate = HEAD + QUESTIONS_ROW * i, found.groups[i], found.n[i], found.base_rate[i]
    parts = [
        text(4, y + 15, shorten(name, 24), tip=name),
        rect(counts.start, y + 4, counts(n) - counts.start, QUESTIONS_ROW - 8, "f-a bar", tip=f"{name}: {n} targets"),
        text(counts(n) + 5, y + 15, f"{n:,}", "s k"),
    ]
    if n and math.isfinite(rate):
        low, high = (float(v[0]) for v in wilson_interval([rate], [n]))
        parts.append(line(rates(low), y + QUESTIONS_ROW / 2, rates(high), y + QUESTIONS_ROW / 2, "l-b bold"))
        parts.append(mark(rates(rate), y + QUESTIONS_ROW / 2, 1, tip=f"{name}: {percent(rate)} yes"))
        parts.append(text(QUESTIONS_WIDTH - 4, y + 15, percent(rate), "s r"))
    return parts
