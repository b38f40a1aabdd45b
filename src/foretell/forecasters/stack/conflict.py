"""Events of a kind in a country: will the next thirty days hold more of them than thirty days of the past year did?

The count N of thirty days is a negative binomial with the mean of the past year: chains of events make it spread
wider than Poisson's. With the reference m, P(N > m) is near 0.42 where there are many events a month, falls where
there is one in several months (any event then makes it yes), and is small where there was none at all.
"""

from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np

from foretell.forecasters.combine.rows import logit
from foretell.forecasters.stack.family import Estimate, dated
from foretell.forecasters.stack.past import Past
from foretell.forecasters.stack.pooling import Beliefs, Cases, Learnt, Taught
from foretell.forecasters.stack.references import INCREASE, SPIKE, Reference, References, reference_of
from foretell.questions.question import Question
from foretell.sources.series import Series

SHAPE = {"fatalities": 1.0}
"""Shape of the count's negative binomial; deaths come in heaps, events less so."""
USUAL_SHAPE = 4.0
NEVER = 0.02
"""Events expected in thirty days where a year saw none: once in four years."""
TIMES = 10.0
"""A spike is more than this many times the reference, which is then one plus the average."""
QUIET, ACTIVE = 0, 1
BELIEFS = Beliefs(slope=(0.0, 0.0), slope_sd=(0.5, 0.3), group_sd={"day": 0.3}, shared=frozenset({"day"}))
"""The past may move the two kinds of places apart from the counting model, by about this much in log-odds."""
WEIGHT = 0.4
"""The dates of one question look at windows of one story."""
NEIGHBOURS = 2.0
"""How many other kinds of event in the same place weigh as much as the same kind in all places."""


def chance(reference: Reference, *, spike: bool = False) -> float:
    """P(more than the average), or more than ten times one plus the average, in thirty days.

    >>> [round(chance(Reference(kind="Battles", place="", average=m)), 2) for m in (0.0, 0.25, 40.0)]
    [0.02, 0.23, 0.42]
    """
    from scipy.special import betainc

    shape = SHAPE.get(reference.kind, USUAL_SHAPE)
    bar = TIMES * (1 + reference.average) if spike else reference.average
    mean = reference.average + NEVER
    return float(betainc(np.floor(bar + 1e-9) + 1, shape, mean / (mean + shape)))


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """ACLED's two templates: more than the past year's average, and ten times more."""

    name: str = "event counts"

    def covers(self, question: Question) -> bool:
        """Both templates, where the reference value is known."""
        known = question.last_value is not None and question.subtype in (INCREASE, SPIKE)
        return question.source == "acled" and known and dated(question)

    def study(self, past: Past) -> "Counted":
        """Outcomes of 'increase' questions beside what the counting model says, from rounds that can be believed."""
        references = References.of(q for q in past.questions if self.covers(q))
        lessons = [
            x
            for x in past.lessons
            if x.question.subtype == INCREASE
            and self.covers(x.question)
            and x.question.due.date() not in references.outages
        ]
        taught = Taught(
            cases=_cases([reference_of(x.question) for x in lessons], [str(x.known_on) for x in lessons]),
            outcome=np.array([x.outcome for x in lessons], np.float64),
            known_on=np.array([x.known_on for x in lessons], "M8[D]"),
            beliefs=BELIEFS,
            weight=WEIGHT,
        )
        return Counted(references=references, taught=taught)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """References and past cases, to be read up to a day."""

    references: References
    taught: Taught

    def as_of(self, day: date) -> "Places":
        """What was known before the day."""
        return Places(references=self.references, learnt=self.taught.before(day), day=day)


@dataclass(frozen=True, kw_only=True)
class Places:
    """The counting model as of a day, corrected by what came out before."""

    references: References
    learnt: Learnt
    day: date

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """The same probability for every date: each looks at thirty days of its own."""
        reference, n = reference_of(question), len(question.targets)
        if question.subtype == SPIKE:
            words = f"Counts around {reference.average:g} a month: ten times as many is next to never."
            return Estimate(p=np.full(n, chance(reference, spike=True)), words=words)
        if question.due.date() in self.references.outages:
            p, words = self._stand_in(reference)
            return Estimate(p=np.full(n, p), words=words)
        p = float(self.learnt.pooled.chances(_cases([reference], [""]))[0])
        usual = f"{reference.average:g} in an average month of the past year" if reference.average else "none in a year"
        words = (
            f"{reference.kind.capitalize()} in {reference.place}: {usual}. A negative-binomial count says "
            f"{chance(reference):.0%} for more, and {len(self.learnt.outcome)} past outcomes make it {p:.0%}."
        )
        return Estimate(p=np.full(n, p), words=words)

    def _stand_in(self, asked: Reference) -> tuple[float, str]:
        """What earlier rounds said of the place, else of the kind: the round's own references are all nil."""
        told = "Every reference value of this round is nil, so its feed was down;"
        place = self.references.before(asked.place, self.day)
        same = [r for r in place if r.kind == asked.kind]
        if same:
            p = float(self.learnt.pooled.chances(_cases(same[-1:], [""]))[0])
            return p, f"{told} an earlier round had {same[-1].average:g} {asked.kind.lower()} a month here."
        around = sum(chance(r) for r in place)
        p = (around + NEIGHBOURS * self._by_kind(asked.kind)) / (len(place) + NEIGHBOURS)
        return p, f"{told} what is known of {asked.place} and of {asked.kind.lower()} elsewhere stands in."

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


def _cases(references: list[Reference], day: list[str]) -> Cases:
    average = np.array([r.average for r in references], np.float64)
    said = np.array([chance(r) for r in references], np.float64)
    columns = np.zeros((len(references), 2))
    columns[:, QUIET], columns[:, ACTIVE] = average == 0, average > 0
    return Cases(start=logit(said), columns=columns, labels={"day": np.array(day, str)})
