"""Crawls the web application as a visitor would and writes every page it reaches to a file.

Pages are written as they are reached, with a record of them, so that an interrupted export can go on.
"""

import gzip
import hashlib
import json
import re
import time
import zlib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from html import escape, unescape
from pathlib import Path
from posixpath import dirname
from urllib.parse import quote, unquote, urlsplit

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Scope

from foretell.arena.listing import arena_rows
from foretell.arena.store import ArenaStore
from foretell.data.files import write_atomically
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.errors import InputError
from foretell.report.result import Result
from foretell.runs.settings import Settings
from foretell.runs.tree_files import tree_folder
from foretell.web.app import create_app
from foretell.web.boards import page_version
from foretell.web.site_files import EXTRA_FILES, GROUP_PATTERN, UNPACK, PageGroup, file_of, key_of, link_from, pack_page
from foretell.web.state import WebState

# Convert a served page to a file: links lead to files, and whatever needs a server is removed.

PAGE_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'"
LINK_PATTERN = pattern(r' (href|src)="(/[^"]*)"')
HEAD_TAG = '<meta charset="utf-8">'


def links_in(page: str) -> list[str]:
    """Return every link of a page to this server. Foreign text is escaped, so none of its quotes can match."""
    return list(dict.fromkeys(unescape(match[2]).partition("#")[0] for match in LINK_PATTERN.finditer(page)))


def rewrite_page(page: str, where: Callable[[str], str | None]) -> str:
    """Return the page with each link replaced by the result of `where`; links for which it is None are removed."""

    def replaced(match: re.Match[str]) -> str:
        address, hash, anchor = unescape(match[2]).partition("#")
        target = where(address)
        return "" if target is None else f' {match[1]}="{escape(target + hash + anchor)}"'

    text = LINK_PATTERN.sub(replaced, page)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{PAGE_POLICY}">'
    return text.replace(HEAD_TAG, f"{HEAD_TAG}\n{policy}", 1)


START_PAGES = "/"
MAX_PAGES = 20_000
SAVE_SECONDS = 3.0
"""Time between two saves of pages that share a file; the work of an interrupted export since the last one is lost."""
SKIPPED_PATHS = ("/ask", "/setup", "/login", "/logout", "/compare", "/api", "/openapi.json")
"""Paths that only work on a server, or that describe this machine."""
ANSWER_PATTERN = pattern(r"/runs/([^/?]+)/questions/([^/?]+)\?due=([^&]+)$")
BOARD_PART = pattern(r"/arena/[^/?]+\?(?:.*&)?(?:view=(?!events)|every=)")
"""Parts of a board that its page contains."""
LOCAL_HOST = "127.0.0.1"

SiteProgress = Callable[[int, int], None]


def is_chosen(path: str, only: Collection[str]) -> bool:
    """Whether a page is to be written; if nothing was selected, all pages are.

    >>> is_chosen("/runs/3f2a", ["run:3f2a"]), is_chosen("/runs/3f2a", ["tree:nvda"]), is_chosen("/", ["tree:nvda"])
    (True, False, True)
    """
    extra = EXTRA_FILES.match(path)
    if path.startswith(SKIPPED_PATHS) and not extra:
        return False
    of_something = extra or path.startswith(("/runs/", "/arena/", "/trees/", "/record"))
    return not only or not of_something or any(is_about(path, chosen) for chosen in only)


def is_about(path: str, chosen: str) -> bool:
    """Whether a page or file is about a run, tree or arena, given as `run:NAME`, `tree:NAME` or `arena:NAME`."""
    kind, _, name = chosen.partition(":")
    about = path.removeprefix("/api")
    if kind == "tree":
        return about.startswith(("/trees/", "/tree/export/")) and path.endswith(f"/{name}")
    return f"{about}/".startswith(f"/{'runs' if kind == 'run' else 'arena'}/{name}/")


@frozen
class WrittenSite(Result):
    """Result of writing a site."""

    folder: Path
    pages: int
    files: int
    size: int
    """Total size in bytes."""
    broken: tuple[str, ...] = ()
    """Addresses that returned no page; links to them were removed."""
    full: bool = False
    """Whether there were more pages than a site may have."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the first addresses without a page, and about pages that were left out."""
        broken = tuple(f"no page at {address}" for address in self.broken[:10])
        most = f"a site has at most {MAX_PAGES:,} pages; the others were left out: choose with --only"
        return (*broken, most) if self.full else broken

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {**vars(self), "folder": str(self.folder), "broken": list(self.broken)}

    def __str__(self) -> str:
        """A one-line summary."""
        return f"Wrote {self.pages} pages, {self.size / 1e6:.1f} MB: open {self.folder / 'index.html'}"


