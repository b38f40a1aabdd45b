"""Events of a kind in a country: will the next thirty days hold more of them than thirty days of the past year did?

The count N of thirty days is a negative binomial with the mean of the past year: chains of events make it spread
wider than Poisson's. With the reference m, P(N > m) is near 0.42 where there are many events a month, falls where
there is one in several months (any event then makes it yes), and is small where there was none at all.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past, PastTarget
from foretell.forecasters.combine.rows import logit
from foretell.forecasters.stack.source_model import (
    NO_OTHERS,
    Case,
    EffectPriors,
    Estimate,
    OtherSeries,
    PooledCases,
    PooledModel,
    dated,
)
from foretell.metrics.arrays import Floats
from foretell.questions.question import Question, SeriesRef

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
    """What the question compares with; a spike is published as one plus the average."""
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

    def chances_by_kind(self, day: date) -> dict[str, float]:
        """Mean chance by kind of event over all places, from what was published before a day."""
        found: dict[str, list[float]] = {}
        for place in self.seen:
            for reference in self.before(place, day):
                found.setdefault(reference.kind, []).append(chance(reference))
        return {kind: float(np.mean(chances)) for kind, chances in found.items()}


SHAPE = {"fatalities": 1.0}
"""Shape of the count's negative binomial; deaths come in heaps, events less so."""
USUAL_SHAPE = 4.0
NEVER = 0.02
"""Events expected in thirty days where a year saw none: once in four years."""
TIMES = 10.0
"""A spike is more than this many times the reference, which is then one plus the average."""
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


# Counts by day: a window that ends a week after the due date has mostly been seen by then.

WINDOW, YEAR = 30, 360
COVERED = 10
"""Until so many days before the due date a day without an event was quiet; later it may not have been reported yet."""
LOWER_BOUND = 0.7
"""A record that counts less than this share of the published average leaves events out, and is not used."""
RECENT_DAYS, RECENT = 60, 0.5
"""How far the last two months, beside the past year, tell the pace of the next weeks."""
SUMS = re.compile(r"/\d{1,3} days$")


@dataclass(frozen=True, kw_only=True)
class DailyCounts:
    """Events by day up to the last day that was reported."""

    counts: Floats
    """Of the year before `until`, the last value being that day's."""
    until: int
    """Days since 1970."""

    @classmethod
    def of(cls, record: Series, due: date) -> "DailyCounts":
        """From a series of counts by day; days that it leaves out had no event."""
        today = int(np.datetime64(due, "D").astype(np.int64))
        day = record.days.astype("M8[D]").astype(np.int64)
        until = min(max(int(day[-1]), today - COVERED), today)
        counts = np.zeros(YEAR)
        used = (day > until - YEAR) & (day <= until)
        counts[day[used] - until - 1] = record.values[used]
        return cls(counts=counts, until=until)

    @property
    def average(self) -> float:
        """Of thirty days of the year."""
        return float(self.counts.sum()) * WINDOW / YEAR

    def chance(self, kind: str, bar: float, end: date) -> float | None:
        """P(more than the bar in the thirty days before the end); None where none of them was seen."""
        from scipy.special import betainc

        ahead = int(np.datetime64(end, "D").astype(np.int64)) - 1 - self.until
        if ahead >= WINDOW:
            return None
        ahead = max(ahead, 0)
        room = bar - float(self.counts[YEAR - WINDOW + ahead :].sum())
        if room < 0:
            return SETTLED
        if not ahead:
            return 1 - SETTLED
        recent = float(self.counts[-RECENT_DAYS:].sum()) * WINDOW / RECENT_DAYS
        mean = (RECENT * recent + (1 - RECENT) * self.average + NEVER) * ahead / WINDOW
        shape = SHAPE.get(kind, USUAL_SHAPE)
        more = float(betainc(np.floor(room + 1e-9) + 1, shape, mean / (mean + shape)))
        return min(max(more, 1 - SETTLED), SETTLED)


SETTLED = 0.98
"""What the days seen decide by themselves: counts are corrected, and seldom by much."""


