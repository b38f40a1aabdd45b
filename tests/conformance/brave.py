"""Brave: recorded web searches of 2024."""

from conformance.reading import KEY, body_of, config_on, sweep
from conformance.recordings import Check, answer
from foretell.data.search.web import BraveSearch, brave_hits
from foretell.questions.as_of import AsOf, instant
from foretell.tools.dates.refusal import date_refusal
from foretell.tools.tool import SourceItem

APRIL = AsOf(at=instant("2024-03-28T00:00:00Z"))


async def _laravel() -> None:
    config = config_on({"/web/search": answer("brave", "web_search_2024")}, key=KEY)
    hits = await BraveSearch(config).search("Laravel", APRIL, 17)
    assert len(hits) == 17
    assert (hits[0].url, hits[0].published) == ("https://laravel.com/", instant("2023-05-01T20:10:05Z"))
    # Shown as "2 days ago" beside a date: the date counts.
    assert (hits[1].title, hits[1].published) == ("Laravel - Wikipedia", instant("2024-03-27T15:31:02Z"))
    assert (hits[3].published, hits[3].dating) == (instant("2024-03-28T19:35:02Z"), "published")
    assert [hit.url for hit in hits if hit.published is None] == [
        "https://www.tutorialspoint.com/laravel/laravel_overview.htm",
        "https://twitter.com/search?q=laravel",
        "https://www.youtube.com/@LaravelPHP",
        "https://www.javatpoint.com/laravel",
    ]
    assert "<strong>" not in "".join(hit.snippet for hit in hits)


def _blu_tack() -> None:
    (hit,) = brave_hits(body_of("brave", "web_search_blue_tack_2024"))
    assert (hit.url, hit.published) == ("https://en.wikipedia.org/wiki/Blu_Tack", instant("2023-11-23T09:26:19Z"))
    assert hit.snippet.startswith("Blu Tack is a reusable putty-like pressure-sensitive adhesive produced by Bostik,")


def _relative_ages() -> None:
    body = body_of("brave", "web_search_2024")
    for result in body.value["web"]["results"]:
        result.pop("page_age", None)
    hits = brave_hits(body)
    assert [hit.dating for hit in hits[:4]] == ["published", "relative", "published", "relative"]
    assert (hits[1].published, hits[3].published) == (None, None)
    refused = [
        hit.url
        for hit in hits
        if date_refusal(
            SourceItem(title=hit.title, text="", url=hit.url, published=hit.published, dating=hit.dating), APRIL
        )
    ]
    undated = [hit.url for hit in hits if hit.dating != "published"]
    assert len(undated) == 6
    assert set(undated) <= set(refused)


def _any(name: str) -> None:
    body = body_of("brave", name)
    if body.get("web") is not None or body.optional_text("type") in ("", "search"):
        hits = brave_hits(body)
        assert hits.notes == ()
        assert all(hit.url.startswith("http") for hit in hits)
    else:
        # Suggestions, news and places are other kinds of answers and are refused as such.
        assert body.optional_text("type")


CHECKS = [
    Check(
        service="brave",
        what="17 results with their dates; the 4 undated stay undated",
        recordings=("web_search_2024",),
        function=_laravel,
    ),
    Check(
        service="brave",
        what="a result with marked words, as plain text",
        recordings=("web_search_blue_tack_2024",),
        function=_blu_tack,
    ),
    Check(
        service="brave",
        what='an age ("2 days ago") is no date, and what has no date is refused in a backtest',
        recordings=("web_search_2024",),
        function=_relative_ages,
    ),
    Check(
        service="brave",
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep("brave", _any),
    ),
]
