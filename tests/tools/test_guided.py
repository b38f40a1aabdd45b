"""Results as `reason` sees them: longer excerpts, repeats only named, pages in full, hints, and two more tools."""

import asyncio
from typing import Any

import pytest
from tests.tools.doubles import CUTOFF, Engine, Judge, Numbers, Pages, at, filtered, keeps_all, question, use

from foretell.data.corpus import Corpus, CorpusDocument, CorpusSearch
from foretell.data.pages import Page, PageUnavailable
from foretell.data.search.engine import FallbackSearch, SearchHit
from foretell.data.search.excerpts import cut_at_sentence, excerpt
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef, Target
from foretell.tools.calculate import Calculate, WrongExpression, computed
from foretell.tools.content_filter import ModelContentFilter
from foretell.tools.leakage_filter import FilteredTools, SourceStore
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.reading import GUIDED
from foretell.tools.series_stats import SeriesStats
from foretell.tools.web import LookupUrl, SummarizeResults, WebSearch

LONG = " ".join(f"Sentence number {n} reports on the bill and its readings." for n in range(200))
WHERE = "Sentence number 120 reports on the bill"


def hit(n: int, snippet: str = "Excerpt.", text: str | None = None) -> SearchHit:
    return SearchHit(
        url=f"https://n.example/{n}?utm_source=x", title=f"T{n}", snippet=snippet, published=at("2025-10-01"), text=text
    )


def searching(*hits: SearchHit, page: Page | Exception | None = None, model: Any = None) -> FilteredTools:
    tools = (WebSearch(engine=Engine(hits=hits)), LookupUrl(pages=Pages(page=page or PageUnavailable("gone"))))
    return filtered(*tools, model=model)[0].read_in(GUIDED)


# Excerpts.


def test_an_excerpt_holds_whole_sentences_around_the_passage():
    part = excerpt(LONG, WHERE, 1_500)
    assert WHERE in part
    assert part.startswith("Sentence number 11")
    assert part.endswith("readings.")
    assert 1_200 < len(part) <= 1_500


def test_an_excerpt_with_gaps_is_found_by_its_longest_piece():
    assert "number 120" in excerpt(LONG, "its readings … Sentence number 120 reports on the bill …", 400)


@pytest.mark.parametrize(
    ("text", "passage", "part"),
    [
        ("", "Only this is known. And this", "Only this is known."),
        ("Short.", "Short", "Short."),
        ("word " * 100, "", "word word word word…"),
    ],
)
def test_excerpts_of_short_texts_and_of_texts_without_sentences(text: str, passage: str, part: str):
    assert excerpt(text, passage, 22) == part


def test_a_cut_never_ends_within_a_sentence_if_one_fits():
    assert cut_at_sentence("One is here. Two is “there.” Three goes on and on.", 30) == "One is here. Two is “there.”"


def test_search_results_show_long_excerpts_and_how_to_read_on():
    seen = use(searching(hit(1, WHERE, LONG)), "web_search", query="bill").text
    assert 1_300 < len(seen) < 1_900
    assert f"({len(LONG) - len(excerpt(LONG, WHERE, 1_500))} more characters: lookup_url reads them)" in seen


def test_presets_keep_the_engine_s_own_excerpt():
    toolbox, _ = filtered(WebSearch(engine=Engine(hits=(hit(1, WHERE, LONG),))), Calculate())
    assert "number 121" not in use(toolbox, "web_search", query="bill").text
    assert [spec.name for spec in toolbox.specs()] == ["web_search"]
    assert use(toolbox, "calculate", expressions=["1"]).failed


# Results that were shown before.


def test_results_shown_before_are_only_named():
    toolbox = searching(hit(1), hit(2))
    assert use(toolbox, "web_search", query="a").source_ids == ("search_1_result_1", "search_1_result_2")
    again = use(toolbox, "web_search", query="b")
    assert again.source_ids == ()
    assert "Nothing new. Shown before: search_1_result_1, search_1_result_2." in again.text
    assert "Excerpt." not in again.text
    assert toolbox.sources.ids == ("search_1_result_1", "search_1_result_2")


