"""Fakes of the batch services of OpenAI, Anthropic and Google, with the same validation as the real ones.

Written from the providers' documentation, independently of the code under test.
"""

import asyncio
import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from models.strict_servers import Json, Refusal, refuse

KEY = "k-secret"


class NoRoom(Exception):
    """A batch is refused because of the load, with the messages of the three providers."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status
        self.body = {
            429: {"error": {"code": 429, "message": "Resource exhausted", "status": "RESOURCE_EXHAUSTED"}},
            503: {"error": {"code": 503, "message": "The model is overloaded", "status": "UNAVAILABLE"}},
            529: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        }[status]


class BatchProvider:
    """The batch endpoints of OpenAI, Anthropic and Google."""

    def __init__(self) -> None:
        self.open = threading.Event()
        """Batches end when it is set."""
        self.batches: dict[str, dict[str, Json]] = {}
        self.files: dict[str, bytes] = {}
        self.endings: dict[str, str] = {}
        """How a request with this word ends if it is not answered: expired, refused, overloaded or lost."""
        self.state = ""
        """How whole batches end if they fail."""
        self.room: int | None = None
        """How many requests may wait; a larger batch is refused."""
        self.refusals: list[int] = []
        """Status codes with which the next batches are refused."""
        self.refused: list[int] = []
        """The sizes of the batches refused for lack of room."""
        self.looks = 0

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**25)
        app.router.add_post("/v1/files", self.guarded(self.upload))
        app.router.add_get("/v1/files/{id}/content", self.guarded(self.download))
        app.router.add_post("/v1/batches", self.guarded(self.openai))
        app.router.add_get("/v1/batches/{id}", self.guarded(self.openai_batch))
        app.router.add_post("/v1/messages/batches", self.guarded(self.anthropic))
        app.router.add_get("/v1/messages/batches/{id}", self.guarded(self.anthropic_batch))
        app.router.add_get("/v1/messages/batches/{id}/results", self.guarded(self.anthropic_results))
        app.router.add_post("/v1beta/models/{model}:batchGenerateContent", self.guarded(self.google))
        app.router.add_get("/v1beta/batches/{id}", self.guarded(self.google_batch))
        return app

    def guarded(self, handler: Any) -> Any:
        async def answer(request: web.Request) -> web.Response:
            try:
                assert KEY in " ".join(request.headers.values())
                return await handler(request)
            except NoRoom as full:
                return web.json_response(full.body, status=full.status)
            except Refusal as refusal:
                error = {"type": "invalid_request_error", "message": str(refusal)}
                return web.json_response({"error": error}, status=refusal.status)

        return answer

    def took(self, bodies: dict[str, Json]) -> str:
        if self.refusals:
            self.refused.append(len(bodies))
            raise NoRoom(self.refusals.pop(0))
        for key, body in bodies.items():
            refuse(not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", key), "custom_id")
            refuse({"stream", "service_tier", "serviceTier"} & body.keys(), "a batch takes no such field")
        self.batches[f"b{len(self.batches)}"] = bodies
        return f"b{len(self.batches) - 1}"

    def ending(self, body: Json) -> str:
        words = json.dumps(body)
        return next((ending for word, ending in self.endings.items() if word in words), "")

    @property
    def ended(self) -> bool:
        self.looks += 1
        return self.open.is_set()

    def full(self, id: str) -> bool:
        """Whether a batch has more requests than may wait."""
        full = self.room is not None and len(self.batches[id]) > self.room
        if full:
            self.refused.append(len(self.batches[id]))
        return full

    # OpenAI.

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        refuse(form.get("purpose") != "batch", "purpose")
        file = form["file"]
        assert isinstance(file, web.FileField)
        self.files[f"f{len(self.files)}"] = file.file.read()
        return web.json_response({"id": f"f{len(self.files) - 1}", "object": "file", "purpose": "batch"})

    async def download(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["id"]])

    async def openai(self, request: web.Request) -> web.Response:
        batch = await request.json()
        refuse(batch["completion_window"] != "24h", "completion_window")
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        refuse(any(line.keys() != {"custom_id", "method", "url", "body"} for line in lines), "fields of a line")
        refuse({(line["method"], line["url"]) for line in lines} != {("POST", batch["endpoint"])}, "endpoint")
        refuse(len({line["body"]["model"] for line in lines}) != 1, "one model for each batch")
        bodies = {line["custom_id"]: line["body"] for line in lines}
        refuse(len(bodies) != len(lines), "custom_id given twice")
        return web.json_response({"id": self.took(bodies), "object": "batch", "status": "validating"})

    async def openai_batch(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        if not self.ended:
            return web.json_response({"id": id, "object": "batch", "status": "in_progress"})
        if self.full(id):
            text = "Enqueued token limit reached for gpt-6-sol in organization org-x. Limit: 90,000 enqueued tokens."
            error = {"code": "token_limit_exceeded", "message": text, "line": None, "param": None}
            return web.json_response({"id": id, "status": "failed", "errors": {"object": "list", "data": [error]}})
        if self.state == "failed":
            error = {"code": "invalid_json_line", "message": "line 1 is no JSON", "line": 1}
            return web.json_response({"id": id, "status": "failed", "errors": {"data": [error]}})
        lines: dict[str, list[Json]] = {"output": [], "error": []}
        for key, body in self.batches[id].items():
            match self.ending(body):
                case "":
                    answer = {"status_code": 200, "request_id": "q", "body": self.response(body)}
                    lines["output"].append({"id": "l", "custom_id": key, "response": answer, "error": None})
                case "expired":
                    error = {"code": "batch_expired", "message": "This request could not be executed in time."}
                    lines["error"].append({"id": "l", "custom_id": key, "response": None, "error": error})
                case "overloaded":
                    answer = {"status_code": 429, "body": {"error": {"message": "Rate limit reached", "code": "x"}}}
                    lines["error"].append({"id": "l", "custom_id": key, "response": answer, "error": None})
                case "refused":
                    answer = {"status_code": 400, "body": {"error": {"message": "the prompt is odd"}}}
                    lines["error"].append({"id": "l", "custom_id": key, "response": answer, "error": None})
                case _:
                    pass
        for name, file_lines in lines.items():
            self.files[f"{id}-{name}"] = "\n".join(map(json.dumps, file_lines)).encode()
        status = "expired" if "expired" in self.endings.values() else "completed"
        files = {"output_file_id": f"{id}-output", "error_file_id": f"{id}-error"}
        return web.json_response({"id": id, "status": status, **files})

    def response(self, body: Json) -> Json:
        """A reply of OpenAI's model. The tier in it is not the one that is billed."""
        return {
            "id": "r",
            "status": "completed",
            "service_tier": "default",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": word_of(body)}]}],
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }

    # Anthropic.

    async def anthropic(self, request: web.Request) -> web.Response:
        refuse(request.headers.get("anthropic-version") != "2023-06-01", "anthropic-version")
        entries = (await request.json())["requests"]
        refuse(any(entry.keys() != {"custom_id", "params"} for entry in entries), "fields of a request")
        refuse(any("max_tokens" not in entry["params"] for entry in entries), "max_tokens")
        id = self.took({entry["custom_id"]: entry["params"] for entry in entries})
        return web.json_response({"id": id, "type": "message_batch", "processing_status": "in_progress"})

    async def anthropic_batch(self, request: web.Request) -> web.Response:
        status = "ended" if self.ended else "in_progress"
        return web.json_response({"id": request.match_info["id"], "processing_status": status})

    async def anthropic_results(self, request: web.Request) -> web.Response:
        lines: list[Json] = []
        for key, body in self.batches[request.match_info["id"]].items():
            message = {
                "content": [{"type": "text", "text": word_of(body)}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 100, "output_tokens": 10, "service_tier": "batch"},
            }
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": "the prompt is odd"}}
            result = {
                "": {"type": "succeeded", "message": message},
                "expired": {"type": "expired"},
                "refused": {"type": "errored", "error": error},
                "overloaded": {
                    "type": "errored",
                    "error": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
                },
            }.get(self.ending(body))
            lines += [{"custom_id": key, "result": result}] if result else []
        return web.Response(text="\n".join(map(json.dumps, lines)))

    # Google.

    async def google(self, request: web.Request) -> web.Response:
        refuse(request.match_info["model"] != "gemini-3.8-flash", "model")
        batch = (await request.json())["batch"]
        refuse(batch.keys() != {"displayName", "inputConfig"}, "fields of a batch")
        entries = batch["inputConfig"]["requests"]["requests"]
        id = self.took({entry["metadata"]["key"]: entry["request"] for entry in entries})
        return web.json_response({"name": f"batches/{id}", "metadata": {"state": "BATCH_STATE_PENDING"}})

    async def google_batch(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        if not self.ended:
            return web.json_response({"name": f"batches/{id}", "metadata": {"state": "BATCH_STATE_RUNNING"}})
        if self.full(id):
            error = {"code": 8, "message": "The quota of enqueued tokens is exhausted.", "status": "RESOURCE_EXHAUSTED"}
            metadata = {"state": "BATCH_STATE_FAILED"}
            return web.json_response({"name": f"batches/{id}", "metadata": metadata, "done": True, "error": error})
        lines: list[Json] = []
        for key, body in self.batches[id].items():
            response = {
                "candidates": [{"content": {"parts": [{"text": word_of(body)}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
            }
            error = {"code": 3, "message": "the prompt is odd"}
            busy = {"code": 8, "message": "Resource exhausted"}
            endings = {"": {"response": response}, "refused": {"error": error}, "overloaded": {"error": busy}}
            line = endings.get(self.ending(body))
            lines += [{**line, "metadata": {"key": key}}] if line else []
        state = "EXPIRED" if "expired" in self.endings.values() else "SUCCEEDED"
        answer = {"inlinedResponses": {"inlinedResponses": lines}}
        metadata = {"state": f"BATCH_STATE_{state}"}
        return web.json_response({"name": f"batches/{id}", "metadata": metadata, "done": True, "response": answer})


def word_of(body: Json) -> str:
    """The text of the reply: the word in the request."""
    match = re.search(r"about (\w+)", json.dumps(body))
    assert match
    return match[1]


@contextmanager
def serving(provider: BatchProvider) -> Generator[str]:
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(provider.app())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
