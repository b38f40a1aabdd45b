"""The belief an agent holds: probabilities, the cited evidence behind them, and what is still open."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from foretell.forecasters.agent.answer_format import AnswerFormat, StatedProbabilities, write_quantiles
from foretell.models.structured_output import closed_object
from foretell.questions.forecast import Numeric
from foretell.questions.question import even_chance

# What a model says about its belief: the schema it fills in, and a patient reading of what it filled in.

BELIEF = "updated_belief"
"""The argument of every tool call that carries the belief."""
Confidence = Literal["low", "medium", "high"]
CONFIDENCES: tuple[Confidence, ...] = ("low", "medium", "high")
MOST_ITEMS = 20
LONGEST_CLAIM = 600
LONGEST_REASON = 3000


StatedClaim = tuple[str, str]
"""A piece of evidence and its source as stated: nobody has checked yet that the source exists."""


@dataclass(frozen=True, kw_only=True)
class BeliefStatement:
    """An `updated_belief`, read. Lists hold what is new; earlier evidence stays unless retracted."""

    stated: StatedProbabilities
    confidence: Confidence | None = None
    evidence_for: tuple[StatedClaim, ...] = ()
    evidence_against: tuple[StatedClaim, ...] = ()
    retracted: tuple[str, ...] = ()
    open_questions: tuple[str, ...] | None = None
    reason: str = ""


def belief_schema(form: AnswerFormat) -> dict[str, Any]:
    """JSON schema of the belief.

    The reason comes first, because what is written before the number can still change it; then the number, so that
    a reply that is cut off in its lists has told it.
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


def read_statement(given: Any, form: AnswerFormat) -> BeliefStatement | None:
    """Whatever can be understood; None where there is nothing like a belief at all."""
    if not isinstance(given, Mapping):
        return None
    said = cast("Mapping[str, Any]", given)
    confidence = said.get("confidence")
    return BeliefStatement(
        stated=form.read(said),
        confidence=confidence if confidence in CONFIDENCES else None,
        evidence_for=_claims(said.get("evidence_for")),
        evidence_against=_claims(said.get("evidence_against")),
        retracted=_texts(said.get("retract")),
        open_questions=_texts(said["open_questions"]) if "open_questions" in said else None,
        reason=as_text(said.get("reason"))[:LONGEST_REASON],
    )


def as_text(given: Any) -> str:
    """A stated text, or nothing where something else was stated."""
    return given.strip() if isinstance(given, str) else ""


def _list(given: Any) -> Sequence[Any]:
    if isinstance(given, str | Mapping):
        return (given,)
    return cast("list[Any]", given)[:MOST_ITEMS] if isinstance(given, list) else ()


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(text for item in _list(given) if (text := as_text(item)[:LONGEST_CLAIM]))


def _claims(given: Any) -> tuple[StatedClaim, ...]:
    """Objects with claim and source, or bare sentences without a source."""
    claims: list[StatedClaim] = []
    for item in _list(given):
        said = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {"claim": item}
        if text := as_text(said.get("claim"))[:LONGEST_CLAIM]:
            claims.append((text, as_text(said.get("source_id"))[:200]))
    return tuple(claims)


Origin = Literal["blank", "crowd", "prior", "model", "overwritten"]
QUESTION = "question"
"""The source id of what the question itself says; it always exists."""


@dataclass(frozen=True, kw_only=True)
class BeliefEvidence:
    """A fact with the result it came from. No source: the model named one that does not exist, or none."""

    id: str
    claim: str
    source_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Belief:
    """Revised into a new value after every result, never changed in place."""

    p: Mapping[str, float]
    """By target id; fitting each other, where they exclude each other."""
    stated: Mapping[str, float]
    """As the model said it, before options were made to fit each other."""
    origin: Origin
    """Where the numbers come from. `blank` is the even start that no one stated: it is never an answer."""
    confidence: Confidence = "low"
    evidence_for: tuple[BeliefEvidence, ...] = ()
    evidence_against: tuple[BeliefEvidence, ...] = ()
    open_questions: tuple[str, ...] = ()
    reason: str = ""
    step: int = 0
    """The last step whose result this belief has taken in; 0 before any research."""
    distribution: Numeric | None = None
    recorded: int = 0
    """Pieces of evidence ever recorded: ids are not used twice."""
    unknown_sources: tuple[str, ...] = ()
    """Ids cited in the last revision that stand for no result; they were taken out."""

    def revise(
        self, statement: BeliefStatement, form: AnswerFormat, *, step: int, sources: Collection[str]
    ) -> tuple["Belief", tuple[str, ...]]:
        """The belief after a statement, and what the model must be told about it.

        Targets without a readable number keep the one they had. Evidence adds up; a claim stated again is not
        counted again; only what is retracted by its id goes.
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
        """The same belief with other numbers, for experiments that push it and watch what follows."""
        merged = {**self.p, **p}
        return replace(self, p=form.coherent(merged), stated=merged, origin="overwritten", distribution=None)

    def as_json(self) -> dict[str, Any]:
        """For the event that records it, which tells p, reason and step itself."""
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
        """Whether anyone ever stated these numbers."""
        return self.origin != "blank"


class _EvidenceLog:
    """Numbers new evidence and checks its sources while one statement is taken in."""

    def __init__(self, belief: Belief, sources: Collection[str], retracted: tuple[str, ...]) -> None:
        self.sources = sources
        self.retracted = retracted
        self.before = self.count = belief.recorded
        self.known = {item.id for item in (*belief.evidence_for, *belief.evidence_against)}
        self.unknown: list[str] = []

    def take(self, old: tuple[BeliefEvidence, ...], new: tuple[StatedClaim, ...]) -> tuple[BeliefEvidence, ...]:
        """The evidence of one side with what is new; a claim stated again is not counted again."""
        evidence = [item for item in old if item.id not in self.retracted]
        said = {_plain(item.claim) for item in evidence}
        for text, source in new:
            if _plain(text) in said:
                continue
            said.add(_plain(text))
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
        if unheard := [id for id in self.retracted if id not in self.known]:
            notes.append(f"nothing to retract under {', '.join(unheard)}")
        return notes


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")


def starting_belief(
    form: AnswerFormat, *, crowd: Mapping[str, float] | None = None, prior: Mapping[str, float] | None = None
) -> Belief:
    """Where an agent begins: at the crowd's price, else at the base rate, else at one half without meaning it."""
    ids = set(form.targets.values())
    for origin, given in (("crowd", crowd), ("prior", prior)):
        if given is not None and ids <= given.keys():
            p = {id: given[id] for id in form.targets.values()}
            return Belief(p=form.coherent(p), stated=p, origin=origin)  # pyright: ignore[reportArgumentType]
    p = dict.fromkeys(form.targets.values(), even_chance(form.exclusivity, len(ids)))
    return Belief(p=p, stated=p, origin="blank")