def test_results_that_are_not_cited_are_only_named_until_they_are_opened_again():
    toolbox = searching(hit(1, WHERE, LONG), hit(2), hit(3))
    seen = use(toolbox, "web_search", query="a")
    text = toolbox.shortened(seen, {"search_1_result_2"})
    assert [text.count(part) for part in ("T1", WHERE, "T2", "Excerpt.", "T3")] == [1, 0, 1, 1, 1]
    assert text.count("(not cited: the text is left out; lookup_url opens it)") == 2
    assert LONG in use(toolbox, "lookup_url", url="search_1_result_1").text
    assert "was shown already" in use(toolbox, "lookup_url", url="search_1_result_1").text
    assert "Excerpt." in use(toolbox, "lookup_url", url="search_1_result_3").text


def test_calls_made_at_once_get_their_ids_in_order():
    class Slow(Engine):
        async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
            await asyncio.sleep(0.02 if query == "slow" else 0)
            return list(self.hits)

    toolbox = filtered(WebSearch(engine=Slow(hits=(hit(1),))))[0].read_in(GUIDED)

    async def both() -> list[tuple[str, ...]]:
        fetched = await asyncio.gather(*(toolbox.fetch("web_search", {"query": query}) for query in ("slow", "quick")))
        return [toolbox.present(result).source_ids for result in fetched]

    assert asyncio.run(both()) == [("search_1_result_1",), ()]


# Opening pages and documents.


@pytest.mark.parametrize("name", ["search_1_result_1", "[search_1_result_1]", "http://www.n.example/1"])
def test_a_found_page_opens_in_full_under_its_id(name: str):
    toolbox = searching(hit(1, WHERE, LONG))
    use(toolbox, "web_search", query="bill")
    opened = use(toolbox, "lookup_url", url=name)
    assert opened.source_ids == ("search_1_result_1",)
    assert LONG in opened.text
    assert "was shown already" in use(toolbox, "lookup_url", url=name).text


def test_the_full_text_is_judged_before_it_is_shown():
    model = Judge(lambda title, text, cutoff: "number 199" not in text)
    toolbox = searching(hit(1, WHERE, LONG), model=model)
    use(toolbox, "web_search", query="bill")
    assert "number 199" not in use(toolbox, "lookup_url", url="search_1_result_1").text


def test_a_result_of_which_only_an_excerpt_is_known_is_fetched():
    page = Page(url="https://n.example/1", hops=(), title="T", text=LONG, published=at("2025-10-01"))
    toolbox = searching(hit(1), page=page)
    use(toolbox, "web_search", query="bill")
    opened = use(toolbox, "lookup_url", url="search_1_result_1")
    assert opened.source_ids == ("page_1",)
    assert LONG in opened.text


@pytest.mark.parametrize("url", ["file:///own/notes.md", "https://intranet.example/notes"])
def test_a_document_of_the_own_corpus_can_be_opened(url: str):
    corpus = Corpus(":memory:")
    dated = [("Old notes.", "2025-10-01"), ("New notes.", "2025-10-20"), ("Later notes.", "2025-11-20")]
    corpus.add(CorpusDocument(url=url, title="Notes", text=text, published=at(day)) for text, day in dated)
    engine = FallbackSearch([Engine(hits=()), CorpusSearch(corpus)])
    tool = LookupUrl(pages=Pages(page=PageUnavailable("not on the web")), documents=engine)
    assert "New notes." in use(filtered(tool)[0], "lookup_url", url=url).text
    live = filtered(tool, as_of=AsOf.day("2026-01-01", "live"))[0]
    assert "Later notes." in use(live, "lookup_url", url=url).text
    assert use(live, "lookup_url", url=f"{url}/else").failed


# Wrong ids and calls that fail.


def test_an_unknown_id_costs_only_itself():
    sources = SourceStore()
    summary = SummarizeResults(
        sources=sources, model=ScriptedModel(["It passed [search_1_result_1]."]), name="m:s", question=question()
    )
    rules = LeakageRules(as_of=CUTOFF, question=question())
    content_filter = ModelContentFilter(model=keeps_all(), name="m:f")
    tools = (WebSearch(engine=Engine(hits=(hit(1),))), summary)
    toolbox = FilteredTools.around(tools, rules, content_filter, sources=sources).read_in(GUIDED)
    use(toolbox, "web_search", query="bill")
    seen = use(toolbox, "summarize_results", ids=["search_9_result_9", "search_1_result_1"], question="?")
    assert "It passed" in seen.text
    assert "there is no result search_9_result_9" in seen.text
    assert use(toolbox, "summarize_results", ids=["search_9_result_9"], question="?").failed


