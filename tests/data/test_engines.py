"""Every search engine against a server with its format: dates, filters, limits, failures and hidden keys."""

import asyncio
import json
import logging
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from fakes.faults import busy, failing, garbled, inject
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.search.engine import CannotSearch, SearchEngine, SearchHit
from foretell.data.search.news import ASKNEWS_URL, GDELT_URL, AskNewsSearch, GdeltSearch
from foretell.data.search.web import BraveSearch, ExaSearch, PerplexitySearch, SerperSearch, TavilySearch
from foretell.data.service import ServiceConfig
from foretell.data.service_limits import ServiceAccess, ServiceAddresses
from foretell.practice.server import PracticeServer, ServerResponse, json_response
from foretell.practice.web import SampleWebPage, SampleWorld, search_server, small_world
from foretell.questions.as_of import AsOf, instant

KEY = "canary-key/9+9"
QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=10.0)
JULY = AsOf(at=instant("2026-07-01T12:00:00Z"))
LIVE = AsOf(at=instant("2026-10-01"), mode="live")
HELD, CUT, AGED, UNDATED = (f"https://news.example/rates-{name}" for name in ("held", "cut", "aged", "undated"))

Build = Callable[[AsyncHttpClient, str], SearchEngine]
ENGINES: dict[str, Build] = {
    "brave": lambda client, url: BraveSearch(ServiceConfig(http=client, key=KEY, address=f"{url}/brave")),
    "exa": lambda client, url: snapshots("2027-06-01")(client, url),
    "tavily": lambda client, url: TavilySearch(ServiceConfig(http=client, key=KEY, address=f"{url}/tavily")),
    "perplexity": lambda client, url: PerplexitySearch(
        ServiceConfig(http=client, key=KEY, address=f"{url}/perplexity")
    ),
    "serper": lambda client, url: SerperSearch(ServiceConfig(http=client, key=KEY, address=f"{url}/serper")),
    "asknews": lambda client, url: AskNewsSearch(ServiceConfig(http=client, key=KEY, address=f"{url}/asknews")),
    "gdelt": lambda client, url: GdeltSearch(ServiceConfig(http=client, address=f"{url}/gdelt")),
}
every_engine = pytest.mark.parametrize("name", ENGINES)
Meddle = Callable[[PracticeServer], None]


def searched(
    build: Build | str,
    as_of: AsOf = JULY,
    query: str = "central bank rate",
    *,
    limit: int = 10,
    world: SampleWorld | None = None,
    meddle: Meddle = lambda server: None,
) -> tuple[list[SearchHit], PracticeServer]:
    async def run() -> tuple[list[SearchHit], PracticeServer]:
        server = search_server(world or small_world(), KEY)
        meddle(server)
        async with server, AsyncHttpClient(limits=QUICK) as client:
            engine = (ENGINES[build] if isinstance(build, str) else build)(client, server.url)
            return await engine.search(query, as_of, limit), server

    return asyncio.run(run())


def failed(name: str, meddle: Meddle) -> SourceError:
    with pytest.raises(SourceError) as caught:
        searched(name, meddle=meddle)
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert "9%2B9" not in shown
    return caught.value


def answering(data: Any) -> Meddle:
    """Make the server respond with this to every request."""
    return lambda server: inject(server, lambda _: data if isinstance(data, ServerResponse) else json_response(data))


def sent(server: PracticeServer) -> dict[str, Any]:
    request = server.requests[0]
    return request.json() if request.body else dict(request.query)


@every_engine
def test_a_backtest_gets_no_result_after_the_cutoff(name: str) -> None:
    hits, _ = searched(name)
    assert HELD in [hit.url for hit in hits]
    assert CUT not in [hit.url for hit in hits]


@every_engine
def test_live_search_sends_no_date_filter(name: str) -> None:
    hits, server = searched(name, LIVE)
    assert CUT in [hit.url for hit in hits]
    body = json.dumps(sent(server))
    assert not any(
        word in body for word in ("2026", "Date", "_date", "freshness", "timestamp", "cdr", "before:", "AsOf")
    )


@every_engine
def test_unicode_is_sent_and_received_unchanged(name: str) -> None:
    page = SampleWebPage(
        url="https://news.example/ü",
        title="Zażółć 中文 🎉",
        text="Œuvre über 中文 — gęślą",
        published=instant("2026-05-01"),
        crawled=instant("2026-05-01"),
    )
    hits, server = searched(name, query="Zażółć 中文", world=SampleWorld(now=instant("2026-10-01"), pages=[page]))
    assert [(hit.title, hit.url) for hit in hits] == [(page.title, page.url)]
    assert "Zażółć 中文" in json.dumps(sent(server), ensure_ascii=False)


