"""Conflict events in a country: whether the next thirty days have more than an average month of the past year.

The count N of thirty days is negative binomial with the mean of the past year, because events cluster and the variance
exceeds Poisson's. With the reference m, P(N > m) is near 0.42 with many events a month, lower with one in several
months (any event then makes it yes), and small if there was none at all.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past, PastTarget
from foretell.forecasters.model_free.source_model import (
    NO_OTHERS,
    Case,
    EffectPriors,
    Estimate,
    OtherSeries,
    PooledCases,
    PooledModel,
    dated,
)
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.probability_functions import beta_below
from foretell.metrics.transforms import logit
from foretell.number_text import percent
from foretell.patterns import pattern
from foretell.questions.question import Question, SeriesRef

# Published reference values of event counts, and substitutes for values that are missing.

INCREASE, SPIKE = "increase", "10x_spike"
ABOUT = pattern(r"(?:more|as many) (?:'(?P<kind>[^']+)'|(?P<deaths>fatalities)) in (?P<place>.+?) for the 30 days")
FEWEST = 8
"""If a round has at least this many references and all are zero, it was published while the feed was down. About four
in ten references are zero, so eight of eight by chance would happen in one round in a thousand."""


@frozen
class ReferenceValue:
    """The average monthly count over the past year of one kind of event in one place."""

    kind: str
    place: str
    average: float


def reference_of(question: Question) -> ReferenceValue:
    """Return the value that the question compares with; a spike question publishes one plus the average."""
    value = 0.0 if question.last_value is None else question.last_value.value
    match = ABOUT.search(question.text)
    return ReferenceValue(
        kind="events" if match is None else match["kind"] or match["deaths"],
        place="" if match is None else match["place"],
        average=max(value - 1.0, 0.0) if question.subtype == SPIKE else value,
    )


@frozen
class ReferenceValues:
    """All references of plausible rounds, by place, and the days of the rounds published during an outage."""

    seen: Mapping[str, list[tuple[date, ReferenceValue]]]
    outages: frozenset[date]

    @classmethod
    def of(cls, questions: Iterable[Question]) -> "ReferenceValues":
        """Collect the references of questions that have one."""
        rounds: dict[date, list[ReferenceValue]] = {}
        for question in questions:
            rounds.setdefault(question.due.date(), []).append(reference_of(question))
        outages = {
            due
            for due, references in rounds.items()
            if len(references) >= FEWEST and not any(r.average for r in references)
        }
        seen: dict[str, list[tuple[date, ReferenceValue]]] = {}
        for due in sorted(rounds.keys() - outages):
            for reference in rounds[due]:
                seen.setdefault(reference.place, []).append((due, reference))
        return cls(seen=seen, outages=frozenset(outages))

    def before(self, place: str, day: date) -> list[ReferenceValue]:
        """Return the references of a place published before a day, newest last."""
        return [reference for due, reference in self.seen.get(place, []) if due < day]

    def chances_by_kind(self, day: date) -> dict[str, float]:
        """Mean probability by kind of event over all places, from references published before a day."""
        by_kind: dict[str, list[float]] = {}
        for place in self.seen:
            for reference in self.before(place, day):
                by_kind.setdefault(reference.kind, []).append(chance(reference))
        return {kind: float(np.mean(chances)) for kind, chances in by_kind.items()}


SHAPE = {"fatalities": 1.0}
"""Shape of the count's negative binomial by kind; deaths cluster more than events do."""
USUAL_SHAPE = 4.0
NEVER = 0.02
"""Expected events in thirty days if there were none in a year: one in four years."""
TIMES = 10.0
"""A spike is more than this many times the reference, which is then one plus the average."""
NEIGHBOURS = 2.0
"""Number of other kinds of event in the same place with the same weight as the same kind in all places."""


def chance(reference: ReferenceValue, *, spike: bool = False) -> float:
    """P(more than the average in thirty days); for a spike, P(more than ten times one plus the average).

    >>> [round(chance(ReferenceValue(kind="Battles", place="", average=m)), 2) for m in (0.0, 0.25, 40.0)]
    [0.02, 0.23, 0.42]
    """
    threshold = TIMES * (1 + reference.average) if spike else reference.average
    return _more_than(threshold, reference.average + NEVER, reference.kind)


