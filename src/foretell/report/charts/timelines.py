"""Probabilities over time and over steps: prices and forecasts of a market, beliefs of an agent, many paths."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from foretell.frozen import frozen
from foretell.number_text import number, percent
from foretell.report.charts.svg import (
    BOLD_LETTER,
    DAY,
    HALF,
    LETTER,
    MARKET_STYLE,
    NARROW,
    WIDE,
    Chart,
    ChartScale,
    CsvRow,
    EndLabel,
    SeriesStyle,
    covering,
    date_axis,
    date_scale,
    date_text,
    empty,
    end_labels,
    figure,
    line,
    mark,
    polygon,
    polyline,
    rect,
    responsive,
    series_style,
    series_styles,
    text,
    tick_label,
    y_axis,
)
from foretell.report.markup import Markup, join, shorten

QUARTERS = {p: f"{100 * p:.0f} %" for p in (0.0, 0.25, 0.5, 0.75, 1.0)}
SMALL_LETTER = 6.2
"""Width of a letter in the smallest text."""
HEIGHT, LEFT, TOP, BOTTOM = 250, 48, 40, 210
"""Height of a small plot, and the edges of its grid."""


def _grid(
    x: ChartScale, y: ChartScale, across: Mapping[float, str], under: Iterable[tuple[float, str]], label: str = ""
) -> Markup:
    """Draw horizontal grid lines with labels on the left, and labels below the plot."""
    parts: list[Markup] = []
    for value, shown in across.items():
        parts.append(line(x.start, y(value), x.stop, y(value), "l-grid thin"))
        parts.append(text(x.start - 6, y(value) + 4, shown, "s r k"))
    parts += [text(x(value), y.start + 15, shown, "s m k") for value, shown in under]
    return join(*parts, text((x.start + x.stop) / 2, y.start + 32, label, "s m") if label else None)


def _whole_steps(x: ChartScale) -> list[tuple[int, str]]:
    """Return about eight whole numbers within the scale, with their labels."""
    first, last = int(x.low), int(x.high)
    return [(step, str(step)) for step in range(first, last + 1, max(1, round((last - first) / 8)))]


# Lines over true dates, each named where it ends.

NAMED = 12
"""Maximum number of lines with a name and marks; further ones are thin and grey."""
NOTE_ROW = 14.0
"""Height of a marked time's name above the plot."""
MOST_HITS = 400
"""Maximum number of points of one line that can be read out individually."""
Points = Sequence[tuple[datetime, float]]


@frozen
class DatedLines:
    """Several series of numbers over time."""

    title: str
    lines: Mapping[str, Points]
    """Points by name, oldest first; series beyond the first twelve are drawn in grey."""
    label: str = ""
    """What the numbers are."""
    stepwise: frozenset[str] = frozenset()
    """Names of the lines that are step functions, such as prices."""
    decimals: int = 1
    percent: bool = False
    """Whether the numbers are probabilities."""
    level: float | None = None
    """Value at which to draw a dashed horizontal line."""
    notes: Sequence[tuple[datetime, str]] = ()
    """Times to mark, each with a text."""
    news: Sequence[tuple[datetime, str]] = ()
    """Ticks along the bottom with a tooltip, such as titles of reports; those outside the axis are left out."""
    styles: Mapping[str, SeriesStyle] = field(default_factory=dict[str, SeriesStyle])
    band: Sequence[tuple[datetime, float, float]] = ()
    """Times with the ends of an interval, drawn as an area behind the lines."""

    def format(self, value: float) -> str:
        """Format a number as the chart shows it."""
        return percent(value) if self.percent else number(value, self.decimals)


def dated_plot(shown: DatedLines) -> Chart:
    """Plot every line with its marks over a calendar axis."""
    lines = {name: points for name, points in shown.lines.items() if points}
    if not lines:
        return empty("Nothing to show over time yet")
    return responsive(_dated(shown, lines, WIDE, 380), _dated(shown, lines, NARROW, 280))


