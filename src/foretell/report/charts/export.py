"""Charts as PNG and PDF, converted from the same SVG that pages show."""

import re
from pathlib import Path

from foretell.questions.errors import MissingExtra
from foretell.report.theme import PALETTE, figure_rules

SCALE = 2
"""Pixels of a PNG per unit of the SVG."""


def export_figure(svg: str, path: Path) -> Path:
    """Write a chart in its light colours to a .png or .pdf file; both need the extra `plots`."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("writing a chart as PNG or PDF", "plots") from None
    text = light_svg(svg)
    made = vl_convert.svg_to_png(text, scale=SCALE) if path.suffix == ".png" else vl_convert.svg_to_pdf(text)
    path.write_bytes(made)
    return path


def light_svg(svg: str) -> str:
    """The chart on white with a style of its own that needs no variables: converters do not know them."""
    svg = re.sub(r"<style>.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    end = svg.index(">") + 1
    size = re.search(r'width="([^"]+)" height="([^"]+)"', svg[:end])
    paper = f'<rect width="{size[1]}" height="{size[2]}" fill="{PALETTE["paper"][0]}"/>' if size else ""
    return f"{svg[:end]}<style>{figure_rules(plain=True)}</style>{paper}{svg[end:]}"