def _more_than(threshold: float, mean: float, kind: str) -> float:
    """Return P(a negative-binomial count with this mean exceeds the threshold)."""
    shape = SHAPE.get(kind, USUAL_SHAPE)
    return beta_below(math.floor(threshold + 1e-9) + 1, shape, mean / (mean + shape), shape / (mean + shape))


# Daily counts: most days of a window that ends a week after the due date are already known.

WINDOW, YEAR = 30, 360
COVERED = 10
"""Days before the due date after which a day without events may not be reported yet."""
LOWER_BOUND = 0.7
"""A record with less than this share of the published average is incomplete and not used."""
RECENT_DAYS, RECENT = 60, 0.5
"""Weight of the last two months, against the past year, in the expected rate of the next weeks."""
SUMS = pattern(r"/\d{1,3} days$")


@frozen
class DailyCounts:
    """Daily event counts up to the last reported day."""

    counts: Floats
    """Counts of the year that ends with `until`, one per day; the last value is that day's."""
    until: int
    """The last reported day, in days since 1970."""

    @classmethod
    def of(cls, record: Series, due: date) -> "DailyCounts":
        """Build it from a series of daily counts; days that the series leaves out had no event."""
        today = int(np.datetime64(due, "D").astype(np.int64))
        day = record.days.astype("M8[D]").astype(np.int64)
        until = min(max(int(day[-1]), today - COVERED), today)
        counts = np.zeros(YEAR)
        used = (day > until - YEAR) & (day <= until)
        counts[day[used] - until - 1] = record.values[used]
        return cls(counts=counts, until=until)

    @property
    def average(self) -> float:
        """Mean count per thirty days over the year."""
        return float(self.counts.sum()) * WINDOW / YEAR

    def chance(self, kind: str, threshold: float, end: date) -> float | None:
        """Return P(more than `threshold` in the thirty days before `end`); None if none of those days is known yet."""
        ahead = int(np.datetime64(end, "D").astype(np.int64)) - 1 - self.until
        if ahead >= WINDOW:
            return None
        ahead = max(ahead, 0)
        room = threshold - float(self.counts[YEAR - WINDOW + ahead :].sum())
        if room < 0:
            return SETTLED
        if not ahead:
            return 1 - SETTLED
        recent = float(self.counts[-RECENT_DAYS:].sum()) * WINDOW / RECENT_DAYS
        mean = (RECENT * recent + (1 - RECENT) * self.average + NEVER) * ahead / WINDOW
        return min(max(_more_than(room, mean, kind), 1 - SETTLED), SETTLED)


SETTLED = 0.98
"""Probability once the known days decide the answer. Counts are sometimes corrected, but seldom by much."""


