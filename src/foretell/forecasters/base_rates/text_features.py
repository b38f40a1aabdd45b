"""What the text model sees of a target: wording, horizon and length, as named numbers and hashed words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from itertools import pairwise
from math import log
from zlib import crc32

import numpy as np

from foretell.forecasters.base_rates.past import PastQuestions
from foretell.forecasters.base_rates.wording import MASK, TURNS, Course, QuestionWording
from foretell.metrics.arrays import Floats, Ints

# Words and word pairs as numbers in a fixed range: the same on every machine and in every version of Python.

BITS = 13
BUCKETS = 1 << BITS
"""Of each of the two blocks: words as they stand come first, then the sentence's shape with names left out."""
NAME = "‹name›"
_TOKEN = re.compile(rf"{MASK}|{NAME}|[^\W\d_]+(?:['’][^\W\d_]+)?|[$€£%≥≤<>#]|\d[\d,.]*")
_NAMES = re.compile(
    r"\b[A-Z][\w'’.\-–&]*(?:\s+(?:(?:of|the|de|and|&|al|von|van|for)\s+)?[A-Z][\w'’.\-–&]*)*", re.UNICODE
)
_OPENING = re.compile(r"^\W*\w+")


def tokens(text: str) -> list[str]:
    """Lower-case words and signs; every number is the same one."""
    return ["0" if t[0].isdigit() else t.replace("’", "'") for t in _TOKEN.findall(text.lower())]


def shape(text: str) -> str:
    """The text with runs of capitalised words replaced, the first word of the sentence apart."""
    return _NAMES.sub(NAME, _OPENING.sub(lambda opening: opening[0].lower(), text, count=1))


def grams(text: str) -> Iterator[tuple[int, str]]:
    """Block (0 words, 1 shape) and wording of every word and pair of neighbours, each once; ^ and $ are the ends."""
    for block, version in enumerate((text, shape(text))):
        found = tokens(version)
        closed = ["^", *found, "$"]
        pairs = (f"{a} {b}" for a, b in pairwise(closed))
        for gram in dict.fromkeys((*found, *pairs)):
            yield block, gram


def mark(block: int, gram: str) -> int:
    """A number that hardly any other gram has: block and CRC-32."""
    return (block << 32) | crc32(gram.encode())


def bucket_of(marks: Ints) -> Ints:
    """The buckets of marks."""
    return (marks & (BUCKETS - 1)) + (marks >> 32) * BUCKETS


@lru_cache(maxsize=1 << 16)
def marks(text: str) -> Ints:
    """The marks of all grams of a text, ascending, each once."""
    return np.unique(np.fromiter((mark(*gram) for gram in grams(text)), np.int64))


@lru_cache(maxsize=1 << 16)
def buckets(text: str) -> Ints:
    """The buckets of all grams of a text, ascending, each once."""
    return np.unique(bucket_of(marks(text)))


HORIZON = {"by": "horizon", "still": "horizon, reversed", "at": "horizon at a date", "none": "horizon of an event"}
"""Columns of the log horizon by course; the first two have coefficients that are not negative."""
TIMED = (*HORIZON.values(), "by a date", "at a date", "stays until", "no deadline")
NAMES = (*TURNS, "length", *TIMED)
NOT_NEGATIVE = ("horizon", "horizon, reversed")
USUAL_DAYS = 90.0
LONGEST = 4.5
"""Log horizons relative to the usual one are kept within ± this: from a day to 22 years."""


@dataclass(frozen=True, kw_only=True)
class TextFeatures:
    """One target on the day it is asked."""

    reading: QuestionWording
    course: Course
    days: float | None
    """To the deadline, at least one; None where there is none."""

    @cached_property
    def named(self) -> Floats:
        """The values of the columns `NAMES`."""
        span = 0.0 if self.days is None else float(np.clip(log(self.days / USUAL_DAYS), -LONGEST, LONGEST))
        signed = -span if self.course == "still" else span
        horizon = [signed if course == self.course else 0.0 for course in HORIZON]
        rest = (self.course == "by", self.course == "at", self.course == "still", self.days is None)
        length = log(max(1, len(tokens(self.reading.text))) / 10)
        return np.array([*(turn in self.reading.turns for turn in TURNS), length, *horizon, *rest], np.float64)


@lru_cache(maxsize=1 << 16)
def text_features(
    reading: QuestionWording, due: date, resolves: date | None, *, definite: bool = False
) -> TextFeatures:
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
    return TextFeatures(reading=reading, course=course, days=days)


def features_of_past(past: PastQuestions) -> list[TextFeatures]:
    """What is seen of every past question."""
    dues: list[date] = past.due.astype("M8[D]").tolist()
    ends: list[date | None] = past.resolves.astype("M8[D]").tolist()
    return [text_features(r, due, end) for r, due, end in zip(past.readings, dues, ends, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Grams:
    """The hashed words of many texts in compressed rows."""

    start: Ints
    bucket: Ints

    @classmethod
    def of(cls, rows: Sequence[TextFeatures]) -> "Grams":
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
