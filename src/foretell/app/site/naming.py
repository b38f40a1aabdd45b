"""From the address of a page to the file it is written to."""

import hashlib
import re
from posixpath import dirname, relpath
from urllib.parse import unquote, urlsplit

LONGEST = 80
KINDS = {"text/css": ".css", "text/javascript": ".js", "image/svg+xml": ".svg", "application/json": ".json"}


def file_of(address: str, kind: str = "text/html") -> str:
    """The file of an address, the same every time; what no file system takes is replaced and told apart by a mark.

    >>> file_of("/"), file_of("/runs/3f2a"), file_of("/static/tree.js?v=1", "text/javascript")
    ('index.html', 'runs/3f2a.html', 'static/tree.js')
    >>> file_of("/trees/view/run%2Fq"), file_of("/runs?offset=50")
    ('trees/view/run-q-....html', 'runs-....html')
    """
    parts = urlsplit(address)
    if parts.path.startswith("/static/"):
        return parts.path.lstrip("/")
    names = [_plain(unquote(one)) for one in parts.path.strip("/").split("/")] if parts.path != "/" else ["index"]
    exact = "/".join(names) == parts.path.strip("/") and not parts.query
    mark = "" if exact or address == "/" else "-" + hashlib.sha256(address.encode()).hexdigest()[:8]
    names[-1] += mark + _ending(names, kind)
    return "/".join(names)


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", text)[:LONGEST].strip(".-") or "page"


def _ending(names: list[str], kind: str) -> str:
    kind = kind.partition(";")[0].strip()
    return ".html" if kind == "text/html" else KINDS.get(kind, ".txt")


def link_between(page: str, target: str) -> str:
    """From one file to another, relative, so that the site may lie anywhere.

    >>> link_between("runs/3f2a.html", "static/theme.css"), link_between("index.html", "runs.html")
    ('../static/theme.css', 'runs.html')
    """
    return relpath(target, dirname(page) or ".")
