"""Wikipedia as of a date over real sockets, and wikitext as text."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import FieldDrift, busy, changed, garbled, inject
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.pages import PageUnavailable
from foretell.data.service_limits import ServiceAccess
from foretell.data.wikipedia import Wikipedia, article_headings, wikitext_to_text
from foretell.practice.server import PracticeServer, json_response
from foretell.practice.web import PageVersion, SampleWorld, small_world, wikipedia_server
from foretell.questions.as_of import AsOf, instant

QUICK = HttpLimits(attempts=2, wait_seconds=0.0, max_wait_seconds=1.0)
JULY = AsOf(at=instant("2026-07-01T12:00:00Z"))
LIVE = AsOf(at=instant("2026-10-01"), mode="live")
T = TypeVar("T")


def read_article(
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
    revision, server = read_article(lambda wiki: wiki.revision("Norges Bank", JULY))
    assert (revision.title, revision.revid, revision.at) == ("Norges Bank", 1001, instant("2026-06-20"))
    assert "held its rate" in revision.wikitext
    assert server.requests[0].query["rvstart"] == "2026-07-01T12:00:00Z"
    assert server.requests[0].headers["user-agent"].endswith(" (+me@example.org)")


def test_live_reads_the_current_revision() -> None:
    revision, server = read_article(lambda wiki: wiki.revision("Norges Bank", LIVE))
    assert "cut its rate" in revision.wikitext
    assert "rvstart" not in server.requests[0].query


def test_redirects_are_followed_as_of_the_cutoff() -> None:
    revision, _ = read_article(lambda wiki: wiki.revision("Bank of Norway", JULY))
    assert (revision.title, revision.revid) == ("Norges Bank", 1001)
    world = small_world()
    world.articles["A"] = [PageVersion(at=instant("2020-01-01"), text="#redirect [[A]]")]
    with pytest.raises(PageUnavailable, match="redirects"):
        read_article(lambda wiki: wiki.revision("A", JULY), world)


@pytest.mark.parametrize(
    ("title", "reason"), [("2026 rate cut", "did not exist at 2026-07-01"), ("Nowhere", "does not exist")]
)
def test_a_page_that_did_not_exist_is_unavailable(title: str, reason: str) -> None:
    with pytest.raises(PageUnavailable, match=reason):
        read_article(lambda wiki: wiki.revision(title, JULY))


def test_a_suppressed_version_is_unavailable() -> None:
    hidden = changed(FieldDrift(path="**.slots", change="plant", value={"main": {"texthidden": True}}))
    with pytest.raises(PageUnavailable, match="hidden"):
        read_article(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(hidden,) * 3)


def test_sections_are_found_by_number_and_heading() -> None:
    revision, _ = read_article(lambda wiki: wiki.revision("Norges Bank", JULY))
    assert [(heading.number, heading.heading) for heading in article_headings(revision.wikitext)] == [
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
        text, _ = read_article(lambda wiki, which=which: wiki.section("Norges Bank", which, JULY))
        assert text == expected
    with pytest.raises(PageUnavailable, match=r"no section Future; it has: 0 Introduction, 1 Policy"):
        read_article(lambda wiki: wiki.section("Norges Bank", "Future", JULY))


def test_an_article_fetched_by_address_is_dated_by_its_revision() -> None:
    page, server = read_article(lambda wiki: wiki.fetch("https://en.wikipedia.org/wiki/Bank_of_Norway", JULY))
    assert (page.captured, page.title) == (instant("2026-06-20"), "Norges Bank")
    assert page.hops == ("https://en.wikipedia.org/wiki/Bank_of_Norway", f"{server.url}/wiki/Norges_Bank")
    with pytest.raises(PageUnavailable, match="not the address"):
        read_article(lambda wiki: wiki.fetch("https://en.wikipedia.org/w/index.php?title=X", JULY))


def test_search_drops_newer_articles_and_snippets_in_a_backtest() -> None:
    hits, _ = read_article(lambda wiki: wiki.search("rate cut", JULY))
    assert [hit.title for hit in hits] == ["Norges Bank"]
    assert (hits[0].published, hits[0].snippet) == (instant("2026-06-20"), "")
    live, _ = read_article(lambda wiki: wiki.search("rate cut", LIVE))
    assert [hit.title for hit in live] == ["Norges Bank", "2026 rate cut"]
    assert live[0].snippet.startswith("now: ")


def test_a_busy_server_is_retried_and_malformed_responses_raise() -> None:
    revision, server = read_article(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(busy(),))
    assert revision.revid == 1001
    assert len(server.requests) == 2
    with pytest.raises(SourceError, match="not JSON"):
        read_article(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(garbled(),))
    refusal = json_response({"error": {"code": "x", "info": "no such thing"}})
    with pytest.raises(SourceError, match="no such thing"):
        read_article(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(lambda _: refusal,))
    with pytest.raises(SourceError, match=r"field query\.pages"):
        read_article(lambda wiki: wiki.revision("Norges Bank", JULY), faults=(lambda _: json_response({"query": {}}),))


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
def test_wikitext_is_converted_to_text(source: str, expected: str) -> None:
    assert wikitext_to_text(source) == expected


def test_tables_are_converted_to_rows() -> None:
    table = (
        '{| class="wikitable"\n|+ Results\n! Party !! style="x" | Votes\n|-\n| [[A|Alpha]] || 12\n'
        '|-\n| rowspan="2" | Beta\n| 7 %\nmore\n|}\nafter'
    )
    assert wikitext_to_text(table) == "| Results |\n| Party | Votes |\n| Alpha | 12 |\n| Beta | 7 % more |\nafter"


def test_a_nested_table_is_converted() -> None:
    assert wikitext_to_text("{|\n| a\n|-\n| {|\n| b\n|}\n|}") == "| a |\n| | b | |"


def test_a_heading_followed_by_a_comment_is_found() -> None:
    assert [section.heading for section in article_headings("a\n== [[B|C]] == <!-- linked -->\nd")] == [
        "Introduction",
        "C",
    ]


@pytest.mark.parametrize("mark", ["<ref>", "<!--", "{{", "[[", "{|\n", "== a ", "[//"])
def test_unclosed_markup_is_fast_and_loses_no_text(mark: str) -> None:
    assert "the end" in wikitext_to_text(mark * 20_000 + " the end")


@given(st.text(alphabet="[]{}|='<>/!-*#:ab \n", max_size=200))
@settings(max_examples=200)
def test_any_wikitext_is_converted_without_error(source: str) -> None:
    wikitext_to_text(source)
    assert article_headings(source)[0].number == "0"
