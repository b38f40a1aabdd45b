"""What a model says about its belief: the schema it fills in, and a patient reading of what it filled in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from foretell.forecasters.agent.form import Form, Stated

BELIEF = "updated_belief"
"""The argument of every tool call that carries the belief."""
Confidence = Literal["low", "medium", "high"]
CONFIDENCES: tuple[Confidence, ...] = ("low", "medium", "high")
MOST_ITEMS = 20
LONGEST_CLAIM = 600
LONGEST_REASON = 3000


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A piece of evidence as stated: nobody has checked yet that its source exists."""

    text: str
    source_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """An `updated_belief`, read. Lists hold what is new; earlier evidence stays unless retracted."""

    stated: Stated
    confidence: Confidence | None = None
    evidence_for: tuple[Claim, ...] = ()
    evidence_against: tuple[Claim, ...] = ()
    retracted: tuple[str, ...] = ()
    open_questions: tuple[str, ...] | None = None
    reason: str = ""


def belief_schema(form: Form) -> dict[str, Any]:
    """JSON schema of the belief.

    The reason comes first, because what is written before the number can still change it; then the number, so that
    a reply that is cut off in its lists has told it.
    """
    claim = {
        "type": "object",
        "properties": {
            "claim": {"type": "string", "description": "One fact, in a sentence."},
            "source_id": {"type": "string", "description": "Id of the result it comes from, or `question`."},
        },
        "required": ["claim", "source_id"],
        "additionalProperties": False,
    }
    texts = {"type": "array", "items": {"type": "string"}}
    properties = {
        "reason": {"type": "string", "description": "What the last result changed, and why by this much."},
        form.field: form.schema(),
        "confidence": {"type": "string", "enum": list(CONFIDENCES), "description": "How firm the number is."},
        "evidence_for": {"type": "array", "items": claim, "description": "New facts that raise it."},
        "evidence_against": {"type": "array", "items": claim, "description": "New facts that lower it."},
        "retract": {**texts, "description": "Ids (e1, e2, …) of recorded evidence that proved wrong."},
        "open_questions": {**texts, "description": "What could still move the number most."},
    }
    return {
        "type": "object",
        "description": "Your belief with all results so far taken in.",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_statement(given: Any, form: Form) -> Statement | None:
    """Whatever can be understood; None where there is nothing like a belief at all."""
    if not isinstance(given, Mapping):
        return None
    said = cast("Mapping[str, Any]", given)
    confidence = said.get("confidence")
    return Statement(
        stated=form.read(said),
        confidence=confidence if confidence in CONFIDENCES else None,
        evidence_for=_claims(said.get("evidence_for")),
        evidence_against=_claims(said.get("evidence_against")),
        retracted=_texts(said.get("retract")),
        open_questions=_texts(said["open_questions"]) if "open_questions" in said else None,
        reason=as_text(said.get("reason"))[:LONGEST_REASON],
    )


def as_text(given: Any) -> str:
    """A stated text, or nothing where something else was stated.

    >>> as_text(" so "), as_text({"a": 1})
    ('so', '')
    """
    return given.strip() if isinstance(given, str) else ""


def _list(given: Any) -> Sequence[Any]:
    if isinstance(given, str | Mapping):
        return (given,)
    return cast("list[Any]", given)[:MOST_ITEMS] if isinstance(given, list) else ()


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(text for item in _list(given) if (text := as_text(item)[:LONGEST_CLAIM]))


def _claims(given: Any) -> tuple[Claim, ...]:
    return tuple(claim for item in _list(given) if (claim := _claim(item)) is not None)


def _claim(item: Any) -> Claim | None:
    """An object with claim and source, or a bare sentence without a source."""
    if not isinstance(item, Mapping):
        text, source = as_text(item), ""
    else:
        said = cast("Mapping[str, Any]", item)
        text, source = as_text(said.get("claim")), as_text(said.get("source_id"))
    return Claim(text=text[:LONGEST_CLAIM], source_id=source[:200]) if text else None
