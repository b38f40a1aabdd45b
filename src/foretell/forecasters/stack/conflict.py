"""Events of a kind in a country: will the next thirty days hold more of them than thirty days of the past year did?

The count N of thirty days is a negative binomial with the mean of the past year: chains of events make it spread
wider than Poisson's. With the reference m, P(N > m) is near 0.42 where there are many events a month, falls where
there is one in several months (any event then makes it yes), and is small where there was none at all.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.rows import logit
from foretell.forecasters.stack.source_model import EffectPriors, Estimate, LearntEffects, PastCases, PooledCases, dated
from foretell.questions.question import Question

# The reference values of event counts as published: which can be believed, and what stands in for one that cannot.

INCREASE, SPIKE = "increase", "10x_spike"
ABOUT = re.compile(r"(?:more|as many) (?:'(?P<kind>[^']+)'|(?P<deaths>fatalities)) in (?P<place>.+?) for the 30 days")
FEWEST = 8
"""A round whose references are all nil, these many at least, was published while the feed was down: about four in
ten places are quiet, so that eight of eight by chance is one round in a thousand."""


@dataclass(frozen=True, kw_only=True)
class ReferenceValue:
    """The average month of the past year, of one kind of event in one place."""

    kind: str
    place: str
    average: float


def reference_of(question: Question) -> ReferenceValue:
    """What the question compares with; a spike is published as one plus the average.

    >>> from foretell.questions.question import LastValue, Target
    >>> q = Question(id="acled/1", source="acled", due="2025-10-26", targets=(Target(id="t"),), subtype="10x_spike",
    ...              text="… ten times as many 'Riots' in Mali for the 30 days …", last_value=LastValue(value=1.5,
    ...              at="2025-10-16"))
    >>> reference_of(q)
    ReferenceValue(kind='Riots', place='Mali', average=0.5)
    """
    value = 0.0 if question.last_value is None else question.last_value.value
    found = ABOUT.search(question.text)
    return ReferenceValue(
        kind="events" if found is None else found["kind"] or found["deaths"],
        place="" if found is None else found["place"],
        average=max(value - 1.0, 0.0) if question.subtype == SPIKE else value,
    )


@dataclass(frozen=True, kw_only=True)
class ReferenceValues:
    """Every reference of rounds that can be believed, by place, and the days of those that cannot."""

    seen: Mapping[str, list[tuple[date, ReferenceValue]]]
    outages: frozenset[date]

    @classmethod
    def of(cls, questions: Iterable[Question]) -> "ReferenceValues":
        """From questions that carry a reference."""
        rounds: dict[date, list[ReferenceValue]] = {}
        for question in questions:
            rounds.setdefault(question.due.date(), []).append(reference_of(question))
        outages = {due for due, found in rounds.items() if len(found) >= FEWEST and not any(r.average for r in found)}
        seen: dict[str, list[tuple[date, ReferenceValue]]] = {}
        for due in sorted(rounds.keys() - outages):
            for reference in rounds[due]:
                seen.setdefault(reference.place, []).append((due, reference))
        return cls(seen=seen, outages=frozenset(outages))

    def before(self, place: str, day: date) -> list[ReferenceValue]:
        """What was published of a place before a day, the newest last."""
        return [reference for due, reference in self.seen.get(place, []) if due < day]


SHAPE = {"fatalities": 1.0}
"""Shape of the count's negative binomial; deaths come in heaps, events less so."""
USUAL_SHAPE = 4.0
NEVER = 0.02
"""Events expected in thirty days where a year saw none: once in four years."""
TIMES = 10.0
"""A spike is more than this many times the reference, which is then one plus the average."""
QUIET, ACTIVE = 0, 1
BELIEFS = EffectPriors(slope=(0.0, 0.0), slope_sd=(0.5, 0.3), group_sd={"day": 0.3}, shared=frozenset({"day"}))
"""The past may move the two kinds of places apart from the counting model, by about this much in log-odds."""
WEIGHT = 0.4
"""The dates of one question look at windows of one story."""
NEIGHBOURS = 2.0
"""How many other kinds of event in the same place weigh as much as the same kind in all places."""


def chance(reference: ReferenceValue, *, spike: bool = False) -> float:
    """P(more than the average), or more than ten times one plus the average, in thirty days.

    >>> [round(chance(ReferenceValue(kind="Battles", place="", average=m)), 2) for m in (0.0, 0.25, 40.0)]
    [0.02, 0.23, 0.42]
    """
    from scipy.special import betainc

    shape = SHAPE.get(reference.kind, USUAL_SHAPE)
    bar = TIMES * (1 + reference.average) if spike else reference.average
    mean = reference.average + NEVER
    return float(betainc(np.floor(bar + 1e-9) + 1, shape, mean / (mean + shape)))


