"""Gemini generateContent."""

import json
from base64 import b64encode
from typing import Any

from foretell.fakes.providers.heard import Call, Heard, Said, Texts, Tool

_FINISH = {"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_ERRORS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


class GeminiFormat:
    """POST /v1beta/models/NAME:generateContent."""

    name = "gemini"

    def owns(self, path: str) -> bool:
        """Any version prefix will do."""
        return path.partition("?")[0].endswith(":generateContent")

    def hear(self, path: str, body: dict[str, Any], hash: str) -> Heard:
        """Read contents, tools, toolConfig and generationConfig."""
        texts = Texts()
        texts.add(body.get("systemInstruction"))
        texts.add(body["contents"])
        calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
        allowed = calling.get("allowedFunctionNames") or []
        config = body.get("generationConfig") or {}
        offered = [tool for group in body.get("tools") or () for tool in group.get("functionDeclarations") or ()]
        forced = calling.get("mode") == "ANY"
        return Heard(
            format=self.name,
            hash=hash,
            json=body,
            model=path.partition("?")[0].rpartition("/models/")[2].partition(":")[0],
            words="\n".join(texts.found),
            last=texts.found[-1] if texts.found else "",
            tools=tuple(_tool(tool) for tool in offered),
            force=None if not forced else allowed[0] if len(allowed) == 1 else "*",
            schema=config.get("responseJsonSchema") or config.get("responseSchema"),
        )

    def say(self, said: Said, heard: Heard) -> dict[str, Any]:
        """One candidate."""
        read, written = said.tokens(heard)
        parts: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
        parts += [_call(call) for call in said.calls]
        if said.thoughts and said.calls:
            parts[-len(said.calls)]["thoughtSignature"] = b64encode(said.thoughts.encode()).decode()
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": _FINISH[said.ending], "index": 0}
        return {
            "candidates": [candidate],
            "modelVersion": heard.model,
            "responseId": heard.hash[:16],
            "usageMetadata": {
                "promptTokenCount": read,
                "candidatesTokenCount": written,
                "totalTokenCount": read + written,
                "cachedContentTokenCount": said.cached,
            },
        }

    def fail(self, status: int, told: str) -> dict[str, Any]:
        """An error object."""
        return {"error": {"code": status, "message": told, "status": _ERRORS.get(status, "UNAVAILABLE")}}


def _tool(tool: dict[str, Any]) -> Tool:
    names = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    return Tool(name=tool["name"], schema=next((tool[name] for name in names if tool.get(name)), {}))


def _call(call: Call) -> dict[str, Any]:
    given = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
    return {"functionCall": {"name": call.name, "args": given}}
