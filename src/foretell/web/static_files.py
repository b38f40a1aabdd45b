"""Style sheets and scripts: small, ours, addressed by their content so that a browser keeps them for good."""

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, HTTPException, Response

from foretell.report.html import figure_sheet
from foretell.report.html import static_text as report_text
from foretell.report.theme import colour_variables


def theme_css() -> str:
    """The report's colours, which follow the system unless the visitor chose, and the classes of its charts."""
    return colour_variables(switchable=True) + figure_sheet() + "\n"


STATIC_FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

router = APIRouter()


@cache
def static_text(name: str) -> str | None:
    """A file of the static folder, or one of those made from the report's own styles and scripts."""
    made = {
        "theme.css": theme_css,
        "sorting.js": lambda: report_text("sorting.js"),
        "figures.js": lambda: report_text("figures.js"),
        "circuit.js": _circuit,
        "foretell.css": _style,
    }
    if name in made:
        return made[name]()
    # Only names that are there: a path can lead nowhere else.
    found = {path.name: path for path in STATIC_FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    return found[name].read_text(encoding="utf-8") if name in found else None


def _style() -> str:
    """One sheet for all: what a page waits for before it is shown should be one request."""
    return theme_css() + (STATIC_FOLDER / "foretell.css").read_text(encoding="utf-8")


def _circuit() -> str:
    """What runs a tree's operations: the same file that the tree's own tests compare with Python."""
    return files("foretell.forecasters.tree.arithmetic").joinpath("circuit.js").read_text(encoding="utf-8")


@cache
def _digest(name: str) -> str:
    text = static_text(name)
    if text is None:
        raise KeyError(f"there is no static file {name!r}")
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def static_address(name: str) -> str:
    """Where a static file is, with a mark of its content."""
    return f"/static/{name}?v={_digest(name)}"


@router.get("/static/{name}", include_in_schema=False)
async def static_file(name: str, v: str = "") -> Response:
    """One file; without the mark of its content, as modules import each other, it is asked for anew each time."""
    text = static_text(name)
    if text is None:
        raise HTTPException(404, f"there is no file {name!r}")
    kept = "public, max-age=31536000, immutable" if v == _digest(name) else "no-cache"
    return Response(text, media_type=MEDIA_TYPES[Path(name).suffix], headers={"Cache-Control": kept})
