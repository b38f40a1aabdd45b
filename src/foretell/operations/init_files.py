"""Commented files to start from, each with a JSON schema beside it so that an editor completes and checks them."""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from foretell.data.files import write_atomically
from foretell.operations.requests import InitGridRequest, InitRunRequest
from foretell.operations.result import Result
from foretell.questions.errors import InputError

SchemaKind = Literal["run", "arena", "grid"]
CHOSEN_LATER = ("efforts", "marked")
"""Fields of a run that are found out when it is made; nobody writes them."""


def spec_schema(kind: SchemaKind) -> dict[str, Any]:
    """The JSON schema of a file as people write it: made from the very types that read it, and their short forms."""
    if kind == "arena":
        from foretell.arena.spec import ArenaSpec

        schema = _schema(ArenaSpec)
        entry = schema["$defs"]["EntrySpec"]
        entry["properties"]["model"] = {"type": "string", "description": "Short for models: {agent: NAME}."}
        entries = schema["properties"]["entries"]
        entries["additionalProperties"] = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/EntrySpec"}]}
        return schema
    from foretell.runs.spec import RunSpec

    run = _schema(RunSpec)
    for name in CHOSEN_LATER:
        del run["properties"][name]
    questions = run["properties"]["questions"]
    run["properties"]["questions"] = {
        "description": "Which questions to ask: a question set by name or a file, or its fields.",
        "anyOf": [{"type": "string"}, questions],
    }
    run["required"] = []  # A part of a grid, and what `foretell tournament` reads, have none of their own.
    if kind == "run":
        return run
    named = {"type": "object", "additionalProperties": True}
    parts: dict[str, Any] = {
        "name": {"type": "string", "description": "By which the result is saved with --keep."},
        "base": {**named, "description": "What all runs share: the fields of a run.", "properties": run["properties"]},
        "factors": {
            **named,
            "description": "What varies: a list of levels, or levels by name that set several fields.",
            "additionalProperties": {"anyOf": [{"type": "array"}, {"type": "object"}]},
        },
        "also": {"type": "array", "items": named, "description": "Runs beside the cross."},
        "without": {"type": "array", "items": named, "description": "Combinations to leave out."},
        "budget": {"type": "number", "exclusiveMinimum": 0, "description": "Dollars for all runs together."},
    }
    return {**run, "title": "Grid", "description": "An experiment as a file.", "properties": parts}


def _schema(kind: type) -> dict[str, Any]:
    from pydantic import ConfigDict, TypeAdapter, with_config

    read = with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))(kind)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(read).json_schema()}


def schema_text(kind: SchemaKind) -> bytes:
    """The schema as a file holds it."""
    return (json.dumps(spec_schema(kind), indent=1, ensure_ascii=False) + "\n").encode()


def write_commented(file: Path, text: str, kind: SchemaKind) -> Path:
    """Write a file whose first line names its schema, and the schema beside it; where that is."""
    schema = file.with_name(f"{kind}.schema.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(schema, schema_text(kind))
    write_atomically(file, f"# yaml-language-server: $schema={schema.name}\n{text}".encode())
    return schema


def template_text(name: str) -> str:
    """A file of the folder of templates."""
    return (files("foretell.operations") / "templates" / name).read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class CommentedFile(Result):
    """A file that was written, and what to do with it."""

    file: Path
    schema: Path
    next: str

    def __str__(self) -> str:
        return f"Wrote {self.file}, and {self.schema} for editors\nNext: {self.next}"


def init_run(request: InitRunRequest) -> CommentedFile:
    """Write a commented run to start from; as it stands it needs no key."""
    return _init(request.file, "run", f"foretell run {request.file}")


def init_grid(request: InitGridRequest) -> CommentedFile:
    """Write a commented grid to start from; as it stands it needs no key."""
    return _init(request.file, "grid", f"foretell grid {request.file} --plan")


def _init(file: Path, kind: SchemaKind, following: str) -> CommentedFile:
    if file.exists():
        raise InputError("is there already", path=file, hint="choose another name")
    schema = write_commented(file, template_text(f"{kind}.yaml"), kind)
    return CommentedFile(file=file, schema=schema, next=following)
