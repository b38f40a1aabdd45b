"""The default rule: the price, or trials blended with base rates, adjusted by the past only as far as it proves.

A market question with a fresh price is answered by exactly that price, until the past shows that the trials add
something. Data-set questions are blended with the base rate (or a model-free estimate given in its place). Each kind
learns its trust separately. What was learnt is then tested on later past rounds against the rule before learning, and
kept in proportion to how clearly it gained: not at all while the gain lies within its noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from foretell.forecasters.base_rates.rates import HORIZON_EDGES, effective_weights
from foretell.forecasters.combine.crossfit import gain
from foretell.forecasters.combine.logistic import LogisticProblem, fit_logistic_ridge
from foretell.forecasters.combine.rows import Examples, Strings, TrialRows, logit, sigmoid
from foretell.forecasters.combine.rules import Training
from foretell.metrics.arrays import Bools, Floats

# How far to believe the trials where they differ from an anchor, the crowd's price or a base rate.
#
# On the log-odds scale, with z for the trials and a for the anchor: slope·a + w·near + v·far. `near` is the way from
# the anchor to the trials as far as it reaches, r·tanh((z − a)/r), and `far` the rest of it: trials that are far from a
# price are more often wrong than right, so that the rest counts only once a past speaks for it. The trust w starts at a
# given value, none at all against a fresh price, and is moved by examples, for all together and then for each source,
# subtype, lead time and liquidity as far as they bear it. There are no offsets: those are base rates in disguise, and
# base rates move.
#
# What happens while a price grows old mostly confirms it, so that trials which are surer than an old price, on its own
# side of one half, count a little more with every day; trials that hedge against it do not.

EDGE = 1e-3
"""Distance from certainty at which prices and trials are kept: the last ticks of a market say little."""
LIQUIDITY_EDGES = (1e3, 1e5)
REACH = 1.5
"""How far from a price trials are believed at first, in log-odds; the rest of the way has a trust of its own."""
FRESH, OLDEST = 2.0, 22.0
"""Days up to which a price counts as fresh, and after which more days change nothing."""
PER_DAY = 0.05
"""What each day beyond the fresh ones adds to the trust in surer trials: two fifths for a price ten days old."""
TOSS_UP = 0.5
"""Log-odds of a price below which it takes no side: the effect of its age falls to nothing at one half."""
SPREAD, SLOPE_SPREAD, LEVEL_SPREAD, AGE_SPREAD = 0.25, 0.2, 0.2, 0.005
"""Standard deviations of the normal priors of the common trusts, the slope, each level and a day of the price's age
around their starting values."""
CORRELATION = 0.1
"""Correlation of a source's outcomes that become known on one day: m of them count for m / (1 + (m−1)·correlation)."""


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


@dataclass(frozen=True, kw_only=True)
class FittedTrust:
    """slope·a + w·near + v·far, where w is the common trust plus what levels and the price's age add.

    Without an anchor: slope·z.
    """

    trust: float
    slope: float = 1.0
    moves: Mapping[str, float] = field(default_factory=dict[str, float])
    """What a level adds to the trust: "fred", "fred/all", "polymarket/lead 2"."""
    levels: tuple[str, ...] = ()
    reach: float | None = None
    """How far from the anchor the trust applies in full, in log-odds; None means all the way."""
    beyond: float = 0.0
    """The trust in the rest of the way."""
    per_day: float = 0.0
    """What a day of the price's age adds to the trust in trials that are surer than the price."""
    training: Training = field(default_factory=Training)

    def trust_in(self, rows: TrialRows) -> Floats:
        """The trust in the trials of every row; an unseen source, subtype or lead adds nothing."""
        w = self.trust + self.per_day * _confirmed(rows)
        for level in self.levels:
            names, code = np.unique(LEVELS[level](rows), return_inverse=True)
            w += np.array([self.moves.get(str(name), 0.0) for name in names], np.float64)[code]
        return w

    def probabilities(self, rows: TrialRows) -> Floats:
        """The blend; NaN if no trial answered."""
        z, a = _log_odds(rows)
        near, far = _way(z - a, self.reach)
        trust = self.trust_in(rows)
        # Without any trust the anchor stands as it is, to the last digit.
        as_it_is = (trust == 0) & (self.slope == 1) & (self.beyond == 0) & ~np.isnan(rows.anchor) & ~np.isnan(z)
        return np.where(as_it_is, rows.anchor, sigmoid(self.slope * a + trust * near + self.beyond * far))

    def weight_of_trials(self, rows: TrialRows) -> Floats:
        """How far each answer moves from the anchor towards the trials, in log-odds: 0 is the anchor, 1 the trials."""
        z, a = _log_odds(rows)
        near, far = _way(z - a, self.reach)
        apart = np.where(z == a, 1.0, z - a)
        trust = self.trust_in(rows)
        return np.where(z == a, trust, (trust * near + self.beyond * far) / apart)


