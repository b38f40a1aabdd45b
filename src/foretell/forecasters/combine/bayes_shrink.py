"""Shrinkage of the trials' mean by a normal model whose variances are read off the trials themselves."""

from dataclasses import dataclass, field

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.fitted import Training
from foretell.forecasters.combine.platt import PAPER_EDGE
from foretell.forecasters.combine.rows import Examples, Rows
from foretell.forecasters.combine.shrink import Spread

UNSEEN = 1e6
"""τ² before any example: the trials are believed as they are."""


@dataclass(frozen=True, kw_only=True)
class FittedBayesShrink:
    """The posterior mean of a normal model: α = Kτ² / (Kτ² + σ²) on the trials' mean, the rest on the anchor."""

    between: float = 0.0
    """τ²: how far the forecaster's log-odds truly lie from the anchor, squared."""
    within: float = 0.0
    """σ²: variance of one trial about the forecaster's mean, over all questions."""
    degrees: float = 4.0
    edge: float = PAPER_EDGE
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: Rows) -> Floats:
        """The posterior mean's probability; NaN where no trial answered."""
        spread = Spread.of(rows, self.edge)
        squares = spread.std**2 * spread.count
        freedom = self.degrees + np.maximum(spread.count - 1, 0)
        noise = (self.degrees * self.within + squares) / np.maximum(freedom, 1e-300)
        signal = spread.count * self.between
        share = np.where(noise > 0, signal / np.where(noise > 0, signal + noise, 1.0), 1.0)
        return spread.toward_anchor(share)


@dataclass(frozen=True, kw_only=True)
class BayesShrink:
    """Normal shrinkage with empirical-Bayes variances (James & Stein 1961, Efron & Morris 1973; BLF 2026, eq. 9).

    Trials scatter about a question's own log-odds with variance σ²_q, and these about the anchor with variance τ².
    σ² is the pooled variance within questions, and σ²_q = (d·σ² + squares_q) / (d + K − 1) leans on it with d `degrees`
    of freedom, since five trials tell little about their own scatter. τ² is what is left of the mean squared distance
    between mean and anchor after σ²/K, and not below 0. No outcome is used. Where no question has two trials σ² is 0
    and nothing shrinks, and neither does anything before the first example.

    >>> BayesShrink().name
    'bayes shrink'
    """

    degrees: float = 4.0
    edge: float = PAPER_EDGE

    def __post_init__(self) -> None:
        if not self.degrees >= 0:
            raise ValueError(f"degrees = {self.degrees} must not be negative")
        if not 0 < self.edge < 0.5:
            raise ValueError(f"edge = {self.edge} is outside (0, 0.5)")

    @property
    def name(self) -> str:
        """As shown in tables."""
        return "bayes shrink"

    def fit(self, examples: Examples) -> FittedBayesShrink:
        """The two variances, from the trials and the anchors alone."""
        spread, weight = Spread.of(examples.rows, self.edge), examples.weight
        said = (spread.count > 0) & (weight > 0)
        count, weight = spread.count[said], weight[said]
        freedom = float(weight @ (count - 1))
        within = float(weight @ (spread.std[said] ** 2 * count)) / freedom if freedom > 0 else 0.0
        apart = (spread.mean[said] - spread.anchor[said]) ** 2 - within / count
        between = max(0.0, float(weight @ apart) / float(weight.sum())) if said.any() else UNSEEN
        return FittedBayesShrink(
            between=between, within=within, degrees=self.degrees, edge=self.edge, training=Training.of(examples)
        )
