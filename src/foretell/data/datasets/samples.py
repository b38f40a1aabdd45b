"""Samples of resolved questions per source with a fixed seed, as the BLF study drew its test sets.

Murphy et al. 2026 (BLF), appendix H.2.1: take the questions of one round that are resolved by a date, sort each
source's ids as text, shuffle them with a generator that is seeded again with the same seed for every source, and keep
the first n of every data-set source and all market questions.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from foretell.data.datasets.question_set import QuestionSet, count_notes
from foretell.frozen import frozen
from foretell.questions.as_of import end_of_day, instant
from foretell.questions.question import Question


@frozen
class SamplePlan:
    """Which questions of a round make up a sample."""

    due: datetime
    resolved_by: datetime
    """Outcomes after the end of this day do not count."""
    per_dataset_source: int | None = 20
    markets: int | None = None
    """Number of market questions, divided among the market sources by their size; None for all."""
    seed: int = 42
    without: frozenset[str] = frozenset()
    """Ids that had no outcome when the sample was drawn: resolution files may be completed much later."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "due", instant(self.due))
        object.__setattr__(self, "resolved_by", instant(self.resolved_by))


def build_sample(pool: QuestionSet, plan: SamplePlan) -> QuestionSet:
    """Draw the sample: sources in alphabetical order, each source in shuffled order, outcomes up to the deadline."""
    deadline = end_of_day(plan.resolved_by.date())
    known = tuple(r for r in pool.resolutions if r.resolved_at is not None and r.resolved_at <= deadline)
    answered = {r.question_id for r in known if r.due == plan.due and r.outcome is not None}
    counts: Counter[str] = Counter()
    eligible: dict[str, list[Question]] = {}
    for question in pool.questions:
        if question.due != plan.due:
            continue
        if question.id in plan.without or question.id not in answered:
            counts["questions not resolved in time"] += 1
            continue
        eligible.setdefault(question.source, []).append(question)
    chosen = _draw(eligible, plan)
    counts["resolved questions not drawn"] = sum(map(len, eligible.values())) - len(chosen)
    drawn = replace(pool, resolutions=known).only(chosen, name=f"{pool.name} sample {plan.due.date()}")
    return replace(drawn, notes=pool.notes + count_notes(counts))


def shuffled(questions: Sequence[Question], seed: int) -> list[Question]:
    """Return the questions in the order of their shuffled ids.

    The study kept one file per asking, so it sorted texts of the form '<id>_<due date>': 'X_…' comes after 'X1_…',
    unlike the bare ids.
    """
    ordered = sorted(questions, key=lambda q: f"{q.id}_{q.due.date().isoformat()}")
    random.Random(seed).shuffle(ordered)
    return ordered


def shares(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Split a total among groups in proportion to their sizes, by largest remainder, never above a group's size.

    >>> shares({"a": 70, "b": 20, "c": 10}, 10)
    {'a': 7, 'b': 2, 'c': 1}
    >>> shares({"a": 2, "b": 1}, 10)
    {'a': 2, 'b': 1}
    """
    everything = sum(sizes.values())
    if total >= everything:
        return dict(sizes)
    quotas = {name: total * size / everything for name, size in sizes.items()}
    taken = {name: int(quota) for name, quota in quotas.items()}
    by_remainder = sorted(quotas, key=lambda name: (taken[name] - quotas[name], name))
    for name in by_remainder[: total - sum(taken.values())]:
        taken[name] += 1
    return taken


def _draw(eligible: Mapping[str, list[Question]], plan: SamplePlan) -> list[Question]:
    markets = {s: len(qs) for s, qs in eligible.items() if qs[0].kind == "market"}
    take = markets if plan.markets is None else shares(markets, plan.markets)
    return [
        question
        for source in sorted(eligible)
        for question in shuffled(eligible[source], plan.seed)[: take.get(source, plan.per_dataset_source)]
    ]
