"""Figures as PNG and PDF, painted by matplotlib from the same SVG that pages show.

Converters were tried first: those that understand our style sheet's fallback colours need a system library for PDF, or
write no PDF at all. Our figures use so few shapes that painting them takes a page.
"""

import math
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.questions.errors import MissingExtra
from foretell.report.theme import DIVERGING, ON_DIVERGING, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# The paths of figures as points and curves.

Point = tuple[float, float]
Segment = tuple[str, tuple[Point, ...]]
"""A letter (M, L, C or Z) and absolute points: none for Z, three for a curve."""
TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Q": 4, "A": 7, "Z": 0}
"""Numbers after each letter."""
_PART = re.compile(r"([MmLlHhVvCcQqAaZz])|([-+]?(?:\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?)")


def segments(d: str) -> list[Segment]:
    """A path in absolute coordinates; arcs become curves.

    >>> segments("M1 2h3v4z")
    [('M', ((1.0, 2.0),)), ('L', ((4.0, 2.0),)), ('L', ((4.0, 6.0),)), ('Z', ())]
    """
    found: list[Segment] = []
    at = start = (0.0, 0.0)
    for letter, numbers in _commands(d):
        made = list(_absolute(letter, numbers, at))
        if letter in "Zz":
            at = start
        elif made:
            at = made[-1][1][-1]
            start = at if letter in "Mm" else start
        found += made
    return found


def _commands(d: str) -> Iterator[tuple[str, list[float]]]:
    """Letters with their numbers, one by one: what follows a move without a letter of its own is a line."""
    letter, numbers = "", list[float]()
    for found in _PART.finditer(d):
        if found[1]:
            letter, numbers = found[1], []
            if letter in "Zz":
                yield letter, []
            continue
        if not letter:
            raise ValueError(f"the path {d[:40]!r} does not begin with a letter")
        numbers.append(float(found[2]))
        if len(numbers) == TAKES[letter.upper()]:
            yield letter, numbers
            letter, numbers = {"M": "L", "m": "l"}.get(letter, letter), []


def _absolute(letter: str, n: list[float], at: Point) -> Iterator[Segment]:
    x, y = at if letter.islower() else (0.0, 0.0)
    match letter.upper():
        case "Z":
            yield "Z", ()
        case "H":
            yield "L", ((x + n[0], at[1]),)
        case "V":
            yield "L", ((at[0], y + n[0]),)
        case "C":
            yield "C", ((x + n[0], y + n[1]), (x + n[2], y + n[3]), (x + n[4], y + n[5]))
        case "Q":
            yield "C", _cubic(at, (x + n[0], y + n[1]), (x + n[2], y + n[3]))
        case "A":
            yield from _arc(at, n, (x + n[5], y + n[6]))
        case other:
            yield other, ((x + n[0], y + n[1]),)


def _cubic(a: Point, q: Point, b: Point) -> tuple[Point, Point, Point]:
    one = (a[0] + 2 / 3 * (q[0] - a[0]), a[1] + 2 / 3 * (q[1] - a[1]))
    two = (b[0] + 2 / 3 * (q[0] - b[0]), b[1] + 2 / 3 * (q[1] - b[1]))
    return one, two, b


def _arc(a: Point, n: list[float], b: Point) -> Iterator[Segment]:
    """An arc of a circle or of an upright ellipse, as curves of at most a quarter turn (SVG 1.1, appendix F.6)."""
    rx, ry = abs(n[0]), abs(n[1])
    if rx == 0 or ry == 0 or a == b:
        yield "L", (b,)
        return
    # On the unit circle the chord runs from −h to h around its middle.
    hx, hy = (a[0] - b[0]) / (2 * rx), (a[1] - b[1]) / (2 * ry)
    reach = max(math.hypot(hx, hy), 1e-12)
    scale = max(1.0, reach)
    rx, ry, hx, hy, reach = rx * scale, ry * scale, hx / scale, hy / scale, reach / scale
    away = math.sqrt(max(0.0, 1 - reach**2)) / reach * (-1 if bool(n[3]) == bool(n[4]) else 1)
    cx, cy = away * hy, -away * hx
    begin, end = math.atan2(hy - cy, hx - cx), math.atan2(-hy - cy, -hx - cx)
    turn = (end - begin) % (2 * math.pi) if n[4] else -((begin - end) % (2 * math.pi))
    middle = ((a[0] + b[0]) / 2 + cx * rx, (a[1] + b[1]) / 2 + cy * ry)
    count = max(1, math.ceil(abs(turn) / (math.pi / 2) - 1e-9))
    for i in range(count):
        yield "C", _quarter(begin + turn * i / count, turn / count, middle, (rx, ry))


def _quarter(begin: float, turn: float, middle: Point, radii: Point) -> tuple[Point, Point, Point]:
    k = 4 / 3 * math.tan(turn / 4)
    end = begin + turn
    points = (
        (math.cos(begin) - k * math.sin(begin), math.sin(begin) + k * math.cos(begin)),
        (math.cos(end) + k * math.sin(end), math.sin(end) - k * math.cos(end)),
        (math.cos(end), math.sin(end)),
    )
    one, two, three = ((middle[0] + radii[0] * x, middle[1] + radii[1] * y) for x, y in points)
    return one, two, three


PIXELS_PER_INCH = 96
SCALE = 2.0
"""Device pixels of a PNG for one pixel of the figure."""
POINTS_PER_PIXEL = 0.75
FONTS = ("Arial", "Helvetica", "Liberation Sans", "Arimo", "Nimbus Sans")
"""Of the width that figures are laid out for; the font that matplotlib brings along is wider and is set smaller."""
NARROWER = 0.9
SIZES = {"xs": 10.0, "s": 11.0, "h": 13.0}
SILENT = frozenset({"title", "desc", "style"})


