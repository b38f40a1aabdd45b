"""Inline SVG: a figure value and the few shapes all figures share.

Colours are classes over CSS variables, so one figure serves light, dark and print. Nothing carries a style
attribute: a page may forbid them in its security policy.
"""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foretell.questions.errors import InputError
from foretell.report.markup import Markup, compact, element, join
from foretell.report.theme import SERIES, figure_style

# From numbers to places on a picture: linear and logarithmic scales with round ticks.


@dataclass(frozen=True, kw_only=True)
class ChartScale:
    """Maps [low, high] onto the pixels [start, stop], evenly or by powers of ten."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Place of the value; values outside the scale are put on its edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, count: int = 5) -> tuple[float, ...]:
        """About `count` round numbers within the scale."""
        return log_ticks(self.low, self.high, count) if self.log else nice_ticks(self.low, self.high, count)


def covering(
    values: Iterable[float], start: float, stop: float, *, within: tuple[float, float] | None = None, log: bool = False
) -> ChartScale:
    """A scale that shows every finite value with a little air, but nothing outside `within`.

    >>> scale = covering([2.0, 4.0, math.nan], 0, 100)
    >>> scale.low < 2 < 4 < scale.high
    True
    """
    shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 10.0) if log else (0.0, 1.0)
    if log:
        air = max((high / low) ** 0.06, 1.3)
        return ChartScale(low=low / air, high=high * air, start=start, stop=stop, log=True)
    air = 0.06 * (high - low) or 0.1 * abs(high) or 0.5
    low, high = low - air, high + air
    if within is not None:
        low, high = max(low, within[0]), min(high, within[1])
    return ChartScale(low=low, high=high, start=start, stop=stop)


def nice_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten inside [low, high], about `count` of them.

    >>> nice_ticks(0, 1)
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    >>> nice_ticks(61.3, 84.2)
    (65.0, 70.0, 75.0, 80.0)
    """
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.75)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(round(i * step, 12) + 0.0 for i in range(first, last + 1))


def log_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Powers of ten inside [low, high], with their doubles and fives where there is room for them.

    >>> log_ticks(0.04, 30)
    (0.1, 1.0, 10.0)
    >>> log_ticks(0.4, 3)
    (0.5, 1.0, 2.0)
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for marks in ((1, 2, 5), (1,)):
        found = tuple(round(m * 10.0**k, 12) for k in decades for m in marks if low <= m * 10.0**k <= high)
        if len(found) <= count:
            break
    return found[:: max(1, math.ceil(len(found) / count))] or (low,)


def tick_label(value: float) -> str:
    """A tick as text, without the zeros that say nothing.

    >>> tick_label(0.25), tick_label(70.0), tick_label(-1.5), tick_label(20000.0)
    ('0.25', '70', '−1.5', '20k')
    """
    if abs(value) >= 10_000:
        return f"{compact(value / 1000).replace('-', '−')}k"
    return compact(value, 6).replace("-", "−")


@dataclass(frozen=True)
class Chart:
    """A picture as SVG for use inside a page that carries the figure style; shows itself in notebooks."""

    svg: Markup
    wide: bool = False
    """Too wide to be shrunk to a phone: let it scroll sideways."""

    def standalone(self) -> str:
        """The same picture with its own colours, for a file of its own."""
        end = self.svg.index(">") + 1
        return str(self.svg[:end] + figure_style() + self.svg[end:])

    def _repr_svg_(self) -> str:
        return self.standalone()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to an .svg, .png or .pdf file by its ending, and return its path.

        PNG and PDF take the extra `plots`.
        """
        target = Path(path)
        if target.suffix in (".png", ".pdf"):
            from foretell.report.charts.export import export_figure

            return export_figure(self.svg, target)
        if target.suffix != ".svg":
            raise InputError("a figure cannot be written so", path=target, hint="use .svg, .png or .pdf")
        target.write_text('<?xml version="1.0" encoding="UTF-8"?>\n' + self.standalone() + "\n", encoding="utf-8")
        return target


def figure(width: float, height: float, title: str, *children: Markup) -> Chart:
    """A figure of that size; the title is what a screen reader says."""
    svg = element(
        "svg",
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        class_="ft",
        role="img",
        aria_label=title,
    )
    return Chart(svg, wide=width > 480)


def empty(message: str, width: float = 320) -> Chart:
    """A figure that says why there is nothing to see."""
    return figure(width, 60, message, text(width / 2, 34, message, "m k"))


def text(x: float, y: float, content: str, style: str | None = None, *, tip: str | None = None) -> Markup:
    """Text at a place, optionally with a tooltip."""
    children = (content,) if tip is None else (content, element("title", tip))
    return element("text", *children, x=float(x), y=float(y), class_=style)


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A straight line."""
    return element("path", d=f"M{_at(x1, y1)}L{_at(x2, y2)}", class_=style)