def _dated(shown: DatedLines, lines: Mapping[str, Points], width: float, height: float) -> Chart:
    named = list(lines)[:NAMED]
    styles = series_styles(named, shown.styles)
    values = [value for points in lines.values() for _, value in points]
    values += [end for _, low, high in shown.band for end in (low, high)]
    room = min(max(len(name) + 7 for name in named) * BOLD_LETTER, width * 0.36)
    above = 34.0
    top, bottom = above + NOTE_ROW * len(shown.notes), height - 30.0
    times = [at for points in lines.values() for at, _ in points] + [at for at, _ in shown.notes]
    x = date_scale(times, 48, width - room - 24)
    if shown.percent and (min(values) < 0.25 or max(values) > 0.75):
        y = ChartScale(low=0, high=1, start=bottom, stop=top)
    else:
        extra = [] if shown.level is None else [shown.level]
        y = covering([*values, *extra], bottom, top, within=(0.0, 1.0) if shown.percent else None)
    parts: list[Markup] = []
    ends: list[EndLabel] = []
    # Grey lines first, so that named lines are drawn over them.
    for name in [*list(lines)[NAMED:], *named]:
        points, style = lines[name], styles.get(name)
        places = [(x(at.timestamp()), y(value)) for at, value in points]
        drawn = _stepped(places) if name in shown.stepwise else places
        if style is None:
            parts += [polyline(drawn, "l-axis thin faint")] if len(drawn) > 1 else []
            continue
        bold = "bold" if name in shown.stepwise else "line"
        parts += [polyline(drawn, f"{style.stroke} {bold}")] if len(drawn) > 1 else []
        parts += _dated_marks(shown, name, style, x, y, quiet=name in shown.stepwise)
        value, (last, height_of_last) = shown.format(points[-1][1]), places[-1]
        ends.append(EndLabel(name=name, style=style, x=last, y=height_of_last, value=value))
    more = len(lines) - NAMED
    return figure(
        width,
        height,
        f"{shown.title}: {', '.join(named)} over time",
        text(4, 16, shorten(shown.title, int(width / 8)), "h", tip=shown.title),
        text(width - 4, 16, f"grey: {more} more", "s r k") if more > 0 else Markup(""),
        y_axis(y, x.start, x.stop, percent=shown.percent),
        date_axis(x, bottom, top, width),
        *([line(x.start, y(shown.level), x.stop, y(shown.level), "l-muted dash")] if shown.level is not None else []),
        _band(shown.band, x, y),
        *_dated_notes(shown.notes, x, above, bottom, width),
        _news_ticks(shown.news, x, bottom),
        *parts,
        end_labels(ends, x.stop + 18, room, top, bottom),
        rows=[_dated_row(shown, name, at, value) for name, points in lines.items() for at, value in points],
    )


def _band(band: Sequence[tuple[datetime, float, float]], x: ChartScale, y: ChartScale) -> Markup:
    if len(band) < 2:
        return Markup("")
    lower = [(x(at.timestamp()), y(low)) for at, low, _ in band]
    upper = [(x(at.timestamp()), y(high)) for at, _, high in band]
    return polygon([*lower, *reversed(upper)], "f-a band")


def _dated_row(shown: DatedLines, name: str, at: datetime, value: float) -> CsvRow:
    return {"name": name, "at": at.isoformat(), shown.label or "value": value}


