"""Crawls the web application as a visitor would and writes every page it reaches to a file."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path
from posixpath import dirname, relpath
from urllib.parse import unquote, urlsplit

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Scope

from foretell.data.files import write_atomically
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings
from foretell.web.app import create_app
from foretell.web.state import WebState

# From the address of a page to the file it is written to.

MAX_NAME = 80
FILE_ENDINGS = {
    "text/html": ".html",
    "text/css": ".css",
    "text/javascript": ".js",
    "image/svg+xml": ".svg",
    "application/json": ".json",
}


def file_of(address: str, kind: str = "text/html") -> str:
    """Return the file path for an address, always the same; replaced characters and queries are told apart by a hash.

    >>> file_of("/"), file_of("/runs/3f2a"), file_of("/static/tree.js?v=1", "text/javascript")
    ('index.html', 'runs/3f2a.html', 'static/tree.js')
    >>> file_of("/trees/view/run%2Fq"), file_of("/runs?offset=50")
    ('trees/view/run-q-....html', 'runs-....html')
    """
    if address == "/":
        return "index.html"
    parts = urlsplit(address)
    path = parts.path.strip("/")
    if path.startswith("static/") and ".." not in path:
        return path
    names = [re.sub(r"[^A-Za-z0-9._=-]+", "-", unquote(one))[:MAX_NAME].strip(".-") for one in path.split("/")]
    file = "/".join(name or "page" for name in names)
    mark = "" if file == path and not parts.query else "-" + hashlib.sha256(address.encode()).hexdigest()[:8]
    return file + mark + FILE_ENDINGS.get(kind.partition(";")[0].strip(), ".txt")


# A served page as a file: links lead to files, and what only a server can do is gone.

PAGE_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'"
LINK_PATTERN = re.compile(r' (href|src)="(/[^"]*)"')
STREAM_PATTERN = re.compile(r' data-(?:stream|after)="[^"]*"')
HEAD_TAG = '<meta charset="utf-8">'


def links_in(page: str) -> list[str]:
    """Return every link of a page to this server. Foreign text is escaped, so none of its quotes can match."""
    return list(dict.fromkeys(unescape(found[2]).partition("#")[0] for found in LINK_PATTERN.finditer(page)))


def rewrite_page(page: str, where: Callable[[str], str | None]) -> str:
    """Return the page with each link replaced by the result of `where`; links for which it is None are removed."""

    def replaced(found: re.Match[str]) -> str:
        address, hash, anchor = unescape(found[2]).partition("#")
        target = where(address)
        return "" if target is None else f' {found[1]}="{escape(target + hash + anchor)}"'

    text = STREAM_PATTERN.sub("", LINK_PATTERN.sub(replaced, page))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{PAGE_POLICY}">'
    return text.replace(HEAD_TAG, f"{HEAD_TAG}\n{policy}", 1)


START_PAGES = "/"
MAX_PAGES = 20_000
SKIPPED_PATHS = ("/ask", "/models", "/doctor", "/login", "/logout", "/api", "/openapi.json")
"""Paths that only work on a server, or that describe this machine."""
EXTRA_FILES = ("/api/tree/export/",)
"""Paths of the API that pages offer as files."""
LOCAL_HOST = "127.0.0.1"

SiteProgress = Callable[[int, int], None]


def is_chosen(path: str, only: Collection[str]) -> bool:
    """Whether a page is to be written; if nothing was selected, all pages are.

    >>> is_chosen("/runs/3f2a", ["run:3f2a"]), is_chosen("/runs/3f2a", ["tree:nvda"]), is_chosen("/", ["tree:nvda"])
    (True, False, True)
    """
    if path.startswith(SKIPPED_PATHS) and not path.startswith(EXTRA_FILES):
        return False
    about = ("/runs/", "/arena/", "/trees/", *EXTRA_FILES)
    return not only or not path.startswith(about) or any(is_about(path, chosen) for chosen in only)


def is_about(path: str, chosen: str) -> bool:
    """Whether a page is about a run, tree or arena, given as `run:NAME`, `tree:NAME` or `arena:NAME`."""
    kind, _, name = chosen.partition(":")
    if kind == "tree":
        return path.startswith(("/trees/", *EXTRA_FILES)) and path.endswith(f"/{name}")
    return f"{path}/".startswith(f"/{'runs' if kind == 'run' else 'arena'}/{name}/")


@dataclass(frozen=True, kw_only=True)
class WrittenSite(Result):
    """Result of writing a site."""

    folder: Path
    pages: int
    files: int
    size: int
    """Total size in bytes."""
    broken: tuple[str, ...] = ()
    """Addresses that returned no page; links to them were removed."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the first addresses without a page."""
        return tuple(f"no page at {address}" for address in self.broken[:10])

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {**vars(self), "folder": str(self.folder), "broken": list(self.broken)}

    def __str__(self) -> str:
        """A one-line summary."""
        return f"Wrote {self.pages} pages, {self.size / 1e6:.1f} MB: open {self.folder / 'index.html'}"


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """The application's answer to a request for one page."""

    status: int
    headers: dict[str, str]
    body: bytes


