"""The tools: their arguments, materials and failures."""

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
    filtered,
    keeps_all,
    question,
    series,
    use,
)

from foretell.data.http import SourceError
from foretell.data.markets.market import PricePoint, PricesUnavailable
from foretell.data.pages import Page, PageUnavailable
from foretell.data.search.engine import CannotSearch, SearchHit
from foretell.data.series.series import Series, SeriesInMemory, SeriesUnavailable
from foretell.data.wikipedia import ArticleRevision
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, SeriesRef, Target
from foretell.questions.trace import LeakBlocked, TraceEvent
from foretell.tools.leakage_filter import SourceStore
from foretell.tools.series import FetchPrices, FetchSeries, shown_places
from foretell.tools.tool import Tool, ToolFailed, ToolMaterial
from foretell.tools.web import FetchWikipedia, LookupUrl, SummarizeResults, WebSearch

YIELD = question(
    id="fred/DGS10",
    source="fred",
    kind="dataset",
    targets=(Target(id="2025-11-02", resolves_at="2025-11-02"),),
    series=SeriesRef(provider="fred", id="DGS10"),
)
ROWS = {"2025-10-20": 4.0, "2025-10-24": 4.25, "2025-10-30": 9.99}


def material_of(tool: Tool, **arguments: Any) -> ToolMaterial:
    return asyncio.run(tool.use(arguments, CUTOFF))


def test_tool_schemas_are_objects_with_named_arguments() -> None:
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
def test_failed_search_reports_the_reason(error: Exception) -> None:
    class Failing(Engine):
        async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
            raise error

    with pytest.raises(ToolFailed, match=r"too long|is down"):
        material_of(WebSearch(engine=Failing(hits=())), query="q")


def test_missing_and_wrong_arguments_are_reported() -> None:
    tool = WebSearch(engine=Engine(hits=()))
    for arguments in ({}, {"query": ""}, {"query": ["a"]}):
        with pytest.raises(ToolFailed, match="query"):
            material_of(tool, **arguments)


def test_stored_version_shows_only_its_own_text() -> None:
    hit = SearchHit(
        url="https://n.example/a",
        title="T",
        snippet="Words of today's index.",
        published=at("2025-10-01"),
        text="Words of the stored version.",
        text_as_of=at("2025-10-02"),
    )
    item = material_of(WebSearch(engine=Engine(hits=(hit,))), query="q").items[0]
    assert item.snippet == "Words of the stored version."
    assert item.captured == at("2025-10-02")


def test_page_includes_all_redirect_addresses() -> None:
    page = Page(
        url="https://b.example/", hops=("https://a.example/", "https://b.example/"), title="T", text="x", published=None
    )
    item = material_of(LookupUrl(pages=Pages(page=page)), url="https://start.example/").items[0]
    assert item.hops == ("https://start.example/", "https://a.example/", "https://b.example/")
    assert item.dating == "none"


def test_only_web_addresses_are_opened() -> None:
    with pytest.raises(ToolFailed, match="https"):
        material_of(LookupUrl(pages=Pages(page=PageUnavailable(""))), url="file:///etc/passwd")


def test_a_series_shows_reference_estimate_and_rows_up_to_the_cutoff() -> None:
    events: list[TraceEvent] = []

    async def estimate(about: Question, known: Series, as_of: AsOf) -> dict[str, float]:
        assert float(known.values[-1]) == 4.25
        return {"2025-11-02": 0.4321}

    tool = FetchSeries(question=YIELD, source=Numbers(rows=ROWS), estimate=estimate, emit=events.append)
    text = material_of(tool).items[0].text
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


def test_reference_is_the_last_value_on_or_before_the_due_day() -> None:
    rows = {"2025-10-20": 1.0, "2025-10-26": 2.0, "2025-10-28": 3.0}
    tool = FetchSeries(question=YIELD, source=Numbers(rows=rows))
    later = AsOf.day("2025-10-30", "live")
    text = asyncio.run(tool.use({}, later)).items[0].text
    assert "last value on or before 2025-10-26: 2" in text
    assert "2025-10-28, 3" in text


def test_source_without_provenance_counts_as_revised() -> None:
    plain = SeriesInMemory(series={"DGS10": series(ROWS)})
    with pytest.raises(ToolFailed, match="corrected later"):
        material_of(FetchSeries(question=YIELD, source=plain))
    assert material_of(FetchSeries(question=YIELD, source=plain, allow_revised=True)).items[0].clamped


