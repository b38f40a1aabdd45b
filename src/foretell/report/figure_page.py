"""A figure with its own style and script, for notebooks and other websites, and the files these come from."""

from functools import cache
from pathlib import Path

from foretell.report.markup import Markup, element
from foretell.report.theme import colour_variables, figure_rules

FOLDER = Path(__file__).parent


@cache
def static_text(name: str) -> str:
    """Return a style sheet or script of reports; the web app serves the same ones."""
    return (FOLDER / "static" / name).read_text(encoding="utf-8")


def figure_sheet() -> str:
    """Return the style of figures, their read-out and downloads, and scrolling tables, without the colours."""
    return figure_rules() + static_text("figures.css") + static_text("regions.css")


def figure_document(figure: Markup) -> str:
    """Return a figure with its own style and script, which do not affect the page around it."""
    colours = colour_variables().replace(":root", ".foretell-figure")
    ground = ".foretell-figure{background:var(--ft-paper);color:var(--ft-ink)}"
    script = f"(() => {{\n{static_text('figures.js')}}})();"
    return str(
        element(
            "div",
            element("style", Markup(colours + ground + figure_sheet())),
            figure,
            element("script", Markup(script)),
            class_="foretell-figure",
        )
    )
