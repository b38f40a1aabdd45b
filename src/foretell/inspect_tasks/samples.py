"""What a model said about a sample: probabilities by target, from our own samples and from those of others."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast

from foretell.data.datasets.question_set import QuestionSet
from foretell.data.datasets.rows import Row, csv_rows, jsonl_rows
from foretell.forecasters.prompt.answers import NO, YES, OutcomeNames, read_probabilities
from foretell.forecasters.prompt.elicitation import ElicitationCall, call_of
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.forecasters.prompt.rendering import read_view
from foretell.models.structured_output import NoJsonFound, UnusableReply, read_json
from foretell.questions.codec import from_json, to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

# A question with its outcomes as Inspect keeps it: messages, a target that no model sees, and metadata.

QUESTION_KEY = "foretell_question"
"""The whole question, in the metadata of a sample."""
CLUSTER_KEY = "question"
"""Samples that share it rise and fall together: the same question in several rounds, or a question's own cluster."""


@dataclass(frozen=True, kw_only=True)
class InspectSample:
    """One sample."""

    id: str
    messages: tuple[tuple[str, str], ...]
    """Role and words."""
    target: str
    """The outcomes by target id, as JSON."""
    metadata: Mapping[str, Any]


def sample_of(
    question: Question, outcomes: Mapping[str, int], view: str = "market", wording: str = "default"
) -> InspectSample:
    """A question whose outcomes are known, as of its date; no tool and no fence stand behind it."""
    context = PredictionContext(question=known_at(question, question.as_of), as_of=question.as_of)
    call = call_of(ElicitationCall(wording=wording), context, read_view(view))
    roles = ("system", "user")
    return InspectSample(
        id=f"{question.id}@{question.due.date().isoformat()}",
        messages=tuple((role, message.text) for role, message in zip(roles, call.messages, strict=True)),
        target=json.dumps(dict(outcomes)),
        metadata={
            CLUSTER_KEY: question.cluster,
            "source": question.source,
            "kind": question.kind,
            "due": question.due.isoformat(),
            QUESTION_KEY: to_json(question),
        },
    )


def samples_of(found: QuestionSet, *, limit: int | None = None, view: str = "market") -> list[InspectSample]:
    """The questions of a set that have come out, in its order."""
    known = found.outcomes()
    asked: list[InspectSample] = []
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
            asked.append(sample_of(question, outcomes, view))
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
    text = (metadata or {}).get(QUESTION_KEY)
    return from_json(text, Question) if isinstance(text, str) else None


def resolutions_of(question: Question, outcomes: Mapping[str, int]) -> list[Resolution]:
    """The outcomes of a sample as values."""
    return [
        Resolution(question_id=question.id, target_id=target, due=question.due, outcome=outcome)
        for target, outcome in outcomes.items()
    ]


# How one's own questions came out: a table of question, target, outcome beside the file that asks.

OUTCOME_READERS = {".csv": csv_rows, ".jsonl": jsonl_rows}


def read_outcomes(path: str | Path) -> tuple[Resolution, ...]:
    """The outcomes of a table with the columns question, target, outcome and, where it matters, due."""
    file = Path(path)
    if not file.exists():
        raise InputError("no such file", path=file)
    reader = OUTCOME_READERS.get(file.suffix.lower())
    if reader is None:
        raise InputError("is no table of outcomes", path=file, hint="use .csv or .jsonl")
    return tuple(_resolution(row) for row in reader(file))


def _resolution(row: Row) -> Resolution:
    outcome = row.real("outcome")
    if outcome not in (0, 1, None):
        raise row.problem("outcome", f"{outcome:g} is neither 0 nor 1")
    try:
        return Resolution(
            question_id=str(row.need("question")),
            target_id=row.text("target") or "yes",
            outcome=None if outcome is None else int(outcome),
            due=row.text("due") or None,  # pyright: ignore[reportArgumentType] - read by the value itself
        )
    except ValueError as error:
        raise row.problem("due", str(error)) from None


ONLY = "yes"
"""The target of a question that is not ours: whether it comes true."""
NAMES = ("probability", "p", "probabilities", "prediction", "forecast", "answer")
_LAST_WORDS = re.compile(
    r"(?:probability|forecast|answer|estimate|prediction)\b[^0-9\n]{0,40}?(\d+(?:\.\d+)?|\.\d+)\s*(%?)[^0-9]*\Z", re.I
)
_NUMBER = re.compile(r"\s*\**\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*\**\s*\.?\s*")


def outcomes_of(target: str) -> dict[str, int]:
    """The outcomes a sample's target tells: ours as JSON, others as a word for yes or no. Raises `UnusableReply`.

    >>> outcomes_of('{"A": 1, "B": 0}'), outcomes_of("No"), outcomes_of("1.0")
    ({'A': 1, 'B': 0}, {'yes': 0}, {'yes': 1})
    """
    word = target.strip().casefold()
    if word in YES | {"1.0"}:
        return {ONLY: 1}
    if word in NO | {"0.0"}:
        return {ONLY: 0}
    try:
        found = json.loads(target)
    except ValueError:
        found = None
    entries = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if not entries or any(value not in (0, 1) for value in entries.values()):
        raise UnusableReply(f"the target {target[:40]!r} is neither yes nor no")
    return {name: int(value) for name, value in entries.items()}


def probabilities_in(text: str, metadata: Mapping[str, Any] | None = None) -> dict[str, float]:
    """One probability for every target, or `UnusableReply` with what is wrong. Nothing is guessed.

    >>> probabilities_in("I weighed both sides.  Probability: 37%"), probabilities_in('{"p": 0.2}')
    ({'yes': 0.37}, {'yes': 0.2})
    """
    question = question_in(metadata)
    if question is None:
        return {ONLY: _alone(text)}
    try:
        said = read_json(text)
    except NoJsonFound as error:
        if len(question.targets) == 1:
            return {question.targets[0].id: _in_words(text, str(error))}
        raise UnusableReply(str(error)) from None
    if not isinstance(said, dict):
        raise UnusableReply("the answer is no JSON object")
    return dict(read_probabilities(cast("dict[str, Any]", said), OutcomeNames.of(question)).p)


def _alone(text: str) -> float:
    """The probability of yes in any reply."""
    try:
        said = read_json(text)
    except NoJsonFound as error:
        return _in_words(text, str(error))
    found = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    given = next((found[name] for name in NAMES if name in found), None)
    if isinstance(given, dict):
        given = next((part for name, part in cast("dict[str, Any]", given).items() if name.casefold() == ONLY), None)
    return _probability(str(given), "the JSON holds no probability")


def _in_words(text: str, problem: str) -> float:
    """A number that stands alone, alone on the last line, or after a word such as "Probability" at the end."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    for candidate in (text.strip(), lines[-1] if lines else ""):
        if _NUMBER.fullmatch(candidate):
            return _probability(candidate, problem)
    found = _LAST_WORDS.search(text.strip())
    if found is None:
        raise UnusableReply(problem)
    return _probability(f"{found[1]}{found[2]}", problem)


def _probability(written: str, problem: str) -> float:
    found = _NUMBER.fullmatch(written)
    if found is None:
        raise UnusableReply(problem)
    number = float(found[1]) / (100 if found[2] else 1)
    if not 0 <= number <= 1:
        raise UnusableReply(f"{written.strip()[:40]} is not a probability; write a number from 0 to 1, or a percentage")
    return number
