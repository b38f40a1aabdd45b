"""Scores and counts by group, as lines, dots or bars, and heat maps that compare every pair of forecasters."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.bootstrap import Interval
from foretell.metrics.calibration import wilson_interval
from foretell.number_text import number, percent, signed
from foretell.report.charts.svg import (
    BOLD_LETTER,
    HALF,
    LETTER,
    NARROW,
    WIDE,
    Chart,
    ChartScale,
    CsvRow,
    EndLabel,
    SeriesStyle,
    covering,
    empty,
    end_labels,
    figure,
    legend,
    line,
    mark,
    polygon,
    polyline,
    rect,
    responsive,
    series_styles,
    text,
    tick_label,
    x_axis,
    y_axis,
)
from foretell.report.markup import Markup, element, join, shorten
from foretell.report.numbers import column_name, estimate
from foretell.scoring.baselines import MARKET_PRICE
from foretell.scoring.breakdown import UNKNOWN, Breakdown
from foretell.scoring.verdict import Verdict

MOST = 12
"""Maximum number of forecasters in one chart."""
FEW_LINES = 3
"""Maximum number of lines that are drawn with whiskers, if the market is among them."""
PANEL = 110.0
"""Minimum width of the plot in a panel."""
ROW, HEAD, FOOT = 15.0, 22.0, 20.0
"""Heights in a panel: of a forecaster's row, of the heading above and of the axis below."""


def score_by_group(
    breakdown: Breakdown,
    *,
    label: str,
    decimals: int = 1,
    zero: bool = False,
    styles: Mapping[str, SeriesStyle] | None = None,
) -> Chart:
    """Plot the scores of up to twelve forecasters by group, with intervals; `zero` includes the line of no difference.

    A forecaster that answered clearly fewer targets of a group than the others is drawn faintly there, because its
    score is on other questions.
    """
    names = list(breakdown.scores)[:MOST]
    values = [v for name in names for i in breakdown.scores[name] if i is not None for v in (i.estimate, i.low, i.high)]
    if not any(math.isfinite(v) for v in values):
        return empty(f"No score by {column_name(breakdown.column)}")
    drawn = _ByGroup(
        breakdown=breakdown,
        names=names,
        values=[*values, *[0.0] * zero],
        title=f"{label} by {column_name(breakdown.column)}",
        decimals=decimals,
        styles=series_styles(names, styles),
    )
    draw = drawn.lines if breakdown.ordered and 2 <= len(breakdown.groups) <= 30 else drawn.panels
    return responsive(draw(WIDE), draw(NARROW))


