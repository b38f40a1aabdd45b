"""Wikipedia at a date over real sockets, and wikitext as text."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import FieldDrift, busy, changed, garbled, inject
from foretell.data import (
    AsyncHttpClient,
    HttpLimits,
    PageUnavailable,
    ServiceAccess,
    SourceError,
    Wikipedia,
    article_headings,
    wikitext_to_text,
)
from foretell.practice import PageVersion, PracticeServer, SampleWorld, json_response, small_world, wikipedia_server
from foretell.questions import AsOf, instant

QUICK = HttpLimits(attempts=2, wait_seconds=0.0, max_wait_seconds=1.0)
JULY = AsOf(at=instant("2026-07-01T12:00:00Z"))
LIVE = AsOf(at=instant("2026-10-01"), mode="live")
T = TypeVar("T")


def asked(
    use: Callable[[Wikipedia], Awaitable[T]], world: SampleWorld | None = None, faults: tuple[object, ...] = ()
) -> tuple[T, PracticeServer]:
    async def run() -> tuple[T, PracticeServer]:
        server = wikipedia_server(world or small_world())
        inject(server, *(faults or []))
        async with server:
            access = ServiceAccess(addresses={"wikipedia": server.url}, contact="me@example.org")
            async with AsyncHttpClient(limits=QUICK, access=access) as client:
                return await use(Wikipedia(client, server.url)), server

    return asyncio.run(run())


def test_the_revision_is_the_newest_at_the_cutoff() -> None:
    found, server = asked(lambda wiki: wiki.revision("Norges Bank", JULY))
    assert (found.title, found.revid, found.at) == ("Norges Bank", 1001, instant("2026-06-20"))
    assert "held its rate" in found.wikitext
    assert server.requests[0].query["rvstart"] == "2026-07-01T12:00:00Z"
    assert server.requests[0].headers["user-agent"].endswith(" (+me@example.org)")


def test_live_reads_the_current_revision() -> None:
    found, server = asked(lambda wiki: wiki.revision("Norges Bank", LIVE))
    assert "cut its rate" in found.wikitext
    assert "rvstart" not in server.requests[0].query


def test_redirects_are_followed_as_they_stood() -> None:
    found, _ = asked(lambda wiki: wiki.revision("Bank of Norway", JULY))
    assert (found.title, found.revid) == ("Norges Bank", 1001)
    world = small_world()
    world.articles["A"] = [PageVersion(at=instant("2020-01-01"), text="#redirect [[A]]")]
    with pytest.raises(PageUnavailable, match="redirects"):
        asked(lambda wiki: wiki.revision("A", JULY), world)


@pytest.mark.parametrize(
    ("title", "reason"), [("2026 rate cut", "did not exist at 2026-07-01"), ("Nowhere", "is not there")]
)
def test_a_page_that_was_not_there_is_unavailable(title: str, reason: str) -> None:
    with pytest.raises(PageUnavailable, match=reason):
        asked(lambda wiki: wiki.revision(title, JULY))


def test_a_suppressed_version_is_unavailable() -> None:
    hidden = changed(FieldDrift(path="**.slots", change="plant", value={"main": {"texthidden": True}}))
    with pytest.raises(PageUnavailable, match="hidden"):
        asked(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(hidden,) * 3)


def test_contents_and_sections() -> None:
    listed, _ = asked(lambda wiki: wiki.contents("Norges Bank", JULY))
    assert [(one.number, one.heading) for one in listed] == [
        ("0", "Introduction"),
        ("1", "Policy"),
        ("1.1", "Meetings"),
        ("2", "History"),
    ]
    for which, expected in [
        ("Policy", "## Policy\nHeld.\n### Meetings\nJune."),
        ("1.1", "### Meetings\nJune."),
        (2, "## History\n1816."),
        (0, "Norges Bank held its rate."),
    ]:
        text, _ = asked(lambda wiki, which=which: wiki.section("Norges Bank", which, JULY))
        assert text == expected
    with pytest.raises(PageUnavailable, match=r"no section Future; it has: 0 Introduction, 1 Policy"):
        asked(lambda wiki: wiki.section("Norges Bank", "Future", JULY))


def test_an_article_by_its_address_cannot_have_changed_since() -> None:
    page, server = asked(lambda wiki: wiki.fetch("https://en.wikipedia.org/wiki/Bank_of_Norway", JULY))
    assert (page.captured, page.title) == (instant("2026-06-20"), "Norges Bank")
    assert page.hops == ("https://en.wikipedia.org/wiki/Bank_of_Norway", f"{server.url}/wiki/Norges_Bank")
    with pytest.raises(PageUnavailable, match="not the address"):
        asked(lambda wiki: wiki.fetch("https://en.wikipedia.org/w/index.php?title=X", JULY))


def test_search_drops_titles_younger_than_the_cutoff_and_shows_no_snippet_of_today() -> None:
    hits, _ = asked(lambda wiki: wiki.search("rate cut", JULY))
    assert [hit.title for hit in hits] == ["Norges Bank"]
    assert (hits[0].published, hits[0].snippet) == (instant("2026-06-20"), "")
    live, _ = asked(lambda wiki: wiki.search("rate cut", LIVE))
    assert [hit.title for hit in live] == ["Norges Bank", "2026 rate cut"]
    assert live[0].snippet.startswith("now: ")


def test_busy_malformed_and_refused() -> None:
    found, server = asked(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(busy(),))
    assert found.revid == 1001
    assert len(server.requests) == 2
    with pytest.raises(SourceError, match="not JSON"):
        asked(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(garbled(),))
    refusal = json_response({"error": {"code": "x", "info": "no such thing"}})
    with pytest.raises(SourceError, match="no such thing"):
        asked(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(lambda _: refusal,))
    with pytest.raises(SourceError, match=r"field query\.pages"):
        asked(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(lambda _: json_response({"query": {}}),))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'''Bold''' and ''italic''", "Bold and italic"),
        ("a [[b|c]] [[d]] [[:Category:E]]", "a c d Category:E"),
        ("x<ref name=a/>y<ref>{{cite|b}}</ref>z", "xyz"),
        ("a <!-- hidden --> b", "a b"),
        ("[[File:A.png|thumb|A [[b]] c]]text", "text"),
        ("[[Category:Banks]]", ""),
        ("{{convert|5|km}} and {{nowrap|a b}} {{unknown|x|{{y|z}}}}", "5 km and a b"),
        ("[https://x.example label] and [https://x.example]", "label and"),
        ("a<br/>b&nbsp;c &amp; d", "a\nb c & d"),
        ("* one\n* two", "- one\n- two"),
        ("== Head ==\nx", "## Head\nx"),
        ("== Head ==\n# one\n** two\n=== Sub ===\n:x", "## Head\n- one\n- two\n### Sub\n- x"),
        ("{{Infobox bank\n| name = [[A|B]]\n| rate = 4 %\n| empty =\n}}Text", "name: B\nrate: 4 %\nText"),
        ("unclosed {{template and [[link", "unclosed {{template and [[link"),
        ("__NOTOC__ x", "x"),
    ],
)
def test_wikitext_becomes_text(source: str, expected: str) -> None:
    assert wikitext_to_text(source) == expected


def test_tables_become_rows() -> None:
    table = (
        '{| class="wikitable"\n|+ Results\n! Party !! style="x" | Votes\n|-\n| [[A|Alpha]] || 12\n'
        '|-\n| rowspan="2" | Beta\n| 7 %\nmore\n|}\nafter'
    )
    assert wikitext_to_text(table) == "| Results |\n| Party | Votes |\n| Alpha | 12 |\n| Beta | 7 % more |\nafter"


def test_a_table_in_a_table() -> None:
    assert wikitext_to_text("{|\n| a\n|-\n| {|\n| b\n|}\n|}") == "| a |\n| | b | |"


def test_a_heading_with_a_remark_behind_it() -> None:
    assert [one.heading for one in article_headings("a\n== [[B|C]] == <!-- linked -->\nd")] == ["Introduction", "C"]


@pytest.mark.parametrize("mark", ["<ref>", "<!--", "{{", "[[", "{|\n", "== a ", "[//"])
def test_marks_that_are_never_closed_take_no_time_and_lose_no_text(mark: str) -> None:
    assert "the end" in wikitext_to_text(mark * 20_000 + " the end")


@given(st.text(alphabet="[]{}|='<>/!-*#:ab \n", max_size=200))
@settings(deadline=None, max_examples=200)
def test_any_wikitext_is_read_without_stumbling(source: str) -> None:
    wikitext_to_text(source)
    assert article_headings(source)[0].number == "0"
