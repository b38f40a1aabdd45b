"""The default rule: trials blended with the crowd and with base rates, taught by the past only as far as it proves.

Market questions are blended with the price, data-set questions with the base rate (or a model-free estimate given in
its place). Each kind learns its trust separately. What was learnt is then tried on later past rounds against the rule
before learning, and kept in proportion to how clearly it gained: not at all while the gain lies within its noise.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.fitted import Training
from foretell.forecasters.combine.rows import Examples, Rows, Strings
from foretell.forecasters.combine.trust import FittedTrust, Trust

MARKETS = Trust(start=0.5, levels=("source", "lead", "liquidity"))
DATASETS = Trust(start=0.75, levels=("source", "subtype", "lead"))
"""A base rate knows less of a question than whoever read it: a quarter of the say before the past has spoken."""
FEWEST = 30
"""Examples that must be known before a past round is forecast in the trial of what was learnt."""
FEWEST_DAYS = 5
"""With fewer resolution days than this the noise is judged between questions instead."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a learnt rule gained on past rounds over the rule before learning, in Brier score."""

    gain: float = 0.0
    error: float = 0.0
    """Standard error of the gain between resolution days (or questions, where days are few)."""
    n: int = 0

    @property
    def kept(self) -> float:
        """How much of what was learnt is kept: 1 − (error/gain)², none of it while the gain is within its error.

        >>> Proof(gain=0.02, error=0.01, n=100).kept, Proof(gain=0.01, error=0.02, n=100).kept
        (0.75, 0.0)
        """
        return max(0.0, 1 - (self.error / self.gain) ** 2) if self.gain > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class FittedDefault:
    """One trust for market questions and one for the others."""

    market: FittedTrust
    dataset: FittedTrust
    proofs: tuple[Proof, Proof] = (Proof(), Proof())
    """What learning gained on market questions and on the others."""
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: Rows) -> Floats:
        """Each row blended by the trust of its kind; NaN where no trial answered."""
        markets = rows.kind == "market"
        p = np.empty(len(rows))
        p[markets] = self.market.probabilities(rows.take(markets))
        p[~markets] = self.dataset.probabilities(rows.take(~markets))
        return p


UNTAUGHT = FittedDefault(market=MARKETS.untaught(), dataset=DATASETS.untaught())
"""The default before any example: half way to the price, a quarter of the way to the base rate."""


@dataclass(frozen=True, kw_only=True)
class Default:
    """The robust default.

    >>> Default().name
    'default'
    """

    market: Trust = MARKETS
    dataset: Trust = DATASETS

    @property
    def name(self) -> str:
        """As shown in tables."""
        return "default"

    def fit(self, examples: Examples) -> FittedDefault:
        """Both kinds taught by their own examples, each kept as far as its past proves it."""
        markets = examples.rows.kind == "market"
        market, on_markets = taught(self.market, examples.take(markets))
        dataset, on_datasets = taught(self.dataset, examples.take(~markets))
        return FittedDefault(
            market=market, dataset=dataset, proofs=(on_markets, on_datasets), training=Training.of(examples)
        )


def taught(trust: Trust, examples: Examples) -> tuple[FittedTrust, Proof]:
    """The rule between untaught and learnt that past rounds speak for."""
    learnt, start = trust.fit(examples), trust.untaught()
    proof = prove(trust, examples)
    share = proof.kept
    kept = replace(
        learnt,
        trust=start.trust + share * (learnt.trust - start.trust),
        slope=start.slope + share * (learnt.slope - start.slope),
        moves={name: share * move for name, move in learnt.moves.items()} if share else {},
    )
    return kept, proof


def prove(trust: Trust, examples: Examples) -> Proof:
    """Past rounds forecast from what was known before each, against the rule before learning.

    A single round proves nothing however many questions it has: they share the days on which they resolve.
    """
    p = _forward(trust, examples)
    tried = ~np.isnan(p)
    if tried.sum() < FEWEST:
        return Proof()
    before = trust.untaught().probabilities(examples.rows)
    y, weight = examples.outcome, examples.weight
    gain = weight * ((before - y) ** 2 - (p - y) ** 2)
    return _judged(examples.take(tried), gain[tried])


def _forward(trust: Trust, examples: Examples) -> Floats:
    p = np.full(len(examples), np.nan)
    for day in np.unique(examples.rows.due):
        past, now = examples.known_before(day), examples.rows.due == day
        if len(past) >= FEWEST:
            p[now] = trust.fit(past).probabilities(examples.rows.take(now))
    return p


def _judged(examples: Examples, gain: Floats) -> Proof:
    days: Strings = np.datetime_as_string(examples.known_on, "D")
    if len(np.unique(days)) < FEWEST_DAYS:
        days = examples.rows.cluster
    code = np.unique(days, return_inverse=True)[1]
    total = examples.weight.sum()
    mean = gain.sum() / total
    spread = np.bincount(code, gain - mean * examples.weight)
    groups = len(spread)
    error = np.sqrt(np.sum(spread**2) * groups / max(groups - 1, 1)) / total
    return Proof(gain=float(mean), error=float(error), n=len(gain))