@frozen
class _ByGroup:
    breakdown: Breakdown
    names: Sequence[str]
    values: Sequence[float]
    title: str
    decimals: int
    styles: Mapping[str, SeriesStyle]

    def lines(self, width: float) -> Chart:
        """Draw ordered groups: a line for each forecaster, with its name at the end."""
        breakdown = self.breakdown
        # Whiskers of many lines would hide each other, so only the market has its interval, as a band.
        banded = MARKET_PRICE if MARKET_PRICE in self.names and len(self.names) > FEW_LINES else None
        top = 44.0 if banded else 34.0
        room = min(190.0, max(60.0, (max(len(name) for name in self.names) + 1) * BOLD_LETTER), width * 0.36)
        left, right, bottom = 46.0, width - room - 22, top + 210.0
        values = [v for name in self.names for _, score in _known(breakdown, name) for v in _shown(score, name, banded)]
        y, step = covering(values if banded else self.values, bottom, top), (right - left) / len(breakdown.groups)
        middle = [left + (g + 0.5) * step for g in range(len(breakdown.groups))]
        parts: list[Markup] = []
        stride = max(
            1, math.ceil(len(breakdown.groups) * (max(map(len, breakdown.groups)) * LETTER + 8) / (right - left))
        )
        for g in range(0, len(breakdown.groups), stride):
            parts.append(text(middle[g], bottom + 15, breakdown.groups[g], "s m"))
            parts.append(text(middle[g], bottom + 28, f"n {breakdown.n[g]:,}", "xs m k"))
        ends: list[EndLabel] = []
        if banded:
            inside = [
                (middle[g], y(score.low), y(score.high))
                for g, score in _known(breakdown, banded)
                if math.isfinite(score.low)
            ]
            edge = [(x, low) for x, low, _ in inside] + [(x, high) for x, _, high in reversed(inside)]
            parts += [polygon(edge, f"f-{self.styles[banded].colour} band")] if len(inside) > 1 else []
        for s, name in enumerate(self.names):
            style = self.styles[name]
            shift = 0.0 if banded else (s - (len(self.names) - 1) / 2) * min(9.0, step / (len(self.names) + 1))
            known = _known(breakdown, name)
            run = [(middle[g] + shift, y(score.estimate)) for g, score in known if breakdown.groups[g] != UNKNOWN]
            parts += [polyline(run, f"{style.stroke} soft bold")] if len(run) > 1 else []
            for g, score in known:
                x = middle[g] + shift
                drawn = math.isfinite(score.low) and not banded
                whisker = line(x, y(score.low), x, y(score.high), f"l-{style.colour}") if drawn else None
                dot = mark(x, y(score.estimate), style, tip=self._tip(name, g, score), together=f"g{g}")
                parts.append(_drawn(whisker, dot, breakdown, name, g))
            if run:
                ends.append(EndLabel(name=name, style=style, x=run[-1][0], y=run[-1][1]))
        zero = [line(left, y(0), right, y(0), "l-muted dash")] if y.low < 0 < y.high else []
        return figure(
            width,
            bottom + 36,
            f"{self.title}: {', '.join(self.names)}",
            text(4, 16, self.title, "h"),
            *([text(4, 29, "band: 95 % interval of the market", "xs k")] if banded else []),
            y_axis(y, left, right),
            *zero,
            *parts,
            end_labels(ends, right + 16, room, top, bottom),
            rows=self._rows(),
        )

    def panels(self, width: float) -> Chart:
        """Draw unordered groups: a panel for each, with a row for each forecaster."""
        breakdown = self.breakdown
        left = min(max(len(shorten(name, 22)) for name in self.names) * LETTER + 10, width * 0.5)
        across = max(1, min(len(breakdown.groups), int(width / (left + PANEL))))
        wide, tall = width / across, HEAD + ROW * len(self.names) + FOOT
        x = covering(self.values, left, wide - 16)
        parts: list[Markup] = []
        for g, group in enumerate(breakdown.groups):
            here = element(
                "g",
                *self._panel(g, group, x, wide),
                transform=f"translate({wide * (g % across):g} {28 + tall * (g // across):g})",
            )
            parts.append(here)
        height = 28 + tall * math.ceil(len(breakdown.groups) / across) + 8
        title = text(4, 16, self.title, "h")
        return figure(width, height, f"{self.title}: {', '.join(self.names)}", title, *parts, rows=self._rows())

    def _panel(self, g: int, group: str, x: ChartScale, wide: float) -> list[Markup]:
        breakdown, bottom = self.breakdown, HEAD + ROW * len(self.names)
        room = int((wide - 70) / LETTER)
        parts = [
            text(4, 14, shorten(group, room), "w", tip=group),
            text(wide - 16, 14, f"n {breakdown.n[g]:,}", "xs r k"),
        ]
        for tick in x.ticks(3):
            parts += [
                line(x(tick), HEAD, x(tick), bottom, "l-grid thin"),
                text(x(tick), bottom + 12, tick_label(tick), "xs m k"),
            ]
        parts += [line(x(0), HEAD, x(0), bottom, "l-muted dash")] if x.low < 0 < x.high else []
        for s, name in enumerate(self.names):
            y, style, score = HEAD + ROW * (s + 0.5), self.styles[name], breakdown.scores[name][g]
            parts.append(text(6, y + 4, shorten(name, 22), "xs k", tip=name if len(name) > 22 else None))
            if score is None or not math.isfinite(score.estimate):
                continue
            whisker = line(x(score.low), y, x(score.high), y, f"l-{style.colour}") if math.isfinite(score.low) else None
            dot = mark(x(score.estimate), y, style, tip=self._tip(name, g, score))
            parts.append(_drawn(whisker, dot, breakdown, name, g))
        return parts

    def _tip(self, name: str, g: int, interval: Interval) -> str:
        numbers = f"{estimate(interval, self.decimals)}, n {self.breakdown.answered[name][g]:,}"
        return f"{name}, {self.breakdown.groups[g]}: {numbers}"

    def _rows(self) -> list[CsvRow]:
        return [
            {
                column_name(self.breakdown.column): self.breakdown.groups[g],
                "forecaster": name,
                self.title.partition(" by ")[0]: score.estimate,
                "low": score.low,
                "high": score.high,
                "n": self.breakdown.answered[name][g],
            }
            for name in self.names
            for g, score in _known(self.breakdown, name)
        ]