@dataclass(frozen=True, kw_only=True)
class ConflictModel:
    """ACLED's two templates: more than the past year's average, and ten times more."""

    name: str = "event counts"

    def covers(self, question: Question) -> bool:
        """Both templates, where the reference value is known."""
        known = question.last_value is not None and question.subtype in (INCREASE, SPIKE)
        return question.source == "acled" and known and dated(question)

    def study(self, past: Past) -> "ConflictHistory":
        """Outcomes of 'increase' questions beside what the counting model says, from rounds that can be believed."""
        references = ReferenceValues.of(q for q in past.questions if self.covers(q))
        lessons = [
            x
            for x in past.resolved
            if x.question.subtype == INCREASE
            and self.covers(x.question)
            and x.question.due.date() not in references.outages
        ]
        taught = PastCases(
            cases=_cases([reference_of(x.question) for x in lessons], [str(x.known_on) for x in lessons]),
            outcome=np.array([x.outcome for x in lessons], np.float64),
            known_on=np.array([x.known_on for x in lessons], "M8[D]"),
            beliefs=BELIEFS,
            weight=WEIGHT,
        )
        return ConflictHistory(references=references, taught=taught)


@dataclass(frozen=True, kw_only=True)
class ConflictHistory:
    """References and past cases, to be read up to a day."""

    references: ReferenceValues
    taught: PastCases

    def as_of(self, day: date) -> "ConflictEstimator":
        """What was known before the day."""
        return ConflictEstimator(references=self.references, learnt=self.taught.before(day), day=day)


@dataclass(frozen=True, kw_only=True)
class ConflictEstimator:
    """The counting model as of a day, corrected by what came out before."""

    references: ReferenceValues
    learnt: LearntEffects
    day: date

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """The same probability for every date: each looks at thirty days of its own."""
        reference, n = reference_of(question), len(question.targets)
        if question.subtype == SPIKE:
            words = f"Counts around {reference.average:g} a month: ten times as many is next to never."
            return Estimate(p=np.full(n, chance(reference, spike=True)), rationale=words)
        if question.due.date() in self.references.outages:
            p, words = self._stand_in(reference)
            return Estimate(p=np.full(n, p), rationale=words)
        p = float(self.learnt.pooled.chances(_cases([reference], [""]))[0])
        usual = f"{reference.average:g} in an average month of the past year" if reference.average else "none in a year"
        words = (
            f"{reference.kind.capitalize()} in {reference.place}: {usual}. A negative-binomial count says "
            f"{chance(reference):.0%} for more, and {len(self.learnt.outcome)} past outcomes make it {p:.0%}."
        )
        return Estimate(p=np.full(n, p), rationale=words)

    def _stand_in(self, asked: ReferenceValue) -> tuple[float, str]:
        """What earlier rounds said of the place, else of the kind: the round's own references are all nil."""
        text = "Every reference value of this round is nil, so its feed was down;"
        place = self.references.before(asked.place, self.day)
        same = [r for r in place if r.kind == asked.kind]
        if same:
            p = float(self.learnt.pooled.chances(_cases(same[-1:], [""]))[0])
            return p, f"{text} an earlier round had {same[-1].average:g} {asked.kind.lower()} a month here."
        around = sum(chance(r) for r in place)
        p = (around + NEIGHBOURS * self._by_kind(asked.kind)) / (len(place) + NEIGHBOURS)
        return p, f"{text} what is known of {asked.place} and of {asked.kind.lower()} elsewhere stands in."

    def _by_kind(self, kind: str) -> float:
        return self._kinds.get(kind, float(np.mean(list(self._kinds.values()))) if self._kinds else 0.2)

    @cached_property
    def _kinds(self) -> dict[str, float]:
        """Mean chance by kind of event over all places."""
        found: dict[str, list[float]] = {}
        for place in self.references.seen:
            for reference in self.references.before(place, self.day):
                found.setdefault(reference.kind, []).append(chance(reference))
        return {kind: float(np.mean(said)) for kind, said in found.items()}


def _cases(references: list[ReferenceValue], day: list[str]) -> PooledCases:
    average = np.array([r.average for r in references], np.float64)
    said = np.array([chance(r) for r in references], np.float64)
    columns = np.zeros((len(references), 2))
    columns[:, QUIET], columns[:, ACTIVE] = average == 0, average > 0
    return PooledCases(start=logit(said), columns=columns, labels={"day": np.array(day, str)})