async def _visit(app: ASGIApp, address: str) -> _Visit:
    """Ask the application for a page in this process, as a server would."""
    parts = urlsplit(address)
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [(b"host", LOCAL_HOST.encode()), (b"accept", b"*/*")],
        "client": (LOCAL_HOST, 0),
        "server": (LOCAL_HOST, 80),
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    head = next(one for one in sent if one["type"] == "http.response.start")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head.get("headers", ())}
    return _Visit(status=head["status"], headers=headers, body=b"".join(one.get("body", b"") for one in sent))


@dataclass(kw_only=True)
class _Crawl:
    app: ASGIApp
    only: Collection[str]
    progress: SiteProgress
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Maps each address to its file."""
    bodies: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, tuple[str, bytes]])
    """Maps each address to its media type and content."""
    broken: list[str] = field(default_factory=list[str])

    async def run(self) -> None:
        waiting = [START_PAGES]
        seen = {START_PAGES}
        while waiting and len(self.bodies) < MAX_PAGES:
            address = waiting.pop(0)
            found = await self._get(address)
            for link in links_in(found) if found else ():
                if link not in seen and (
                    link.startswith("/static/") or is_chosen(unquote(urlsplit(link).path), self.only)
                ):
                    seen.add(link)
                    waiting.append(link)
            self.progress(len(self.bodies), len(self.bodies) + len(waiting))

    async def _get(self, address: str) -> str:
        """Fetch and store an address; return its text if it is a page that may hold links, else an empty string."""
        answer = await _visit(self.app, address)
        if answer.status != 200:
            self.broken.append(f"{address}: {answer.status}")
            return ""
        kind = answer.headers.get("content-type", "text/html")
        self.files[address] = file_of(address, kind)
        self.bodies[address] = (kind, answer.body)
        attached = "content-disposition" in answer.headers
        return answer.body.decode("utf-8", "replace") if kind.startswith("text/html") and not attached else ""

    def content(self, address: str) -> bytes:
        """Return the content of the file for an address."""
        kind, body = self.bodies[address]
        if not kind.startswith("text/html") or address.startswith(EXTRA_FILES):
            return body
        folder = dirname(self.files[address]) or "."

        def relative(link: str) -> str | None:
            """Return a relative link, so that the site can be placed anywhere."""
            return relpath(self.files[link], folder) if link in self.files else None

        return rewrite_page(body.decode("utf-8", "replace"), relative).encode()


def _with_run_id(state: WebState, chosen: str) -> str:
    """Return what was chosen, with the id of a run instead of its name."""
    kind, _, name = chosen.partition(":")
    try:
        return f"run:{state.run(name).id}" if kind == "run" else chosen
    except HTTPException as error:
        raise InputError(error.detail, column="--only", hint="foretell runs lists them") from None


async def write_site(
    out: Path,
    settings: Settings,
    *,
    only: Iterable[str] = (),
    progress: SiteProgress = lambda done, all: None,
) -> WrittenSite:
    """Write the pages into a folder. Existing files are replaced one by one; other files are left alone.

    Args:
        out: The folder.
        settings: The home whose pages are written.
        only: Write only these, as `run:NAME`, `tree:NAME` or `arena:NAME`; everything if empty.
        progress: Called with the number of pages written and known.

    Raises:
        InputError: If the folder is a file, or there is no such run, tree or arena.
    """
    if out.exists() and not out.is_dir():
        raise InputError("is a file, not a folder", path=out)
    # Somebody who looks at the application without a network and may change nothing.
    app = create_app(settings, still=True)
    try:
        chosen = [_with_run_id(app.state.serving, name) for name in only]
        walk = _Crawl(app=app, only=chosen, progress=progress)
        await walk.run()
        paths = [unquote(urlsplit(address).path) for address in walk.files]
        for name in chosen:
            if not any(is_about(path, name) for path in paths):
                raise InputError(f"there is no {name.replace(':', ' ', 1)}", column="--only")
    finally:
        app.state.serving.close()
    size = 0
    for address, file in walk.files.items():
        content = walk.content(address)
        write_atomically(out / file, content)
        size += len(content)
    pages = sum(kind.startswith("text/html") for kind, _ in walk.bodies.values())
    return WrittenSite(folder=out, pages=pages, files=len(walk.files), size=size, broken=tuple(walk.broken))
