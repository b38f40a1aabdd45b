"""Reference classes: the answered questions most similar to this one, and how they resolved."""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

import numpy as np

from foretell.forecasters.base_rates.past import PastQuestions, question_text
from foretell.forecasters.base_rates.text_features import (
    BUCKETS,
    Grams,
    TextFeatures,
    buckets,
    features_of_past,
    gram_values,
    lengths,
    one_text,
    rarity,
)
from foretell.forecasters.base_rates.wording import read
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question

SIZE = 40
STRENGTH = 20.0
"""Number of fully similar questions that a forecast is worth when both are blended."""


@dataclass(frozen=True, kw_only=True)
class ReferenceQuestion:
    """A past question, its similarity to the one asked (1: the same words), and its outcome."""

    id: str
    text: str
    source: str
    due: date
    known_on: date
    outcome: int
    similarity: float
    url: str = ""
    deadline_over: bool = True
    """False while the deadline lies ahead: answers that come early are mostly yes, so they do not move a forecast."""


@dataclass(frozen=True, kw_only=True)
class ReferenceClass:
    """The most similar questions, most similar first."""

    members: tuple[ReferenceQuestion, ...]
    as_of: AsOf

    @classmethod
    def of(cls, question: Question, bank: PastQuestions, as_of: AsOf, k: int = SIZE) -> "ReferenceClass":
        """Find the `k` most similar questions of the bank that were answered before the day of the cutoff.

        Similarity is the cosine of rarity-weighted words and word pairs, half of it on the text as written and half
        with names left out. A question counts once, by its last asking; the question itself never does.
        """
        answered = _answered(bank, as_of.at.date(), question.kind)
        words = buckets(read(question_text(question, question.targets[0]), question.due.date()).text)
        near = np.where(bank.id[answered.row] == question.id, 0.0, answered.similarity(words))
        best = np.argsort(-near, kind="stable")[:k]
        members = (_member(bank, answered, int(i), float(near[i])) for i in best if near[i] > 0)
        return cls(members=tuple(members), as_of=as_of)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def rate(self) -> float | None:
        """The share that came true; None for an empty class."""
        return float(np.mean([m.outcome for m in self.members])) if self.members else None

    @property
    def sentence(self) -> str:
        """A description of the class."""
        if not self.members:
            return "no similar question was answered before"
        return f"of the {len(self)} most similar questions {self.rate:.0%} resolved yes"

    def blended(self, p: float, strength: float = STRENGTH) -> float:
        """Shrink a probability towards the class: (s·p + Σ wᵢ·yᵢ) / (s + Σ wᵢ), where w is the similarity."""
        counted = [m for m in self.members if m.deadline_over]
        total = sum(m.similarity for m in counted)
        return (strength * p + sum(m.similarity * m.outcome for m in counted)) / (strength + total)


@dataclass(frozen=True, kw_only=True, eq=False)
class _AnsweredQuestions:
    """Questions answered before a day: rows of the bank with their words, and how informative those were by then."""

    day: date
    row: Ints
    seen: list[TextFeatures]
    grams: Grams
    telling: Floats
    length: Floats

    def similarity(self, words: Ints) -> Floats:
        asked = np.zeros(2 * BUCKETS)
        asked[words] = gram_values(one_text(words), self.telling)
        shared = asked[self.grams.bucket] * self.telling[self.grams.bucket]
        cell = 2 * self.grams.row + (self.grams.bucket >= BUCKETS)
        sums = np.bincount(cell, weights=shared, minlength=2 * len(self.row))
        return (sums.reshape(-1, 2) / self.length).mean(axis=1)


@lru_cache(maxsize=32)
def _answered(bank: PastQuestions, day: date, kind: str) -> _AnsweredQuestions:
    now = np.datetime64(day, "D")
    asked = (bank.due < now) & (bank.kind == kind)
    every = Grams.of(features_of_past(bank.take(_last_askings(bank, asked))))
    telling = rarity(every, np.ones(len(every.start) - 1))
    row = _last_askings(bank, asked & (bank.known_on < now))
    seen = features_of_past(bank.take(row))
    grams = Grams.of(seen)
    return _AnsweredQuestions(day=day, row=row, seen=seen, grams=grams, telling=telling, length=lengths(grams, telling))


def _last_askings(bank: PastQuestions, which: Bools) -> Ints:
    """One row for each question, that of its last asking."""
    rows = np.flatnonzero(which)
    rows = rows[np.argsort(bank.due[rows], kind="stable")][::-1]
    _, first = np.unique(bank.id[rows], return_index=True)
    return np.sort(rows[first])


def _member(bank: PastQuestions, answered: _AnsweredQuestions, place: int, similarity: float) -> ReferenceQuestion:
    row, days = answered.row[place], answered.seen[place].days
    due: date = bank.due[row].astype("M8[D]").item()
    return ReferenceQuestion(
        id=str(bank.id[row]),
        text=str(bank.text[row]),
        source=str(bank.source[row]),
        due=due,
        known_on=bank.known_on[row].astype("M8[D]").item(),
        outcome=int(bank.outcome[row]),
        similarity=min(1.0, similarity),
        url=str(bank.url[row]),
        deadline_over=days is None or due + timedelta(days=days) < answered.day,
    )
