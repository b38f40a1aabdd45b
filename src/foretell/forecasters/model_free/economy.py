"""Economic series and share prices if the series itself is not available, by the kind of series.

Administered rates stay constant for months, amounts and indices grow, market rates and spreads do neither. How often
series of a kind, and this series, rose before is learnt by partial pooling. For rates that the central bank moves, the
yield curve is used.
"""

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.rows import Strings
from foretell.forecasters.model_free.source_model import (
    NO_OTHERS,
    NONE,
    Case,
    EffectPriors,
    Estimate,
    OtherSeries,
    PooledCases,
    PooledModel,
    ReadsOwnSeries,
    horizons,
    rises,
)
from foretell.forecasters.series.forecasters import PRICES
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.probability_functions import normal_below
from foretell.metrics.transforms import logit, normal_cdf, sigmoid
from foretell.number_text import percent, signed
from foretell.questions.question import Question, SeriesRef

# Other series that are informative about an interest rate: the yield curve, and the parents of averages.
#
# A one-year rate below the overnight rate expects cuts, one above it expects rises, and the short end of the curve
# follows (Campbell & Shiller 1991). An average moves predictably: the days that will leave its window are known.

ONE_YEAR, OVERNIGHT = "DGS1", "EFFR"
OLDEST = 30
"""Age, in days, beyond which a rate is not used."""
NEUTRAL, SCALE, STRENGTH = 0.03, 0.3, 0.8
FULL_DAYS, SLOWNESS = 90.0, 0.35
"""Log-odds of a rise of money-market rates: STRENGTH·tanh((outlook − NEUTRAL)/SCALE), in full after a quarter, before
that reduced by a power of time. The strength is half of what fits 2010 to 2024, because policy turned only a few times
then, and the full strength failed when the cuts of 2025 ended (benchmarks/reports/model_free.md)."""
RISES, PER_POINT, FEWEST, MOST = 0.4, 5.0, 0.02, 4.0
"""Rises a year of administered rates at an outlook of zero, their growth per point of outlook, and their bounds."""
RISES_UNSEEN = 0.1
"""Rises a year of administered rates if the outlook is unknown."""


def outlook(others: Mapping[str, Series], day: date) -> float | None:
    """The one-year rate minus the overnight rate, in percentage points; None if either is unavailable."""
    one_year, overnight = (_newest(others.get(id), day) for id in (ONE_YEAR, OVERNIGHT))
    return None if one_year is None or overnight is None else one_year - overnight


def _newest(series: Series | None, day: date) -> float | None:
    if series is None:
        return None
    days, today = series.days.astype("M8[D]"), np.datetime64(day, "D")
    place = int(np.searchsorted(days, today, side="right")) - 1
    fresh = place >= 0 and int((today - days[place]).astype(np.int64)) <= OLDEST
    return float(series.values[place]) if fresh else None


def money_market(outlook: float, horizon: Floats) -> Floats:
    """Return the effect of the outlook on the log-odds that a money-market rate rises.

    >>> money_market(-0.4, np.array([7.0, 90.0])).round(1).tolist()
    [-0.3, -0.7]
    """
    return STRENGTH * np.tanh((outlook - NEUTRAL) / SCALE) * np.minimum(1.0, (horizon / FULL_DAYS) ** SLOWNESS)


def administered(outlook: float | None, horizon: Floats) -> Floats:
    """P(an administered rate rises within the horizon), at the yearly rate that the outlook implies."""
    rate = RISES_UNSEEN if outlook is None else float(np.clip(RISES * np.exp(PER_POINT * outlook), FEWEST, MOST))
    return 1 - np.exp(-rate * horizon / 365)


