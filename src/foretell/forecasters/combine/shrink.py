"""Shrinkage of the trials' logit mean towards the market price or the base rate."""

from dataclasses import field

import numpy as np

from foretell.forecasters.combine.calibration import PAPER_EDGE, HierarchicalPlatt
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.forecasters.combine.rules import ChainedMethod, CombinationMethod, Training
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, group_sums
from foretell.metrics.transforms import logit, sigmoid

FLOORS = tuple(round(0.1 * step, 1) for step in range(11))
SLOPES = tuple(round(0.2 * step, 1) for step in range(11))
SAME = 1e-12
"""Tolerance within which mean Brier scores count as equal; of equals, the first in the grid is taken."""


@frozen
class TrialSpread:
    """Statistics of each row that shrinkage uses, on the log-odds scale."""

    mean: Floats
    """Mean over the trials that answered; NaN without any."""
    std: Floats
    """Standard deviation over them, dividing by their number; 0 for a single trial."""
    count: Floats
    anchor: Floats
    """The price, else the base rate, else one half."""

    @classmethod
    def of(cls, rows: TrialRows, edge: float) -> "TrialSpread":
        """Compute the statistics of rows, with probabilities clipped to [edge, 1 − edge]."""
        x = logit(rows.trials, edge)
        answered = ~np.isnan(x)
        count = answered.sum(axis=0).astype(np.float64)
        mean = np.where(answered, x, 0.0).sum(axis=0) / np.maximum(count, 1)
        apart = np.where(answered, x - mean, 0.0)
        # Equal trials can differ from their mean by a rounding error, which must not count.
        std = np.sqrt((apart**2).sum(axis=0) / np.maximum(count, 1))
        std[std < 1e-12 * (1 + np.abs(mean))] = 0.0
        anchor = logit(np.where(np.isnan(rows.anchor), 0.5, rows.anchor), edge)
        return cls(mean=np.where(count > 0, mean, np.nan), std=std, count=count, anchor=anchor)

    def toward_anchor(self, share: Floats) -> Floats:
        """Return σ(share·mean + (1 − share)·anchor); leading axes of `share` are preserved."""
        return sigmoid(share * self.mean + (1 - share) * self.anchor)


@frozen
class FittedShrink:
    """σ(α·mean + (1 − α)·anchor) with α = max(floor, 1 − slope·std) of the trials' log-odds."""

    floor: float = 1.0
    slope: float = 0.0
    edge: float = PAPER_EDGE
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The shrunken mean; NaN if no trial answered."""
        spread = TrialSpread.of(rows, self.edge)
        return spread.toward_anchor(np.maximum(self.floor, 1 - self.slope * spread.std))


@frozen
class Shrink:
    """Shrinkage that grows with the trials' disagreement (BLF 2026, Appendix C.9), (floor, slope) by mean Brier score.

    Takes the best pair of an 11 × 11 grid; of equally good ones the first, by floor and then by slope. `fit` chooses on
    the examples themselves, which the paper's code calls leave-one-out; `leave_out` chooses without each group. A
    single trial shows no disagreement and is not shrunk. Without an answered example there is no shrinkage (floor 1).
    """

    name: str = "shrink"

    def fit(self, examples: Examples) -> FittedShrink:
        """Choose the pair with the least mean Brier score on the examples."""
        training = Training.of(examples)
        loss, counted, _ = _grid_losses(examples)
        if not counted.any():
            return FittedShrink(training=training)
        mean = loss[:, counted].sum(axis=1) / examples.weight[counted].sum()
        return _of_grid(int(_first_least(mean[None])[0]), training)

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Return each row's probability under the pair chosen without its group."""
        p, chosen = _chosen_without(examples, groups)
        unshrunk = sigmoid(TrialSpread.of(examples.rows, PAPER_EDGE).mean)
        return np.where(chosen < 0, unshrunk, p[chosen, np.arange(len(examples))])

    def rules_without(self, examples: Examples, groups: Ints) -> tuple[list[FittedShrink], Ints]:
        """Return the distinct pairs chosen without a group, and the index of each row's pair."""
        pairs, which = np.unique(_chosen_without(examples, groups)[1], return_inverse=True)
        return [_of_grid(int(pair), Training()) for pair in pairs], which.astype(np.int64)


def _of_grid(pair: int, training: Training) -> FittedShrink:
    """Return the rule for the grid's n-th pair; −1 means no shrinkage."""
    if pair < 0:
        return FittedShrink(training=training)
    floor, slope = divmod(pair, len(SLOPES))
    return FittedShrink(floor=FLOORS[floor], slope=SLOPES[slope], training=training)


