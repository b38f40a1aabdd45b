"""Past events put to a model: what it remembers of them, and what it forecasts with and without sources.

After Prophet Arena (2025, section 4.1.1 and appendix D.8).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from foretell.data.datasets.question_set import OutcomeKey
from foretell.data.datasets.rows import csv_rows
from foretell.forecasters.forecaster import Context, attempt
from foretell.forecasters.prompt.answers import OutcomeNames, rationale_in, read_probabilities
from foretell.forecasters.prompt.forecaster import PromptForecaster
from foretell.forecasters.prompt.prediction_context import (
    PredictionContext,
    StoredContexts,
    from_articles,
    known_at,
    one_line,
)
from foretell.forecasters.prompt.rendering import NONE, SOURCES, outcomes
from foretell.models.model import Message, ModelError, Request, SystemMessage, UserMessage
from foretell.models.names import ModelRole
from foretell.models.structured_output import UnusableReply, ask_until_usable, closed_object
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.runs.question_sets import open_benchmark
from foretell.studies.inputs import (
    StudyProgress,
    evenly_spaced,
    gather_bounded,
    ignore_progress,
)

MemoryKind = Literal["right", "wrong", "vague", "none"]
"""Recognised and recalled as it was; recalled otherwise; recognised without an outcome; not recognised."""
PROOF = 2
"""Facts that go with a claim to remember."""
INSTRUCTION = """\
You are asked what you remember. Below is an event of the past on which people could bet. It is over, and how it came \
out is known. If this very event is in your memory, say so and say how it came out. If it is not, say that: nothing is \
lost by not knowing, and invented details are worse than none.

Answer with one JSON object and nothing else:
{"recognised": <true or false>, "facts": ["<detail>", …], "recalled": {$recalled}, "rationale": "<one or two \
sentences>", "probabilities": {$probabilities}}

