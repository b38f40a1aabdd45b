"""OpenAI-compatible chat completions, straight over aiohttp: a tenth of the CPU that an SDK takes per call."""

import json
from typing import Any, Literal

from foretell.llm.cost import BYTES_PER_TOKEN, estimate_tokens
from foretell.llm.failures import ReplyLost
from foretell.llm.message import Finish, Reply, Request, Tokens, ToolCall
from foretell.llm.model import ModelBusy, ModelError
from foretell.llm.names import ModelName
from foretell.llm.wires.openai_body import encoded
from foretell.llm.wires.post import Post, Posted, need_aiohttp
from foretell.llm.wires.problems import http_problem, retry_after, without_key

Flavour = Literal["openai", "openrouter", "compat", "local"]
_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "refusal"}


class OpenAIChat:
    """One server that speaks the format: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp."""

    def __init__(self, flavour: Flavour, address: str, key: str = "") -> None:
        need_aiohttp()
        self._flavour: Flavour = flavour
        self._key = key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        if flavour == "openrouter":
            headers["X-Title"] = "foretell"
        self._post = Post(f"{address.rstrip('/')}/chat/completions", headers)

    def __repr__(self) -> str:
        return f"OpenAIChat({self._flavour})"

    async def complete(self, request: Request) -> Reply:
        """One request, one reply; whoever stands outside limits time and tries again."""
        name = ModelName.read(request.model).name
        try:
            posted = await self._post(encoded(request, provider=self._flavour, name=name))
        except ModelBusy as error:
            raise type(error)(f"{request.model}: {without_key(str(error), self._key)}") from None
        found = _json(posted)
        if posted.status != 200 or not found or _error(found):
            raise self._problem(request.model, posted, found)
        try:
            return _reply(found, request)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ReplyLost(f"{request.model}: the reply has no choices that can be read") from None

    async def close(self) -> None:
        """Close connections."""
        await self._post.close()

    def _problem(self, model: str, posted: Posted, found: dict[str, Any]) -> ModelError:
        error = _error(found)
        if posted.status == 200 and not error:
            return ReplyLost(f"{model}: the reply is no JSON or was cut off")
        told = without_key(str(error.get("message") or ""), self._key)
        code = error.get("code")
        # OpenRouter answers 200 and puts the status of the provider behind it into the error.
        status = code if posted.status == 200 and isinstance(code, int) else posted.status
        if status == 200:
            status = 502
        words = f"{code} {error.get('type')}"
        return http_problem(status, told, model=model, wait=retry_after(posted.headers), code=words)


def _json(posted: Posted) -> dict[str, Any]:
    try:
        found = json.loads(posted.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _error(found: dict[str, Any]) -> dict[str, Any]:
    error: Any = found.get("error")
    if not error and found.get("choices"):
        first: Any = found["choices"][0]
        error = first.get("error") if isinstance(first, dict) else None
    if not error:
        return {}
    return error if isinstance(error, dict) else {"message": str(error)}


def _reply(found: dict[str, Any], request: Request) -> Reply:
    choice = found["choices"][0]
    message = choice["message"]
    calls = tuple(_call(call, place) for place, call in enumerate(message.get("tool_calls") or ()))
    refusal = message.get("refusal")
    text = _text(message.get("content")) or (refusal or "")
    finish: Finish = _FINISH.get(choice.get("finish_reason") or "", "tool" if calls else "stop")
    return Reply(
        text=text,
        calls=calls,
        finish="refusal" if refusal and not calls else finish,
        tokens=_tokens(found.get("usage"), request, text, calls),
        model=found.get("model") or "",
        thoughts=json.dumps(thoughts) if (thoughts := message.get("reasoning_details")) else "",
    )


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content or ""


def _call(call: Any, place: int) -> ToolCall:
    arguments = call["function"].get("arguments")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(id=call.get("id") or f"call_{place}", name=call["function"]["name"], arguments=written)


def _tokens(usage: Any, request: Request, text: str, calls: tuple[ToolCall, ...]) -> Tokens:
    """As counted by the server; an estimate where it does not count, so that a budget of tokens still holds."""
    if not isinstance(usage, dict) or not usage.get("prompt_tokens"):
        size = len(text) + sum(len(call.arguments) for call in calls)
        return Tokens(input=estimate_tokens(request).input, output=int(size / BYTES_PER_TOKEN) + 1)
    details = usage.get("prompt_tokens_details") or {}
    return Tokens(
        input=int(usage["prompt_tokens"]),
        output=int(usage.get("completion_tokens") or 0),
        cached=int(details.get("cached_tokens") or 0),
        stored=int(details.get("cache_write_tokens") or 0),
    )
