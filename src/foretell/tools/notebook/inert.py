"""Text and HTML of a stranger, made harmless: what remains can be shown in a terminal or a page and does nothing."""

import re
from html import escape, unescape

ESCAPES = re.compile(r"\x1b(?:\[[0-9;:<=>?]{0,100}[ -/]{0,10}[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|[@-Z\\-_])")
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What steers a terminal or turns the direction of text; tabs and line ends stay."""
TAGS = frozenset(
    (
        *("table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "ul", "ol", "li", "dl", "dt", "dd"),
        *("p", "div", "span", "pre", "code", "b", "i", "em", "strong", "small", "sub", "sup", "br", "hr"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "blockquote"),
    )
)
EMPTY = frozenset(("br", "hr"))
SWALLOWED = frozenset(
    ("script", "style", "iframe", "object", "embed", "svg", "math", "template", "noscript", "title", "textarea")
)
"""Of these the content goes as well."""
# Every repetition is bounded: a stranger's text must not make the search slow.
TAG = re.compile(r"<!--|<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,15})(?P<rest>[\s/][^<>]{0,500})?>")
ATTRIBUTE = re.compile(r"(colspan|rowspan|scope)\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9]{1,20})", re.IGNORECASE)
MAX_OPEN = 200


def plain(text: str) -> str:
    r"""The text without colours, control characters and halves of characters.

    >>> plain("\x1b[31mred\x1b[0m \x07\ud800")
    'red ?'
    """
    return CONTROLS.sub("", ESCAPES.sub("", text)).encode("utf-8", "replace").decode()


def settled(text: str) -> str:
    r"""The text as it stands in the end where a line was written over and over.

    >>> settled("10 %\r90 %\r\nready")
    '90 %\nready'
    """
    text = text.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def harmless(html: str) -> str:
    """The HTML with nothing but tables, lists and words: no script, style, link, image or event.

    Only what is written here comes out, so it does not matter how a browser would have read what went in.

    >>> harmless('<table onclick="x()"><tr><td colspan=2>1 < 2<script>alert(1)</script>')
    '<table><tr><td colspan="2">1 &lt; 2</td></tr></table>'
    """
    html = settled(plain(html))
    writing = _Writing()
    place = 0
    while (found := TAG.search(html, place)) is not None:
        writing.words(html[place : found.start()])
        place = _after(html, found)
        if found["name"] is not None and place == found.end():
            writing.tag(found["name"].lower(), bool(found["end"]), found["rest"] or "")
    writing.words(html[place:])
    return writing.done()


def _after(html: str, found: "re.Match[str]") -> int:
    """Where to read on after a tag: behind the end of a comment or of something swallowed whole."""
    if found["name"] is None:
        end = html.find("-->", found.end())
        return end + 3 if end >= 0 else len(html)
    name = found["name"].lower()
    if found["end"] or name not in SWALLOWED:
        return found.end()
    closing = re.compile(rf"</{name}[\s/]{{0,9}}>", re.IGNORECASE).search(html, found.end())
    return closing.end() if closing is not None else len(html)


class _Writing:
    def __init__(self) -> None:
        self._out: list[str] = []
        self._open: list[str] = []

    def words(self, text: str) -> None:
        self._out.append(escape(unescape(text), quote=False))

    def tag(self, name: str, closing: bool, rest: str) -> None:
        if name not in TAGS:
            return
        if not closing:
            kept = "".join(f' {key.lower()}="{value}"' for key, value in ATTRIBUTE.findall(rest))
            if len(self._open) < MAX_OPEN:
                self._out.append(f"<{name}{kept}>")
                self._open += [name] if name not in EMPTY else []
        elif name in self._open:
            while (closed := self._open.pop()) != name:
                self._out.append(f"</{closed}>")
            self._out.append(f"</{name}>")

    def done(self) -> str:
        return "".join(self._out) + "".join(f"</{tag}>" for tag in reversed(self._open))
