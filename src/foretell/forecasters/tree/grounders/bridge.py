"""Our fenced search as an MCP server on this machine, for models that do their research by themselves.

It listens on loopback only. A provider elsewhere reaches it through a tunnel whose public address is given; each leaf
has a token of its own, which is good only while that leaf is researched, and opens only that leaf's toolbox.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from foretell.forecasters.tree.grounders.offered import SPECS, Offered
from foretell.questions.problems import MissingExtra
from foretell.tools.fence import Fenced

PATH = "/mcp"
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Where a provider finds a leaf's tools."""

    url: str
    token: str


class Bridge:
    """Serves toolboxes by token. Made by `open_bridge`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._by_token: dict[str, Offered] = {}
        self._by_slot: dict[str, Reach] = {}

    @contextmanager
    def offer(self, slot: str, toolbox: Fenced) -> Generator[Reach]:
        """A toolbox, reachable while in use; the wire finds it by the slot of its request."""
        reach = Reach(url=self.url, token=secrets.token_urlsafe(32))
        self._by_token[reach.token] = Offered(toolbox=toolbox)
        self._by_slot[slot] = reach
        try:
            yield reach
        finally:
            del self._by_token[reach.token], self._by_slot[slot]

    def reach(self, slot: str) -> Reach | None:
        """Where the tools of a request are; None where it has none on offer."""
        return self._by_slot.get(slot)

    def by_header(self, authorization: str) -> Offered | None:
        """The tools that a token opens."""
        scheme, _, token = authorization.partition(" ")
        return self._by_token.get(token.strip()) if scheme.lower() == "bearer" else None


@asynccontextmanager
async def open_bridge(*, public_url: str | None = None, port: int = 0) -> AsyncGenerator[Bridge]:
    """A server on loopback; `public_url` is the address under which a tunnel makes it known, without a path."""
    if find_spec("mcp") is None:
        raise MissingExtra("serving the search to a deep-research model", "mcp")
    import uvicorn

    class Quiet(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            """Ctrl-C is the application's own business."""
            yield

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", port))
    own = f"http://127.0.0.1:{listening.getsockname()[1]}"
    bridge = Bridge((public_url or own).rstrip("/") + PATH)
    config = uvicorn.Config(_app(bridge, public_url), log_level="critical", access_log=False, lifespan="on", ws="none")
    server = Quiet(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        yield bridge
    finally:
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        listening.close()


def _app(bridge: Bridge, public_url: str | None) -> Asgi:
    """The MCP server, behind the check of the token."""
    from mcp.server.lowlevel.server import Server
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    async def list_tools(_context: Any, _params: Any) -> Any:
        tools = [
            Tool(name=spec.name, description=spec.description, input_schema=dict(spec.parameters)) for spec in SPECS
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> Any:
        offered = bridge.by_header(context.request.headers.get("authorization", ""))
        text, worked = ("The token is not valid any more.", False)
        if offered is not None:
            text, worked = await offered.use(params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=not worked)

    server: Any = Server("foretell", on_list_tools=list_tools, on_call_tool=call_tool)
    hosts = ["127.0.0.1:*", "localhost:*", *_hosts(public_url)]
    security = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts)
    inner = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=security
    )

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            if bridge.by_header(headers.get(b"authorization", b"").decode("latin-1")) is None:
                await _refuse(send)
                return
        await inner(scope, receive, send)

    return guarded


async def _refuse(send: Any) -> None:
    head = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": head})
    await send({"type": "http.response.body", "body": b"a valid token is needed"})


def _hosts(public_url: str | None) -> list[str]:
    host = urlsplit(public_url).netloc if public_url else ""
    return [host] if host else []
