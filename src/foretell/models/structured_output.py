"""Structured answers: finding the JSON in a reply, checking its shape, and asking again until it is usable."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from string import ascii_letters
from typing import TYPE_CHECKING, Any, TypeVar, cast

from foretell.models.model import AssistantMessage, Message, Model, ModelError, Reply, Request, UserMessage
from foretell.patterns import pattern

if TYPE_CHECKING:
    from pydantic import TypeAdapter


# Finding the JSON in a reply: in a code block, after some prose, with a trailing comma, or cut off.

_CODE_BLOCK = pattern(r"```[a-zA-Z0-9]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_OPENING = pattern(r"[{\[]")
_STRING = pattern(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_TOKEN = pattern(r'"(?:\\.|[^"\\])*"?|[{}\[\]]', re.DOTALL)
_DEPTH = {"{": 1, "[": 1, "}": -1, "]": -1}
_LITERALS = {"True": "true", "False": "false", "None": "null"}


class NoJsonFound(ValueError):
    """The text contains no JSON, or none that can be read unambiguously."""


def read_json(text: str) -> Any:
    r"""The JSON object or list in a text.

    Models usually reason first and answer last, so the last complete value is used. Objects are preferred to lists, and
    a value that was cut off is used only if no other is complete.

    >>> read_json("Here you are:\n```json\n{'p': 0.3,}\n```")
    {'p': 0.3}
    >>> read_json('{"p": 0.3, "why": ["polls", "pri')
    {'p': 0.3, 'why': ['polls', 'pri']}
    """
    blocks = [block.strip() for block in reversed(_CODE_BLOCK.findall(text))]
    for candidate in (text.strip(), *blocks):
        value = _loaded(candidate)
        if isinstance(value, str):  # Some servers encode the arguments of a call twice.
            value = _loaded(value)
        if isinstance(value, dict | list):
            return value
    pieces = [piece for block in blocks for piece in _pieces(block)] or list(_pieces(text))
    pieces.sort(key=lambda piece: (not piece[1], not piece[0].startswith("{")))
    for piece, complete in pieces:
        value = _repaired(piece) if complete else _truncated(piece)
        if value is not None:
            return value
    raise NoJsonFound("it holds no JSON object" if not pieces else "its JSON cannot be read")


MOST_NESTED = 200
"""Largest depth of JSON that is parsed. Python's parsers recurse, and a finaliser may run when the stack is full."""


def _loaded(text: str) -> Any:
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += _DEPTH.get(token.group(), 0)
        if depth > MOST_NESTED:
            return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Outermost {…} and […] of a text, last first, and whether each is closed."""
    pieces: list[tuple[str, bool]] = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        end = _end(text, opening.start())
        pieces.append((text[opening.start() : end], end is not None))
        if end is None:
            break
        at = end
    return pieces[::-1]


def _end(text: str, start: int) -> int | None:
    """Position where the value that opens at `start` is closed."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += _DEPTH.get(token.group(), 0)
        if depth == 0:
            return token.end()
    return None


def _repaired(piece: str) -> Any:
    """Parse a complete value, repairing the usual faults; None if that fails."""
    loaded = _loaded(piece)
    if loaded is None:
        loaded = _loaded(_cleaned(piece))
    return _python_literal(piece) if loaded is None else loaded


def _truncated(piece: str) -> Any:
    """Parse a value that was cut off.

    A number at the very end may be incomplete (0.1 of 0.15) and is dropped with its key. An incomplete string is kept.
    """
    from pydantic_core import from_json

    inside_string = any(not _STRING.fullmatch(token) for token in _TOKEN.findall(piece) if token.startswith('"'))
    text = piece if inside_string else re.sub(r"-?\d[\d.eE+-]*\s*$", "", piece)
    for attempt in (text, _cleaned(text)):
        try:
            return from_json(attempt, allow_partial="trailing-strings")
        except ValueError:
            continue
    return None


def _cleaned(text: str) -> str:
    """The text without trailing commas and comments and with JSON's constants, changed only outside strings."""
    parts = re.split(f"({_STRING.pattern})", text, flags=re.DOTALL)
    for place in range(0, len(parts), 2):
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", parts[place], flags=re.DOTALL)
        code = re.sub(r"\b(True|False|None)\b", lambda name: _LITERALS[name.group()], code)
        parts[place] = re.sub(r",(\s*[}\]])", r"\1", code)
    return "".join(parts)


