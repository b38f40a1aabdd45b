"""Asking a model of a tree for a value: what cannot be used goes back with the reason, a few times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from foretell.forecasters.agent.context import AgentContext, Watched
from foretell.forecasters.agent.reading import LONGEST_REPLY, Unusable, read_object
from foretell.llm.message import Assistant, Message, Reply, Request, Settings, System, User
from foretell.llm.model import ModelError
from foretell.llm.roles import Role
from foretell.llm.shape import faults

T = TypeVar("T")

LONGEST_REPORT = 8_000
"""Characters of a report that are kept."""
LONGEST_SENTENCE = 600


class Unfit(ValueError):
    """An answer has the right shape but cannot be taken over; the text tells the model why."""


class NoAnswer(ModelError):
    """The model was asked as often as it may be, and nothing it said could be used."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One thing to ask for."""

    role: Role
    place: str
    """Where in the tree and for what: tells equal words apart, the same in every run."""
    system: str
    user: str
    schema: Mapping[str, Any]
    talk: tuple[Message, ...] = ()
    """What was said since then."""


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Asks the models of one tree. Requests depend on what is asked and where, never on when."""

    context: AgentContext
    slot: str
    """Question, trial and tree."""
    attempts: int = 3

    async def ask(self, wanted: Wanted, read: Callable[[Mapping[str, Any]], T]) -> T:
        """What `read` makes of the answer. What it finds `Unfit` is asked for again; in the end `NoAnswer`."""
        model = Watched(self.context.model, self.context.emit, wanted.role, self.context.prices)
        messages: tuple[Message, ...] = (System(text=wanted.system), User(text=wanted.user, cached=True), *wanted.talk)
        problem = ""
        for attempt in range(self.attempts):
            slot = f"{self.slot}/{wanted.place}/{attempt}"
            reply = await model.complete(self.request(wanted.role, messages, slot=slot, schema=wanted.schema))
            try:
                return read(answer_in(reply, wanted.schema))
            except (Unfit, Unusable) as error:
                problem = str(error)
            messages = (*messages, *objection(reply, problem))
        raise NoAnswer(f"no usable answer in {self.attempts} attempts; the last: {problem}")

    def request(
        self, role: Role, messages: tuple[Message, ...], *, slot: str, schema: Mapping[str, Any] | None = None
    ) -> Request:
        """A request in a role, sampled as the run says."""
        asked = self.context.models.request(role, messages, slot=slot)
        return replace(asked, settings=seeded(asked.settings, self.context), schema=schema)


def seeded(settings: Settings, context: AgentContext) -> Settings:
    """The settings with the trial's own seed, where the run has one."""
    return settings if context.seed is None else replace(settings, seed=context.seed + context.trial)


def answer_in(reply: Reply, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in a reply, if it has the shape asked for; otherwise `Unusable` says what is wrong."""
    if reply.finish == "refusal":
        raise Unusable("it was declined; this is an analysis of public matters, and a rough answer is better than none")
    text = reply.text.strip() or (reply.calls[0].arguments if reply.calls else "")
    if not text:
        raise Unusable("it was empty" + (": the length limit was reached" * (reply.finish == "length")))
    # A field nobody asked for does no harm; a name within a field that stands for nothing is told.
    found = {name: value for name, value in read_object(text).items() if name in schema["properties"]}
    if wrong := faults(found, schema):
        raise Unusable("; ".join(wrong[:8]))
    return found


def objection(reply: Reply, problem: str) -> tuple[Message, ...]:
    """What was said, and what was wrong with it. An empty turn is left out: some providers refuse it."""
    said = (Assistant(text=reply.text[:LONGEST_REPLY]),) if reply.text.strip() else ()
    again = f"That could not be used: {problem}. Answer again, with one JSON object and nothing else."
    return (*said, User(text=again))


def report_in(found: Mapping[str, Any]) -> tuple[str, str]:
    """Report and key factor, cut where they run on."""
    report, factor = (str(found.get(name) or "").strip() for name in ("report", "key_factor"))
    return report[:LONGEST_REPORT], factor[:LONGEST_SENTENCE]


def shape(properties: Mapping[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema of an object with these fields and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "number"}
CHANCE: Mapping[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
