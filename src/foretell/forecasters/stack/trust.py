"""Whom to believe, a model or the plain base rate: by how both did on earlier rounds, each as it stood then."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.rows import Days, sigmoid
from foretell.forecasters.priors import Rates
from foretell.forecasters.stack.family import Estimator, Family
from foretell.forecasters.stack.past import Lesson, Past

PRIOR = 1.0
"""Log-odds for the model before anything is seen of it: 73 %, the rest for the base rate."""
RATE = 2.0
"""A Brier gain d near p = 1/2 is a log-likelihood gain of about 2 d."""
CORRELATION = 0.1
"""Between gains of answers known on one day: m of them are worth m / (1 + (m − 1)·ρ)."""
ROUNDS = 26
"""How many rounds back are looked at."""


def trust(gain: Floats, known_on: Days) -> float:
    """The weight of the model: σ(prior + rate · gain in Brier score, days of many answers discounted).

    >>> days = np.arange("2025-03-02", "2025-04-11", dtype="M8[D]")
    >>> round(trust(np.zeros(0), days[:0]), 2), round(trust(np.full(40, 0.05), days), 2)
    (0.73, 0.99)
    """
    if not len(gain):
        return float(sigmoid(PRIOR))
    _, code, size = np.unique(known_on, return_inverse=True, return_counts=True)
    worth = (1.0 / (1.0 + (size - 1) * CORRELATION))[code]
    return float(sigmoid(PRIOR + RATE * float(worth @ gain)))


@dataclass(frozen=True, kw_only=True)
class TrackRecord:
    """Gains of a family over the base rate, round by round, each round judged by the model of its own day."""

    estimator: Callable[[date], Estimator]
    """The family's model as it stood on a day."""
    rates: Rates
    rounds: Mapping[date, list[Lesson]]
    _gains: dict[date, tuple[Floats, Days]] = field(
        default_factory=dict[date, tuple[Floats, Days]], repr=False, compare=False
    )

    @classmethod
    def of(cls, family: Family, estimator: Callable[[date], Estimator], past: Past, rates: Rates) -> "TrackRecord":
        """Of the answers to questions the family covers, by the round they were asked in."""
        rounds: dict[date, list[Lesson]] = {}
        for lesson in past.lessons:
            if family.covers(lesson.question):
                rounds.setdefault(lesson.question.due.date(), []).append(lesson)
        return cls(estimator=estimator, rates=rates, rounds=rounds)

    def weight(self, day: date) -> float:
        """How far to believe the model on a day, from answers known before it."""
        asked = sorted(due for due in self.rounds if due < day)[-ROUNDS:]
        if not asked:
            return trust(np.zeros(0), np.zeros(0, "M8[D]"))
        parts = [self._round(due) for due in asked]
        gain, known_on = (np.concatenate(column) for column in zip(*parts, strict=True))
        known = known_on < np.datetime64(day, "D")
        return trust(gain[known], known_on[known])

    def _round(self, due: date) -> tuple[Floats, Days]:
        if due not in self._gains:
            estimator = self.estimator(due)
            said: dict[str, Mapping[str, float]] = {}
            rows: list[tuple[float, date]] = []
            for lesson in self.rounds[due]:
                question = lesson.question
                if question.id not in said:
                    p = estimator.estimate(question).p
                    said[question.id] = {t.id: float(x) for t, x in zip(question.targets, p, strict=True)}
                simple = self.rates.rate(question, lesson.target, question.as_of)
                if simple is not None:
                    model = said[question.id][lesson.target.id]
                    rows.append(((simple - lesson.outcome) ** 2 - (model - lesson.outcome) ** 2, lesson.known_on))
            self._gains[due] = (
                np.array([gain for gain, _ in rows], np.float64),
                np.array([known for _, known in rows], "M8[D]"),
            )
        return self._gains[due]