@dataclass(frozen=True, kw_only=True)
class PaintStyle:
    """How an element is drawn."""

    fill: str | None = "#000000"
    stroke: str | None = None
    width: float = 1.0
    dashed: bool = False
    opacity: float = 1.0
    size: float = 12.0
    bold: bool = False
    anchor: str = "left"


def export_figure(svg: str, path: str | os.PathLike[str]) -> Path:
    """Write a figure to a .png or .pdf file, on white."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("writing figures as PNG or PDF", "plots")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    root, target = ET.fromstring(svg), Path(path)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    figure = Figure(figsize=(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH), facecolor=PALETTE["paper"][0])
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for order, child in enumerate(root):
        _draw(axes, child, PaintStyle(), order)
    # Without its date the same figure is the same file.
    extra: dict[str, Any] = {"metadata": {"CreationDate": None}} if target.suffix == ".pdf" else {}
    figure.savefig(target, dpi=PIXELS_PER_INCH * SCALE, format=target.suffix.removeprefix("."), **extra)
    return target


def _draw(axes: "Axes", element: ET.Element, around: PaintStyle, order: int) -> None:
    kind = element.tag.rpartition("}")[2]
    if kind in SILENT:
        return
    look = _look(kind, element.attrib.get("class", ""), around)
    if kind in ("g", "a"):
        for child in element:
            _draw(axes, child, look, order)
    elif kind == "text":
        _write(axes, element, look, order)
    else:
        _shape(axes, kind, element.attrib, look, order)


def _look(kind: str, classes: str, around: PaintStyle) -> PaintStyle:
    """As the style sheet of figures has it."""
    look = replace(around, fill=PALETTE["ink"][0]) if kind == "text" else around
    for name in classes.split():
        match name.partition("-"):
            case ("f", "-", colour):
                look = replace(look, fill=_colours().get(colour, look.fill))
            case ("l", "-", colour):
                look = replace(look, stroke=_colours().get(colour, look.stroke))
            case _:
                look = _plain(look, name)
    return look


def _plain(look: PaintStyle, name: str) -> PaintStyle:
    """A class that is no colour."""
    changes: dict[str, dict[str, Any]] = {
        "k": {"fill": PALETTE["muted"][0]},
        "no": {"fill": None},
        "dash": {"dashed": True},
        "thin": {"width": 1.0},
        "bold": {"width": 2.0},
        "soft": {"opacity": look.opacity * 0.35},
        "bar": {"opacity": look.opacity * 0.75},
        "m": {"anchor": "center"},
        "r": {"anchor": "right"},
        "w": {"bold": True},
        "h": {"bold": True, "size": SIZES["h"]},
        "s": {"size": SIZES["s"]},
        "xs": {"size": SIZES["xs"]},
    }
    return replace(look, **changes.get(name, {}))


@cache
def _colours() -> dict[str, str]:
    steps = {f"d{i}": pair[0] for i, pair in enumerate(DIVERGING)} | {f"o{i}": p[0] for i, p in enumerate(ON_DIVERGING)}
    return {name: pair[0] for name, pair in PALETTE.items()} | steps


def _shape(axes: "Axes", kind: str, at: dict[str, str], look: PaintStyle, order: int) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    codes = {"M": Outline.MOVETO, "L": Outline.LINETO, "C": Outline.CURVE4, "Z": Outline.CLOSEPOLY}
    points: list[tuple[float, float]] = []
    marks: list[Any] = []
    for letter, places in segments(_path_of(kind, at)):
        points += places or ((0.0, 0.0),)
        marks += [codes[letter]] * max(1, len(places))
    if not points:
        return
    # A line of one pixel is three quarters of a point wide.
    patch = PathPatch(
        Outline(points, marks),
        facecolor=look.fill or "none",
        edgecolor=look.stroke or "none",
        linewidth=look.width * POINTS_PER_PIXEL if look.stroke else 0,
        linestyle=(0, (4, 3)) if look.dashed else "solid",
        alpha=look.opacity,
        zorder=order,
        clip_on=False,
    )
    axes.add_patch(patch)


def _path_of(kind: str, at: dict[str, str]) -> str:
    """Any shape as a path."""
    if kind == "path":
        return at["d"]
    if kind == "rect":
        return f"M{at['x']} {at['y']}h{at['width']}v{at['height']}h-{at['width']}z"
    if kind == "circle":
        x, y, r = (float(at[name]) for name in ("cx", "cy", "r"))
        return f"M{x - r} {y}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"
    if kind == "line":
        return f"M{at['x1']} {at['y1']}L{at['x2']} {at['y2']}"
    if kind in ("polyline", "polygon"):
        return f"M{at['points']}" + "z" * (kind == "polygon")
    raise ValueError(f"a figure with the element {kind!r} cannot be painted")


def _write(axes: "Axes", element: ET.Element, look: PaintStyle, order: int) -> None:
    family, narrower = _font()
    axes.text(
        float(element.attrib["x"]),
        float(element.attrib["y"]),
        element.text or "",
        fontsize=look.size * POINTS_PER_PIXEL * narrower,
        family=family,
        fontweight="bold" if look.bold else "normal",
        color=look.fill or "none",
        alpha=look.opacity,
        ha=look.anchor,
        va="baseline",
        zorder=order,
        # A dollar sign is a dollar sign, not the beginning of a formula.
        parse_math=False,
    )


@cache
def _font() -> tuple[str, float]:
    """The font, and how much smaller it must be set to fit."""
    from matplotlib.font_manager import get_font_names

    known = set(get_font_names())
    found = next((name for name in FONTS if name in known), None)
    return (found, 1.0) if found else ("DejaVu Sans", NARROWER)
