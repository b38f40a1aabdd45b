"""One test for each leak of the public belief agent."""

from tests.tools.doubles import Engine, Numbers, Pages, Prices, at, drops_all, filtered, question, use

from foretell.data.markets.market import PricePoint, PricesUnavailable
from foretell.data.pages import Page
from foretell.data.search.engine import SearchHit
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.question import SeriesRef
from foretell.questions.trace import LeakBlocked
from foretell.tools.series import FetchPrices, FetchSeries
from foretell.tools.web import LookupUrl, WebSearch

HIT = SearchHit(url="https://n.example/a", title="T", snippet="It is settled.", published=at("2025-10-01"))
MARKET = question(id="polymarket/0x" + "b" * 64, source="polymarket")


def test_raw_results_are_not_shown_if_the_filter_drops_everything() -> None:
    toolbox, _ = filtered(WebSearch(engine=Engine(hits=(HIT,))), model=drops_all())
    observation = use(toolbox, "web_search", query="q")
    assert "settled" not in observation.text
    assert "nothing could be admitted" in observation.text


def test_filter_answer_in_prose_keeps_nothing() -> None:
    toolbox, _ = filtered(WebSearch(engine=Engine(hits=(HIT,))), model=ScriptedModel(["1: KEEP - fine"]))
    assert "settled" not in use(toolbox, "web_search", query="q").text


def test_undated_page_is_refused_and_recorded() -> None:
    undated = SearchHit(url="https://n.example/a", title="T", snippet="x", published=None, dating="none")
    toolbox, events = filtered(WebSearch(engine=Engine(hits=(undated,))))
    assert not use(toolbox, "web_search", query="q").source_ids
    assert [event.layer for event in events if isinstance(event, LeakBlocked)] == ["date"]


def test_page_dated_after_cutoff_is_dropped_even_if_engine_returned_it() -> None:
    late = SearchHit(url="https://n.example/a", title="T", snippet="x", published=at("2025-10-28"))
    toolbox, _ = filtered(WebSearch(engine=Engine(hits=(late,))))
    assert not use(toolbox, "web_search", query="q").source_ids


def test_engine_without_date_filter_refuses_backtest() -> None:
    toolbox, events = filtered(WebSearch(engine=Engine(hits=(HIT,), filters_dates=False)))
    assert use(toolbox, "web_search", query="q").failed
    assert "cannot filter by date" in next(e.reason for e in events if isinstance(e, LeakBlocked))


def test_current_page_is_not_judged_by_a_model_alone() -> None:
    """`lookup_url` there fetched the page of today and only asked a model about it."""
    page = Page(url="https://n.example/a", hops=(), title="T", text="It is settled.", published=None)
    toolbox, _ = filtered(LookupUrl(pages=Pages(page=page)))
    assert "settled" not in use(toolbox, "lookup_url", url="https://n.example/a").text


def test_market_prices_show_only_times_and_prices() -> None:
    """There the tool printed `Status: closed` and today's volume."""
    points = [PricePoint(at=at("2025-10-25"), p=0.25), PricePoint(at=at("2025-10-26"), p=0.375)]
    toolbox, _ = filtered(FetchPrices(question=MARKET, sources={"polymarket": Prices(points=points)}), about=MARKET)
    observation = use(toolbox, "fetch_prices")
    assert observation.text.splitlines()[3:] == [
        "moment, price",
        "2025-10-25T09:00Z, 0.250",
        "2025-10-26T09:00Z, 0.375",
    ]


def test_cause_of_missing_prices_is_withheld() -> None:
    failing = Prices(points=PricesUnavailable("the market resolved on 2025-12-01"))
    toolbox, _ = filtered(FetchPrices(question=MARKET, sources={"polymarket": failing}), about=MARKET)
    assert "2025-12-01" not in use(toolbox, "fetch_prices").text


def test_series_with_revised_values_is_refused() -> None:
    """There the latest revision of every series was read."""
    series_question = question(source="fred", series=SeriesRef(provider="fred", id="GDP"))
    tool = FetchSeries(question=series_question, source=Numbers(rows={"2025-10-01": 1.5}, revised=True))
    toolbox, events = filtered(tool, about=series_question)
    assert "1.5" not in use(toolbox, "fetch_series").text
    assert [event.layer for event in events if isinstance(event, LeakBlocked)] == ["data"]
