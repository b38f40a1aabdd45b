"""The server over HTTP: on loopback only, and only for those who know the token."""

import hmac
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.server import make_server
from foretell.questions.errors import InputError

PATH = "/mcp"
HOST = "127.0.0.1"
MAX_BODY_BYTES = 8_000_000
"""Bytes of one request."""
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address of this machine; port 0 takes any free one."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        problem = f"cannot listen at {host}, port {port}: {error.strerror}"
        raise InputError(problem, hint="name another --port") from None
    return listening


async def serve_http(permissions: ServerPermissions, listening: socket.socket, token: str) -> None:
    """Until Ctrl-C."""
    import uvicorn

    config = uvicorn.Config(http_app(permissions, token), log_level="error", access_log=False, lifespan="on", ws="none")
    await uvicorn.Server(config).serve(sockets=[listening])


def http_app(permissions: ServerPermissions, token: str) -> Asgi:
    """The MCP server behind the token. Without it nothing is told, not even which tools there are."""
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = [f"{HOST}:*", "localhost:*"]
    security = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts)
    inner = make_server(permissions).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, transport_security=security
    )

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            if not has_valid_token(token, headers.get(b"authorization", b"")):
                await _refuse(send, 401, b"a valid token is needed")
                return
            if scope["method"] == "POST" and not _fits(headers.get(b"content-length", b"")):
                await _refuse(send, 413, b"the request is too large, or does not tell its length")
                return
        await inner(scope, receive, send)

    return guarded


def has_valid_token(token: str, authorization: bytes) -> bool:
    """Whether a header carries the token; compared in the same time wherever they differ.

    >>> [has_valid_token("a", header) for header in (b"Bearer a", b"Bearer b", b"Basic a", b"")]
    [True, False, False, False]
    """
    scheme, _, given = authorization.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), token.encode())


def _fits(length: bytes) -> bool:
    return length.isdigit() and int(length) <= MAX_BODY_BYTES


async def _refuse(send: Any, status: int, words: bytes) -> None:
    head = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": words})
