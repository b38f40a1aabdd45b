"""Web sites and archives with common faults."""

from collections.abc import Collection
from typing import cast

from foretell.practice.server import Handler, PracticeServer, ServerRequest, ServerResponse, html_response
from foretell.practice.web import SampleWorld, redirect, wayback_server, web_server

PIECE = b"<p>" + b"more and more " * 4096 + b"</p>"
HUGE = b"%x\r\n%b\r\n" % (len(PIECE), PIECE) * 1000
"""About 57 MB in chunks without a Content-Length."""


def strange_web_server(world: SampleWorld) -> PracticeServer:
    """Serve the world's pages by their paths; /moved/x redirects to /x; /loop, /pdf, /huge and others misbehave."""
    server = web_server(world)
    answers: dict[str, ServerResponse] = {
        "/loop": redirect("/loop"),
        "/pdf": _typed("application/pdf", b"%PDF-1.7 ..."),
        "/binary": _typed("image/png", b"\x89PNG\r\n\x1a\n\0\0"),
        "/text": _typed("text/plain", "First line\nÆ second one".encode()),
        "/script": html_response("<html><body><script>render()</script></body></html>"),
        "/huge": ServerResponse(body=HUGE, headers={"Content-Type": "text/html", "Transfer-Encoding": "chunked"}),
        "/slow": ServerResponse(body=b"late", delay=30.0),
    }
    for path, answer in answers.items():
        server.route("GET", path, lambda _request, answer=answer: answer)
    server.route("GET", "/moved/*", lambda request: redirect(request.path.removeprefix("/moved")))
    server.route("GET", "/away", lambda request: redirect(request.query["to"]))
    return server


def broken_wayback_server(world: SampleWorld, broken: Collection[str]) -> PracticeServer:
    """Serve an archive in which replays with a timestamp in `broken` redirect to the page's newest capture."""

    def meddle(request: ServerRequest, handler: Handler) -> ServerResponse:
        stamp, _, address = request.target.removeprefix("/web/").partition("id_/")
        page = next((candidate for candidate in world.pages if candidate.url == address), None)
        if stamp in broken and page is not None:
            return redirect(f"/web/{page.versions[-1].at:%Y%m%d%H%M%S}id_/{address}")
        return cast("ServerResponse", handler(request))

    server = wayback_server(world)
    server.middleware = meddle
    return server


def _typed(kind: str, body: bytes) -> ServerResponse:
    return ServerResponse(body=body, headers={"Content-Type": kind})
