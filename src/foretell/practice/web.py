"""The practice world's web site, its archive, and Wikipedia."""

from dataclasses import replace
from datetime import datetime
from email.utils import format_datetime
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
    """The world's pages by their paths."""
    server = PracticeServer()
    for page in world.pages:
        server.route("GET", page.path, _serving(page))
    return server


def wayback_server(world: SampleWorld) -> PracticeServer:
    """Captures of the world's pages. A replay that there is not leads to the page's newest capture."""
    server = PracticeServer()
    server.route("GET", "/cdx/search/cdx", lambda request: _captures(world, request))
    server.route("GET", "/web/*", lambda request: _replayed(world, request))
    return server


def _captures(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    page = _by_url(world, request.query["url"])
    until = instant(_iso(request.query["to"])) if "to" in request.query else None
    rows = (
        [[one.at.strftime(_STAMP), page.url, "200"] for one in page.versions if until is None or one.at <= until]
        if page
        else []
    )
    newest = rows[int(request.query["limit"]) :]
    return json_response([["timestamp", "original", "statuscode"], *newest] if newest else [])


def _replayed(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    stamp, _, address = request.target.removeprefix("/web/").partition("id_/")
    page = _by_url(world, address)
    if page is None or not page.versions:
        return html_response("not archived", 404)
    version = version_at(page.versions, instant(_iso(stamp)))
    if version is None or version.at.strftime(_STAMP) != stamp:
        return redirect(f"/web/{page.versions[-1].at.strftime(_STAMP)}id_/{address}")
    page_then = html_response(page.html(version.text))
    return replace(
        page_then, headers={**page_then.headers, "Memento-Datetime": format_datetime(version.at, usegmt=True)}
    )


def _by_url(world: SampleWorld, url: str) -> SampleWebPage | None:
    return next((one for one in world.pages if one.url == url), None)


def _serving(page: SampleWebPage) -> Handler:
    return lambda _: html_response(page.html())


def redirect(to: str) -> ServerResponse:
    """An answer that leads to another address."""
    return ServerResponse(status=302, headers={"Location": to, "Content-Type": "text/html"}, body=b"moved")


def _iso(stamp: str) -> str:
    return datetime.strptime(f"{stamp}+0000", f"{_STAMP}%z").isoformat()


def wikipedia_server(world: SampleWorld) -> PracticeServer:
    """Wikipedia's API at /w/api.php: revisions by date, and search over today's titles."""
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
            revision["slots"] = {"main": {"contentmodel": "wikitext", "content": found.text}}
        page["revisions"] = [revision]
    return page
