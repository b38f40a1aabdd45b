"""SVG built from elements, and text made fit to be shown: plain text is escaped, only `Markup` passes as it is.

Figures made here are well-formed XML, so tests can parse every one of them. Pages come from templates (`report.html`).
"""

import re

from markupsafe import Markup, escape

from foretell.data.untrusted import UNSAFE

VOID = frozenset({"br", "circle", "col", "hr", "line", "link", "meta", "path", "polygon", "polyline", "rect"})
"""Elements written `<x/>`: HTML's own void elements and the SVG shapes; the rest always get an end tag."""


def clean(text: str) -> str:
    r"""The text on one line and without characters that steer a terminal, turn its direction or break XML.

    >>> clean("a\x1b[31mb\nc")
    'a�[31mb c'
    """
    if text.isascii() and text.isprintable() and "  " not in text:  # Nearly all: a page has thousands of attributes.
        return text.strip()
    return UNSAFE.sub("\ufffd", re.sub(r"[\s\x85]+", " ", text).strip())


def shorten(text: str, width: int) -> str:
    """At most `width` characters; the middle is left out, since names of one family differ at their ends.

    >>> shorten("model-high-search-on", 12)
    'model-…ch-on'
    """
    text = clean(text)
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"


def escaped(text: str | Markup) -> Markup:
    """Markup that shows the text as it stands; blanks alone are one blank.

    >>> print(escaped("<b>"))
    &lt;b&gt;
    """
    if isinstance(text, Markup):
        return text
    return escape(clean(text)) or Markup(" " * bool(text))


MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$]|^#|:(?=//)|@(?=\w)|(?<=www)\.)", re.IGNORECASE)


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows as it stands: no markup, link, mention, cell border or HTML comes out of it.

    >>> markdown_text("a|b <script>")
    'a\\|b \\<script\\>'
    """
    return MARKDOWN_SPECIAL.sub(r"\\\1", clean(text))


def element(tag: str, *children: str | Markup | None, **attributes: object) -> Markup:
    """One element. Attributes that are None are left out; `class_` and `data_v` become class and data-v.

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
    """The parts one after the other, plain text escaped, None left out."""
    return Markup("".join(escaped(part) for part in parts if part is not None))


def compact(value: float, decimals: int = 1) -> str:
    """A coordinate in as few characters as it takes.

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
