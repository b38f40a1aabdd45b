import pytest

from foretell.tools.tool import ANY_SOURCE, COMPUTING, HINTS, PREFIXES, SUBMIT, TOOLS, offered_tools, tool_hint

ALL = (frozenset(PREFIXES) - {*COMPUTING}) | {SUBMIT}
SEARCH = ("web_search", "summarize_results", "lookup_url", "submit")


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ("fred", ("fetch_series",)),
        ("yfinance", ("fetch_series",)),
        ("acled", ("fetch_series",)),
        ("polymarket", ("fetch_prices",)),
        ("manifold", ("fetch_prices",)),
        ("wikipedia", ("fetch_wikipedia", "fetch_series")),
    ],
)
def test_sources_with_their_own_data_offer_it_besides_search(source: str, first: tuple[str, ...]) -> None:
    assert offered_tools(source, 1, ALL) == (*first, *SEARCH)
    assert offered_tools(source, 7, ALL) == (*first, *SEARCH)


@pytest.mark.parametrize("source", ["infer", "metaculus"])
def test_other_sources_offer_only_search(source: str) -> None:
    assert offered_tools(source, 1, ALL) == SEARCH


def test_dbnomics_reads_its_series_and_submits() -> None:
    assert [offered_tools("dbnomics", step, ALL) for step in (1, 2, 3)] == [("fetch_series",), ("submit",), ("submit",)]
    assert offered_tools("dbnomics", 1, ALL, fixed=False) == ("fetch_series", "lookup_url", "submit")
    assert offered_tools("dbnomics", 1, ALL - {"fetch_series"}) == ("lookup_url", "submit")


def test_unknown_source_offers_all_tools() -> None:
    assert offered_tools("my-questions", 1, ALL) == ANY_SOURCE
    assert set(ANY_SOURCE) == ALL


@pytest.mark.parametrize("source", [*TOOLS, "else"])
def test_computing_suits_every_source(source: str) -> None:
    assert offered_tools(source, 1, {*ALL, *COMPUTING}, fixed=False)[-3:] == (*COMPUTING, SUBMIT)


@pytest.mark.parametrize("source", [*TOOLS, "else"])
@pytest.mark.parametrize("missing", sorted(ALL))
def test_unavailable_tools_are_neither_offered_nor_named_in_hints(source: str, missing: str) -> None:
    """The public system told a model to begin with a tool it had switched off; the model gave up."""
    tools = offered_tools(source, 1, ALL - {missing})
    assert missing not in tools
    assert missing not in tool_hint(tools, source)
    assert all(tool in tools for tool in HINTS if tool in tool_hint(tools, source))


def test_wikipedia_hint_is_only_for_wikipedia_questions() -> None:
    assert "fetch_wikipedia" in tool_hint(offered_tools("wikipedia", 1, ALL), "wikipedia")
    assert "fetch_wikipedia" not in tool_hint(["fetch_wikipedia", "web_search"], "asked")


def test_steps_count_from_one() -> None:
    with pytest.raises(ValueError, match="from 1"):
        offered_tools("fred", 0, ALL)
