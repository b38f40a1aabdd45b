"""Places on a ranking list that is published once a month: will somebody stand as high or higher later?"""

from dataclasses import dataclass
from datetime import date

import numpy as np

from foretell.forecasters.stack.family import Estimate, Pooling, dated
from foretell.forecasters.stack.past import Past
from foretell.forecasters.stack.pooling import Beliefs, Cases, Learnt, Taught
from foretell.questions.question import Question, Target
from foretell.sources.series import Series

BELIEFS = Beliefs(
    slope=(1.0, -0.6, 1.0, 2.0),
    slope_sd=(1.0, 0.5, 1.0, 1.0),
    group_sd={"player": 0.6, "asking": 1.0},
    shared=frozenset({"asking"}),
)
"""Columns: the level, log(1 + lists to come), no list before the date, first place (nobody can pass the first but by
falling is it lost). `asking`: the dates of one question tell one story."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """FIDE rankings."""

    name: str = "ranking lists"

    def covers(self, question: Question) -> bool:
        """The template about a player's rank."""
        return question.source == "wikipedia" and question.subtype == "fide_rank" and dated(question)

    def study(self, past: Past) -> Pooling:
        """All earlier outcomes of the template."""
        lessons = [x for x in past.lessons if self.covers(x.question)]
        taught = Taught(
            cases=_cases([(x.question, x.target) for x in lessons]),
            outcome=np.array([x.outcome for x in lessons], np.float64),
            known_on=np.array([x.known_on for x in lessons], "M8[D]"),
            beliefs=BELIEFS,
        )
        return Pooling(taught=taught, make=lambda learnt: Players(learnt=learnt))


@dataclass(frozen=True, kw_only=True)
class Players:
    """How long places are kept, as known on a day."""

    learnt: Learnt

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """Less likely with every list that is still to come."""
        p = self.learnt.pooled.chances(_cases([(question, target) for target in question.targets]))
        own = int(np.sum(self.learnt.cases.labels["player"] == question.id))
        words = (
            f"A place is kept until the next monthly list and then lost with time: {p[0]:.0%} at the first date, "
            f"{p[-1]:.0%} at the last, from {len(self.learnt.outcome)} outcomes of such questions, {own} of them of "
            "this player."
        )
        return Estimate(p=p, words=words)


def lists_between(due: date, end: date) -> int:
    """Monthly lists, published on the first, after the due day up to the end.

    >>> lists_between(date(2025, 10, 26), date(2025, 11, 2)), lists_between(date(2025, 11, 9), date(2025, 11, 16))
    (1, 0)
    """
    return (end.year - due.year) * 12 + end.month - due.month


def _cases(asked: list[tuple[Question, Target]]) -> Cases:
    columns = np.zeros((len(asked), 4))
    for row, (question, target) in enumerate(asked):
        due, end = question.due.date(), (target.resolves_at or question.due).date()
        lists = lists_between(due, end)
        first = question.last_value is not None and question.last_value.value == 1
        columns[row] = (1.0, np.log1p(lists), float(lists == 0), float(first))
    player = np.array([question.id for question, _ in asked], str)
    asking = np.array([f"{question.id}@{question.due.date()}" for question, _ in asked], str)
    return Cases(start=np.zeros(len(asked)), columns=columns, labels={"player": player, "asking": asking})