def _python_literal(text: str) -> Any:
    """Parse a dict as Python prints it, in single quotes."""
    from foretell.questions.codec import parse_literal

    try:
        value = parse_literal(text)
        json.dumps(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


# Checking a value against a JSON schema, with error messages for the model.

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def schema_errors(
    value: Any, schema: Mapping[str, Any], *, at: str = "", root: Mapping[str, Any] | None = None
) -> list[str]:
    """What is wrong with a value, one sentence each; empty if it matches the schema."""
    root = schema if root is None else root
    if "$ref" in schema:
        target: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[step]
        return schema_errors(value, target, at=at, root=root)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        tries = [schema_errors(value, choice, at=at, root=root) for choice in choices]
        return min(tries, key=len)
    return _own_errors(value, schema, at or "the value") or _part_errors(value, schema, at, root)


def _own_errors(value: Any, schema: Mapping[str, Any], place: str) -> list[str]:
    """Errors of the value itself: its type, and whether it is one of the allowed values."""
    wanted: Any = schema.get("type", [])
    kinds: list[str] = wanted if isinstance(wanted, list) else [str(wanted)]
    if kinds and not any(_has_type(value, kind) for kind in kinds):
        actual = next((kind for kind in _TYPES if _has_type(value, kind)), "unknown")
        return [f"{place} must be {' or '.join(kinds)}, not {actual}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place} must be one of {', '.join(map(str, schema['enum']))}"]
    if "const" in schema and value != schema["const"]:
        return [f"{place} must be {schema['const']}"]
    return []


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, object))


def _part_errors(value: Any, schema: Mapping[str, Any], at: str, root: Mapping[str, Any]) -> list[str]:
    """Errors in the fields of an object, the items of a list, or the size of a text or number."""
    if isinstance(value, dict):
        return _object_errors(cast("dict[str, Any]", value), schema, at, root)
    if isinstance(value, list):
        return _list_errors(cast("list[Any]", value), schema, at, root)
    place = at or "the value"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            return [f"{place} is too short"]
        return [f"{place} is too long"] if len(value) > schema.get("maxLength", len(value)) else []
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if value < schema.get("minimum", value) or (over is not None and value <= over):
        return [f"{place} is {value}, below {schema.get('minimum', over)}"]
    if value > schema.get("maximum", value) or (under is not None and value >= under):
        return [f"{place} is {value}, above {schema.get('maximum', under)}"]
    return []


def _object_errors(value: dict[str, Any], schema: Mapping[str, Any], at: str, root: Mapping[str, Any]) -> list[str]:
    known: Mapping[str, Any] = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    path = f"{at}." if at else ""
    errors = [f"{path}{name} is missing" for name in schema.get("required", ()) if name not in value]
    for name, part in value.items():
        if name not in known and extra is False:
            errors.append(f"{path}{name} is unknown")
        elif name in known or isinstance(extra, Mapping):
            errors += schema_errors(part, known.get(name, extra), at=f"{path}{name}", root=root)
    return errors


def _list_errors(value: list[Any], schema: Mapping[str, Any], at: str, root: Mapping[str, Any]) -> list[str]:
    items: Mapping[str, Any] = schema.get("items") or {}
    errors = [
        error
        for place, part in enumerate(value)
        for error in schema_errors(part, items, at=f"{at}[{place}]", root=root)
    ]
    if len(value) < schema.get("minItems", 0):
        errors.append(f"{at or 'the list'} needs at least {schema['minItems']} items")
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        errors.append(f"{at or 'the list'} may have at most {schema['maxItems']} items")
    return errors


def closed_object(
    properties: Mapping[str, Any], description: str = "", *, optional: Collection[str] = ()
) -> dict[str, Any]:
    """JSON schema of an object with these fields and no others, all required except the `optional` ones."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }
    return schema | ({"description": description} if description else {})


WORTH_SHARING, SHORTEST_SHARED = 100, 40
"""Characters that a shared definition must save, and its minimum length."""


def without_repeats(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same schema with repeated parts defined once.

    >>> shape = {"type": "integer", "minimum": 0, "maximum": 100}
    >>> short = without_repeats(closed_object({name: shape for name in "abcdefgh"}))
    >>> short["properties"]["a"], short["$defs"]
    ({'$ref': '#/$defs/a'}, {'a': {'type': 'integer', 'minimum': 0, 'maximum': 100}})
    """
    counts = Counter(json.dumps(part) for part in _subschemas(schema))
    saved = {text: (times - 1) * len(text) - 20 * times for text, times in counts.items()}
    worth = {part for part, saving in saved.items() if len(part) >= SHORTEST_SHARED and saving >= WORTH_SHARING}
    worth = set(sorted(worth, key=saved.__getitem__)[-len(ascii_letters) :])
    names: dict[str, str] = {}

    def shortened(part: Any) -> Any:
        if isinstance(part, list):
            return [shortened(item) for item in cast("list[Any]", part)]
        if not isinstance(part, dict):
            return part
        if (text := json.dumps(part)) in worth:
            # Only the outermost part is replaced, because parts inside a definition occur once.
            return {"$ref": f"#/$defs/{names.setdefault(text, ascii_letters[len(names)])}"}
        return {key: shortened(item) for key, item in cast("dict[str, Any]", part).items()}

    short = shortened(dict(schema))
    return {**short, "$defs": {name: json.loads(text) for text, name in names.items()}} if names else short