@every_engine
def test_a_limit_is_kept(name: str) -> None:
    hits, server = searched(name, LIVE, limit=1)
    assert len(hits) == 1
    assert len(server.requests) == 1


@every_engine
def test_no_result_is_an_empty_list(name: str) -> None:
    assert searched(name, query="zzzz")[0] == []


@every_engine
def test_a_busy_engine_is_retried(name: str) -> None:
    hits, server = searched(name, meddle=lambda server: inject(server, busy(), failing(500)))
    assert hits
    assert len(server.requests) == 3


@every_engine
def test_a_response_that_is_not_json_raises(name: str) -> None:
    assert "not JSON" in str(failed(name, lambda server: inject(server, garbled())))


SHAPES: list[Any] = [[], {"unexpected": 1}, {"web": {}, "results": 3, "organic": None, "articles": 7}]
# Without articles, GDELT leaves the field out.
STRANGE = [(name, data) for name in ENGINES for data in SHAPES if (name, data) != ("gdelt", SHAPES[1])]


@pytest.mark.parametrize(("name", "data"), STRANGE)
def test_an_error_about_a_changed_response_names_the_field(name: str, data: Any) -> None:
    assert "field" in str(failed(name, answering(data)))


MISSING = [
    ("brave", {"web": {"results": [{"title": "t"}]}}, "web.results[0].url"),
    ("brave", {"web": {"results": [{"url": "u"}]}}, "web.results[0].title"),
    ("brave", {"web": {"results": [{"url": "u", "title": "t", "age": 3}]}}, "web.results[0].age"),
    ("exa", {"results": [{"title": "t"}]}, "results[0].url"),
    ("exa", {"results": [{"url": "u", "title": "t", "publishedDate": 12}]}, "results[0].publishedDate"),
    ("tavily", {"results": [{"url": "u", "title": "t"}]}, "results[0].content"),
    ("serper", {"organic": [{"title": "t"}]}, "organic[0].link"),
    ("serper", {"organic": [{"title": "t", "link": ""}]}, "organic[0].link"),
    ("asknews", {"as_dicts": [{"article_url": "u", "title": "t"}]}, "as_dicts[0].pub_date"),
    ("asknews", {"as_string": "…"}, "as_dicts"),
    ("gdelt", {"articles": [{"url": "u", "title": "t"}]}, "articles[0].seendate"),
]


@pytest.mark.parametrize(("name", "data", "field"), MISSING)
def test_an_error_about_a_missing_field_names_it(name: str, data: Any, field: str) -> None:
    assert f"field {field}" in str(failed(name, answering(data)))


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "gdelt"])
def test_an_error_about_a_wrong_key_does_not_show_the_key(name: str) -> None:
    def meddle(server: PracticeServer) -> None:
        other = search_server(small_world(), "another key")
        server._routes = other._routes

    error = failed(name, meddle)
    assert error.status == 401
    assert "invalid key" in str(error)


