"""Pages of a static site as a browser shows them: their content is stored compressed, in them or beside them."""

import gzip
import json
import re
import zlib
from base64 import b64decode
from pathlib import Path


def page_text(path: Path) -> str:
    """Return the text of a file of the site, with the content of a page in its place, and of a part all its pages."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    text = path.read_text(encoding="utf-8")
    if part := re.search(r'\.packed = "([^"]*)"', text):
        return "\n".join(content for _, content in json.loads(_unpacked(part[1])).values())
    packed = re.search(r'<script type="text/plain" id="packed">([^<]*)</script>', text)
    return text if packed is None else _with_content(text, _unpacked(packed[1]))


def written_pages(out: Path) -> dict[str, str]:
    """Return every page of a site by its link from the site's folder; those that share a file have a query in it."""
    pages: dict[str, str] = {}
    for path in sorted(out.rglob("*.html")):
        link, text = path.relative_to(out).as_posix(), page_text(path)
        shared = re.search(r'<script type="text/plain" id="pages" data-folder="([^"]*)">([^<]*)</script>', text)
        if shared is None:
            pages[link] = text
            continue
        for number, keys in enumerate(shared[2].split("\n"), 1):
            packed = re.search(r'"([^"]*)"', (path.parent / shared[1] / f"{number}.js").read_text(encoding="utf-8"))
            assert packed is not None
            contents = json.loads(_unpacked(packed[1]))
            assert list(contents) == keys.split()
            pages |= {f"{link}?{key}": _with_content(text, content) for key, (_, content) in contents.items()}
    return pages


def _unpacked(packed: str) -> str:
    return zlib.decompress(b64decode(packed)).decode()


def _with_content(page: str, content: str) -> str:
    return re.sub(r"(<main[^>]*>).*(</main>)", lambda main: main[1] + content + main[2], page, flags=re.DOTALL)
