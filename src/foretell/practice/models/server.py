"""A model server on a local port: every provider's format, batches and deep research, answered by a script."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from email import message_from_bytes
from email.policy import HTTP
from hashlib import sha256
from typing import Any, cast

from foretell.patterns import pattern
from foretell.practice.models.formats import (
    ModelQuery,
    ProviderFormat,
    ScriptedCall,
    ScriptedReply,
    format_of,
    response_body,
    without_references,
)
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response

# Replies without a script: valid, and equal for equal requests.


def improvise(query: ModelQuery) -> ScriptedReply:
    """Call the forced tool, or else the first; without tools reply with JSON for the schema, or else a sentence.

    The same request always gets the same reply.
    """
    number = int(query.hash[:8], 16) / 0xFFFFFFFF
    if query.force or query.tools:
        tool = next((tool for tool in query.tools if tool.name == query.force), query.tools[0])
        return ScriptedReply(calls=(ScriptedCall(name=tool.name, arguments=example(tool.schema, number)),))
    if query.schema is not None:
        return ScriptedReply(text=json.dumps(example(query.schema, number)))
    return ScriptedReply(text=f"You said: {query.last[:200]}")


def example(schema: Mapping[str, Any], number: float) -> Any:
    """Return a value that matches a JSON schema; numbers are `number` fitted into their range.

    >>> example({"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}, 0.25)
    {'p': 0.25}
    """
    return _example(without_references(schema), number)


def _example(schema: Mapping[str, Any], number: float) -> Any:
    for fixed in ("const", "default"):
        if schema.get(fixed) is not None:
            return schema[fixed]
    if schema.get("enum"):
        return schema["enum"][0]
    choices = schema.get("anyOf") or schema.get("oneOf")
    return _example(choices[0], number) if choices else _of_type(schema, number)


def _of_type(schema: Mapping[str, Any], number: float) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else str(kind).lower():
        case "object":
            parts: Mapping[str, Any] = schema.get("properties", {})
            return {name: _example(part, number) for name, part in parts.items()}
        case "array":
            return [_example(schema.get("items") or {}, number)] * max(1, schema.get("minItems", 1))
        case "number":
            return round(_within(schema, number), 6)
        case "integer":
            return int(_within(schema, number * 100))
        case "boolean":
            return number > 0.5
        case "null":
            return None
        case _:
            return "made up".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength", 100)]


def _within(schema: Mapping[str, Any], number: float) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", min(0, number)))
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(number, low)))
    return low + (high - low) * number if "minimum" in schema and "maximum" in schema else min(max(number, low), high)


_OWN_PORT = pattern(r"//(localhost|127\.0\.0\.1):\d+")


def without_ports(text: str) -> str:
    """Return a text in which local servers have one port: theirs are chosen by the system, differently each time.

    >>> without_ports("see http://localhost:40123/courier/7 and http://localhost:8123/")
    'see http://localhost:00000/courier/7 and http://localhost:00000/'
    """
    return _OWN_PORT.sub(r"//\1:00000", text)


def unit(text: str) -> float:
    """Return a pseudo-random number from 0 to 1 that depends only on the text, whatever the ports in it."""
    return int(sha256(without_ports(text).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def chance(text: str) -> float:
    """Return a pseudo-random probability from 0.1 to 0.9 that depends only on the text."""
    return round(0.1 + 0.8 * unit(text), 4)


# Batch APIs of OpenAI, Anthropic and Google; a batch is complete by the time a client polls it.

AnswerOne = Callable[[str, dict[str, Any]], ServerResponse]
"""Answers one request of a batch, given the path it would have been posted to and its body."""


class PracticeBatches:
    """Accepts batches and answers each of their requests like a single request."""

    def __init__(self, answer: AnswerOne) -> None:
        self._answer = answer
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, Any] = {}

    def respond(self, request: ServerRequest) -> ServerResponse | None:
        """Answer a request to a batch API; None if it is for something else."""
        path = request.path.removeprefix("/v1beta").removeprefix("/v1").strip("/")
        try:
            return self._get(path.split("/")) if request.method == "GET" else self._post(path.split("/"), request)
        except (KeyError, TypeError, ValueError) as error:
            return json_response({"error": {"message": f"not understood: {error!r}"}}, 400)

    def _post(self, path: list[str], request: ServerRequest) -> ServerResponse | None:
        match path:
            case ["files"]:
                return json_response({"id": self._store_file(_uploaded(request)), "object": "file"})
            case ["batches"]:
                id = self._openai(request.json())
                return json_response({"id": id, "object": "batch", "status": "validating"})
            case ["messages", "batches"]:
                id = self._anthropic(request.json()["requests"])
                return json_response({"id": id, "type": "message_batch", "processing_status": "in_progress"})
            case ["models", name] if name.endswith(":batchGenerateContent"):
                requests = request.json()["batch"]["inputConfig"]["requests"]["requests"]
                return json_response({"name": f"batches/{self._google(name.partition(':')[0], requests)}"})
            case _:
                return None

    def _get(self, path: list[str]) -> ServerResponse | None:
        match path:
            case ["batches", id]:
                return json_response(self._batches[id])
            case ["files", id, "content"] | ["messages", "batches", id, "results"]:
                return ServerResponse(body=self._files[id])
            case ["messages", "batches", id]:
                return json_response({"id": id, "type": "message_batch", "processing_status": "ended"})
            case _:
                return None

    def _store_file(self, body: bytes) -> str:
        id = f"file-{len(self._files) + 1}"
        self._files[id] = body
        return id

    def _openai(self, batch: Mapping[str, Any]) -> str:
        lines = [json.loads(line) for line in self._files[batch["input_file_id"]].splitlines() if line.strip()]
        answers: list[dict[str, Any]] = []
        for line in lines:
            answer = self._answer(line["url"], line["body"])
            response = {"status_code": answer.status, "body": json.loads(answer.body)}
            answers.append({"custom_id": line["custom_id"], "response": response, "error": None})
        id = f"batch_{len(self._batches) + 1}"
        self._batches[id] = {
            "id": id,
            "object": "batch",
            "status": "completed",
            "output_file_id": self._store_file(_lines(answers)),
            "error_file_id": None,
        }
        return id

    def _anthropic(self, requests: list[Mapping[str, Any]]) -> str:
        answers: list[dict[str, Any]] = []
        for request in requests:
            answer = self._answer("/v1/messages", request["params"])
            body = json.loads(answer.body)
            ended = {"type": "succeeded", "message": body}
            answers.append(
                {
                    "custom_id": request["custom_id"],
                    "result": ended if answer.status == 200 else {"type": "errored", "error": body},
                }
            )
        return self._store_file(_lines(answers))

    def _google(self, model: str, requests: list[Mapping[str, Any]]) -> str:
        answers: list[dict[str, Any]] = []
        for request in requests:
            answer = self._answer(f"/v1beta/models/{model}:generateContent", request["request"])
            body = json.loads(answer.body)
            ended = {"response": body} if answer.status == 200 else {"error": {"code": 3, **body["error"]}}
            answers.append({"metadata": request["metadata"], **ended})
        id = f"batch_{len(self._batches) + 1}"
        self._batches[id] = {
            "name": f"batches/{id}",
            "done": True,
            "metadata": {"state": "BATCH_STATE_SUCCEEDED"},
            "response": {"inlinedResponses": {"inlinedResponses": answers}},
        }
        return id


def _lines(answers: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(answer).encode() for answer in answers)


def _uploaded(request: ServerRequest) -> bytes:
    """Return the file in an uploaded form."""
    head = f"Content-Type: {request.headers['content-type']}\n\n".encode()
    form = message_from_bytes(head + request.body, policy=HTTP)
    for part in form.iter_parts():
        if part.get_filename() is not None:
            return cast("bytes", part.get_payload(decode=True))
    raise ValueError("the form contains no file")


# Deep research in OpenAI's Responses format: a model that itself calls the MCP server named in the request.

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
        except Exception as error:  # any error makes the research fail
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


# The server.

Script = Callable[[ModelQuery], ScriptedReply]


class ReplyRefused(Exception):
    """Raised by a script to make the provider refuse the request with this message."""


class PracticeModels(PracticeServer):
    """All formats on one port. Use it as an async context manager; `url` is then the address without a path.

    Replies come from a script: a function of the request, or a list used in order; without a script they are
    improvised.
    """

    def __init__(
        self, script: Script | Iterable[ScriptedReply] | None = None, *, latency: float = 0.0, port: int = 0
    ) -> None:
        super().__init__(latency=latency, port=port)
        self.script = script if callable(script) else improvise if script is None else _in_order(script)
        self.research = PracticeDeepResearch()
        self.batches = PracticeBatches(self._answer_one)
        self.route("POST", "*", self.respond)
        self.route("GET", "*", self.respond)

    async def __aexit__(self, *_: object) -> None:
        """Stop the server and cancel research tasks in progress."""
        self.research.cancel()
        await super().__aexit__()

    def respond(self, request: ServerRequest) -> ServerResponse:
        """Answer any request."""
        if (batch := self.batches.respond(request)) is not None:
            return batch
        if request.method == "GET" and "/responses/" in request.path:
            return json_response(self.research.state(request.path.rpartition("/")[2]))
        format = format_of(request.path)
        if format is None:
            return json_response({"error": {"message": f"nothing at {request.path}"}}, 404)
        try:
            query = format.read(request.path, request.json(), _digest(request))
        except (ValueError, KeyError, TypeError) as error:
            return json_response(format.error(400, f"not understood: {error!r}"), 400)
        if any(tool.get("type") == "mcp" for tool in query.json.get("tools") or ()):
            return json_response(self.research.begin(query.json))
        return self.complete(format, query)

    def _answer_one(self, path: str, body: dict[str, Any]) -> ServerResponse:
        """Answer one request of a batch."""
        content = json.dumps(body, separators=(",", ":")).encode()
        return self.respond(ServerRequest(method="POST", path=path, target=path, query={}, headers={}, body=content))

    def complete(self, format: ProviderFormat, query: ModelQuery) -> ServerResponse:
        """Return the script's reply in the provider's format."""
        try:
            return json_response(format.reply(self.script(query), query))
        except ReplyRefused as refused:
            return json_response(format.error(400, str(refused)), 400)


LENGTH_LIMITS = ("max_tokens", "max_output_tokens", "max_completion_tokens")


def _digest(request: ServerRequest) -> str:
    """Return a hash of the request without the maximum reply length, which varies with the remaining budget."""
    body = {name: value for name, value in request.json().items() if name not in LENGTH_LIMITS}
    if isinstance(body.get("generationConfig"), dict):
        config = {name: value for name, value in body["generationConfig"].items() if name != "maxOutputTokens"}
        body = {name: value for name, value in {**body, "generationConfig": config}.items() if value != {}}
    return sha256(f"{request.target}\n{json.dumps(body, separators=(',', ':'))}".encode()).hexdigest()


def _in_order(replies: Iterable[ScriptedReply]) -> Script:
    rest = iter(replies)
    return lambda _query: next(rest, ScriptedReply(text="the script of this model is used up"))
