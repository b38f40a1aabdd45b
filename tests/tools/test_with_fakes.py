"""The leakage filter around real sources with fake servers."""

import asyncio
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from tests.tools.doubles import keeps_all, question
from tests.tools.planted.stand_in import stand_in

from fakes.markets import FakeFred
from fakes.web import strange_web_server
from foretell.data.corpus import Corpus, CorpusDocument, CorpusSearch
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.pages import WaybackPages, WebPages
from foretell.data.search.engine import SearchEngine
from foretell.data.search.news import GdeltSearch
from foretell.data.search.web import BraveSearch, ExaSearch, SerperSearch, TavilySearch
from foretell.data.series.fred import FredSeries
from foretell.data.service import ServiceConfig
from foretell.data.service_limits import ServiceAccess
from foretell.data.wikipedia import Wikipedia
from foretell.practice.series import SampleFredSeries, SampleFredValue
from foretell.practice.server import PracticeServer
from foretell.practice.web import search_server, small_world, wayback_server, wikipedia_server
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import SeriesRef
from foretell.questions.trace import LeakBlocked, TraceEvent
from foretell.tools.content_filter import ModelContentFilter
from foretell.tools.leakage_filter import FilteredTools, Observation
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.series import FetchSeries
from foretell.tools.tool import Tool
from foretell.tools.web import FetchWikipedia, LookupUrl, WebSearch

KEY = "k"
JULY = AsOf(at=instant("2026-07-01T12:00:00Z"))
QUICK = HttpLimits(attempts=1, wait_seconds=0.0, total_seconds=5.0)
ACCESS = ServiceAccess(contact="me@example.org")
ENGINES: dict[str, Callable[[AsyncHttpClient, str], SearchEngine]] = {
    "brave": lambda client, url: BraveSearch(ServiceConfig(http=client, key=KEY, address=f"{url}/brave")),
    "exa": lambda client, url: ExaSearch(
        ServiceConfig(http=client, key=KEY, address=f"{url}/exa"), now=lambda: instant("2027-06-01")
    ),
    "exa with snapshots": lambda client, url: ExaSearch(
        ServiceConfig(http=client, key=KEY, address=f"{url}/exa"), now=lambda: instant("2026-10-01")
    ),
    "tavily": lambda client, url: TavilySearch(ServiceConfig(http=client, key=KEY, address=f"{url}/tavily")),
    "serper": lambda client, url: SerperSearch(ServiceConfig(http=client, key=KEY, address=f"{url}/serper")),
    "gdelt": lambda client, url: GdeltSearch(ServiceConfig(http=client, address=f"{url}/gdelt")),
}


def around(tool: Tool, *, model: object = None, as_of: AsOf = JULY) -> tuple[FilteredTools, list[TraceEvent]]:
    events: list[TraceEvent] = []
    rules = LeakageRules(as_of=as_of, question=question(due="2026-07-01"), emit=events.append)
    content_filter = ModelContentFilter(model=model or keeps_all(), name="scripted:filter")  # pyright: ignore
    return FilteredTools.around((tool,), rules, content_filter), events


def searched(name: str, *, as_of: AsOf = JULY) -> tuple[Observation, list[TraceEvent]]:
    async def run() -> tuple[Observation, list[TraceEvent]]:
        async with search_server(small_world(), KEY) as server, AsyncHttpClient(limits=QUICK) as client:
            toolbox, events = around(WebSearch(engine=ENGINES[name](client, server.url)), as_of=as_of)
            return await toolbox.use("web_search", {"query": "central bank rate Norway"}), events

    return asyncio.run(run())


@pytest.mark.parametrize("name", ENGINES)
def test_engines_show_no_later_or_undated_results(name: str) -> None:
    observation, _ = searched(name)
    assert "Norges Bank holds rates" in observation.text
    for later in ("cut its rate to three and a half", "Nobody dated this page", "has since cut"):
        assert later not in observation.text


def test_ages_and_missing_dates_are_recorded() -> None:
    reasons = {event.reason for event in searched("brave")[1] if isinstance(event, LeakBlocked)}
    assert any("age" in reason for reason in reasons)
    assert any("no date" in reason for reason in reasons)


def test_live_search_shows_everything() -> None:
    live = AsOf(at=instant("2026-10-01"), mode="live")
    assert "Nobody dated this page" in searched("brave", as_of=live)[0].text


def opened(
    make: Callable[[AsyncHttpClient, str], Tool], server: PracticeServer, **arguments: str
) -> tuple[Observation, list[TraceEvent]]:
    async def run() -> tuple[Observation, list[TraceEvent]]:
        async with server as started, AsyncHttpClient(limits=QUICK, access=ACCESS) as client:
            toolbox, events = around(make(client, started.url))
            filled = {
                key: value.format(numbered=started.url, site=started.url.replace("127.0.0.1", "localhost"))
                for key, value in arguments.items()
            }
            name = toolbox.specs()[0].name
            return await toolbox.use(name, filled), events

    return asyncio.run(run())


