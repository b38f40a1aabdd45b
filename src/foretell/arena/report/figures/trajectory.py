"""Where beliefs went, step by step, and from many trials to one number."""

from collections.abc import Sequence
from dataclasses import dataclass

from foretell.arena.report.markup import Markup, join, shorten
from foretell.arena.report.scales import Scale
from foretell.arena.report.svg import Figure, empty, figure, line, mark, polyline, rect, text

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 460, 250, 44, 40, 40
RIGHT = 84
ROW, STAGES_LEFT = 22, 150


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """The probability of one target in one trial after each step."""

    name: str
    points: Sequence[tuple[int, float]]
    """Step and probability; step 0 is before any research."""
    final: float | None = None
    """What it answered in the end."""


def trajectory_plot(trials: Sequence[Trajectory], title: str, *, combined: float | None = None) -> Figure:
    """All trials in one picture; the combined answer is a dashed line across."""
    shown = [trial for trial in trials if trial.points or trial.final is not None]
    if not shown:
        return empty("No belief yet")
    last = max([1, *(step for trial in shown for step, _ in trial.points)])
    x = Scale(low=0, high=last, start=LEFT, stop=WIDTH - RIGHT)
    y = Scale(low=0, high=1, start=HEIGHT - BOTTOM, stop=TOP)
    ends = "; ".join(f"{trial.name} {_percent(_end(trial))}" for trial in shown[:12])
    return figure(
        WIDTH,
        HEIGHT,
        f"Belief after each step: {ends}",
        text(4, 16, shorten(title, 60), "h", tip=title),
        _frame(x, y, last),
        *(_path(trial, i, x, y) for i, trial in enumerate(shown)),
        join(_combined(combined, y) if combined is not None else None),
    )


def _frame(x: Scale, y: Scale, last: int) -> Markup:
    parts: list[Markup] = []
    for p in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [line(LEFT, y(p), WIDTH - RIGHT, y(p), "l-grid thin"), text(LEFT - 6, y(p) + 4, f"{p:.0%}", "s r k")]
    for step in range(0, last + 1, max(1, round(last / 8))):
        parts.append(text(x(step), HEIGHT - BOTTOM + 15, str(step), "s m k"))
    return join(*parts, text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "step", "s m"))


def _path(trial: Trajectory, series: int, x: Scale, y: Scale) -> Markup:
    colour = "abcde"[series % 5]
    places = [(x(step), y(p)) for step, p in trial.points]
    parts: list[Markup] = [polyline(places, f"l-{colour} bold")] if len(places) > 1 else []
    parts += [mark(x(step), y(p), series, tip=f"{trial.name}, step {step}: {_percent(p)}") for step, p in trial.points]
    if trial.final is not None:
        at = WIDTH - RIGHT + 12
        parts.append(mark(at, y(trial.final), series, tip=f"{trial.name} answered {_percent(trial.final)}"))
        if places:
            parts.append(line(*places[-1], at, y(trial.final), f"l-{colour} thin dash"))
    return join(*parts)


def _combined(p: float, y: Scale) -> Markup:
    return join(
        line(LEFT, y(p), WIDTH - RIGHT + 20, y(p), "l-ink thin dash"),
        text(WIDTH - 4, y(p) + 4, _percent(p), "r w"),
    )


def stages_plot(rows: Sequence[tuple[str, float]], trials: int) -> Figure:
    """One probability per row on a common scale: the first `trials` rows are raw, the last one is the answer."""
    if not rows:
        return empty("No answer yet")
    right, bottom = WIDTH - RIGHT, 8 + ROW * len(rows)
    x = Scale(low=0, high=1, start=STAGES_LEFT, stop=right)
    grid = [
        join(line(x(p), 4, x(p), bottom, "l-grid thin"), text(x(p), bottom + 14, f"{p:.0%}", "s m k"))
        for p in (0.0, 0.5, 1.0)
    ]
    return figure(
        WIDTH,
        bottom + 22,
        "From trials to the answer: " + "; ".join(f"{name} {_percent(p)}" for name, p in rows[:20]),
        rect(0, 8 + ROW * (len(rows) - 1), WIDTH, ROW, "f-panel"),
        *grid,
        *(_stage(name, p, i, x, raw=i < trials) for i, (name, p) in enumerate(rows)),
    )


def _stage(name: str, p: float, place: int, x: Scale, *, raw: bool) -> Markup:
    y = 8 + ROW * place + ROW / 2
    return join(
        text(4, y + 4, shorten(name, 22), "s" if raw else "w", tip=name),
        mark(x(p), y, 0 if raw else 2, colour="muted" if raw else "a", tip=f"{name}: {_percent(p)}"),
        text(WIDTH - 4, y + 4, _percent(p), "s r" if raw else "r w"),
    )


def _end(trial: Trajectory) -> float:
    return trial.final if trial.final is not None else trial.points[-1][1]


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %"
