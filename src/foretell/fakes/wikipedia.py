"""Wikipedia's API in small: revisions by date, and search over today's titles."""

from typing import Any

from foretell.fakes.server import FakeServer, Request, Response, json_response
from foretell.fakes.world import World, version_at
from foretell.questions.clock import instant


def wikipedia_server(world: World) -> FakeServer:
    """The API at /w/api.php."""
    server = FakeServer()
    server.route("GET", "/w/api.php", lambda request: _answer(world, request))
    return server


def _answer(world: World, request: Request) -> Response:
    query = request.query
    if "foretell" not in request.headers.get("user-agent", "") or "(" not in request.headers["user-agent"]:
        return json_response({"error": {"code": "ua", "info": "Please set a descriptive user agent"}})
    if query.get("list") == "search":
        return json_response({"query": {"search": _found(world, query["srsearch"])[: int(query["srlimit"])]}})
    if query.get("prop") == "revisions":
        return json_response({"query": {"pages": [_page(world, query)]}})
    return json_response({"error": {"code": "badvalue", "info": "Unrecognized value"}})


def _found(world: World, query: str) -> list[dict[str, str]]:
    words = query.casefold().split()
    hits = [t for t, v in world.articles.items() if any(w in f"{t} {v[-1].text}".casefold() for w in words)]
    return [
        {"title": one, "snippet": f'now: <span class="searchmatch">{world.articles[one][-1].text[:40]}</span>'}
        for one in hits
    ]


def _page(world: World, query: Any) -> dict[str, Any]:
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
