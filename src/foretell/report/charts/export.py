"""Charts as PNG and PDF, converted from the same SVG that pages show."""

import re
from pathlib import Path
from typing import Any

from foretell.questions.errors import MissingExtra
from foretell.report.theme import PALETTE, figure_rules

SCALE = 2
"""Pixels of a PNG per unit of the SVG."""


def export_figure(svg: str, path: Path) -> Path:
    """Write a chart in its light colours to a .png or .pdf file; both need the extra `plots`."""
    path.write_bytes(figure_png(svg, SCALE) if path.suffix == ".png" else _converter().svg_to_pdf(light_svg(svg)))
    return path


def figure_png(svg: str, scale: float = 1) -> bytes:
    """A chart in its light colours as the bytes of a PNG; needs the extra `plots`."""
    return _converter().svg_to_png(light_svg(svg), scale=scale)


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("writing a chart as PNG or PDF", "plots") from None
    return vl_convert


def light_svg(svg: str) -> str:
    """The chart on white with a style of its own that needs no variables: converters do not know them."""
    svg = re.sub(r"<style>.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    end = svg.index(">") + 1
    size = re.search(r'width="([^"]+)" height="([^"]+)"', svg[:end])
    paper = f'<rect width="{size[1]}" height="{size[2]}" fill="{PALETTE["paper"][0]}"/>' if size else ""
    return f"{svg[:end]}<style>{figure_rules(plain=True)}</style>{paper}{svg[end:]}"