def test_archive_returns_the_version_before_the_cutoff() -> None:
    observation, _ = opened(
        lambda client, url: LookupUrl(pages=WaybackPages(client, url)),
        wayback_server(small_world()),
        url="https://news.example/rates-held",
    )
    assert "First version." in observation.text
    assert "has since cut" not in observation.text


@pytest.mark.parametrize("path", ["/rates-cut", "/rates-undated", "/moved/rates-cut", "/pdf", "/nowhere"])
def test_blocked_and_missing_pages_give_the_same_message(path: str) -> None:
    observation, events = opened(
        lambda client, url: LookupUrl(pages=WebPages(client, allow_private=True)),
        strange_web_server(small_world()),
        url="{site}" + path,
    )
    assert observation.text.startswith("lookup_url: nothing could be admitted as of 2026-07-01.")
    assert any(isinstance(event, LeakBlocked) for event in events)


def test_redirects_to_ip_addresses_are_refused() -> None:
    def pages(client: AsyncHttpClient, url: str) -> Tool:
        return LookupUrl(pages=WebPages(client, allow_private=True))

    observation, events = opened(pages, strange_web_server(small_world()), url="{site}/away?to=/rates-held")
    assert "kept its rate" in observation.text
    assert not events
    observation, events = opened(pages, strange_web_server(small_world()), url="{site}/away?to={numbered}/rates-held")
    assert "kept its rate" not in observation.text
    assert [event.layer for event in events if isinstance(event, LeakBlocked)] == ["address"]


def test_an_article_is_read_as_of_the_cutoff() -> None:
    world = small_world()
    title, versions = next((title, versions) for title, versions in world.articles.items() if len(versions) > 1)
    observation, _ = opened(
        lambda client, url: FetchWikipedia(wikipedia=Wikipedia(client, url)), wikipedia_server(world), title=title
    )
    assert observation.source_ids == ("wikipedia_1",)
    assert f"version of {max(version.at for version in versions if version.at <= JULY.at):%Y-%m-%d}" in observation.text


def test_a_local_corpus_is_filtered_like_the_web() -> None:
    corpus = Corpus(":memory:")
    corpus.add(
        CorpusDocument(url=url, title=title, text=text, published=published)
        for url, title, text, published in (
            ("file:///notes/a.txt", "Before", "The rate was held.", instant("2026-06-01T08:00:00Z")),
            (
                "file:///notes/b.txt",
                "Rewritten",
                "The rate was cut on 17 September 2026.",
                instant("2026-06-02T08:00:00Z"),
            ),
            ("https://polymarket.com/x", "Market", "The rate: yes 97 %.", instant("2026-06-02T08:00:00Z")),
            ("file:///notes/c.txt", "Undated", "The rate.", None),
        )
    )
    toolbox, events = around(WebSearch(engine=CorpusSearch(corpus)), model=stand_in())
    text = asyncio.run(toolbox.use("web_search", {"query": "rate"})).text
    assert "Before" in text
    assert "Rewritten" not in text
    assert "Market" not in text
    assert sorted(event.layer for event in events if isinstance(event, LeakBlocked)) == ["address", "date"]
    corpus.close()


def filtered_series(day: str, **options: Any) -> Observation:
    """One figure of FRED, first 3.8 and corrected to 3.7 in January 2024."""
    series_question = question(source="fred", due=day, series=SeriesRef(provider="fred", id="UNRATE"))
    first = SampleFredValue(day=date(2023, 8, 1), value=3.8, since=date(2023, 9, 1), until=date(2024, 1, 5))
    rows = (first, SampleFredValue(day=date(2023, 8, 1), value=3.7, since=date(2024, 1, 5)))
    archived_since = options.pop("archived_since", date(2000, 1, 1))
    unrate = SampleFredSeries(observations=rows, archived_since=archived_since)

    async def run() -> Observation:
        fake = FakeFred({"UNRATE": unrate}, key="canary", today=date(2026, 11, 1))
        async with fake.server() as server, AsyncHttpClient(limits=QUICK) as http:
            source = FredSeries(ServiceConfig(http=http, key="canary", address=f"{server.url}/fred"), **options)
            tool = FetchSeries(question=series_question, source=source)
            rules = LeakageRules(as_of=series_question.as_of, question=series_question)
            toolbox = FilteredTools.around(
                (tool,), rules, ModelContentFilter(model=keeps_all(), name="scripted:filter")
            )
            return await toolbox.use("fetch_series", {})

    return asyncio.run(run())


def test_series_shows_the_vintage_of_the_cutoff() -> None:
    assert "2023-08-01, 3.8" in filtered_series("2023-10-01").text
    assert "2023-08-01, 3.7" in filtered_series("2024-02-01").text


def test_series_without_vintages_is_refused() -> None:
    for allow in (False, True):
        observation = filtered_series("2023-10-01", archived_since=None, allow_revised=allow)
        assert "3.7" not in observation.text
        assert observation.failed
