"""A fake provider with a model that does research by itself: it asks the MCP server named in the request.

The other models of the provider answer chat completions by a brain, as usual.
"""

import asyncio
import json
from hashlib import sha256
from types import TracebackType
from typing import Any

from foretell.practice.models.formats import OpenAIFormat
from foretell.practice.models.scripts import chance, tree_script
from foretell.practice.models.server import Script
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response


class PracticeDeepResearch:
    """Responses in the background, and chat completions. Use as an async context manager."""

    def __init__(self, brain: Script = tree_script, *, states_p: bool = True) -> None:
        self._brain = brain
        self._states_p = states_p
        self._format = OpenAIFormat()
        self._server = PracticeServer()
        self._server.route("POST", "/v1/responses", self._begin)
        self._server.route("GET", "/v1/responses/*", self._look)
        self._server.route("POST", "/v1/chat/completions", self._chat)
        self._researches: dict[str, asyncio.Task[dict[str, Any]]] = {}
        self.asked: list[dict[str, Any]] = []
        """Bodies of all researches."""
        self.read: list[str] = []
        """Everything the MCP server showed."""

    @property
    def url(self) -> str:
        """Without a path."""
        return self._server.url

    async def __aenter__(self) -> "PracticeDeepResearch":
        """Start."""
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Stop."""
        for task in self._researches.values():
            task.cancel()
        await self._server.__aexit__()

    def _chat(self, request: ServerRequest) -> ServerResponse:
        heard = self._format.hear(request.path, request.json(), sha256(request.body).hexdigest())
        return json_response(self._format.say(self._brain(heard), heard))

    def _begin(self, request: ServerRequest) -> ServerResponse:
        body = request.json()
        self.asked.append(body)
        name = f"resp_{len(self.asked)}"
        self._researches[name] = asyncio.create_task(self._research(name, body))
        return json_response({"id": name, "status": "queued", "output": []})

    def _look(self, request: ServerRequest) -> ServerResponse:
        task = self._researches[request.path.rpartition("/")[2]]
        if not task.done():
            return json_response({"id": request.path.rpartition("/")[2], "status": "in_progress", "output": []})
        return json_response(task.result())

    async def _research(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        words = body["input"][-1]["content"][0]["text"]
        claim = words.partition("# Claim\n\n")[2].partition("\n")[0]
        served = body["tools"][0]
        try:
            calls = await self._ask(served["server_url"], served["authorization"], claim)
        except Exception as error:  # whatever went wrong between the two is the research's failure
            return {"id": name, "status": "failed", "error": {"message": repr(error)}, "output": []}
        addresses = [row["url"] for call in calls if call["name"] == "search" for row in _rows(call["output"])]
        end = {"p": chance(claim), "key_factor": "What was read.", "sources": addresses[:2]}
        report = f"Read {len(calls)} times about: {claim}"
        text = f"{report}\n\n```json\n{json.dumps(end)}\n```" if self._states_p else report
        said = {"type": "message", "content": [{"type": "output_text", "text": text}]}
        usage = {"input_tokens": 5000, "output_tokens": 700, "input_tokens_details": {"cached_tokens": 0}}
        output = [{"type": "reasoning", "summary": []}, *calls, said]
        return {"id": name, "status": "completed", "model": body["model"], "output": output, "usage": usage}

    async def _ask(self, url: str, token: str, claim: str) -> list[dict[str, Any]]:
        """One search and one look at its first result, over MCP."""
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            known = {tool.name for tool in (await client.list_tools()).tools}
            assert known == {"search", "fetch"}
            calls = [await self._call(client, "search", {"query": claim})]
            rows = _rows(calls[0]["output"])
            if rows:
                calls.append(await self._call(client, "fetch", {"id": rows[0]["id"]}))
            return calls

    async def _call(self, client: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = await client.call_tool(name, arguments)
        text = found.content[0].text
        self.read.append(text)
        place = f"mcp_{len(self.read)}"
        return {"type": "mcp_call", "id": place, "name": name, "arguments": json.dumps(arguments), "output": text}


def _rows(output: str) -> list[dict[str, Any]]:
    try:
        return json.loads(output)["results"]
    except (ValueError, KeyError):
        return []
