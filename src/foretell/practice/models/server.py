"""A model server on a local port: every provider's format, answered by a script."""

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from foretell.practice.models.batches import PracticeBatches
from foretell.practice.models.deep_research import PracticeDeepResearch
from foretell.practice.models.formats import ModelQuery, ProviderFormat, ScriptedReply, format_of
from foretell.practice.models.improvise import improvise
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response

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
        written = json.dumps(body, separators=(",", ":")).encode()
        return self.respond(ServerRequest(method="POST", path=path, target=path, query={}, headers={}, body=written))

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