@frozen
class AverageOf:
    """An average over the last days of another series."""

    parent: str
    window: int
    level: int
    """Number of days of the parent over which its current level is averaged; more if the parent is noisy."""
    lag: int = 0
    """Days between the end of the window and the publication of the value."""

    def rises(self, parent: Series, due: date, horizon: Floats) -> Floats | None:
        """Return the log-odds of a rise if the parent stays at its level, given past errors; None with little data."""
        day = parent.days.astype("M8[D]").astype(np.int64)
        today = int(np.datetime64(due, "D").astype(np.int64))
        first = max(int(day[0]), today - TRIED)
        place = np.searchsorted(day, np.arange(first, today + 1), side="right") - 1
        value = parent.values[place]
        if today - int(day[-1]) > OLDEST or len(value) < LEAST:
            return None
        total = np.concatenate([[0.0], np.cumsum(value)])
        origin = np.arange(self.window + self.lag + self.level, len(value))
        level = (total[origin + 1] - total[origin + 1 - self.level]) / self.level
        chances = np.zeros(len(horizon))
        for at, ahead in enumerate(horizon.astype(int).tolist()):
            move = self._mean(total, origin, level, ahead) - self._mean(total, origin, level, 0)
            seen = origin + ahead < len(value)
            actual = self._actual(total, origin[seen] + ahead) - self._actual(total, origin[seen])
            miss = actual - move[seen]
            if len(miss) < LEAST // 4:
                return None
            chances[at] = normal_below(float(move[-1] / (DOUBT * np.sqrt(np.mean(miss**2)) + 1e-12)))
        return logit(chances, EDGE)

    def _actual(self, total: Floats, at: Ints) -> Floats:
        end = at + 1 - self.lag
        return (total[end] - total[end - self.window]) / self.window

    def _mean(self, total: Floats, origin: Ints, level: Floats, ahead: int) -> Floats:
        """The average `ahead` days after each origin, assuming the parent stays at `level` after the origin."""
        new = min(max(ahead - self.lag, 0), self.window)
        old_end = np.minimum(origin + 1, origin + 1 + ahead - self.lag)
        known = total[old_end] - total[old_end - (self.window - new)]
        return (known + new * level) / self.window


TRIED, LEAST, DOUBT, EDGE = 3 * 365, 400, 1.2, 0.03
"""Days of the parent tested; minimum number of days; factor on the tested errors; limit on confidence."""
AVERAGES: Mapping[str, AverageOf] = {
    "SOFR30DAYAVG": AverageOf(parent="SOFR", window=30, level=7),
    "SOFR90DAYAVG": AverageOf(parent="SOFR", window=90, level=7),
    "SOFR180DAYAVG": AverageOf(parent="SOFR", window=180, level=7),
    "IC4WSA": AverageOf(parent="ICSA", window=28, level=28),
    "CC4WSA": AverageOf(parent="CCSA", window=28, level=28),
    "WGS1YR": AverageOf(parent="DGS1", window=7, level=1),
    "WGS10YR": AverageOf(parent="DGS10", window=7, level=1),
    "MORTGAGE15US": AverageOf(parent="DGS10", window=7, level=1, lag=3),
    "MORTGAGE30US": AverageOf(parent="DGS10", window=7, level=1, lag=3),
}
"""FRED series that are averages of others; the weekly mortgage survey follows the week's bond yield."""


# Kinds of series, by the wording of the question.