def _shown(score: Interval, name: str, banded: str | None) -> tuple[float, ...]:
    """Return the values that are drawn of a score: all of the market's, the estimates of the others."""
    return (score.estimate, score.low, score.high) if name == banded and math.isfinite(score.low) else (score.estimate,)


def _known(breakdown: Breakdown, name: str) -> list[tuple[int, Interval]]:
    """Return the groups in which a forecaster has a score."""
    return [
        (g, score)
        for g, score in enumerate(breakdown.scores[name])
        if score is not None and math.isfinite(score.estimate)
    ]


def _drawn(whisker: Markup | None, dot: Markup, breakdown: Breakdown, name: str, g: int) -> Markup:
    """Draw whisker and mark, faintly if the forecaster answered under 90 % of what the most complete one did."""
    fullest = max(counts[g] for counts in breakdown.answered.values())
    faint = breakdown.answered[name][g] < 0.9 * fullest
    return element("g", whisker, dot, class_="soft") if faint else join(whisker, dot)


# A question set: how many targets in each group, and how often the answer was yes.


def question_set(breakdown: Breakdown) -> Chart:
    """Plot the targets per group as bars, and the share of yes as dots with Wilson intervals (rows independent)."""
    if not breakdown.groups:
        return empty("No question")
    row, head = 22, 44
    left = max(max(len(shorten(g, 24)) for g in breakdown.groups) * LETTER + 16, 60.0)
    counts = ChartScale(low=0, high=max(1, *breakdown.n), start=left, stop=left + 110)
    rates = ChartScale(low=0, high=1, start=left + 165, stop=HALF - 54)
    bottom = head + row * len(breakdown.groups)
    shown = f"Questions by {column_name(breakdown.column)}"
    parts = [line(rates(v), head, rates(v), bottom, "l-grid thin") for v in (0, 0.25, 0.5, 0.75, 1)]
    parts += [text(rates(v), bottom + 14, percent(v), "xs m k") for v in (0, 0.5, 1)]
    for i, (name, n, rate) in enumerate(zip(breakdown.groups, breakdown.n, breakdown.base_rate, strict=True)):
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
            parts.append(text(HALF - 4, y + 15, percent(rate), "s r"))
    return figure(
        HALF,
        bottom + 22,
        f"{shown}: number of targets and share of yes",
        text(4, 16, shown, "h"),
        text(counts.start, head - 8, "targets", "s k"),
        text(rates.start, head - 8, "resolved yes", "s k"),
        *parts,
        rows=[
            {column_name(breakdown.column): name, "targets": n, "share of yes": rate}
            for name, n, rate in zip(breakdown.groups, breakdown.n, breakdown.base_rate, strict=True)
        ],
    )


# Counts of several kinds by group, such as the uses of tools by source of the questions.


def stacked_bars(rows: Mapping[str, Mapping[str, float]], *, label: str, decimals: int = 1) -> Chart:
    """Plot one bar for each row, divided into parts by name; the parts have the same order and colour in all rows."""
    names = list(dict.fromkeys(name for parts in rows.values() for name, value in parts.items() if value > 0))
    if not names:
        return empty(f"No {label}")
    return responsive(*(_stacked(rows, names, label, decimals, width) for width in (WIDE, NARROW)))


