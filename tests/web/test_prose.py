import pytest
from markdown_it import MarkdownIt

from foretell.report import EXCERPT_LENGTH, chart_html, markdown, quoted_markdown, sanitise_text, web_address
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
def test_nothing_comes_alive(text: str) -> None:
    import lxml.html

    found = lxml.html.fragment_fromstring(str(markdown(text)), create_parent="div")
    assert not found.xpath("//script|//img|//svg|//iframe|//details|//style|//object|//form|//input")
    for one in found.iter():
        assert not [name for name in one.attrib if name.startswith("on") or name == "style"]
    for link in found.xpath("//a"):
        assert link.get("href").startswith(("http://", "https://"))
        assert set(link.get("rel").split()) == {"noopener", "noreferrer", "nofollow"}
    # In a Markdown file, which somebody else renders, as CommonMark has it, it does no more.
    shown = lxml.html.fragment_fromstring(MarkdownIt("commonmark").render(quoted_markdown(text)), create_parent="div")
    assert not shown.xpath("//script|//img|//svg|//iframe|//details|//style|//object|//form|//input")
    assert all(link.get("href").startswith(("http://", "https://")) for link in shown.xpath("//a"))


def test_markdown_is_still_markdown() -> None:
    told = str(markdown("# A\n\n- **b** [c](https://d.example/e?f=1&g=2)\n\n| x |\n| - |\n| y |"))
    assert "<h4>A</h4>" in told
    assert '<a href="https://d.example/e?f=1&amp;g=2" rel="noopener noreferrer nofollow">c</a>' in told
    assert "<table>" in told


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "*a_ " * 60_000, "> " * 100_000, "`" * 200_000, "<" * 200_000, "- " * 90_000, "|" * 200_000]
)
def test_long_and_broken_markdown_is_cut(text: str) -> None:
    told = markdown(text)
    assert len(told) < 40 * EXCERPT_LENGTH


def test_direction_and_control_characters_are_shown_for_what_they_are() -> None:
    told = sanitise_text("abc\u202egnp.exe\u2066\u200b\x00\x1b[2J")
    assert "\u202e" not in told
    assert "\x1b" not in told
    assert "\u202e" not in str(markdown("a\u202eb"))
    assert environment().from_string("{{ x }}").render(x="a\u202e<b>") == "a\ufffd&lt;b&gt;"


def test_only_web_addresses_are_links() -> None:
    assert web_address(" https://a.example/b?c=d ") == "https://a.example/b?c=d"
    for bad in ("javascript:alert(1)", "https://a b", "ftp://a", "", "https://" + "a" * 3000, 'https://a"b', "//a"):
        assert web_address(bad) == ""


def test_only_our_own_figures_pass_as_markup() -> None:
    with pytest.raises(TypeError, match="only our own charts"):
        chart_html("<svg onload=alert(1)>")  # pyright: ignore[reportArgumentType]


def test_an_undefined_name_is_an_error_and_not_a_gap() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        render("problem.html", {})