class ConflictModel(PooledModel):
    """ACLED's two templates: more than the past year's average, and ten times more."""

    name = "event counts"
    beliefs = EffectPriors(slope=(0.0, 0.0), slope_sd=(0.5, 0.3), group_sd={"day": 0.3}, shared=frozenset({"day"}))
    """The past may move quiet and active places apart from the counting model, by about this much in log-odds."""
    weight = 0.4
    """The dates of one question look at windows of one story."""

    def covers(self, question: Question) -> bool:
        """Both templates, where the reference value is known."""
        known = question.last_value is not None and question.subtype in (INCREASE, SPIKE)
        return question.source == "acled" and known and dated(question)

    def record_of(self, question: Question) -> SeriesRef | None:
        """The counts by day behind the sums that the question names."""
        return None if question.series is None else replace(question.series, id=SUMS.sub("", question.series.id))

    def lessons(self, past: Past) -> list[PastTarget]:
        """Outcomes of 'increase' questions from rounds that can be believed."""
        outages = self._references(past).outages
        found = (x for x in past.resolved if x.question.subtype == INCREASE and self.covers(x.question))
        return [x for x in found if x.question.due.date() not in outages]

    def cases(self, asked: Sequence[Case]) -> PooledCases:
        """What the counting model says, and which kind of place it is."""
        return _cases([reference_of(question) for question, _, _ in asked], [str(day) for _, _, day in asked])

    def estimate(
        self, question: Question, past: Past, day: date, record: Series | None = None, others: OtherSeries = NO_OTHERS
    ) -> Estimate:
        """What was counted of a date's thirty days, and the counting model for the rest.

        Dates whose thirty days are all to come have the same probability, corrected by what came out before.
        """
        reference = reference_of(question)
        ahead = self._ahead(question, reference, past, day)
        counted = None if record is None else DailyCounts.of(record, question.due.date())
        if counted is None or counted.average < LOWER_BOUND * reference.average:
            return ahead
        bar = TIMES * (1 + counted.average) if question.subtype == SPIKE else counted.average
        ends = [(target.resolves_at or question.due).date() for target in question.targets]
        seen = [counted.chance(reference.kind, bar, end) for end in ends]
        p = np.array([q if one is None else one for one, q in zip(seen, ahead.p, strict=True)], np.float64)
        until = np.datetime64(counted.until, "D")
        last = float(counted.counts[-WINDOW:].sum())
        words = f" Counted by day until {until}: {last:g} in the last {WINDOW} days, more than {bar:g} are needed."
        return Estimate(p=p, rationale=ahead.rationale + words, from_record=True)

    def _ahead(self, question: Question, reference: ReferenceValue, past: Past, day: date) -> Estimate:
        """The counting model corrected by what came out before, the same for every date."""
        n = len(question.targets)
        if question.subtype == SPIKE:
            words = f"Counts around {reference.average:g} a month: ten times as many is next to never."
            return Estimate(p=np.full(n, chance(reference, spike=True)), rationale=words)
        if question.due.date() in self._references(past).outages:
            p, words = self._stand_in(reference, past, day)
            return Estimate(p=np.full(n, p), rationale=words)
        learnt = self.learnt(past, day)
        p = float(learnt.pooled.chances(_cases([reference], [""]))[0])
        usual = f"{reference.average:g} in an average month of the past year" if reference.average else "none in a year"
        words = (
            f"{reference.kind.capitalize()} in {reference.place}: {usual}. A negative-binomial count says "
            f"{chance(reference):.0%} for more, and {len(learnt.outcome)} past outcomes make it {p:.0%}."
        )
        return Estimate(p=np.full(n, p), rationale=words)

    def _references(self, past: Past) -> ReferenceValues:
        covered = (q for q in past.questions if self.covers(q))
        return past.cached((self.name, "references"), lambda: ReferenceValues.of(covered))

    def _stand_in(self, asked: ReferenceValue, past: Past, day: date) -> tuple[float, str]:
        """What earlier rounds said of the place, else of the kind: the round's own references are all nil."""
        text = "Every reference value of this round is nil, so its feed was down;"
        references = self._references(past)
        place = references.before(asked.place, day)
        same = [r for r in place if r.kind == asked.kind]
        if same:
            p = float(self.learnt(past, day).pooled.chances(_cases(same[-1:], [""]))[0])
            return p, f"{text} an earlier round had {same[-1].average:g} {asked.kind.lower()} a month here."
        kinds = past.cached((self.name, "kinds", day), lambda: references.chances_by_kind(day))
        elsewhere = kinds.get(asked.kind, float(np.mean(list(kinds.values()))) if kinds else 0.2)
        around = sum(chance(r) for r in place)
        p = (around + NEIGHBOURS * elsewhere) / (len(place) + NEIGHBOURS)
        return p, f"{text} what is known of {asked.place} and of {asked.kind.lower()} elsewhere stands in."


def _cases(references: Sequence[ReferenceValue], day: Sequence[str]) -> PooledCases:
    average = np.array([r.average for r in references], np.float64)
    chances = np.array([chance(r) for r in references], np.float64)
    columns = np.column_stack([average == 0, average > 0]).astype(np.float64)
    return PooledCases(start=logit(chances), columns=columns, labels={"day": np.array(day, str)})
