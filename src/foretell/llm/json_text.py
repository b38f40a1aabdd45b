"""Finding the JSON in what a model wrote: in a code fence, after some prose, with a trailing comma, or cut off."""

import json
import re
from collections.abc import Iterator
from typing import Any

_FENCE = re.compile(r"```[a-zA-Z0-9]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"?|[{}\[\]]', re.DOTALL)
_LITERALS = {"True": "true", "False": "false", "None": "null"}


class NoJson(ValueError):
    """There is no JSON in the text, or none that can be read in only one way."""


def read_json(text: str) -> Any:
    r"""The object or list in a text.

    Models think first and answer last, so the last complete one counts; objects go before lists, and one that was cut
    off counts only where no other is complete.

    >>> read_json("Here you are:\n```json\n{'p': 0.3,}\n```")
    {'p': 0.3}
    >>> read_json('{"p": 0.3, "why": ["polls", "pri')
    {'p': 0.3, 'why': ['polls', 'pri']}
    """
    fences = [fence.strip() for fence in reversed(_FENCE.findall(text))]
    for candidate in (text.strip(), *fences):
        found = _loaded(candidate)
        if isinstance(found, dict | list):
            return found
    pieces = [piece for fence in fences for piece in _pieces(fence)] or list(_pieces(text))
    pieces.sort(key=lambda piece: (not piece[1], not piece[0].startswith("{")))
    for piece, complete in pieces:
        found = _mended(piece) if complete else _cut_off(piece)
        if found is not None:
            return found
    raise NoJson("it holds no JSON object" if not pieces else "its JSON cannot be read")


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Outermost {…} and […] of a text, the last one first, and whether they are closed."""
    found: list[tuple[str, bool]] = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        end = _end(text, opening.start())
        found.append((text[opening.start() : end], end is not None))
        if end is None:
            break
        at = end
    return found[::-1]


def _end(text: str, start: int) -> int | None:
    """Where the value that opens at `start` is closed."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token.group(), 0)
        if depth == 0:
            return token.end()
    return None


def _mended(piece: str) -> Any:
    """Read a complete piece, as it is or with the usual faults repaired; None where that fails."""
    found = _loaded(piece)
    if found is None:
        found = _loaded(_tidied(piece))
    return _python_literal(piece) if found is None else found


def _cut_off(piece: str) -> Any:
    """Read what is there of a piece that ends too early.

    A number at the very end may have lost its tail (0.1 of 0.15) and is dropped with its key. A string is kept as far
    as it goes: half a sentence misleads nobody.
    """
    from pydantic_core import from_json

    inside_string = any(not _STRING.fullmatch(token) for token in _TOKEN.findall(piece) if token.startswith('"'))
    whole = piece if inside_string else re.sub(r"-?\d[\d.eE+-]*\s*$", "", piece)
    for attempt in (whole, _tidied(whole)):
        try:
            return from_json(attempt, allow_partial="trailing-strings")
        except ValueError:
            continue
    return None


def _tidied(text: str) -> str:
    """Without trailing commas and comments, and with Python's names for constants, all outside strings."""
    return "".join(part if quoted else _tidied_code(part) for part, quoted in _by_string(text))


def _by_string(text: str) -> Iterator[tuple[str, bool]]:
    last = 0
    for string in _STRING.finditer(text):
        yield text[last : string.start()], False
        yield string.group(), True
        last = string.end()
    yield text[last:], False


def _tidied_code(code: str) -> str:
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", code, flags=re.DOTALL)
    code = re.sub(r"\b(True|False|None)\b", lambda name: _LITERALS[name.group()], code)
    return re.sub(r",(\s*[}\]])", r"\1", code)


def _python_literal(text: str) -> Any:
    """A dict as Python prints it, in single quotes."""
    import ast

    try:
        found = ast.literal_eval(text)
        json.dumps(found)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None
