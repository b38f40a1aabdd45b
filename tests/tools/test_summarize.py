"""Summaries of results: the prompt of the summariser, and the leakage filter on its output."""

import asyncio
from typing import Any

import pytest
from tests.tools.doubles import CUTOFF, Engine, Numbers, at, keeps_all, question, use
from tests.tools.planted.stand_in import stand_in

from foretell.data.search.engine import SearchHit
from foretell.models.model import ModelError
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.question import SeriesRef, Target
from foretell.tools.content_filter import ModelContentFilter
from foretell.tools.leakage_filter import FilteredTools, SourceStore
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.series import FetchSeries
from foretell.tools.tool import ToolFailed
from foretell.tools.web import SummarizeResults, WebSearch

YIELD = question(source="fred", targets=(Target(id="2025-11-02"),), series=SeriesRef(provider="fred", id="DGS10"))
ROWS = {"2025-10-20": 4.0, "2025-10-24": 4.25}


def reading(model: Any, filter_model: Any = None, seconds: float = 300.0) -> FilteredTools:
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
    gazette_question = question(criteria="By the gazette.")
    summarizer = SummarizeResults(
        sources=sources, model=model, name="m:sum", question=gazette_question, seconds=seconds
    )
    rules = LeakageRules(as_of=CUTOFF, question=gazette_question)
    content_filter = ModelContentFilter(model=filter_model or keeps_all(), name="m:filter")
    return FilteredTools.around(
        (WebSearch(engine=Engine(hits=hits)), summarizer), rules, content_filter, sources=sources
    )


def test_summary_prompt_has_the_chosen_full_texts_and_the_criteria() -> None:
    model = ScriptedModel(["Talks go on [search_1_result_2]."])
    toolbox = reading(model)
    use(toolbox, "web_search", query="q")
    observation = use(toolbox, "summarize_results", ids=["search_1_result_2"], question="Where do talks stand?")
    assert "Talks go on" in observation.text
    assert observation.source_ids == ("summary_1",)
    assert toolbox.sources["summary_1"].published == at("2025-10-02")
    task = model.requests[0].messages[-1].text
    assert "full text 2" in task
    assert "full text 1" not in task
    assert "By the gazette." in task
    assert "Where do talks stand?" in task


def test_summary_with_later_events_is_dropped() -> None:
    model = ScriptedModel(["The bill was rejected on 3 December 2025."])
    toolbox = reading(model, stand_in())
    use(toolbox, "web_search", query="q")
    assert "rejected" not in use(toolbox, "summarize_results", ids=["search_1_result_1"], question="?").text


def test_unknown_ids_and_summariser_failures_are_reported() -> None:
    toolbox = reading(ScriptedModel([ModelError("down"), ""]))
    assert "none yet" in use(toolbox, "summarize_results", ids=["search_9_result_9"], question="?").text
    use(toolbox, "web_search", query="q")
    assert "search_1_result_1, search_1_result_2" in use(toolbox, "summarize_results", ids=["x"], question="?").text
    for words in ("could not read", "nothing to report"):
        assert words in use(toolbox, "summarize_results", ids=["[search_1_result_1]"], question="?").text
    assert "at least one" in use(toolbox, "summarize_results", ids=[], question="?").text


def test_summariser_timeout_names_the_setting_for_more_time() -> None:
    class Silent:
        async def complete(self, request: Any) -> Any:
            await asyncio.sleep(60)

    toolbox = reading(Silent(), seconds=0.05)
    use(toolbox, "web_search", query="q")
    observation = use(toolbox, "summarize_results", ids=["search_1_result_2"], question="?")
    assert (observation.failed, "0.05 s" in observation.text, "sampling.reply_seconds" in observation.text) == (
        True,
        True,
        True,
    )


def test_source_store_without_a_leakage_filter_returns_nothing() -> None:
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
    content_filter = ModelContentFilter(model=keeps_all(), name="m:f")
    toolbox = FilteredTools.around(tools, LeakageRules(as_of=CUTOFF, question=YIELD), content_filter, sources=sources)
    assert use(toolbox, "fetch_series").source_ids == ("series_1",)
    assert "quarter point" in use(toolbox, "summarize_results", ids=["series_1"], question="trend?").text
