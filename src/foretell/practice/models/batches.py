"""Batch APIs of OpenAI, Anthropic and Google; a batch is complete by the time a client polls it."""

import json
from collections.abc import Callable, Mapping
from email import message_from_bytes
from email.policy import HTTP
from typing import Any, cast

from foretell.practice.server import ServerRequest, ServerResponse, json_response

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
            return self._look(path.split("/")) if request.method == "GET" else self._take(path.split("/"), request)
        except (KeyError, TypeError, ValueError) as error:
            return json_response({"error": {"message": f"not understood: {error!r}"}}, 400)

    def _take(self, path: list[str], request: ServerRequest) -> ServerResponse | None:
        match path:
            case ["files"]:
                return json_response({"id": self._keep_file(_uploaded(request)), "object": "file"})
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

    def _look(self, path: list[str]) -> ServerResponse | None:
        match path:
            case ["batches", id]:
                return json_response(self._batches[id])
            case ["files", id, "content"] | ["messages", "batches", id, "results"]:
                return ServerResponse(body=self._files[id])
            case ["messages", "batches", id]:
                return json_response({"id": id, "type": "message_batch", "processing_status": "ended"})
            case _:
                return None

    def _keep_file(self, body: bytes) -> str:
        id = f"file-{len(self._files) + 1}"
        self._files[id] = body
        return id

    def _openai(self, made: Mapping[str, Any]) -> str:
        lines = [json.loads(line) for line in self._files[made["input_file_id"]].splitlines() if line.strip()]
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
            "output_file_id": self._keep_file(_lines(answers)),
            "error_file_id": None,
        }
        return id

    def _anthropic(self, requests: list[Mapping[str, Any]]) -> str:
        answers: list[dict[str, Any]] = []
        for one in requests:
            answer = self._answer("/v1/messages", one["params"])
            body = json.loads(answer.body)
            ended = {"type": "succeeded", "message": body}
            answers.append(
                {
                    "custom_id": one["custom_id"],
                    "result": ended if answer.status == 200 else {"type": "errored", "error": body},
                }
            )
        return self._keep_file(_lines(answers))

    def _google(self, model: str, requests: list[Mapping[str, Any]]) -> str:
        answers: list[dict[str, Any]] = []
        for one in requests:
            answer = self._answer(f"/v1beta/models/{model}:generateContent", one["request"])
            body = json.loads(answer.body)
            ended = {"response": body} if answer.status == 200 else {"error": {"code": 3, **body["error"]}}
            answers.append({"metadata": one["metadata"], **ended})
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
    raise ValueError("the form holds no file")
