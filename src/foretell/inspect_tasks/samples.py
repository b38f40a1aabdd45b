"""Read probabilities and outcomes from Inspect samples, both of our tasks and of others."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from foretell.forecasters.prompt.elicitation import NO, YES, OutcomeNames, read_probabilities
from foretell.models.structured_output import NoJsonFound, UnusableReply, read_json
from foretell.questions.codec import from_json
from foretell.questions.question import Question

QUESTION_KEY = "foretell_question"
"""Metadata key of a sample for the complete question as JSON."""
CLUSTER_KEY = "question"
"""Metadata key of the cluster: samples about the same question or from the same group of questions are correlated."""
ONLY = "yes"
"""Target id used for questions from other tasks."""
NAMES = ("probability", "p", "probabilities", "prediction", "forecast", "answer")
_LAST_WORDS = re.compile(
    r"(?:probability|forecast|answer|estimate|prediction)\b[^0-9\n]{0,40}?(\d+(?:\.\d+)?|\.\d+)\s*(%?)[^0-9]*\Z", re.I
)
_NUMBER = re.compile(r"\s*\**\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*\**\s*\.?\s*")


def question_in(metadata: Mapping[str, Any] | None) -> Question | None:
    """Return the question of a sample from one of our tasks; None for other samples."""
    text = (metadata or {}).get(QUESTION_KEY)
    return from_json(text, Question) if isinstance(text, str) else None


def outcomes_of(target: str) -> dict[str, int]:
    """Parse the outcomes in a sample's target: JSON in our samples, yes or no in others. Raises `UnusableReply`.

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
    """Parse one probability per target; raises `UnusableReply` rather than guess.

    >>> probabilities_in("I weighed both sides.  Probability: 37%"), probabilities_in('{"p": 0.2}')
    ({'yes': 0.37}, {'yes': 0.2})
    """
    question = question_in(metadata)
    if question is None:
        return {ONLY: _alone(text)}
    try:
        reply = read_json(text)
    except NoJsonFound as error:
        if len(question.targets) == 1:
            return {question.targets[0].id: _in_words(text, str(error))}
        raise UnusableReply(str(error)) from None
    if not isinstance(reply, dict):
        raise UnusableReply("the answer is no JSON object")
    return dict(read_probabilities(cast("dict[str, Any]", reply), OutcomeNames.of(question)).p)


def _alone(text: str) -> float:
    """Parse the probability of yes from a reply in any format."""
    try:
        reply = read_json(text)
    except NoJsonFound as error:
        return _in_words(text, str(error))
    found = cast("dict[str, Any]", reply) if isinstance(reply, dict) else {}
    given = next((found[name] for name in NAMES if name in found), None)
    if isinstance(given, dict):
        given = next((part for name, part in cast("dict[str, Any]", given).items() if name.casefold() == ONLY), None)
    return _probability(str(given), "the JSON holds no probability")


def _in_words(text: str, problem: str) -> float:
    """Parse a number that is the whole text, the whole last line, or at the end after a word such as "Probability"."""
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
