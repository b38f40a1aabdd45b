"""`model_free`: the market price if there is one, else an estimate from past data, with a rationale."""

from dataclasses import replace
from datetime import date
from functools import partial
from typing import ClassVar

import numpy as np

from foretell.data.http import SourceError
from foretell.data.series.series import Series, SeriesInMemory, SeriesUnread
from foretell.data.untrusted import for_log
from foretell.forecasters.base_rates.baselines import MarketPriceForecaster, price_read
from foretell.forecasters.base_rates.past import Past, PastTarget
from foretell.forecasters.base_rates.rates import Rates, effective_weights
from foretell.forecasters.combine.coherence import falling, rising
from foretell.forecasters.combine.rows import Days
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.forecasters.model_free.conflict import ConflictModel
from foretell.forecasters.model_free.economy import EconomyModel, ShareModel
from foretell.forecasters.model_free.source_model import Estimate, OtherSeries, SourceModel, horizons
from foretell.forecasters.model_free.temperature import TemperatureModel
from foretell.forecasters.model_free.wikipedia import TEMPLATES, RankModel, RareChanges
from foretell.forecasters.series.forecasters import Auto, read_series_question, value_published, value_read
from foretell.forecasters.series.history import history
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.transforms import sigmoid
from foretell.number_text import percent
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import LastValue, Question, SeriesRef
from foretell.questions.value_age import ValueAge

# The weights of a model and the base rate, from the scores of both on earlier rounds.

PRIOR = 1.0
"""Prior log-odds of the model against the base rate, before any results: 73 %."""
RATE = 2.0
"""A Brier gain d near p = 1/2 is a log-likelihood gain of about 2 d."""
CORRELATION = 0.1
"""Correlation between gains of answers known on the same day: m of them count as m / (1 + (m − 1)·ρ)."""
ROUNDS = 26
"""How many past rounds are used."""


def trust_in_model(gain: Floats, known_on: Days) -> float:
    """Return the weight of the model: σ(prior + rate · gain in Brier score), with correlated answers discounted.

    >>> days = np.arange("2025-03-02", "2025-04-11", dtype="M8[D]")
    >>> round(trust_in_model(np.zeros(0), days[:0]), 2), round(trust_in_model(np.full(40, 0.05), days), 2)
    (0.73, 0.99)
    """
    if not len(gain):
        return float(sigmoid(PRIOR))
    return float(sigmoid(PRIOR + RATE * float(effective_weights(known_on, CORRELATION) @ gain)))


def trust_in_family(family: SourceModel, past: Past, rates: Rates, day: date) -> float:
    """Return the weight of a model against the base rate on a day, from answers known before it."""
    rounds = past.cached((family.name, "rounds"), lambda: _rounds(family, past))
    # The past is copied for every question, so only other rates are identified by `id`.
    key = (family.name, "gains", None if rates is past else id(rates))
    parts = [NO_GAINS]
    for due in sorted(due for due in rounds if due < day)[-ROUNDS:]:
        parts.append(past.cached((*key, due), partial(_gains, family, past, rates, due)))
    gain, known_on = (np.concatenate(column) for column in zip(*parts, strict=True))
    known = known_on < np.datetime64(day, "D")
    return trust_in_model(gain[known], known_on[known])


NO_GAINS = (np.zeros(0), np.zeros(0, "M8[D]"))


def _rounds(family: SourceModel, past: Past) -> dict[date, list[PastTarget]]:
    """Return the answers to questions that the family covers, by round."""
    rounds: dict[date, list[PastTarget]] = {}
    for answer in past.resolved:
        if family.covers(answer.question):
            rounds.setdefault(answer.question.due.date(), []).append(answer)
    return rounds


