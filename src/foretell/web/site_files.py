"""How the pages of a written site are stored: a page as a file of its own, or many of one kind in one file.

The questions of a run are shown by one file. Their contents are data beside it, in parts of many pages, so that a site
of ten thousand questions has a few dozen files. Contents are stored compressed, because charts are large, and the parts
are scripts, because browsers load no other data from disk.
"""

import hashlib
import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from posixpath import basename, dirname, relpath
from urllib.parse import unquote, urlsplit

from foretell.data.files import write_atomically
from foretell.patterns import pattern
from foretell.web.static_files import SHEETS, static_address

# File names for addresses.

MAX_NAME = 80
EXTRA_FILES = pattern(r"/api/tree/export/")
"""Paths of the API that pages offer as files."""
GROUP_PATTERN = pattern(r"(/runs/[^/?]+/questions|/arena/[^/?]+/event|/trees/claim/[^/?]+)/(?=[^/?])")
"""The beginning of the addresses of pages that share a file."""


def file_of(address: str) -> str:
    """Return the file path for an address, always the same; replaced characters and queries are told apart by a hash.

    Pages of one kind have one file.

    >>> file_of("/"), file_of("/runs/3f2a"), file_of("/static/tree.js?v=1")
    ('index.html', 'runs/3f2a.html', 'static/tree-1.js')
    >>> file_of("/trees/view/run%2Fq"), file_of("/runs?offset=50")
    ('trees/view/run-q-....html', 'runs-....html')
    >>> file_of("/runs/3f2a/questions/own%2F1?due=2026-07-01"), file_of("/arena/cup/event/KXFED")
    ('runs/3f2a/questions.html', 'arena/cup/event.html')
    """
    if address == "/":
        return "index.html"
    if group := GROUP_PATTERN.match(address):
        address = group[1]
    parts = urlsplit(address)
    if shared := re.fullmatch(r"/(static/[\w-]+)(\.\w+)\?v=(\w+)", address):
        return f"{shared[1]}-{shared[3]}{shared[2]}"
    path = parts.path.strip("/")
    names = [re.sub(r"[^A-Za-z0-9._=-]+", "-", unquote(part))[:MAX_NAME].strip(".-") for part in path.split("/")]
    file = "/".join(name or "page" for name in names)
    mark = "" if file == path and not parts.query else "-" + hashlib.sha256(address.encode()).hexdigest()[:8]
    plain = EXTRA_FILES.match(address) and "/html/" not in address
    return file + mark + (".txt" if plain else ".html")


def link_from(folder: str, address: str) -> str:
    """Return the relative link from a folder to a page or file, so that the site can be placed anywhere.

    A page that shares its file has a key in the link: always the same, so that a link that was shared stays valid.
    """
    link = relpath(file_of(address), folder)
    return f"{link}?{key_of(address)}" if GROUP_PATTERN.match(address) else link


def key_of(address: str) -> str:
    """Return the name of a page among those that share its file."""
    return hashlib.sha256(address.encode()).hexdigest()[:12]


# Pages whose content is stored compressed in them.

SMALLEST_PACKED = 8_000
"""Length in characters from which the content of a page is stored compressed."""
CONTENT_PATTERN = pattern(r'(<main id="main"[^>]*>)(.*)(</main>)', re.DOTALL)
HEAD_PATTERN = pattern(r'<h1.*?</h1>\s*(?:<p class="lead".*?</p>)?', re.DOTALL)
SCRIPT_PATTERN = pattern(r'<script defer src="([^"]*)"></script>\n?')
TITLE_PATTERN = pattern(r"(?<=<title>).*?(?=</title>)", re.DOTALL)
UNPACK = static_address("unpack.js")
SHEET_PATTERN = pattern(r'<link rel="stylesheet" [^>]*>')
NEEDS_SCRIPT = '<noscript><p class="note">{} needs JavaScript.</p></noscript>'


def packed(text: str) -> str:
    """Return a text compressed, as Base64."""
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def pack_page(page: str, script: str) -> str:
    """Return the page with its content compressed; `script` is the link to the script that unpacks it.

    The heading and the finding stay readable without the script.
    """
    content = CONTENT_PATTERN.search(page)
    if content is None or len(content[2]) < SMALLEST_PACKED:
        return page
    head = HEAD_PATTERN.search(content[2])
    data = f'<script type="text/plain" id="packed">{packed(content[2])}</script>'
    return _filled_by(script, page, (head[0] if head else "") + NEEDS_SCRIPT.format("The rest of this page"), data)


def _filled_by(script: str, page: str, content: str, data: str) -> str:
    """Return the page with other content and data from which a script fills it before the page's scripts start."""
    main = CONTENT_PATTERN.search(page)
    assert main is not None
    before, after = page[: main.start(2)], page[main.end(2) :]
    scripts = " ".join(SCRIPT_PATTERN.findall(after))
    after = SCRIPT_PATTERN.sub("", after).replace(
        "</body>", f'{data}\n<script src="{script}" data-then="{scripts}"></script>\n</body>'
    )
    return f"{before}{content}{after}"


