"""The belief an agent holds: probabilities, the cited evidence behind them, and what is still open."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from foretell.forecasters.agent.form import Form
from foretell.forecasters.agent.numeric import write_quantiles
from foretell.forecasters.agent.statement import Claim, Confidence, Statement
from foretell.questions.distribution import Numeric

Origin = Literal["blank", "crowd", "prior", "model", "overwritten"]
QUESTION = "question"
"""The source id of what the question itself says; it always exists."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A fact with the result it came from. No source: the model named one that does not exist, or none."""

    id: str
    claim: str
    source_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Belief:
    """Revised into a new value after every result, never changed in place."""

    p: Mapping[str, float]
    """By target id; exclusive options sum to one."""
    stated: Mapping[str, float]
    """As the model said it, before options were made to sum to one."""
    origin: Origin
    """Where the numbers come from. `blank` is the even start that no one stated: it is never an answer."""
    confidence: Confidence = "low"
    evidence_for: tuple[Evidence, ...] = ()
    evidence_against: tuple[Evidence, ...] = ()
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
        self, statement: Statement, form: Form, *, step: int, sources: Collection[str]
    ) -> tuple["Belief", tuple[str, ...]]:
        """The belief after a statement, and what the model must be told about it.

        Targets without a readable number keep the one they had. Evidence adds up; a claim stated again is not
        counted again; only what is retracted by its id goes.
        """
        ledger = _Ledger(self, sources)
        supports = ledger.take(self.evidence_for, statement.evidence_for, statement.retracted)
        opposes = ledger.take(self.evidence_against, statement.evidence_against, statement.retracted)
        p, said = self._numbers(statement, form)
        revised = replace(
            self,
            **p,
            confidence=statement.confidence or self.confidence,
            evidence_for=supports,
            evidence_against=opposes,
            open_questions=self.open_questions if statement.open_questions is None else statement.open_questions,
            reason=statement.reason,
            step=step,
            recorded=ledger.count,
            unknown_sources=tuple(ledger.unknown),
        )
        return revised, (*said, *ledger.notes(statement.retracted))

    def _numbers(self, statement: Statement, form: Form) -> tuple[dict[str, Any], tuple[str, ...]]:
        stated = statement.stated
        if not stated.p or (self.origin == "blank" and form.missing(stated.p)):
            return {}, (f"your p was not taken over: {'; '.join(stated.problems) or 'none was given'}",)
        merged = {**self.p, **stated.p}
        numbers = {"p": form.coherent(merged), "stated": merged, "distribution": stated.distribution}
        return {**numbers, "origin": "model"}, stated.problems

    def overwrite(self, p: Mapping[str, float], form: Form) -> "Belief":
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


class _Ledger:
    """Numbers new evidence and checks its sources while one statement is taken in."""

    def __init__(self, belief: Belief, sources: Collection[str]) -> None:
        self.sources = sources
        self.count = belief.recorded
        self.known = {item.id for item in (*belief.evidence_for, *belief.evidence_against)}
        self.unknown: list[str] = []
        self.added: list[str] = []

    def take(
        self, old: tuple[Evidence, ...], new: tuple[Claim, ...], retracted: tuple[str, ...]
    ) -> tuple[Evidence, ...]:
        kept = [item for item in old if item.id not in retracted]
        said = {_plain(item.claim) for item in kept}
        for claim in new:
            if _plain(claim.text) not in said:
                said.add(_plain(claim.text))
                kept.append(self._record(claim))
        return tuple(kept)

    def _record(self, claim: Claim) -> Evidence:
        self.count += 1
        exists = claim.source_id == QUESTION or claim.source_id in self.sources
        if claim.source_id and not exists:
            self.unknown.append(claim.source_id)
        item = Evidence(id=f"e{self.count}", claim=claim.text, source_id=claim.source_id if exists else "")
        self.added.append(item.id)
        return item

    def notes(self, retracted: tuple[str, ...]) -> list[str]:
        notes = [f"recorded {', '.join(self.added)}"] if self.added else []
        if self.unknown:
            told = ", ".join(dict.fromkeys(self.unknown))
            notes.append(f"no result has the id {told}: that evidence is kept without a source")
        if unheard := [id for id in retracted if id not in self.known]:
            notes.append(f"nothing to retract under {', '.join(unheard)}")
        return notes


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")


def start(form: Form, *, crowd: Mapping[str, float] | None = None, prior: Mapping[str, float] | None = None) -> Belief:
    """Where an agent begins: at the crowd's price, else at the base rate, else at one half without meaning it.

    >>> from foretell.questions import Question, Target
    >>> q = Question(id="q", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    >>> start(Form.of(q)).formed, start(Form.of(q), prior={"yes": 0.1}).p
    (False, {'yes': 0.1})
    """
    ids = set(form.targets.values())
    for origin, given in (("crowd", crowd), ("prior", prior)):
        if given is not None and ids <= given.keys():
            p = {id: given[id] for id in form.targets.values()}
            return Belief(p=form.coherent(p), stated=p, origin=origin)  # pyright: ignore[reportArgumentType]
    even = 1 / len(ids) if form.exclusive else 0.5
    p = dict.fromkeys(form.targets.values(), even)
    return Belief(p=p, stated=p, origin="blank")
