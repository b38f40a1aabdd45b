"""Pages of a static site as a browser shows them: their content is stored compressed."""

import re
import zlib
from base64 import b64decode
from pathlib import Path


def page_text(path: Path) -> str:
    """Return the text of a file of the site, with the content of a page in its place."""
    text = path.read_text(encoding="utf-8")
    packed = re.search(r'<script type="text/plain" id="packed">([^<]*)</script>', text)
    if packed is None:
        return text
    content = zlib.decompress(b64decode(packed[1])).decode()
    return re.sub(r"(<main[^>]*>).*(</main>)", lambda main: main[1] + content + main[2], text, flags=re.DOTALL)
