"""Questions asked before, side by side: what the outside view learns from and looks up."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date, datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foretell.forecasters.base_rates.rates import PastOutcomes
from foretell.forecasters.base_rates.wording import QuestionWording, read
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.questions.question import Question, Target

Days = npt.NDArray[np.datetime64]
Strings = npt.NDArray[np.str_]
Texts = npt.NDArray[np.object_]
"""Texts differ in length too much for a common width."""
NEVER = np.datetime64("NaT", "D")


@dataclass(frozen=True, kw_only=True, eq=False)
class PastQuestions:
    """One entry per target of every asking. Unresolved ones belong here too: they tell what has not happened yet."""

    id: Strings
    text: Texts
    source: Strings
    subtype: Strings
    kind: Strings
    """market or dataset."""
    due: Days
    """When it was asked."""
    resolves: Days
    """When it is to be decided, as far as was known then; NaT where nobody knew."""
    price: Floats
    """The crowd's probability when it was asked; NaN without one."""
    price_on: Days
    size: Floats
    """The last known value of the quantity in question; NaN without one."""
    outcome: Floats
    """0, 1, or NaN while it is not known."""
    known_on: Days
    """The day on which the outcome became known; NaT where there is none."""
    url: Strings

    def __post_init__(self) -> None:
        lengths = {field.name: len(getattr(self, field.name)) for field in fields(self)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"past questions have columns of different length: {lengths}")
        known = ~np.isnan(self.outcome)
        if not np.isin(self.outcome[known], (0.0, 1.0)).all():
            raise ValueError("outcome must be 0, 1 or NaN in every row")
        if (known == np.isnat(self.known_on)).any():
            raise ValueError("known_on must be given exactly where there is an outcome")
        if np.isnat(self.due).any():
            raise ValueError("due must be given in every row")

    def __len__(self) -> int:
        return len(self.id)

    def take(self, which: Bools | Ints) -> "PastQuestions":
        """Some of the entries, in the order given."""
        return PastQuestions(**{field.name: getattr(self, field.name)[which] for field in fields(self)})

    def before(self, day: date) -> "PastQuestions":
        """What somebody asking on that day could know: earlier askings, without later outcomes and prices."""
        now = np.datetime64(day, "D")
        asked = self.take(self.due < now)
        late, unseen = ~(asked.known_on < now), ~(asked.price_on < now)
        columns = {field.name: getattr(asked, field.name) for field in fields(asked)}
        return PastQuestions(
            **columns
            | {
                "outcome": np.where(late, np.nan, asked.outcome),
                "known_on": np.where(late, NEVER, asked.known_on),
                "price": np.where(unseen, np.nan, asked.price),
                "price_on": np.where(unseen, NEVER, asked.price_on),
            }
        )

    @cached_property
    def readings(self) -> tuple[QuestionWording, ...]:
        """What each text says."""
        days: list[date] = self.due.astype("M8[D]").tolist()
        return tuple(read(str(text), day) for text, day in zip(self.text, days, strict=True))

    @property
    def askings(self) -> Strings:
        """question@due of every entry."""
        return np.char.add(np.char.add(self.id.astype(str), "@"), np.datetime_as_string(self.due, "D"))


def no_past_questions() -> PastQuestions:
    """No questions at all."""
    names, days, numbers = np.array([], str), np.array([], "M8[D]"), np.array([], np.float64)
    return PastQuestions(
        **dict.fromkeys(("id", "source", "subtype", "kind", "url"), names),
        text=np.array([], object),
        **dict.fromkeys(("due", "resolves", "price_on", "known_on"), days),
        **dict.fromkeys(("price", "size", "outcome"), numbers),
    )


# Earlier questions with what became of them: what the models of the stack learn from, day by day.


@dataclass(frozen=True, kw_only=True)
class PastAnswer:
    """How one target of an asking came out, and the day on which that became known."""

    question_id: str
    due: datetime
    target_id: str
    outcome: int
    known_on: date


@dataclass(frozen=True, kw_only=True)
class PastTarget:
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

    >>> from foretell.questions.question import Target
    >>> q = Question(id="fred/DFF", source="fred", text="?", due="2025-03-02", kind="dataset",
    ...              targets=(Target(id="2025-03-09", resolves_at="2025-03-09"),))
    >>> day = date(2025, 3, 9)
    >>> told = PastAnswer(question_id="fred/DFF", due=q.due, target_id="2025-03-09", outcome=0, known_on=day)
    >>> [(lesson.target.id, lesson.horizon, lesson.outcome) for lesson in Past.of([q], [told]).lessons]
    [('2025-03-09', 7, 0)]
    """

    questions: tuple[Question, ...]
    lessons: tuple[PastTarget, ...]

    @classmethod
    def of(cls, questions: Iterable[Question], answers: Iterable[PastAnswer]) -> "Past":
        """Join questions and answers; an answer to nothing that was asked is left out."""
        asked = {(q.id, q.due): q for q in questions}
        lessons: list[PastTarget] = []
        for answer in answers:
            question = asked.get((answer.question_id, answer.due))
            target = None if question is None else _target(question, answer.target_id)
            if question is not None and target is not None:
                lessons.append(
                    PastTarget(question=question, target=target, outcome=answer.outcome, known_on=answer.known_on)
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
