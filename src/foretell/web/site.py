"""Crawls the web application as a visitor would and writes every page it reaches to a file.

Pages are written as they are reached, with a record of them, so that an interrupted export can go on. The content of a
page is stored compressed in it, because charts are large and browsers load no data of their own accord from disk.
"""

import hashlib
import json
import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from html import escape, unescape
from pathlib import Path
from posixpath import dirname, relpath
from urllib.parse import quote, unquote, urlsplit

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Scope

from foretell.arena.listing import arena_rows
from foretell.arena.store import ArenaStore
from foretell.data.files import write_atomically
from foretell.questions.errors import InputError
from foretell.report.result import Result
from foretell.runs.settings import Settings
from foretell.runs.tree_files import tree_folder
from foretell.web.app import create_app
from foretell.web.boards import page_version
from foretell.web.state import WebState
from foretell.web.static_files import static_address

# File names for addresses.

MAX_NAME = 80


def file_of(address: str) -> str:
    """Return the file path for an address, always the same; replaced characters and queries are told apart by a hash.

    >>> file_of("/"), file_of("/runs/3f2a"), file_of("/static/tree.js?v=1")
    ('index.html', 'runs/3f2a.html', 'static/tree-1.js')
    >>> file_of("/trees/view/run%2Fq"), file_of("/runs?offset=50")
    ('trees/view/run-q-....html', 'runs-....html')
    """
    if address == "/":
        return "index.html"
    parts = urlsplit(address)
    if shared := re.fullmatch(r"/(static/[\w-]+)(\.\w+)\?v=(\w+)", address):
        return f"{shared[1]}-{shared[3]}{shared[2]}"
    path = parts.path.strip("/")
    names = [re.sub(r"[^A-Za-z0-9._=-]+", "-", unquote(part))[:MAX_NAME].strip(".-") for part in path.split("/")]
    file = "/".join(name or "page" for name in names)
    mark = "" if file == path and not parts.query else "-" + hashlib.sha256(address.encode()).hexdigest()[:8]
    plain = EXTRA_FILES.match(address) and "/html/" not in address
    return file + mark + (".txt" if plain else ".html")


# Convert a served page to a file: links lead to files, and whatever needs a server is removed.

PAGE_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'"
LINK_PATTERN = re.compile(r' (href|src)="(/[^"]*)"')
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


SMALLEST_PACKED = 8_000
"""Length in characters from which the content of a page is stored compressed."""
CONTENT_PATTERN = re.compile(r'(<main id="main"[^>]*>)(.*)(</main>)', re.DOTALL)
HEAD_PATTERN = re.compile(r'<h1.*?</h1>\s*(?:<p class="lead".*?</p>)?', re.DOTALL)
SCRIPT_PATTERN = re.compile(r'<script defer src="([^"]*)"></script>\n?')
UNPACK = static_address("unpack.js")


def pack_page(page: str, script: str) -> str:
    """Return the page with its content compressed; `script` is the link to the script that unpacks it.

    The heading and the finding stay readable without the script.
    """
    content = CONTENT_PATTERN.search(page)
    if content is None or len(content[2]) < SMALLEST_PACKED:
        return page
    head = HEAD_PATTERN.search(content[2])
    packed = b64encode(zlib.compress(content[2].encode(), 9)).decode()
    before, after = page[: content.start(2)], page[content.end(2) :]
    scripts = " ".join(SCRIPT_PATTERN.findall(after))
    after = SCRIPT_PATTERN.sub("", after).replace(
        "</body>",
        f'<script type="text/plain" id="packed">{packed}</script>\n'
        f'<script src="{script}" data-then="{scripts}"></script>\n</body>',
    )
    note = '<noscript><p class="note">The rest of this page needs JavaScript.</p></noscript>'
    return f"{before}{head[0] if head else ''}{note}{after}"


START_PAGES = "/"
MAX_PAGES = 20_000
SKIPPED_PATHS = ("/ask", "/setup", "/login", "/logout", "/compare", "/api", "/openapi.json")
"""Paths that only work on a server, or that describe this machine."""
EXTRA_FILES = re.compile(r"/api/tree/export/")
"""Paths of the API that pages offer as files."""
ANSWER_PATTERN = re.compile(r"/runs/([^/?]+)/questions/([^/?]+)\?due=([^&]+)$")
BOARD_PART = re.compile(r"/arena/[^/?]+\?(?:.*&)?(?:view=(?!events)|every=)")
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


RECORD = ".foretell-site.jsonl"
"""File of a site that lists what was written: first the state of the data, then a page in each line."""


@dataclass(frozen=True, kw_only=True)
class _Written:
    """A page or file of the site."""

    address: str
    file: str
    size: int
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
        first, *lines = (out / RECORD).read_text(encoding="utf-8").splitlines()
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
    return {page.address: page for page in written if (out / page.file).is_file()}


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

    async def run(self, mark: str) -> None:
        waiting = [START_PAGES]
        seen = {START_PAGES}
        for address in waiting:
            page = self.recorded.get(address) or await self._write(address)
            if page is None:
                continue
            if not self.written:
                self._begin_record(mark)
            self.written[address] = page
            if address not in self.recorded:
                with (self.out / RECORD).open("a", encoding="utf-8") as record:
                    record.write(json.dumps(asdict(page)) + "\n")
            for link in page.links:
                if link not in seen and len(seen) < MAX_PAGES:
                    seen.add(link)
                    waiting.append(link)
            self.progress(len(self.written), len(waiting) - len(self.broken))
        for page in [page for page in self.written.values() if self.broken.keys() & set(page.links)]:
            await self._write(page.address)  # Again, without the links that lead nowhere.

    def _begin_record(self, mark: str) -> None:
        lines = [{"state": mark}, *map(asdict, self.recorded.values())]
        write_atomically(self.out / RECORD, "".join(json.dumps(line) + "\n" for line in lines).encode())

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
                """Return a relative link, so that the site can be placed anywhere."""
                target = targets[link]
                return None if target is None else relpath(file_of(target[0]), folder) + target[1]

            body = pack_page(rewrite_page(text, relative), relpath(file_of(UNPACK), folder)).encode()
            links = (*links, UNPACK)
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
    files = crawl.written.values()
    pages = sum(bool(page.links) for page in files)
    size, broken = sum(page.size for page in files), tuple(crawl.broken.values())
    return WrittenSite(folder=out, pages=pages, files=len(files), size=size, broken=broken)
