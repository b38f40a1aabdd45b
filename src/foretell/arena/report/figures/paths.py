"""Many courses in one picture: every one as a thin line, their mean as a bold one."""

from collections.abc import Sequence

from foretell.arena.report.markup import Markup, shorten
from foretell.arena.report.scales import Scale, covering, tick_label
from foretell.arena.report.svg import Figure, empty, figure, line, mark, polyline, text

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 250, 44, 16, 40, 40
MOST_LINES = 80
"""More thin lines than that make one grey surface; they are then taken at equal distances."""
LEAST_MEAN = 0.2
"""The mean is drawn as far as this share of all courses goes: what is left after that are other courses."""
Course = Sequence[tuple[int, float]]
"""Step and value."""


def paths_plot(
    courses: Sequence[Course], title: str, *, label: str = "step", level: float | None = None, unit: bool = True
) -> Figure:
    """Values by step; `level` is a dashed line, `unit` fixes the scale to 0 … 1."""
    shown = [course for course in courses if course]
    if not shown:
        return empty("No step to show")
    mean = mean_course(shown)
    steps = [step for course in shown for step, _ in course]
    x = Scale(low=min(steps), high=max(max(steps), min(steps) + 1), start=LEFT, stop=WIDTH - RIGHT)
    values = [value for course in _thinned(shown) for _, value in course]
    bottom = HEIGHT - BOTTOM
    y = Scale(low=0, high=1, start=bottom, stop=TOP) if unit else covering([*values, 0.0, 1.0], bottom, TOP)
    return figure(
        WIDTH,
        HEIGHT,
        f"{title}: {len(shown)} courses; mean " + ", ".join(f"{value:.2f} at {step}" for step, value in mean[:12]),
        text(4, 16, shorten(title, 60), "h", tip=title),
        *_frame(x, y, label),
        *([line(LEFT, y(level), WIDTH - RIGHT, y(level), "l-muted dash")] if level is not None else []),
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


def _frame(x: Scale, y: Scale, label: str) -> list[Markup]:
    parts: list[Markup] = []
    for value in y.ticks(4):
        parts += [
            line(LEFT, y(value), WIDTH - RIGHT, y(value), "l-grid thin"),
            text(LEFT - 6, y(value) + 4, tick_label(value), "s r k"),
        ]
    first, last = int(x.low), int(x.high)
    for step in range(first, last + 1, max(1, round((last - first) / 8))):
        parts.append(text(x(step), HEIGHT - BOTTOM + 15, str(step), "s m k"))
    return [*parts, text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, label, "s m")]


def _thin(course: Course, x: Scale, y: Scale) -> Markup:
    places = [(x(step), y(value)) for step, value in course]
    style = "l-muted thin soft"
    return polyline(places, style) if len(places) > 1 else mark(*places[0], 4, colour="muted")


def _bold(mean: Course, x: Scale, y: Scale) -> list[Markup]:
    places = [(x(step), y(value)) for step, value in mean]
    parts = [polyline(places, "l-a bold")] if len(places) > 1 else []
    return [*parts, *(mark(x(s), y(v), 0, tip=f"mean at {s}: {v:.3f}") for s, v in mean)]
