"""Faults of the public belief agent, each as a test: what leaked there must not leak here."""

from tests.tools.doubles import Engine, Numbers, Pages, Prices, at, drops_all, fenced, question, use

from foretell.data import Page
from foretell.data.markets import PricePoint, PricesUnavailable
from foretell.data.search import SearchHit
from foretell.models.providers import ScriptedModel
from foretell.questions import LeakBlocked, SeriesRef
from foretell.tools import FetchPrices, FetchSeries, LookupUrl, WebSearch

HIT = SearchHit(url="https://n.example/a", title="T", snippet="It is settled.", published=at("2025-10-01"))
MARKET = question(id="polymarket/0x" + "b" * 64, source="polymarket")


def test_when_the_filter_drops_everything_the_raw_list_is_not_shown() -> None:
    toolbox, _ = fenced(WebSearch(engine=Engine(hits=(HIT,))), model=drops_all())
    seen = use(toolbox, "web_search", query="q")
    assert "settled" not in seen.text
    assert "nothing could be admitted" in seen.text


def test_when_the_filter_answers_in_prose_nothing_is_kept() -> None:
    toolbox, _ = fenced(WebSearch(engine=Engine(hits=(HIT,))), model=ScriptedModel(["1: KEEP - fine"]))
    assert "settled" not in use(toolbox, "web_search", query="q").text


def test_undated_page_is_refused_and_recorded() -> None:
    undated = SearchHit(url="https://n.example/a", title="T", snippet="x", published=None, dating="none")
    toolbox, events = fenced(WebSearch(engine=Engine(hits=(undated,))))
    assert not use(toolbox, "web_search", query="q").source_ids
    assert [event.layer for event in events if isinstance(event, LeakBlocked)] == ["date"]


def test_page_dated_after_cutoff_is_dropped_even_if_engine_returned_it() -> None:
    late = SearchHit(url="https://n.example/a", title="T", snippet="x", published=at("2025-10-28"))
    toolbox, _ = fenced(WebSearch(engine=Engine(hits=(late,))))
    assert not use(toolbox, "web_search", query="q").source_ids


def test_engine_without_date_filter_refuses_backtest() -> None:
    toolbox, events = fenced(WebSearch(engine=Engine(hits=(HIT,), filters_dates=False)))
    assert use(toolbox, "web_search", query="q").failed
    assert "cannot filter by date" in next(e.reason for e in events if isinstance(e, LeakBlocked))


def test_todays_page_is_not_left_to_a_model_alone() -> None:
    """`lookup_url` there fetched the page of today and only asked a model about it."""
    page = Page(url="https://n.example/a", hops=(), title="T", text="It is settled.", published=None)
    toolbox, _ = fenced(LookupUrl(pages=Pages(page=page)))
    assert "settled" not in use(toolbox, "lookup_url", url="https://n.example/a").text


def test_a_market_shows_moments_and_prices_and_nothing_else() -> None:
    """There the tool printed `Status: closed` and today's volume."""
    points = [PricePoint(at=at("2025-10-25"), p=0.25), PricePoint(at=at("2025-10-26"), p=0.375)]
    toolbox, _ = fenced(FetchPrices(question=MARKET, sources={"polymarket": Prices(points=points)}), asked=MARKET)
    seen = use(toolbox, "fetch_prices")
    assert seen.text.splitlines()[3:] == ["moment, price", "2025-10-25T09:00Z, 0.250", "2025-10-26T09:00Z, 0.375"]


def test_why_a_market_has_no_prices_is_not_told() -> None:
    failing = Prices(points=PricesUnavailable("the market resolved on 2025-12-01"))
    toolbox, _ = fenced(FetchPrices(question=MARKET, sources={"polymarket": failing}), asked=MARKET)
    assert "2025-12-01" not in use(toolbox, "fetch_prices").text


def test_a_series_of_todays_figures_is_refused() -> None:
    """There the latest revision of every series was read."""
    asked = question(source="fred", series=SeriesRef(provider="fred", id="GDP"))
    tool = FetchSeries(question=asked, source=Numbers(rows={"2025-10-01": 1.5}, revised=True))
    toolbox, events = fenced(tool, asked=asked)
    assert "1.5" not in use(toolbox, "fetch_series").text
    assert [event.layer for event in events if isinstance(event, LeakBlocked)] == ["data"]