def _chosen_without(examples: Examples, groups: Ints) -> tuple[Floats, Ints]:
    """Return probabilities under every pair, and each row's pair, chosen by Brier scores outside its group."""
    loss, counted, p = _grid_losses(examples)
    code = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    size = int(code.max(initial=-1)) + 1
    group_loss = np.column_stack([group_sums(code[counted], row[counted], size) for row in loss])
    weight = group_sums(code[counted], examples.weight[counted], size)
    rest_weight = weight.sum() - weight
    alone = rest_weight <= 1e-12 * weight.sum()
    mean = (group_loss.sum(axis=0) - group_loss) / np.where(alone, 1.0, rest_weight)[:, None]
    return p, np.where(alone, -1, _first_least(mean))[code]


def _grid_losses(examples: Examples) -> tuple[Floats, Bools, Floats]:
    """Return the weighted Brier score of every row under every pair, the rows that count, and the probabilities."""
    spread = TrialSpread.of(examples.rows, PAPER_EDGE)
    floor, slope = (np.ravel(axis)[:, None] for axis in np.meshgrid(FLOORS, SLOPES, indexing="ij"))
    p = spread.toward_anchor(np.maximum(floor, 1 - slope * spread.std))
    counted = (spread.count > 0) & (examples.weight > 0)
    return examples.weight * (p - examples.outcome) ** 2, counted, p


def _first_least(losses: Floats) -> Ints:
    """Return the first column with the minimum of each row."""
    return np.argmax(losses <= losses.min(axis=1, keepdims=True) + SAME, axis=1)


# Shrinkage of the trials' mean by a normal model whose variances are estimated from the trials.

UNSEEN = 1e6
"""τ² before any example, for which nothing is shrunk."""


@frozen
class FittedBayesShrink:
    """The posterior mean of a normal model: weight α = Kτ² / (Kτ² + σ²) on the trials' mean, the rest on the anchor."""

    between: float = 0.0
    """τ²: the squared distance of the forecaster's true log-odds from the anchor."""
    within: float = 0.0
    """σ²: variance of one trial around the forecaster's mean, over all questions."""
    degrees: float = 4.0
    edge: float = PAPER_EDGE
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The probability of the posterior mean; NaN if no trial answered."""
        spread = TrialSpread.of(rows, self.edge)
        squares = spread.std**2 * spread.count
        freedom = self.degrees + np.maximum(spread.count - 1, 0)
        noise = (self.degrees * self.within + squares) / np.maximum(freedom, 1e-300)
        signal = spread.count * self.between
        share = np.where(noise > 0, signal / np.where(noise > 0, signal + noise, 1.0), 1.0)
        return spread.toward_anchor(share)


@frozen
class BayesShrink:
    """Normal shrinkage with empirical-Bayes variances (James & Stein 1961, Efron & Morris 1973; BLF 2026, eq. 9).

    Trials have variance σ²_q around a question's own log-odds, which have variance τ² around the anchor. σ² is the
    pooled variance within questions. σ²_q = (d·σ² + squares_q) / (d + K − 1) is shrunk to it with d `degrees` of
    freedom, because five trials say little about their own variance. τ² is the mean squared distance between mean and
    anchor minus σ²/K, and at least 0. No outcome is used. If no question has two trials, σ² is 0 and nothing is shrunk;
    nothing is shrunk before the first example either.
    """

    name: str = "bayes shrink"

    def fit(self, examples: Examples) -> FittedBayesShrink:
        """Estimate the two variances from the trials and the anchors alone."""
        spread, weight = TrialSpread.of(examples.rows, PAPER_EDGE), examples.weight
        counted = (spread.count > 0) & (weight > 0)
        count, weight = spread.count[counted], weight[counted]
        freedom = float(weight @ (count - 1))
        within = float(weight @ (spread.std[counted] ** 2 * count)) / freedom if freedom > 0 else 0.0
        apart = (spread.mean[counted] - spread.anchor[counted]) ** 2 - within / count
        between = max(0.0, float(weight @ apart) / float(weight.sum())) if counted.any() else UNSEEN
        return FittedBayesShrink(between=between, within=within, training=Training.of(examples))


def shrink_then_calibrate() -> CombinationMethod:
    """Return the combination of BLF 2026: shrinkage to price or prior, then Platt scaling with an offset per source."""
    return ChainedMethod(methods=(Shrink(), HierarchicalPlatt()))
