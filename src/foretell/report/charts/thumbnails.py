"""Small pictures for cards that lead to a page: scores, courses of belief, a tree, lines beside the market."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from foretell.report.charts.rulers import MARKET, OURS, RATE
from foretell.report.charts.scales import ChartScale, covering
from foretell.report.charts.svg import Chart, SeriesStyle, figure, line, mark, polyline, rect, series_style, text
from foretell.report.markup import Markup, shorten
from foretell.report.numbers import probability_text, signed

WIDTH, HEIGHT = 260.0, 104.0
PLOT = 158.0
"""Where the plot ends and labels begin."""
MOST_LINES = 5


def score_thumbnail(scores: Mapping[str, tuple[float, float, float]]) -> Chart:
    """Estimate, low and high of a run, the market and the base rate, one above the other."""
    x = covering([value for one in scores.values() for value in one], 84, WIDTH - 14)
    parts: list[Markup] = []
    for place, (name, (estimate, low, high)) in enumerate(scores.items()):
        y, colour = 20.0 + 32 * place, {"market": MARKET, "base rate": RATE}.get(name, OURS)
        parts += [text(0, y + 4, name, "s k"), line(x.start, y, x.stop, y, "l-grid thin")]
        if colour == OURS:
            parts.append(line(x(low), y, x(high), y, f"l-{OURS} bold"))
        parts.append(mark(x(estimate), y, SeriesStyle(colour, 0), tip=f"{name} {estimate:.1f}"))
        parts.append(text(x(estimate), y - 7, f"{estimate:.1f}", f"s w m f-{colour}"))
    told = ", ".join(f"{name} {one[0]:.1f}" for name, one in scores.items())
    return replace(figure(WIDTH, HEIGHT, f"Brier index: {told}", *parts), small=True)


def belief_thumbnail(paths: Sequence[Sequence[float]], answer: float, price: float | None) -> Chart:
    """How belief went in every trial, the answer, and the market as a dashed line."""
    values = [*(p for path in paths for p in path), answer, *([] if price is None else [price])]
    y = covering(values, HEIGHT - 12, 14, within=(0.0, 1.0))
    longest = max((len(path) for path in paths), default=1)
    x = ChartScale(low=0, high=max(longest - 1, 1), start=6, stop=PLOT)
    parts: list[Markup] = []
    if price is not None:
        apart = 14 if abs(y(price) - y(answer)) < 14 else 0
        parts.append(line(x.start, y(price), PLOT + 18, y(price), f"l-{MARKET} thin dash"))
        higher = -apart if price >= answer else apart
        parts.append(text(PLOT + 24, y(price) + 4 + higher / 2, f"market {probability_text(price)}", f"s f-{MARKET}"))
    else:
        higher = 0
    for place, path in enumerate(paths):
        points = [(x(step), y(p)) for step, p in enumerate(path)]
        first = place == 0
        parts += [polyline(points, f"l-{OURS} {'bold' if first else 'thin faint'}")] if len(points) > 1 else []
        parts += (
            [mark(*point, SeriesStyle(OURS, 0), tip=probability_text(p)) for point, p in zip(points, path, strict=True)]
            if first
            else []
        )
    parts.append(text(PLOT + 24, y(answer) + 4 - higher / 2, probability_text(answer), f"w f-{OURS}"))
    return replace(
        figure(WIDTH, HEIGHT, f"Belief over the steps; answer {probability_text(answer)}", *parts), small=True
    )


def tree_thumbnail(levels: Sequence[Sequence[tuple[float | None, int]]]) -> Chart:
    """The claims of a tree, level by level: how likely each is, and the place of the claim it belongs to."""
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
                parts.append(text(across[0] + 20, y + 4, "" if p is None else probability_text(p), "s w m f-paper"))
            elif p is not None:
                parts.append(rect(across[depth] + 4, y - 2, 32 * p, 4, f"f-{OURS}", tip=probability_text(p)))
    claims = sum(map(len, levels))
    return replace(figure(WIDTH, HEIGHT, f"A tree of {claims} claims", *parts), small=True)


def lines_thumbnail(courses: Mapping[str, Sequence[float]], decimals: int) -> Chart:
    """How far entries are ahead of the market, over time; the market is the line at 0."""
    shown = dict(list(courses.items())[:MOST_LINES])
    y = covering([0.0, *(value for course in shown.values() for value in course)], HEIGHT - 10, 12)
    parts = [line(6, y(0), PLOT - 30, y(0), f"l-{MARKET} dash")]
    order = sorted(shown, key=lambda name: y(shown[name][-1]))
    for place, (name, course) in enumerate(shown.items()):
        x, style = ChartScale(low=0, high=max(len(course) - 1, 1), start=6, stop=PLOT - 30), series_style(place)
        parts.append(polyline([(x(n), y(value)) for n, value in enumerate(course)], f"{style.stroke} line"))
        at = 14 + (HEIGHT - 20) * order.index(name) / max(len(order) - 1, 1)
        told = f"{shorten(name, 11)} {signed(course[-1], decimals)}"
        parts.append(text(PLOT - 24, at, told, f"xs w f-{style.colour}", tip=name))
    return replace(figure(WIDTH, HEIGHT, f"Score against the market over time: {', '.join(shown)}", *parts), small=True)
