"""Reading further: what the summariser is given, and that its words pass the fence."""

import asyncio
from typing import Any

import pytest
from tests.tools.doubles import CUTOFF, Engine, Numbers, at, keeps_all, question, use
from tests.tools.planted.stand_in import stand_in

from foretell.data.search import SearchHit
from foretell.models import ModelError
from foretell.models.providers import ScriptedModel
from foretell.questions import SeriesRef, Target
from foretell.tools import (
    FencedTools,
    FenceRules,
    FetchSeries,
    LeakFilter,
    SourceStore,
    SummarizeResults,
    ToolFailed,
    WebSearch,
)

YIELD = question(source="fred", targets=(Target(id="2025-11-02"),), series=SeriesRef(provider="fred", id="DGS10"))
ROWS = {"2025-10-20": 4.0, "2025-10-24": 4.25}


def reading(model: Any, filter_model: Any = None, seconds: float = 300.0) -> FencedTools:
    """A search and a summariser with one store of sources."""
    sources = SourceStore()
    hits = tuple(
        SearchHit(
            url=f"https://n.example/{n}",
            title=f"T{n}",
            snippet=f"Excerpt {n}",
            published=at(f"2025-10-0{n}"),
            text=f"Excerpt {n} and the full text {n}.",
        )
        for n in (1, 2)
    )
    asked = question(criteria="By the gazette.")
    summarizer = SummarizeResults(sources=sources, model=model, name="m:sum", question=asked, seconds=seconds)
    fence = FenceRules(as_of=CUTOFF, question=asked)
    leak_filter = LeakFilter(model=filter_model or keeps_all(), name="m:filter")
    return FencedTools.around((WebSearch(engine=Engine(hits=hits)), summarizer), fence, leak_filter, sources=sources)


def test_a_summary_is_made_of_admitted_full_texts_and_told_what_decides() -> None:
    model = ScriptedModel(["Talks go on [search_1_result_2]."])
    toolbox = reading(model)
    use(toolbox, "web_search", query="q")
    seen = use(toolbox, "summarize_results", ids=["search_1_result_2"], question="Where do talks stand?")
    assert "Talks go on" in seen.text
    assert seen.source_ids == ("summary_1",)
    assert toolbox.sources["summary_1"].published == at("2025-10-02")
    task = model.requests[0].messages[-1].text
    assert "full text 2" in task
    assert "full text 1" not in task
    assert "By the gazette." in task
    assert "Where do talks stand?" in task


def test_a_summariser_that_knows_the_future_is_stopped_by_the_filter() -> None:
    model = ScriptedModel(["The bill was rejected on 3 December 2025."])
    toolbox = reading(model, stand_in())
    use(toolbox, "web_search", query="q")
    assert "rejected" not in use(toolbox, "summarize_results", ids=["search_1_result_1"], question="?").text


def test_unknown_ids_and_a_failing_summariser_are_told() -> None:
    toolbox = reading(ScriptedModel([ModelError("down"), ""]))
    assert "none yet" in use(toolbox, "summarize_results", ids=["search_9_result_9"], question="?").text
    use(toolbox, "web_search", query="q")
    assert "search_1_result_1, search_1_result_2" in use(toolbox, "summarize_results", ids=["x"], question="?").text
    for words in ("could not read", "nothing to report"):
        assert words in use(toolbox, "summarize_results", ids=["[search_1_result_1]"], question="?").text
    assert "at least one" in use(toolbox, "summarize_results", ids=[], question="?").text


def test_a_summariser_that_says_nothing_names_the_setting_that_allows_more_time() -> None:
    class Silent:
        async def complete(self, request: Any) -> Any:
            await asyncio.sleep(60)

    toolbox = reading(Silent(), seconds=0.05)
    use(toolbox, "web_search", query="q")
    seen = use(toolbox, "summarize_results", ids=["search_1_result_2"], question="?")
    assert (seen.failed, "0.05 s" in seen.text, "sampling.reply_seconds" in seen.text) == (True, True, True)


def test_a_shelf_without_a_fence_gives_nothing() -> None:
    sources = SourceStore()
    tool = SummarizeResults(sources=sources, model=keeps_all(), name="m:x", question=question())
    with pytest.raises(ToolFailed):
        asyncio.run(tool.use({"ids": ["a"], "question": "?"}, CUTOFF))


def test_numbers_can_be_summarised_too() -> None:
    sources = SourceStore()
    model = ScriptedModel(["It rose by a quarter point [series_1]."])
    tools = (
        FetchSeries(question=YIELD, source=Numbers(rows=ROWS)),
        SummarizeResults(sources=sources, model=model, name="m:s", question=YIELD),
    )
    leak_filter = LeakFilter(model=keeps_all(), name="m:f")
    toolbox = FencedTools.around(tools, FenceRules(as_of=CUTOFF, question=YIELD), leak_filter, sources=sources)
    assert use(toolbox, "fetch_series").source_ids == ("series_1",)
    assert "quarter point" in use(toolbox, "summarize_results", ids=["series_1"], question="trend?").text
