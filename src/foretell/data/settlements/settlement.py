"""What platforms say came true, for questions that were asked of their markets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from foretell.data.markets.catalogue import UnsupportedEvent, error_context
from foretell.data.markets.listing import OnSkipped, SkippedEntry
from foretell.data.markets.prices import MarketRef, market_ref, split_part
from foretell.data.payload import MalformedPayload
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

T = TypeVar("T")


class SettlementSource(Protocol):
    """Reads how markets came out."""

    @property
    def platform(self) -> str:
        """The platform it reads."""
        ...

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """What has finally come out. Whatever is still open, proposed or disputed is absent.

        A market that was called off or paid in part has no outcome; what a one-dollar share was worth is its payoff.
        Questions of other platforms are passed over.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class SettlementTarget:
    """One target whose outcome is looked for."""

    question: Question
    target: Target
    ref: MarketRef

    @property
    def market(self) -> str:
        """The id of its market."""
        return split_part(self.ref)[0]

    @property
    def part(self) -> str | None:
        """The answer, outcome or option of that market."""
        return split_part(self.ref)[1]


@dataclass(frozen=True, kw_only=True)
class SettledOutcome:
    """How a target came out: yes (1), no (0), or neither."""

    outcome: int | None
    payoff: float | None = None
    at: datetime | None = None


def settlement_targets(questions: Iterable[Question], platform: str) -> list[SettlementTarget]:
    """Every target of this platform, once."""
    found: dict[tuple[str, datetime, str], SettlementTarget] = {}
    for question in questions:
        for target in question.targets:
            ref = market_ref(question, target)
            if ref is not None and ref.platform == platform:
                found[question.id, question.due, target.id] = SettlementTarget(
                    question=question, target=target, ref=ref
                )
    return list(found.values())


def by_market(all_sought: Iterable[SettlementTarget]) -> dict[str, list[SettlementTarget]]:
    """Grouped, so that each market is asked for once."""
    found: dict[str, list[SettlementTarget]] = {}
    for one in all_sought:
        found.setdefault(one.market, []).append(one)
    return found


def to_resolution(one: SettlementTarget, verdict: SettledOutcome, provenance: str) -> Resolution:
    """The verdict on a target, for the asking it was sought for."""
    return Resolution(
        question_id=one.question.id,
        target_id=one.target.id,
        due=one.question.due,
        outcome=verdict.outcome,
        payoff=verdict.payoff,
        resolved_at=verdict.at,
        provenance=provenance,
    )


OutcomeReader = Callable[[SettlementTarget], SettledOutcome | None]
"""Reads the verdict on a target from what a platform sent; None where there is none yet."""


def read_settlements(
    group: Iterable[SettlementTarget], judge: OutcomeReader, provenance: str, tell: OnSkipped
) -> list[Resolution]:
    """The verdicts on some targets. What cannot be read is told, and keeps nothing else from being read."""
    found: list[Resolution] = []
    for one in group:
        try:
            with error_context(f"{one.ref.platform} market {one.ref.id}", provenance):
                verdict = judge(one)
        except MalformedPayload as error:
            tell(SkippedEntry(platform=one.ref.platform, id=one.ref.id, reason=error.problem))
        except UnsupportedEvent as error:
            tell(SkippedEntry(platform=one.ref.platform, id=one.ref.id, reason=str(error), kind="unsupported"))
        else:
            found += [to_resolution(one, verdict, provenance)] if verdict is not None else []
    return found


def report_unknown(
    group: Iterable[SettlementTarget], tell: OnSkipped, reason: str = "the platform knows no such market"
) -> None:
    """Tell that these could not be found."""
    for one in group:
        tell(SkippedEntry(platform=one.ref.platform, id=one.ref.id, reason=reason, kind="unknown"))


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """In pieces of at most so many.

    >>> chunks([1, 2, 3], 2)
    [[1, 2], [3]]
    """
    return [items[start : start + size] for start in range(0, len(items), size)]