def _confirmed(rows: TrialRows) -> Floats:
    """Effective days from price to asking if the trials are surer than the price and on its side; else 0."""
    z, a = _log_odds(rows)
    days = np.clip(np.nan_to_num(rows.price_age) - FRESH, 0.0, OLDEST - FRESH)
    return np.where((z - a) * np.sign(a) > 0, days * np.minimum(1.0, np.abs(a) / TOSS_UP), 0.0)


def _way(apart: Floats, reach: float | None) -> tuple[Floats, Floats]:
    """The distance from anchor to trials, split into the part within reach and the rest."""
    if reach is None:
        return apart, np.zeros_like(apart)
    near = reach * np.tanh(apart / reach)
    return near, apart - near


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Learns the trust by penalised log loss, from a start that needs no examples."""

    start: float = 0.5
    """Trust before any example. One half: the trials and a crowd are two forecasters about whom nothing is known."""
    levels: tuple[str, ...] = ("source", "lead", "liquidity")
    reach: float | None = None
    beyond: float = 0.0
    per_day: float = 0.0
    spread: float = SPREAD
    """Standard deviation of the prior of the common trusts around their starting values."""
    name: str = "trust"

    def untaught(self) -> FittedTrust:
        """The rule before any example."""
        return FittedTrust(
            trust=self.start, levels=self.levels, reach=self.reach, beyond=self.beyond, per_day=self.per_day
        )

    def fit(self, examples: Examples) -> FittedTrust:
        """Fit the trust to past outcomes; without any it stays at the start."""
        training = Training.of(examples)
        examples = examples.take(~np.isnan(examples.rows.raw))
        rows = examples.rows
        z, a = _log_odds(rows)
        near, far = _way(z - a, self.reach)
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
        found = {"trust": trust, "slope": slope, "beyond": beyond, "per_day": per_day}
        named = dict(zip(names, moves, strict=True))
        return replace(self.untaught(), moves=named, training=training, **found)


def _log_odds(rows: TrialRows) -> tuple[Floats, Floats]:
    """The log-odds of the trials and of the anchor; without an anchor the trials take its place."""
    z, a = rows.log_odds(EDGE), logit(rows.anchor, EDGE)
    return z, np.where(np.isnan(a), z, a)


MARKETS = Trust(start=0.0, reach=REACH, per_day=PER_DAY, spread=0.5)
"""For markets. A fresh price is hard to beat: trials count only once their past shows that they add to it."""
DATASETS = Trust(start=0.75, levels=("source", "subtype", "lead"))
"""For data sets. A base rate knows less than a reader of the question: it has a quarter of the weight at first."""
FEWEST = 30
"""Minimum number of known examples for forecasting a past round when testing what was learnt."""
FEWEST_DAYS = 5
"""Minimum number of resolution days; with fewer, the noise is judged between questions instead."""


@dataclass(frozen=True, kw_only=True)
class LearningGain:
    """What a learnt rule gained on past rounds over the rule before learning, in Brier score."""

    gain: float = 0.0
    error: float = 0.0
    """Standard error of the gain, clustered by resolution day (or by question, if days are few)."""
    n: int = 0

    @property
    def kept(self) -> float:
        """The share of what was learnt that is kept: 1 − (error/gain)², or 0 while the gain is within its error.

        >>> LearningGain(gain=0.02, error=0.01, n=100).kept, LearningGain(gain=0.01, error=0.02, n=100).kept
        (0.75, 0.0)
        """
        return max(0.0, 1 - (self.error / self.gain) ** 2) if self.gain > 0 else 0.0

    def __str__(self) -> str:
        if not self.n:
            return "This forecaster has no track record yet, so these are the starting weights."
        found = f"On {self.n} earlier outcomes, learned weights changed the Brier score by {-self.gain:+.4f} "
        found += f"(standard error {self.error:.4f}), "
        if not self.kept:
            return f"{found}which is no gain beyond noise, so these are the starting weights."
        return f"{found}so {self.kept:.0%} of what was learned is used."


@dataclass(frozen=True, kw_only=True)
class FittedDefault:
    """One trust for market questions and one for the others."""

    market: FittedTrust
    dataset: FittedTrust
    proofs: tuple[LearningGain, LearningGain] = (LearningGain(), LearningGain())
    """What learning gained on market questions and on the others."""
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """Blend each row by the trust of its kind; NaN if no trial answered."""
        markets = rows.kind == "market"
        p = np.empty(len(rows))
        for trust, which in ((self.market, markets), (self.dataset, ~markets)):
            if which.any():
                p[which] = trust.probabilities(rows.take(which))
        return p

    def tested(self, rows: TrialRows) -> Bools:
        """Whether past rounds have tested what was learnt about questions of each row's kind."""
        return np.where(rows.kind == "market", self.proofs[0].n > 0, self.proofs[1].n > 0)

    def reason(self, rows: TrialRows) -> str:
        """Say how much anchor and trials count for the rows of one question, and what past evidence there is for it."""
        if not len(rows) or np.isnan(rows.anchor).all():
            return "There is no market price or tested base rate to compare with, so the trials stand alone."
        market = bool(rows.kind[0] == "market")
        trust, proof = (self.market, self.proofs[0]) if market else (self.dataset, self.proofs[1])
        weights = trust.weight_of_trials(rows)[~np.isnan(rows.anchor)]
        least, most = (f"{weight:.0%}" for weight in (weights.min(), weights.max()))
        trials = least if least == most else f"{least} to {most}"
        rest = f"{1 - weights.max():.0%}" if least == most else "the rest"
        anchor = "the market price" if market else "the estimate without a model"
        days = float(np.nan_to_num(rows.price_age).max())
        anchor += f" ({days:.0f} days old)" if market and days > 1 else ""
        return f"The trials count {trials} and {anchor} {rest}. {proof}"


