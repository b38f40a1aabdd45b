"""Probabilities over time and over steps: prices and forecasts of a market, beliefs of an agent, many courses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

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
    tick_label,
)
from foretell.report.markup import Markup, join, shorten
from foretell.report.theme import SERIES

QUARTERS = {p: f"{p:.0%}" for p in (0.0, 0.25, 0.5, 0.75, 1.0)}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 460, 250, 44, 40, 210
"""Of a small plot, and the edges of its grid."""


def _grid(
    x: ChartScale, y: ChartScale, across: Mapping[float, str], under: Iterable[tuple[float, str]], label: str = ""
) -> Markup:
    """Lines across with their labels at the left, and labels under the plot."""
    parts: list[Markup] = []
    for value, shown in across.items():
        parts.append(line(x.start, y(value), x.stop, y(value), "l-grid thin"))
        parts.append(text(x.start - 6, y(value) + 4, shown, "s r k"))
    parts += [text(x(value), y.start + 15, shown, "s m k") for value, shown in under]
    return join(*parts, text((x.start + x.stop) / 2, y.start + 32, label, "s m") if label else None)


def _whole_steps(x: ChartScale) -> list[tuple[float, str]]:
    """About eight whole numbers within the scale."""
    first, last = int(x.low), int(x.high)
    return [(step, str(step)) for step in range(first, last + 1, max(1, round((last - first) / 8)))]


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %"


# One market over time: its price, what was forecast at each moment, and how it came out.

HISTORY_MOST = 10
"""Forecasters in one chart; more cannot be told apart."""

Points = Sequence[tuple[datetime, float]]


@dataclass(frozen=True, kw_only=True)
class MarketHistory:
    """What is known about one market."""

    title: str
    prices: Points
    """Oldest first."""
    forecasts: Mapping[str, Points] = field(default_factory=dict[str, Points])
    """By forecaster."""
    outcome: float | None = None
    closes: datetime | None = None


def history_plot(market: MarketHistory) -> Chart:
    """The price as a line in steps, each forecaster's numbers with a mark of their own."""
    shown = dict(list(market.forecasts.items())[:HISTORY_MOST])
    times = [at.timestamp() for points in (market.prices, *shown.values()) for at, _ in points]
    if not times:
        return empty("No price and no forecast yet")
    times += [market.closes.timestamp()] if market.closes else []
    span = max(max(times) - min(times), 3600.0)
    x = ChartScale(low=min(times), high=min(times) + span, start=44, stop=570)
    y = ChartScale(low=0, high=1, start=260, stop=30)
    day = "%d %b" if span > 3 * 86400 else "%d %b %H:%M"
    days = [(at, datetime.fromtimestamp(at, UTC).strftime(day)) for at in (x.low + span * n / 4 for n in range(5))]
    keys = [line(x.stop + 6, 30, x.stop + 18, 30, "l-ink bold"), text(x.stop + 22, 34, "price", "s")]
    for i, name in enumerate(shown, 1):
        keys += [
            mark(x.stop + 12, 30 + 18 * i, i - 1),
            text(x.stop + 22, 34 + 18 * i, shorten(name, 24), "s", tip=name),
        ]
    more = len(market.forecasts) - HISTORY_MOST
    keys += [text(x.stop + 6, 34 + 18 * (HISTORY_MOST + 1), f"and {more} more", "s k")] if more > 0 else []
    return figure(
        760,
        300,
        f"{market.title}: price and {len(shown)} forecasters over time",
        text(4, 16, shorten(market.title, 90), "h", tip=market.title),
        _grid(x, y, QUARTERS, days),
        _steps(market.prices, x, y),
        *(_forecasts(name, points, i, x, y) for i, (name, points) in enumerate(shown.items())),
        *(_outcome(market.outcome, x, y) if market.outcome is not None else ()),
        *keys,
    )


