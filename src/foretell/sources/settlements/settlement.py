"""What platforms say came true, for questions that were asked of their markets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.sources.listing import Skipped, Tell
from foretell.sources.market import MarketRef
from foretell.sources.markets.catalogue import Unsupported, about
from foretell.sources.markets.reference import market_ref, split_part
from foretell.sources.payload import Malformed

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
class Sought:
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
class Verdict:
    """How a target came out: yes (1), no (0), or neither."""

    outcome: int | None
    payoff: float | None = None
    at: datetime | None = None


def sought(questions: Iterable[Question], platform: str) -> list[Sought]:
    """Every target of this platform, once."""
    found: dict[tuple[str, datetime, str], Sought] = {}
    for question in questions:
        for target in question.targets:
            ref = market_ref(question, target)
            if ref is not None and ref.platform == platform:
                found[question.id, question.due, target.id] = Sought(question=question, target=target, ref=ref)
    return list(found.values())


def by_market(all_sought: Iterable[Sought]) -> dict[str, list[Sought]]:
    """Grouped, so that each market is asked for once."""
    found: dict[str, list[Sought]] = {}
    for one in all_sought:
        found.setdefault(one.market, []).append(one)
    return found


def resolution(one: Sought, verdict: Verdict, provenance: str) -> Resolution:
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


Judge = Callable[[Sought], Verdict | None]
"""Reads the verdict on a target from what a platform sent; None where there is none yet."""


def judged(group: Iterable[Sought], judge: Judge, provenance: str, tell: Tell) -> list[Resolution]:
    """The verdicts on some targets. What cannot be read is told, and keeps nothing else from being read."""
    found: list[Resolution] = []
    for one in group:
        try:
            with about(f"{one.ref.platform} market {one.ref.id}", provenance):
                verdict = judge(one)
        except Malformed as error:
            tell(Skipped(platform=one.ref.platform, id=one.ref.id, reason=error.problem))
        except Unsupported as error:
            tell(Skipped(platform=one.ref.platform, id=one.ref.id, reason=str(error), kind="unsupported"))
        else:
            found += [resolution(one, verdict, provenance)] if verdict is not None else []
    return found


def unknown(group: Iterable[Sought], tell: Tell, reason: str = "the platform knows no such market") -> None:
    """Tell that these could not be found."""
    for one in group:
        tell(Skipped(platform=one.ref.platform, id=one.ref.id, reason=reason, kind="unknown"))


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """In pieces of at most so many.

    >>> chunks([1, 2, 3], 2)
    [[1, 2], [3]]
    """
    return [items[start : start + size] for start in range(0, len(items), size)]
