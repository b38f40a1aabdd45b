"""A web site and an archive in small, with the things that go wrong on the web."""

from collections.abc import AsyncIterator
from datetime import datetime

from foretell.fakes.server import FakeServer, Handler, Request, Response, html_response, json_response
from foretell.fakes.world import WebPage, World, version_at
from foretell.questions.clock import instant

_STAMP = "%Y%m%d%H%M%S"


def web_server(world: World) -> FakeServer:
    """The world's pages by their paths; /moved/x leads to /x; /loop, /pdf, /huge and others misbehave."""
    server = FakeServer()
    for page in world.pages:
        server.route("GET", page.path, _serving(page))
    server.route("GET", "/moved/*", lambda request: _moved(request.path.removeprefix("/moved")))
    server.route("GET", "/away", lambda request: _moved(request.query["to"]))
    server.route("GET", "/loop", lambda _: _moved("/loop"))
    server.route("GET", "/pdf", lambda _: _typed("application/pdf", b"%PDF-1.7 ..."))
    server.route("GET", "/binary", lambda _: _typed("image/png", b"\x89PNG\r\n\x1a\n\0\0"))
    server.route("GET", "/text", lambda _: _typed("text/plain", "First line\nÆ second one".encode()))
    server.route("GET", "/script", lambda _: html_response("<html><body><script>render()</script></body></html>"))
    server.route("GET", "/huge", lambda _: Response(headers={"Content-Type": "text/html"}, stream=_endless()))
    server.route("GET", "/slow", lambda _: Response(body=b"late", delay=30.0))
    return server


def wayback_server(world: World, *, broken: frozenset[str] = frozenset()) -> FakeServer:
    """Captures of the world's pages. A replay whose timestamp is in `broken` leads to the page's newest capture."""
    server = FakeServer()
    server.route("GET", "/cdx/search/cdx", lambda request: _captures(world, request))
    server.route("GET", "/web/*", lambda request: _replayed(world, request, broken))
    return server


def _captures(world: World, request: Request) -> Response:
    page = _by_url(world, request.query["url"])
    until = instant(_iso(request.query["to"])) if "to" in request.query else None
    rows = (
        [[one.at.strftime(_STAMP), page.url] for one in page.versions if until is None or one.at <= until]
        if page
        else []
    )
    newest = rows[int(request.query["limit"]) :]
    return json_response([["timestamp", "original"], *newest] if newest else [])


def _replayed(world: World, request: Request, broken: frozenset[str]) -> Response:
    stamp, _, address = request.target.removeprefix("/web/").partition("id_/")
    page = _by_url(world, address)
    if page is None or not page.versions:
        return html_response("not archived", 404)
    asked = version_at(page.versions, instant(_iso(stamp)))
    if stamp in broken or asked is None or asked.at.strftime(_STAMP) != stamp:
        return _moved(f"/web/{page.versions[-1].at.strftime(_STAMP)}id_/{address}")
    return html_response(page.html(asked.text))


def _by_url(world: World, url: str) -> WebPage | None:
    return next((one for one in world.pages if one.url == url), None)


def _serving(page: WebPage) -> Handler:
    return lambda _: html_response(page.html())


def _moved(to: str) -> Response:
    return Response(status=302, headers={"Location": to, "Content-Type": "text/html"}, body=b"moved")


def _typed(kind: str, body: bytes) -> Response:
    return Response(body=body, headers={"Content-Type": kind})


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b"<p>" + b"more and more " * 4096 + b"</p>"


def _iso(stamp: str) -> str:
    return datetime.strptime(f"{stamp}+0000", f"{_STAMP}%z").isoformat()
