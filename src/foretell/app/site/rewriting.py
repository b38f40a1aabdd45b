"""A served page as a file: links lead to files, scripts are plain ones, and what only a server can do is gone."""

import re
from collections.abc import Callable
from html import escape, unescape

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'"
LINK = re.compile(r' (href|src)="(/[^"]*)"')
STREAM = re.compile(r' data-(?:stream|after)="[^"]*"')
HEAD = '<meta charset="utf-8">'


def links_in(page: str) -> list[str]:
    """Every address of this server that a page leads to. Texts of others are escaped, so no quote of theirs is here."""
    return list(dict.fromkeys(unescape(found[2]).partition("#")[0] for found in LINK.finditer(page)))


def rewritten(page: str, where: Callable[[str], str | None]) -> str:
    """The page with every link replaced by what `where` makes of it; without an answer, it is no link any more."""

    def replaced(found: re.Match[str]) -> str:
        address, hash, anchor = unescape(found[2]).partition("#")
        target = where(address)
        return "" if target is None else f' {found[1]}="{escape(target + hash + anchor)}"'

    text = STREAM.sub("", LINK.sub(replaced, page))
    text = text.replace('<script type="module" src=', "<script defer src=")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return text.replace(HEAD, f"{HEAD}\n{policy}", 1)
