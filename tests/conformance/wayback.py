"""The Internet Archive's Wayback Machine: recorded look-ups and replays of 2020 to 2024."""

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.reading import ONCE, response_of, sweep
from conformance.recordings import Check, answer, names, recording
from fakes.answers import respond
from foretell.data.http import REDIRECT_STATUS, AsyncHttpClient
from foretell.data.pages import Page, PageUnavailable, WaybackPages, read_captures, read_page, stored_at
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest
from foretell.questions.as_of import AsOf, instant

PAGE = "<html><head><title>T</title></head><body><article>" + "<p>Words of the page as it stood then.</p>" * 5
STORED = {"content-type": "text/html", "memento-datetime": "Sat, 01 Feb 2020 02:37:58 GMT"}


class Archive:
    """An archive with some captures and answers, by the end of their address."""

    def __init__(self, captures: list[list[str]], answers: Mapping[str, Answer]) -> None:
        self.captures = captures
        self.answers = answers
        self.asked: list[HttpRequest] = []

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """Fetch a page through the adapter."""
        async with AsyncHttpClient(limits=ONCE, transport=FunctionTransport(self._handle)) as client:
            return await WaybackPages(client).fetch(url, as_of)

    async def refusal(self, url: str, as_of: AsOf) -> str:
        """Return why there is no page."""
        with pytest.raises(PageUnavailable) as refusal:
            await self.fetch(url, as_of)
        return str(refusal.value)

    def _handle(self, request: HttpRequest) -> Answer:
        self.asked.append(request)
        if "/cdx/" in request.url.path:
            return respond(200, json=[["timestamp", "original", "statuscode"], *self.captures])
        for end, handle in self.answers.items():
            if str(request.url).endswith(end):
                return handle
        return respond(404, text="The Wayback Machine has not archived that URL.")


def _index() -> None:
    captures = {
        name: read_captures(response_of("wayback", name))
        for name in names("wayback")
        if "search" in name and "blocked" not in name
    }
    first = captures["search_1"]
    assert [(capture.stamp, capture.url, capture.status) for capture in first] == [
        ("19961231235847", "http://www.nasa.gov:80/", "200")
    ] * 3
    assert first[0].at == instant("1996-12-31T23:58:47Z")
    assert [capture.status for capture in captures["search_with_filter_1"]].count("301") == 4
    for name in ("search_with_filter_1", "search_with_filter_list_1"):
        assert (len(captures[name]), captures[name][-1].at) == (10, instant("2022-01-01T01:39:52Z"))
    for name in ("search_with_filter_list_2", "search_with_filter_tuple_1"):
        assert {capture.status for capture in captures[name]} == {"404"}
        assert captures[name][0].at == instant("2022-01-19T14:14:46Z")
    assert captures["search_multipage_2"][-1].at == instant("2001-05-03T21:26:18Z")
    assert (len(captures["search_with_timezone_1"]), captures["search_with_timezone_2"][0].at) == (
        1000,
        instant("1997-06-05T23:05:59Z"),
    )
    assert captures["search_with_timezone_2"][-1].at == instant("2004-09-17T08:44:02Z")


async def _unchanged_captures() -> None:
    url = "https://www.fws.gov/birds/"
    replay = respond(200, text=PAGE, headers=STORED)
    archive = Archive(
        [["20200101000000", url, "200"], ["20200201023758", url, "-"]], {f"20200201023758id_/{url}": replay}
    )
    page = await archive.fetch(url, AsOf.day("2020-03-01"))
    assert page.captured == instant("2020-02-01T02:37:58Z")
    query = archive.asked[0].url.query
    assert (query["resolveRevisits"], query["filter"], query["to"]) == ("true", "statuscode:200|-", "20200301235959")


async def _excluded() -> None:
    url = "https://nationalpost.com/health/"
    blocked = answer("wayback", "get_memento_raises_blocked_error_1")
    archive = Archive([["20170929002712", url, "200"]], {f"20170929002712id_/{url}": blocked})
    assert "excluded from the archive" in await archive.refusal(url, AsOf.day("2020-06-01"))
    refused = answer("wayback", "search_raises_for_blocked_urls_1")
    transport = FunctionTransport(lambda _: Answer(refused.status, refused.body))
    async with AsyncHttpClient(limits=ONCE, transport=transport) as client:
        with pytest.raises(PageUnavailable, match="excluded from the archive"):
            await WaybackPages(client).fetch(url, AsOf.day("2020-06-01"))


async def _redirects() -> None:
    url = "http://epa.gov/climatechange"
    last = "20200201023757id_/https://www.epa.gov/sites/production/files/signpost/cc.html"
    answers = {
        f"20200201020357id_/{url}": answer("wayback", "get_memento_follows_historical_redirects_1"),
        "20200201023757id_/https://www.epa.gov/climatechange": answer(
            "wayback", "get_memento_follows_historical_redirects_2"
        ),
        last: respond(302, headers={"location": "/web/20200201023758id_/https://www.epa.gov/cc.html"}),
        "20200201023758id_/https://www.epa.gov/cc.html": respond(200, text=PAGE, headers=STORED),
    }
    archive = Archive([["20200201020357", url, "200"]], answers)
    page = await archive.fetch(url, AsOf.day("2020-02-01"))
    assert page.captured == instant("2020-02-01T02:37:58Z")
    assert page.hops == (
        url,
        "https://www.epa.gov/climatechange",
        "https://www.epa.gov/sites/production/files/signpost/cc.html",
        "https://www.epa.gov/cc.html",
    )
    # Half an hour earlier, the same redirects lead past the cutoff.
    early = await archive.refusal(url, AsOf(at=instant("2020-02-01T02:30:00Z")))
    assert "2020-02-01, after the cutoff" in early