@every_engine
def test_no_key_is_logged(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        searched(name)
    assert "foretell.data.http" in caplog.text
    assert KEY not in caplog.text
    assert "9%2B9" not in caplog.text


@every_engine
@pytest.mark.parametrize("query", ["", "   "])
def test_an_empty_query_is_refused(name: str, query: str) -> None:
    with pytest.raises(CannotSearch):
        searched(name, query=query)


@every_engine
def test_engines_state_their_name_and_that_they_filter_dates(name: str) -> None:
    async def run() -> None:
        async with AsyncHttpClient() as client:
            engine = ENGINES[name](client, "http://127.0.0.1:1")
            assert (engine.name, engine.filters_dates) == (name, True)

    asyncio.run(run())


def test_brave_sends_a_date_range_and_states_how_pages_are_dated() -> None:
    hits, server = searched("brave")
    assert server.requests[0].query["freshness"] == "2000-01-01to2026-07-01"
    assert server.requests[0].query["extra_snippets"] == "true"
    by_url = {hit.url: hit for hit in hits}
    assert (by_url[HELD].published, by_url[HELD].dating) == (instant("2026-06-18T09:30:00Z"), "published")
    assert (by_url[AGED].published, by_url[AGED].dating) == (None, "relative")
    assert (by_url[UNDATED].published, by_url[UNDATED].dating) == (None, "none")
    assert "<strong>" not in by_url[HELD].snippet
    assert "More in September." in by_url[HELD].snippet


def many_pages(count: int) -> SampleWorld:
    day = datetime(2026, 5, 1, tzinfo=UTC)
    pages = [
        SampleWebPage(url=f"https://news.example/{i}", title=f"Rate {i}", text="rate", published=day, crawled=day)
        for i in range(count)
    ]
    return SampleWorld(now=instant("2026-10-01"), pages=pages)


@pytest.mark.parametrize(
    ("name", "limit", "pages"), [("brave", 45, 3), ("brave", 20, 1), ("serper", 25, 3), ("serper", 99, 7)]
)
def test_many_results_take_several_pages(name: str, limit: int, pages: int) -> None:
    hits, server = searched(name, query="rate", limit=limit, world=many_pages(60))
    assert [hit.url for hit in hits] == [f"https://news.example/{i}" for i in range(min(limit, 60))]
    assert len(server.requests) == pages


@pytest.mark.parametrize(
    ("name", "field", "most"), [("exa", "numResults", 100), ("tavily", "max_results", 20), ("gdelt", "maxrecords", 250)]
)
def test_the_requested_limit_is_at_most_the_maximum_of_the_engine(name: str, field: str, most: int) -> None:
    _, server = searched(name, query="rate", limit=1_000, world=many_pages(3))
    assert int(sent(server)[field]) == most


@pytest.mark.parametrize(("name", "query"), [("brave", "x" * 401), ("brave", "w " * 51), ("tavily", "x" * 401)])
def test_a_query_that_is_too_long_is_refused_with_advice(name: str, query: str) -> None:
    with pytest.raises(CannotSearch, match="shorten it"):
        searched(name, query=query)


def test_exa_sends_the_exact_cutoff_and_leaves_out_undated_pages() -> None:
    hits, server = searched("exa")
    assert sent(server)["endPublishedDate"] == "2026-07-01T12:00:00.000Z"
    assert sent(server)["contents"] == {"text": {"maxCharacters": 10_000}, "maxAgeHours": -1}
    assert UNDATED not in [hit.url for hit in hits]
    held = next(hit for hit in hits if hit.url == HELD)
    assert (held.published, held.text_as_of) == (instant("2026-06-18T09:30:00Z"), None)
    assert "som ventet" in (held.text or "")


def snapshots(now: str) -> Build:
    return lambda client, url: ExaSearch(
        ServiceConfig(http=client, key=KEY, address=f"{url}/exa"), now=lambda: instant(now)
    )


def test_exa_snapshots_have_the_text_of_the_cutoff() -> None:
    hits, server = searched(snapshots("2026-10-01"))
    assert sent(server)["contents"]["snapshotAsOf"] == "2026-07-01T12:00:00.000Z"
    by_url = {hit.url: hit for hit in hits}
    assert by_url[HELD].text == "The central bank kept its rate. First version."
    assert by_url[HELD].text_as_of == instant("2026-06-18T12:00:00Z")
    assert (by_url[AGED].text, by_url[AGED].text_as_of) == (None, None)


def test_exa_snapshots_are_requested_only_in_recent_backtests() -> None:
    assert "snapshotAsOf" not in sent(searched(snapshots("2027-06-01"))[1])["contents"]
    assert "snapshotAsOf" not in sent(searched(snapshots("2026-10-01"), LIVE)[1])["contents"]


def test_tavily_dates_are_the_crawlers() -> None:
    hits, server = searched("tavily")
    assert (sent(server)["start_date"], sent(server)["end_date"]) == ("2000-01-01", "2026-07-01")
    held = next(hit for hit in hits if hit.url == HELD)
    assert (held.published, held.dating) == (instant("2026-06-18T10:00:00Z"), "crawled")
    assert held.text


def test_serper_sends_the_range_twice_and_reads_googles_dates() -> None:
    hits, server = searched("serper")
    assert sent(server)["tbs"] == "cdr:1,cd_min:01/01/2000,cd_max:07/01/2026"
    assert sent(server)["q"] == "central bank rate before:2026-07-02"
    by_url = {hit.url: hit for hit in hits}
    assert (by_url[HELD].published, by_url[HELD].dating) == (instant("2026-06-18"), "published")
    assert (by_url[AGED].published, by_url[AGED].dating) == (None, "relative")
    assert (by_url[UNDATED].published, by_url[UNDATED].dating) == (None, "none")


def test_asknews_filters_its_archive_by_crawl_date() -> None:
    hits, server = searched("asknews")
    params = sent(server)
    assert (params["historical"], params["time_filter"], params["end_timestamp"]) == (
        "true",
        "crawl_date",
        "1782907200",
    )
    assert int(params["end_timestamp"]) - int(params["start_timestamp"]) == 60 * 86_400
    held = next(hit for hit in hits if hit.url == HELD)
    assert (held.published, held.dating) == (instant("2026-06-18T09:30:00Z"), "published")


def test_gdelt_dates_are_when_it_saw_the_article() -> None:
    hits, server = searched("gdelt")
    assert (sent(server)["startdatetime"], sent(server)["enddatetime"]) == ("20260402120000", "20260701120000")
    held = next(hit for hit in hits if hit.url == HELD)
    assert (held.published, held.dating) == (instant("2026-06-18T10:00:00Z"), "crawled")


def test_gdelt_json_with_stray_backslashes_and_control_characters_is_read() -> None:
    article = (
        rb'{"url": "https://x.example/", "title": "a \d b \u00e6 \\ \uZZ '
        + b"\x01\t"
        + b'", "seendate": "20260601T000000Z"}'
    )
    raw = ServerResponse(body=b'{"articles": [' + article + b"]}", headers={"Content-Type": "application/json"})
    (hit,), _ = searched("gdelt", meddle=answering(raw))
    assert hit.title == "a \\d b æ \\ \\uZZ \x01\t"


def test_gdelt_refusing_a_query_in_html_with_status_200_is_an_error() -> None:
    page = ServerResponse(body=b"<p>Your query was too short.</p>", headers={"Content-Type": "text/html"})
    assert "the query was refused: Your query was too short." in str(failed("gdelt", answering(page)))


def test_gdelt_gets_words_without_operators() -> None:
    _, server = searched("gdelt", query='Will (the bank) "cut its rate"? Norway\'s: a/b')
    assert sent(server)["query"] == 'Will the bank "cut its rate" Norway s a b sourcelang:english'
    with pytest.raises(CannotSearch, match="three letters"):
        searched("gdelt", query="a? b!")


def test_gdelt_and_asknews_have_slow_default_rate_limits() -> None:
    known = ServiceAddresses(ServiceAccess())
    services = {url: known.find(urlsplit(url).netloc, urlsplit(url).path) for url in (GDELT_URL, ASKNEWS_URL)}
    assert [service and [str(limit) for limit in service.limits] for service in services.values()] == [
        ["1/5 s"],
        ["1/10 s"],
    ]


def test_a_token_is_requested_once_and_again_when_it_is_refused() -> None:
    async def run() -> PracticeServer:
        server = search_server(small_world(), KEY)
        async with server, AsyncHttpClient(limits=QUICK) as client:
            config = ServiceConfig(http=client, key=f"my-id:{KEY}", address=f"{server.url}/asknews")
            engine = AskNewsSearch(config)
            await asyncio.gather(*(engine.search("central bank rate", JULY) for _ in range(3)))
            expired = [lambda _: json_response({"detail": "token expired"}, 401)]
            inject(server, *expired)
            assert HELD in [hit.url for hit in await engine.search("central bank rate", JULY)]
            inject(server, *expired, *expired, *expired)
            with pytest.raises(SourceError) as caught:
                await engine.search("central bank rate", JULY)
            assert KEY not in str(caught.value)
        return server

    paths = [request.path for request in asyncio.run(run()).requests]
    assert paths.count("/asknews/oauth2/token") == 3
    assert paths[0] == "/asknews/oauth2/token"


def test_one_unreadable_result_is_left_out_and_noted() -> None:
    rows = [{"title": "a", "url": HELD, "description": "x", "page_age": "2026-06-18T09:30:00"}, {"title": "no address"}]
    hits, _ = searched("brave", meddle=answering({"type": "search", "web": {"results": rows}}))
    assert [hit.url for hit in hits] == [HELD]
    assert getattr(hits, "notes", ()) == ("1 of 2 rows cannot be read: field web.results[1].url is missing",)


def test_perplexity_results_are_dated_by_their_last_change() -> None:
    row = {"title": "t", "url": HELD, "snippet": "s", "date": "2026-06-01", "last_updated": "2026-09-20"}
    hits, server = searched("perplexity", meddle=answering({"results": [row]}))
    assert [hit.published for hit in hits] == [instant("2026-09-20")]
    assert sent(server)["last_updated_before_filter"] == "07/02/2026"
