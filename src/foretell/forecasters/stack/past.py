"""Earlier questions with what became of them: what the models of the stack learn from, day by day."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

import numpy as np

from foretell.forecasters.priors import PastOutcomes
from foretell.questions.question import Question, Target


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How one target of an asking came out, and the day on which that became known."""

    question_id: str
    due: datetime
    target_id: str
    outcome: int
    known_on: date


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A target of an earlier question with its answer."""

    question: Question
    target: Target
    outcome: int
    known_on: date

    @property
    def horizon(self) -> int:
        """Days from the asking to the resolution; to the answer where no date was set."""
        days = self.question.horizon_days(self.target)
        return (self.known_on - self.question.due.date()).days if days is None else days


@dataclass(frozen=True, kw_only=True)
class Past:
    """Questions asked before and the answers that are known; whoever reads it names the day up to which it may.

    >>> from foretell.questions import Target
    >>> q = Question(id="fred/DFF", source="fred", text="?", due="2025-03-02", kind="dataset",
    ...              targets=(Target(id="2025-03-09", resolves_at="2025-03-09"),))
    >>> told = Answer(question_id="fred/DFF", due=q.due, target_id="2025-03-09", outcome=0, known_on=date(2025, 3, 9))
    >>> [(lesson.target.id, lesson.horizon, lesson.outcome) for lesson in Past.of([q], [told]).lessons]
    [('2025-03-09', 7, 0)]
    """

    questions: tuple[Question, ...]
    lessons: tuple[Lesson, ...]

    @classmethod
    def of(cls, questions: Iterable[Question], answers: Iterable[Answer]) -> "Past":
        """Join questions and answers; an answer to nothing that was asked is left out."""
        asked = {(q.id, q.due): q for q in questions}
        lessons: list[Lesson] = []
        for answer in answers:
            question = asked.get((answer.question_id, answer.due))
            target = None if question is None else _target(question, answer.target_id)
            if question is not None and target is not None:
                lessons.append(
                    Lesson(question=question, target=target, outcome=answer.outcome, known_on=answer.known_on)
                )
        return cls(questions=tuple(asked.values()), lessons=tuple(lessons))

    @cached_property
    def outcomes(self) -> PastOutcomes:
        """The answers as base rates are counted from them."""
        return PastOutcomes(
            known_on=np.array([x.known_on for x in self.lessons], "M8[D]"),
            source=np.array([x.question.source for x in self.lessons], str),
            subtype=np.array([x.question.subtype for x in self.lessons], str),
            horizon_days=np.array([x.horizon for x in self.lessons], np.int64),
            outcome=np.array([x.outcome for x in self.lessons], np.float64),
        )


def _target(question: Question, id: str) -> Target | None:
    return next((target for target in question.targets if target.id == id), None)