def _gains(family: SourceModel, past: Past, rates: Rates, due: date) -> tuple[Floats, Days]:
    """Return the Brier gain over the base rate of the family as fitted before a round, and when each became known."""
    p: dict[tuple[str, str], float] = {}
    rows: list[tuple[float, date]] = []
    for answer in past.cached((family.name, "rounds"), lambda: _rounds(family, past))[due]:
        question, key = answer.question, (answer.question.id, answer.target.id)
        if key not in p:
            estimate = family.estimate(question, past, due)
            p |= {(question.id, t.id): float(x) for t, x in zip(question.targets, estimate.p, strict=True)}
        base_rate = rates.rate(question, answer.target, question.as_of)
        if base_rate is not None:
            rows.append(((base_rate - answer.outcome) ** 2 - (p[key] - answer.outcome) ** 2, answer.known_on))
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


@frozen
class ModelFree:
    """Combines market prices, series, seasonal normals, event counts and past base rates, without a language model.

    Each question uses only outcomes known before its due date, and series values dated on or before it. Without a past,
    the models forecast from their priors.
    """

    not_options: ClassVar[tuple[str, ...]] = ("rates",)

    rates: Rates | None = None
    """Base rates to use instead of those of the past, for questions no model covers and for markets without a price."""
    coherent: bool = True
    """Make the dates of lasting changes consistent: the probability by March never exceeds that by June."""
    name: str = "model_free"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Forecast one probability per target; the rationale names the estimate used and why."""
        if question.kind == "market":
            return await self._market(question, context)
        family = family_of(question)
        lookup = await _look_up(question.series if family is None else family.record_of(question), question, context)
        value = lookup.value(question)
        estimate = await self._dataset(question, context, family, lookup.record, value)
        p = {t.id: float(np.clip(x, 0.0, 1.0)) for t, x in zip(question.targets, estimate.p, strict=True)}
        return forecast_of(p, question, context, self.name, estimate.rationale, value=value)

    @staticmethod
    def series_read(question: Question, as_of: AsOf) -> tuple[SeriesRef, ...]:
        """Return the series and prices that a forecast of the question reads, so that they can be fetched before."""
        if question.kind == "market":
            refs = [price_read(target, question, as_of) for target in question.targets]
        else:
            family = family_of(question)
            refs = [question.series] if family is None else [family.record_of(question), *family.others_of(question)]
        return tuple(ref for ref in refs if ref is not None)

    async def _market(self, question: Question, context: Context) -> Forecast:
        try:
            return await MarketPriceForecaster(name=self.name).forecast(question, context)
        except CannotForecast as reason:
            estimate = self._base_rate(question, context)
            if estimate is None:
                raise
            words = f"{reason}. {estimate.rationale}"
            p = {t.id: float(x) for t, x in zip(question.targets, estimate.p, strict=True)}
            return forecast_of(p, question, context, self.name, words)

    async def _dataset(
        self,
        question: Question,
        context: Context,
        family: SourceModel | None,
        record: Series | None,
        value: ValueAge | None,
    ) -> Estimate:
        trust = 1.0 if family is None else family.trust_in_auto(question)
        by_series = await _by_series(question, context, record) if trust else None
        if by_series is not None and (family is None or trust == 1.0):
            return by_series
        if family is None:
            estimate = self._base_rate(question, context)
            if estimate is None:
                raise CannotForecast(f"there is no data on questions like {question.id} at {context.as_of}")
            return estimate
        records = {ref.id: (await _look_up(ref, question, context)).record for ref in family.others_of(question)}
        others = {id: series for id, series in records.items() if series is not None}
        estimate = self._by_family(family, _with_newest(question, record), context, record, others)
        if value is not None:
            estimate = replace(estimate, rationale=f"{estimate.rationale} It stands on the {value.in_words}.")
        return estimate if by_series is None else _blend(by_series, estimate, trust)

    def _by_family(
        self, family: SourceModel, question: Question, context: Context, record: Series | None, others: OtherSeries
    ) -> Estimate:
        day = min(context.as_of.at.date(), question.due.date())
        past = context.past.whole
        own = family.estimate(question, past, day, record, others)
        base_rate = self._base_rate(question, context)
        if base_rate is not None and not own.from_record:
            weight = trust_in_family(family, past, self.rates or past, day)
            words = (
                f"{own.rationale} This model ({family.name}) has a weight of {percent(weight)}, from its scores on "
                f"earlier rounds; the rest is the base rate, {percent(base_rate.p[0])} at the first date."
            )
            own = Estimate(p=weight * own.p + (1 - weight) * base_rate.p, rationale=words)
        return Estimate(p=_consistent(question, own.p), rationale=own.rationale) if self.coherent else own

    def _base_rate(self, question: Question, context: Context) -> Estimate | None:
        rates = self.rates or context.past
        values = [rates.rate(question, target, context.as_of) for target in question.targets]
        if any(rate is None for rate in values):
            return None
        p = np.asarray(values, np.float64)
        kind = " ".join(filter(None, [question.source, question.subtype]))
        return Estimate(p=p, rationale=f"Base rate of {kind} among outcomes known by then: {percent(p[0])}.")


def family_of(question: Question) -> SourceModel | None:
    """Return the model for questions like this one; None if there is none."""
    return next((family for family in FAMILIES if family.covers(question)), None)


@frozen
class RecordLookup:
    """A series as far as known, or why its source could not be read."""

    ref: SeriesRef | None
    record: Series | None = None
    reason: str = ""
    """Empty if the source was read, even if it does not have the series."""

    def value(self, question: Question) -> ValueAge | None:
        """Return the newest value for the question: that of the series, or the one published with the question."""
        due, last = question.due.date(), question.last_value
        if self.ref is None:
            return None
        if self.record is not None and fresh(self.record, due):
            newest = value_read(self.ref, self.record, due)
            if self.ref != question.series or last is None or newest.day >= last.at.date():
                return newest
        return None if last is None else value_published(self.ref, last, due, self.reason)


async def _look_up(ref: SeriesRef | None, question: Question, context: Context) -> RecordLookup:
    """Look up a series as far as known."""
    if ref is None:
        return RecordLookup(ref=None)
    try:
        return RecordLookup(ref=ref, record=await context.series_of(replace(question, series=ref)))
    except CannotForecast as problem:
        unread = isinstance(problem.__cause__, SourceError | SeriesUnread)
        return RecordLookup(ref=ref, reason=for_log(str(problem)) if unread else "")


def _with_newest(question: Question, record: Series | None) -> Question:
    """Return the question with the newest value of its own series, if that is later than its last value."""
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
        forecast = await Auto().forecast(question, own)
        query = await read_series_question(question, own)
    except CannotForecast:
        return None
    return Estimate(
        p=np.asarray([forecast.p[t.id] for t in question.targets]),
        rationale=f"From the series: {forecast.rationale}",
        settled=history(query).steps(query) == 0,
    )


def fresh(record: Series, due: date) -> bool:
    """Whether a series is still updated on the due day, judged by the age of its last value and its usual interval.

    >>> daily = Series(id="x", days=np.arange("1990-01-01", "1992-01-01", dtype="M8[D]"), values=np.zeros(730))
    >>> fresh(daily, date(1992, 1, 20)), fresh(daily, date(2025, 10, 26))
    (True, False)
    """
    age = int((np.datetime64(due, "D") - record.days[-1].astype("M8[D]")).astype(np.int64))
    return age <= max(FRESH_DAYS, FRESH_STEPS * record.interval)


def _blend(first: Estimate, second: Estimate, weight: float) -> Estimate:
    """Blend two estimates, except for dates by which no new value of the series is due: there only the first counts."""
    share = np.full(len(first.p), weight) if first.settled is None else np.where(first.settled, 1.0, weight)
    words = f"{first.rationale} Blended {percent(weight)} to {percent(1 - weight)} with: {second.rationale}"
    return Estimate(p=share * first.p + (1 - share) * second.p, rationale=words)


def _consistent(question: Question, p: Floats) -> Floats:
    """Return the nearest consistent probabilities: a change is permanent, so it is likelier by a later date."""
    yes_means = TEMPLATES.get((question.source, question.subtype))
    if yes_means is None or len(p) < 2:
        return p
    return rising(p, level=horizons(question)) if yes_means == "changed" else falling(p, level=horizons(question))
