"""Handing in the answer. The loop carries it out: nothing outside is touched."""

import re
from collections.abc import Mapping
from typing import Any, cast

from foretell.llm.message import ToolSpec
from foretell.questions.question import Question
from foretell.tools.names import SUBMIT
from foretell.tools.tool import ToolFailed

SAFE_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of properties that every provider takes."""


def submit_spec(question: Question) -> ToolSpec:
    """The tool that ends a trial, with one probability for each target of the question."""
    keys = target_keys(question)
    labels = {target.id: target.label for target in question.targets}
    return ToolSpec(
        name=SUBMIT,
        description=(
            "Hand in your final probabilities and end. Call it when further searching would hardly move them. Each is "
            "the chance, between 0 and 1, that the target comes true."
        ),
        parameters={
            "type": "object",
            "properties": {
                "p": {
                    "type": "object",
                    "properties": {
                        key: {"type": "number", "minimum": 0, "maximum": 1, "description": labels[target] or target}
                        for key, target in keys.items()
                    },
                    "required": list(keys),
                    "additionalProperties": False,
                }
            },
            "required": ["p"],
            "additionalProperties": False,
        },
    )


def target_keys(question: Question) -> dict[str, str]:
    """The argument that stands for each target: its id, or target_1, target_2, … where an id is no safe name."""
    ids = [target.id for target in question.targets]
    if all(SAFE_KEY.fullmatch(target) for target in ids):
        return {target: target for target in ids}
    return {f"target_{place}": target for place, target in enumerate(ids, start=1)}


def read_submission(question: Question, arguments: Mapping[str, Any]) -> dict[str, float]:
    """Probabilities by target id, or `ToolFailed` with what is missing or wrong.

    A bare number is taken where there is only one target; anything else is never guessed.
    """
    keys = target_keys(question)
    given = arguments.get("p")
    if len(keys) == 1 and isinstance(given, int | float | str):
        given = {next(iter(keys)): given}
    if not isinstance(given, Mapping):
        raise ToolFailed(f"'p' must hold one number for each of: {', '.join(keys)}.")
    found = cast("Mapping[str, Any]", given)
    return {target: _probability(found, key) for key, target in keys.items()}


def _probability(given: Mapping[str, Any], key: str) -> float:
    value = given.get(key)
    try:
        p = float(value) if not isinstance(value, bool) and value is not None else -1.0
    except (TypeError, ValueError):
        p = -1.0
    if not 0.0 <= p <= 1.0:
        raise ToolFailed(f"'p' for {key!r} must be a number between 0 and 1, not {value!r}.")
    return p
