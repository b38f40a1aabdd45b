"""Style sheets and scripts, small and self-hosted.

A page is drawn with the style sheets that have a rule for something on it. They are inlined and allowed by their
hashes, so that the page is displayed as soon as it arrives. Scripts are files whose address contains a hash of their
content, so that browsers can cache them.
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
from foretell.report.figure_page import static_text as report_text
from foretell.report.markup import Markup
from foretell.report.theme import colour_variables, figure_rules

STATIC_FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
SHEETS = (
    *("figures.css", "foretell.css", "tables.css", "forms.css", "runs.css", "run.css", "question.css"),
    *("home.css", "arena.css", "record.css", "tree.css"),
)
"""Style sheets of pages, in the order in which a page has them; later ones override earlier ones."""
AFTER_PAINT = ("tree.js",)
"""Scripts that begin when the page has been drawn, because they compute and lay out much of it anew."""
_WHEN_DRAWN = """\
{{
const begin = {};
const drawn = new PerformanceObserver(() => {{ drawn.disconnect(); setTimeout(begin); }});
if (PerformanceObserver.supportedEntryTypes.includes('paint')) drawn.observe({{ type: 'paint', buffered: true }});
else begin();
}}
"""

router = APIRouter()


@cache
def static_text(name: str) -> str | None:
    """Return a file of the static folder, or one built from the report's styles and scripts; None if there is none."""
    built = {"figures.css": _figures, "foretell.css": _style, "foretell.js": _script}
    if name in built:
        return built[name]()
    # Only names of existing files, so that a path cannot lead out of the folder.
    names = {path.name for path in STATIC_FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    if name not in names:
        return None
    if not name.endswith(".js"):
        return _source(name)
    script = bundle(name, _source)
    if name in AFTER_PAINT:
        return _WHEN_DRAWN.format(script.removesuffix("();\n"))
    return script


def _source(name: str) -> str:
    # The tests of trees compare this file with Python.
    if name == "circuit.js":
        return files("foretell.forecasters.tree.arithmetic").joinpath(name).read_text(encoding="utf-8")
    return (STATIC_FOLDER / name).read_text(encoding="utf-8")


def _style() -> str:
    """Build the style sheet of every page: colours that follow the system or the visitor's choice, and ours."""
    return colour_variables(switchable=True) + report_text("regions.css") + _source("foretell.css")


def _figures() -> str:
    return figure_rules() + report_text("figures.css")


def _script() -> str:
    """Build the script of every page: shared behaviour, table sorting and figures."""
    return bundle("foretell.js", _source) + "".join(bundle(name, report_text) for name in ("sorting.js", "figures.js"))


def style_sheets(page: str, *, still: bool) -> Markup:
    """Return the markup of a page's style sheets: inlined, or as links if the pages are files that share them."""
    used = {f"<{name}" for name in set(_TAGS.findall(page))}
    used |= {f"#{name}" for name in _IDS.findall(page)}
    used |= {f".{name}" for names in set(_CLASSES.findall(page)) for name in names.split()}
    names = [name for name in SHEETS if any(rule <= used for rule in _requirements(name))]
    if still:
        link = Markup('<link rel="stylesheet" href="{}">')
        return Markup("\n").join(link.format(static_address(name)) for name in names)
    return Markup("\n".join(f'<style data-sheet="{name}">{static_text(name)}</style>' for name in names))


_TAGS, _IDS, _CLASSES = pattern(r"<([a-z]\w*)"), pattern(r' id="([^"]+)"'), pattern(r' class="([^"]+)"')
_BLOCK = pattern(r"@(?:media|container|keyframes)[^{]*\{|\{[^{}]*\}|\}|/\*.*?\*/", re.DOTALL)
_CHOICE = pattern(r":(?:not|nth[\w-]*)\((?:[^()]|\([^()]*\))*\)|:\w+\([^()]*,[^()]*\)|\[[^\]]*\]|::?[\w-]+")
"""What a selector excludes, chooses from or asks of the state of an element."""
_PART = pattern(r"([.#]?)([A-Za-z][\w-]*)")


@cache
def _requirements(name: str) -> frozenset[frozenset[str]]:
    """Return for each rule of a sheet which elements, classes and ids a page must have for the rule to apply."""
    selectors = _CHOICE.sub("", _BLOCK.sub(";", static_text(name) or ""))
    return frozenset(
        frozenset(f"{mark or '<'}{part}" for mark, part in _PART.findall(selector))
        for selector in re.split("[;,]", selectors)
        if selector.strip()
    )


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
