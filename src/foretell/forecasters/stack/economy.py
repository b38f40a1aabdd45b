"""Economic series and share prices where the series itself is not at hand: what kind of series it is says a lot.

Administered rates stand still for months, amounts and indices grow, market rates and spreads do neither. How often
series of a kind, and this one, had risen before is learnt by partial pooling.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.rows import logit
from foretell.forecasters.series.forecasters import PRICES
from foretell.forecasters.stack.source_model import (
    NONE,
    Case,
    EffectPriors,
    Estimate,
    PooledCases,
    PooledModel,
    horizons,
    rises,
)
from foretell.metrics.arrays import Floats
from foretell.questions.question import Question

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


def kind_of(text: str) -> str:
    """How a series moves, told by its description."""
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
    """Share prices: a walk with the long-run drift; past rises say nothing of the next (docs/studies/series.md)."""

    name: str = "drifting walk"

    def covers(self, question: Question) -> bool:
        """Questions about a rise of a price."""
        return question.source == "yfinance" and rises(question)

    def estimate(self, question: Question, past: Past, day: date, record: Series | None = None) -> Estimate:
        """A little above even, more so at longer horizons."""
        p = drifting(horizons(question))
        words = f"A price without its series: a walk with the usual upward drift, {p[0]:.0%} to {p[-1]:.0%}."
        return Estimate(p=p, rationale=words)


class EconomyModel(PooledModel):
    """FRED series by kind and by their own past rises."""

    name = "kind of series"
    beliefs = EffectPriors(
        group_sd={"day": 0.4, "kind": 0.4, "steady": 0.8, "wandering": 0.3}, shared=frozenset({"day"})
    )
    """Past rises of one series tell much of steady kinds and little of a market's."""
    weight = 0.6
    """The dates of one question overlap."""

    def covers(self, question: Question) -> bool:
        """Questions about a rise of a series of FRED."""
        return question.source == "fred" and rises(question)

    def estimate(self, question: Question, past: Past, day: date, record: Series | None = None) -> Estimate:
        """By kind, then by what this series did."""
        learnt = self.learnt(past, day)
        p = learnt.pooled.chances(self.cases([(question, target, None) for target in question.targets]))
        kind = kind_of(question.text)
        own = learnt.cases.labels["steady" if kind != MARKET else "wandering"] == question.id
        share = f"{learnt.outcome[own].mean():.0%} of {int(own.sum())}" if own.any() else ""
        rose = f", {share} known dates of this one were rises" if share else ""
        article = "An" if kind[0] in "aeiou" else "A"
        words = f"{article} {kind} series{rose}: {p[0]:.0%} at the first date, {p[-1]:.0%} at the last."
        return Estimate(p=p, rationale=words)

    def cases(self, asked: Sequence[Case]) -> PooledCases:
        """Series by kind, and by their own name within it."""
        kind = np.array([kind_of(question.text) for question, _, _ in asked], str)
        id = np.array([question.id for question, _, _ in asked], str)
        day = np.array([str((target.resolves_at or question.due).date()) for question, target, _ in asked], str)
        horizon = np.array([question.horizon_days(target) or 0 for question, target, _ in asked], np.float64)
        start = np.where(kind == MARKET, STILL, np.where(kind == ADMINISTERED, SELDOM, logit(drifting(horizon))))
        steady, wandering = np.where(kind == MARKET, NONE, id), np.where(kind == MARKET, id, NONE)
        labels = {"day": day, "kind": kind, "steady": steady, "wandering": wandering}
        return PooledCases(start=start.astype(np.float64), columns=np.zeros((len(asked), 0)), labels=labels)