def _steps(prices: Points, x: ChartScale, y: ChartScale) -> Markup:
    """A price holds until the next one."""
    places: list[tuple[float, float]] = []
    for at, p in prices:
        place = (x(at.timestamp()), y(p))
        places += [(place[0], places[-1][1]), place] if places else [place]
    return join(polyline(places, "l-ink bold") if len(places) > 1 else None)


def _forecasts(name: str, points: Points, series: int, x: ChartScale, y: ChartScale) -> Markup:
    places = [(x(at.timestamp()), y(p)) for at, p in points]
    tips = [f"{name}, {at:%Y-%m-%d %H:%M}: {p:.1%}" for at, p in points]
    return join(
        polyline(places, f"l-{SERIES[series % 5]} thin") if len(places) > 1 else None,
        *(mark(*place, series, tip=tip) for place, tip in zip(places, tips, strict=True)),
    )


def _outcome(p: float, x: ChartScale, y: ChartScale) -> list[Markup]:
    message = {1.0: "came true", 0.0: "did not"}.get(p, f"paid {p:g}")
    return [
        line(x.start, y(p), x.stop, y(p), "l-ink thin dash"),
        text(x.stop - 4, y(p) + (14 if p > 0.5 else -6), message, "s r w"),
    ]


# Many courses in one chart: every one as a thin line, their mean as a bold one.

MOST_LINES = 80
"""More thin lines than that make one grey surface; they are then taken at equal distances."""
LEAST_MEAN = 0.2
"""The mean is drawn as far as this share of all courses goes: what is left after that are other courses."""
Course = Sequence[tuple[int, float]]
"""Step and value."""