def _stacked(
    rows: Mapping[str, Mapping[str, float]], names: Sequence[str], label: str, decimals: int, width: float
) -> Chart:
    styles, row = series_styles(names), 22.0
    longest = 34 if width == WIDE else 20
    left = max(len(shorten(name, longest)) for name in rows) * LETTER + 16
    keys, tall = legend([(name, SeriesStyle(styles[name].colour, 1)) for name in names], 4, 34, width - 8)
    head, x = (
        28 + tall,
        ChartScale(low=0, high=max(sum(parts.values()) for parts in rows.values()), start=left, stop=width - 48),
    )
    bottom = head + row * len(rows)
    parts: list[Markup] = []
    for i, (name, values) in enumerate(rows.items()):
        y, start = head + row * i, 0.0
        parts.append(text(4, y + 15, shorten(name, longest), tip=name))
        for part in names:
            value = values.get(part, 0.0)
            if value > 0:
                tip = f"{name}, {part}: {number(value, decimals)}"
                wide = x(start + value) - x(start)
                parts.append(rect(x(start), y + 4, wide, row - 8, f"f-{styles[part].colour} bar", tip=tip))
                start += value
        parts.append(text(x(start) + 5, y + 15, number(start, decimals), "s k"))
    return figure(
        width,
        bottom + 36,
        f"{label}: {', '.join(rows)}",
        text(4, 16, label, "h"),
        keys,
        x_axis(x, bottom, head, ""),
        *parts,
        rows=[
            {"name": name, "part": part, "value": values.get(part, 0.0)}
            for name, values in rows.items()
            for part in names
        ],
    )


# Heat maps of every forecaster against every other: paired differences, and how far they are apart.


MOST_ROWS = 30
ROOMY = 12
"""Maximum number of rows for which cells are large."""
NAME = 28
MIDDLE = 4
"""Index of the neutral colour among the nine steps."""


def verdict_heatmap(names: Sequence[str], verdicts: Iterable[Verdict], *, label: str, decimals: int = 1) -> Chart:
    """Draw a heat map of row minus column; blue if the row is better. At most 30 rows, in the order given."""
    size = min(len(names), MOST_ROWS)
    if size < 2:
        return empty("Fewer than two forecasters to compare")
    pairs: dict[tuple[str, str], Verdict] = {
        (way.first, way.second): way for verdict in verdicts for way in (verdict, verdict.swapped())
    }
    nothing = np.full((size, size), np.nan)
    diff, gain = nothing.copy(), nothing
    for i, j in np.argwhere(~np.eye(size, dtype=np.bool_)).tolist():
        if (verdict := pairs.get((names[i], names[j]))) is not None:
            diff[i, j], gain[i, j] = verdict.diff, verdict.gain
    roomy = size <= ROOMY
    shown = [[_brief(v, decimals, tight=not roomy) for v in row] for row in diff]
    tall = 32.0 if roomy else 26.0
    wide = max(len(value) for row in shown for value in row) * (7.4 if roomy else 6.6) + 6
    steps = _steps(gain)
    left, heads = _names(names[:size], wide, tall)
    cells, rows = list[Markup](), list[CsvRow]()
    for i, j in np.argwhere(~np.eye(size, dtype=np.bool_)).tolist():
        x, y, step, verdict = left + j * wide, 24 + i * tall, steps[i, j], pairs.get((names[i], names[j]))
        sign = "" if verdict is None else verdict.mark or verdict.symbol
        tip = f"{names[i]} and {names[j]} share no target" if verdict is None else verdict.sentence
        if verdict is not None:
            numbers = {name: float(getattr(verdict, name)) for name in ("diff", "low", "high", "p", "p_corrected")}
            rows.append({"row": names[i], "column": names[j], **numbers, "n": verdict.n, "says": verdict.says})
        middle, style = x + wide / 2 - 0.5, f"m f-o{step}"
        bold = " w" if verdict is not None and verdict.decided else ""
        cells.append(rect(x, y, wide - 1, tall - 1, f"f-d{step}", tip=tip))
        cells.append(text(middle, y + tall / 2 - 2.5, shown[i][j], f"{'s' if roomy else 'xs'} {style}{bold}"))
        cells.append(text(middle, y + tall - 3.5, sign, f"xs {style}"))
    bottom = 24 + size * tall
    note = f"; the first {MOST_ROWS} of {len(names)} forecasters" if len(names) > MOST_ROWS else ""
    beside = left + 18 * (2 * MIDDLE + 1)
    return figure(
        max(left + size * wide + 8, beside + 400),
        bottom + 40,
        f"{label}: paired differences of {size} forecasters, row minus column",
        heads,
        *cells,
        *(rect(left + 18 * i, bottom + 12, 17, 10, f"f-d{i}") for i in range(2 * MIDDLE + 1)),
        text(left, bottom + 34, "row worse", "xs k"),
        text(beside - 1, bottom + 34, "row better", "xs r k"),
        text(beside + 12, bottom + 21, f"Row minus column{note}. ≈ equal, ~ could be chance, ? too few", "xs k"),
        text(beside + 12, bottom + 34, "* p < 0.05, ** < 0.01, *** < 0.001; † chance, corrected for all pairs", "xs k"),
        rows=rows,
    )