def _stepped(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points of a step line, in which a value is valid until the next one."""
    stepped: list[tuple[float, float]] = []
    for place in places:
        stepped += [(place[0], stepped[-1][1]), place] if stepped else [place]
    return stepped


def _dated_marks(
    shown: DatedLines, name: str, style: SeriesStyle, x: ChartScale, y: ChartScale, *, quiet: bool
) -> list[Markup]:
    """Draw a mark for each number; the marks of a step line are invisible and only have tooltips."""
    points = shown.lines[name]
    stride = -(-len(points) // MOST_HITS)
    markups: list[Markup] = []
    for at, value in points[::stride]:
        tip = f"{name}, {date_text(at)}: {shown.format(value)}"
        place = (x(at.timestamp()), y(value))
        if quiet:
            markups.append(rect(place[0] - 2, place[1] - 2, 4, 4, f"f-{style.colour} hit", tip=tip))
        else:
            markups.append(mark(*place, style, tip=tip, together=at.isoformat(timespec="minutes")))
    return markups


def _dated_notes(
    notes: Sequence[tuple[datetime, str]], x: ChartScale, top: float, bottom: float, width: float
) -> list[Markup]:
    """Draw a line for each time, named above the plot; the latest is on top, so that no line crosses a name."""
    markups: list[Markup] = []
    for row, (at, note) in enumerate(sorted(notes, reverse=True)):
        place, y = x(at.timestamp()), top + NOTE_ROW * row
        fits = len(note) * LETTER < place or place > width / 2
        name = shorten(note, min(40, int(((place if fits else width - place) - 6) / LETTER)))
        markups.append(line(place, y - 10, place, bottom, "l-c thin"))
        markups.append(text(place + (-5 if fits else 5), y, name, "s r" if fits else "s", tip=note))
    return markups


def _news_ticks(news: Sequence[tuple[datetime, str]], x: ChartScale, bottom: float) -> Markup:
    visible = [
        (x(at.timestamp()), f"{date_text(at)}: {title}") for at, title in news if x.low <= at.timestamp() <= x.high
    ]
    if not visible:
        return Markup("")
    ticks = [rect(place - 1.5, bottom - 8, 3, 8, "f-muted", tip=shorten(title, 160)) for place, title in visible]
    return join(
        *ticks, text(x.stop + 18, bottom + 15, "▮ reports", "s k", tip="Reports that all entries were shown, by date")
    )


# One market over time: its price, forecasts and outcome.


@frozen
class MarketHistory:
    """What is known about one market."""

    title: str
    prices: Points
    """Prices, oldest first."""
    forecasts: Mapping[str, Points] = field(default_factory=dict[str, Points])
    """Forecasts by forecaster."""
    outcome: float | None = None
    closes: datetime | None = None
    resolved: datetime | None = None
    news: Sequence[tuple[datetime, str]] = ()
    """Reports with their dates."""
    styles: Mapping[str, SeriesStyle] = field(default_factory=dict[str, SeriesStyle])
    """Marks that forecasters have on the rest of the page."""


def history_plot(market: MarketHistory) -> Chart:
    """Plot the price as a step line, and each forecaster's probabilities with their own mark."""
    if not market.prices and not any(market.forecasts.values()):
        return empty("No price and no forecast yet")
    lines = {"market": market.prices} if market.prices else {}
    ended = {1.0: "came true", 0.0: "did not come true"}.get(market.outcome or 0.0, f"paid {market.outcome}")
    note = "" if market.outcome is None else ended
    notes = [(market.closes, f"closes: {note}" if note and not market.resolved else "closes")] if market.closes else []
    notes += [(market.resolved, f"resolved: {note}")] if market.resolved and note else []
    return dated_plot(
        DatedLines(
            title=market.title,
            lines={**lines, **market.forecasts},
            label="probability",
            stepwise=frozenset({"market"}),
            percent=True,
            notes=notes,
            news=market.news,
            styles={"market": MARKET_STYLE, **market.styles},
        )
    )


# Many paths in one chart: each one as a thin line, their mean as a bold one.

MOST_LINES = 80
"""Maximum number of thin lines, since more merge into a grey area; if there are more, they are sampled evenly."""
LEAST_MEAN = 0.2
"""Share of all paths that must reach a step for the mean to be drawn there."""
Course = Sequence[tuple[int, float]]
"""Step and value of each point."""


def paths_plot(
    courses: Sequence[Course], title: str, *, label: str = "step", level: float | None = None, unit: bool = True
) -> Chart:
    """Plot values by step; `level` is drawn as a dashed line, `unit` fixes the scale to 0 … 1."""
    shown = [course for course in courses if course]
    if not shown:
        return empty("No step to show")
    mean = mean_course(shown)
    thin = shown
    if len(shown) > MOST_LINES:
        thin = [shown[i * len(shown) // MOST_LINES] for i in range(MOST_LINES)]
    steps = [step for course in shown for step, _ in course]
    values = [value for course in thin for _, value in course]
    x = ChartScale(low=min(steps), high=max(max(steps), min(steps) + 1), start=LEFT, stop=HALF - 16)
    y = ChartScale(low=0, high=1, start=BOTTOM, stop=TOP) if unit else covering([*values, 0.0, 1.0], BOTTOM, TOP)
    lines: list[Markup] = []
    for course in thin:
        places = [(x(step), y(value)) for step, value in course]
        alone = len(places) == 1
        lines.append(mark(*places[0], SeriesStyle("muted", 10)) if alone else polyline(places, "l-muted thin soft"))
    if len(mean) > 1:
        lines.append(polyline([(x(step), y(value)) for step, value in mean], "l-a bold"))
    return figure(
        HALF,
        HEIGHT,
        f"{title}: {len(shown)} courses; mean " + ", ".join(f"{value:.2f} at {step}" for step, value in mean[:12]),
        text(4, 16, shorten(title, 60), "h", tip=title),
        _grid(x, y, {tick: tick_label(tick) for tick in y.ticks(4)}, _whole_steps(x), label),
        *([line(x.start, y(level), x.stop, y(level), "l-muted dash")] if level is not None else []),
        *lines,
        *(mark(x(step), y(value), 0, tip=f"mean at {step}: {value:.3f}") for step, value in mean),
        rows=[{label: step, "mean": value} for step, value in mean],
    )


def mean_course(courses: Sequence[Course]) -> list[tuple[int, float]]:
    """Return the mean at every step over the paths that reach it.

    >>> mean_course([[(0, 0.2), (1, 0.4)], [(0, 0.4)]])
    [(0, 0.3), (1, 0.4)]
    """
    at: dict[int, list[float]] = {}
    for course in courses:
        for step, value in course:
            at.setdefault(step, []).append(value)
    enough = LEAST_MEAN * len(courses)
    return [(step, round(sum(at[step]) / len(at[step]), 9)) for step in sorted(at) if len(at[step]) >= enough]


# The time spans of questions: one bar each, from when it opened to when it was decided.

MOST_SPANS = 60
"""Maximum number of bars; of more spans, bars are drawn for some, spaced evenly in the order of their ends."""


@frozen
class DatedSpan:
    """From when to when something lasted."""

    name: str
    start: datetime
    end: datetime

    @property
    def days(self) -> float:
        """Its length in days."""
        return (self.end - self.start).total_seconds() / DAY


def spans_plot(spans: Sequence[DatedSpan], title: str) -> Chart:
    """Plot one bar for each span, those that end first on top; the longer a span, the darker its bar."""
    if not spans:
        return empty("No time span to show")
    shown = sorted(spans, key=lambda span: (span.end, span.start, span.name))
    if len(shown) > MOST_SPANS:
        shown = [shown[i * len(shown) // MOST_SPANS] for i in range(MOST_SPANS)]
    return responsive(*(_spans(shown, len(spans), title, width) for width in (WIDE, NARROW)))


def _spans(shown: Sequence[DatedSpan], count: int, title: str, width: float) -> Chart:
    longest, row, head = max(span.days for span in shown), 13.0, 30.0
    letters = 38 if width == WIDE else 18
    left = max(len(shorten(span.name, letters)) for span in shown) * SMALL_LETTER + 12
    bottom = head + row * len(shown)
    x = date_scale([at for span in shown for at in (span.start, span.end)], left, width - 16)
    parts: list[Markup] = []
    for i, span in enumerate(shown):
        y, step = head + row * i, 4 + round(4 * span.days / longest) if longest else 4
        place = x(span.start.timestamp())
        tip = f"{span.name}: {date_text(span.start)} to {date_text(span.end)}, {number(span.days, 0)} days"
        parts.append(text(4, y + 10, shorten(span.name, letters), "xs k", tip=span.name))
        parts.append(rect(place, y + 1, max(2.0, x(span.end.timestamp()) - place), row - 2, f"f-d{step}", tip=tip))
    some = f", {len(shown)} of {count}" if count > len(shown) else ""
    return figure(
        width,
        bottom + 22,
        f"{title}: {count} time spans, the longest {number(longest, 0)} days",
        text(4, 16, f"{title}{some}", "h"),
        date_axis(x, bottom, head, width),
        *parts,
        rows=[
            {"name": span.name, "start": span.start.isoformat(), "end": span.end.isoformat(), "days": span.days}
            for span in shown
        ],
    )


# The belief of an agent after each step, and from many trials to one number.


@frozen
class Trajectory:
    """The probability of one target in one trial after each step."""

    name: str
    points: Sequence[tuple[int, float]]
    """Step and probability; step 0 is before any research."""
    final: float | None = None
    """The trial's final answer."""
    findings: Mapping[int, str] = field(default_factory=dict[int, str])
    """What was found, by step."""
    tools: Mapping[int, str] = field(default_factory=dict[int, str])
    """The tool that was used, such as `web_search`, by step."""


def trajectory_plot(
    trials: Sequence[Trajectory], title: str, *, combined: float | None = None, price: float | None = None
) -> Chart:
    """Plot all trials in one chart; the combined answer and the market price are dashed horizontal lines."""
    shown = [trial for trial in trials if trial.points or trial.final is not None]
    if not shown:
        return empty("No belief yet")
    return responsive(*(_trajectories(shown, title, (combined, price), width) for width in (WIDE, NARROW)))


def _trajectories(
    shown: Sequence[Trajectory], title: str, across: tuple[float | None, float | None], width: float
) -> Chart:
    last = max([1, *(step for trial in shown for step, _ in trial.points)])
    room = min(max(len(trial.name) for trial in shown) + 8, 24) * LETTER
    x = ChartScale(low=0, high=last, start=LEFT, stop=width - room - 40)
    tall = HEIGHT + (70 if width == WIDE else 20)
    bottom = BOTTOM + tall - HEIGHT
    values = [p for trial in shown for _, p in trial.points] + [p for trial in shown if (p := trial.final) is not None]
    # From 0 to the next quarter above all values, so that small changes are visible and questions are comparable.
    highest = max([*values, *(value for value in across if value is not None)])
    y = ChartScale(low=0, high=min(1.0, (int(highest * 4.0 - 1e-9) + 1) / 4), start=bottom, stop=TOP)
    ends = [trial.points[-1][1] if trial.final is None else trial.final for trial in shown]
    labels = [
        EndLabel(name=trial.name, style=series_style(i), x=x.stop + 12, y=y(end), value=percent(end))
        for i, (trial, end) in enumerate(zip(shown, ends, strict=True))
    ][:NAMED]
    answer: list[Markup] = []
    for value, name, style in zip(across, ("answer", "market"), (SeriesStyle("ink", 0), MARKET_STYLE), strict=True):
        if value is not None:
            answer.append(line(x.start, y(value), x.stop + 20, y(value), f"{style.stroke} thin dash"))
            labels.append(EndLabel(name=name, style=style, x=x.stop + 20, y=y(value), value=percent(value)))
    return figure(
        width,
        tall,
        "Belief after each step: "
        + "; ".join(f"{trial.name} {percent(end)}" for trial, end in list(zip(shown, ends, strict=True))[:12]),
        text(4, 16, shorten(title, int(width / 8)), "h", tip=title),
        _grid(x, y, {p: label for p, label in QUARTERS.items() if p <= y.high}, _named_steps(shown, x), "step"),
        *(_belief(trial, i, x, y) for i, trial in enumerate(shown)),
        *answer,
        end_labels(labels, x.stop + 34, room, TOP, bottom),
        rows=[
            {"trial": trial.name, "step": step, "probability": p}
            for trial in shown
            for step, p in (*trial.points, *([("answer", trial.final)] if trial.final is not None else []))
        ],
    )


def _named_steps(shown: Sequence[Trajectory], x: ChartScale) -> list[tuple[int, str]]:
    """Label each step by what the trials did, or by its number if they did different things or labels would touch."""
    used = {step: {trial.tools[step] for trial in shown if step in trial.tools} for step, _ in _whole_steps(x)}
    names = {step: _tool_word(*tools) for step, tools in used.items() if len(tools) == 1}
    names |= {0: "start"} if names else {}
    room = (x.stop - x.start) / max(1, len(used) - 1)
    if max(map(len, names.values()), default=0) * LETTER + 6 > room:
        return _whole_steps(x)
    return [(step, names.get(step, label)) for step, label in _whole_steps(x)]


TOOL_WORDS = {"web_search": "search", "summarize_results": "summary", "lookup_url": "page", "submit": "answer"}
"""Short words for tools; others lose their verb: `fetch_series` is "series"."""


def _tool_word(tool: str) -> str:
    return TOOL_WORDS.get(tool) or tool.removeprefix("fetch_").replace("_", " ")


def _belief_tip(trial: Trajectory, step: int, p: float) -> str:
    finding, tool = trial.findings.get(step), trial.tools.get(step)
    done = f" ({_tool_word(tool)})" if tool else ""
    return f"{trial.name}, step {step}{done}: {percent(p)}" + (f" · {shorten(finding, 120)}" if finding else "")


def _belief(trial: Trajectory, series: int, x: ChartScale, y: ChartScale) -> Markup:
    style = series_style(series)
    places = [(x(step), y(p)) for step, p in trial.points]
    parts: list[Markup] = [polyline(places, f"{style.stroke} bold")] if len(places) > 1 else []
    parts += [
        mark(x(step), y(p), series, tip=_belief_tip(trial, step, p), together=f"s{step}") for step, p in trial.points
    ]
    if trial.final is not None:
        at = x.stop + 12
        parts.append(mark(at, y(trial.final), series, tip=f"{trial.name} answered {percent(trial.final)}"))
        if places:
            parts.append(line(*places[-1], at, y(trial.final), f"l-{style.colour} thin dash"))
    return join(*parts)


COLUMN = 340
"""Width of a figure in the side column of a page."""


def stages_plot(rows: Sequence[tuple[str, float]], trials: int) -> Chart:
    """Plot one probability per row on a common scale: the first `trials` rows are raw, the last one is the answer."""
    if not rows:
        return empty("No answer yet")
    height, bottom = 22, 8 + 22 * len(rows)
    x = ChartScale(low=0, high=1, start=170, stop=COLUMN - 64)
    parts = [rect(0, bottom - height, COLUMN, height, "f-panel")]
    for p in (0.0, 0.5, 1.0):
        parts += [line(x(p), 4, x(p), bottom, "l-grid thin"), text(x(p), bottom + 14, f"{100 * p:.0f} %", "s m k")]
    for i, (name, p) in enumerate(rows):
        y, raw = 8 + height * (i + 0.5), i < trials
        parts += [
            text(4, y + 4, shorten(name, 22), "s" if raw else "w", tip=name if len(name) > 22 else None),
            mark(x(p), y, SeriesStyle("muted", 0) if raw else SeriesStyle("a", 2), tip=f"{name}: {percent(p)}"),
            text(COLUMN - 4, y + 4, percent(p), "s r" if raw else "r w"),
        ]
    title = "From trials to the answer: " + "; ".join(f"{name} {percent(p)}" for name, p in rows[:20])
    csv_rows = [{"stage": name, "probability": p} for name, p in rows]
    return figure(COLUMN, bottom + 22, title, *parts, rows=csv_rows)