ACCRUING, ADMINISTERED, GROWING, INDEX, FLOW, MARKET = "accruing", "administered", "growing", "index", "flow", "market"
MONEY = "money-market"
WORDINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (ACCRUING, ("financing rate) index",)),
    (FLOW, ("aggregated daily value", "job postings", "cash assets")),
    (MARKET, ("volatility", "exchange rate", "dollar index", "spread", "compared to the 10-year")),
    (
        ADMINISTERED,
        (
            *("set by the federal reserve", "federal funds rate", "prime loan", "discount rate", "award rate"),
            *("interest rate on reserve", "deposit facility", "overnight bank funding", "treasury obligations"),
        ),
    ),
    (
        MONEY,
        (
            *("secured overnight financing", "treasury bill", "commercial paper", "certificates of deposit"),
            *("savings accounts", "1-month constant", "3-month constant", "6-month constant", "1-year constant"),
        ),
    ),
    (INDEX, ("total return", "index value at market close", "dow jones", "nasdaq", "s&p 500", "stock average")),
    (MARKET, ("yield", "interest rate", "mortgage index", "mortgage average", "bill rate", "premium", "overnight")),
    (MARKET, ("inflation",)),
    (
        GROWING,
        (
            *("commercial banks", "commercial us banks", "commercial real estate", "dollars in circulation"),
            *("money supply", "money market funds"),
        ),
    ),
    (FLOW, ("amount", "value of", "assets", "money", "deposits", "loans", "balances", "remittance", "repurchase")),
)
"""The first wording in the question determines the kind; other series count as market series."""
DRIFT = {GROWING: 1.5, INDEX: 0.75, FLOW: 0.0, MARKET: 0.0}
"""Yearly drift per unit of yearly spread. Credit and money nearly always grow, and broad indices mostly do: since 1950
the S&P 500 rose in 56 % of weeks, 61 % of months, 67 % of quarters and 73 % of years."""
STILL, WEEK = 0.06, 7.0
"""Probability that a market quote is unchanged after a week, which is not a rise; it decreases as 1/√horizon."""
CERTAIN, NIL = 4.0, 3.0
"""Prior log-odds that an index that accrues interest rises, and that an amount of zero stays zero."""
WANDERING = (MARKET, INDEX, MONEY)
"""Kinds whose past rises hardly predict the next."""
AUTO = {ADMINISTERED: 0.0, MONEY: 0.3}
"""Weight of `auto` for the kinds of series that the central bank moves."""


def kind_of(text: str) -> str:
    """Classify how a series moves, by its description."""
    lowered = text.lower()
    return next((kind for kind, words in WORDINGS if any(word in lowered for word in words)), MARKET)


def drifting(horizon: Floats, drift: float | Floats = PRICES.drift) -> Floats:
    """P(higher) for a random walk that gains `drift` times its yearly spread a year: Φ(d·√years).

    >>> drifting(np.array([7.0, 365.0])).round(2).tolist()
    [0.52, 0.62]
    """
    return normal_cdf(drift * np.sqrt(horizon / 365.0))


@frozen
class ShareModel(ReadsOwnSeries):
    """Share prices: a random walk with drift; past rises are not predictive (benchmarks/reports/series.md)."""

    name: str = "drifting walk"

    def trust_in_auto(self, question: Question) -> float:
        """Return full trust: `auto` replaces this model if the series is available."""
        return 1.0

    def covers(self, question: Question) -> bool:
        """Whether the question asks if a share price will rise."""
        return question.source == "yfinance" and rises(question)

    def estimate(
        self, question: Question, past: Past, day: date, record: Series | None = None, others: OtherSeries = NO_OTHERS
    ) -> Estimate:
        """Return probabilities a little above one half, more so at longer horizons."""
        p = drifting(horizons(question))
        words = f"A price without its series: a random walk with upward drift, {percent(p[0])} to {percent(p[-1])}."
        return Estimate(p=p, rationale=words)


