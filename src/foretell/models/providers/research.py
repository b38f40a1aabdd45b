"""Models that do research on their own: the provider calls our tools over MCP, in the background, until it is done."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from foretell.models.model import ModelError, Reply, Request
from foretell.models.providers.client import HttpModel
from foretell.models.providers.responses import UNFINISHED, ResponsesWire
from foretell.models.providers.wire import redact_key

MCP_LABEL = "foretell"
POLL_SECONDS = 2.0
"""Seconds between checks of research running in the background."""


class McpEndpoint(Protocol):
    """The address and token of an MCP server."""

    @property
    def url(self) -> str:
        """Address of the MCP server."""
        ...

    @property
    def token(self) -> str:
        """The token it accepts."""
        ...


class ResearchingModel(HttpModel):
    """OpenAI models. A request whose tools are served over MCP starts a research; others are sent as usual.

    The address of the tools and their token are looked up at the moment of sending, so that neither is stored in the
    journal. The reply contains the provider's calls in their order.
    """

    def __init__(
        self, address: str, key: str, served: Callable[[Request], McpEndpoint | None], *, poll: float = POLL_SECONDS
    ) -> None:
        super().__init__(ResponsesWire(), address, key)
        self._served = served
        self._poll = poll

    async def _ask(self, request: Request, name: str) -> Reply:
        endpoint = self._served(request)
        if endpoint is None:
            return await super()._ask(request, name)
        body = self._wire.body(replace(request, tools=(), force=None), name, self.facts(name))
        tools = {
            "type": "mcp",
            "server_label": MCP_LABEL,
            "server_url": endpoint.url,
            "authorization": endpoint.token,
            "require_approval": "never",
            "allowed_tools": [tool.name for tool in request.tools],
        }
        # What goes on in the background can be fetched for long only where the provider stores it.
        body |= {"tools": [tools], "background": True, "store": True}
        url = self._address + self._wire.path(name, stream=False)
        answer = await self._send(request, url, json.dumps(body).encode())
        state = self._parsed(answer)
        while answer.status == 200 and isinstance(state, dict) and state.get("status") in UNFINISHED:
            await asyncio.sleep(self._poll)
            answer = await self._send(request, f"{url}/{state['id']}")
            state = self._parsed(answer)
        if isinstance(state, dict) and state.get("status") in ("failed", "cancelled"):
            raise ModelError(f"{request.model}: the research ended early: {redact_key(_reason(state), self._key)}")
        reply = self._read(answer, request)
        return replace(
            reply, text=_last_text(state), finish="stop" if reply.finish == "tool" else reply.finish, sealed=""
        )


def _reason(state: dict[str, Any]) -> str:
    problem = state.get("error") or state.get("incomplete_details") or {}
    return str(problem.get("message") or problem.get("reason") or state.get("status"))


def _last_text(state: Any) -> str:
    """The report: the last text, without the remarks between searches."""
    messages = [item for item in state["output"] if item.get("type") == "message"]
    return "".join(part.get("text") or "" for part in messages[-1]["content"]) if messages else ""
