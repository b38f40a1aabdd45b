"""The fake models: three formats, faults, counts, and their own process."""

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from fakes.models import FakeModelProcess, FakeModels, ModelFault
from foretell.models.structured_output import schema_errors
from foretell.practice.models.formats import ScriptedReply
from foretell.practice.models.server import example

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def _post(url: str, value: Any) -> tuple[int, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, data=json.dumps(value).encode(), timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_process_serves_three_formats_and_counts():
    with FakeModelProcess() as fake:
        for _ in range(2):
            status, reply = _post(f"{fake.url}/v1/chat/completions", CHAT)
            assert (status, reply["choices"][0]["message"]["content"]) == (200, "You said: hi")
        talk = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        assert _post(f"{fake.url}/v1/messages", talk)[1]["content"][0]["text"] == "You said: hi"
        gemini = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
        reply = _post(f"{fake.url}/v1beta/models/g:generateContent", gemini)[1]
        assert reply["candidates"][0]["content"]["parts"][0]["text"] == "You said: hi"
        stats = fake.stats()
        assert (stats["arrived"], sorted(stats["billed"].values()), stats["under_way"]) == (4, [1, 1, 2], 0)

        fake.fail({"kind": "status", "status": 429, "wait": 1.5})
        assert _post(f"{fake.url}/v1/chat/completions", CHAT)[0] == 429
        fake.reset()
        assert fake.stats()["billed"] == {}


def test_unknown_requests_are_refused():
    with FakeModelProcess() as fake:
        assert _post(f"{fake.url}/v1/chat/completions", {"model": "m"})[0] == 400
        assert _post(f"{fake.url}/v2/nothing", {})[0] == 404
        assert _post(f"{fake.url}/v1/messages", {"model": "m", "messages": [], "stream": True})[0] == 400
        assert fake.stats()["billed"] == {}


def test_script_is_used_in_order_and_only_completions_are_billed():
    async def main() -> None:
        async with FakeModels([ScriptedReply(text="one"), ScriptedReply(text="two")]) as fake:
            fake.fail(ModelFault(kind="status", status=500))
            url = f"{fake.url}/v1/chat/completions"
            answers = [await asyncio.to_thread(_post, url, CHAT) for _ in range(3)]
            assert [status for status, _ in answers] == [500, 200, 200]
            assert [reply["choices"][0]["message"]["content"] for _, reply in answers[1:]] == ["one", "two"]
            assert (fake.arrived, sum(fake.billed.values()), fake.queries[-1].last) == (3, 2, "hi")

    asyncio.run(main())


@pytest.mark.parametrize("number", [0.0, 0.4, 1.0])
def test_improvised_values_fit_their_schema(number: float):
    schema: dict[str, Any] = {
        "$defs": {"E": {"type": "object", "properties": {"claim": {"type": "string", "minLength": 12}}}},
        "type": "object",
        "properties": {
            "p": {"type": "number", "minimum": 0.01, "maximum": 0.99},
            "n": {"type": "integer", "minimum": 3},
            "kind": {"enum": ["a", "b"]},
            "yes": {"type": "boolean"},
            "evidence": {"type": "array", "items": {"$ref": "#/$defs/E"}, "minItems": 2},
            "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        },
        "required": ["p", "n", "kind", "yes", "evidence", "maybe"],
    }
    assert schema_errors(example(schema, number), schema) == []