def distance_heatmap(names: Sequence[str], distance: Floats, *, label: str, decimals: int = 3) -> Chart:
    """Draw a heat map of the distance between forecasters; darker is further apart. At most 30, in the order given."""
    size = min(len(names), MOST_ROWS)
    if size < 2:
        return empty("Fewer than two forecasters to compare")
    shown = distance[:size, :size]
    known = np.isfinite(shown) & ~np.eye(size, dtype=np.bool_)
    largest = float(np.max(shown, where=np.isfinite(shown), initial=0.0))
    wide, tall = 46.0, 26.0
    left, heads = _names(names[:size], wide, tall)
    cells: list[Markup] = []
    for i, j in np.argwhere(known).tolist():
        value, x, y = float(shown[i, j]), left + j * wide, 24 + i * tall
        step = MIDDLE + round(MIDDLE * value / (largest or 1.0))
        tip = f"{names[i]} and {names[j]}: {number(value, 4)}"
        cells.append(rect(x, y, wide - 1, tall - 1, f"f-d{step}", tip=tip))
        cells.append(text(x + wide / 2, y + tall / 2 + 4, number(value, decimals), f"xs m f-o{step}"))
    note = f"{label}; the first {MOST_ROWS} of {len(names)}" if len(names) > MOST_ROWS else label
    return figure(
        left + size * wide + 8,
        24 + size * tall + 24,
        f"{label}: {size} forecasters, largest {number(largest, decimals)}",
        heads,
        *cells,
        text(left, 24 + size * tall + 16, note, "xs k"),
        rows=[
            {"first": names[i], "second": names[j], "distance": float(shown[i, j])}
            for i, j in np.argwhere(known).tolist()
        ],
    )


def _names(names: Sequence[str], wide: float, tall: float) -> tuple[float, Markup]:
    """Return where the cells start, and the row names with numbers, which are repeated as column headings."""
    left = max(len(shorten(name, NAME)) for name in names) * 6.5 + 36
    parts: list[Markup] = []
    for i, name in enumerate(names):
        middle, shown = 24 + (i + 0.5) * tall, shorten(name, NAME)
        parts.append(text(left + (i + 0.5) * wide, 16, str(i + 1), "s m k", tip=name))
        parts.append(text(22, middle + 4, str(i + 1), "s r k"))
        parts.append(text(30, middle + 4, shown, tip=name if shown != name else None))
    return left, join(*parts)


def _steps(better: Floats) -> Ints:
    """Return colour steps from 0 (worse) to 8 (better); the largest fifth of the differences share the last step."""
    finite = np.abs(better[np.isfinite(better) & (better != 0)])
    scale = float(np.quantile(finite, 0.8)) if len(finite) else 1.0
    share = np.clip(np.nan_to_num(better / scale), -1, 1)
    return np.rint(MIDDLE * share).astype(np.int64) + MIDDLE


def _brief(value: float, decimals: int, *, tight: bool) -> str:
    """Format a difference to fit its cell: in a large map 12.3 becomes 12, and 0.012 becomes .012."""
    shown = signed(value, 0 if tight and abs(value) >= 10 else decimals)
    return shown.replace("0.", ".", 1) if decimals > 1 and shown.lstrip("+−").startswith("0.") else shown
