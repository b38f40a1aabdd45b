"""Where beliefs went, step by step, and from many trials to one number."""

from collections.abc import Mapping, Sequence
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

# One market over time: its price, what was forecast at each moment, and how it came out.

HISTORY_WIDTH, HISTORY_HEIGHT, HISTORY_LEFT, HISTORY_TOP, HISTORY_BOTTOM, HISTORY_RIGHT = 760, 300, 44, 30, 40, 190
HISTORY_MOST = 10
"""Forecasters in one picture; more cannot be told apart."""

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
    times = [at for at, _ in market.prices] + [at for points in shown.values() for at, _ in points]
    if not times:
        return empty("No price and no forecast yet")
    x = _time_scale([*times, *([market.closes] if market.closes else [])])
    y = ChartScale(low=0, high=1, start=HISTORY_HEIGHT - HISTORY_BOTTOM, stop=HISTORY_TOP)
    return figure(
        HISTORY_WIDTH,
        HISTORY_HEIGHT,
        f"{market.title}: price and {len(shown)} forecasters over time",
        text(4, 16, shorten(market.title, 90), "h", tip=market.title),
        _history_frame(x, y),
        _prices(market.prices, x, y),
        *(_forecasts(name, points, i, x, y) for i, (name, points) in enumerate(shown.items())),
        join(_outcome(market, y) if market.outcome is not None else None),
        join(_left_out(len(market.forecasts) - HISTORY_MOST) if len(market.forecasts) > HISTORY_MOST else None),
    )


def _time_scale(times: Sequence[datetime]) -> ChartScale:
    low, high = min(times).timestamp(), max(times).timestamp()
    return ChartScale(low=low, high=max(high, low + 3600), start=HISTORY_LEFT, stop=HISTORY_WIDTH - HISTORY_RIGHT)


def _history_frame(x: ChartScale, y: ChartScale) -> Markup:
    parts: list[Markup] = []
    for p in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            line(HISTORY_LEFT, y(p), HISTORY_WIDTH - HISTORY_RIGHT, y(p), "l-grid thin"),
            text(HISTORY_LEFT - 6, y(p) + 4, f"{p:.0%}", "s r k"),
        ]
    for step in range(5):
        at = x.low + (x.high - x.low) * step / 4
        parts.append(text(x(at), HISTORY_HEIGHT - HISTORY_BOTTOM + 16, _day(at, x.high - x.low), "s m k"))
    return join(*parts)


def _day(stamp: float, span: float) -> str:
    at = datetime.fromtimestamp(stamp, UTC)
    return at.strftime("%d %b" if span > 3 * 86400 else "%d %b %H:%M")


def _prices(prices: Points, x: ChartScale, y: ChartScale) -> Markup:
    """A price holds until the next one."""
    places: list[tuple[float, float]] = []
    for at, p in prices:
        place = (x(at.timestamp()), y(p))
        places += [(place[0], places[-1][1]), place] if places else [place]
    key = text(HISTORY_WIDTH - HISTORY_RIGHT + 22, HISTORY_TOP + 4, "price", "s")
    drawn = polyline(places, "l-ink bold") if len(places) > 1 else None
    return join(
        drawn,
        line(
            HISTORY_WIDTH - HISTORY_RIGHT + 6,
            HISTORY_TOP,
            HISTORY_WIDTH - HISTORY_RIGHT + 18,
            HISTORY_TOP,
            "l-ink bold",
        ),
        key,
    )


def _forecasts(name: str, points: Points, series: int, x: ChartScale, y: ChartScale) -> Markup:
    colour = "abcde"[series % 5]
    places = [(x(at.timestamp()), y(p)) for at, p in points]
    row = HISTORY_TOP + 18 * (series + 1)
    return join(
        polyline(places, f"l-{colour} thin") if len(places) > 1 else None,
        *(
            mark(*place, series, tip=f"{name}, {at:%Y-%m-%d %H:%M}: {p:.1%}")
            for place, (at, p) in zip(places, points, strict=True)
        ),
        mark(HISTORY_WIDTH - HISTORY_RIGHT + 12, row, series),
        text(HISTORY_WIDTH - HISTORY_RIGHT + 22, row + 4, shorten(name, 24), "s", tip=name),
    )


def _outcome(market: MarketHistory, y: ChartScale) -> Markup:
    p = market.outcome or 0.0
    told = {1.0: "came true", 0.0: "did not"}.get(p, f"paid {p:g}")
    return join(
        line(HISTORY_LEFT, y(p), HISTORY_WIDTH - HISTORY_RIGHT, y(p), "l-ink thin dash"),
        text(HISTORY_WIDTH - HISTORY_RIGHT - 4, y(p) + (14 if p > 0.5 else -6), told, "s r w"),
    )