class ConflictModel(PooledModel):
    """ACLED's two question templates: more than the past year's average, and more than ten times as many."""

    name = "event counts"
    beliefs = EffectPriors(slope=(0.0, 0.0), slope_sd=(0.5, 0.3), group_sd={"day": 0.3}, shared=frozenset({"day"}))
    """Prior of the shifts of quiet and active places from the counting model by past outcomes, in log-odds."""
    weight = 0.4
    """Less than one, because the dates of one question have overlapping windows."""

    def covers(self, question: Question) -> bool:
        """Whether the question uses one of the two templates and its reference value is known."""
        known = question.last_value is not None and question.subtype in (INCREASE, SPIKE)
        return question.source == "acled" and known and dated(question)

    def record_of(self, question: Question) -> SeriesRef | None:
        """Return the series of daily counts behind the sums that the question names."""
        return None if question.series is None else replace(question.series, id=SUMS.sub("", question.series.id))

    def training_targets(self, past: Past) -> list[PastTarget]:
        """Return outcomes of 'increase' questions, without rounds published during an outage."""
        outages = self._references(past).outages
        covered = (x for x in past.resolved if x.question.subtype == INCREASE and self.covers(x.question))
        return [x for x in covered if x.question.due.date() not in outages]

    def cases(self, targets: Sequence[Case]) -> PooledCases:
        """Build rows from the counting model's log-odds, with columns for quiet and for active places."""
        return _cases([reference_of(question) for question, _, _ in targets], [str(day) for _, _, day in targets])

    def estimate(
        self, question: Question, past: Past, day: date, record: Series | None = None, others: OtherSeries = NO_OTHERS
    ) -> Estimate:
        """Combine the days already counted in a date's thirty-day window with the counting model for the rest.

        Dates whose thirty days are all in the future get the same probability, corrected by past outcomes.
        """
        reference = reference_of(question)
        ahead = self._ahead(question, reference, past, day)
        counted = None if record is None else DailyCounts.of(record, question.due.date())
        if counted is None or counted.average < LOWER_BOUND * reference.average:
            return ahead
        threshold = TIMES * (1 + counted.average) if question.subtype == SPIKE else counted.average
        ends = [(target.resolves_at or question.due).date() for target in question.targets]
        seen = [counted.chance(reference.kind, threshold, end) for end in ends]
        p = np.array([q if known is None else known for known, q in zip(seen, ahead.p, strict=True)], np.float64)
        until = np.datetime64(counted.until, "D")
        last = float(counted.counts[-WINDOW:].sum())
        words = (
            f" Counted by day until {until}: {last:g} in the last {WINDOW} days, more than {threshold:g} are needed."
        )
        return Estimate(p=p, rationale=ahead.rationale + words, from_record=True)

    def _ahead(self, question: Question, reference: ReferenceValue, past: Past, day: date) -> Estimate:
        """Return the counting model's probability, corrected by past outcomes; it is the same for every date."""
        n = len(question.targets)
        if question.subtype == SPIKE:
            words = f"Counts around {reference.average:g} a month: ten times as many is very unlikely."
            return Estimate(p=np.full(n, chance(reference, spike=True)), rationale=words)
        if question.due.date() in self._references(past).outages:
            p, words = self._substitute(reference, past, day)
            return Estimate(p=np.full(n, p), rationale=words)
        learnt = self.learnt(past, day)
        p = float(learnt.pooled.chances(_cases([reference], [""]))[0])
        usual = f"{reference.average:g} in an average month of the past year" if reference.average else "none in a year"
        words = (
            f"{reference.kind.capitalize()} in {reference.place}: {usual}. A negative-binomial count says "
            f"{percent(chance(reference))} for more, and {len(learnt.outcome)} past outcomes make it {percent(p)}."
        )
        return Estimate(p=np.full(n, p), rationale=words)

    def _references(self, past: Past) -> ReferenceValues:
        covered = (q for q in past.questions if self.covers(q))
        return past.cached((self.name, "references"), lambda: ReferenceValues.of(covered))

    def _substitute(self, reference: ReferenceValue, past: Past, day: date) -> tuple[float, str]:
        """Estimate from earlier rounds of the place, or else of the kind, if this round's references are all zero."""
        text = "Every reference value of this round is zero, so its feed was down;"
        references = self._references(past)
        place = references.before(reference.place, day)
        same = [r for r in place if r.kind == reference.kind]
        if same:
            p = float(self.learnt(past, day).pooled.chances(_cases(same[-1:], [""]))[0])
            return p, f"{text} an earlier round had {same[-1].average:g} {reference.kind.lower()} a month here."
        kinds = past.cached((self.name, "kinds", day), lambda: references.chances_by_kind(day))
        elsewhere = kinds.get(reference.kind, float(np.mean(list(kinds.values()))) if kinds else 0.2)
        around = sum(chance(r) for r in place)
        p = (around + NEIGHBOURS * elsewhere) / (len(place) + NEIGHBOURS)
        return p, f"{text} estimated from other events in {reference.place} and {reference.kind.lower()} elsewhere."


def _cases(references: Sequence[ReferenceValue], day: Sequence[str]) -> PooledCases:
    average = np.array([r.average for r in references], np.float64)
    chances = np.array([chance(r) for r in references], np.float64)
    columns = np.column_stack([average == 0, average > 0]).astype(np.float64)
    return PooledCases(start=logit(chances), columns=columns, labels={"day": np.array(day, str)})