@pytest.mark.parametrize(
    ("tool", "arguments", "other"),
    [
        ("lookup_url", {"url": "the bill"}, "call web_search"),
        ("web_search", {"query": "https://n.example/bill"}, "call lookup_url"),
        ("calculate", {"expressions": ["quantile of the change"]}, "call series_stats"),
    ],
)
def test_a_failure_names_the_tool_that_can_do_it(tool: str, arguments: dict[str, Any], other: str):
    stats = SeriesStats(question=question(), source=Numbers(rows={}))
    pages = LookupUrl(pages=Pages(page=PageUnavailable("gone")))
    toolbox = filtered(WebSearch(engine=Engine(hits=())), pages, Calculate(), stats)[0].read_in(GUIDED)
    assert other in use(toolbox, tool, **arguments).text


# Computing.


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 - 4 / 8", 6.5),
        ("-2^2", -4),
        ("2^-1 + 2**3**0", 2.5),
        ("(1 + 2) * -3", -9),
        ("12 % * 50", 6),
        ("max(1, 2, 3) - min(4, 5)", -1),
        ("ln(e^2) + sqrt(16)", 6),
        ("1e3 + .5", 1000.5),
        ("choose(5, 2)", 10),
        ("normal(1.96)", 0.9750021),
        ("1 - normal(110, 100, 10)", 0.1586553),
        ("normal_quantile(0.975)", 1.9599640),
        ("poisson(2, 3)", 0.4231901),
        ("binomial(3, 10, 0.5)", 0.171875),
        ("binomial(10, 10, 0.5) + poisson(-1, 2)", 1),
    ],
)
def test_expressions_are_computed(expression: str, value: float):
    assert computed(expression) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "",
            "1 +",
            "(1",
            "1 2",
            "1 / 0",
            "10^10^10",
            "sqrt(-1)",
            "(-1)^0.5",
            "normal(1, 2, 0)",
            "binomial(1, 2.5, 0.5)",
        ),
        *("__import__('os')", "x + 1", "open(1)", "1 if 1 else 2", "1,000", "poisson(1)", "(" * 60 + "1" + ")" * 60),
        *("9" * 600, "ln(0)", "1;2", "-" * 400 + "x"),
    ],
)
def test_what_is_no_expression_is_refused(expression: str):
    with pytest.raises(WrongExpression):
        computed(expression)


def test_one_wrong_expression_does_not_spoil_the_others():
    toolbox = filtered(Calculate())[0].read_in(GUIDED)
    seen = use(toolbox, "calculate", expressions=["2 * 3", "two"])
    assert (seen.failed, seen.source_ids) == (False, ())
    assert "2 * 3 = 6" in seen.text
    assert "'two' is not a number" in seen.text
    assert use(toolbox, "calculate", expressions=["two"]).failed


# Statistics of a series.

RATE = question(
    source="fred", targets=(Target(id="2025-11-02"),), series=SeriesRef(provider="fred", id="X", threshold=103.0)
)


def test_series_stats_count_changes_and_passed_thresholds():
    rows = {f"2025-09-{day:02}": 100.0 + day % 4 for day in range(1, 31)} | {"2025-12-01": 500.0}
    toolbox = filtered(SeriesStats(question=RATE, source=Numbers(rows=rows)), about=RATE)[0].read_in(GUIDED)
    seen = use(toolbox, "series_stats", days=1)
    assert seen.source_ids == ("stats_1",)
    assert "2025-09-30, 102" in seen.text
    assert "500" not in seen.text
    assert "Past changes over 1 days, from 29 starting days: 5% below -3" in seen.text
    assert "0.0% of all observations are above 103." in seen.text
    assert "A change of +1 or more, as the threshold needs, was there at the end of 75.9%" in seen.text
    assert (
        "It passed 101.5 15 times, the last time on 2025-09-30."
        in use(toolbox, "series_stats", days="1", threshold=101.5).text
    )
    assert "too few observations" in use(toolbox, "series_stats", days=400).text


def test_wrong_arguments_of_series_stats_are_named():
    toolbox = filtered(SeriesStats(question=RATE, source=Numbers(rows={"2025-09-01": 1.0})), about=RATE)[0]
    toolbox.read_in(GUIDED)
    for days in (0, "soon", 10**6):
        assert "'days'" in use(toolbox, "series_stats", days=days).text
