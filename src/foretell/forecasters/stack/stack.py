"""`stack`: the crowd's forecast if there is one, else the best estimate from the past, with its reasons in words."""

from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import ClassVar

import numpy as np

from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.base_rates.baselines import CrowdForecaster
from foretell.forecasters.base_rates.past import Past, PastTarget
from foretell.forecasters.base_rates.rates import Rates, effective_weights
from foretell.forecasters.combine.coherence import falling, rising
from foretell.forecasters.combine.rows import Days, sigmoid
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.forecasters.series.forecasters import Auto, read_series_question
from foretell.forecasters.series.history import history
from foretell.forecasters.stack.conflict import ConflictModel
from foretell.forecasters.stack.economy import EconomyModel, ShareModel
from foretell.forecasters.stack.source_model import Estimate, OtherSeries, SourceModel, horizons
from foretell.forecasters.stack.temperature import TemperatureModel
from foretell.forecasters.stack.wikipedia import TEMPLATES, RankModel, RareChanges
from foretell.metrics.arrays import Floats
from foretell.questions.as_of import instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import LastValue, Question, SeriesRef

# Whom to believe, a model or the plain base rate: by how both did on earlier rounds, each as it stood then.

PRIOR = 1.0
"""Prior log-odds of the model against the base rate, before any results: 73 %."""
RATE = 2.0
"""A Brier gain d near p = 1/2 is a log-likelihood gain of about 2 d."""
CORRELATION = 0.1
"""Correlation between gains of answers known on the same day: m of them are worth m / (1 + (m − 1)·ρ)."""
ROUNDS = 26
"""How many past rounds are used."""


def trust_in_model(gain: Floats, known_on: Days) -> float:
    """Weight of the model: σ(prior + rate · gain in Brier score), with days that have many answers discounted.

    >>> days = np.arange("2025-03-02", "2025-04-11", dtype="M8[D]")
    >>> round(trust_in_model(np.zeros(0), days[:0]), 2), round(trust_in_model(np.full(40, 0.05), days), 2)
    (0.73, 0.99)
    """
    if not len(gain):
        return float(sigmoid(PRIOR))
    return float(sigmoid(PRIOR + RATE * float(effective_weights(known_on, CORRELATION) @ gain)))


def trust_in_family(family: SourceModel, past: Past, rates: Rates, day: date) -> float:
    """Weight of a model against the base rate on a day, from answers known before it."""
    rounds = past.cached((family.name, "rounds"), lambda: _rounds(family, past))
    # A past is copied for every question, so that only other rates can be told apart by who they are.
    key = (family.name, "gains", None if rates is past else id(rates))
    parts = [NO_GAINS]
    for due in sorted(due for due in rounds if due < day)[-ROUNDS:]:
        parts.append(past.cached((*key, due), partial(_gains, family, past, rates, due)))
    gain, known_on = (np.concatenate(column) for column in zip(*parts, strict=True))
    known = known_on < np.datetime64(day, "D")
    return trust_in_model(gain[known], known_on[known])


NO_GAINS = (np.zeros(0), np.zeros(0, "M8[D]"))


def _rounds(family: SourceModel, past: Past) -> dict[date, list[PastTarget]]:
    """Answers to questions that the family covers, grouped by the round in which they were asked."""
    rounds: dict[date, list[PastTarget]] = {}
    for lesson in past.resolved:
        if family.covers(lesson.question):
            rounds.setdefault(lesson.question.due.date(), []).append(lesson)
    return rounds


