"""Asking a model until its answer can be used: what was wrong goes back to it, in few words."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from foretell.forecasters.agent.reading import Unusable, read_object
from foretell.llm.answer import BadAnswer
from foretell.llm.message import Assistant, Message, Reply, Request, User
from foretell.llm.model import Model, ModelError

T = TypeVar("T")
LONGEST_ECHO = 2_000
"""Characters of a bad answer that are sent back: a model that rambles must not be paid to read itself."""
LONGEST_PROBLEM = 1_000


class NoUsableAnswer(ModelError):
    """The model answered, but never in a way that can be read."""


async def ask_until(model: Model, request: Request, read: Callable[[Mapping[str, Any]], T], *, attempts: int = 3) -> T:
    """What `read` makes of the JSON object in the reply.

    Where it raises `BadAnswer`, the model is told why and asked again, at most `attempts` times in all; then
    `NoUsableAnswer`.
    """
    messages = request.messages
    problem = ""
    for _ in range(attempts):
        reply = await model.complete(replace(request, messages=messages))
        try:
            return read(object_in(reply))
        except BadAnswer as error:
            problem = str(error)[:LONGEST_PROBLEM]
        messages = (*messages, *_said(reply), User(text=_again(problem)))
    raise NoUsableAnswer(f"{request.model} gave no usable answer in {attempts} attempts; the last: {problem}")


def object_in(reply: Reply) -> dict[str, Any]:
    """The JSON object of a reply, in its text or in the arguments of a call it made instead; or `BadAnswer`."""
    if reply.finish == "refusal":
        raise BadAnswer("it was declined")
    text = reply.text.strip() or (reply.calls[0].arguments if reply.calls else "")
    if not text:
        raise BadAnswer("it was empty" + " because the length limit was reached" * (reply.finish == "length"))
    try:
        return read_object(text)
    except Unusable as error:
        raise BadAnswer(str(error)) from None


def closed(properties: Mapping[str, Any], told: str = "") -> dict[str, Any]:
    """JSON schema of an object with these fields, all needed, and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return schema | ({"description": told} if told else {})


def _said(reply: Reply) -> tuple[Message, ...]:
    """The turn to argue with; an empty one is left out, since some providers refuse it. Half characters are mended."""
    text = reply.text.strip()[:LONGEST_ECHO].encode("utf-8", "replace").decode()
    return (Assistant(text=text),) if text else ()


def _again(problem: str) -> str:
    return f"That answer could not be used: {problem}. Answer again, with one JSON object and nothing else."
