"""Asking a model of a tree for a value: what cannot be used goes back with the reason, a few times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, TypeVar

from foretell.forecasters.agent.actions import LONGEST_REPLY, UnusableTurn, read_object
from foretell.forecasters.forecaster import AgentContext, TracedModel
from foretell.models.model import (
    AssistantMessage,
    Message,
    ModelError,
    ModelSettings,
    Reply,
    Request,
    SystemMessage,
    UserMessage,
)
from foretell.models.names import ModelRole
from foretell.models.structured_output import schema_errors
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question

T = TypeVar("T")

LONGEST_REPORT = 8_000
"""Characters of a report that are kept."""
LONGEST_SENTENCE = 600


class UnfitAnswer(ValueError):
    """An answer has the right shape but cannot be taken over; the text tells the model why."""


class NoStructuredAnswer(ModelError):
    """The model was asked as often as it may be, and nothing it said could be used."""


@dataclass(frozen=True, kw_only=True)
class StructuredRequest:
    """One thing to ask for."""

    role: ModelRole
    place: str
    """Where in the tree and for what: tells equal words apart, the same in every run."""
    system: str
    user: str
    schema: Mapping[str, Any]
    talk: tuple[Message, ...] = ()
    """What was said since then."""


@dataclass(frozen=True, kw_only=True)
class StructuredClient:
    """Asks the models of one tree. Requests depend on what is asked and where, never on when."""

    context: AgentContext
    slot: str
    """Question, trial and tree."""
    attempts: int = 3

    async def ask(self, wanted: StructuredRequest, read: Callable[[Mapping[str, Any]], T]) -> T:
        """What `read` makes of the answer. An `UnfitAnswer` is asked for again; in the end `NoStructuredAnswer`."""
        model = TracedModel(self.context.model, self.context.emit, wanted.role, self.context.prices)
        messages: tuple[Message, ...] = (
            SystemMessage(text=wanted.system),
            UserMessage(text=wanted.user, cached=True),
            *wanted.talk,
        )
        problem = ""
        for attempt in range(self.attempts):
            slot = f"{self.slot}/{wanted.place}/{attempt}"
            reply = await model.complete(self.request(wanted.role, messages, slot=slot, schema=wanted.schema))
            try:
                return read(read_answer(reply, wanted.schema))
            except (UnfitAnswer, UnusableTurn) as error:
                problem = str(error)
            messages = (*messages, *objection(reply, problem))
        raise NoStructuredAnswer(f"no usable answer in {self.attempts} attempts; the last: {problem}")

    def request(
        self, role: ModelRole, messages: tuple[Message, ...], *, slot: str, schema: Mapping[str, Any] | None = None
    ) -> Request:
        """A request in a role, sampled as the run says."""
        asked = self.context.models.request(role, messages, slot=slot)
        return replace(asked, settings=seeded(asked.settings, self.context), schema=schema)


def seeded(settings: ModelSettings, context: AgentContext) -> ModelSettings:
    """The settings with the trial's own seed, where the run has one."""
    return settings if context.seed is None else replace(settings, seed=context.seed + context.trial)


def read_answer(reply: Reply, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in a reply, if it has the shape asked for; otherwise `UnusableTurn` says what is wrong."""
    if reply.finish == "refusal":
        raise UnusableTurn(
            "it was declined; this is an analysis of public matters, and a rough answer is better than none"
        )
    text = reply.text.strip() or (reply.calls[0].arguments if reply.calls else "")
    if not text:
        raise UnusableTurn("it was empty" + (": the length limit was reached" * (reply.finish == "length")))
    # A field nobody asked for does no harm; a name within a field that stands for nothing is told.
    found = {name: value for name, value in read_object(text).items() if name in schema["properties"]}
    if wrong := schema_errors(found, schema):
        raise UnusableTurn("; ".join(wrong[:8]))
    return found


def objection(reply: Reply, problem: str) -> tuple[Message, ...]:
    """What was said, and what was wrong with it. An empty turn is left out: some providers refuse it."""
    said = (AssistantMessage(text=reply.text[:LONGEST_REPLY]),) if reply.text.strip() else ()
    again = f"That could not be used: {problem}. Answer again, with one JSON object and nothing else."
    return (*said, UserMessage(text=again))


def read_report(found: Mapping[str, Any]) -> tuple[str, str]:
    """Report and key factor, cut where they run on."""
    report, factor = (str(found.get(name) or "").strip() for name in ("report", "key_factor"))
    return report[:LONGEST_REPORT], factor[:LONGEST_SENTENCE]


def object_schema(properties: Mapping[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
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


# What a tree is about, as every model that works on it is told.

LONGEST_CRITERIA = 3_000
LONGEST_BACKGROUND = 4_000
DEEPEST_SHOWN = 8
"""Claims of a path that are shown; of a longer one the root and the nearest."""
MOST_SHOWN = 20
"""Siblings that are shown."""


@dataclass(frozen=True, kw_only=True)
class TreeQuestion:
    """The question behind a tree, seen as of a cutoff."""

    question: Question
    as_of: AsOf
    target: str = ""
    """The id of the target that the root claim is about."""

    @property
    def today(self) -> str:
        """The day of the cutoff."""
        return self.as_of.at.date().isoformat()

    def sections(self) -> tuple[tuple[str, str], ...]:
        """What decides the question, each text cut where it runs on."""
        question = self.question
        return (
            ("What is asked", question.text),
            ("Resolution criteria", question.criteria[:LONGEST_CRITERIA]),
            ("Background", question.background[:LONGEST_BACKGROUND]),
        )


@dataclass(frozen=True, kw_only=True)
class ClaimSurroundings:
    """Where a claim stands in the tree: the claims above it and beside it, and never the rest of the tree.

    What a model reads about the surroundings is bounded, however large the tree grows.
    """

    path: tuple[str, ...] = ()
    """Claims from the root to the parent."""
    siblings: tuple[str, ...] = ()

    def above(self) -> tuple[str, str]:
        """The claims above, as told to a model."""
        shown = self.path
        if len(shown) > DEEPEST_SHOWN:
            shown = (shown[0], "…", *shown[-DEEPEST_SHOWN + 2 :])
        return "Claims above, from the whole to the part", "\n".join(f"- {claim}" for claim in shown)

    def beside(self) -> tuple[str, str]:
        """The claims beside it, as told to a model."""
        shown = "\n".join(f"- {claim}" for claim in self.siblings[:MOST_SHOWN])
        return "Claims beside it, examined by others", shown

    def below(self, claim: str, siblings: tuple[str, ...]) -> "ClaimSurroundings":
        """The place of a child."""
        return ClaimSurroundings(path=(*self.path, claim), siblings=siblings)


# What the models of a tree are told: texts in Markdown files, put together by the modules that ask.


@cache
def prompt_template(name: str) -> Template:
    """A text by its name.

    >>> prompt_template("rules").safe_substitute(today="2026-07-01").startswith("# Rules")
    True
    """
    text = files("foretell.forecasters.tree").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
    return Template(text.strip())


def fill_prompts(*names: str, **values: object) -> str:
    """Several texts, one after the other, with their blanks filled in."""
    return "\n\n".join(prompt_template(name).substitute(values) for name in names)


def sections(*parts: tuple[str, str]) -> str:
    """Headings with their texts; those without a text are left out.

    >>> print(sections(("Claim", "It rains."), ("Background", " ")))
    # Claim
    <BLANKLINE>
    It rains.
    """
    return "\n\n".join(f"# {heading}\n\n{text.strip()}" for heading, text in parts if text.strip())
