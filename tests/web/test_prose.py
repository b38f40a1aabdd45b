import pytest
from markdown_it import MarkdownIt

from foretell.report.html import chart_html
from foretell.report.markup import EXCERPT_LENGTH, markdown, quoted_markdown, sanitise_text, web_address
from foretell.web.rendering import environment, render


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java\nscript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](file:///etc/passwd)",
        "[x](//evil.example/x)",
        '[x](https://ok.example "t\\" onmouseover=\\"alert(1)")',
        "![x](https://tracker.example/pixel.png)",
        "![x](data:image/svg+xml,<svg onload=alert(1)>)",
        "<javascript:alert(1)>",
        "[a]: javascript:alert(1)\n\n[a]",
        "```html\n<script>alert(1)</script>\n```",
        "<details open ontoggle=alert(1)>",
        r"\![x](https://t.example/b.png) \\![x](https://t.example/b.png)",
        r"[c\](javascript:alert(1)) [d\\](data:text/html,x)",
        "[c\\]: javascript:alert(1)\n\n[c\\]",
        "| a |\n| - |\n| <b onclick=x> |",
    ],
)
def test_markup_in_foreign_text_is_inert(text: str) -> None:
    import lxml.html

    fragment_fromstring = lxml.html.fragment_fromstring(str(markdown(text)), create_parent="div")
    assert not fragment_fromstring.xpath("//script|//img|//svg|//iframe|//details|//style|//object|//form|//input")
    for element in fragment_fromstring.iter():
        assert not [name for name in element.attrib if name.startswith("on") or name == "style"]
    for link in fragment_fromstring.xpath("//a"):
        assert link.get("href").startswith(("http://", "https://"))
        assert set(link.get("rel").split()) == {"noopener", "noreferrer", "nofollow"}
    # It is also inert in a Markdown file that another CommonMark renderer shows.
    rendered = lxml.html.fragment_fromstring(
        MarkdownIt("commonmark").render(quoted_markdown(text)), create_parent="div"
    )
    assert not rendered.xpath("//script|//img|//svg|//iframe|//details|//style|//object|//form|//input")
    assert all(link.get("href").startswith(("http://", "https://")) for link in rendered.xpath("//a"))


def test_markdown_is_rendered() -> None:
    html = str(markdown("# A\n\n- **b** [c](https://d.example/e?f=1&g=2)\n\n| x |\n| - |\n| y |"))
    assert "<h4>A</h4>" in html
    assert '<a href="https://d.example/e?f=1&amp;g=2" rel="noopener noreferrer nofollow">c</a>' in html
    assert "<table>" in html


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "*a_ " * 60_000, "> " * 100_000, "`" * 200_000, "<" * 200_000, "- " * 90_000, "|" * 200_000]
)
def test_long_and_broken_markdown_is_cut(text: str) -> None:
    html = markdown(text)
    assert len(html) < 40 * EXCERPT_LENGTH


def test_direction_and_control_characters_are_made_visible() -> None:
    text = sanitise_text("abc\u202egnp.exe\u2066\u200b\x00\x1b[2J")
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "\u202e" not in str(markdown("a\u202eb"))
    assert environment().from_string("{{ x }}").render(x="a\u202e<b>") == "a\ufffd&lt;b&gt;"


def test_only_web_addresses_are_links() -> None:
    assert web_address(" https://a.example/b?c=d ") == "https://a.example/b?c=d"
    for bad in ("javascript:alert(1)", "https://a b", "ftp://a", "", "https://" + "a" * 3000, 'https://a"b', "//a"):
        assert web_address(bad) == ""


def test_only_our_own_figures_pass_as_markup() -> None:
    with pytest.raises(TypeError, match="expected a Chart"):
        chart_html("<svg onload=alert(1)>")  # pyright: ignore[reportArgumentType]


def test_an_undefined_name_is_an_error_and_not_a_gap() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        render("problem.html", {})
