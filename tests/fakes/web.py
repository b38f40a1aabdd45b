"""Web sites and archives with the things that go wrong on the web."""

from collections.abc import Collection
from typing import cast

from foretell.practice import (
    Handler,
    PracticeServer,
    SampleWorld,
    ServerRequest,
    ServerResponse,
    html_response,
    redirect,
    wayback_server,
    web_server,
)

PIECE = b"<p>" + b"more and more " * 4096 + b"</p>"
HUGE = b"%x\r\n%b\r\n" % (len(PIECE), PIECE) * 1000
"""Some 57 MB in pieces whose sum is not said beforehand."""


def strange_web_server(world: SampleWorld) -> PracticeServer:
    """The world's pages by their paths; /moved/x leads to /x; /loop, /pdf, /huge and others misbehave."""
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
    """An archive where a replay whose timestamp is in `broken` leads to the page's newest capture."""

    def meddle(request: ServerRequest, handler: Handler) -> ServerResponse:
        stamp, _, address = request.target.removeprefix("/web/").partition("id_/")
        page = next((one for one in world.pages if one.url == address), None)
        if stamp in broken and page is not None:
            return redirect(f"/web/{page.versions[-1].at:%Y%m%d%H%M%S}id_/{address}")
        return cast("ServerResponse", handler(request))

    server = wayback_server(world)
    server.middleware = meddle
    return server


def _typed(kind: str, body: bytes) -> ServerResponse:
    return ServerResponse(body=body, headers={"Content-Type": kind})
