"""The default rule: trials blended with the market price or an estimate without a model, by weights from past rounds.

A fresh price is moved a little towards the trials, until past rounds show how far to trust them. On data-set questions
the trials start with 0.6 of the weight and an estimate without a model has the rest. Learnt weights are tested on later
past rounds against the starting weights, and used in proportion to how clearly they gained: not at all while the gain
is within its noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, replace

import numpy as np

from foretell.forecasters.base_rates.rates import HORIZON_EDGES, effective_weights
from foretell.forecasters.combine.crossfit import gain
from foretell.forecasters.combine.logistic import LogisticProblem, fit_logistic_ridge
from foretell.forecasters.combine.rows import Examples, Strings, TrialRows
from foretell.forecasters.combine.rules import Training
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.transforms import logit, sigmoid
from foretell.number_text import brief_percent, signed

# The weight of the trials where they differ from an anchor, which is the market price or an estimate without a model.
#
# On the log-odds scale, with z for the trials and a for the anchor: slope·a + w·near + v·far. `near` is the difference
# between trials and anchor within reach r, r·tanh((z − a)/r), and `far` is the rest. Trials that are far from a price
# are more often wrong than right, so the rest counts only if past rounds support it. The trust w starts at a given
# value, which is small against a price. Examples change it for all rows, and by source, subtype, lead time and
# liquidity. There are no offsets, because they would be base rates, which change over time.
#
# Later events mostly confirm an old price. So trials that are surer than an old price, on the same side of one half,
# count a little more with every day; other trials do not.

EDGE = 1e-3
"""Distance from 0 and 1 to which prices and trials are clipped, because the last ticks of a market say little."""
LIQUIDITY_EDGES = (1e3, 1e5)
REACH = 1.5
"""Distance from a price within which the trust applies, in log-odds; the rest has its own trust."""
FRESH_PRICE_DAYS, OLDEST = 2.0, 22.0
"""Days up to which a price counts as fresh, and days after which its age no longer matters."""
PER_DAY = 0.05
"""Increase of the trust in surer trials per day beyond the fresh ones: 0.4 for a price ten days old."""
TOSS_UP = 0.5
"""Log-odds of a price below which the effect of its age decreases, to zero at one half."""
SPREAD, SLOPE_SPREAD, LEVEL_SPREAD, AGE_SPREAD = 0.25, 0.2, 0.2, 0.005
"""Standard deviations of the normal priors of the common trusts, the slope, each level and a day of the price's age
around their starting values."""
CORRELATION = 0.1
"""Correlation of a source's outcomes that become known on one day: m of them count as m / (1 + (m−1)·correlation)."""


def _lead(rows: TrialRows) -> Strings:
    terms = np.searchsorted(HORIZON_EDGES, np.nan_to_num(rows.horizon, nan=np.inf)).astype(str)
    return _joined(rows.source, np.where(np.isnan(rows.horizon), "lead unknown", np.char.add("lead ", terms)))


def _liquidity(rows: TrialRows) -> Strings:
    bins = np.array(["thin", "fair", "deep"])[np.searchsorted(LIQUIDITY_EDGES, np.nan_to_num(rows.liquidity))]
    return _joined(rows.source, np.where(np.isnan(rows.liquidity), "liquidity unknown", bins))


def _joined(left: Strings, right: Strings) -> Strings:
    return np.char.add(np.char.add(left.astype(str), "/"), right.astype(str))


LEVELS: Mapping[str, Callable[[TrialRows], Strings]] = {
    "source": lambda rows: rows.source.astype(str),
    "subtype": lambda rows: _joined(rows.source, rows.subtype),
    "lead": _lead,
    "liquidity": _liquidity,
}


