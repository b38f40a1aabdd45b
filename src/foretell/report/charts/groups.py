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

LETTER = 6.3
WIDTH = 460
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
    """Groups that follow each other: a line for each forecaster."""
    keys, legend = _legend(names, 46, FIRST_LINE)
    top = FIRST_LINE + legend
    left, right, bottom = 46.0, WIDTH - 14.0, top + 210.0
    y, step = covering(values, bottom, top), (right - left) / len(found.groups)
    middle = [left + (g + 0.5) * step for g in range(len(found.groups))]
    parts: list[Markup] = []
    every = max(1, math.ceil(len(found.groups) * (max(map(len, found.groups)) * LETTER + 8) / (right - left)))
    for g in range(0, len(found.groups), every):
        parts.append(text(middle[g], bottom + 15, found.groups[g], "s m"))
        parts.append(text(middle[g], bottom + 28, f"n {found.n[g]:,}", "xs m k"))
    for s, name in enumerate(names):
        shift = (s - (len(names) - 1) / 2) * min(9.0, step / (len(names) + 1))
        known = _known(found, name)
        run = [(middle[g] + shift, y(one.estimate)) for g, one in known if found.groups[g] != UNKNOWN]
        parts += [polyline(run, f"l-{SERIES[s]} soft bold")] if len(run) > 1 else []
        for g, one in known:
            x = middle[g] + shift
            whisker = line(x, y(one.low), x, y(one.high), f"l-{SERIES[s]}") if math.isfinite(one.low) else None
            dot = mark(x, y(one.estimate), s, tip=_tip(name, g, found, one, decimals))
            parts.append(_drawn(whisker, dot, found, name, g))
    zero = [line(left, y(0), right, y(0), "l-muted dash")] if y.low < 0 < y.high else []
    head = (text(4, 16, title, "h"), keys, y_axis(y, left, right))
    return figure(WIDTH, bottom + 36, f"{title}: {', '.join(names)}", *head, *zero, *parts)


def _dots(found: Breakdown, names: Sequence[str], values: Sequence[float], title: str, decimals: int) -> Chart:
    """Groups without an order: a row for each, with a mark for each forecaster."""
    keys, legend = _legend(names, 4, FIRST_LINE)
    top = FIRST_LINE + legend - 4
    row = max(22.0, 10.0 * len(names) + 8)
    left = max(max(len(shorten(g, 24)) for g in found.groups) * LETTER + 8, 70.0) + 46
    bottom = top + row * len(found.groups)
    x = covering(values, left, WIDTH - 14.0)
    rows: list[Markup] = []
    for g, group in enumerate(found.groups):
        y = top + row * g
        rows += [rect(0, y, WIDTH, row, "f-panel")] if g % 2 else []
        rows.append(text(4, y + row / 2 + 4, shorten(group, 24), tip=group))
        rows.append(text(left - 12, y + row / 2 + 4, f"n {found.n[g]:,}", "xs r k"))
    marks: list[Markup] = []
    for s, name in enumerate(names):
        for g, one in _known(found, name):
            y = top + row * (g + 0.5) + (s - (len(names) - 1) / 2) * 10
            whisker = line(x(one.low), y, x(one.high), y, f"l-{SERIES[s]}") if math.isfinite(one.low) else None
            dot = mark(x(one.estimate), y, s, tip=_tip(name, g, found, one, decimals))
            marks.append(_drawn(whisker, dot, found, name, g))
    zero = [line(x(0), top, x(0), bottom, "l-muted dash")] if x.low < 0 < x.high else []
    axis = x_axis(x, bottom, top, title.partition(" by ")[0])
    head = text(4, 16, title, "h")
    return figure(WIDTH, bottom + 36, f"{title}: {', '.join(names)}", head, keys, *rows, axis, *zero, *marks)


def _known(found: Breakdown, name: str) -> list[tuple[int, Interval]]:
    """The groups in which a forecaster has a score."""
    return [(g, one) for g, one in enumerate(found.scores[name]) if one is not None and math.isfinite(one.estimate)]


def _legend(names: Sequence[str], left: float, y: float) -> tuple[Markup, float]:
    """Keys of the series in as many lines as they need, and the height they take."""
    x, parts = left, list[Markup]()
    start = y
    for s, name in enumerate(names):
        shown = shorten(name, 34)
        need = len(shown) * LETTER + 30
        if x > left and x + need > WIDTH:
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


# A question set: how many targets in each group, and how often the answer was yes.


def question_set(found: Breakdown, *, title: str | None = None) -> Chart:
    """Targets per group as bars, share of yes as dots with a Wilson interval (rows taken as independent)."""
    if not found.groups:
        return empty("No question")
    row, head = 22, 44
    left = max(max(len(shorten(g, 24)) for g in found.groups) * LETTER + 16, 60.0)
    counts = ChartScale(low=0, high=max(1, *found.n), start=left, stop=left + 110)
    rates = ChartScale(low=0, high=1, start=left + 165, stop=WIDTH - 54)
    bottom = head + row * len(found.groups)
    shown = title or f"Questions by {column_name(found.column)}"
    parts = [line(rates(v), head, rates(v), bottom, "l-grid thin") for v in (0, 0.25, 0.5, 0.75, 1)]
    parts += [text(rates(v), bottom + 14, percent(v), "xs m k") for v in (0, 0.5, 1)]
    for i, (name, n, rate) in enumerate(zip(found.groups, found.n, found.base_rate, strict=True)):
        y = head + row * i
        parts.append(text(4, y + 15, shorten(name, 24), tip=name))
        parts.append(
            rect(counts.start, y + 4, counts(n) - counts.start, row - 8, "f-a bar", tip=f"{name}: {n} targets")
        )
        parts.append(text(counts(n) + 5, y + 15, f"{n:,}", "s k"))
        if n and math.isfinite(rate):
            low, high = (float(v[0]) for v in wilson_interval([rate], [n]))
            parts.append(line(rates(low), y + row / 2, rates(high), y + row / 2, "l-b bold"))
            parts.append(mark(rates(rate), y + row / 2, 1, tip=f"{name}: {percent(rate)} yes"))
            parts.append(text(WIDTH - 4, y + 15, percent(rate), "s r"))
    return figure(
        WIDTH,
        bottom + 22,
        f"{shown}: number of targets and share of yes",
        text(4, 16, shown, "h"),
        text(counts.start, head - 8, "targets", "s k"),
        text(rates.start, head - 8, "resolved yes", "s k"),
        *parts,
    )