def _left_out(more: int) -> Markup:
    return text(HISTORY_WIDTH - HISTORY_RIGHT + 6, HISTORY_TOP + 18 * (HISTORY_MOST + 1) + 4, f"and {more} more", "s k")


# Many courses in one picture: every one as a thin line, their mean as a bold one.

PATHS_WIDTH, PATHS_HEIGHT, PATHS_LEFT, PATHS_RIGHT, PATHS_TOP, PATHS_BOTTOM = 460, 250, 44, 16, 40, 40
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
    steps = [step for course in shown for step, _ in course]
    x = ChartScale(
        low=min(steps), high=max(max(steps), min(steps) + 1), start=PATHS_LEFT, stop=PATHS_WIDTH - PATHS_RIGHT
    )
    values = [value for course in _thinned(shown) for _, value in course]
    bottom = PATHS_HEIGHT - PATHS_BOTTOM
    y = (
        ChartScale(low=0, high=1, start=bottom, stop=PATHS_TOP)
        if unit
        else covering([*values, 0.0, 1.0], bottom, PATHS_TOP)
    )
    return figure(
        PATHS_WIDTH,
        PATHS_HEIGHT,
        f"{title}: {len(shown)} courses; mean " + ", ".join(f"{value:.2f} at {step}" for step, value in mean[:12]),
        text(4, 16, shorten(title, 60), "h", tip=title),
        *_paths_frame(x, y, label),
        *(
            [line(PATHS_LEFT, y(level), PATHS_WIDTH - PATHS_RIGHT, y(level), "l-muted dash")]
            if level is not None
            else []
        ),
        *(_thin(course, x, y) for course in _thinned(shown)),
        *_bold(mean, x, y),
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


def _thinned(courses: Sequence[Course]) -> list[Course]:
    if len(courses) <= MOST_LINES:
        return list(courses)
    return [courses[i * len(courses) // MOST_LINES] for i in range(MOST_LINES)]


def _paths_frame(x: ChartScale, y: ChartScale, label: str) -> list[Markup]:
    parts: list[Markup] = []
    for value in y.ticks(4):
        parts += [
            line(PATHS_LEFT, y(value), PATHS_WIDTH - PATHS_RIGHT, y(value), "l-grid thin"),
            text(PATHS_LEFT - 6, y(value) + 4, tick_label(value), "s r k"),
        ]
    first, last = int(x.low), int(x.high)
    for step in range(first, last + 1, max(1, round((last - first) / 8))):
        parts.append(text(x(step), PATHS_HEIGHT - PATHS_BOTTOM + 15, str(step), "s m k"))
    return [*parts, text((PATHS_LEFT + PATHS_WIDTH - PATHS_RIGHT) / 2, PATHS_HEIGHT - 8, label, "s m")]


def _thin(course: Course, x: ChartScale, y: ChartScale) -> Markup:
    places = [(x(step), y(value)) for step, value in course]
    style = "l-muted thin soft"
    return polyline(places, style) if len(places) > 1 else mark(*places[0], 4, colour="muted")


def _bold(mean: Course, x: ChartScale, y: ChartScale) -> list[Markup]:
    places = [(x(step), y(value)) for step, value in mean]
    parts = [polyline(places, "l-a bold")] if len(places) > 1 else []
    return [*parts, *(mark(x(s), y(v), 0, tip=f"mean at {s}: {v:.3f}") for s, v in mean)]


TRAJECTORY_WIDTH, TRAJECTORY_HEIGHT, TRAJECTORY_LEFT, TRAJECTORY_TOP, TRAJECTORY_BOTTOM = 460, 250, 44, 40, 40
TRAJECTORY_RIGHT = 84
TRAJECTORY_ROW, STAGES_LEFT = 22, 150


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """The probability of one target in one trial after each step."""

    name: str
    points: Sequence[tuple[int, float]]
    """Step and probability; step 0 is before any research."""
    final: float | None = None
    """What it answered in the end."""


def trajectory_plot(trials: Sequence[Trajectory], title: str, *, combined: float | None = None) -> Chart:
    """All trials in one picture; the combined answer is a dashed line across."""
    shown = [trial for trial in trials if trial.points or trial.final is not None]
    if not shown:
        return empty("No belief yet")
    last = max([1, *(step for trial in shown for step, _ in trial.points)])
    x = ChartScale(low=0, high=last, start=TRAJECTORY_LEFT, stop=TRAJECTORY_WIDTH - TRAJECTORY_RIGHT)
    y = ChartScale(low=0, high=1, start=TRAJECTORY_HEIGHT - TRAJECTORY_BOTTOM, stop=TRAJECTORY_TOP)
    ends = "; ".join(f"{trial.name} {_percent(_end(trial))}" for trial in shown[:12])
    return figure(
        TRAJECTORY_WIDTH,
        TRAJECTORY_HEIGHT,
        f"Belief after each step: {ends}",
        text(4, 16, shorten(title, 60), "h", tip=title),
        _trajectory_frame(x, y, last),
        *(_path(trial, i, x, y) for i, trial in enumerate(shown)),
        join(_combined(combined, y) if combined is not None else None),
    )


def _trajectory_frame(x: ChartScale, y: ChartScale, last: int) -> Markup:
    parts: list[Markup] = []
    for p in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            line(TRAJECTORY_LEFT, y(p), TRAJECTORY_WIDTH - TRAJECTORY_RIGHT, y(p), "l-grid thin"),
            text(TRAJECTORY_LEFT - 6, y(p) + 4, f"{p:.0%}", "s r k"),
        ]
    for step in range(0, last + 1, max(1, round(last / 8))):
        parts.append(text(x(step), TRAJECTORY_HEIGHT - TRAJECTORY_BOTTOM + 15, str(step), "s m k"))
    return join(
        *parts, text((TRAJECTORY_LEFT + TRAJECTORY_WIDTH - TRAJECTORY_RIGHT) / 2, TRAJECTORY_HEIGHT - 8, "step", "s m")
    )


def _path(trial: Trajectory, series: int, x: ChartScale, y: ChartScale) -> Markup:
    colour = "abcde"[series % 5]
    places = [(x(step), y(p)) for step, p in trial.points]
    parts: list[Markup] = [polyline(places, f"l-{colour} bold")] if len(places) > 1 else []
    parts += [mark(x(step), y(p), series, tip=f"{trial.name}, step {step}: {_percent(p)}") for step, p in trial.points]
    if trial.final is not None:
        at = TRAJECTORY_WIDTH - TRAJECTORY_RIGHT + 12
        parts.append(mark(at, y(trial.final), series, tip=f"{trial.name} answered {_percent(trial.final)}"))
        if places:
            parts.append(line(*places[-1], at, y(trial.final), f"l-{colour} thin dash"))
    return join(*parts)


def _combined(p: float, y: ChartScale) -> Markup:
    return join(
        line(TRAJECTORY_LEFT, y(p), TRAJECTORY_WIDTH - TRAJECTORY_RIGHT + 20, y(p), "l-ink thin dash"),
        text(TRAJECTORY_WIDTH - 4, y(p) + 4, _percent(p), "r w"),
    )


def stages_plot(rows: Sequence[tuple[str, float]], trials: int) -> Chart:
    """One probability per row on a common scale: the first `trials` rows are raw, the last one is the answer."""
    if not rows:
        return empty("No answer yet")
    right, bottom = TRAJECTORY_WIDTH - TRAJECTORY_RIGHT, 8 + TRAJECTORY_ROW * len(rows)
    x = ChartScale(low=0, high=1, start=STAGES_LEFT, stop=right)
    grid = [
        join(line(x(p), 4, x(p), bottom, "l-grid thin"), text(x(p), bottom + 14, f"{p:.0%}", "s m k"))
        for p in (0.0, 0.5, 1.0)
    ]
    return figure(
        TRAJECTORY_WIDTH,
        bottom + 22,
        "From trials to the answer: " + "; ".join(f"{name} {_percent(p)}" for name, p in rows[:20]),
        rect(0, 8 + TRAJECTORY_ROW * (len(rows) - 1), TRAJECTORY_WIDTH, TRAJECTORY_ROW, "f-panel"),
        *grid,
        *(_stage(name, p, i, x, raw=i < trials) for i, (name, p) in enumerate(rows)),
    )


def _stage(name: str, p: float, place: int, x: ChartScale, *, raw: bool) -> Markup:
    y = 8 + TRAJECTORY_ROW * place + TRAJECTORY_ROW / 2
    return join(
        text(4, y + 4, shorten(name, 22), "s" if raw else "w", tip=name),
        mark(x(p), y, 0 if raw else 2, colour="muted" if raw else "a", tip=f"{name}: {_percent(p)}"),
        text(TRAJECTORY_WIDTH - 4, y + 4, _percent(p), "s r" if raw else "r w"),
    )


def _end(trial: Trajectory) -> float:
    return trial.final if trial.final is not None else trial.points[-1][1]


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %"