def test_missing_series_and_missing_values_fail() -> None:
    class Absent(Numbers):
        async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf):
            raise SeriesUnavailable("no such series")

    with pytest.raises(ToolFailed, match="not decided by a series"):
        material_of(FetchSeries(question=question(), source=Numbers(rows=ROWS)))
    with pytest.raises(ToolFailed, match="known at the cutoff"):
        material_of(FetchSeries(question=YIELD, source=Numbers(rows={"2026-01-01": 1.0})))
    with pytest.raises(ToolFailed, match="no such series"):
        material_of(FetchSeries(question=YIELD, source=Absent(rows={})))


def test_long_histories_are_thinned_by_age() -> None:
    for count in (0, 1, 59, 60, 61, 365, 5_000, 100_000):
        places = shown_places(count)
        assert places == sorted(set(places))
        assert len(places) <= 300
        assert places[-60:] == list(range(max(0, count - 60), count))
        assert all(0 <= place < count for place in places)


def test_prices_of_several_targets_are_several_results() -> None:
    market_question = question(
        id="metaculus/7", source="metaculus", url="", targets=(Target(id="1", label="A"), Target(id="2", label="B"))
    )
    points = [PricePoint(at=at("2025-10-25"), p=0.25)]
    tool = FetchPrices(question=market_question, sources={"metaculus": Prices(points=points, platform="metaculus")})
    assert [item.title for item in material_of(tool).items] == ["A", "B"]


def test_missing_market_and_missing_prices_fail() -> None:
    market = question(id="metaculus/7", source="metaculus")
    with pytest.raises(ToolFailed, match="no market"):
        material_of(FetchPrices(question=question(), sources={}))
    unknown = Prices(points=PricesUnavailable("none"), platform="metaculus")
    with pytest.raises(ToolFailed, match="could not be read"):
        material_of(FetchPrices(question=market, sources={"metaculus": unknown}))
    late = Prices(points=[PricePoint(at=at("2026-01-01"), p=0.9)], platform="metaculus")
    with pytest.raises(ToolFailed, match="known at the cutoff"):
        material_of(FetchPrices(question=market, sources={"metaculus": late}))


ARTICLE = ArticleRevision(
    title="FIDE rankings",
    revid=1,
    at=at("2025-10-20"),
    wikitext="The '''list''' of [[chess]] players.\n== Top ==\nCarlsen 2839\n=== Women ===\nHou 2609\n"
    "== History ==\nOld.",
)


def test_article_without_section_shows_introduction_and_contents() -> None:
    item = material_of(FetchWikipedia(wikipedia=Articles(revision_=ARTICLE)), title="FIDE_rankings").items[0]
    assert item.text.startswith("The list of chess players.")
    assert item.text.endswith("Sections:\n0 Introduction\n1 Top\n1.1 Women\n2 History")
    assert item.url == "https://en.wikipedia.org/wiki/FIDE_rankings"
    assert item.captured == at("2025-10-20")


@pytest.mark.parametrize("section", ["1", "top", "1 Top"])
def test_a_section_is_read_by_number_or_heading(section: str) -> None:
    tool = FetchWikipedia(wikipedia=Articles(revision_=ARTICLE))
    text = material_of(tool, url="https://en.wikipedia.org/wiki/FIDE_rankings", section=section).items[0].text
    assert "Carlsen 2839" in text
    assert "Hou 2609" in text
    assert "Old." not in text


def test_unreadable_articles_fail() -> None:
    tool = FetchWikipedia(wikipedia=Articles(revision_=ARTICLE))
    with pytest.raises(ToolFailed, match="it has: 0 Introduction"):
        material_of(tool, title="x", section="9")
    with pytest.raises(ToolFailed, match="title or its url"):
        material_of(tool)
    with pytest.raises(ToolFailed, match="Only articles"):
        material_of(tool, url="https://de.wikipedia.org/wiki/Schach")
    with pytest.raises(ToolFailed, match="did not exist"):
        material_of(FetchWikipedia(wikipedia=Articles(revision_=PageUnavailable("did not exist"))), title="x")


def test_named_article_is_read_by_revision_only() -> None:
    article_question = question(source="wikipedia", url="https://en.wikipedia.org/wiki/FIDE_rankings")
    page = Page(
        url=article_question.url,
        hops=(article_question.url,),
        title="",
        text="Carlsen 9999",
        published=at("2025-10-01"),
    )
    tools = (FetchWikipedia(wikipedia=Articles(revision_=ARTICLE)), LookupUrl(pages=Pages(page=page)))
    toolbox, _ = filtered(*tools, about=article_question)
    assert "list of chess players" in use(toolbox, "fetch_wikipedia", url=article_question.url).text
    assert "call fetch_wikipedia" in use(toolbox, "lookup_url", url=article_question.url).text
