"""An agent's belief: probabilities, the cited evidence behind them, and open questions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from foretell.forecasters.agent.answer_format import AnswerFormat, StatedProbabilities, write_quantiles
from foretell.frozen import frozen
from foretell.models.structured_output import closed_object
from foretell.questions.forecast import Numeric
from foretell.questions.question import even_chance

# The belief that a model states: its schema, and a lenient parser.

BELIEF = "updated_belief"
"""Name of the tool-call argument that carries the belief."""
Confidence = Literal["low", "medium", "high"]
CONFIDENCES: tuple[Confidence, ...] = ("low", "medium", "high")
MOST_ITEMS = 20
LONGEST_CLAIM = 600
LONGEST_REASON = 3000


StatedClaim = tuple[str, str]
"""A piece of evidence and its source as stated; whether the source exists has not been checked yet."""


@frozen
class BeliefStatement:
    """A parsed `updated_belief`. Its lists hold what is new; earlier evidence stays unless retracted."""

    stated: StatedProbabilities
    confidence: Confidence | None = None
    evidence_for: tuple[StatedClaim, ...] = ()
    evidence_against: tuple[StatedClaim, ...] = ()
    retracted: tuple[str, ...] = ()
    open_questions: tuple[str, ...] | None = None
    reason: str = ""


def belief_schema(form: AnswerFormat) -> dict[str, Any]:
    """Return the JSON schema of the belief.

    The reason comes first, because only text before the number can affect it. The number is next, so that a reply that
    is cut off within its lists still has it.
    """
    text = {"type": "string"}
    claims = {"type": "array", "items": closed_object({"claim": text, "source_id": text})}
    texts = {"type": "array", "items": text}
    properties = {
        "reason": text,
        form.field: form.schema(),
        "confidence": {"type": "string", "enum": list(CONFIDENCES)},
        "evidence_for": claims,
        "evidence_against": claims,
        "retract": texts,
        "open_questions": texts,
    }
    return closed_object(properties)


def read_statement(value: Any, form: AnswerFormat) -> BeliefStatement | None:
    """Parse as much of a belief as possible; return None if there is nothing like a belief at all."""
    if not isinstance(value, Mapping):
        return None
    fields = cast("Mapping[str, Any]", value)
    confidence = fields.get("confidence")
    return BeliefStatement(
        stated=form.read(fields),
        confidence=confidence if confidence in CONFIDENCES else None,
        evidence_for=_claims(fields.get("evidence_for")),
        evidence_against=_claims(fields.get("evidence_against")),
        retracted=_texts(fields.get("retract")),
        open_questions=_texts(fields["open_questions"]) if "open_questions" in fields else None,
        reason=as_text(fields.get("reason"))[:LONGEST_REASON],
    )


def as_text(value: Any) -> str:
    """Return the value stripped if it is a text, else an empty text."""
    return value.strip() if isinstance(value, str) else ""


def _list(value: Any) -> Sequence[Any]:
    if isinstance(value, str | Mapping):
        return (value,)
    return cast("list[Any]", value)[:MOST_ITEMS] if isinstance(value, list) else ()


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(text for item in _list(value) if (text := as_text(item)[:LONGEST_CLAIM]))


def _claims(value: Any) -> tuple[StatedClaim, ...]:
    """Parse claims given as objects with claim and source, or as bare sentences without a source."""
    claims: list[StatedClaim] = []
    for item in _list(value):
        fields = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {"claim": item}
        if text := as_text(fields.get("claim"))[:LONGEST_CLAIM]:
            claims.append((text, as_text(fields.get("source_id"))[:200]))
    return tuple(claims)


Origin = Literal["blank", "price", "prior", "model", "overwritten"]
QUESTION = "question"
"""The source id of the question itself; it always exists."""


@frozen
class BeliefEvidence:
    """A fact with the result it came from. The source is empty if the model named none, or one that does not exist."""

    id: str
    claim: str
    source_id: str = ""


@frozen
class Belief:
    """A belief; every revision makes a new value and never changes one in place."""

    p: Mapping[str, float]
    """Probability by target id; scaled to a valid sum if the targets exclude each other."""
    stated: Mapping[str, float]
    """Probabilities as the model stated them, before such scaling."""
    origin: Origin
    """Where the numbers come from. `blank` means even chances, which are never an answer."""
    confidence: Confidence = "low"
    evidence_for: tuple[BeliefEvidence, ...] = ()
    evidence_against: tuple[BeliefEvidence, ...] = ()
    open_questions: tuple[str, ...] = ()
    reason: str = ""
    step: int = 0
    """The last step whose result this belief takes into account; 0 before any research."""
    distribution: Numeric | None = None
    recorded: int = 0
    """Number of pieces of evidence ever recorded, so that no id is used twice."""
    unknown_sources: tuple[str, ...] = ()
    """Ids cited in the last revision that belong to no result; they were removed from the evidence."""

    def revise(
        self, statement: BeliefStatement, form: AnswerFormat, *, step: int, sources: Collection[str]
    ) -> tuple["Belief", tuple[str, ...]]:
        """Return the belief after a statement, and notes for the model about it.

        Targets without a readable number keep the one they had. Evidence accumulates; a repeated claim is not counted
        again, and only evidence retracted by its id is removed.
        """
        log = _EvidenceLog(self, sources, statement.retracted)
        stated = statement.stated
        numbers: dict[str, Any] = {}
        if not stated.p or (self.origin == "blank" and form.missing(stated.p)):
            notes = (f"your p was not taken over: {'; '.join(stated.problems) or 'none was given'}",)
        else:
            merged, notes = {**self.p, **stated.p}, stated.problems
            numbers = {"p": form.coherent(merged), "stated": merged, "origin": "model"}
            numbers["distribution"] = stated.distribution
        revised = replace(
            self,
            **numbers,
            confidence=statement.confidence or self.confidence,
            evidence_for=log.take(self.evidence_for, statement.evidence_for),
            evidence_against=log.take(self.evidence_against, statement.evidence_against),
            open_questions=self.open_questions if statement.open_questions is None else statement.open_questions,
            reason=statement.reason,
            step=step,
            recorded=log.count,
            unknown_sources=tuple(log.unknown),
        )
        return revised, (*notes, *log.notes())

    def overwrite(self, p: Mapping[str, float], form: AnswerFormat) -> "Belief":
        """Return the belief with other numbers, for experiments."""
        merged = {**self.p, **p}
        return replace(self, p=form.coherent(merged), stated=merged, origin="overwritten", distribution=None)

    def as_json(self) -> dict[str, Any]:
        """Return the fields that `BeliefRevised.belief` records, without p, reason and step."""
        return {
            "stated": self.stated,
            "origin": self.origin,
            "confidence": self.confidence,
            "evidence_for": [vars(item) for item in self.evidence_for],
            "evidence_against": [vars(item) for item in self.evidence_against],
            "open_questions": list(self.open_questions),
            "unknown_sources": list(self.unknown_sources),
            "quantiles": write_quantiles(self.distribution) if self.distribution else None,
        }

    @property
    def formed(self) -> bool:
        """Whether the numbers were stated, or come from a price or base rate."""
        return self.origin != "blank"


class _EvidenceLog:
    """Numbers new evidence and checks its sources while one statement is processed."""

    def __init__(self, belief: Belief, sources: Collection[str], retracted: tuple[str, ...]) -> None:
        self.sources = sources
        self.retracted = retracted
        self.before = self.count = belief.recorded
        self.known = {item.id for item in (*belief.evidence_for, *belief.evidence_against)}
        self.unknown: list[str] = []

    def take(self, old: tuple[BeliefEvidence, ...], new: tuple[StatedClaim, ...]) -> tuple[BeliefEvidence, ...]:
        """Return the evidence of one side with the new claims added; a repeated claim is not counted again."""
        evidence = [item for item in old if item.id not in self.retracted]
        claims = {_plain(item.claim) for item in evidence}
        for text, source in new:
            if _plain(text) in claims:
                continue
            claims.add(_plain(text))
            self.count += 1
            exists = source == QUESTION or source in self.sources
            if source and not exists:
                self.unknown.append(source)
            evidence.append(BeliefEvidence(id=f"e{self.count}", claim=text, source_id=source if exists else ""))
        return tuple(evidence)

    def notes(self) -> list[str]:
        added = [f"e{number}" for number in range(self.before + 1, self.count + 1)]
        notes = [f"recorded {', '.join(added)}"] if added else []
        if self.unknown:
            text = ", ".join(dict.fromkeys(self.unknown))
            notes.append(f"no result has the id {text}: that evidence is kept without a source")
        if unknown_ids := [id for id in self.retracted if id not in self.known]:
            notes.append(f"nothing to retract under {', '.join(unknown_ids)}")
        return notes


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")


def starting_belief(
    form: AnswerFormat, *, price: Mapping[str, float] | None = None, prior: Mapping[str, float] | None = None
) -> Belief:
    """Return the initial belief: the market price, else the base rate, else even chances marked as `blank`."""
    ids = set(form.targets.values())
    for origin, signal in (("price", price), ("prior", prior)):
        if signal is not None and ids <= signal.keys():
            p = {id: signal[id] for id in form.targets.values()}
            return Belief(p=form.coherent(p), stated=p, origin=origin)  # pyright: ignore[reportArgumentType]
    p = dict.fromkeys(form.targets.values(), even_chance(form.exclusivity, len(ids)))
    return Belief(p=p, stated=p, origin="blank")
