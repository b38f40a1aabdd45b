"""The fitted values of the outside view: a level that drifts, and what wording and horizon add to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.outside.hashing import bucket_of, buckets, grams, mark
from foretell.forecasters.outside.labels import Worth
from foretell.forecasters.outside.levels import likeness
from foretell.forecasters.outside.rates import RateTable
from foretell.forecasters.outside.seen import NAMES, Seen, gram_values, one_text

UNSEEN = "words it never saw"


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """Log-odds of a usual question of a source on a day."""

    long_run: float
    source: Mapping[str, float]
    """What a source adds; others add nothing."""
    grid: Ints
    drift: Floats
    """Weights of the likeness to the grid's days; see `levels`."""
    drift_of: Mapping[str, Floats]
    """The same for what drifts in one source alone."""

    def at(self, source: str, day: date) -> float:
        """The level; far from all data it falls back to the long run."""
        near = likeness(np.array([np.datetime64(day, "D").astype(np.int64)]), self.grid)[0]
        own = self.drift_of.get(source)
        drifted = float((near * self.drift).sum()) + (0.0 if own is None else float((near * own).sum()))
        return self.long_run + self.source.get(source, 0.0) + drifted


@dataclass(frozen=True, kw_only=True)
class Part:
    """One reason for a number: what it is, and how many log-odds it adds."""

    name: str
    log_odds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class TextModel:
    """Log-odds = level + Σ named columns + Σ hashed words."""

    level: Level
    named: Mapping[str, float]
    words: Floats
    rarity: Floats
    known: Ints
    """Marks of all grams it was fitted on, ascending: only those are given as reasons."""
    worth: Worth

    def parts(self, seen: Seen, source: str, day: date) -> tuple[Part, ...]:
        """Everything that adds up to the log-odds: the level, then named columns, then words, the strongest first."""
        found = [Part(name="level", log_odds=self.level.at(source, day))]
        for name, value in zip(NAMES, seen.named.tolist(), strict=True):
            added = value * self.named.get(name, 0.0)
            if added:
                found.append(Part(name=name, log_odds=added))
        return (*found, *self._worded(seen))

    def log_odds(self, seen: Seen, source: str, day: date) -> float:
        """The sum of all parts."""
        ids = buckets(seen.reading.text)
        worded = float((gram_values(one_text(ids), self.rarity) * self.words[ids]).sum())
        coefficients = np.array([self.named.get(name, 0.0) for name in NAMES])
        return self.level.at(source, day) + float((seen.named * coefficients).sum()) + worded

    def _worded(self, seen: Seen) -> list[Part]:
        """Grams that share a bucket count once, and what was never seen in fitting is not given as a reason."""
        ids = buckets(seen.reading.text)
        added = gram_values(one_text(ids), self.rarity) * self.words[ids]
        owner: dict[int, str] = {}
        for block, gram in grams(seen.reading.text):
            number = mark(block, gram)
            place = int(np.searchsorted(self.known, number))
            if place < len(self.known) and self.known[place] == number:
                owner.setdefault(int(bucket_of(np.array([number]))[0]), f"“{gram}”")
        total: dict[str, float] = {}
        for number, value in zip(ids.tolist(), added.tolist(), strict=True):
            name = owner.get(number, UNSEEN)
            total[name] = total.get(name, 0.0) + value
        found = [Part(name=name, log_odds=value) for name, value in total.items() if value]
        return sorted(found, key=lambda part: -abs(part.log_odds))


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a model was fitted on."""

    as_of: date
    """Outcomes and prices of this day and later were not seen."""
    last_known: date | None = None
    """The last day on which an outcome or a price it learnt from became known."""
    first_due: date | None = None
    last_due: date | None = None
    askings: int = 0
    """Of market questions, each with a price or an outcome."""
    questions: int = 0
    outcomes: int = 0
    """Of market questions, known by then; they counted once their deadline was over."""
    prices: int = 0
    dataset_outcomes: int = 0
    strength: float = 0.0
    """Precision of the words' coefficients."""
    tried: Mapping[str, float] = field(default_factory=dict[str, float])
    """Validation loss by strength, all inside the past; empty where there was too little to try."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OutsideModel:
    """Text model, rates of data-set questions, and the record of what they were learnt from."""

    text: TextModel
    rates: RateTable
    record: Record
    askings: frozenset[int] = frozenset()
    """Hashes of question@due of everything it learnt from."""