@frozen
class FittedTrust:
    """slope·a + w·near + v·far, where w is the common trust plus the effects of levels and the price's age.

    Without an anchor: slope·z.
    """

    trust: float
    slope: float = 1.0
    moves: Mapping[str, float] = field(default_factory=dict[str, float])
    """Effect of each level on the trust: "fred", "fred/all", "polymarket/lead 2"."""
    levels: tuple[str, ...] = ()
    reach: float | None = None
    """Distance from the anchor within which the trust applies in full, in log-odds; None means any distance."""
    beyond: float = 0.0
    """The trust in the rest of the difference."""
    per_day: float = 0.0
    """Effect of a day of the price's age on the trust in trials that are surer than the price."""
    training: Training = field(default_factory=Training)

    def trust_in(self, rows: TrialRows) -> Floats:
        """Return the trust in the trials of every row; an unseen source, subtype or lead has no effect."""
        w = self.trust + self.per_day * _confirmed(rows)
        for level in self.levels:
            names, code = np.unique(LEVELS[level](rows), return_inverse=True)
            w += np.array([self.moves.get(str(name), 0.0) for name in names], np.float64)[code]
        return w

    def probabilities(self, rows: TrialRows) -> Floats:
        """The blend; NaN if no trial answered."""
        z, a = _log_odds(rows)
        near, far = _split(z - a, self.reach)
        trust = self.trust_in(rows)
        # Without any trust the result is exactly the anchor.
        anchor_only = (trust == 0) & (self.slope == 1) & (self.beyond == 0) & ~np.isnan(rows.anchor) & ~np.isnan(z)
        return np.where(anchor_only, rows.anchor, sigmoid(self.slope * a + trust * near + self.beyond * far))

    def weight_of_trials(self, rows: TrialRows) -> Floats:
        """Return the weight of the trials in each answer, in log-odds: 0 is the anchor, 1 the trials."""
        z, a = _log_odds(rows)
        near, far = _split(z - a, self.reach)
        apart = np.where(z == a, 1.0, z - a)
        trust = self.trust_in(rows)
        return np.where(z == a, trust, (trust * near + self.beyond * far) / apart)


def _confirmed(rows: TrialRows) -> Floats:
    """Return effective days from price to asking if the trials are surer than the price and on its side; else 0."""
    z, a = _log_odds(rows)
    days = np.clip(np.nan_to_num(rows.price_age) - FRESH_PRICE_DAYS, 0.0, OLDEST - FRESH_PRICE_DAYS)
    return np.where((z - a) * np.sign(a) > 0, days * np.minimum(1.0, np.abs(a) / TOSS_UP), 0.0)


def _split(apart: Floats, reach: float | None) -> tuple[Floats, Floats]:
    """Split the difference between trials and anchor into the part within reach and the rest."""
    if reach is None:
        return apart, np.zeros_like(apart)
    near = reach * np.tanh(apart / reach)
    return near, apart - near


@frozen
class Trust:
    """Learns the trust by penalised log loss, from starting values."""

    start: float = 0.5
    """Trust before any example. One half weights the trials and the market as two unknown forecasters."""
    levels: tuple[str, ...] = ("source", "lead", "liquidity")
    reach: float | None = None
    beyond: float = 0.0
    per_day: float = 0.0
    spread: float = SPREAD
    """Standard deviation of the prior of the common trusts around their starting values."""
    cautious: bool = False
    """Whether trust is never negative, and less of it than at the start needs no clear gain."""
    name: str = "trust"

    def unfitted(self) -> FittedTrust:
        """Return the rule before any example."""
        return FittedTrust(
            trust=self.start, levels=self.levels, reach=self.reach, beyond=self.beyond, per_day=self.per_day
        )

    def fit(self, examples: Examples) -> FittedTrust:
        """Fit the trust to past outcomes; without any it stays at the start."""
        training = Training.of(examples)
        examples = examples.take(~np.isnan(examples.rows.raw))
        rows = examples.rows
        z, a = _log_odds(rows)
        near, far = _split(z - a, self.reach)
        columns, names = [near, a, far, near * _confirmed(rows)], list[str]()
        for level in self.levels:
            values, code = np.unique(LEVELS[level](rows), return_inverse=True)
            columns += [np.where(code == i, near, 0.0) for i in range(len(values))]
            names += map(str, values)
        days = np.datetime_as_string(examples.known_on, "D")
        problem = LogisticProblem.of(
            np.column_stack(columns),
            examples.outcome,
            weight=examples.weight * effective_weights(_joined(rows.source, days), CORRELATION),
            penalty=np.r_[self.spread, SLOPE_SPREAD, self.spread, AGE_SPREAD, np.full(len(names), LEVEL_SPREAD)] ** -2,
            centre=np.r_[self.start, 1.0, self.beyond, self.per_day, np.zeros(len(names))],
        )
        trust, slope, beyond, per_day, *moves = fit_logistic_ridge(problem).tolist()
        fitted = {"trust": trust, "slope": slope, "beyond": beyond, "per_day": per_day}
        named = dict(zip(names, moves, strict=True))
        return replace(self.unfitted(), moves=named, training=training, **fitted)


