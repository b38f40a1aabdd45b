"""Financial tasks out of a price series: long or short, higher or lower, with what each choice returned."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from foretell.questions.clock import AsOf, instant
from foretell.questions.question import Question, Target
from foretell.sources.datasets.options import best_option, resolve
from foretell.sources.datasets.question_set import QuestionSet, tally
from foretell.sources.series import Series


@dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """What a task needs before it counts as well formed."""

    horizon_days: int = 365
    min_history: int = 250
    """Observations up to the cutoff, about one trading year."""
    max_stale_days: int = 7
    """A price this much older than the day it stands for is no price of that day."""
    min_move: float = 1e-6
    """Smaller relative moves leave nothing to choose between."""

    def __post_init__(self) -> None:
        if self.horizon_days < 1 or self.min_history < 1:
            raise ValueError("horizon_days and min_history must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Wager:
    """How a task is worded and what each option returns for one dollar, given the ratio of end to start price."""

    name: str
    text: str
    payoffs: Callable[[float], dict[str, float]]


LONG_SHORT = Wager(
    name="long_short",
    text="Held for {days} days from {start}, will {asset} return more to a buyer or to a short seller?",
    payoffs=lambda ratio: {"long": ratio, "short": 2.0 - ratio},
)
"""A dollar held long returns the ratio; a dollar sold short returns 2 − ratio, which is negative past a doubling."""

HIGHER_LOWER = Wager(
    name="higher_lower",
    text="Will {asset} stand higher or lower on {end} than on {start}?",
    payoffs=lambda ratio: {"higher": float(ratio > 1), "lower": float(ratio < 1)},
)
"""A contract on the right side pays one dollar, the other nothing."""


def build_tasks(
    series: Series, cutoffs: Iterable[date], wager: Wager = LONG_SHORT, plan: TaskPlan | None = None
) -> QuestionSet:
    """One task per cutoff day; tasks that are not well formed are dropped, each reason with its count.

    >>> days = np.arange("2024-01-01", "2024-03-01", dtype="M8[D]")
    >>> prices = Series(id="X", days=days, values=np.linspace(100, 120, len(days)))
    >>> tasks = build_tasks(prices, [date(2024, 2, 1), date(2024, 2, 25)],
    ...                     plan=TaskPlan(horizon_days=14, min_history=20, max_stale_days=3))
    >>> [(r.target_id, r.outcome, round(r.payoff, 3)) for r in tasks.resolutions]
    [('long', 1, 1.043), ('short', 0, 0.957)]
    >>> tasks.notes
    ('1 tasks dropped: no price at the end',)
    """
    plan = plan or TaskPlan()
    counts: Counter[str] = Counter()
    questions: list[Question] = []
    outcomes: list[dict[str, float]] = []
    for cutoff in sorted(set(cutoffs)):
        payoffs = _payoffs(series, cutoff, wager, plan)
        if isinstance(payoffs, str):
            counts[f"tasks dropped: {payoffs}"] += 1
            continue
        questions.append(_question(series.id, cutoff, wager, plan, tuple(payoffs)))
        outcomes.append(payoffs)
    return QuestionSet(
        name=f"{series.id} {wager.name}",
        questions=tuple(questions),
        resolutions=tuple(r for q, p in zip(questions, outcomes, strict=True) for r in resolve(q, p, provenance=q.id)),
        notes=tally(counts),
    )


def _payoffs(series: Series, cutoff: date, wager: Wager, plan: TaskPlan) -> dict[str, float] | str:
    """What each option returned, or why the task is not well formed."""
    end = cutoff + timedelta(days=plan.horizon_days)
    if len(series.until(AsOf.day(cutoff))) < plan.min_history:
        return "too little history"
    before, after = _price(series, cutoff, plan), _price(series, end, plan)
    if before is None or after is None:
        return "no price at the start" if before is None else "no price at the end"
    if before <= 0 or after < 0:
        return "a price is not positive"
    payoffs = wager.payoffs(after / before)
    undecided = abs(after / before - 1) <= plan.min_move or best_option(payoffs) is None
    return "options pay the same" if undecided else payoffs


def _price(series: Series, day: date, plan: TaskPlan) -> float | None:
    """The last price on or before a day, unless it is stale."""
    index = int(np.searchsorted(series.days, np.datetime64(day, "D"), side="right")) - 1
    if index < 0 or np.datetime64(day, "D") - series.days[index] > np.timedelta64(plan.max_stale_days, "D"):
        return None
    return float(series.values[index])


def _question(asset: str, cutoff: date, wager: Wager, plan: TaskPlan, labels: tuple[str, ...]) -> Question:
    end = cutoff + timedelta(days=plan.horizon_days)
    return Question(
        id=f"{wager.name}/{asset}/{plan.horizon_days}d",
        source="financial",
        subtype=wager.name,
        text=wager.text.format(asset=asset, days=plan.horizon_days, start=cutoff.isoformat(), end=end.isoformat()),
        due=instant(cutoff),
        targets=tuple(Target(id=label, label=label, resolves_at=instant(end)) for label in labels),
        exclusive=True,
        cluster=f"financial/{asset}",
    )
