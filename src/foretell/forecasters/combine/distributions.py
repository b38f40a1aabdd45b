"""Combines the distributions of several trials over one number or date."""

from collections.abc import Sequence

import numpy as np

from foretell.metrics.transforms import logit, sigmoid
from foretell.questions.forecast import Numeric, Reconciliation, common_ends
from foretell.questions.thresholds import LEVELS

HALVINGS = 60
"""Steps of the search for a quantile: enough for the precision of a float."""


def combined_distribution(distributions: Sequence[Numeric], weights: Sequence[float] | None = None) -> Numeric:
    """Return the distribution whose cdf has the mean log-odds of the others, through its quantiles at their levels.

    `weights` are those of the mean; by default all count the same.

    >>> low, high = Numeric(x=(0, 4), cdf=(0.1, 0.9)), Numeric(x=(2, 6), cdf=(0.1, 0.9))
    >>> both = combined_distribution([low, high])
    >>> round(both.below(3), 6), round(both.quantile(0.1), 2) < round(both.quantile(0.9), 2)
    (0.5, True)
    """
    if len(distributions) == 1:
        return distributions[0]
    never = _mean_log_odds([d.never for d in distributions], weights) if any(d.never for d in distributions) else 0.0
    levels = {(1 - never) * level for level in LEVELS.values()}
    levels |= {level for d in distributions for level in d.cdf if 0 < level < 1 - never}
    points: dict[float, float] = {}
    for level in sorted(levels):
        value = _quantile(distributions, weights, level)
        # A jump that all of them share has one value for several levels, of which the highest counts.
        points[value] = level
    if len(points) < 2:
        return distributions[0]
    lowest, highest = common_ends(distributions)
    return Numeric(x=tuple(points), cdf=tuple(points.values()), never=never, lowest=lowest, highest=highest)


def reconciled_distribution(both: Reconciliation, direct: Numeric) -> Numeric:
    """Return a direct estimate of a number combined with the tree's, if that has one."""
    if both.tree_distribution is None:
        return direct
    return combined_distribution([both.tree_distribution, direct], [both.weight, 1 - both.weight])


def _quantile(distributions: Sequence[Numeric], weights: Sequence[float] | None, level: float) -> float:
    """Return where the mean log-odds of the cdfs reach a level, which is between their own quantiles."""
    own = [d.quantile(min(level, 1 - d.never - 1e-9)) for d in distributions]
    low, high = min(own), max(own)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _mean_log_odds([d.below(middle) for d in distributions], weights) < level:
            low = middle
        else:
            high = middle
    return high


def _mean_log_odds(p: Sequence[float], weights: Sequence[float] | None) -> float:
    z = logit(p)
    return float(sigmoid(z.mean() if weights is None else np.average(z, weights=weights)))