class EconomyModel(PooledModel):
    """FRED series, by kind and by their own past rises."""

    name = "kind of series"
    beliefs = EffectPriors(
        group_sd={"day": 0.4, "round": 0.4, "kind": 0.5, "market": 0.1, "steady": 0.7, "wandering": 0.2},
        shared=frozenset({"day", "round"}),
    )
    """Past rises of one series are informative about steady kinds and hardly about market series. All series of a kind
    are correlated between a round and a resolution day, so the effects of both are shared."""
    weight = 0.6
    """Less than one, because the dates of one question overlap."""

    def trust_in_auto(self, question: Question) -> float:
        """Return a low weight if the central bank moves the series, because the yield curve predicts it better."""
        return AUTO.get(kind_of(question.text), 0.7)

    def others_of(self, question: Question) -> tuple[SeriesRef, ...]:
        """Both ends of the yield curve if the central bank moves the series, and the parent series of an average."""
        ref = question.series
        wanted = (ONE_YEAR, OVERNIGHT) if kind_of(question.text) in (MONEY, ADMINISTERED) else ()
        average = None if ref is None else AVERAGES.get(ref.id)
        wanted = wanted if average is None else (*wanted, average.parent)
        return tuple(SeriesRef(provider="fred", id=id) for id in wanted)

    def covers(self, question: Question) -> bool:
        """Whether the question asks if a FRED series will rise."""
        return question.source == "fred" and rises(question)

    def estimate(
        self, question: Question, past: Past, day: date, record: Series | None = None, others: OtherSeries = NO_OTHERS
    ) -> Estimate:
        """Estimate from the kind of series, then from this series' own past, then from other series."""
        learnt = self.learnt(past, day)
        p = learnt.pooled.chances(self.cases([(question, target, None) for target in question.targets]))
        kind = kind_of(question.text)
        shift, sentence = self._from_others(question, kind, others)
        p = sigmoid(logit(p) + shift)
        own = learnt.cases.labels["wandering" if kind in WANDERING else "steady"] == question.id
        share = f"{percent(learnt.outcome[own].mean())} of {int(own.sum())}" if own.any() else ""
        rose = f", {share} known dates of this one were rises" if share else ""
        article = "An" if kind[0] in "aeiou" else "A"
        words = f"{article} {kind} series{rose}: {percent(p[0])} at the first date, {percent(p[-1])} at the last."
        return Estimate(p=p, rationale=words + sentence)

    def _from_others(self, question: Question, kind: str, others: OtherSeries) -> tuple[Floats, str]:
        """Return the effect of other series on the log-odds of a rise, and a sentence that explains it."""
        horizon, due = horizons(question), question.due.date()
        shift, sentence = np.zeros(len(horizon)), ""
        view = outlook(others, due)
        if view is not None and kind == MONEY:
            shift = shift + money_market(view, horizon)
        if view is not None and kind == ADMINISTERED:
            shift = shift + logit(administered(view, horizon)) - logit(administered(None, horizon))
        if view is not None:
            sentence = f" The one-year rate is {signed(view, 2)} points from the overnight rate."
        average = None if question.series is None else AVERAGES.get(question.series.id)
        parent = None if average is None else others.get(average.parent)
        moved = None if average is None or parent is None else average.rises(parent, due, horizon)
        if average is not None and moved is not None:
            shift = shift + moved
            sentence += f" It is an average of {average.parent}, which implies {percent(sigmoid(moved)[0])} for a rise."
        return shift, sentence

    def cases(self, targets: Sequence[Case]) -> PooledCases:
        """Label targets by kind of series and, within it, by the series itself."""
        kind = np.array([kind_of(question.text) for question, _, _ in targets], str)
        id = np.array([question.id for question, _, _ in targets], str)
        day = np.array([f"{(target.resolves_at or question.due).date()} " for question, target, _ in targets], str)
        asking = np.array([f"{question.due.date()} " for question, _, _ in targets], str)
        horizon = np.array([question.horizon_days(target) or 0 for question, target, _ in targets], np.float64)
        nil = np.array([q.last_value is not None and q.last_value.value == 0 for q, _, _ in targets], np.bool_)
        wandering = np.isin(kind, WANDERING)
        labels = {
            "day": np.char.add(day, kind),
            "round": np.char.add(asking, kind),
            "kind": np.where(wandering, NONE, kind),
            "market": np.where(wandering, kind, NONE),
            "steady": np.where(wandering, NONE, id),
            "wandering": np.where(wandering, id, NONE),
        }
        start = _before_learning(kind, horizon, nil)
        return PooledCases(start=start, columns=np.zeros((len(targets), 0)), labels=labels)


def _before_learning(kind: Strings, horizon: Floats, nil: Bools) -> Floats:
    """Prior log-odds of a rise, by kind and horizon."""
    moves = drifting(horizon, np.array([DRIFT.get(str(name), 0.0) for name in kind]))
    moves = np.where(
        np.isin(kind, (MARKET, MONEY)), (1 - STILL * np.sqrt(WEEK / np.maximum(horizon, 1.0))) * moves, moves
    )
    moves = np.where(kind == ADMINISTERED, administered(None, horizon), moves)
    start = np.where(kind == ACCRUING, CERTAIN, logit(moves))
    return np.where(nil & np.isin(kind, (FLOW, GROWING)), -NIL, start).astype(np.float64)
