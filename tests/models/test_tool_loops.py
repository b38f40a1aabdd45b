"""Research of three steps with a forced last call, for all models of the table, with strict servers."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from foretell.models.facts import known_facts
from foretell.models.model import EFFORTS, ModelSettings, Request, SystemMessage, ToolResult, ToolSpec, UserMessage
from foretell.models.names import ModelName
from foretell.models.provider import ProviderConfig
from foretell.models.providers.client import HttpAnswer, HttpModel
from foretell.models.providers.services import (
    ANTHROPIC,
    COMPATIBLE_SERVER,
    DEEPSEEK,
    GOOGLE,
    MISTRAL,
    OPENAI,
    OPENROUTER,
    XAI,
)
from models import strict_servers as strict

WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
NUMBER = {"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}
TOOLS = (
    ToolSpec(name="look_up", description="Looks a word up.", parameters=WORD),
    ToolSpec(name="submit", description="Hands the answer in.", parameters=NUMBER),
)
ADDRESS = "http://127.0.0.1:9"
OTHER_CLAUDES = ("claude-haiku-5-5", "claude-opus-5", "claude-sonnet-5", "claude-opus-4-8")
MODELS = [
    *[("openai", OPENAI, strict.responses, model) for model in strict.EFFORTS if model.startswith(("gpt", "o"))],
    *[("xai", XAI, strict.responses, model) for model in strict.EFFORTS if model.startswith("grok")],
    *[("deepseek", DEEPSEEK, strict.responses, model) for model in strict.EFFORTS if model.startswith("deepseek")],
    *[
        ("anthropic", ANTHROPIC, strict.messages, model)
        for model in dict.fromkeys(
            (*strict.CLAUDE_NO_FORCE, *strict.CLAUDE_ALWAYS_THINKS, *strict.CLAUDE_SAMPLING, *OTHER_CLAUDES)
        )
    ],
    *[("google", GOOGLE, strict.gemini, model) for model in (*strict.GEMINI_LEVELS, "gemini-2.5-flash")],
    ("openrouter", OPENROUTER, lambda script: strict.chat(script, "openrouter"), "openai/gpt-6-sol"),
    *[
        ("mistral", MISTRAL, lambda script: strict.chat(script, "mistral"), model)
        for model in strict.EFFORTS
        if model.startswith("mistral")
    ],
    *[
        ("compat", COMPATIBLE_SERVER, lambda script, kind=kind: strict.chat(script, kind), model)
        for kind, model in (("lmstudio", "qwen3"), ("ollama", "qwen3:8b"), ("deepseek", "my-deepseek"), ("llama", "m"))
    ],
]


async def research(client: HttpModel, model: str, settings: ModelSettings) -> list[str]:
    """Names of the called tools, one for each step. The last call is forced."""
    opening = (SystemMessage(text="Forecast."), UserMessage(text="Will it rain?", cached=True))
    request = Request(model=model, messages=opening, tools=TOOLS, settings=settings)
    called: list[str] = []
    for step in range(1, 4):
        reply = await client.complete(replace(request, force="submit" if step == 3 else None))
        called += [call.name for call in reply.calls]
        results = [ToolResult(call_id=call.id, name=call.name, text="found") for call in reply.calls]
        request = replace(request, messages=(*request.messages, reply.as_message(), *results))
        assert reply.tokens.input == 100
        assert reply.finish == "tool"
    return called


async def run(provider: Any, handler: Any, name: str, settings: ModelSettings) -> tuple[list[str], list[Any]]:
    script = strict.Script()
    strictly = handler(script)
    client = provider.open(ProviderConfig(name=ModelName.read(name), key="k-secret", address=ADDRESS))

    async def send(request: Request, path: str, data: bytes) -> HttpAnswer:
        status, body = strict.answer(strictly, script, path, json.loads(data))
        return HttpAnswer(status=status, headers={}, body=json.dumps(body).encode())

    client._send = send  # Everything except the sockets.
    return await research(client, name, settings), script.requests


def test_all_suggested_models_are_tested():
    listed = {entry.name for table in known_facts() for entry in table.models if entry.name}
    assert listed <= {f"{service}:{model}" for service, _, _, model in MODELS}


@pytest.mark.parametrize(
    ("service", "provider", "handler", "model"), MODELS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_tool_loop_ends_with_the_forced_call(service: str, provider: Any, handler: Any, model: str):
    name = f"{service}:{model}" + (f"@{ADDRESS}" if service == "compat" else "")
    for effort in (None, *EFFORTS):
        settings = ModelSettings(effort=effort, temperature=0.0, max_tokens=16_000 if service == "anthropic" else None)
        called, requests = asyncio.run(run(provider, handler, name, settings))
        assert called == ["look_up", "look_up", "submit"], effort
        # Known capabilities need no refused requests.
        assert len(requests) == 3 if service != "compat" else 3 <= len(requests) <= 5, json.dumps(requests)[:2000]
