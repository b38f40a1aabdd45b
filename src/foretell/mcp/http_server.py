"""The server over HTTP: on loopback only, and only for those who know the token."""

import hmac
import socket
from typing import TYPE_CHECKING

from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.server import make_server
from foretell.questions.errors import InputError

if TYPE_CHECKING:
    from foretell.data.connections import BoundedTools

PATH = "/mcp"
HOST = "127.0.0.1"
MAX_BODY_BYTES = 8_000_000
"""Bytes of one request."""


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

    from foretell.data.connections import server_config

    app = http_app(permissions, token)
    config = server_config(app, app.connections, log_level="error", lifespan="on")
    await uvicorn.Server(config).serve(sockets=[listening])


def http_app(permissions: ServerPermissions, token: str) -> "BoundedTools":
    """The MCP server behind the token. Without it nothing is told, not even which tools there are."""
    from mcp.server.transport_security import TransportSecuritySettings

    from foretell.data.connections import BoundedTools

    hosts = [f"{HOST}:*", "localhost:*"]
    security = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts)
    inner = make_server(permissions).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, transport_security=security
    )

    return BoundedTools(inner, max_body=MAX_BODY_BYTES, knows_token=lambda header: has_valid_token(token, header))


def has_valid_token(token: str, authorization: bytes) -> bool:
    """Whether a header carries the token; compared in the same time wherever they differ.

    >>> [has_valid_token("a", header) for header in (b"Bearer a", b"Bearer b", b"Basic a", b"")]
    [True, False, False, False]
    """
    scheme, _, given = authorization.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), token.encode())