def _subschemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Every schema within a schema, outer ones first."""
    parts: list[Any] = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for part in (*parts, *([schema["items"]] if "items" in schema else ())):
        yield part
        yield from _subschemas(part)


# Typed answers: parse a model's text or arguments, and send errors back to the model a few times.

T = TypeVar("T")
LONGEST_ECHO = 2_000
"""Characters of an unusable answer that are sent back, which limits the cost of long ones."""
LONGEST_PROBLEM = 1_000
LONGEST_REPLY = 100_000
"""Characters of a reply that are examined."""
_CORRECTION = "answer could not be used: {}. Answer again, with one JSON object and nothing else."


class UnusableReply(ValueError):
    """A model's answer cannot be used. The message explains the reason to the model."""


class NoUsableAnswer(ModelError):
    """The model answered, but never in a usable form."""


async def ask_typed(model: Model, request: Request, kind: type[T], *, attempts: int = 3) -> T:
    """Ask for JSON in the shape of `kind`, a pydantic model or a dataclass.

    An answer that does not match is sent back with its errors, up to `attempts` times in all; then `NoUsableAnswer` is
    raised.
    """
    if request.schema is None:
        request = replace(request, schema=schema_of(kind))

    def correct(reply: Reply, problem: str) -> tuple[Message, ...]:
        # Leave out an empty turn, which some providers refuse. Leave out calls, which would need results.
        turn = (replace(reply.as_message(), calls=()),) if reply.text.strip() else ()
        return (*turn, UserMessage(text=f"Your {_CORRECTION.format(problem)}"))

    return await _ask_until(model, request, lambda reply: parse_reply(reply, kind), correct, attempts)


async def ask_until_usable(
    model: Model, request: Request, read: Callable[[Mapping[str, Any]], T], *, attempts: int = 3
) -> T:
    """The result of `read` for the JSON object in the reply.

    If it raises `UnusableReply`, the model gets the reason with a new request, up to `attempts` times in all; then
    `NoUsableAnswer` is raised.
    """

    def correct(reply: Reply, problem: str) -> tuple[Message, ...]:
        # Repair lone surrogates. Leave out an empty turn, which some providers refuse.
        text = reply.text.strip()[:LONGEST_ECHO].encode("utf-8", "replace").decode()
        again = UserMessage(text=f"That {_CORRECTION.format(problem[:LONGEST_PROBLEM])}")
        return (AssistantMessage(text=text), again) if text else (again,)

    return await _ask_until(model, request, lambda reply: read(object_in(reply)), correct, attempts)


async def _ask_until(
    model: Model,
    request: Request,
    read: Callable[[Reply], T],
    correct: Callable[[Reply, str], tuple[Message, ...]],
    attempts: int,
) -> T:
    messages = request.messages
    problem = ""
    for _ in range(attempts):
        reply = await model.complete(replace(request, messages=messages))
        try:
            return read(reply)
        except UnusableReply as error:
            problem = str(error)
        messages = (*messages, *correct(reply, problem))
    problem = problem[:LONGEST_PROBLEM]
    raise NoUsableAnswer(f"{request.model} gave no usable answer in {attempts} attempts; the last: {problem}")


def object_in(reply: Reply) -> dict[str, Any]:
    """Return the JSON object in a reply's text or in the arguments of its call. Raises `UnusableReply`."""
    text = _answer_text(reply)
    if not text:
        raise UnusableReply("it was empty" + " because the length limit was reached" * (reply.finish == "length"))
    return read_object(text)


def read_object(text: str) -> dict[str, Any]:
    """The JSON object in a text, without values that files and databases reject (NaN, lone surrogates)."""
    try:
        value = read_json(text[:LONGEST_REPLY])
        clean = json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
        value = json.loads(clean)
    except NoJsonFound as problem:
        raise UnusableReply(str(problem)) from None
    except (ValueError, TypeError, RecursionError):
        raise UnusableReply("it holds values that are not JSON, such as NaN") from None
    if not isinstance(value, dict):
        raise UnusableReply("a JSON object was expected, not a list")
    return cast("dict[str, Any]", value)


def parse_reply(reply: Reply, kind: type[T]) -> T:
    """Return the value in a reply's text or in the arguments of its call.

    Raises `UnusableReply`, which lists all errors.
    """
    from pydantic import ValidationError

    text = _answer_text(reply)
    if not text:
        raise UnusableReply("it was empty")
    try:
        return _adapter(kind).validate_python(read_json(text))
    except NoJsonFound as error:
        raise UnusableReply(str(error)) from None
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, problem['loc'])) or 'the answer'}: {problem['msg']}" for problem in error.errors()
        ]
        raise UnusableReply("; ".join(lines)) from None


def _answer_text(reply: Reply) -> str:
    if reply.finish == "refusal":
        raise UnusableReply("it was declined")
    return reply.text.strip() or (reply.calls[0].arguments if reply.calls else "")


@cache
def schema_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return the JSON schema of a type."""
    return _adapter(kind).json_schema()


@cache
def _adapter(kind: type[T]) -> "TypeAdapter[T]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
