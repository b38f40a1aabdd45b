"""Text from models, pages and markets as HTML that can do nothing: no scripts, no images, no addresses but web ones."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from foretell.report.markup import UNSAFE
from foretell.report.numbers import bracket, signed

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


# How pages write numbers, money, times and names.


def percent(p: float | None) -> str:
    """A probability; near the ends with a digit more, because 0 % and 0.4 % differ.

    >>> percent(0.234), percent(0.004), percent(0.9995), percent(None)
    ('23 %', '0.4 %', '99.95 %', '–')
    """
    if p is None:
        return "–"
    near = min(p, 1 - p)
    decimals = 0 if near >= 0.0995 or near == 0 else 1 if near >= 0.00095 else 2
    return f"{100 * p:.{decimals}f} %"


def dollars(amount: float | None) -> str:
    """An amount of money; cents of cents matter for small models.

    >>> dollars(0.0), dollars(0.00421), dollars(0.18), dollars(None)
    ('$0', '$0.0042', '$0.18', '–')
    """
    if amount is None:
        return "–"
    if amount == 0:
        return "$0"
    return f"${amount:.4f}" if amount < 0.1 else f"${amount:,.2f}"


def count(number: int) -> str:
    """A whole number with separators.

    >>> count(12345)
    '12,345'
    """
    return f"{number:,}"


def when(moment: str | datetime | None) -> str:
    """A moment to the minute, in UTC; midnight is just the day.

    >>> when("2026-07-01T23:59:59.999999+00:00"), when("2026-07-01T00:00:00+00:00"), when(None)
    ('2026-07-01 23:59 UTC', '2026-07-01', '–')
    """
    if not moment:
        return "–"
    try:
        at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return str(moment)
    at = at.astimezone(UTC) if at.tzinfo else at
    return at.strftime("%Y-%m-%d") if at.hour == at.minute == at.second == 0 else at.strftime("%Y-%m-%d %H:%M UTC")


def duration(seconds: float | None) -> str:
    """A span of time in words.

    >>> duration(42), duration(200), duration(8000), duration(None)
    ('42 s', '3 min', '2 h 13 min', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def some(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> some(1, "trial"), some(3, "trial"), some(0, "reply", "replies")
    ('1 trial', '3 trials', '0 replies')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def span(found: Mapping[str, float]) -> str:
    """The interval of a number in plain data.

    >>> span({"low": 61.5, "high": 71.7})
    '[61.5, 71.7]'
    """
    return bracket(found["low"], found["high"], 1)


def points(value: float) -> str:
    """A difference in points.

    >>> points(0.42), points(-3.0)
    ('+0.4', '−3.0')
    """
    return signed(value, 1)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "percent": percent,
    "dollars": dollars,
    "count": count,
    "when": when,
    "lasting": duration,
    "some": some,
    "span": span,
    "signed": points,
    "markdown": markdown,
    "excerpt": excerpt,
    "web": web_address,
}
