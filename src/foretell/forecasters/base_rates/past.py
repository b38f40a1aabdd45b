"""The past: earlier questions, with the outcomes that were known on a day.

Base rates, the outside view, `model_free` and calibration all learn from `Past`. It is made once from questions and
answers, and tables are computed from it on first use.
"""

import json
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field, fields, replace
from datetime import date, datetime
from functools import cached_property
from math import isnan
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from foretell.forecasters.base_rates.rates import BaseRates, PastOutcomes, Rates
from foretell.forecasters.base_rates.wording import QuestionWording, read
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target

Days = npt.NDArray[np.datetime64]
Strings = npt.NDArray[np.str_]
Texts = npt.NDArray[np.object_]
"""Object array, because texts differ too much in length for a common width."""
NEVER = np.datetime64("NaT", "D")
T = TypeVar("T")


@frozen(eq=False)
class PastQuestions:
    """One entry per target of every asking, including unresolved ones."""

    id: Strings
    text: Texts
    source: Strings
    subtype: Strings
    kind: Strings
    """`market` or `dataset`."""
    due: Days
    """The day it was asked."""
    resolves: Days
    """The day it is to be decided, as far as was known then; NaT if unknown."""
    price: Floats
    """The market probability when it was asked; NaN if there is none."""
    price_on: Days
    size: Floats
    """The last known value of the quantity in question; NaN if there is none."""
    outcome: Floats
    """0, 1, or NaN while unknown."""
    known_on: Days
    """The day on which the outcome became known; NaT if there is none."""
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
        """Select entries, in the order given."""
        return PastQuestions(**{field.name: getattr(self, field.name)[which] for field in fields(self)})

    def before(self, day: date) -> "PastQuestions":
        """Return what was known on that day: earlier askings, without later outcomes and prices."""
        now = np.datetime64(day, "D")
        earlier = self.take(self.due < now)
        unresolved, unpriced = ~(earlier.known_on < now), ~(earlier.price_on < now)
        return replace(
            earlier,
            outcome=np.where(unresolved, np.nan, earlier.outcome),
            known_on=np.where(unresolved, NEVER, earlier.known_on),
            price=np.where(unpriced, np.nan, earlier.price),
            price_on=np.where(unpriced, NEVER, earlier.price_on),
        )

    def to_bytes(self) -> bytes:
        """Return the table as compressed JSON, which `from_bytes` reads."""
        columns = {name: _as_json(getattr(self, name), kind) for name, kind in _TABLE_TYPES.items()}
        return zlib.compress(json.dumps(columns, ensure_ascii=False, separators=(",", ":")).encode())

    @classmethod
    def from_bytes(cls, body: bytes) -> "PastQuestions":
        """Read a table that `to_bytes` wrote."""
        columns = json.loads(zlib.decompress(body))
        return cls(**{name: _from_json(columns[name], kind) for name, kind in _TABLE_TYPES.items()})

    @cached_property
    def readings(self) -> tuple[QuestionWording, ...]:
        """The parsed wording of each text."""
        days: list[date] = self.due.astype("M8[D]").tolist()
        return tuple(read(str(text), day) for text, day in zip(self.text, days, strict=True))

    @property
    def askings(self) -> Strings:
        """question@due of every entry."""
        return np.char.add(np.char.add(self.id.astype(str), "@"), np.datetime_as_string(self.due, "D"))


@frozen
class PastAnswer:
    """The outcome of one target of an earlier question, and the day on which it became known."""

    question_id: str
    due: datetime
    target_id: str
    outcome: int
    known_on: date


@frozen
class PastTarget:
    """A target of an earlier question with its outcome."""

    question: Question
    target: Target
    outcome: int
    known_on: date

    @property
    def horizon(self) -> int:
        """Days from the asking to the resolution; to the day the outcome was known if no date was set."""
        days = self.question.horizon_days(self.target)
        return (self.known_on - self.question.due.date()).days if days is None else days


def question_text(question: Question, target: Target) -> str:
    """Return the text of a target: its own sentence in a data set, else the question and the option."""
    text = question.text.split("\n\n")[0]
    if question.kind == "dataset":
        return target.label or text
    return f"{text} {target.label}" if target.label and len(question.targets) > 1 else text