def _log_odds(rows: TrialRows) -> tuple[Floats, Floats]:
    """Return the log-odds of the trials and of the anchor; without an anchor, those of the trials twice."""
    z, a = rows.log_odds(EDGE), logit(rows.anchor, EDGE)
    return z, np.where(np.isnan(a), z, a)


MARKETS = Trust(start=0.2, reach=REACH, per_day=PER_DAY, spread=0.5, cautious=True)
"""For markets. A fresh price is hard to beat, so trials move it a little, until past rounds support more. The start is
the weight that gained for most published systems and lost little for the others (`benchmarks/price_study.py`)."""
DATASETS = Trust(start=0.6, levels=("source", "subtype", "lead"))
"""For data sets. The estimate without a model is about as good as the trials. Between 0.4 and 0.75 the weight hardly
matters on average, and a higher one loses less for the best systems (`benchmarks/price_study.py`)."""


def moved_price(price: float, p: float) -> float:
    """Return a fresh price moved by a researched probability, with the weight before any example.

    >>> round(moved_price(0.8, 0.2), 3)
    0.75
    """
    a, z = logit([price, p], EDGE)
    near, _ = _split(z - a, MARKETS.reach)
    return float(sigmoid(a + MARKETS.start * near))


FEWEST = 30
"""Minimum number of known examples for forecasting a past round when testing learnt weights."""
FEWEST_DAYS = 5
"""Minimum number of resolution days; with fewer, errors are clustered by question instead."""


@frozen
class LearningGain:
    """The gain of learnt weights over the starting weights on past rounds, in Brier score."""

    gain: float = 0.0
    error: float = 0.0
    """Standard error of the gain, clustered by resolution day (or by question, if days are few)."""
    n: int = 0
    less_trust: bool = False
    """Whether learning gained by trusting the trials less than at the start. That is used without a clear gain, because
    a price needs no proof and trials do."""

    @property
    def share_used(self) -> float:
        """The share of what was learnt that is used: 1 − (error/gain)², or 0 while the gain is within its error.

        >>> LearningGain(gain=0.02, error=0.01, n=100).share_used, LearningGain(gain=0.01, error=0.02, n=9).share_used
        (0.75, 0.0)
        """
        return max(0.0, 1 - (self.error / self.gain) ** 2) if self.gain > 0 else 0.0

    def __str__(self) -> str:
        if not self.n:
            return "This forecaster has no track record yet, so these are the starting weights."
        text = f"On {self.n} earlier outcomes, learned weights changed the Brier score by {signed(-self.gain, 4)} "
        text += f"(standard error {self.error:.4f}), "
        if not self.share_used and self.less_trust:
            return f"{text}so the trials count less than at the start."
        if not self.share_used:
            return f"{text}which is no gain beyond noise, so these are the starting weights."
        return f"{text}so {brief_percent(self.share_used)} of what was learned is used."


@frozen
class FittedDefault:
    """One trust for market questions and one for the others."""

    market: FittedTrust
    dataset: FittedTrust
    proofs: tuple[LearningGain, LearningGain] = (LearningGain(), LearningGain())
    """The gains of learning on market questions and on the others."""
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """Blend each row by the trust of its kind; NaN if no trial answered."""
        markets = rows.kind == "market"
        p = np.empty(len(rows))
        for trust, which in ((self.market, markets), (self.dataset, ~markets)):
            if which.any():
                p[which] = trust.probabilities(rows.take(which))
        return p

    def weight_of_trials(self, rows: TrialRows) -> Floats:
        """Return the weight of the trials in each answer, in log-odds: 1 where nothing else is known."""
        markets = rows.kind == "market"
        by_kind = [trust.weight_of_trials(rows) for trust in (self.market, self.dataset)]
        return np.where(np.isnan(rows.anchor), 1.0, np.where(markets, *by_kind))

    def reason(self, rows: TrialRows) -> str:
        """Describe the weights of anchor and trials for the rows of one question, and the evidence for them."""
        if not len(rows) or np.isnan(rows.anchor).all():
            return "There is no market price and no estimate without a model, so only the trials are used."
        market = bool(rows.kind[0] == "market")
        trust, proof = (self.market, self.proofs[0]) if market else (self.dataset, self.proofs[1])
        weights = trust.weight_of_trials(rows)[~np.isnan(rows.anchor)]
        least, most = (brief_percent(float(weight)) for weight in (weights.min(), weights.max()))
        trials = least if least == most else f"{least} to {most}"
        rest = brief_percent(1 - float(weights.max())) if least == most else "the rest"
        anchor = "the market price" if market else "the estimate without a model"
        days = float(np.nan_to_num(rows.price_age).max())
        anchor += f" ({days:.0f} days old)" if market and days > 1 else ""
        return f"The trials count {trials} and {anchor} {rest}. {proof}"


