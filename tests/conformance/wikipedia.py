"""Wikipedia's API: recorded answers of March 2026, in the older of its two formats."""

import pytest

from conformance.reading import body_of, config_on, sweep
from conformance.recordings import Check, answer, names
from foretell.data.pages import PageUnavailable
from foretell.data.wikipedia import Wikipedia, check_refusal, found_articles, found_page
from foretell.outgoing.client import HttpRequest
from foretell.questions.as_of import AsOf, instant

LIVE = AsOf(at=instant("2026-03-30"), mode="live")


async def _search() -> None:
    seen: list[HttpRequest] = []
    config = config_on({"/w/api.php": answer("wikipedia", "WikiSearch_test_limit")}, seen)
    hits = await Wikipedia(config.http).search("Python programming", LIVE, limit=3)
    assert [hit.title for hit in hits] == [
        "Python (programming language)",
        "History of Python",
        "Outline of the Python programming language",
    ]
    assert hits[0].published == instant("2026-03-25T15:46:00Z")
    assert hits[0].url == "https://en.wikipedia.org/wiki/Python_(programming_language)"
    assert hits[0].snippet.startswith("Python is a high-level, general-purpose programming language. Its design")
    # One request is enough for live questions: every result has the time of its last change.
    assert len(seen) == 1
    assert seen[0].url.query["srlimit"] == "3"


def _all_searches() -> None:
    for name in names("wikipedia"):
        if name.startswith("WikiSearch"):
            articles, notes = found_articles(body_of("wikipedia", name))
            assert (articles[0][0], articles[0][2]) == (
                "Python (programming language)",
                instant("2026-03-25T15:46:00Z"),
            )
            assert (notes, len(articles)) == ((), 3 if name == "WikiSearch_test_limit" else 10)


async def _missing() -> None:
    config = config_on({"/w/api.php": answer("wikipedia", "PageExistence_test_exists_false")})
    with pytest.raises(PageUnavailable, match="does not exist"):
        await Wikipedia(config.http).revision("NonExistentPage WikiAPI Test 12345", LIVE)


def _pages() -> None:
    for name in ("PageRelationProps_test_categories", "WikiCategories_test_categories"):
        page = found_page(body_of("wikipedia", name))
        assert (page.need("title").text(), page.need("pageid").name()) == ("Python (programming language)", "23862")
        assert page.get("missing") is None


def _any(name: str) -> None:
    body = body_of("wikipedia", name)
    check_refusal(body)
    query = body.get("query")
    if query is None:
        return
    if query.get("search") is not None:
        assert found_articles(body)[1] == ()
    elif query.get("pages") is not None and query.value["pages"]:
        page = found_page(body)
        assert page.optional_text("title") or page.get("missing") is not None or page.get("invalid") is not None


CHECKS = [
    Check(
        service="wikipedia",
        what="3 articles found, with excerpts and the moment of their last change, in one request",
        recordings=("WikiSearch_test_limit",),
        function=_search,
    ),
    Check(
        service="wikipedia",
        what="searches with any of their options",
        recordings=("WikiSearch*",),
        function=_all_searches,
    ),
    Check(
        service="wikipedia",
        what="a page that is not there",
        recordings=("PageExistence_test_exists_false",),
        function=_missing,
    ),
    Check(
        service="wikipedia",
        what="a page by title, listed under its number as in older answers",
        recordings=("PageRelationProps_test_categories", "WikiCategories_test_categories"),
        function=_pages,
    ),
    Check(
        service="wikipedia",
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep("wikipedia", _any),
    ),
]
