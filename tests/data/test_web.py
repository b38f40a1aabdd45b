"""Pages of the web and of the archive over real sockets: text, dates, refusals, and no access to private networks."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from fakes.web import broken_wayback_server, strange_web_server
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.pages import (
    Page,
    PageUnavailable,
    PublicAddressGuard,
    WaybackPages,
    WebPages,
    read_page,
    versions_differ,
)
from foretell.data.search.engine import SearchHit
from foretell.outgoing.public_address import is_public
from foretell.practice.server import PracticeServer, html_response
from foretell.practice.web import PageVersion, SampleWebPage, SampleWorld, small_world, wayback_server
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Question, Target
from foretell.tools.journal import material_from_json, material_to_json
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import Refusal, ToolMaterial
from foretell.tools.web import WebSearch

QUICK = HttpLimits(attempts=2, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0, max_bytes=200_000)
JULY = AsOf(at=instant("2026-07-01T12:00:00Z"))
HELD = "https://news.example/rates-held"


def fetched(path: str, *, world: SampleWorld | None = None, limits: HttpLimits = QUICK) -> Page:
    async def run() -> Page:
        async with strange_web_server(world or small_world()) as server, AsyncHttpClient(limits=limits) as client:
            return await WebPages(client, allow_private=True).fetch(f"{server.url}{path}", JULY)

    return asyncio.run(run())


def page_of(html: str) -> Page:
    async def run() -> Page:
        server = PracticeServer()
        server.route("GET", "/", lambda _: html_response(html))
        async with server, AsyncHttpClient(limits=QUICK) as client:
            return await WebPages(client, allow_private=True).fetch(f"{server.url}/", JULY)

    return asyncio.run(run())


def article(head: str = "", foot: str = "") -> str:
    text = "<p>The committee met on Thursday and kept the rate where it was, as nearly everyone had expected.</p>" * 3
    return f"<html><head><title>T</title>{head}</head><body><article><h1>T</h1>{text}{foot}</article></body></html>"


def test_a_page_has_text_title_date_and_hops() -> None:
    page = fetched("/rates-held")
    assert page.title == "Norges Bank holds rates"
    assert "kept its rate at four per cent — «som ventet»" in page.text
    assert page.published == instant("2026-06-18T09:30:00Z")
    assert page.captured is None
    assert page.hops == (page.url,)


def test_redirects_are_kept_as_hops() -> None:
    page = fetched("/moved/moved/rates-held")
    assert [hop.split("/", 3)[3] for hop in page.hops] == ["moved/moved/rates-held", "moved/rates-held", "rates-held"]


def test_an_update_later_than_the_publication_counts() -> None:
    world = small_world()
    world.pages[0] = replace(world.pages[0], updated=instant("2026-09-20T08:00:00Z"))
    assert fetched("/rates-held", world=world).published == instant("2026-09-20T08:00:00Z")
    world.pages[0] = replace(world.pages[0], updated=instant("2026-01-01"))
    assert fetched("/rates-held", world=world).published == instant("2026-06-18T09:30:00Z")


@pytest.mark.parametrize(
    ("head", "foot", "expected"),
    [
        ('<meta name="date" content="2026-03-03">', "", "2026-03-03"),
        ('<meta itemprop="datePublished" content="2026-03-03T10:00:00+02:00">', "", "2026-03-03T08:00:00Z"),
        ('<script type="application/ld+json">{"@graph": [{"datePublished": "2026-03-03"}]}</script>', "", "2026-03-03"),
        (
            '<script type="application/ld+json">{"datePublished": "2026-03-03", "dateModified": "2026-03-05"}</script>',
            "",
            "2026-03-05",
        ),
        ("", '<time pubdate datetime="2026-03-03">3 March</time>', "2026-03-03"),
        ('<meta name="date" content="2026-03-03">', "<p>Last updated: 5 March 2026</p>", "2026-03-05"),
        ('<meta name="date" content="2026-03-03">', "<p>Updated on Mar 1, 2026</p>", "2026-03-03"),
    ],
)
def test_dates_in_markup_are_read(head: str, foot: str, expected: str) -> None:
    assert page_of(article(head, foot)).published == instant(expected)


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        ("", ""),
        ("", "<p>© 2026. A study published on March 3, 2020 and updated on 5 May 2021 says so.</p>"),
        ("", '<time datetime="2020-01-01">then</time><img src="/2019/05/05/a.png">'),
        ('<meta name="date" content="soon">', ""),
        ('<script type="application/ld+json">{broken "datePublished": "2026-03-03"</script>', ""),
        ('<meta name="date" content="0001-01-01">', ""),
    ],
)
def test_a_date_is_never_guessed(head: str, foot: str) -> None:
    assert page_of(article(head, foot)).published is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/pdf", "PDF"),
        ("/binary", "image/png"),
        ("/script", "no readable text"),
        ("/nothing", "404"),
        ("/loop", "redirects"),
        ("/huge", "larger than"),
        ("/away?to=ftp://example.org/x", "not http"),
    ],
)
def test_an_unreadable_page_raises_with_the_reason(path: str, reason: str) -> None:
    with pytest.raises(PageUnavailable, match=reason):
        fetched(path)


def test_a_page_that_does_not_respond_raises() -> None:
    with pytest.raises(PageUnavailable, match="longer than"):
        fetched("/slow", limits=HttpLimits(attempts=1, total_seconds=0.1))


def test_a_page_too_large_for_an_article_is_refused() -> None:
    with pytest.raises(PageUnavailable, match="too large for an article"):
        read_page(b"<p>more</p>" * 500_000, "text/html", "https://news.example/")


def test_plain_text_is_returned_unchanged() -> None:
    page = fetched("/text")
    assert (page.title, page.text, page.published) == ("First line", "First line\nÆ second one", None)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://localhost:8080/", "http://[::1]/", "http://10.1.2.3/", "http://192.168.0.1/",
        "http://169.254.169.254/latest/meta-data", "http://0.0.0.0/", "http://[::ffff:10.0.0.1]/", "http://2130706433/",
        "http://100.64.0.1/", "http://[fe80::1%25eth0]/", "http://[64:ff9b::7f00:1]/",
    ],
)  # fmt: skip
def test_private_hosts_are_refused(url: str) -> None:
    with pytest.raises(PageUnavailable, match=r"not on the public web|not known"):
        asyncio.run(PublicAddressGuard().admit(url))


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "javascript:alert(1)",
        "x",
        "http://",
        "http://a:99999/",
        "http://u:p@example.org/",
    ],
)
def test_only_web_addresses_are_fetched(url: str) -> None:
    with pytest.raises(PageUnavailable) as caught:
        asyncio.run(PublicAddressGuard(allow_private=True).admit(url))
    assert "u:p" not in str(caught.value)


def test_a_host_name_in_a_private_network_is_refused_also_after_a_redirect() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return {"public.example": ["93.184.216.34"], "mixed.example": ["93.184.216.34", "10.0.0.1"]}.get(
            host, ["127.0.0.1"]
        )

    web = PublicAddressGuard(resolve=resolve)
    assert asyncio.run(web.admit("https://public.example/")) == "93.184.216.34"
    for inside in ("https://inside.example/", "https://mixed.example/"):
        with pytest.raises(PageUnavailable, match="not on the public web"):
            asyncio.run(web.admit(inside))

    async def run() -> None:
        async with strange_web_server(small_world()) as server, AsyncHttpClient(limits=QUICK) as client:
            first = True

            async def once(host: str, port: int) -> list[str]:
                # The first look-up returns a public address; this machine acts as that site.
                nonlocal first
                addresses, first = (["93.184.216.34"] if first else ["127.0.0.1"]), False
                return addresses

            pages = WebPages(client, resolve=once)
            pages._web.admit = _playing(pages._web.admit)
            await pages.fetch(f"{server.url}/moved/rates-held", JULY)

    with pytest.raises(PageUnavailable, match="not on the public web"):
        asyncio.run(run())


def _playing(admit: Callable[[str], object]) -> Callable[[str], object]:
    async def played(url: str) -> str:
        await admit(url)
        return "127.0.0.1"

    return played


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("2606:4700::1111", True), ("224.0.0.1", False), ("nonsense", False), ("2002:7f00:1::", False)],
)
def test_public_and_private_addresses_are_distinguished(address: str, public: bool) -> None:
    assert is_public(address) is public


def archived(url: str, as_of: AsOf, *, broken: frozenset[str] = frozenset()) -> tuple[Page, PracticeServer]:
    async def run() -> tuple[Page, PracticeServer]:
        server = broken_wayback_server(small_world(), broken)
        async with server, AsyncHttpClient(limits=QUICK) as client:
            return await WaybackPages(client, server.url).fetch(url, as_of), server

    return asyncio.run(run())


def test_the_archive_returns_the_newest_version_at_the_cutoff() -> None:
    page, server = archived(HELD, JULY)
    assert "First version" in page.text
    assert page.captured == instant("2026-06-18T12:00:00Z")
    assert server.requests[0].query["to"] == "20260701120000"
    assert page.hops == (HELD,)
    assert server.requests[1].target == f"/web/20260618120000id_/{HELD}"


def test_the_archive_returns_the_newest_version_of_all_if_live() -> None:
    page, server = archived(HELD, AsOf(at=instant("2026-10-01"), mode="live"))
    assert page.captured == instant("2026-09-20T12:00:00Z")
    assert "to" not in server.requests[0].query


def test_a_replay_that_redirects_past_the_cutoff_is_refused() -> None:
    with pytest.raises(PageUnavailable, match="2026-09-20, after the cutoff"):
        archived(HELD, JULY, broken=frozenset({"20260618120000"}))


@pytest.mark.parametrize(
    ("url", "day"), [(HELD, "2026-06-01"), ("https://news.example/rates-cut", "2026-09-30"), ("ftp://x", "2026-09-30")]
)
def test_a_page_that_was_not_archived_raises(url: str, day: str) -> None:
    with pytest.raises(PageUnavailable, match="archived"):
        archived(url, AsOf.day(day))


def test_an_index_of_captures_that_is_not_a_table_raises() -> None:
    async def run() -> None:
        server = PracticeServer()
        server.route("GET", "/cdx/search/cdx", lambda _: html_response("busy"))
        async with server, AsyncHttpClient(limits=QUICK) as client:
            await WaybackPages(client, server.url).fetch(HELD, JULY)

    with pytest.raises(PageUnavailable, match="index of captures"):
        asyncio.run(run())


STORY = "The council met on Monday and spoke about the harbour bridge for three hours before it went home."
BOARD = "Rank {n}: team {n} has {n} points, after it played {n} of its matches at home and {n} of them away."
HISTORIES = {
    "https://a.example/story": [STORY, f"{STORY} A name was corrected."],
    "https://a.example/board": [BOARD.format(n=3), BOARD.format(n=8)],
    "https://a.example/blog": [STORY, " ".join([STORY, *(BOARD.format(n=n) for n in range(9))])],
    "https://a.example/once": [STORY],
}


def test_a_page_whose_stored_versions_differ_is_admitted_only_as_a_stored_version() -> None:
    days = (instant("2026-01-05"), instant("2026-05-05"))
    pages = [
        SampleWebPage(
            url=url,
            title="T",
            text="x",
            versions=tuple(PageVersion(at=at, text=t) for at, t in zip(days, texts, strict=False)),
        )
        for url, texts in HISTORIES.items()
    ]
    hits = [
        SearchHit(title="T", url=url, snippet=STORY, text=STORY, published=days[0], dating="published")
        for url in HISTORIES
    ]

    class Engine:
        name = "sample"
        filters_dates = True

        async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
            return hits

    async def run() -> ToolMaterial:
        server = wayback_server(SampleWorld(now=days[1], pages=pages))
        async with server, AsyncHttpClient(limits=QUICK) as client:
            search = WebSearch(engine=Engine(), history=WaybackPages(client, server.url))
            return await search.use({"query": "bridge"}, JULY)

    material = asyncio.run(run())
    assert [item.rewritten for item in material.items] == [False, True, True, False]
    assert material_from_json(material_to_json(material)) == material
    question = Question(id="q", source="own", text="Is the bridge built?", due=JULY.at, targets=(Target(id="yes"),))
    admitted = [LeakageRules(as_of=JULY, question=question).admit(item, "web_search") for item in material.items]
    assert [isinstance(item, Refusal) for item in admitted] == [False, True, True, False]
    # A version that was stored before the cutoff is still admitted.
    stored = replace(material.items[1], captured=days[0])
    assert LeakageRules(as_of=JULY, question=question).admit(stored, "web_search") == stored
    # Two versions that state different days have no stable date.
    old, new = (Page(url="u", hops=(), title="T", text=STORY, published=at) for at in days)
    assert versions_differ(old, new)
