"""Commands in messages to Python programs, written as the calls that do the same."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from foretell.patterns import pattern
from foretell.plugins import load_object
from foretell.request import (
    QUOTED,
    OperationRequest,
    as_python,
    errors_name_fields,
    field_of,
    hints,
    is_list,
    name_fields,
    plain_type,
)

COMMAND = pattern(
    rf"""(?P<tick>`?)\bforetell\ (?P<rest>[a-z](?:'[^'\n]*'|"[^"\n]*"|[^;,()'`\n])*)(?P=tick)
    | {QUOTED} | `[^`]*`""",
    re.VERBOSE,
)
"""A command up to the next sign; or text that is quoted, which stays as it is."""
WORD = pattern(r"'[^']*'|\"[^\"]*\"|\S+")
VERBS = frozenset(
    (
        *(
            "again",
            "and",
            "asks",
            "brings",
            "checks",
            "counts",
            "creates",
            "downloads",
            "for",
            "here",
            "in",
            "is",
            "it",
        ),
        *("judges", "keeps", "lists", "looks", "needs", "only", "opens", "or", "prints", "researches", "restores"),
        *("says", "scores", "see", "shows", "starts", "stores", "to", "tries", "watches", "with", "writes"),
    )
)
"""Words that end a command because they go on with the sentence."""


def name_calls(text: str) -> str:
    """Write commands as calls of the functions that do the same; commands without a function stay.

    >>> name_calls("foretell runs lists them, foretell doctor shows more")
    '`foretell.list_runs()` lists them, foretell doctor shows more'
    >>> print(name_calls("see foretell tree log bank.json --diff 1.., or write 'foretell runs'"))
    see `foretell.tree_log("bank.json", diff="1..")`, or write 'foretell runs'
    """
    if "foretell " not in text:
        return text
    return COMMAND.sub(lambda match: _call(match["rest"]) or match[0] if match["rest"] else match[0], text)


def in_python(text: str, request: type[OperationRequest] = OperationRequest) -> str:
    """Write the commands and flags of a text as Python does."""
    return name_fields(name_calls(text), request)


@contextmanager
def python_errors(request: type[OperationRequest] = OperationRequest) -> Generator[None]:
    """Let the errors raised inside speak of calls and parameters."""
    with errors_name_fields(request, rename=in_python):
        yield


@cache
def _functions() -> dict[str, str]:
    """Return words of a command → its function."""
    own: dict[str, str] = load_object("foretell.operations.table:PYTHON_NAMES")
    return {words: name for name, words in own.items()} | {"runs": "list_runs", "tree": "list_trees", "score": "score"}


def _call(rest: str) -> str | None:
    """Return a command as a call, with what follows it; None if it has no function."""
    words = [(match[0], match.end()) for match in WORD.finditer(rest)]
    texts = [text.rstrip(".:") for text, _ in words]
    known = next((n for n in (2, 1) if " ".join(texts[:n]) in _functions() and len(texts) >= n), 0)
    if not known:
        return None
    name = _functions()[" ".join(texts[:known])]
    own: dict[str, str] = load_object("foretell.operations.table:PYTHON_NAMES")
    operation: Any = load_object("foretell.operations.table:OPERATIONS")[own.get(name, name)]
    request = cast("type[OperationRequest]", operation.request)
    open_places = [field for field, info in request.model_fields.items() if hints(info).get("argument")]
    given, end, at = list[str](), words[known - 1][1], known
    while at < len(words) and not _ends(words[at - 1][0]):
        text, stop = words[at]
        if text.startswith("-"):
            field, negated = field_of(text.rstrip(".:"), request)
            info = request.model_fields.get(field)
            if info is None:
                return None
            if plain_type(info) is bool:
                given.append(f"{field}={not negated}")
            elif at + 1 < len(words):
                at += 1
                text, stop = words[at]
                given.append(f"{field}={as_python(_plain(text), info)}")
        elif open_places and text.rstrip(".:") not in VERBS:
            info = request.model_fields[open_places[0]]
            given.append(as_python(_plain(text), info))
            open_places = open_places if is_list(info) else open_places[1:]
        else:
            break
        end, at = stop, at + 1
    call = f"foretell.{name}({', '.join(given)})"
    return f"`{call}`{rest[end - 1] if _ends(rest[:end]) else ''}{rest[end:]}"


def _ends(word: str) -> bool:
    """Whether a word ends a sentence, or a part of it."""
    return word.endswith((".", ":")) and not word.endswith("..")


def _plain(text: str) -> str:
    """Return an argument without quotes and without the sign that ends the sentence."""
    text = text[:-1] if _ends(text) else text
    return text[1:-1] if text[:1] in ("'", '"') else text