- `recognised` is true only if you remember this event itself, not merely events of its kind.
- `facts` holds at least two details that can be checked, such as figures, dates, names or places, where it is true; \
else it is empty.
- `recalled` says for every listed outcome whether it came true: "yes", "no", or "unknown" where you do not remember.
- `probabilities` says for every listed outcome how likely you think it is that it came true, a number from 0 to 1: by \
memory where there is one, else by judgement.
- Use the names of outcomes in backticks, all of them and no others."""


@dataclass(frozen=True, kw_only=True)
class PastEvent:
    """An event whose outcome is known, with a context that has its sources."""

    context: PredictionContext
    truth: Mapping[str, int]
    """0 or 1 by target id; targets without a known outcome are absent."""

    def __post_init__(self) -> None:
        unknown = set(self.truth) - {target.id for target in self.question.targets}
        if not self.truth or unknown:
            raise ValueError(f"question {self.question.id} has no known outcome, or one of a target it does not have")

    @property
    def question(self) -> Question:
        """What was asked."""
        return self.context.question


@dataclass(frozen=True, kw_only=True)
class Recollection:
    """What a model says it remembers."""

    recognised: bool
    recalled: Mapping[str, int]
    """0 or 1 by target id; what it does not remember is absent."""
    facts: tuple[str, ...] = ()
    p: Mapping[str, float] = field(default_factory=dict[str, float])
    rationale: str = ""

    def compared_with(self, truth: Mapping[str, int]) -> MemoryKind:
        """How the memory compares with what happened: one wrong outcome makes it wrong.

        >>> Recollection(recognised=True, recalled={"a": 1}).compared_with({"a": 1, "b": 0})
        'right'
        """
        if not self.recognised:
            return "none"
        told = [said == truth[target] for target, said in self.recalled.items() if target in truth]
        return "vague" if not told else "right" if all(told) else "wrong"


@dataclass(frozen=True, kw_only=True)
class RecallResult:
    """One event put to one model in three ways."""

    past: PastEvent
    recollection: Recollection | None
    without: Forecast | None
    """Forecast with neither sources nor market."""
    with_sources: Forecast | None
    problems: tuple[str, ...] = ()

    @property
    def memory(self) -> MemoryKind | None:
        """None where the model gave no usable answer."""
        return None if self.recollection is None else self.recollection.compared_with(self.past.truth)


async def recall_events(
    events: Sequence[PastEvent],
    context_of: Callable[[Question], Context],
    role: ModelRole = "agent",
    progress: StudyProgress = ignore_progress,
) -> list[RecallResult]:
    """Put every event to the model three times: what it remembers, a forecast without sources, one with them."""
    return await gather_bounded(events, lambda past: _remembered(past, context_of(past.question), role), progress)


async def _remembered(past: PastEvent, context: Context, role: ModelRole) -> RecallResult:
    context = replace(context, as_of=past.context.as_of)  # A past event is asked about as of its own context.
    stored = StoredContexts([past.context])
    bare, told = (PromptForecaster(contexts=stored, view=view, role=role) for view in (NONE, SOURCES))
    memory, without, with_sources = await asyncio.gather(
        ask_recollection(past.question, context, role),
        attempt(bare, past.question, context),
        attempt(told, past.question, context),
    )
    problems = [memory] if isinstance(memory, str) else []
    problems += [one.error for one in (without, with_sources) if isinstance(one, Failure)]
    return RecallResult(
        past=past,
        recollection=None if isinstance(memory, str) else memory,
        without=without if isinstance(without, Forecast) else None,
        with_sources=with_sources if isinstance(with_sources, Forecast) else None,
        problems=tuple(problems),
    )


async def ask_recollection(question: Question, context: Context, role: ModelRole = "agent") -> Recollection | str:
    """What the model remembers, or why it gave no usable answer."""
    names = OutcomeNames.of(question)
    model = context.model(role)
    request = Request(
        model=context.models.name(role),
        messages=recall_messages(known_at(question, context.as_of), names),
        schema=_schema(names),
        settings=context.models.settings(role),
        slot=f"{question.id}/recall {context.trial}",
    )
    try:
        return await ask_until_usable(model, request, lambda said: read_recollection(said, names))
    except ModelError as error:
        return str(error)


def recall_messages(question: Question, names: OutcomeNames) -> tuple[Message, ...]:
    """What the model is asked. Unlike a forecaster it is told when the event ended: that helps to place it."""
    told = ", ".join(f'"{key}": "<yes, no or unknown>"' for key in list(names.keys)[:3])
    numbers = ", ".join(f'"{key}": <number>' for key in list(names.keys)[:3])
    more = ", …" if len(names.keys) > 3 else ""
    closes = f"It ended at {question.closes_at:%Y-%m-%d %H:%M} UTC." if question.closes_at else ""
    sections = (
        ("Question", question.text),
        ("Category", question.category),
        ("When", closes),
        ("How it was decided", question.criteria[:6000]),
        ("Outcomes", outcomes(question)),
    )
    system = INSTRUCTION.replace("$recalled", told + more).replace("$probabilities", numbers + more)
    text = "\n\n".join(f"# {heading}\n\n{part}" for heading, part in sections if part)
    return SystemMessage(text=system), UserMessage(text=text)


def read_recollection(said: Mapping[str, Any], names: OutcomeNames) -> Recollection:
    """The recollection in an answer, or `UnusableReply`."""
    recognised = _flag(said.get("recognised", said.get("recognized")))
    if recognised is None:
        raise UnusableReply("`recognised` must be true or false")
    stated = read_probabilities({name: part for name, part in said.items() if name == "probabilities"}, names)
    given: Any = said.get("recalled")
    recalled = _recalled(cast("Mapping[Any, Any]", given), names) if isinstance(given, Mapping) else {}
    listed = cast("list[Any]", said.get("facts") or []) if isinstance(said.get("facts"), list) else []
    facts = [one_line(fact, 300) for fact in listed[:20] if isinstance(fact, str)]
    return Recollection(
        recognised=recognised,
        recalled=recalled if recognised else {},
        facts=tuple(filter(None, facts)),
        p=stated.p,
        rationale=rationale_in(said)[:1000],
    )


def _recalled(given: Mapping[Any, Any], names: OutcomeNames) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, word in list(given.items())[:5000]:
        target, came_true = names.find(str(name)), _flag(word)
        if target is not None and came_true is not None:
            found[target] = int(came_true)
    return found


def _flag(given: Any) -> bool | None:
    if isinstance(given, bool):
        return given
    word = given.strip(" .!\"'").casefold() if isinstance(given, str) else ""
    return {"yes": True, "true": True, "no": False, "false": False}.get(word)


def _schema(names: OutcomeNames) -> dict[str, Any]:
    word = {"type": "string", "enum": ["yes", "no", "unknown"]}
    number = {"type": "number", "minimum": 0, "maximum": 1}
    return closed_object(
        {
            "recognised": {"type": "boolean"},
            "facts": {"type": "array", "items": {"type": "string"}},
            "recalled": closed_object(dict.fromkeys(names.keys, word)),
            "rationale": {"type": "string"},
            "probabilities": closed_object(dict.fromkeys(names.keys, number)),
        }
    )


def past_events(
    dataset: str, *, rounds: Sequence[str] = (), outcomes: Path | None = None, limit: int | None = None
) -> list[PastEvent]:
    """Events with a known outcome, the last asking of each; `outcomes` tells those that the set does not."""
    found = open_benchmark(dataset, rounds=rounds).questions
    listed = read_outcomes(outcomes) if outcomes is not None else {}
    known: dict[str, tuple[Question, dict[str, int]]] = {}
    resolved = found.outcomes()
    for question in found.questions:
        if truth := _truth(question, resolved) | _listed_outcomes(question, listed):
            known[question.id] = question, truth
    if not known:
        hint = "give --outcomes, a table of question, target and outcome"
        raise InputError("none of the questions has a known outcome", column="--questions", hint=hint)
    return [
        PastEvent(context=from_articles(question, found.contexts.get((question.id, question.due), ())), truth=truth)
        for question, truth in evenly_spaced(list(known.values()), limit)
    ]


def read_outcomes(path: Path) -> dict[tuple[str, str], int]:
    """How targets came out, 0 or 1, from a CSV file with question, outcome and, where there are several, target."""
    found: dict[tuple[str, str], int] = {}
    for row in csv_rows(path):
        text = row.text("outcome")
        if text and text not in ("0", "1", "0.0", "1.0"):
            raise row.problem("outcome", f"{text[:40]!r} is neither 0 nor 1")
        if text:
            found[row.need("question"), row.text("target")] = int(float(text))
    return found


def _truth(question: Question, outcomes: Mapping[OutcomeKey, int]) -> dict[str, int]:
    """As the set has it: for each asking, or once for all."""
    truth: dict[str, int] = {}
    for target in question.targets:
        for due in (None, question.due):
            if (key := (question.id, due, target.id)) in outcomes:
                truth[target.id] = outcomes[key]
    return truth


def _listed_outcomes(question: Question, listed: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """As a table has it; a question with one target needs none named."""
    named = {
        target.id: listed[question.id, target.id] for target in question.targets if (question.id, target.id) in listed
    }
    if not named and len(question.targets) == 1 and (question.id, "") in listed:
        return {question.targets[0].id: listed[question.id, ""]}
    return named