@frozen
class _PageResponse:
    """The application's answer to a request for one page."""

    status: int
    headers: dict[str, str]
    body: bytes


async def _get_page(app: ASGIApp, address: str) -> _PageResponse:
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
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    head = next(message for message in messages if message["type"] == "http.response.start")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head.get("headers", ())}
    return _PageResponse(
        status=head["status"], headers=headers, body=b"".join(message.get("body", b"") for message in messages)
    )


RECORD = ".foretell-site.jsonl.gz"
"""File of a site that lists what was written: first the state of the data, then a page in each line.

The lines list the links of the pages, which are much alike: 9 MB of the demo take 0.3 MB.
"""


@frozen
class _Written:
    """A page or file of the site."""

    address: str
    file: str
    """The file with its content."""
    size: int
    """Its length in characters."""
    links: tuple[str, ...] = ()


@cache
def _pages_version() -> str:
    """Return a hash of the code that draws pages."""
    folder = Path(__file__).parent
    sources = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".html", ".css", ".js"))
    return hashlib.sha256(b"".join([page_version().encode(), *(path.read_bytes() for path in sources)])).hexdigest()


def _state_of_data(state: WebState, chosen: Collection[str]) -> str:
    """Return a hash of everything pages are made from; pages written in the same state need not be written again."""
    arenas = [
        (row, state.boards.state(row.name), ArenaStore(state.store.database, row.name).latest())
        for row in arena_rows(state.store.database)
    ]
    trees = [
        (path.name, path.stat().st_mtime_ns)
        for path in sorted(tree_folder(state.settings).rglob("*"))
        if path.is_file()
    ]
    runs, newest = state.store.runs(), state.store.last_event()
    own = [state.standing.record(question.id) for question in state.standing.questions()]
    everything = (_pages_version(), sorted(chosen), runs, newest, state.outcomes.count(), arenas, trees, own)
    return hashlib.sha256(repr(everything).encode()).hexdigest()


def _recorded(out: Path, mark: str) -> dict[str, _Written]:
    """Return what an earlier export of the same data wrote into the folder, by address."""
    try:
        first, *lines = _unzipped((out / RECORD).read_bytes()).splitlines()
        if json.loads(first) != {"state": mark}:
            return {}
        # The last line may be incomplete, if the process was killed.
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        written = [
            _Written(address=row["address"], file=row["file"], size=row["size"], links=tuple(row["links"]))
            for row in rows
        ]
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return {
        page.address: page
        for page in written
        if all((out / file).is_file() for file in (page.file, file_of(page.address)))
    }


def _zipped(lines: Iterable[object]) -> bytes:
    """Return objects as lines of JSON in one member of a gzip file."""
    return gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode(), mtime=0)


def _unzipped(data: bytes) -> str:
    """Return the text of all members of a gzip file, as far as they can be read: the last may have been cut off."""
    text = b""
    with suppress(zlib.error):
        while data:
            member = zlib.decompressobj(wbits=31)
            text += member.decompress(data)
            data = member.unused_data
    return text.decode(errors="replace")


def _arenas_of_runs(state: WebState) -> dict[str, str]:
    """Return the arena of each run that is an entry of one."""
    database = state.store.database
    stores = [ArenaStore(database, row.name) for row in arena_rows(database)]
    return {entry.run: store.arena for store in stores for entry in store.entries()}


