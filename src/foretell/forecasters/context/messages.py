"""What a model is sent: an instruction by wording and kind of answer, and the context as it is rendered for all."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from string import Template
from typing import Any

from foretell.forecasters.context.answers import Outcomes, Reader, read_probabilities, read_votes
from foretell.forecasters.context.asking import closed
from foretell.forecasters.context.context import Context
from foretell.forecasters.context.elicitation import Ask, Kind
from foretell.forecasters.context.rendering import View, render
from foretell.llm.message import Message, System, User

SHORT = "three sentences: what you weighed and how, why these numbers, what could still change them"
REPORT = "the five parts, each under its name, in a few sentences"
EXAMPLES: Mapping[Kind, str] = {
    "probability": "<number>",
    "complement": "<number>",
    "vote": '"<yes or no>"',
    "confident": '{"answer": "<yes or no>", "confidence": <number>}',
}
MOST_SHOWN = 3
"""Outcomes in the example of an answer."""


@cache
def wording(name: str) -> Template:
    """A text by its name."""
    text = files("foretell.forecasters.context").joinpath("wording", f"{name}.md").read_text(encoding="utf-8")
    return Template(text.strip())


@dataclass(frozen=True, kw_only=True)
class Call:
    """One ask about one context, ready to be sent and read."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    read: Reader


def call_of(ask: Ask, context: Context, view: View) -> Call:
    """The call. The second message is the same for all models, wordings and kinds of answer."""
    outcomes = Outcomes.of(context.question)
    messages = (System(text=_instruction(ask, outcomes)), User(text=render(context, view), cached=True))
    return Call(messages=messages, schema=_schema(ask.kind, outcomes), read=_reader(ask.kind, outcomes))


def _instruction(ask: Ask, outcomes: Outcomes) -> str:
    names = list(outcomes.keys)
    shown = ", ".join(f'"{name}": {EXAMPLES[ask.kind]}' for name in names[:MOST_SHOWN])
    example = f"{shown}, …" if len(names) > MOST_SHOWN else shown
    length = REPORT if ask.wording == "scaffold" else SHORT
    form = wording(f"answer_{ask.kind}").substitute(example=example, length=length)
    return f"{wording(ask.wording).substitute()}\n\n{form}"


def _schema(kind: Kind, outcomes: Outcomes) -> dict[str, Any]:
    number: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
    decision: dict[str, Any] = {"type": "string", "enum": ["yes", "no"]}
    one = {
        "probability": number,
        "complement": number,
        "vote": decision,
        "confident": closed({"answer": decision, "confidence": number}),
    }[kind]
    field = "answers" if kind in ("vote", "confident") else "probabilities"
    return closed({"rationale": {"type": "string"}, field: closed(dict.fromkeys(outcomes.keys, one))})


def _reader(kind: Kind, outcomes: Outcomes) -> Reader:
    if kind in ("vote", "confident"):
        return partial(read_votes, outcomes=outcomes, confident=kind == "confident")
    return partial(read_probabilities, outcomes=outcomes)
