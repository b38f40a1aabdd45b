"""What the text model sees of a target: wording, horizon and length, as named numbers and hashed words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from math import log

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.outside.hashing import BUCKETS, buckets, tokens
from foretell.forecasters.outside.past import PastQuestions
from foretell.forecasters.outside.wording import TURNS, Course, Reading
from foretell.questions.question import Question, Target

HORIZON = {"by": "horizon", "still": "horizon, reversed", "at": "horizon at a date", "none": "horizon of an event"}
"""Columns of the log horizon by course; the first two have coefficients that are not negative."""
TIMED = (*HORIZON.values(), "by a date", "at a date", "stays until", "no deadline")
NAMES = (*TURNS, "length", *TIMED)
NOT_NEGATIVE = ("horizon", "horizon, reversed")
USUAL_DAYS = 90.0
LONGEST = 4.5
"""Log horizons relative to the usual one are kept within ± this: from a day to 22 years."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One target on the day it is asked."""

    reading: Reading
    course: Course
    days: float | None
    """To the deadline, at least one; None where there is none."""

    @cached_property
    def named(self) -> Floats:
        """The values of the columns `NAMES`."""
        span = 0.0 if self.days is None else float(np.clip(log(self.days / USUAL_DAYS), -LONGEST, LONGEST))
        signed = -span if self.course == "still" else span
        horizon = [signed if course == self.course else 0.0 for course in HORIZON]
        rest = (
            float(self.course == "by"),
            float(self.course == "at"),
            float(self.course == "still"),
            float(self.days is None),
        )
        length = log(max(1, len(tokens(self.reading.text))) / 10)
        return np.array([*(float(turn in self.reading.turns) for turn in TURNS), length, *horizon, *rest])


def question_text(question: Question, target: Target) -> str:
    """What is read of a target: its own sentence where a data set has one, else the question and the option meant."""
    text = question.text.split("\n\n")[0]
    if question.kind == "dataset":
        return target.label or text
    return f"{text} {target.label}" if target.label and len(question.targets) > 1 else text


@lru_cache(maxsize=1 << 16)
def seen(reading: Reading, due: date, resolves: date | None, *, definite: bool = False) -> Seen:
    """What is seen of a reading and the date on which it is decided.

    A market's closing date is often nominal, so a deadline named outright in the text goes before it; a `definite`
    date goes before both.
    """
    ahead = resolves if resolves is not None and resolves > due else None
    course = reading.course
    if definite and ahead is not None:
        last = ahead
        if not reading.stands:
            course = "still" if "negated" in reading.turns else "by"
    elif reading.stands:
        last = reading.deadline
    else:
        last = ahead or reading.deadline
    days = None if last is None else float(max(1, (last - due).days))
    return Seen(reading=reading, course=course, days=days)


def seen_in(past: PastQuestions) -> list[Seen]:
    """What is seen of every past question."""
    dues: list[date] = past.due.astype("M8[D]").tolist()
    ends: list[date | None] = past.resolves.astype("M8[D]").tolist()
    return [seen(r, due, end) for r, due, end in zip(past.readings, dues, ends, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Grams:
    """The hashed words of many texts in compressed rows."""

    start: Ints
    bucket: Ints

    @classmethod
    def of(cls, rows: Sequence[Seen]) -> "Grams":
        """Those of all rows."""
        found = [buckets(row.reading.text) for row in rows]
        start = np.concatenate([[0], np.cumsum([len(one) for one in found], dtype=np.int64)])
        return cls(start=start, bucket=np.concatenate([*found, np.array([], np.int64)]))

    @property
    def row(self) -> Ints:
        """The row of every entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def rarity(grams: Grams, weight: Floats) -> Floats:
    """How telling each bucket is: log((n + 2) / (df + 1)) over rows that count by weight (Spärck Jones 1972)."""
    frequency = np.bincount(grams.bucket, weights=weight[grams.row], minlength=2 * BUCKETS)
    return np.log((weight.sum() + 2) / (frequency + 1))


def lengths(grams: Grams, telling: Floats) -> Floats:
    """The length of every row in each of the two blocks, rows × 2; never zero."""
    cell = 2 * grams.row + (grams.bucket >= BUCKETS)
    squares = np.bincount(cell, weights=telling[grams.bucket] ** 2, minlength=2 * (len(grams.start) - 1))
    return np.sqrt(np.maximum(squares, 1e-12)).reshape(-1, 2)


def gram_values(grams: Grams, telling: Floats) -> Floats:
    """The values of all buckets: their rarity, scaled so that each row has length one in each block."""
    return telling[grams.bucket] / lengths(grams, telling)[grams.row, (grams.bucket >= BUCKETS).astype(np.int64)]


def one_text(bucket: Ints) -> Grams:
    """The grams of a single text."""
    return Grams(start=np.array([0, len(bucket)]), bucket=bucket)
