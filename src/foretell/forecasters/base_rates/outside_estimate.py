"""The arithmetic of the outside view: a probability for any question, from a fitted model and similar past questions.

It loads nothing of forecasting, so that pages can show the number for a question without an answer.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache

import numpy as np

from foretell.forecasters.base_rates.outside_model import (
    LogOddsPart,
    OutsideModel,
    OutsideModelRecord,
    RateClass,
    asking_hash,
)
from foretell.forecasters.base_rates.past import PastQuestions, question_text
from foretell.forecasters.base_rates.text_features import (
    BUCKETS,
    HORIZON,
    Grams,
    TextFeatures,
    buckets,
    features_of_past,
    gram_values,
    lengths,
    one_text,
    rarity,
    text_features,
)
from foretell.forecasters.base_rates.wording import TURNS, read
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.transforms import sigmoid
from foretell.number_text import percent
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target, scaled

# Reference classes: the answered questions most similar to this one, and how they resolved.

SIZE = 40
STRENGTH = 20.0
"""Weight of the forecast in the blend, in questions with similarity 1."""


@frozen
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
    """False while the deadline lies ahead. Early answers are mostly yes, so they do not count."""


@frozen
class ReferenceClass:
    """The most similar questions, most similar first."""

    members: tuple[ReferenceQuestion, ...]
    as_of: AsOf

    @classmethod
    def of(cls, question: Question, bank: PastQuestions, as_of: AsOf, k: int = SIZE) -> "ReferenceClass":
        """Find the `k` most similar questions of the bank that were answered before the day of the cutoff.

        Similarity is the cosine of rarity-weighted words and word pairs, half of it on the text as written and half
        with names left out. A question counts once, by its last asking. The question itself is left out.
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
        return f"of the {len(self)} most similar questions {percent(self.rate)} resolved yes"

    def blended(self, p: float, strength: float = STRENGTH) -> float:
        """Shrink a probability towards the class: (s·p + Σ wᵢ·yᵢ) / (s + Σ wᵢ), where w is the similarity."""
        counted = [m for m in self.members if m.deadline_over]
        total = sum(m.similarity for m in counted)
        return (strength * p + sum(m.similarity * m.outcome for m in counted)) / (strength + total)


@frozen(eq=False)
class _AnsweredQuestions:
    """Questions answered before a day: rows of the bank with their words, and the rarity of words by then."""

    day: date
    row: Ints
    seen: list[TextFeatures]
    grams: Grams
    rarities: Floats
    length: Floats

    def similarity(self, words: Ints) -> Floats:
        weights = np.zeros(2 * BUCKETS)
        weights[words] = gram_values(one_text(words), self.rarities)
        shared = weights[self.grams.bucket] * self.rarities[self.grams.bucket]
        group = 2 * self.grams.row + (self.grams.bucket >= BUCKETS)
        sums = np.bincount(group, weights=shared, minlength=2 * len(self.row))
        return (sums.reshape(-1, 2) / self.length).mean(axis=1)


@lru_cache(maxsize=32)
def _answered(bank: PastQuestions, day: date, kind: str) -> _AnsweredQuestions:
    now = np.datetime64(day, "D")
    earlier = (bank.due < now) & (bank.kind == kind)
    all_grams = Grams.of(features_of_past(bank.take(_last_askings(bank, earlier))))
    rarities = rarity(all_grams, np.ones(len(all_grams.start) - 1))
    row = _last_askings(bank, earlier & (bank.known_on < now))
    seen = features_of_past(bank.take(row))
    grams = Grams.of(seen)
    return _AnsweredQuestions(
        day=day, row=row, seen=seen, grams=grams, rarities=rarities, length=lengths(grams, rarities)
    )


def _last_askings(bank: PastQuestions, which: Bools) -> Ints:
    """Return one row for each question, that of its last asking."""
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


# The reasons of the outside view in words.

STRONGEST = 4
WEAKEST = 0.03
"""Log-odds below which a reason is left out."""
CLEARLY_APART = 0.2
"""Log-odds from which a difference from the class is mentioned although no feature explains it."""
LISTED = 3
ABOUT_THE_CASE = frozenset(
    ("threshold", "under", "between", "record", "win", "most", "out", "negated", *HORIZON.values())
)
"""Parts that say what has to happen. Words such as "before" have weight too, but do not explain an answer."""


def reasons_of_text(
    parts: Sequence[LogOddsPart], seen: TextFeatures, source: str | None, record: OutsideModelRecord
) -> str:
    """Describe the class of questions and its size, then the strongest parts about the case; no source means any."""
    level = next(part.log_odds for part in parts if part.name == "level")
    whose = f"Questions of {source}" if source else "Market questions in general"
    text = [f"{whose} resolve yes {percent(float(sigmoid(level)))} of the time (learnt from {_learnt(record)})."]
    above = sum(part.log_odds for part in parts) - level
    # A reason in the opposite direction would not explain the answer.
    ranked = sorted(
        (p for p in parts if p.name in ABOUT_THE_CASE and p.log_odds * above > 0), key=lambda p: -abs(p.log_odds)
    )
    strong = [_meaning(p.name, seen) for p in ranked if abs(p.log_odds) >= WEAKEST][:STRONGEST]
    if strong:
        text.append(f"What {'raises' if above > 0 else 'lowers'} this one: {'; '.join(strong)}.")
    elif abs(above) >= CLEARLY_APART:
        text.append(f"Questions worded like this one came true {'more' if above > 0 else 'less'} often than that.")
    if seen.days is None:
        text.append("No deadline is named.")
    return " ".join(text)


