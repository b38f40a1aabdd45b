"""Reference classes: the questions most like this one whose answers were known, and what became of them."""

from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np

from foretell.evaluate.arrays import Bools, Floats, Ints
from foretell.forecasters.outside.hashing import BUCKETS, buckets
from foretell.forecasters.outside.past import PastQuestions
from foretell.forecasters.outside.seen import Grams, Seen, gram_values, question_text, rarity, seen_in
from foretell.forecasters.outside.wording import read
from foretell.questions.clock import AsOf
from foretell.questions.question import Question

SIZE = 40
STRENGTH = 20.0
"""How many fully similar questions a forecast is worth where both are weighed against each other."""


@dataclass(frozen=True, kw_only=True)
class Similar:
    """A past question, how much it is like the one asked (1: the same words), and how it came out."""

    id: str
    text: str
    source: str
    due: date
    known_on: date
    outcome: int
    similarity: float
    url: str = ""
    deadline_over: bool = True
    """False for an answer that came early: those are mostly yes, so they do not move a forecast."""


@dataclass(frozen=True, kw_only=True)
class ReferenceClass:
    """The nearest questions, nearest first."""

    members: tuple[Similar, ...]
    as_of: AsOf

    @classmethod
    def of(cls, question: Question, bank: PastQuestions, as_of: AsOf, k: int = SIZE) -> "ReferenceClass":
        """The `k` most similar questions of the bank that were answered before the day of the cutoff.

        Similarity is the cosine of rarity-weighted words and word pairs, as they stand and with names left out, half
        each. A question counts once, by its last asking; the question itself never does.
        """
        day = as_of.at.date()
        known = (bank.known_on < np.datetime64(day, "D")) & (bank.kind == question.kind) & (bank.id != question.id)
        rows = _last_askings(bank, known)
        words = buckets(read(question_text(question, question.targets[0]), question.due.date()).text)
        near = _similarity(bank, words, day)[rows]
        best = np.argsort(-near, kind="stable")[:k]
        members = (_member(bank, int(rows[i]), float(near[i])) for i in best if near[i] > 0)
        return cls(members=tuple(members), as_of=as_of)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def rate(self) -> float | None:
        """The share that came true; None for an empty class."""
        return float(np.mean([m.outcome for m in self.members])) if self.members else None

    @property
    def sentence(self) -> str:
        """The class in words."""
        if not self.members:
            return "no similar question was answered before"
        return f"of the {len(self)} most similar questions {self.rate:.0%} resolved yes"

    def weighed(self, p: float, strength: float = STRENGTH) -> float:
        """A probability pulled towards the class: (s·p + Σ wᵢ·yᵢ) / (s + Σ wᵢ), w being the similarity."""
        counted = [m for m in self.members if m.deadline_over]
        total = sum(m.similarity for m in counted)
        return (strength * p + sum(m.similarity * m.outcome for m in counted)) / (strength + total)


def _last_askings(bank: PastQuestions, known: Bools) -> Ints:
    rows = np.flatnonzero(known)
    rows = rows[np.argsort(bank.due[rows], kind="stable")][::-1]
    _, first = np.unique(bank.id[rows], return_index=True)
    return np.sort(rows[first])


def _similarity(bank: PastQuestions, words: Ints, day: date) -> Floats:
    grams, telling, length = _weighed(bank, day)
    asked = np.zeros(2 * BUCKETS)
    asked[words] = gram_values(words, telling)
    shared = asked[grams.bucket] * telling[grams.bucket]
    cell = 2 * grams.row + (grams.bucket >= BUCKETS)
    sums = np.bincount(cell, weights=shared, minlength=2 * len(bank))
    return (sums / length).reshape(-1, 2).mean(axis=1)


@lru_cache(maxsize=4)
def _grams(bank: PastQuestions) -> tuple[Grams, list[Seen]]:
    seen = seen_in(bank)
    return Grams.of(seen), seen


@lru_cache(maxsize=32)
def _weighed(bank: PastQuestions, day: date) -> tuple[Grams, Floats, Floats]:
    """Grams, how telling each bucket was by that day, and the length of every row in both blocks."""
    grams, _ = _grams(bank)
    asked = bank.due < np.datetime64(day, "D")
    _, code = np.unique(bank.id, return_inverse=True)
    times = np.bincount(code, weights=asked)[code]
    telling = rarity(grams, np.where(asked, 1.0 / np.maximum(times, 1.0), 0.0))
    cell = 2 * grams.row + (grams.bucket >= BUCKETS)
    squares = np.bincount(cell, weights=telling[grams.bucket] ** 2, minlength=2 * len(bank))
    return grams, telling, np.sqrt(np.maximum(squares, 1e-12))


def _member(bank: PastQuestions, row: int, similarity: float) -> Similar:
    days = _grams(bank)[1][row].days
    took = (bank.known_on[row] - bank.due[row]).astype(np.int64)
    return Similar(
        id=str(bank.id[row]),
        text=str(bank.text[row]),
        source=str(bank.source[row]),
        due=bank.due[row].astype("M8[D]").item(),
        known_on=bank.known_on[row].astype("M8[D]").item(),
        outcome=int(bank.outcome[row]),
        similarity=min(1.0, similarity),
        url=str(bank.url[row]),
        deadline_over=days is None or days <= int(took) + 1,
    )