UNFITTED = FittedDefault(market=MARKETS.unfitted(), dataset=DATASETS.unfitted())
"""The default before any example: a price moved a little, or trials and an estimate without a model at 0.6 to 0.4."""


@frozen
class DefaultMethod:
    """Learns the default rule."""

    name: str = "default"

    def fit(self, examples: Examples, past: Floats | None = None) -> FittedDefault:
        """Fit both kinds on their own examples, and use each as far as past rounds support it.

        `past` is the result of `forecast_past` on the examples, if already computed.
        """
        markets = examples.rows.kind == "market"
        past = forecast_past(examples) if past is None else past
        market, on_markets = fit_trust(MARKETS, examples.take(markets), past[markets])
        dataset, on_datasets = fit_trust(DATASETS, examples.take(~markets), past[~markets])
        proofs = (on_markets, on_datasets)
        return FittedDefault(market=market, dataset=dataset, proofs=proofs, training=Training.of(examples))


def forecast_past(examples: Examples) -> Floats:
    """Forecast every example with weights learnt from what was known before it; NaN if that is too little."""
    markets, p = examples.rows.kind == "market", np.full(len(examples), np.nan)
    for trust, kind in ((MARKETS, markets), (DATASETS, ~markets)):
        p[kind] = _rolled(trust, examples.take(kind))
    return p


def _rolled(trust: Trust, examples: Examples) -> Floats:
    p = np.full(len(examples), np.nan)
    for day in np.unique(examples.rows.due):
        past, now = examples.known_before(day), examples.rows.due == day
        if len(past) >= FEWEST:
            p[now] = trust.fit(past).probabilities(examples.rows.take(now))
    return p


def fit_trust(trust: Trust, examples: Examples, past: Floats | None = None) -> tuple[FittedTrust, LearningGain]:
    """Return the blend of starting and learnt weights that past rounds support, and the evidence for it."""
    learnt, start = trust.fit(examples), trust.unfitted()
    proof = _proof(trust, examples, _rolled(trust, examples) if past is None else past)
    share = proof.share_used
    blended = replace(
        learnt,
        trust=start.trust + share * (learnt.trust - start.trust),
        slope=start.slope + share * (learnt.slope - start.slope),
        beyond=start.beyond + share * (learnt.beyond - start.beyond),
        per_day=start.per_day + share * (learnt.per_day - start.per_day),
        moves={name: share * move for name, move in learnt.moves.items()} if share else {},
    )
    if trust.cautious:
        # Trials never push a price away from themselves; a negative trust is noise.
        blended = replace(blended, trust=max(0.0, blended.trust), beyond=max(0.0, blended.beyond))
    less = float(np.clip(learnt.trust_in(examples.rows).mean(), 0.0, start.trust)) if proof.gain > 0 else start.trust
    if trust.cautious and less < blended.trust <= start.trust:
        blended, proof = replace(blended, trust=less), replace(proof, less_trust=True)
    return blended, proof


def _proof(trust: Trust, examples: Examples, p: Floats) -> LearningGain:
    """Compare forecasts of past rounds, each from what was known before it, with the starting weights.

    A single round is no evidence, however many questions it has, because they share the days on which they resolve.
    """
    tested = ~np.isnan(p)
    if tested.sum() < FEWEST:
        return LearningGain()
    before = trust.unfitted().probabilities(examples.rows)[tested]
    p, examples = p[tested], examples.take(tested)
    better = (before - examples.outcome) ** 2 - (p - examples.outcome) ** 2
    days: Strings = np.datetime_as_string(examples.known_on, "D")
    if len(np.unique(days)) < FEWEST_DAYS:
        days = examples.rows.cluster
    result = gain(better, days, examples.weight)
    return LearningGain(gain=result.mean, error=result.se, n=len(better)) if np.isfinite(result.se) else LearningGain()