def polyline(points: Sequence[tuple[float, float]], style: str) -> Markup:
    """A line through the points."""
    return element("path", d="M" + "L".join(_at(x, y) for x, y in points), class_=style + " no")


def rect(x: float, y: float, width: float, height: float, style: str, *, tip: str | None = None) -> Markup:
    """A rectangle, optionally with a tooltip."""
    children = () if tip is None else (element("title", tip),)
    return element(
        "rect",
        *children,
        x=float(x),
        y=float(y),
        width=float(max(width, 0)),
        height=float(max(height, 0)),
        class_=style,
    )


def mark(x: float, y: float, series: int, *, colour: str | None = None, tip: str | None = None) -> Markup:
    """The mark of a series at a place, in the series' colour unless another is named."""
    r, colour = 4.0, colour or SERIES[series % 5]
    # Circle, square, diamond, triangle, cross: colour alone never carries the meaning.
    d = {
        0: f"M{_at(x - r, y)}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0z",
        1: f"M{_at(x - r * 0.85, y - r * 0.85)}h{1.7 * r:g}v{1.7 * r:g}h{-1.7 * r:g}z",
        2: f"M{_at(x, y - r * 1.2)}l{r * 1.2:g} {r * 1.2:g}l{-r * 1.2:g} {r * 1.2:g}l{-r * 1.2:g} {-r * 1.2:g}z",
        3: f"M{_at(x, y - r * 1.15)}l{r * 1.1:g} {r * 2:g}h{-2.2 * r:g}z",
        4: f"M{_at(x - r, y - r)}l{2 * r:g} {2 * r:g}m0 {-2 * r:g}l{-2 * r:g} {2 * r:g}",
    }[series % 5]
    style = f"f-{colour}" if series % 5 != 4 else f"no l-{colour} bold"
    return element("path", *(() if tip is None else (element("title", tip),)), d=d, class_=style)


def x_axis(scale: ChartScale, y: float, top: float, label: str, *, count: int = 5) -> Markup:
    """Grid lines from `top` to `y`, ticks and a label under them; takes 34 pixels below `y`."""
    parts: list[Markup] = []
    for tick in scale.ticks(count):
        x = scale(tick)
        parts.append(line(x, top, x, y, "l-grid thin"))
        parts.append(text(x, y + 14, tick_label(tick), "s m k"))
    parts.append(text((scale.start + scale.stop) / 2, y + 29, label, "s m"))
    return join(*parts)


def y_axis(scale: ChartScale, x: float, right: float, *, count: int = 5) -> Markup:
    """Grid lines from `x` to `right` with ticks to the left of `x`."""
    parts: list[Markup] = []
    for tick in scale.ticks(count):
        y = scale(tick)
        parts.append(line(x, y, right, y, "l-grid thin"))
        parts.append(text(x - 6, y + 4, tick_label(tick), "s r k"))
    return join(*parts)


def _at(x: float, y: float) -> str:
    return f"{compact(x)} {compact(y)}"