def reasons_of_several(question: Question, record: OutsideModelRecord) -> str:
    """Explain the probabilities of several outcomes."""
    start = f"Nothing is known about the {len(question.targets)} outcomes but their wording and their dates."
    scaling = {
        "exactly one": " Their probabilities are scaled to add up to 1, because exactly one comes true.",
        "at most one": " Their probabilities are scaled to add up to 1 at most, because no two come true.",
    }.get(question.exclusivity, "")
    return f"{start}{scaling} Learnt from {_learnt(record)}."


def _learnt(record: OutsideModelRecord) -> str:
    return f"{record.outcomes:,} outcomes of {record.questions:,} past market questions"


def reasons_of_class(similar: ReferenceClass) -> str:
    """Describe the reference class by its share of yes and its nearest members."""
    if not len(similar):
        return ""
    nearest = "; ".join(
        f"“{m.text.splitlines()[0][:90]}” ({'yes' if m.outcome else 'no'}, {m.known_on})"
        for m in similar.members[:LISTED]
    )
    return f"{similar.sentence[0].upper()}{similar.sentence[1:]}, nearest: {nearest}."


def _meaning(name: str, seen: TextFeatures) -> str:
    days = round(seen.days or 0)
    return TURNS[name][1] if name in TURNS else f"{days:,} day{'' if days == 1 else 's'} to the deadline"


LEAST, MOST = 0.005, 0.995
"""Bounds of a probability from words alone."""


def outside_estimate(
    question: Question, model: OutsideModel, similar: ReferenceClass | None = None
) -> tuple[dict[str, float], str]:
    """Return a probability for every target, with a valid sum for targets that exclude each other, and the reasons."""
    answers = {target.id: _target(question, target, model, similar) for target in question.targets}
    p = scaled({target: value for target, (value, _) in answers.items()}, question.exclusivity)
    why = next(iter(answers.values()))[1] if len(answers) == 1 else reasons_of_several(question, model.record)
    return p, " ".join(filter(None, (why, "" if similar is None else reasons_of_class(similar))))


def _target(
    question: Question, target: Target, model: OutsideModel, similar: ReferenceClass | None
) -> tuple[float, str]:
    kind = kind_of(question, target)
    rate = model.rates.rate(kind) if question.kind == "dataset" else None
    if rate is not None:
        days = "" if kind.days is None else f" at a horizon of {kind.days:.0f} days"
        name, n = f"{kind.source} {kind.subtype}".strip(), model.rates.outcomes_counted(kind)
        return rate, f"Base rate of {name}{days}, from about {n:.0f} independent outcomes."
    features = target_features(question, target)
    parts = model.text.parts(features, question.source, question.due.date())
    p = float(sigmoid(sum(part.log_odds for part in parts)))
    blended = p if similar is None else similar.blended(p)
    source = question.source if question.source in model.text.level.source else None
    return min(max(blended, LEAST), MOST), reasons_of_text(parts, features, source, model.record)


def hindsight(question: Question, model: OutsideModel, cutoff: AsOf) -> str:
    """Return why a model must not answer a question in a backtest, because it learnt from later; empty if it may."""
    if cutoff.mode == "live":
        return ""
    last, day = model.record.last_known, cutoff.at.date()
    if last is not None and day <= last:
        return (
            f"the outside view was fitted on outcomes up to {last}, and question {question.id} is asked "
            f"as of {day}: give past questions, so that it is fitted on what was known by then"
        )
    if asking_hash(f"{question.id}@{question.due.date()}") in model.askings:
        return f"the outside view was fitted on this asking of {question.id}"
    return ""


def cutoff_of(question: Question, as_of: AsOf) -> AsOf:
    """Return the cutoff of the outside view: the end of the day of asking, at the latest of the question's due day."""
    return AsOf.day(min(as_of.at.date(), question.due.date()), as_of.mode)


def target_features(question: Question, target: Target) -> TextFeatures:
    """Return the features of one target; its own resolution date is definite, a market's closing date is not."""
    due, end = question.due.date(), target.resolves_at or question.closes_at
    reading = read(question_text(question, target), due)
    return text_features(reading, due, end.date() if end else None, definite=target.resolves_at is not None)


def kind_of(question: Question, target: Target) -> RateClass:
    """The rate class of a data-set target."""
    days = question.horizon_days(target)
    return RateClass(
        source=question.source,
        subtype=question.subtype,
        size=question.last_value.value if question.last_value else None,
        days=None if days is None else float(days),
    )
