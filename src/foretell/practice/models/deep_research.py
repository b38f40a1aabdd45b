"""Deep research in OpenAI's Responses format: a model that itself calls the MCP server named in the request."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from foretell.practice.models.formats import response_body
from foretell.practice.models.improvise import chance

TOKENS = 5000, 700
"""Input and output tokens of every research task."""


class PracticeDeepResearch:
    """Runs research in the background: one search for the words of the claim, then one fetch of the first result."""

    def __init__(self) -> None:
        self.states_p = True
        """Whether reports end with a probability."""
        self.requests: list[Mapping[str, Any]] = []
        """Bodies of all requests."""
        self.read: list[str] = []
        """Everything that the MCP server returned."""
        self._tasks: dict[str, asyncio.Task[dict[str, Any]]] = {}

    def begin(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Start a research task; the response contains its id."""
        self.requests.append(body)
        id = f"resp_{len(self.requests)}"
        self._tasks[id] = asyncio.create_task(self._research(id, body))
        return {"id": id, "status": "queued", "output": []}

    def state(self, id: str) -> dict[str, Any]:
        """Return the state of a research task, with its report once it is finished."""
        task = self._tasks[id]
        return task.result() if task.done() else {"id": id, "status": "in_progress", "output": []}

    def cancel(self) -> None:
        """Cancel all research tasks."""
        for task in self._tasks.values():
            task.cancel()

    async def _research(self, id: str, body: Mapping[str, Any]) -> dict[str, Any]:
        words = body["input"][-1]["content"]
        claim = words.partition("# Claim\n\n")[2].partition("\n")[0]
        try:
            calls = await self._look_up(body["tools"][0], claim)
        except Exception as error:  # whatever went wrong between the two is the research's failure
            return {"id": id, "status": "failed", "error": {"message": repr(error)}, "output": []}
        addresses = [row["url"] for call in calls if call["name"] == "search" for row in _rows(call["output"])]
        end = {"p": chance(claim), "key_factor": "What was read.", "sources": addresses[:2]}
        report = f"Read {len(calls)} times about: {claim}"
        text = f"{report}\n\n```json\n{json.dumps(end)}\n```" if self.states_p else report
        message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
        return response_body(id, body["model"], [{"type": "reasoning", "summary": []}, *calls, message], TOKENS)

    async def _look_up(self, served: Mapping[str, Any], claim: str) -> list[dict[str, Any]]:
        """Search once and fetch the first result, over MCP."""
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {served['authorization']}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(served["server_url"], http_client=http)) as client,
        ):
            known = {tool.name for tool in (await client.list_tools()).tools}
            if known != {"search", "fetch"}:
                raise ValueError(f"deep research needs the tools search and fetch, not {sorted(known)}")
            calls = [await self._call(client, "search", {"query": claim})]
            if rows := _rows(calls[0]["output"]):
                calls.append(await self._call(client, "fetch", {"id": rows[0]["id"]}))
            return calls

    async def _call(self, client: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        text = (await client.call_tool(name, arguments)).content[0].text
        self.read.append(text)
        id = f"mcp_{len(self.read)}"
        return {"type": "mcp_call", "id": id, "name": name, "arguments": json.dumps(arguments), "output": text}


def _rows(output: str) -> list[dict[str, Any]]:
    try:
        return json.loads(output)["results"]
    except (ValueError, KeyError):
        return []
