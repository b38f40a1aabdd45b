"""The tools themselves: what they ask for, what they bring, and how they say that they cannot."""

import asyncio
from typing import Any

import pytest
from tests.tools.doubles import (
    CUTOFF,
    Articles,
    Engine,
    Numbers,
    Pages,
    Prices,
    at,
    fenced,
    keeps_all,
    question,
    series,
    use,
)

from foretell.data import ArticleRevision, Page, PageUnavailable, SourceError
from foretell.data.markets import PricePoint, PricesUnavailable
from foretell.data.search import CannotSearch, SearchHit
from foretell.data.series import Series, SeriesInMemory, SeriesUnavailable
from foretell.questions import AsOf, LeakBlocked, Question, SeriesRef, Target, TraceEvent
from foretell.tools import (
    FetchPrices,
    FetchSeries,
    FetchWikipedia,
    LookupUrl,
    SourceStore,
    SummarizeResults,
    Tool,
    ToolFailed,
    ToolMaterial,
    WebSearch,
    shown_places,
)

YIELD = question(
    id="fred/DGS10",
    source="fred",
    kind="dataset",
    targets=(Target(id="2025-11-02", resolves_at="2025-11-02"),),
    series=SeriesRef(provider="fred", id="DGS10"),
)
ROWS = {"2025-10-20": 4.0, "2025-10-24": 4.25, "2025-10-30": 9.99}


def brought(tool: Tool, **arguments: Any) -> ToolMaterial:
    return asyncio.run(tool.use(arguments, CUTOFF))


def test_every_schema_is_an_object_that_names_its_arguments() -> None:
    tools: list[Tool] = [
        WebSearch(engine=Engine(hits=())),
        LookupUrl(pages=Pages(page=PageUnavailable(""))),
        FetchSeries(question=YIELD, source=Numbers(rows={})),
        FetchPrices(question=YIELD, sources={}),
        FetchWikipedia(wikipedia=Articles(revision_=PageUnavailable(""))),
        SummarizeResults(sources=SourceStore(), model=keeps_all(), name="m:x", question=YIELD),
    ]
    for tool in tools:
        schema = tool.spec.parameters
        assert schema["type"] == "object"
        assert set(schema.get("required", [])) <= set(schema["properties"])
        assert "updated_belief" not in schema["properties"]
        assert len(tool.spec.description) > 60


@pytest.mark.parametrize("error", [CannotSearch("too long"), SourceError("is down", url="https://e.example")])
def test_a_search_that_fails_says_why(error: Exception) -> None:
    class Failing(Engine):
        async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
            raise error

    with pytest.raises(ToolFailed, match=r"too long|is down"):
        brought(WebSearch(engine=Failing(hits=())), query="q")


def test_missing_and_wrong_arguments_are_told() -> None:
    tool = WebSearch(engine=Engine(hits=()))
    for arguments in ({}, {"query": ""}, {"query": ["a"]}):
        with pytest.raises(ToolFailed, match="query"):
            brought(tool, **arguments)


def test_of_a_stored_version_only_its_own_words_are_shown() -> None:
    hit = SearchHit(
        url="https://n.example/a",
        title="T",
        snippet="Words of today's index.",
        published=at("2025-10-01"),
        text="Words of the stored version.",
        text_as_of=at("2025-10-02"),
    )
    item = brought(WebSearch(engine=Engine(hits=(hit,))), query="q").items[0]
    assert item.snippet == "Words of the stored version."
    assert item.captured == at("2025-10-02")


def test_a_page_brings_every_address_it_passed() -> None:
    page = Page(
        url="https://b.example/", hops=("https://a.example/", "https://b.example/"), title="T", text="x", published=None
    )
    item = brought(LookupUrl(pages=Pages(page=page)), url="https://start.example/").items[0]
    assert item.hops == ("https://start.example/", "https://a.example/", "https://b.example/")
    assert item.dating == "none"


def test_only_web_addresses_are_opened() -> None:
    with pytest.raises(ToolFailed, match="https"):
        brought(LookupUrl(pages=Pages(page=PageUnavailable(""))), url="file:///etc/passwd")


def test_a_series_shows_reference_estimate_and_rows_up_to_the_cutoff() -> None:
    events: list[TraceEvent] = []

    async def estimate(asked: Question, known: Series, as_of: AsOf) -> dict[str, float]:
        assert float(known.values[-1]) == 4.25
        return {"2025-11-02": 0.4321}

    tool = FetchSeries(question=YIELD, source=Numbers(rows=ROWS), estimate=estimate, emit=events.append)
    text = brought(tool).items[0].text
    assert text.splitlines() == [
        "last value on or before 2025-10-26: 4.25",
        "asked: whether the value will be above that value",
        "observations: 2",
        "model estimate of yes for 2025-11-02: 0.432",
        "day, value",
        "2025-10-20, 4",
        "2025-10-24, 4.25",
    ]
    assert [event.reason for event in events if isinstance(event, LeakBlocked)] == [
        "1 points of fred/DGS10 after the cutoff"
    ]


def test_the_reference_is_the_last_value_on_or_before_the_due_day_not_the_last_of_all() -> None:
    rows = {"2025-10-20": 1.0, "2025-10-26": 2.0, "2025-10-28": 3.0}
    tool = FetchSeries(question=YIELD, source=Numbers(rows=rows))
    later = AsOf.day("2025-10-30", "live")
    text = asyncio.run(tool.use({}, later)).items[0].text
    assert "last value on or before 2025-10-26: 2" in text
    assert "2025-10-28, 3" in text


