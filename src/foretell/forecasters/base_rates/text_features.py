"""Features of a target for the text model: wording, horizon and length, as named numbers and hashed words."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cached_property, lru_cache
from itertools import pairwise
from math import log
from zlib import crc32

import numpy as np

from foretell.forecasters.base_rates.past import PastQuestions
from foretell.forecasters.base_rates.wording import MASK, TURNS, Course, QuestionWording
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints
from foretell.patterns import pattern

# Words and word pairs as numbers in a fixed range, the same on every machine and Python version.

BITS = 13
BUCKETS = 1 << BITS
"""Number of buckets in each of two blocks: first the words as written, then the sentence's shape without names."""
NAME = "‹name›"
_TOKEN = pattern(rf"{MASK}|{NAME}|[^\W\d_]+(?:['’][^\W\d_]+)?|[$€£%≥≤<>#]|\d[\d,.]*")
_NAMES = pattern(r"\b[A-Z][\w'’.\-–&]*(?:\s+(?:(?:of|the|de|and|&|al|von|van|for)\s+)?[A-Z][\w'’.\-–&]*)*", re.UNICODE)
_OPENING = pattern(r"^\W*\w+")


def tokens(text: str) -> list[str]:
    """Return lower-case words and signs; all numbers become the same token."""
    return ["0" if t[0].isdigit() else t.replace("’", "'") for t in _TOKEN.findall(text.lower())]


def shape(text: str) -> str:
    """Return the text with runs of capitalised words replaced, except for the first word of the sentence."""
    return _NAMES.sub(NAME, _OPENING.sub(lambda opening: opening[0].lower(), text, count=1))


def grams(text: str) -> Iterator[tuple[int, str]]:
    """Yield block (0 words, 1 shape) and text of every word and word pair, each once; ^ and $ mark the ends."""
    for block, version in enumerate((text, shape(text))):
        words = tokens(version)
        closed = ["^", *words, "$"]
        pairs = (f"{a} {b}" for a, b in pairwise(closed))
        for gram in dict.fromkeys((*words, *pairs)):
            yield block, gram


def mark(block: int, gram: str) -> int:
    """Return a nearly unique number for a gram: block and CRC-32."""
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
"""Columns of the log horizon by course; the first two have non-negative coefficients."""
TIMED = (*HORIZON.values(), "by a date", "at a date", "stays until", "no deadline")
NAMES = (*TURNS, "length", *TIMED)
NOT_NEGATIVE = ("horizon", "horizon, reversed")
USUAL_DAYS = 90.0
LONGEST = 4.5
"""Bound ± on log horizons relative to the usual one: from a day to 22 years."""


@frozen
class TextFeatures:
    """Features of one target on the day it is asked."""

    reading: QuestionWording
    course: Course
    days: float | None
    """Days to the deadline, at least one; None if there is no deadline."""

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
    """Features of a wording and the date on which it is decided.

    A market's closing date is often nominal, so a deadline stated explicitly in the text takes precedence over it; a
    `definite` date takes precedence over both.
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
    """Features of every past question."""
    dues: list[date] = past.due.astype("M8[D]").tolist()
    ends: list[date | None] = past.resolves.astype("M8[D]").tolist()
    return [text_features(r, due, end) for r, due, end in zip(past.readings, dues, ends, strict=True)]


@frozen
class Grams:
    """The hashed words of many texts in compressed sparse rows."""

    start: Ints
    bucket: Ints

    @classmethod
    def of(cls, rows: Sequence[TextFeatures]) -> "Grams":
        """The hashed words of all rows."""
        ids = [buckets(row.reading.text) for row in rows]
        start = np.concatenate([[0], np.cumsum([len(row_ids) for row_ids in ids], dtype=np.int64)])
        return cls(start=start, bucket=np.concatenate([*ids, np.array([], np.int64)]))

    @property
    def row(self) -> Ints:
        """The row of every entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def rarity(grams: Grams, weight: Floats) -> Floats:
    """How informative each bucket is: log((n + 2) / (df + 1)), with rows counted by weight (Spärck Jones 1972)."""
    frequency = np.bincount(grams.bucket, weights=weight[grams.row], minlength=2 * BUCKETS)
    return np.log((weight.sum() + 2) / (frequency + 1))


def lengths(grams: Grams, rarities: Floats) -> Floats:
    """The Euclidean length of every row in each of the two blocks, rows × 2; never zero."""
    group = 2 * grams.row + (grams.bucket >= BUCKETS)
    squares = np.bincount(group, weights=rarities[grams.bucket] ** 2, minlength=2 * (len(grams.start) - 1))
    return np.sqrt(np.maximum(squares, 1e-12)).reshape(-1, 2)


def gram_values(grams: Grams, rarities: Floats) -> Floats:
    """The values of all entries: their rarity, scaled so that each row has length one in each block."""
    return rarities[grams.bucket] / lengths(grams, rarities)[grams.row, (grams.bucket >= BUCKETS).astype(np.int64)]


def one_text(bucket: Ints) -> Grams:
    """The grams of a single text."""
    return Grams(start=np.array([0, len(bucket)]), bucket=bucket)
