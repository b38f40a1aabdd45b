"""OpenAI's Responses format, for models that do research by themselves with tools served over MCP.

The tools of a request are not sent: the provider asks the server that holds them. Where that is, and the token it
takes, is asked for at the moment of sending, so that neither becomes part of what the journal keeps. The calls the
provider made come back in the reply, in their order.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from foretell.models.model import (
    AssistantMessage,
    Message,
    ModelBusy,
    ModelError,
    Reply,
    ReplyLost,
    Request,
    SystemMessage,
    TokenCount,
    ToolCall,
)
from foretell.models.names import ModelName
from foretell.models.providers.http import HttpClient, http_model_error, redact_key, retry_after

MCP_LABEL = "foretell"
POLL_SECONDS = 2.0
"""Seconds between two looks at a research that goes on in the background."""
UNFINISHED = ("queued", "in_progress")


class McpEndpoint(Protocol):
    """Where tools are served."""

    @property
    def url(self) -> str:
        """Of the MCP server."""
        ...

    @property
    def token(self) -> str:
        """It takes."""
        ...


class OpenAIResponses:
    """Posts a research, waits for its end, and reads report and calls."""

    def __init__(
        self, address: str, key: str, served: Callable[[Request], McpEndpoint | None], *, poll: float = POLL_SECONDS
    ) -> None:
        self._url = f"{address.rstrip('/')}/responses"
        self._key = key
        self._served = served
        self._poll = poll
        self._http = HttpClient(address, {"Authorization": f"Bearer {key}"} if key else {})

    async def complete(self, request: Request) -> Reply:
        """The finished research. Whoever stands outside limits the time."""
        found = await self._call(request, "POST", self._url, _body(request, self._served(request)))
        while found.get("status") in UNFINISHED:
            await asyncio.sleep(self._poll)
            found = await self._call(request, "GET", f"{self._url}/{found['id']}")
        if found.get("status") != "completed":
            problem = _object(found.get("error") or found.get("incomplete_details"))
            reason = str(problem.get("message") or problem.get("reason") or found.get("status"))
            raise ModelError(f"{request.model}: the research ended early: {redact_key(reason, self._key)}")
        try:
            return _reply(found)
        except (KeyError, TypeError, AttributeError):
            raise ReplyLost(f"{request.model}: the reply cannot be read") from None

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()

    async def _call(self, request: Request, method: str, url: str, body: Any = None) -> dict[str, Any]:
        try:
            reply = await self._http.send(method, url, None if body is None else json.dumps(body).encode())
        except ModelBusy as error:
            raise type(error)(f"{request.model}: {error}") from None
        found = reply.json()
        if reply.status != 200:
            error = _object(found.get("error"))
            message = redact_key(str(error.get("message") or ""), self._key)
            wait = retry_after(reply.headers)
            raise http_model_error(reply.status, message, model=request.model, wait=wait, code=str(error.get("code")))
        return found


def _body(request: Request, served: McpEndpoint | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": ModelName.read(request.model).name,
        "input": [_message(message) for message in request.messages],
        "background": True,
    }
    if request.settings.max_tokens is not None:
        body["max_output_tokens"] = request.settings.max_tokens
    if served is not None:
        body["tools"] = [
            {
                "type": "mcp",
                "server_label": MCP_LABEL,
                "server_url": served.url,
                "authorization": served.token,
                "require_approval": "never",
                "allowed_tools": [tool.name for tool in request.tools],
            }
        ]
    return body


def _message(message: Message) -> dict[str, Any]:
    roles: dict[type, str] = {SystemMessage: "developer", AssistantMessage: "assistant"}
    role = roles.get(type(message), "user")
    kind = "output_text" if role == "assistant" else "input_text"
    return {"role": role, "content": [{"type": kind, "text": message.text}]}


def _object(given: Any) -> dict[str, Any]:
    """An error as the format writes it, also where it is only a text."""
    return given if isinstance(given, dict) else {"message": str(given)} if given else {}


def _reply(found: Mapping[str, Any]) -> Reply:
    items: list[Any] = found["output"]
    texts = [part.get("text") or "" for item in items if item["type"] == "message" for part in item["content"]]
    calls = tuple(
        ToolCall(id=item["id"], name=item["name"], arguments=item.get("arguments") or "{}")
        for item in items
        if item["type"] == "mcp_call"
    )
    usage: Any = found.get("usage") or {}
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
    tokens = TokenCount(
        input=int(usage.get("input_tokens") or 0), output=int(usage.get("output_tokens") or 0), cached=int(cached)
    )
    return Reply(text="".join(texts[-1:]), calls=calls, finish="stop", tokens=tokens, model=found.get("model") or "")
