"""One question from the command line, as a run of its own."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from foretell.app.datasets import Benchmark
from foretell.arena.spec import BudgetSpec, QuestionsSpec, RunSpec
from foretell.questions.clock import instant
from foretell.questions.problems import InputError
from foretell.questions.question import Question, Target
from foretell.questions.snapshot import Snapshot
from foretell.sources.datasets.question_set import QuestionSet

TYPED = "asked "
"""Begins the name of a set that is one question typed at the command line."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a person typed."""

    text: str
    by: str | None = None
    as_of: str | None = None
    options: tuple[str, ...] = ()
    criteria: str = ""
    price: float | None = None


def question_of(asked: Asked, now: datetime) -> Question:
    """The question, asked now or as of a past date."""
    if not asked.text.strip():
        raise InputError("the question is empty")
    due = _moment(asked.as_of, "--as-of") or now
    by = _moment(asked.by, "--by")
    if by is not None and by <= due:
        raise InputError(f"{asked.by} is not after the day of asking", column="--by", hint="name a later day")
    snapshot = None if asked.price is None else Snapshot(at=due, last_price=asked.price)
    if asked.options:
        targets = tuple(Target(id=option, label=option, resolves_at=by) for option in asked.options)
    else:
        targets = (Target(id="yes", resolves_at=by, snapshot=snapshot),)
    digest = hashlib.sha256(asked.text.encode()).hexdigest()[:10]
    return Question(
        id=f"asked/{digest}",
        source="asked",
        text=asked.text,
        criteria=asked.criteria,
        due=due,
        opens_at=due,
        closes_at=by,
        targets=targets,
        exclusive=len(asked.options) > 1,
    )


def _moment(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        return instant(text)
    except ValueError as error:
        raise InputError(str(error), column=option) from None


def spec_of(
    asked: Asked,
    model: str,
    *,
    search: tuple[str, ...],
    trials: int,
    budget: float | None,
    variant: str = "full",
) -> RunSpec:
    """The run that answers the question."""
    words = hashlib.sha256(repr((asked, datetime.now(UTC).date() if asked.as_of is None else "")).encode()).hexdigest()
    return RunSpec(
        questions=QuestionsSpec(dataset=f"{TYPED}{words[:10]}"),
        options={"variant": variant},
        models={"agent": model},
        search=search,
        trials=trials,
        mode="live" if asked.as_of is None else "backtest",
        budget=BudgetSpec(run=budget),
    )


def benchmark_of(question: Question) -> Benchmark:
    """The question alone."""
    found = QuestionSet(name="asked", questions=(question,))
    return Benchmark(questions=found, history=found)
