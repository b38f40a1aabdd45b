"""Text from models, pages and markets as HTML or Markdown that can do nothing: no scripts, images or odd links."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from foretell.report.markup import UNSAFE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

EXCERPT_LENGTH = 20_000
"""Characters of one text that a page shows; what is longer is linked to whole."""
WEB_SCHEMES = re.compile(r"https?://[^\s\"'<>\\]+", re.IGNORECASE)


def sanitise_text(text: str) -> str:
    r"""Without characters that turn the direction of text, hide it or steer a terminal; lines and tabs stay.

    >>> sanitise_text("a\u202eb\x1bc\r\nd")
    'a�b�c\nd'
    """
    return UNSAFE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def web_address(text: str) -> str:
    """The address where it leads to the web, else nothing: scripts and files are no places to go.

    >>> web_address("https://news.example/a"), web_address("javascript:alert(1)")
    ('https://news.example/a', '')
    """
    found = sanitise_text(text).strip()
    return found if len(found) <= 2000 and WEB_SCHEMES.fullmatch(found) else ""


def excerpt(text: str, limit: int = EXCERPT_LENGTH) -> str:
    """The beginning of a text, at most so long, with a sign where something is missing.

    >>> excerpt("abcdef", 3)
    'abc…'
    """
    return text if len(text) <= limit else text[:limit] + "…"


@lru_cache(maxsize=256)  # The same pages are read again and again.
def markdown(text: str, limit: int = EXCERPT_LENGTH) -> Markup:
    r"""Markdown with HTML shown as text, links to the web only, and images as links.

    >>> str(markdown("**a** <script>x</script> [b](javascript:c)"))
    '<p><strong>a</strong> &lt;script&gt;x&lt;/script&gt; [b](javascript:c)</p>\n'
    """
    return Markup(_reader().render(sanitise_text(excerpt(text, limit))))


@cache
def _reader() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False, "breaks": True})
    reader.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    reader.validateLink = lambda url: bool(web_address(url))  # pyright: ignore[reportAttributeAccessIssue] - the library's own way to set it
    reader.add_render_rule("link_open", _link)
    reader.add_render_rule("heading_open", _heading)
    reader.add_render_rule("heading_close", _heading)
    return reader


def _link(self: Any, tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return self.renderToken(tokens, index, options, env)


def _heading(self: Any, tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:
    """Headings within a text stand below those of the page."""
    tokens[index].tag = "h4"
    return self.renderToken(tokens, index, options, env)


_PICTURE = re.compile(r"!(?=\[)")
_OTHER_LINK = re.compile(r"\](?=[(:](?!\s{0,9}https?://))", re.IGNORECASE)


def quoted_markdown(text: str, limit: int = EXCERPT_LENGTH) -> str:
    r"""The text as a quotation in a Markdown file, whose own Markdown works within it.

    HTML, pictures, and links that do not lead to the web are shown as they are written.

    >>> quoted_markdown("**a** <b> ![x](https://t.example) [c](javascript:d)")
    '> **a** &lt;b> &#33;[x](https://t.example) [c&#93;(javascript:d)'
    """
    safe = sanitise_text(excerpt(text, limit)).replace("&", "&amp;").replace("<", "&lt;")
    # No backslash: one of the text's own in front of it would undo it.
    safe = _OTHER_LINK.sub("&#93;", _PICTURE.sub("&#33;", safe))
    return "\n".join(f"> {line}".rstrip() for line in safe.strip().splitlines())
