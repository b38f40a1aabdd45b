"""Economic series and share prices where the series itself is not at hand: what kind of series it is says a lot.

Administered rates stand still for months, amounts and indices grow, market rates and spreads do neither. How often
series of a kind, and this one, had risen before is learnt by partial pooling.
"""

from dataclasses import dataclass
from datetime import date

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.rows import logit
from foretell.forecasters.series.forecasters import PRICES
from foretell.forecasters.stack.source_model import (
    NONE,
    EffectPriors,
    Estimate,
    LearntEffects,
    PastCases,
    PooledCases,
    PooledSourceModel,
    horizons,
    rises,
)
from foretell.metrics.arrays import Floats
from foretell.questions.question import Question, Target

ADMINISTERED, GROWING, MARKET = "administered", "growing", "market"
WORDINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (GROWING, ("total return",)),
    (MARKET, ("volatility", "exchange rate", "dollar index", "spread", "compared to the 10-year")),
    (
        ADMINISTERED,
        (
            *("set by the federal reserve", "federal funds rate", "prime loan", "discount rate", "award rate"),
            *("interest rate on reserve", "deposit facility", "overnight bank funding", "treasury obligations"),
        ),
    ),
    (MARKET, ("yield", "interest rate", "mortgage index", "mortgage average", "bill rate", "premium", "overnight")),
    (MARKET, ("inflation",)),
    (GROWING, ("amount", "value of", "assets", "money", "deposits", "loans", "balances", "dollars in circulation")),
    (GROWING, ("index value at market close", "dow jones", "nasdaq", "s&p 500 index", "stock average")),
)
"""The first wording found in the question tells the kind; anything else moves as a market does."""
STILL = -0.2
"""Market series: a little less than even, for a value that has not moved has not risen."""
SELDOM = -2.0
"""Administered rates: rises only, and these only in some years."""
BELIEFS = EffectPriors(group_sd={"day": 0.4, "kind": 0.4, "steady": 0.8, "wandering": 0.3}, shared=frozenset({"day"}))
"""Past rises of one series tell much of steady kinds and little of a market's."""
WEIGHT = 0.6
"""The dates of one question overlap."""


def kind_of(text: str) -> str:
    """How a series moves, told by its description.

    >>> kind_of("Will the federal funds rate have increased"), kind_of("Will the 10-year yield have increased")
    ('administered', 'market')
    """
    lowered = text.lower()
    return next((kind for kind, words in WORDINGS if any(word in lowered for word in words)), MARKET)


def drifting(horizon: Floats) -> Floats:
    """P(higher) of a walk that gains PRICES.drift of its yearly spread a year: Φ(d·√years).

    >>> drifting(np.array([7.0, 365.0])).round(2).tolist()
    [0.52, 0.62]
    """
    from scipy.special import ndtr

    return ndtr(PRICES.drift * np.sqrt(horizon / 365.0))


@dataclass(frozen=True, kw_only=True)
class ShareModel:
    """Share prices: a walk with the long-run drift, whatever came before."""

    name: str = "drifting walk"

    def covers(self, question: Question) -> bool:
        """Questions about a rise of a price."""
        return question.source == "yfinance" and rises(question)

    def study(self, past: Past) -> "ShareModel":
        """There is nothing to learn: past rises of shares say nothing of the next ones (docs/studies/series.md)."""
        return self

    def as_of(self, day: date) -> "ShareModel":
        """The same on every day."""
        return self

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """A little above even, more so at longer horizons."""
        p = drifting(horizons(question))
        words = f"A price without its series: a walk with the usual upward drift, {p[0]:.0%} to {p[-1]:.0%}."
        return Estimate(p=p, rationale=words)


@dataclass(frozen=True, kw_only=True)
class EconomyModel:
    """FRED series by kind and by their own past rises."""

    name: str = "kind of series"

    def covers(self, question: Question) -> bool:
        """Questions about a rise of a series of FRED."""
        return question.source == "fred" and rises(question)

    def study(self, past: Past) -> PooledSourceModel:
        """All earlier outcomes of the source."""
        lessons = [x for x in past.resolved if self.covers(x.question)]
        taught = PastCases(
            cases=_cases([(x.question, x.target) for x in lessons]),
            outcome=np.array([x.outcome for x in lessons], np.float64),
            known_on=np.array([x.known_on for x in lessons], "M8[D]"),
            beliefs=BELIEFS,
            weight=WEIGHT,
        )
        return PooledSourceModel(taught=taught, make=lambda learnt: EconomyEstimator(learnt=learnt))


@dataclass(frozen=True, kw_only=True)
class EconomyEstimator:
    """How series of each kind rise, as known on a day."""

    learnt: LearntEffects

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """By kind, then by what this series did."""
        p = self.learnt.pooled.chances(_cases([(question, target) for target in question.targets]))
        kind = kind_of(question.text)
        own = self.learnt.cases.labels["steady" if kind != MARKET else "wandering"] == question.id
        rose = (
            f", {self.learnt.outcome[own].mean():.0%} of {int(own.sum())} known dates of this one were rises"
            if own.any()
            else ""
        )
        words = f"{_a(kind)} series{rose}: {p[0]:.0%} at the first date, {p[-1]:.0%} at the last."
        return Estimate(p=p, rationale=words)


def _a(kind: str) -> str:
    return f"An {kind}" if kind[0] in "aeiou" else f"A {kind}"


def _cases(asked: list[tuple[Question, Target]]) -> PooledCases:
    kind = np.array([kind_of(question.text) for question, _ in asked], str)
    id = np.array([question.id for question, _ in asked], str)
    day = np.array([str((target.resolves_at or question.due).date()) for question, target in asked], str)
    horizon = np.array([question.horizon_days(target) or 0 for question, target in asked], np.float64)
    start = np.where(kind == MARKET, STILL, np.where(kind == ADMINISTERED, SELDOM, logit(drifting(horizon))))
    labels = {
        "day": day,
        "kind": kind,
        "steady": np.where(kind == MARKET, NONE, id),
        "wandering": np.where(kind == MARKET, id, NONE),
    }
    return PooledCases(start=start.astype(np.float64), columns=np.zeros((len(asked), 0)), labels=labels)