def paths_plot(
    courses: Sequence[Course], title: str, *, label: str = "step", level: float | None = None, unit: bool = True
) -> Chart:
    """Values by step; `level` is a dashed line, `unit` fixes the scale to 0 … 1."""
    shown = [course for course in courses if course]
    if not shown:
        return empty("No step to show")
    mean = mean_course(shown)
    thin = shown
    if len(shown) > MOST_LINES:
        thin = [shown[i * len(shown) // MOST_LINES] for i in range(MOST_LINES)]
    steps = [step for course in shown for step, _ in course]
    values = [value for course in thin for _, value in course]
    x = ChartScale(low=min(steps), high=max(max(steps), min(steps) + 1), start=LEFT, stop=WIDTH - 16)
    y = ChartScale(low=0, high=1, start=BOTTOM, stop=TOP) if unit else covering([*values, 0.0, 1.0], BOTTOM, TOP)
    lines: list[Markup] = []
    for course in thin:
        places = [(x(step), y(value)) for step, value in course]
        alone = len(places) == 1
        lines.append(mark(*places[0], 4, colour="muted") if alone else polyline(places, "l-muted thin soft"))
    if len(mean) > 1:
        lines.append(polyline([(x(step), y(value)) for step, value in mean], "l-a bold"))
    return figure(
        WIDTH,
        HEIGHT,
        f"{title}: {len(shown)} courses; mean " + ", ".join(f"{value:.2f} at {step}" for step, value in mean[:12]),
        text(4, 16, shorten(title, 60), "h", tip=title),
        _grid(x, y, {tick: tick_label(tick) for tick in y.ticks(4)}, _whole_steps(x), label),
        *([line(x.start, y(level), x.stop, y(level), "l-muted dash")] if level is not None else []),
        *lines,
        *(mark(x(step), y(value), 0, tip=f"mean at {step}: {value:.3f}") for step, value in mean),
    )


def mean_course(courses: Sequence[Course]) -> list[tuple[int, float]]:
    """The mean at every step over the courses that got so far.

    >>> mean_course([[(0, 0.2), (1, 0.4)], [(0, 0.4)]])
    [(0, 0.3), (1, 0.4)]
    """
    at: dict[int, list[float]] = {}
    for course in courses:
        for step, value in course:
            at.setdefault(step, []).append(value)
    enough = LEAST_MEAN * len(courses)
    return [(step, round(sum(at[step]) / len(at[step]), 9)) for step in sorted(at) if len(at[step]) >= enough]


# The belief of an agent after each step, and from many trials to one number.


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """The probability of one target in one trial after each step."""

    name: str
    points: Sequence[tuple[int, float]]
    """Step and probability; step 0 is before any research."""
    final: float | None = None
    """What it answered in the end."""


def trajectory_plot(trials: Sequence[Trajectory], title: str, *, combined: float | None = None) -> Chart:
    """All trials in one chart; the combined answer is a dashed line across."""
    shown = [trial for trial in trials if trial.points or trial.final is not None]
    if not shown:
        return empty("No belief yet")
    last = max([1, *(step for trial in shown for step, _ in trial.points)])
    x = ChartScale(low=0, high=last, start=LEFT, stop=WIDTH - 84)
    y = ChartScale(low=0, high=1, start=BOTTOM, stop=TOP)
    ends = [trial.points[-1][1] if trial.final is None else trial.final for trial in shown]
    answer: list[Markup] = []
    if combined is not None:
        answer.append(line(x.start, y(combined), x.stop + 20, y(combined), "l-ink thin dash"))
        answer.append(text(WIDTH - 4, y(combined) + 4, _percent(combined), "r w"))
    return figure(
        WIDTH,
        HEIGHT,
        "Belief after each step: "
        + "; ".join(f"{trial.name} {_percent(end)}" for trial, end in list(zip(shown, ends, strict=True))[:12]),
        text(4, 16, shorten(title, 60), "h", tip=title),
        _grid(x, y, QUARTERS, _whole_steps(x), "step"),
        *(_belief(trial, i, x, y) for i, trial in enumerate(shown)),
        *answer,
    )


def _belief(trial: Trajectory, series: int, x: ChartScale, y: ChartScale) -> Markup:
    colour = SERIES[series % 5]
    places = [(x(step), y(p)) for step, p in trial.points]
    parts: list[Markup] = [polyline(places, f"l-{colour} bold")] if len(places) > 1 else []
    parts += [mark(x(step), y(p), series, tip=f"{trial.name}, step {step}: {_percent(p)}") for step, p in trial.points]
    if trial.final is not None:
        at = x.stop + 12
        parts.append(mark(at, y(trial.final), series, tip=f"{trial.name} answered {_percent(trial.final)}"))
        if places:
            parts.append(line(*places[-1], at, y(trial.final), f"l-{colour} thin dash"))
    return join(*parts)


def stages_plot(rows: Sequence[tuple[str, float]], trials: int) -> Chart:
    """One probability per row on a common scale: the first `trials` rows are raw, the last one is the answer."""
    if not rows:
        return empty("No answer yet")
    height, bottom = 22, 8 + 22 * len(rows)
    x = ChartScale(low=0, high=1, start=150, stop=WIDTH - 84)
    parts = [rect(0, bottom - height, WIDTH, height, "f-panel")]
    for p in (0.0, 0.5, 1.0):
        parts += [line(x(p), 4, x(p), bottom, "l-grid thin"), text(x(p), bottom + 14, f"{p:.0%}", "s m k")]
    for i, (name, p) in enumerate(rows):
        y, raw = 8 + height * (i + 0.5), i < trials
        parts += [
            text(4, y + 4, shorten(name, 22), "s" if raw else "w", tip=name),
            mark(x(p), y, 0 if raw else 2, colour="muted" if raw else "a", tip=f"{name}: {_percent(p)}"),
            text(WIDTH - 4, y + 4, _percent(p), "s r" if raw else "r w"),
        ]
    title = "From trials to the answer: " + "; ".join(f"{name} {_percent(p)}" for name, p in rows[:20])
    return figure(WIDTH, bottom + 22, title, *parts)
