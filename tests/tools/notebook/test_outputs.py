"""Kernel messages become harmless outputs of bounded size."""

import base64
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.tools.notebook.limits import OutputCaps
from foretell.tools.notebook.notebook import (
    ATTRIBUTE,
    TAGS,
    DisplayOutput,
    ErrorOutput,
    Output,
    StreamOutput,
    harmless_html,
    join_outputs,
    output_of,
    overwritten_text,
    plain_text,
)
from foretell.tools.notebook.protocol import JupyterMessage, ZmtpBroken, jupyter_request, read_message

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
SMALL = OutputCaps(text=300, html=200, image=100, pieces=6, cell=2_000)


def output_from(kind: str, **content: Any) -> Output | None:
    return output_of(JupyterMessage(kind=kind, parent="x", content=content), SMALL)


def test_stream_messages_become_stream_outputs() -> None:
    assert output_from("stream", name="stdout", text="a\n") == StreamOutput(stream="stdout", text="a\n")
    assert output_from("stream", name="elsewhere", text="a") == StreamOutput(stream="stdout", text="a")
    assert output_from("stream", name="stderr", text="\x1b[31ma") == StreamOutput(stream="stderr", text="a")
    assert output_from("stream", name="stdout", text="") is None
    long = output_from("stream", name="stdout", text="x" * 10_000)
    assert isinstance(long, StreamOutput)
    assert len(long.text) < 400


def test_display_messages_become_display_outputs() -> None:
    encoded = base64.b64encode(PNG).decode()
    data = {"text/plain": "t", "text/html": "<b onclick=x>h</b>", "image/png": f"{encoded[:9]}\n{encoded[9:]}"}
    assert output_from("display_data", data=data) == DisplayOutput(text="t", html="<b>h</b>", image=PNG)
    assert output_from("execute_result", data={"text/plain": "1"}) == DisplayOutput(text="1", result=True)
    assert output_from("display_data", data={"text/markdown": "# m", "text/plain": "<Markdown>"}) == DisplayOutput(
        text="# m"
    )
    assert output_from("display_data", data={"application/javascript": "alert(1)"}) == DisplayOutput(
        text="[application/javascript is not shown]"
    )
    assert output_from("display_data", data={}) is None


@pytest.mark.parametrize("image", [base64.b64encode(PNG * 20).decode(), "%%%", base64.b64encode(b"GIF89a").decode()])
def test_invalid_or_too_large_images_are_left_out(image: str) -> None:
    output = output_from("display_data", data={"image/png": image, "text/plain": "p"})
    assert output == DisplayOutput(text="p\n[image/png left out: too large or unreadable]")


def test_exceptions() -> None:
    output = output_from("error", ename="KeyError", evalue="'k'", traceback=["\x1b[31mline", 7, "KeyError: 'k'"])
    assert output == ErrorOutput(name="KeyError", message="'k'", traceback=("line", "KeyError: 'k'"))
    assert output.text == "line\nKeyError: 'k'"
    assert output_from("error", ename=3, evalue=None, traceback="x") == ErrorOutput(name="Error", message="")


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["text", "data", "name", "ename", "evalue", "traceback", "text/plain", "image/png"])


@given(
    st.sampled_from(["stream", "display_data", "execute_result", "error", "status"]),
    st.dictionaries(names, junk | st.dictionaries(names, junk, max_size=3), max_size=4),
)
@settings(max_examples=80)
def test_any_message_content_is_handled(kind: str, content: dict[str, Any]) -> None:
    output = output_from(kind, **content)
    assert output is None or isinstance(output, StreamOutput | DisplayOutput | ErrorOutput)


def test_consecutive_printed_text_is_joined() -> None:
    rows: list[Output] = [
        StreamOutput(stream="stdout", text="1 %\r"),
        StreamOutput(stream="stdout", text="2 %\n"),
        StreamOutput(stream="stderr", text="e"),
        DisplayOutput(text="s"),
        StreamOutput(stream="stdout", text="z"),
    ]
    assert join_outputs(rows, SMALL) == (StreamOutput(stream="stdout", text="2 %\n"), *rows[2:])
    long = join_outputs([StreamOutput(stream="stdout", text="x" * 290)] * 100, SMALL)
    assert len(long) == 1
    assert "28,700 characters left out" in long[0].text


def test_first_and_last_of_many_outputs_are_kept() -> None:
    outputs = join_outputs([DisplayOutput(text=str(number)) for number in range(20)], SMALL)
    assert [output.text for output in outputs] == ["0", "1", "2", "3", "[14 outputs left out]\n", "18", "19"]
    with_error = join_outputs(
        [DisplayOutput(text="x" * 1_500), DisplayOutput(text="y" * 900), ErrorOutput(name="E", message="m")], SMALL
    )
    assert [type(output).__name__ for output in with_error] == ["DisplayOutput", "ErrorOutput", "StreamOutput"]


def test_request_can_be_parsed_again() -> None:
    parts = jupyter_request("execute_request", "r-1", {"code": "1"}, b"key")
    message = read_message([b"topic", *parts])
    assert message == JupyterMessage(kind="execute_request", parent="", content={"code": "1"})
    assert message.text("code") == "1"
    assert message.text("missing") == ""


@given(st.lists(st.sampled_from([b"<IDS|MSG>", b"{}", b"[]", b"", b"{", b"\xff", b"1", b"[" * 100_000]), max_size=8))
@settings(max_examples=200)
def test_invalid_messages_raise_zmtp_broken(parts: list[bytes]) -> None:
    with suppress(ZmtpBroken):
        assert isinstance(read_message(parts), JupyterMessage)


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


class TagCollector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def assert_inert(html: str) -> None:
    parser = TagCollector()
    parser.feed(html)
    assert set(parser.tags) <= TAGS
    assert set(parser.attributes) <= {"colspan", "rowspan", "scope"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_html_attacks_become_harmless_text(attack: str) -> None:
    assert_inert(harmless_html(attack))
    assert_inert(harmless_html(f"<table><tr><td>{attack}</td></tr></table>"))


@given(st.lists(st.sampled_from(["<", ">", "'", '"', "script", "td", " onclick=x ", "/", "<!--", "-->", "&lt;", "x"])))
@settings(max_examples=300)
def test_random_markup_becomes_harmless(pieces: list[str]) -> None:
    cleaned = harmless_html("".join(pieces))
    assert_inert(cleaned)
    assert harmless_html(cleaned) == cleaned


def test_html_tables_are_kept() -> None:
    head = '<thead><tr><th scope="col">a</th></tr></thead>'
    table = f'<table>{head}<tbody><tr><td colspan="2">1 &lt; 2</td></tr></tbody></table>'
    assert harmless_html(f'<div style="x">{table}</div>') == f"<div>{table}</div>"
    assert harmless_html("<table><tr><td>open") == "<table><tr><td>open</td></tr></table>"
    assert ATTRIBUTE.groups == 2


def test_very_deep_nesting_is_flattened() -> None:
    assert harmless_html("<div>" * 5_000).count("<div>") == 200


@given(st.text())
@settings(max_examples=100)
def test_plain_text_has_no_control_characters(text: str) -> None:
    cleaned = plain_text(text + "\x1b[2J\x1b]0;t\x07\x9b1m")
    assert not set(map(chr, [*range(9), 11, 12, *range(14, 32), *range(127, 160)])) & set(cleaned)
    assert plain_text(cleaned) == cleaned


def test_overwritten_text_shows_the_final_state() -> None:
    assert overwritten_text("  0 %\r 50 %\r100 %\nnext\r\nlast\r") == "100 %\nnext\nlast"