UNTAUGHT = FittedDefault(market=MARKETS.untaught(), dataset=DATASETS.untaught())
"""The default before any example: a fresh price as it is, a quarter of the way to the base rate."""


@dataclass(frozen=True, kw_only=True)
class DefaultMethod:
    """Learns the robust default rule."""

    name: str = "default"

    def fit(self, examples: Examples, past: Floats | None = None) -> FittedDefault:
        """Fit both kinds on their own examples, and keep each as far as its past proves it.

        `past` is the result of `forecast_past` on the examples, if that is known already.
        """
        markets = examples.rows.kind == "market"
        past = forecast_past(examples) if past is None else past
        market, on_markets = taught(MARKETS, examples.take(markets), past[markets])
        dataset, on_datasets = taught(DATASETS, examples.take(~markets), past[~markets])
        proofs = (on_markets, on_datasets)
        return FittedDefault(market=market, dataset=dataset, proofs=proofs, training=Training.of(examples))


def forecast_past(examples: Examples) -> Floats:
    """Forecast every example by weights learnt from what was known before it was asked; NaN if that is too little."""
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


def taught(trust: Trust, examples: Examples, past: Floats | None = None) -> tuple[FittedTrust, LearningGain]:
    """The rule between untaught and learnt that past rounds support, and the evidence for it."""
    learnt, start = trust.fit(examples), trust.untaught()
    proof = _proof(trust, examples, _rolled(trust, examples) if past is None else past)
    share = proof.kept
    blended = replace(
        learnt,
        trust=start.trust + share * (learnt.trust - start.trust),
        slope=start.slope + share * (learnt.slope - start.slope),
        beyond=start.beyond + share * (learnt.beyond - start.beyond),
        per_day=start.per_day + share * (learnt.per_day - start.per_day),
        moves={name: share * move for name, move in learnt.moves.items()} if share else {},
    )
    return blended, proof


def _proof(trust: Trust, examples: Examples, p: Floats) -> LearningGain:
    """Compare forecasts of past rounds, each from what was known before it, with the rule before learning.

    A single round proves nothing, however many questions it has, because they share the days on which they resolve.
    """
    tried = ~np.isnan(p)
    if tried.sum() < FEWEST:
        return LearningGain()
    before = trust.untaught().probabilities(examples.rows)[tried]
    p, examples = p[tried], examples.take(tried)
    better = (before - examples.outcome) ** 2 - (p - examples.outcome) ** 2
    days: Strings = np.datetime_as_string(examples.known_on, "D")
    if len(np.unique(days)) < FEWEST_DAYS:
        days = examples.rows.cluster
    found = gain(better, days, examples.weight)
    return LearningGain(gain=found.mean, error=found.se, n=len(better)) if np.isfinite(found.se) else LearningGain()
