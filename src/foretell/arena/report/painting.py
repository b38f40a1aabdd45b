"""Figures as PNG and PDF, painted by matplotlib from the same SVG that pages show.

Converters were tried first: those that understand our style sheet's fallback colours need a system library for PDF, or
write no PDF at all. Our figures use so few shapes that painting them takes a page.
"""

import os
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.arena.report.path_data import segments
from foretell.arena.report.theme import DIVERGING, ON_DIVERGING, PALETTE
from foretell.questions.problems import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
class Look:
    """How an element is drawn."""

    fill: str | None = "#000000"
    stroke: str | None = None
    width: float = 1.0
    dashed: bool = False
    opacity: float = 1.0
    size: float = 12.0
    bold: bool = False
    anchor: str = "left"


def paint(svg: str, path: str | os.PathLike[str]) -> Path:
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
        _draw(axes, child, Look(), order)
    # Without its date the same figure is the same file.
    extra: dict[str, Any] = {"metadata": {"CreationDate": None}} if target.suffix == ".pdf" else {}
    figure.savefig(target, dpi=PIXELS_PER_INCH * SCALE, format=target.suffix.removeprefix("."), **extra)
    return target


def _draw(axes: "Axes", element: ET.Element, around: Look, order: int) -> None:
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


def _look(kind: str, classes: str, around: Look) -> Look:
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


def _plain(look: Look, name: str) -> Look:
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


def _shape(axes: "Axes", kind: str, at: dict[str, str], look: Look, order: int) -> None:
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


def _write(axes: "Axes", element: ET.Element, look: Look, order: int) -> None:
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
