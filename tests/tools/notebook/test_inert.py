"""Nothing a stranger writes can act."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.tools.notebook.outputs import ATTRIBUTE, TAGS, harmless_html, overwritten_text, plain_text

ATTACKS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//x></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><p><style><!--</style><img src=x onerror=alert(1)>-->",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<table background=javascript:alert(1)><td style='background:url(javascript:alert(1))'>",
    "<a href='javascript:alert(1)'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<td colspan='1\" onclick=\"alert(1)'>",
    "<td colspan=2 onmouseover=alert(1)>",
    "<base href=//evil><link rel=stylesheet href=//evil><meta http-equiv=refresh content=0>",
    "<form><button formaction=javascript:alert(1)>x",
    "<p title='</p><script>alert(1)</script>'>",
    "<!--><script>alert(1)</script>-->",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<div\n\tonclick\n=\nalert(1)>",
    "<b onclick=alert(1)//",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<textarea></textarea><script>alert(1)</script>",
    "\x00<scr\x00ipt>alert(1)</scr\x00ipt>",
]


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def assert_inert(html: str) -> None:
    seen = Seen()
    seen.feed(html)
    assert set(seen.tags) <= TAGS
    assert set(seen.attributes) <= {"colspan", "rowspan", "scope"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_come_out_as_words(attack: str) -> None:
    assert_inert(harmless_html(attack))
    assert_inert(harmless_html(f"<table><tr><td>{attack}</td></tr></table>"))


@given(st.lists(st.sampled_from(["<", ">", "'", '"', "script", "td", " onclick=x ", "/", "<!--", "-->", "&lt;", "x"])))
@settings(deadline=None, max_examples=300)
def test_no_mixture_of_marks_gets_through(pieces: list[str]) -> None:
    cleaned = harmless_html("".join(pieces))
    assert_inert(cleaned)
    assert harmless_html(cleaned) == cleaned


def test_tables_survive() -> None:
    head = '<thead><tr><th scope="col">a</th></tr></thead>'
    table = f'<table>{head}<tbody><tr><td colspan="2">1 &lt; 2</td></tr></tbody></table>'
    assert harmless_html(f'<div style="x">{table}</div>') == f"<div>{table}</div>"
    assert harmless_html("<table><tr><td>open") == "<table><tr><td>open</td></tr></table>"
    assert ATTRIBUTE.groups == 2


def test_very_deep_nesting_is_flattened() -> None:
    assert harmless_html("<div>" * 5_000).count("<div>") == 200


@given(st.text())
@settings(deadline=None, max_examples=100)
def test_plain_text_steers_no_terminal(text: str) -> None:
    cleaned = plain_text(text + "\x1b[2J\x1b]0;t\x07\x9b1m")
    assert not set(map(chr, [*range(9), 11, 12, *range(14, 32), *range(127, 160)])) & set(cleaned)
    assert plain_text(cleaned) == cleaned


def test_progress_bars_show_their_end() -> None:
    assert overwritten_text("  0 %\r 50 %\r100 %\nnext\r\nlast\r") == "100 %\nnext\nlast"
