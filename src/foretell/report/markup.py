"""Build SVG from elements and escape text; only `Markup` is passed through.

Figures made here are well-formed XML, so tests can parse every one of them. Pages come from templates (`report.html`).
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from foretell.data.untrusted import UNSAFE
from foretell.patterns import pattern

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

VOID = frozenset({"br", "circle", "col", "hr", "line", "link", "meta", "path", "polygon", "polyline", "rect"})
"""Elements written as `<x/>`: HTML's void elements and the SVG shapes; all others get an end tag."""


def clean(text: str) -> str:
    r"""Return the text on one line, without characters that control a terminal, change its direction or break XML.

    >>> clean("a\x1b[31mb\nc")
    'a�[31mb c'
    """
    if (
        text.isascii() and text.isprintable() and "  " not in text
    ):  # Nearly all texts; a page has thousands of attributes.
        return text.strip()
    return UNSAFE.sub("\ufffd", re.sub(r"[\s\x85]+", " ", text).strip())


def capital(text: str) -> str:
    """Return the text with a capital at its beginning and all other letters as they are.

    >>> capital("base rate of YAML files")
    'Base rate of YAML files'
    """
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return the text on one line, with a capital and a full stop.

    >>> sentence("one of 3 trials failed: timeout")
    'One of 3 trials failed: timeout.'
    """
    line = capital(clean(text))
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def shorten(text: str, width: int) -> str:
    """Shorten to `width` characters by omitting the middle, because names of one family differ at their ends.

    >>> shorten("model-high-search-on", 12)
    'model-…ch-on'
    """
    text = clean(text)
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"


def escaped(text: str | Markup) -> Markup:
    """Escape a text as markup; whitespace alone becomes one space.

    >>> print(escaped("<b>"))
    &lt;b&gt;
    """
    if isinstance(text, Markup):
        return text
    return escape(clean(text)) or Markup(" " * bool(text))


MARKDOWN_SPECIAL = pattern(r"([\\`*_\[\]<>|~&$]|^#|:(?=//)|@(?=\w)|(?<=www)\.)", re.IGNORECASE)


def markdown_text(text: str) -> str:
    r"""Escape a text so that Markdown shows it literally: no markup, links, mentions, table cells or HTML.

    >>> markdown_text("a|b <script>")
    'a\\|b \\<script\\>'
    """
    return MARKDOWN_SPECIAL.sub(r"\\\1", clean(text))


def element(tag: str, *children: str | Markup | None, **attributes: object) -> Markup:
    """Build an element. Attributes that are None are left out; `class_` and `data_v` become class and data-v.

    >>> print(element("td", "a < b", class_="n", title=None))
    <td class="n">a &lt; b</td>
    """
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID and not children:
        return Markup(f"<{tag}{shown}/>")
    return Markup(f"<{tag}{shown}>{join(*children)}</{tag}>")


def join(*parts: str | Markup | None) -> Markup:
    """Join parts, escaping plain text and skipping None."""
    return Markup("".join(escaped(part) for part in parts if part is not None))


def compact(value: float, decimals: int = 1) -> str:
    """Format a coordinate compactly.

    >>> compact(12.0), compact(-0.04), compact(3.26)
    ('12', '0', '3.3')
    """
    text = f"{value:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return compact(value)
    return str(escape(clean(str(value))))


# Text from models, pages and markets as safe HTML or Markdown, without scripts, images or unsafe links.


EXCERPT_LENGTH = 20_000
"""Maximum length of a text on a page, in characters; longer ones are linked."""
WEB_SCHEMES = pattern(r"https?://[^\s\"'<>\\]+", re.IGNORECASE)


def sanitise_text(text: str) -> str:
    r"""Remove control, bidirectional and invisible characters; keep newlines and tabs.

    >>> sanitise_text("a\u202eb\x1bc\r\nd")
    'a�b�c\nd'
    """
    return UNSAFE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def web_address(text: str) -> str:
    """Return the address if it is http(s), else an empty string.

    >>> web_address("https://news.example/a"), web_address("javascript:alert(1)")
    ('https://news.example/a', '')
    """
    address = sanitise_text(text).strip()
    return address if len(address) <= 2000 and WEB_SCHEMES.fullmatch(address) else ""


def excerpt(text: str, limit: int = EXCERPT_LENGTH) -> str:
    """Return the beginning of a text, with an ellipsis if it is truncated.

    >>> excerpt("abcdef", 3)
    'abc…'
    """
    return text if len(text) <= limit else text[:limit] + "…"


@lru_cache(maxsize=256)  # The same pages are read again and again.
def markdown(text: str, limit: int = EXCERPT_LENGTH) -> Markup:
    r"""Render Markdown with HTML shown as text, links only to the web, and images as links.

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
    """Lower the level of headings to below those of the page."""
    tokens[index].tag = "h4"
    return self.renderToken(tokens, index, options, env)


_PICTURE = pattern(r"!(?=\[)")
_OTHER_LINK = pattern(r"\](?=[(:](?!\s{0,9}https?://))", re.IGNORECASE)


def quoted_markdown(text: str) -> str:
    r"""Quote a text in a Markdown file; its own Markdown keeps working.

    HTML, images, and links that do not lead to the web are shown literally.

    >>> quoted_markdown("**a** <b> ![x](https://t.example) [c](javascript:d)")
    '> **a** &lt;b> &#33;[x](https://t.example) [c&#93;(javascript:d)'
    """
    safe = sanitise_text(excerpt(text)).replace("&", "&amp;").replace("<", "&lt;")
    # Entities, not backslashes: a backslash in the text before one would cancel it.
    safe = _OTHER_LINK.sub("&#93;", _PICTURE.sub("&#33;", safe))
    return "\n".join(f"> {line}".rstrip() for line in safe.strip().splitlines())
