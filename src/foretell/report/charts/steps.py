"""The steps of trials over time: when a model was asked, when a tool was used, and what was believed then."""

import math
from collections.abc import Sequence

from foretell.frozen import frozen
from foretell.number_text import elapsed, exact_duration, percent
from foretell.report.charts.svg import (
    LETTER,
    NARROW,
    WIDE,
    Chart,
    ChartScale,
    CsvRow,
    SeriesStyle,
    empty,
    figure,
    line,
    mark,
    rect,
    responsive,
    text,
)
from foretell.report.markup import Markup, join, shorten

LANE, GAP, TOP = 11.0, 38.0, 44.0
"""Height of a bar, space between two trials, and where the first trial begins."""
MOST_LANES = 6
"""Maximum number of steps of one trial that are drawn below each other; further ones at the same time share a lane."""
NARROWEST = 1.5
"""Minimum width of a bar, so that a short step is seen."""
STEPS_OF_TIME = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Possible distances between the ticks of the axis, in seconds."""
COLOURS = {"model": "a", "tool": "d"}
BELIEF = SeriesStyle("ink", 6)


@frozen
class TimedStep:
    """A reply or the call of a tool, in seconds since the trial began."""

    kind: str
    """`model` or `tool`."""
    start: float
    end: float
    text: str
    open: bool = False
    """Whether it has not ended."""


@frozen
class TimedTrial:
    """What a trial did when."""

    name: str
    steps: Sequence[TimedStep]
    beliefs: Sequence[tuple[float, float]] = ()
    """Seconds since the trial began, and the probability from then on."""

    @property
    def seconds(self) -> float:
        """Seconds until the end of its last step."""
        return max([0.0, *(step.end for step in self.steps), *(at for at, _ in self.beliefs)])


def steps_plot(trials: Sequence[TimedTrial]) -> Chart:
    """Plot a bar for every reply and every call of a tool, by trial, over the time since the trial began."""
    shown = [trial for trial in trials if trial.steps]
    if not shown:
        return empty("No step with a known time yet")
    return responsive(*(_steps(shown, width) for width in (WIDE, NARROW)))


def _steps(trials: Sequence[TimedTrial], width: float) -> Chart:
    room = max(len(trial.name) for trial in trials) * LETTER + 8 if len(trials) > 1 else 26.0
    last = max(max(trial.seconds for trial in trials), 1e-3)
    x = ChartScale(low=0, high=last, start=room, stop=width - 24)
    parts: list[Markup] = []
    y = TOP
    for trial in trials:
        lanes = _lanes(trial.steps)
        deep = LANE * (max(lanes, default=0) + 1)
        if len(trials) > 1:
            parts.append(text(4, y + LANE - 1, shorten(trial.name, 16), "s w"))
        parts.append(line(x.start, y + deep + 5, x.stop, y + deep + 5, "l-grid thin"))
        for step, lane in zip(trial.steps, lanes, strict=True):
            start, end = x(step.start), x(step.end)
            style = f"f-{COLOURS[step.kind]}{' soft' if step.open else ''}"
            tip = f"{trial.name}, {elapsed(step.start)}: {step.text}, {exact_duration(step.end - step.start)}"
            tip += " so far" if step.open else ""
            parts.append(rect(start, y + LANE * lane, max(end - start, NARROWEST), LANE - 2, style, tip=tip))
        parts.append(_beliefs(trial, x, y + deep + 5))
        y += deep + GAP
    bottom = y - GAP + (24 if any(trial.beliefs for trial in trials) else 4)
    times = time_ticks(last, int((x.stop - x.start) / 70))
    # As many decimals as tell the ticks apart: seconds such as 1 or 15 have none.
    decimals = max(0, -math.floor(math.log10(times[1]))) if len(times) > 1 else None
    ticks = [(at, elapsed(at, decimals)) for at in times]
    axis = [
        join(line(x(at), TOP - 8, x(at), bottom, "l-grid thin"), text(x(at), bottom + 15, s, "s m k"))
        for at, s in ticks
    ]
    total = "; ".join(f"{trial.name} {exact_duration(trial.seconds)}" for trial in trials[:12])
    return figure(
        width,
        bottom + 36,
        f"Steps over time: {total}",
        *_legend(trials, room),
        *axis,
        *parts,
        text((x.start + x.stop) / 2, bottom + 31, "time since the trial began", "s m"),
        rows=[_row(trial, step) for trial in trials for step in trial.steps],
    )


def _legend(trials: Sequence[TimedTrial], left: float) -> list[Markup]:
    parts: list[Markup] = []
    for kind, colour in COLOURS.items():
        if any(step.kind == kind for trial in trials for step in trial.steps):
            parts += [rect(left, 10, 12, LANE - 2, f"f-{colour}"), text(left + 17, 19, kind, "s")]
            left += 17 + len(kind) * LETTER + 12
    if any(trial.beliefs for trial in trials):
        parts += [mark(left + 5, 14.5, BELIEF), text(left + 15, 19, "new estimate", "s")]
    return parts


def _beliefs(trial: TimedTrial, x: ChartScale, y: float) -> Markup:
    """Draw a mark for each estimate, with its number where there is room for it."""
    parts: list[Markup] = []
    free = 0.0
    for at, p in trial.beliefs:
        place, shown = x(at), percent(p)
        parts.append(mark(place, y, BELIEF, tip=f"{trial.name}, {elapsed(at)}: {shown}"))
        half = len(shown) * LETTER / 2
        if place - half >= free:
            parts.append(text(place, y + 16, shown, "s m"))
            free = place + half + 6
    return join(*parts)


def _lanes(steps: Sequence[TimedStep]) -> list[int]:
    """Return the first lane for each step in which no earlier one is still going on."""
    ends: list[float] = []
    lanes: list[int] = []
    for step in steps:
        free = next((lane for lane, end in enumerate(ends) if end <= step.start + 1e-6), len(ends))
        lane = min(free, MOST_LANES - 1)
        ends[lane:] = [max([step.end, *ends[lane : lane + 1]]), *ends[lane + 1 :]]
        lanes.append(lane)
    return lanes


def time_ticks(last: float, count: int) -> list[float]:
    """Return about `count` round times from 0 to `last` seconds.

    >>> time_ticks(75, 5)
    [0.0, 15.0, 30.0, 45.0, 60.0, 75.0]
    """
    count = max(count, 1)
    if last < 2:  # Tenths, hundredths or thousandths of a second.
        size = next(
            s for s in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if s * count >= last * 0.9
        )
    else:
        size = next(
            (float(s) for s in STEPS_OF_TIME if s * count >= last * 0.9), 86_400.0 * (1 + last // 86_400 // count)
        )
    return [round(size * n, 6) for n in range(int(last / size + 1e-9) + 1)]


def busy(spans: Sequence[tuple[float, float]]) -> float:
    """Return the length of the union of spans, so that what went on at the same time counts once.

    >>> busy([(0, 2), (1, 3), (5, 6)])
    4.0
    """
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return float(sum(end - start for start, end in merged))


def _row(trial: TimedTrial, step: TimedStep) -> CsvRow:
    times = {"start": round(step.start, 3), "seconds": round(step.end - step.start, 3)}
    return {"trial": trial.name, "kind": step.kind, "step": step.text, **times, "ended": int(not step.open)}
