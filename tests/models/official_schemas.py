"""The official schemas of model providers, and the errors of a request by these schemas."""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

FOLDER = Path(os.environ.get("FORETELL_RECORDINGS", Path(__file__).parents[3] / "shared/data/wire/models"))


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from walk(part)


@cache
def schema(name: str) -> Draft202012Validator:
    document = json.loads((FOLDER / "specs" / name).read_text())
    if "schemas" in document:
        document = json.loads(json.dumps(document["schemas"]).replace('"$ref": "', '"$ref": "#/$defs/'))
        top = "GoogleCloudAiplatformV1beta1GenerateContentRequest"
        document = {"$ref": f"#/$defs/{top}", "properties": document[top]["properties"], "$defs": _json_types(document)}
    return Draft202012Validator(document)


def _json_types(schemas: dict[str, Any]) -> dict[str, Any]:
    """Convert Google's discovery format to JSON schema: no type "any", and no formats of its own."""
    for part in walk(schemas):
        if part.get("type") == "any":
            del part["type"]
        part.pop("format", None) if isinstance(part.get("format"), str) else None
        part.pop("id", None) if isinstance(part.get("id"), str) else None
    return schemas


SPECS = {
    "responses": "openai_responses_request.schema.json",
    "messages": "anthropic_messages_request.schema.json",
    "generateContent": "google_aiplatform_v1beta1_generateContent.discovery.json",
    "chat": "openai_chat_request.schema.json",
}
KNOWN_ELSEWHERE = {"responses": set(), "messages": {"temperature"}, "generateContent": {"serviceTier"}, "chat": set()}
"""Valid fields that the schemas lack: one is from an older API version, the other from the Gemini API."""


def problems(api: str, body: dict[str, Any], spec: str = "") -> list[str]:
    validator = schema(spec or SPECS[api])
    unknown = body.keys() - validator.schema["properties"].keys() - KNOWN_ELSEWHERE[api]
    errors = [f"unknown field {name}" for name in sorted(unknown)]
    return errors + [
        f"{'/'.join(map(str, error.path))}: {error.message[:200]}" for error in validator.iter_errors(body)
    ]
