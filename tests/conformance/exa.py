"""Exa: recorded answers of January 2026, and its OpenAPI of April 2026."""

from typing import Any, cast

import yaml
from jsonschema import Draft202012Validator

from conformance.reading import KEY, body_of, config_on, sweep
from conformance.recordings import Check, answer, spec_file
from foretell.data.search.web import ExaSearch, exa_hits
from foretell.outgoing.client import HttpRequest
from foretell.questions.as_of import AsOf, instant

NOW = instant("2026-11-15")
TEXT = "Example Domain\n# Example Domain\nThis domain is for use in documentation examples"


async def _search() -> None:
    config = config_on({"/search": answer("exa", "search")}, key=KEY)
    (hit,) = await ExaSearch(config).search("Example Domain", AsOf(at=NOW, mode="live"))
    assert (hit.url, hit.title, hit.published, hit.text) == ("https://example.com/", "Example Domain", None, None)
    assert hit.dating == "none"


def _texts() -> None:
    (hit,) = exa_hits(body_of("exa", "search_and_contents"))
    assert hit.text is not None
    assert hit.text.startswith(TEXT)
    assert hit.snippet.endswith("Avoid use in operations.\nLearn more")
    (fetched,) = exa_hits(body_of("exa", "get_contents"))
    assert (fetched.url, fetched.text) == ("https://example.com", hit.text)
    assert (hit.published, fetched.text_as_of) == (None, None)


def _dates() -> None:
    similar = exa_hits(body_of("exa", "find_similar"))
    assert [(hit.title, hit.published) for hit in similar] == [
        ("", None),
        ("eExample.com", instant("2024-01-01")),
        ("Example Website – This is an example website", instant("2025-01-01")),
    ]
    cited = exa_hits(body_of("exa", "answer"))
    assert (cited[0].url, cited[0].published) == (
        "https://en.wikipedia.org/wiki/Example.com",
        instant("2004-11-20T21:16:50Z"),
    )
    assert cited[1].published == instant("2011-01-04")


def _pinned() -> None:
    body = body_of("exa", "search_and_contents")
    (today,) = exa_hits(body, pinned=True)
    assert (today.text, today.snippet) == (None, "")
    body.value["results"][0]["snapshotAt"] = "2026-10-01T00:00:00.000Z"
    (stored,) = exa_hits(body, pinned=True)
    assert (stored.text_as_of, stored.text is None) == (instant("2026-10-01"), False)


async def _requests() -> None:
    document = cast("dict[str, Any]", yaml.safe_load(spec_file("exa", "*.yaml").read_text()))
    declared = document["paths"]["/search"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = Draft202012Validator({**declared, "components": document["components"]})
    known = document["components"]["schemas"]["CommonRequest"]["properties"]
    seen: list[HttpRequest] = []
    engine = ExaSearch(config_on({"/search": answer("exa", "search")}, seen, key=KEY), now=lambda: NOW)
    for as_of in (AsOf(at=NOW, mode="live"), AsOf.day("2026-10-01"), AsOf.day("2024-10-01")):
        await engine.search("Example Domain", as_of, limit=500)
    for request in seen:
        body = request.json()
        assert [problem.message for problem in validator.iter_errors(body)] == []
        assert request.headers["x-api-key"] == KEY
        assert set(body) - {"query", "type"} <= set(known)
        # Snapshots are younger than the document.
        contents = document["components"]["schemas"]["ContentsRequest"]["properties"]
        assert set(body["contents"]) - {"snapshotAsOf"} <= set(contents)
    bodies = [request.json() for request in seen]
    assert [body.get("endPublishedDate") for body in bodies] == [
        None,
        "2026-10-01T23:59:59.999Z",
        "2024-10-01T23:59:59.999Z",
    ]
    assert ["snapshotAsOf" in body["contents"] for body in bodies] == [False, True, False]
    assert bodies[2]["contents"]["maxAgeHours"] == -1


def _any(name: str) -> None:
    body = body_of("exa", name)
    listed = [key for key in ("results", "citations") if isinstance(body.value.get(key), list)]
    if listed or body.get("error") is not None:
        hits = exa_hits(body)
        assert len(hits) == len(body.value[listed[-1]])
        assert hits.notes == ()
    else:
        # An answer to a request that the adapter never sends, such as a research task.
        assert "results" not in body.value


CHECKS = [
    Check(service="exa", what="a search without contents", recordings=("search",), function=_search),
    Check(
        service="exa",
        what="texts and highlights of a search and of a page",
        recordings=("search_and_contents", "get_contents"),
        function=_texts,
    ),
    Check(
        service="exa",
        what="published dates of similar pages and of what an answer cites",
        recordings=("find_similar", "answer"),
        function=_dates,
    ),
    Check(
        service="exa",
        what="asked for stored versions, a text that does not say of when it is is left out",
        recordings=("search_and_contents",),
        function=_pinned,
    ),
    Check(
        service="exa",
        what="requests are valid by its OpenAPI of 2026-04-03; a backtest asks for dated pages as they stood",
        recordings=("search",),
        function=_requests,
    ),
    Check(
        service="exa",
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep("exa", _any),
    ),
]
