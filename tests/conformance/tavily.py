"""Tavily: recorded general searches."""

from conformance.reading import KEY, body_of, config_on, sweep
from conformance.recordings import Check, answer
from foretell.data.search.web import TavilySearch, tavily_hits
from foretell.outgoing.client import HttpRequest
from foretell.questions.as_of import AsOf


async def _basic() -> None:
    seen: list[HttpRequest] = []
    engine = TavilySearch(config_on({"/search": answer("tavily", "basic_search")}, seen, key=KEY))
    hits = await engine.search("What is Pydantic AI?", AsOf.day("2025-10-01"))
    assert [hit.title for hit in hits][:3] == [
        "Pydantic AI: Agent Framework",
        "Pydantic AI - Pydantic AI",
        "Build Production-Ready AI Agents in Python with Pydantic AI",
    ]
    assert hits[1].url == "https://ai.pydantic.dev/"
    assert len(hits) == 5
    assert {(hit.published, hit.dating, hit.text) for hit in hits} == {(None, "none", None)}
    sent = seen[0].json()
    assert (sent["topic"], sent["end_date"], seen[0].headers["authorization"]) == (
        "news",
        "2025-10-01",
        f"Bearer {KEY}",
    )


def _crawl_dates() -> None:
    body = body_of("tavily", "search_with_include_domains")
    assert tavily_hits(body)[0].url == "https://arxiv.org/abs/2507.13043"
    body.value["results"][0]["published_date"] = "Fri, 18 Jul 2025 04:00:00 GMT"
    assert tavily_hits(body)[0].dating == "crawled"


def _any(name: str) -> None:
    body = body_of("tavily", name)
    # Answers with the contents of pages also list the pages that failed.
    if body.get("failed_results") is None and body.get("base_url") is None:
        hits = tavily_hits(body)
        assert hits.notes == ()
        assert {hit.dating for hit in hits} <= {"crawled", "relative", "none"}


CHECKS = [
    Check(
        service="tavily",
        what="5 results without dates; a backtest asks for dated news",
        recordings=("basic_search",),
        function=_basic,
    ),
    Check(
        service="tavily",
        what="a date is that of its crawler",
        recordings=("search_with_include_domains",),
        function=_crawl_dates,
    ),
    Check(
        service="tavily",
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep("tavily", _any),
    ),
]
