"""A web site and an archive in small, with the things that go wrong on the web."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from foretell.practice.server import (
    Handler,
    PracticeServer,
    ServerRequest,
    ServerResponse,
    html_response,
    json_response,
)
from foretell.practice.world import SampleWebPage, SampleWorld, version_at
from foretell.questions.as_of import instant

_STAMP = "%Y%m%d%H%M%S"


def web_server(world: SampleWorld) -> PracticeServer:
    """The world's pages by their paths; /moved/x leads to /x; /loop, /pdf, /huge and others misbehave."""
    server = PracticeServer()
    for page in world.pages:
        server.route("GET", page.path, _serving(page))
    server.route("GET", "/moved/*", lambda request: _moved(request.path.removeprefix("/moved")))
    server.route("GET", "/away", lambda request: _moved(request.query["to"]))
    server.route("GET", "/loop", lambda _: _moved("/loop"))
    server.route("GET", "/pdf", lambda _: _typed("application/pdf", b"%PDF-1.7 ..."))
    server.route("GET", "/binary", lambda _: _typed("image/png", b"\x89PNG\r\n\x1a\n\0\0"))
    server.route("GET", "/text", lambda _: _typed("text/plain", "First line\nÆ second one".encode()))
    server.route("GET", "/script", lambda _: html_response("<html><body><script>render()</script></body></html>"))
    server.route("GET", "/huge", lambda _: ServerResponse(headers={"Content-Type": "text/html"}, stream=_endless()))
    server.route("GET", "/slow", lambda _: ServerResponse(body=b"late", delay=30.0))
    return server


def wayback_server(world: SampleWorld, *, broken: frozenset[str] = frozenset()) -> PracticeServer:
    """Captures of the world's pages. A replay whose timestamp is in `broken` leads to the page's newest capture."""
    server = PracticeServer()
    server.route("GET", "/cdx/search/cdx", lambda request: _captures(world, request))
    server.route("GET", "/web/*", lambda request: _replayed(world, request, broken))
    return server


def _captures(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    page = _by_url(world, request.query["url"])
    until = instant(_iso(request.query["to"])) if "to" in request.query else None
    rows = (
        [[one.at.strftime(_STAMP), page.url] for one in page.versions if until is None or one.at <= until]
        if page
        else []
    )
    newest = rows[int(request.query["limit"]) :]
    return json_response([["timestamp", "original"], *newest] if newest else [])


def _replayed(world: SampleWorld, request: ServerRequest, broken: frozenset[str]) -> ServerResponse:
    stamp, _, address = request.target.removeprefix("/web/").partition("id_/")
    page = _by_url(world, address)
    if page is None or not page.versions:
        return html_response("not archived", 404)
    asked = version_at(page.versions, instant(_iso(stamp)))
    if stamp in broken or asked is None or asked.at.strftime(_STAMP) != stamp:
        return _moved(f"/web/{page.versions[-1].at.strftime(_STAMP)}id_/{address}")
    return html_response(page.html(asked.text))


def _by_url(world: SampleWorld, url: str) -> SampleWebPage | None:
    return next((one for one in world.pages if one.url == url), None)


def _serving(page: SampleWebPage) -> Handler:
    return lambda _: html_response(page.html())


def _moved(to: str) -> ServerResponse:
    return ServerResponse(status=302, headers={"Location": to, "Content-Type": "text/html"}, body=b"moved")


def _typed(kind: str, body: bytes) -> ServerResponse:
    return ServerResponse(body=body, headers={"Content-Type": kind})


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b"<p>" + b"more and more " * 4096 + b"</p>"


def _iso(stamp: str) -> str:
    return datetime.strptime(f"{stamp}+0000", f"{_STAMP}%z").isoformat()


# Wikipedia's API in small: revisions by date, and search over today's titles.


def wikipedia_server(world: SampleWorld) -> PracticeServer:
    """The API at /w/api.php."""
    server = PracticeServer()
    server.route("GET", "/w/api.php", lambda request: _answer(world, request))
    return server


def _answer(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    query = request.query
    if "foretell" not in request.headers.get("user-agent", "") or "(" not in request.headers["user-agent"]:
        return json_response({"error": {"code": "ua", "info": "Please set a descriptive user agent"}})
    if query.get("list") == "search":
        return json_response({"query": {"search": _found(world, query["srsearch"])[: int(query["srlimit"])]}})
    if query.get("prop") == "revisions":
        return json_response({"query": {"pages": [_page(world, query)]}})
    return json_response({"error": {"code": "badvalue", "info": "Unrecognized value"}})


def _found(world: SampleWorld, query: str) -> list[dict[str, str]]:
    words = query.casefold().split()
    hits = [t for t, v in world.articles.items() if any(w in f"{t} {v[-1].text}".casefold() for w in words)]
    return [
        {"title": one, "snippet": f'now: <span class="searchmatch">{world.articles[one][-1].text[:40]}</span>'}
        for one in hits
    ]


def _page(world: SampleWorld, query: Any) -> dict[str, Any]:
    title = query["titles"].replace("_", " ")
    if title not in world.articles:
        return {"title": title, "missing": True}
    at = instant(query["rvstart"]) if "rvstart" in query else None
    versions = world.articles[title]
    found = version_at(versions, at)
    page: dict[str, Any] = {"pageid": 1, "title": title}
    if found is not None:
        revision: dict[str, Any] = {
            "revid": 1000 + versions.index(found),
            "timestamp": f"{found.at:%Y-%m-%dT%H:%M:%SZ}",
        }
        if "content" in query["rvprop"]:
            hidden = (title, found.at) in world.hidden
            revision["slots"] = {
                "main": {"texthidden": True} if hidden else {"contentmodel": "wikitext", "content": found.text}
            }
        page["revisions"] = [revision]
    return page
