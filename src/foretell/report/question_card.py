"""The picture that stands for an answer where its link is shared: question, number, market and outcome."""

from collections.abc import Sequence
from textwrap import wrap

from foretell.report.charts.svg import Chart, ChartScale, figure
from foretell.report.markup import Markup, element

WIDTH, HEIGHT, MARGIN = 1200, 630, 80
OURS, MARKET, QUIET = "#1d60ad", "#7a6200", "#5b6672"
YES, NO = "#13734a", "#b0401c"


def question_card(
    question: str, p: float | None, trials: Sequence[float], price: float | None, outcome: int | None
) -> Chart:
    """A card of the size that previews are shown in; colours are its own, since nobody's style reaches it."""
    lines = wrap(" ".join(question.split()), 44)
    lines = [*lines[:3], f"{lines[3][:40]}…"] if len(lines) > 4 else lines
    parts: list[Markup] = [element("rect", width=f"{WIDTH}", height=f"{HEIGHT}", fill="#ffffff")]
    parts += [_text(MARGIN, 120 + 56 * n, line, 46, "#1b2129", BOLD) for n, line in enumerate(lines)]
    said = "no answer yet" if p is None else f"{100 * p:.0f} %"
    parts.append(_text(MARGIN, 470, said, 130 if p is not None else 60, OURS, BOLD))
    beside = [] if price is None else [(f"market {100 * price:.0f} %", MARKET)]
    beside += [] if outcome is None else [("it happened", YES) if outcome else ("it did not happen", NO)]
    parts += [_text(560, 410 + 54 * n, told, 40, colour) for n, (told, colour) in enumerate(beside)]
    x = ChartScale(low=0, high=1, start=MARGIN, stop=WIDTH - MARGIN)
    parts.append(_bar(x(0), x(1) - x(0), 532, 8, "#dfe3e8"))
    parts += [_dot(x(one), 536, 7, OURS, "0.35") for one in trials[:50]]
    parts += [] if price is None else [_bar(x(price) - 4, 8, 512, 48, MARKET)]
    parts += [] if p is None else [_bar(x(p) - 5, 10, 506, 60, OURS)]
    parts += [] if outcome is None else [_dot(x(outcome), 536, 14, YES if outcome else NO, "1")]
    parts += [_text(WIDTH - MARGIN, 600, "foretell", 28, QUIET, AT_END)]
    return figure(WIDTH, HEIGHT, f"{question}: {said}", *parts)


def _text(x: float, y: float, said: str, size: int, colour: str, more: str = "") -> Markup:
    return element("text", said, x=f"{x}", y=f"{y}", style=f"font-size:{size}px;fill:{colour}{more}")


BOLD, AT_END = ";font-weight:700", ";text-anchor:end"


def _bar(x: float, width: float, y: float, height: float, colour: str) -> Markup:
    return element("rect", x=f"{x:.1f}", y=f"{y}", width=f"{width:.1f}", height=f"{height}", fill=colour)


def _dot(x: float, y: float, radius: float, colour: str, opacity: str) -> Markup:
    return element("circle", cx=f"{x:.1f}", cy=f"{y}", r=f"{radius}", fill=colour, fill_opacity=opacity)