@dataclass(kw_only=True)
class _Crawl:
    app: ASGIApp
    out: Path
    only: Collection[str]
    arenas: dict[str, str]
    """The arena of each run that is an entry of one."""
    progress: SiteProgress
    recorded: dict[str, _Written]
    """What an earlier export wrote."""
    written: dict[str, _Written] = field(default_factory=dict[str, _Written])
    broken: dict[str, str] = field(default_factory=dict[str, str])
    """Addresses without a page, and why."""
    full: bool = False
    """Whether there were more pages than a site may have."""
    _groups: dict[str, PageGroup] = field(default_factory=dict[str, PageGroup])

    def __post_init__(self) -> None:
        for page in self.recorded.values():
            if group := self._group_of(page.address):
                group.recall(page.file, key_of(page.address), page.size)

    async def run(self, mark: str) -> None:
        write_atomically(self.out / RECORD, _zipped([{"state": mark}, *map(asdict, self.recorded.values())]))
        waiting = [START_PAGES]
        seen, saved = {START_PAGES}, time.monotonic()
        try:
            for address in waiting:
                page = self.recorded.get(address) or await self._write(address)
                if page is None:
                    continue
                self.written[address] = page
                if time.monotonic() - saved > SAVE_SECONDS:
                    self._save()
                    saved = time.monotonic()
                for link in page.links:
                    if link in seen:
                        continue
                    if len(seen) == MAX_PAGES:
                        self.full = True
                        break
                    seen.add(link)
                    waiting.append(link)
                self.progress(len(self.written), len(waiting) - len(self.broken))
            for page in [page for page in self.written.values() if self.broken.keys() & set(page.links)]:
                await self._write(page.address)  # Again, without the links that lead nowhere.
        finally:
            self._save()

    def files(self) -> set[str]:
        """Return every file of the site."""
        return {page.file for page in self.written.values()} | {group.file for group in self._groups.values()}

    def _save(self) -> None:
        """Save pages that share a file, and then record what was written."""
        for group in self._groups.values():
            group.save()
        new = [page for address, page in self.written.items() if address not in self.recorded]
        if new:
            with (self.out / RECORD).open("ab") as record:
                record.write(_zipped(map(asdict, new)))
        self.recorded |= {page.address: page for page in new}

    def _group_of(self, address: str) -> PageGroup | None:
        """Return the group of a page that shares its file with others."""
        if not GROUP_PATTERN.match(address):
            return None
        file = file_of(address)
        return self._groups.setdefault(file, PageGroup(out=self.out, file=file))

    async def _write(self, address: str) -> _Written | None:
        """Fetch an address and write its file; return None if there is no such page."""
        answer = await _get_page(self.app, address)
        if answer.status != 200:
            self.broken[address] = f"{address}: {answer.status}"
            return None
        file, body, links = file_of(address), answer.body, tuple[str, ...]()
        is_page = answer.headers.get("content-type", "text/html").startswith("text/html")
        if is_page and "content-disposition" not in answer.headers:
            text = body.decode("utf-8", "replace")
            targets = {link: self._target(link) for link in links_in(text)}
            links = tuple(dict.fromkeys(target for target, _ in filter(None, targets.values())))
            folder = dirname(file) or "."

            def relative(link: str) -> str | None:
                target = targets[link]
                return None if target is None else link_from(folder, target[0]) + target[1]

            text, links = rewrite_page(text, relative), (*links, UNPACK)
            if group := self._group_of(address):
                file, size = group.add(key_of(address), text)
                return _Written(address=address, file=file, size=size, links=links)
            body = pack_page(text, link_from(folder, UNPACK)).encode()
        path = self.out / file
        if not path.is_file() or path.read_bytes() != body:
            write_atomically(path, body)
        return _Written(address=address, file=file, size=len(body), links=links)

    def _target(self, link: str) -> tuple[str, str] | None:
        """Return the address of the page that a link leads to and the place on it; None if it is left out.

        The steps to an answer of an arena's entry are on the page of the event.
        """
        answer, anchor = ANSWER_PATTERN.match(link), ""
        if answer and (arena := self.arenas.get(unquote(answer[1]))):
            event = f"/arena/{quote(arena, safe='')}/event/{answer[2]}"
            if is_chosen(unquote(event), self.only):
                link, anchor = event, f"#said-{answer[1]}-{answer[3]}"
        wanted = link.startswith("/static/") or is_chosen(unquote(urlsplit(link).path), self.only)
        return (link, anchor) if wanted and not BOARD_PART.match(link) and link not in self.broken else None


def _check_exists(state: WebState, chosen: str) -> None:
    kind, _, name = chosen.partition(":")
    trees = (tree_folder(state.settings) / f"{name}.json").is_file
    arenas = (row.name for row in arena_rows(state.store.database))
    if not {"run": lambda: True, "tree": trees, "arena": lambda: name in arenas}.get(kind, bool)():
        raise InputError(f"there is no {chosen.replace(':', ' ', 1)}", column="--only")


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
    """Write the pages into a folder, each as soon as it is made; other files in it are left alone.

    If an earlier call was interrupted or nothing has changed since, pages that it wrote are not made again.

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
    # The application as a visitor without a token sees it.
    app = create_app(settings, still=True)
    state: WebState = app.state.serving
    try:
        chosen = [_with_run_id(state, name) for name in only]
        for name in chosen:
            _check_exists(state, name)
        mark = _state_of_data(state, chosen)
        crawl = _Crawl(
            app=app,
            out=out,
            only=chosen,
            arenas=_arenas_of_runs(state),
            progress=progress,
            recorded=_recorded(out, mark),
        )
        await crawl.run(mark)
    finally:
        state.close()
    pages = sum(bool(page.links) for page in crawl.written.values())
    files, broken = crawl.files(), tuple(crawl.broken.values())
    size = sum((out / file).stat().st_size for file in files)
    return WrittenSite(folder=out, pages=pages, files=len(files), size=size, broken=broken, full=crawl.full)