@frozen
class Past:
    """Earlier questions, and their known outcomes.

    `before(day)` returns what was known on that day. The past in a forecaster's context is limited in this way; a
    forecaster that compares several days uses `whole`.
    """

    questions: tuple[Question, ...] = ()
    answers: tuple[PastAnswer, ...] = ()
    day: date | None = None
    """Only what was known before this day is shown; None shows everything."""
    _shared: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any], repr=False, compare=False)

    @classmethod
    def of(cls, questions: Iterable[Question], answers: Iterable[PastAnswer] = ()) -> "Past":
        """Make a past from questions and answers; an answer to a question that was not asked is ignored."""
        return cls(questions=tuple(questions), answers=tuple(answers))

    @classmethod
    def of_table(cls, table: PastQuestions) -> "Past":
        """Make a past from a table of past questions, for code that reads the table and the base rates."""
        past = cls()
        past._shared["table"] = table
        return past

    def __bool__(self) -> bool:
        """Whether there is any earlier question."""
        return bool(self.questions) or ("table" in self._shared and len(self._table) > 0)

    def before(self, day: date) -> "Past":
        """Return what was known on that day. Computed values are shared."""
        return replace(self, day=day if self.day is None else min(day, self.day))

    @property
    def whole(self) -> "Past":
        """The past without a limit, for code that states the day with every lookup."""
        return replace(self, day=None)

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, computed once for this past and all its cuts; the key may include a day."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    @property
    def resolved(self) -> tuple[PastTarget, ...]:
        """Every target whose outcome is known, in the order of the answers."""
        cached = self.cached("resolved", self._join)
        return cached if self.day is None else tuple(target for target in cached if target.known_on < self.day)

    @property
    def table(self) -> PastQuestions:
        """One row for every target of every question, resolved or not, with its price at the time."""
        return self._table if self.day is None else self._table.before(self.day)

    @property
    def rates(self) -> Rates | None:
        """Base rates from what was known before each question's date; None if nothing is resolved.

        Answers count at the horizon from the asking to the day on which they became known.
        """
        return self.cached(
            "rates",
            lambda: BaseRates(past=outcomes) if len(outcomes := self._answer_outcomes()) else None,
        )

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """Return the base rate of a target; None if nothing similar was resolved."""
        return None if self.rates is None else self.rates.rate(question, target, as_of)

    def cases(self, question: Question, as_of: AsOf) -> int:
        """Number of independent outcomes behind the base rate of a question; 0 if unknown."""
        return self.rates.cases(question, as_of) if isinstance(self.rates, BaseRates) else 0

    @property
    def outcomes(self) -> PastOutcomes:
        """The resolved targets as columns, at the horizons that the questions name."""
        return _outcomes((target.known_on, target.question, target.horizon, target.outcome) for target in self.resolved)

    def _answer_outcomes(self) -> PastOutcomes:
        """The answers as columns, at the horizon from the asking to the day on which each became known."""
        known = self._table.take(~np.isnan(self._table.outcome))
        return PastOutcomes(
            known_on=known.known_on,
            source=known.source,
            subtype=known.subtype,
            horizon_days=(known.known_on - known.due).astype(np.int64),
            outcome=known.outcome,
        )

    @property
    def _by_asking(self) -> Mapping[tuple[str, datetime], Question]:
        return self.cached("by asking", lambda: {(q.id, q.due): q for q in self.questions})

    @property
    def _table(self) -> PastQuestions:
        return self.cached("table", self._make_table)

    def _join(self) -> tuple[PastTarget, ...]:
        past_targets: list[PastTarget] = []
        for answer in self.answers:
            question = self._by_asking.get((answer.question_id, answer.due))
            target = next((t for t in question.targets if t.id == answer.target_id), None) if question else None
            if question is not None and target is not None:
                past_targets.append(
                    PastTarget(question=question, target=target, outcome=answer.outcome, known_on=answer.known_on)
                )
        return tuple(past_targets)

    def _make_table(self) -> PastQuestions:
        answers = {(known.question_id, known.due, known.target_id): known for known in self.answers}
        rows: list[tuple[Any, ...]] = []
        for question in self.questions:
            for target in question.targets:
                answer = answers.get((question.id, question.due, target.id))
                resolves, snapshot = target.resolves_at or question.closes_at, target.snapshot
                priced = snapshot if snapshot is not None and snapshot.price is not None else None
                rows.append(
                    (
                        question.id,
                        question_text(question, target),
                        question.source,
                        question.subtype,
                        question.kind,
                        question.url,
                        question.due.date(),
                        resolves and resolves.date(),
                        priced and priced.at.date(),
                        np.nan if priced is None else priced.price,
                        np.nan if question.last_value is None else question.last_value.value,
                        answer and answer.known_on,
                        np.nan if answer is None else float(answer.outcome),
                    )
                )
        columns = zip(*rows, strict=True) if rows else [()] * len(_TABLE_TYPES)
        named = zip(_TABLE_TYPES.items(), columns, strict=True)
        return PastQuestions(**{name: np.array(column, dtype=kind) for (name, kind), column in named})


_TABLE_TYPES = {
    **{"id": "U", "text": "O", "source": "U", "subtype": "U", "kind": "U", "url": "U"},
    **{"due": "M8[D]", "resolves": "M8[D]", "price_on": "M8[D]", "price": "f8", "size": "f8"},
    **{"known_on": "M8[D]", "outcome": "f8"},
}


def _as_json(column: npt.NDArray[Any], kind: str) -> list[Any]:
    """Return a column with None for NaN and for a missing day."""
    if kind == "M8[D]":
        return [None if np.isnat(day) else str(day) for day in column]
    return [None if isinstance(value, float) and isnan(value) else value for value in column.tolist()]


def _from_json(values: list[Any], kind: str) -> npt.NDArray[Any]:
    if kind == "f8":
        return np.array([np.nan if value is None else value for value in values], kind)
    return np.array(values, kind)


def _outcomes(rows: Iterable[tuple[date, Question, int, int]]) -> PastOutcomes:
    columns = list(zip(*((known, q.source, q.subtype, days, outcome) for known, q, days, outcome in rows), strict=True))
    known, source, subtype, horizon, outcome = columns or [()] * 5
    return PastOutcomes(
        known_on=np.array(known, "M8[D]"),
        source=np.array(source, str),
        subtype=np.array(subtype, str),
        horizon_days=np.array(horizon, np.int64),
        outcome=np.array(outcome, np.float64),
    )
