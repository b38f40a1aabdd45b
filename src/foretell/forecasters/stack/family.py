"""What a model of one kind of question offers: it covers some, studies the past, and estimates as of a day."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Protocol

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.stack.past import Past
from foretell.forecasters.stack.pooling import Learnt, Taught
from foretell.questions.question import Question
from foretell.sources.series import Series


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One probability per target, and where they come from in words."""

    p: Floats
    words: str


class Estimator(Protocol):
    """A model as it stood on one day."""

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """Probabilities of the question's targets; `record` is its series as far as known, perhaps an old one."""
        ...


class Studied(Protocol):
    """A model with the past laid out; what it may use of it is settled by the day."""

    def as_of(self, day: date) -> Estimator:
        """The model from what was known before the day."""
        ...


class Family(Protocol):
    """A model of one kind of question."""

    @property
    def name(self) -> str:
        """As named in rationales."""
        ...

    def covers(self, question: Question) -> bool:
        """Whether it is about questions like this one."""
        ...

    def study(self, past: Past) -> Studied:
        """Take the past in, once; later it is read day by day."""
        ...


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """A family whose models differ from day to day only in the effects learnt until then."""

    taught: Taught
    make: Callable[[Learnt], Estimator]

    def as_of(self, day: date) -> Estimator:
        """The model with the effects known before the day."""
        return self.make(self.taught.before(day))


def horizons(question: Question) -> Floats:
    """Days to each target's resolution; a covered question has them all."""
    return np.asarray([question.horizon_days(target) or 0 for target in question.targets], np.float64)


def dated(question: Question) -> bool:
    """Whether every target resolves on a known day after the asking."""
    return all((question.horizon_days(target) or 0) > 0 for target in question.targets)


def rises(question: Question) -> bool:
    """Whether it asks if a series will stand above its value of the due date."""
    ref = question.series
    return ref is not None and ref.comparison == "above" and ref.threshold is None and dated(question)