def test_a_source_that_says_nothing_of_corrections_counts_as_corrected() -> None:
    plain = SeriesInMemory(series={"DGS10": series(ROWS)})
    with pytest.raises(ToolFailed, match="corrected later"):
        brought(FetchSeries(question=YIELD, source=plain))
    assert brought(FetchSeries(question=YIELD, source=plain, allow_revised=True)).items[0].clamped


def test_no_series_no_values_no_answer() -> None:
    class Absent(Numbers):
        async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf):
            raise SeriesUnavailable("no such series")

    with pytest.raises(ToolFailed, match="not decided by a series"):
        brought(FetchSeries(question=question(), source=Numbers(rows=ROWS)))
    with pytest.raises(ToolFailed, match="known at the cutoff"):
        brought(FetchSeries(question=YIELD, source=Numbers(rows={"2026-01-01": 1.0})))
    with pytest.raises(ToolFailed, match="no such series"):
        brought(FetchSeries(question=YIELD, source=Absent(rows={})))


def test_long_histories_are_thinned_with_age_and_keep_the_newest() -> None:
    for count in (0, 1, 59, 60, 61, 365, 5_000, 100_000):
        places = shown_places(count)
        assert places == sorted(set(places))
        assert len(places) <= 300
        assert places[-60:] == list(range(max(0, count - 60), count))
        assert all(0 <= place < count for place in places)


def test_prices_of_several_targets_are_several_results() -> None:
    asked = question(
        id="metaculus/7", source="metaculus", url="", targets=(Target(id="1", label="A"), Target(id="2", label="B"))
    )
    points = [PricePoint(at=at("2025-10-25"), p=0.25)]
    tool = FetchPrices(question=asked, sources={"metaculus": Prices(points=points, platform="metaculus")})
    assert [item.title for item in brought(tool).items] == ["A", "B"]


def test_no_market_and_no_price() -> None:
    market = question(id="metaculus/7", source="metaculus")
    with pytest.raises(ToolFailed, match="no market"):
        brought(FetchPrices(question=question(), sources={}))
    unknown = Prices(points=PricesUnavailable("none"), platform="metaculus")
    with pytest.raises(ToolFailed, match="could not be read"):
        brought(FetchPrices(question=market, sources={"metaculus": unknown}))
    late = Prices(points=[PricePoint(at=at("2026-01-01"), p=0.9)], platform="metaculus")
    with pytest.raises(ToolFailed, match="known at the cutoff"):
        brought(FetchPrices(question=market, sources={"metaculus": late}))


ARTICLE = ArticleRevision(
    title="FIDE rankings",
    revid=1,
    at=at("2025-10-20"),
    wikitext="The '''list''' of [[chess]] players.\n== Top ==\nCarlsen 2839\n=== Women ===\nHou 2609\n"
    "== History ==\nOld.",
)


def test_an_article_opens_with_introduction_and_contents() -> None:
    item = brought(FetchWikipedia(wikipedia=Articles(revision_=ARTICLE)), title="FIDE_rankings").items[0]
    assert item.text.startswith("The list of chess players.")
    assert item.text.endswith("Sections:\n0 Introduction\n1 Top\n1.1 Women\n2 History")
    assert item.url == "https://en.wikipedia.org/wiki/FIDE_rankings"
    assert item.captured == at("2025-10-20")


@pytest.mark.parametrize("section", ["1", "top", "1 Top"])
def test_a_section_is_read_by_number_or_heading(section: str) -> None:
    tool = FetchWikipedia(wikipedia=Articles(revision_=ARTICLE))
    text = brought(tool, url="https://en.wikipedia.org/wiki/FIDE_rankings", section=section).items[0].text
    assert "Carlsen 2839" in text
    assert "Hou 2609" in text
    assert "Old." not in text


def test_articles_that_cannot_be_read() -> None:
    tool = FetchWikipedia(wikipedia=Articles(revision_=ARTICLE))
    with pytest.raises(ToolFailed, match="it has: 0 Introduction"):
        brought(tool, title="x", section="9")
    with pytest.raises(ToolFailed, match="title or its url"):
        brought(tool)
    with pytest.raises(ToolFailed, match="Only articles"):
        brought(tool, url="https://de.wikipedia.org/wiki/Schach")
    with pytest.raises(ToolFailed, match="did not exist"):
        brought(FetchWikipedia(wikipedia=Articles(revision_=PageUnavailable("did not exist"))), title="x")


def test_a_named_article_is_read_by_revision_but_not_opened_as_a_page() -> None:
    asked = question(source="wikipedia", url="https://en.wikipedia.org/wiki/FIDE_rankings")
    page = Page(url=asked.url, hops=(asked.url,), title="", text="Carlsen 9999", published=at("2025-10-01"))
    tools = (FetchWikipedia(wikipedia=Articles(revision_=ARTICLE)), LookupUrl(pages=Pages(page=page)))
    toolbox, _ = fenced(*tools, asked=asked)
    assert "list of chess players" in use(toolbox, "fetch_wikipedia", url=asked.url).text
    assert "call fetch_wikipedia" in use(toolbox, "lookup_url", url=asked.url).text