def _gains(family: SourceModel, past: Past, rates: Rates, due: date) -> tuple[Floats, Days]:
    """Brier gain over the base rate of the family as it stood on the day of a round, and when each became known."""
    p: dict[tuple[str, str], float] = {}
    rows: list[tuple[float, date]] = []
    for lesson in past.cached((family.name, "rounds"), lambda: _rounds(family, past))[due]:
        question, key = lesson.question, (lesson.question.id, lesson.target.id)
        if key not in p:
            estimate = family.estimate(question, past, due)
            p |= {(question.id, t.id): float(x) for t, x in zip(question.targets, estimate.p, strict=True)}
        simple = rates.rate(question, lesson.target, question.as_of)
        if simple is not None:
            rows.append(((simple - lesson.outcome) ** 2 - (p[key] - lesson.outcome) ** 2, lesson.known_on))
    return np.array([gain for gain, _ in rows], np.float64), np.array([known for _, known in rows], "M8[D]")


FAMILIES: tuple[SourceModel, ...] = (
    TemperatureModel(),
    EconomyModel(),
    ShareModel(),
    ConflictModel(),
    RankModel(),
    RareChanges(),
)
FRESH_DAYS, FRESH_STEPS = 45, 3
"""A series counts as fresh until its last value is older than this many days or this many of its own steps."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Combines market prices, series, seasonal normals, event counts and past base rates, without a language model.

    Each question sees only outcomes known before its due date, and series values dated on or before it. With no past
    given, the models forecast from their priors.
    """

    not_options: ClassVar[tuple[str, ...]] = ("rates",)

    rates: Rates | None = None
    """Base rates to use instead of those of the past, for questions no model covers and for markets without a price."""
    coherent: bool = True
    """Make the dates of lasting changes consistent: the probability by March never exceeds that by June."""
    name: str = "stack"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Forecast one probability per target; the rationale names the estimate used and why."""
        if question.kind == "market":
            return await self._market(question, context)
        estimate = await self._dataset(question, context)
        p = {t.id: float(np.clip(x, 0.0, 1.0)) for t, x in zip(question.targets, estimate.p, strict=True)}
        return forecast_of(p, question, context, self.name, estimate.rationale)

    async def _market(self, question: Question, context: Context) -> Forecast:
        try:
            return await CrowdForecaster(name=self.name).forecast(question, context)
        except CannotForecast as reason:
            estimate = self._base_rate(question, context)
            if estimate is None:
                raise
            words = f"{reason}. {estimate.rationale}"
            p = {t.id: float(x) for t, x in zip(question.targets, estimate.p, strict=True)}
            return forecast_of(p, question, context, self.name, words)

    async def _dataset(self, question: Question, context: Context) -> Estimate:
        family = next((family for family in FAMILIES if family.covers(question)), None)
        record = await _record(question.series if family is None else family.record_of(question), question, context)
        trust = 1.0 if family is None else family.trust_in_auto(question)
        by_series = await _by_series(question, context, record) if trust else None
        if by_series is not None and (family is None or trust == 1.0):
            return by_series
        if family is None:
            estimate = self._base_rate(question, context)
            if estimate is None:
                raise CannotForecast(f"nothing is known of questions like {question.id} at {context.as_of}")
            return estimate
        found = {ref.id: await _record(ref, question, context) for ref in family.others_of(question)}
        others = {id: series for id, series in found.items() if series is not None}
        estimate = self._by_family(family, _with_newest(question, record), context, record, others)
        return estimate if by_series is None else _blend(by_series, estimate, trust)

    def _by_family(
        self, family: SourceModel, question: Question, context: Context, record: Series | None, others: OtherSeries
    ) -> Estimate:
        day = min(context.as_of.at.date(), question.due.date())
        past = context.past.whole
        own = family.estimate(question, past, day, record, others)
        simple = self._base_rate(question, context)
        own = replace(own, rationale=own.rationale + _age(question))
        if simple is not None and not own.from_record:
            weight = trust_in_family(family, past, self.rates or past, day)
            words = (
                f"{own.rationale} This model ({family.name}) gets {weight:.0%} of the weight, for its results on "
                f"earlier rounds; the rest goes to the base rate, {simple.p[0]:.0%} at the first date."
            )
            own = Estimate(p=weight * own.p + (1 - weight) * simple.p, rationale=words)
        return Estimate(p=_fitting(question, own.p), rationale=own.rationale) if self.coherent else own

    def _base_rate(self, question: Question, context: Context) -> Estimate | None:
        rates = self.rates or context.past
        found = [rates.rate(question, target, context.as_of) for target in question.targets]
        if any(rate is None for rate in found):
            return None
        p = np.asarray(found, np.float64)
        of = " ".join(filter(None, [question.source, question.subtype]))
        return Estimate(p=p, rationale=f"Base rate of {of} among outcomes known by then: {p[0]:.0%}.")


def _age(question: Question) -> str:
    """Describe the value that the estimate starts from and how old it was."""
    last = question.last_value
    if last is None:
        return ""
    days = (question.due.date() - last.at.date()).days
    old = "of the due date itself" if days == 0 else f"{days} {'day' if days == 1 else 'days'} old on the due date"
    return f" The newest value at hand, {last.value:g} of {last.at.date()}, was {old}."


async def _record(ref: SeriesRef | None, question: Question, context: Context) -> Series | None:
    """Return a series as far as known, however old; None if there is none."""
    if ref is None:
        return None
    try:
        return await context.series_of(replace(question, series=ref))
    except CannotForecast:
        return None


def _with_newest(question: Question, record: Series | None) -> Question:
    """Return the question with the newest value of its own series, if that is later than the one it came with."""
    last, ref = question.last_value, question.series
    if record is None or ref is None or record.id != ref.id or not fresh(record, question.due.date()):
        return question
    day: date = record.days[-1].astype("M8[D]").item()
    if last is not None and last.at.date() >= day:
        return question
    return replace(question, last_value=LastValue(value=float(record.values[-1]), at=instant(day)))


async def _by_series(question: Question, context: Context, record: Series | None) -> Estimate | None:
    """Return the estimate of `auto`, if the series is fresh enough to be the one asked about."""
    if record is None or question.series is None or not fresh(record, question.due.date()):
        return None
    own = Context(as_of=context.as_of, series=SeriesInMemory(series={question.series.id: record}))
    try:
        said = await Auto().forecast(question, own)
        asked = await read_series_question(question, own)
    except CannotForecast:
        return None
    return Estimate(
        p=np.asarray([said.p[t.id] for t in question.targets]),
        rationale=f"From the series: {said.rationale}",
        settled=history(asked).steps(asked) == 0,
    )


def fresh(record: Series, due: date) -> bool:
    """Whether a series is still updated on the due day: its last value is no older than its own pace explains.

    >>> daily = Series(id="x", days=np.arange("1990-01-01", "1992-01-01", dtype="M8[D]"), values=np.zeros(730))
    >>> fresh(daily, date(1992, 1, 20)), fresh(daily, date(2025, 10, 26))
    (True, False)
    """
    days = record.days.astype("M8[D]")
    age = int((np.datetime64(due, "D") - days[-1]).astype(np.int64))
    pace = float(np.median(np.diff(days[-60:]).astype(np.int64))) if len(days) > 1 else 1.0
    return age <= max(FRESH_DAYS, FRESH_STEPS * pace)


def _blend(first: Estimate, second: Estimate, weight: float) -> Estimate:
    """Blend two estimates, except for dates by which no new value of the series is due: there only the first counts."""
    share = np.full(len(first.p), weight) if first.settled is None else np.where(first.settled, 1.0, weight)
    words = f"{first.rationale} Blended {weight:.0%} to {1 - weight:.0%} with: {second.rationale}"
    return Estimate(p=share * first.p + (1 - share) * second.p, rationale=words)


def _fitting(question: Question, p: Floats) -> Floats:
    """The nearest consistent probabilities: what has changed stays changed, and what still stands may fall later."""
    says = TEMPLATES.get((question.source, question.subtype))
    if says is None or len(p) < 2:
        return p
    return rising(p, level=horizons(question)) if says == "changed" else falling(p, level=horizons(question))
