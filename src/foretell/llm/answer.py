"""Typed answers: a model's text or arguments as a value, with the faults told back to the model a few times."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from foretell.llm.json_text import NoJson, read_json
from foretell.llm.message import Message, Reply, Request, ToolCall, User
from foretell.llm.model import Model, ModelError
from foretell.llm.shape import faults

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


class BadAnswer(ValueError):
    """A model's answer cannot be used; the text says why, in words for the model."""


async def ask_typed(model: Model, request: Request, kind: type[T], *, attempts: int = 3) -> T:
    """Ask for JSON of the shape of `kind`, a pydantic model or a dataclass.

    An answer that does not fit goes back with what was wrong, at most `attempts` times in all; then `ModelError`.
    """
    if request.schema is None:
        request = replace(request, schema=schema_of(kind))
    messages = request.messages
    problem = ""
    for _ in range(attempts):
        reply = await model.complete(replace(request, messages=messages))
        try:
            return parse_reply(reply, kind)
        except BadAnswer as error:
            problem = str(error)
        messages = (*messages, *_said(reply), User(text=_again(problem)))
    raise ModelError(f"{request.model} gave no usable answer in {attempts} attempts; the last: {problem}")


def parse_reply(reply: Reply, kind: type[T]) -> T:
    """The value in a reply, in its text or, where it called a tool instead, in the arguments."""
    text = reply.text.strip() or (reply.calls[0].arguments if reply.calls else "")
    if reply.finish == "refusal":
        raise BadAnswer("it was declined")
    if not text:
        raise BadAnswer("it was empty")
    return parse_value(text, kind)


def parse_value(text: str, kind: type[T]) -> T:
    """The value in a text, or `BadAnswer` with everything that is wrong with it.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Guess:
    ...     p: float
    >>> parse_value('I would say {"p": 0.25}', Guess)
    Guess(p=0.25)
    """
    from pydantic import ValidationError

    found = _read(text)
    try:
        return _adapter(kind).validate_python(found)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {one['msg']}" for one in error.errors()]
        raise BadAnswer("; ".join(lines)) from None


@overload
def parse_arguments(call: ToolCall, shape: type[T]) -> T: ...
@overload
def parse_arguments(call: ToolCall, shape: Mapping[str, Any]) -> dict[str, Any]: ...
def parse_arguments(call: ToolCall, shape: type[T] | Mapping[str, Any]) -> T | dict[str, Any]:
    """The arguments of a call: a value of a type, or a dict that fits a JSON schema. Raises `BadAnswer`.

    >>> parse_arguments(ToolCall(id="1", name="add", arguments="{'a': 1,}"), {"required": ["a"]})
    {'a': 1}
    """
    if isinstance(shape, type):
        return parse_value(call.arguments or "{}", shape)
    found = _read(call.arguments or "{}")
    if not isinstance(found, dict):
        raise BadAnswer(f"the arguments of {call.name} must be a JSON object")
    wrong = faults(found, shape)
    if wrong:
        raise BadAnswer("; ".join(wrong))
    return cast("dict[str, Any]", found)


@cache
def schema_of(kind: type[Any]) -> Mapping[str, Any]:
    """The JSON schema to send along."""
    return _adapter(kind).json_schema()


@cache
def _adapter(kind: type[T]) -> "TypeAdapter[T]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _read(text: str) -> Any:
    try:
        return read_json(text)
    except NoJson as error:
        raise BadAnswer(str(error)) from None


def _said(reply: Reply) -> tuple[Message, ...]:
    """The turn to argue with. An empty one is left out: some providers refuse it. Calls would need results."""
    return (replace(reply.as_message(), calls=()),) if reply.text.strip() else ()


def _again(problem: str) -> str:
    return f"Your answer could not be used: {problem}. Answer again, with one JSON object and nothing else."
