"""Style sheets and scripts, small and self-hosted.

A page is drawn with one style sheet, inlined and allowed by its hash, so that the page is displayed as soon as it
arrives; the page of a tree has a second one. Scripts are files whose address contains a hash of their content, so that
browsers can cache them.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Response

from foretell.patterns import pattern
from foretell.report.figure_page import figure_sheet
from foretell.report.figure_page import static_text as report_text
from foretell.report.markup import Markup
from foretell.report.theme import colour_variables

STATIC_FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
SHEETS = ("foretell.css", "tree.css")
"""Style sheets that are inlined in pages."""

router = APIRouter()


@cache
def static_text(name: str) -> str | None:
    """Return a file of the static folder, or one built from the report's styles and scripts; None if there is none."""
    built = {"foretell.css": _style, "foretell.js": _script}
    if name in built:
        return built[name]()
    # Only names of existing files, so that a path cannot lead out of the folder.
    names = {path.name for path in STATIC_FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    if name not in names:
        return None
    return bundle(name, _source) if name.endswith(".js") else _source(name)


def _source(name: str) -> str:
    # The tests of trees compare this file with Python.
    if name == "circuit.js":
        return files("foretell.forecasters.tree.arithmetic").joinpath(name).read_text(encoding="utf-8")
    return (STATIC_FOLDER / name).read_text(encoding="utf-8")


def _style() -> str:
    """Build the style sheet: colours that follow the system or the visitor's choice, the charts' classes, and ours."""
    return colour_variables(switchable=True) + figure_sheet() + "\n" + _source("foretell.css")


def _script() -> str:
    """Build the script of every page: shared behaviour, table sorting and figures."""
    return bundle("foretell.js", _source) + "".join(bundle(name, report_text) for name in ("sorting.js", "figures.js"))


def style_sheet(name: str, *, still: bool) -> Markup:
    """Return the markup of a style sheet: inlined, or as a link if the pages are files that share it."""
    if still:
        return Markup('<link rel="stylesheet" href="{}">').format(static_address(name))
    return Markup(f"<style>{static_text(name)}</style>")


@cache
def icon_address() -> str:
    """Return the icon as a data URL, which is shorter than a request for it."""
    return "data:image/svg+xml," + quote(_source("icon.svg").strip())


@cache
def sheet_hashes() -> str:
    """Return the hashes by which the content security policy allows the inlined style sheets."""
    digests = (hashlib.sha256((static_text(name) or "").encode()).digest() for name in SHEETS)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


# Bundle our modules into plain scripts: each takes one request, and browsers load no modules from disk.

IMPORT = pattern(r"^import \{ ([^}]*) \} from '\./([\w.]+)';\n", re.MULTILINE)
EXPORT = pattern(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def bundle(name: str, read: Callable[[str], str]) -> str:
    r"""Bundle a module and everything it imports into one script that defines no global names.

    >>> texts = {"a.js": "import { b } from './b.js';\nb();\n", "b.js": "export function b() {}\n"}
    >>> print(bundle("a.js", texts.__getitem__))
    (() => {
    const _b_js = (() => {
    function b() {}
    return { b };
    })();
    const { b } = _b_js;
    b();
    })();
    <BLANKLINE>
    """
    done: list[str] = []
    body = _module(name, read, {}, done)
    return "(() => {\n" + "".join(done) + body + "})();\n"


def _module(name: str, read: Callable[[str], str], variables: dict[str, str], done: list[str]) -> str:
    text = read(name)
    for match in IMPORT.finditer(text):
        other = match[2]
        if other not in variables:
            variables[other] = "_" + re.sub(r"\W", "_", other)
            inner = _module(other, read, variables, done)
            names = ", ".join(EXPORT.findall(read(other)))
            done.append(f"const {variables[other]} = (() => {{\n{inner}return {{ {names} }};\n}})();\n")
    text = IMPORT.sub(lambda match: f"const {{ {match[1]} }} = {variables[match[2]]};\n", text)
    return EXPORT.sub("", text)


@cache
def _digest(name: str) -> str:
    text = static_text(name)
    if text is None:
        raise KeyError(f"there is no static file {name!r}")
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def static_address(name: str) -> str:
    """Return the address of a static file, with a hash of its content."""
    return f"/static/{name}?v={_digest(name)}"


@router.get("/static/{name}", include_in_schema=False)
async def static_file(name: str, v: str = "") -> Response:
    """Serve a static file; it is cached only if the address has the hash of its content."""
    text = static_text(name)
    if text is None:
        raise HTTPException(404, f"there is no file {name!r}")
    cache_control = "public, max-age=31536000, immutable" if v == _digest(name) else "no-cache"
    return Response(text, media_type=MEDIA_TYPES[Path(name).suffix], headers={"Cache-Control": cache_control})