# Pages of one kind in one file.

SMALLEST_PART = 1_500_000
"""Length in characters of the contents from which a part is complete."""
SHARE = 24
"""A part is complete only with 1/24 of the contents before it, so that there are few parts however many pages."""
PART_PATTERN = pattern(r'\.packed = "([^"]*)"')


def sheet_place(link: str) -> int:
    """Return the place of a link to a style sheet among those of a page."""
    return next(place for place, name in enumerate(SHEETS) if f"/{name.removesuffix('.css')}-" in link)


@dataclass(kw_only=True)
class PageGroup:
    """Pages of one kind: the file that shows them, and the parts with their contents."""

    out: Path
    """The folder of the site."""
    file: str
    """The file that shows them, relative to the folder of the site."""
    parts: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    """The pages in each part, by name, with the lengths of their contents."""
    _unsaved: dict[int, dict[str, tuple[str, str]]] = field(default_factory=dict[int, dict[str, tuple[str, str]]])
    """The title and content of every page in the parts that have changed since they were saved."""
    _lengths: list[int] = field(default_factory=list[int])
    """The length of the contents of each part."""
    _page: str = ""
    """One of the pages, from which their file is made."""
    _sheets: set[str] = field(default_factory=set[str])
    """The links to the style sheets of all pages."""

    def part_file(self, number: int) -> str:
        """Return the file of a part, relative to the folder of the site."""
        return f"{self.file.removesuffix('.html')}/{number + 1}.js"

    def recall(self, file: str, key: str, length: int) -> None:
        """Note a page that an earlier export saved."""
        number = int(basename(file).removesuffix(".js")) - 1
        if not self.parts:
            self._sheets |= set(SHEET_PATTERN.findall((self.out / self.file).read_text(encoding="utf-8")))
        self._begin_parts(number + 1)
        self._note(number, key, length)

    def add(self, key: str, page: str) -> tuple[str, int]:
        """Add a page, or replace it, and return the file it will be saved in and the length of its content."""
        content, title = CONTENT_PATTERN.search(page), TITLE_PATTERN.search(page)
        assert content is not None
        assert title is not None
        number = next((number for number, part in enumerate(self.parts) if key in part), None)
        if number is None:
            if not self.parts or self._is_complete():
                self._begin_parts(len(self.parts) + 1)
            number = len(self.parts) - 1
        contents, length = self._contents(number), len(content[2])
        self._note(number, key, length)
        contents[key] = (unescape(title[0]), content[2])
        self._unsaved[number], self._page = contents, page
        self._sheets |= set(SHEET_PATTERN.findall(page))
        return self.part_file(number), length

    def save(self) -> None:
        """Write the parts that have changed, and then the file that finds each page in them."""
        if not self._unsaved:
            return
        for number, contents in self._unsaved.items():
            text = f'document.currentScript.packed = "{packed(json.dumps(contents, ensure_ascii=False))}";\n'
            write_atomically(self.out / self.part_file(number), text.encode())
        self._unsaved.clear()
        write_atomically(self.out / self.file, self._shell().encode())

    def _shell(self) -> str:
        """Return the page that shows the one its address names."""
        folder = basename(self.file).removesuffix(".html")
        keys = "\n".join(" ".join(part) for part in self.parts)
        data = f'<script type="text/plain" id="pages" data-folder="{folder}">{keys}</script>'
        page = TITLE_PATTERN.sub("foretell", SHEET_PATTERN.sub("", self._page), count=1)
        page = page.replace("</head>", "\n".join(sorted(self._sheets, key=sheet_place)) + "\n</head>", 1)
        return _filled_by(link_from(dirname(self.file), UNPACK), page, NEEDS_SCRIPT.format("This page"), data)

    def _begin_parts(self, count: int) -> None:
        """Add empty parts until there are `count`."""
        missing = range(count - len(self.parts))
        self.parts += [{} for _ in missing]
        self._lengths += [0 for _ in missing]

    def _note(self, number: int, key: str, length: int) -> None:
        self._lengths[number] += length - self.parts[number].get(key, 0)
        self.parts[number][key] = length

    def _is_complete(self) -> bool:
        """Whether the last part is long enough."""
        *before, last = self._lengths
        return last >= max(SMALLEST_PART, sum(before) / SHARE)

    def _contents(self, number: int) -> dict[str, tuple[str, str]]:
        """Return the pages of a part, from its file if they are saved."""
        if number in self._unsaved:
            return self._unsaved[number]
        if not self.parts[number]:
            return {}
        saved = read_part(self.out / self.part_file(number))
        # An interrupted export may have saved pages that it did not record.
        return {key: saved[key] for key in self.parts[number]}


def read_part(path: Path) -> Mapping[str, tuple[str, str]]:
    """Return the title and content of every page in a saved part."""
    match = PART_PATTERN.search(path.read_text(encoding="utf-8"))
    assert match is not None, path
    return {key: (title, content) for key, (title, content) in json.loads(zlib.decompress(b64decode(match[1]))).items()}