async def _neighbours() -> None:
    url = "https://www.fws.gov/birds/"
    later = answer("wayback", "get_memento_raises_when_memento_is_outside_target_window_1")
    stored = {**STORED, "memento-datetime": "Fri, 24 Nov 2017 15:13:15 GMT"}
    answers = {
        f"20171101000000id_/{url}": later,
        f"20171124151315id_/{url}": respond(200, text=PAGE, headers=stored),
    }
    archive = Archive([["20171101000000", url, "200"]], answers)
    assert "2017-11-24, after the cutoff" in await archive.refusal(url, AsOf.day("2017-11-10"))
    # If a capture cannot be replayed, an earlier one is used.
    earlier = answer("wayback", "get_memento_should_fail_for_non_playbackable_mementos_1")
    stored = {**STORED, "memento-datetime": "Sun, 03 May 2015 09:01:25 GMT"}
    answers = {
        f"20150509080314id_/{url}": earlier,
        "20150503090125id_/http://www.fws.gov/birds/": respond(200, text=PAGE, headers=stored),
    }
    page = await Archive([["20150509080314", url, "200"]], answers).fetch(url, AsOf.day("2015-05-20"))
    assert page.captured == instant("2015-05-03T09:01:25Z")


async def _archived_errors() -> None:
    for name, url, stamp, status in (
        (
            "get_memento_with_path_based_redirects_3",
            "https://www.whitehouse.gov/ostp/about/student/faqs",
            "20201027220743",
            404,
        ),
        (
            "get_memento_works_on_archived_rate_limit_responses_1",
            "http://www.reddit.com/r/PokemonGiveaway",
            "20150129034904",
            429,
        ),
    ):
        archive = Archive([[stamp, url, "-"]], {f"{stamp}id_/{url}": answer("wayback", name)})
        assert f"status {status}" in await archive.refusal(url, AsOf.day("2020-11-01"))
        # A stored 429 is not the archive's own status: the adapter does not wait or retry.
        assert len(archive.asked) == 2
    url = "http://www.reddit.com/r/PokemonGiveaway"
    older = respond(200, text=PAGE, headers={**STORED, "memento-datetime": "Thu, 01 Jan 2015 00:00:00 GMT"})
    answers = {f"20150129034904id_/{url}": answer("wayback", name), f"20150101000000id_/{url}": older}
    archive = Archive([["20150101000000", url, "200"], ["20150129034904", url, "-"]], answers)
    assert (await archive.fetch(url, AsOf.day("2020-11-01"))).captured == instant("2015-01-01")


def _any(name: str) -> None:
    exchange: dict[str, Any] = recording("wayback", name)
    response = response_of("wayback", name)
    if "/cdx/" in exchange["url"]:
        if response.status < 400:
            read_captures(response)
    elif response.status in REDIRECT_STATUS:
        assert "/web/" in response.headers.get("location", "/web/")
    elif response.status < 400 or "memento-datetime" in response.headers:
        assert stored_at(response, exchange["url"]) <= instant("2026-11-15")
        read_page(response.body, response.headers.get("content-type", ""), exchange["url"])


CHECKS = [
    Check(
        service="wayback",
        what="captures of an index in plain text, with their moment, address and status",
        recordings=("search_1", "search_multipage_2", "search_with_*"),
        function=_index,
    ),
    Check(
        service="wayback",
        what="a capture that had not changed (status -) counts, and is asked for",
        function=_unchanged_captures,
    ),
    Check(
        service="wayback",
        what="an excluded site: 403 from the index, 200 with the archive's own page from the replay",
        recordings=("get_memento_raises_blocked_error_1", "search_raises_for_blocked_urls_1"),
        function=_excluded,
    ),
    Check(
        service="wayback",
        what="stored redirects, also relative ones, each step held to the cutoff",
        recordings=("get_memento_follows_historical_redirects_*",),
        function=_redirects,
    ),
    Check(
        service="wayback",
        what="a neighbour in place of what cannot be replayed: an earlier one is read, a later one refused",
        recordings=(
            "get_memento_raises_when_memento_is_outside_target_window_1",
            "get_memento_should_fail_for_non_playbackable_mementos_1",
        ),
        function=_neighbours,
    ),
    Check(
        service="wayback",
        what="a stored 404 or 429 is not a page, and no word of the archive",
        recordings=(
            "get_memento_with_path_based_redirects_3",
            "get_memento_works_on_archived_rate_limit_responses_1",
        ),
        function=_archived_errors,
    ),
    Check(
        service="wayback",
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep("wayback", _any),
    ),
]
