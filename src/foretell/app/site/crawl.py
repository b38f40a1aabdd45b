"""Walks through the web application as a visitor would, and writes down every page it comes to."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.app.settings import Settings
from foretell.app.site.bundling import bundle
from foretell.app.site.naming import file_of, link_between
from foretell.app.site.rewriting import links_in, rewritten
from foretell.questions.problems import InputError
from foretell.sources.whole_file import write_whole

if TYPE_CHECKING:
    import httpx2

START = "/"
LEFT_OUT = ("/ask", "/login", "/logout", "/api", "/openapi.json")
"""What only a server can do."""
TAKEN_ALONG = ("/api/tree/export/",)
"""Of the API, what pages offer as files."""
HERE = "http://127.0.0.1"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which part of everything to write; without a choice, all of it."""

    runs: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    arenas: tuple[str, ...] = ()
    most: int = 20_000
    """Pages."""

    def takes(self, path: str) -> bool:
        """Whether a page belongs to it."""
        if path.startswith(LEFT_OUT) and not path.startswith(TAKEN_ALONG):
            return False
        if not (self.runs or self.trees or self.arenas):
            return True
        for prefix, names in (("/runs/", self.runs), ("/arena/", self.arenas)):
            if path.startswith(prefix):
                return path[len(prefix) :].partition("/")[0] in names
        if path.startswith(("/trees/", *TAKEN_ALONG)):
            return any(path.endswith(f"/{name}") for name in self.trees)
        return True


@dataclass(frozen=True, kw_only=True)
class Written:
    """What came of it."""

    pages: int
    files: int
    size: int
    """In bytes."""
    broken: tuple[str, ...] = ()
    """Addresses that gave no page; links to them were taken out."""


@dataclass(kw_only=True)
class _Walk:
    client: "httpx2.AsyncClient"
    chosen: Chosen
    progress: Progress
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Address → file."""
    bodies: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, tuple[str, bytes]])
    """Address → kind and content."""
    broken: list[str] = field(default_factory=list[str])

    async def run(self) -> None:
        waiting = [START]
        seen = {START}
        while waiting and len(self.bodies) < self.chosen.most:
            address = waiting.pop(0)
            found = await self._get(address)
            for link in links_in(found) if found else ():
                if link not in seen and (link.startswith("/static/") or self.chosen.takes(_path(link))):
                    seen.add(link)
                    waiting.append(link)
            self.progress(len(self.bodies), len(self.bodies) + len(waiting))

    async def _get(self, address: str) -> str:
        """The text of a page, kept; empty for what holds no links."""
        answer = await self.client.get(address)
        if answer.status_code != 200:
            self.broken.append(f"{address}: {answer.status_code}")
            return ""
        kind = answer.headers.get("content-type", "text/html")
        self.files[address] = file_of(address, kind)
        self.bodies[address] = (kind, answer.content)
        attached = "content-disposition" in answer.headers
        return answer.text if kind.startswith("text/html") and not attached else ""

    def content(self, address: str) -> bytes:
        """What goes into the file of an address."""
        kind, body = self.bodies[address]
        if kind.startswith("text/javascript"):
            return bundle(Path(self.files[address]).name, _script).encode()
        text = body.decode("utf-8", "replace")
        if not kind.startswith("text/html") or address.startswith(TAKEN_ALONG):
            return body
        page = self.files[address]
        targets = {link: self.files[link] for link in links_in(text) if link in self.files}
        return rewritten(text, lambda link: link_between(page, targets[link]) if link in targets else None).encode()


def _path(address: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(address).path)


def _script(name: str) -> str:
    from foretell.app.web.statics import static_text

    text = static_text(name)
    assert text is not None, name
    return text


async def write_site(
    out: Path, settings: Settings, *, chosen: Chosen | None = None, progress: Progress = lambda done, all: None
) -> Written:
    """Write the pages into a folder. Files that are there are replaced one by one, others are left alone."""
    chosen = chosen or Chosen()
    if out.exists() and not out.is_dir():
        raise InputError("is a file, not a folder", path=out)
    async with _visitor(settings) as client:
        walk = _Walk(client=client, chosen=chosen, progress=progress)
        await walk.run()
    size = 0
    for address, file in walk.files.items():
        content = walk.content(address)
        path = out / file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        size += len(content)
    pages = sum(kind.startswith("text/html") for kind, _ in walk.bodies.values())
    return Written(pages=pages, files=len(walk.files), size=size, broken=tuple(walk.broken))


@asynccontextmanager
async def _visitor(settings: Settings) -> "AsyncGenerator[httpx2.AsyncClient]":
    """Somebody who looks at the application without a network and may change nothing."""
    import httpx2

    from foretell.app.web.server import create_app

    app = create_app(settings, still=True)
    try:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=HERE) as client:
            yield client
    finally:
        app.state.serving.close()
