"""A question with its outcomes as Inspect keeps it: messages, a target that no model sees, and metadata."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from foretell.forecasters.context.context import Context, known_at
from foretell.forecasters.context.elicitation import Ask
from foretell.forecasters.context.messages import call_of
from foretell.forecasters.context.rendering import read_view
from foretell.questions.codec import from_json, to_json
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.sources.datasets.question_set import QuestionSet

QUESTION = "foretell_question"
"""The whole question, in the metadata of a sample."""
CLUSTER = "question"
"""Samples that share it rise and fall together: the same question in several rounds, or a question's own cluster."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One sample."""

    id: str
    messages: tuple[tuple[str, str], ...]
    """Role and words."""
    target: str
    """The outcomes by target id, as JSON."""
    metadata: Mapping[str, Any]


def asked_of(question: Question, outcomes: Mapping[str, int], view: str = "market", wording: str = "default") -> Asked:
    """A question whose outcomes are known, as of its date; no tool and no fence stand behind it."""
    context = Context(question=known_at(question, question.as_of), as_of=question.as_of)
    call = call_of(Ask(wording=wording), context, read_view(view))
    roles = ("system", "user")
    return Asked(
        id=f"{question.id}@{question.due.date().isoformat()}",
        messages=tuple((role, message.text) for role, message in zip(roles, call.messages, strict=True)),
        target=json.dumps(dict(outcomes)),
        metadata={
            CLUSTER: question.cluster,
            "source": question.source,
            "kind": question.kind,
            "due": question.due.isoformat(),
            QUESTION: to_json(question),
        },
    )


def all_asked(found: QuestionSet, *, limit: int | None = None, view: str = "market") -> list[Asked]:
    """The questions of a set that have come out, in its order."""
    known = found.outcomes()
    asked: list[Asked] = []
    for question in found.questions:
        outcomes = {
            target.id: outcome
            for target in question.targets
            for outcome in [
                known.get((question.id, question.due, target.id), known.get((question.id, None, target.id)))
            ]
            if outcome is not None
        }
        if outcomes:
            asked.append(asked_of(question, outcomes, view))
        if limit is not None and len(asked) == limit:
            break
    return asked


def rounds_of(given: str | date | Sequence[str | date] | None) -> tuple[str, ...]:
    """Rounds as a person writes them on a command line: one, several with commas between, or a list.

    >>> rounds_of("2025-10-26,2025-11-09"), rounds_of(None), rounds_of(date(2025, 10, 26))
    (('2025-10-26', '2025-11-09'), (), ('2025-10-26',))
    """
    if given is None:
        return ()
    parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, date) else list(given)
    return tuple(str(part).strip() for part in parts if str(part).strip())


def question_in(metadata: Mapping[str, Any] | None) -> Question | None:
    """The question of a sample of ours; None for any other."""
    text = (metadata or {}).get(QUESTION)
    return from_json(text, Question) if isinstance(text, str) else None


def resolutions_of(question: Question, outcomes: Mapping[str, int]) -> list[Resolution]:
    """The outcomes of a sample as values."""
    return [
        Resolution(question_id=question.id, target_id=target, due=question.due, outcome=outcome)
        for target, outcome in outcomes.items()
    ]
