"""Is a rule's gain more than noise on what came later? Splits in time, and clustered standard errors.

What decides between rules while they are being fitted must be cheap: no resampling here. Published intervals come from
`foretell.evaluate`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Bools, Floats
from foretell.evaluate.clusters import factorise
from foretell.forecasters.combine.rows import Examples, Strings

ROUNDING = 1e-12
"""Equal forecasts may differ by this much in their errors, with a standard error as small."""


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A weighted mean with its standard error."""

    mean: float
    se: float
    n_clusters: float
    """Effective number: (Σ weight)² / Σ over clusters of (its weight)²."""

    def __str__(self) -> str:
        """As told beside a fitted rule: Brier points in thousandths."""
        return f"{1000 * self.mean:.1f} ± {1000 * self.se:.1f} thousandths"

    def beyond(self, noise: float) -> bool:
        """Whether the mean is positive by more than so many standard errors."""
        return self.mean > noise * self.se + ROUNDING


NOTHING = Gain(mean=0.0, se=float("inf"), n_clusters=0.0)


def gain(difference: Floats, cluster: Strings, weight: Floats) -> Gain:
    """Mean m = Σwd/Σw and its standard error by clusters: se² = C/(C−1) · Σ_c (Σ_c w(d − m))² / (Σw)².

    Rows whose difference is NaN do not count. Fewer than two clusters leave the error unknown (infinite).

    >>> found = gain(np.array([1.0, 3.0, 2.0]), np.array(["a", "a", "b"]), np.ones(3))
    >>> round(found.mean, 3), round(found.n_clusters, 2)
    (2.0, 1.8)
    """
    counts = ~np.isnan(difference) & (weight > 0)
    if not counts.any():
        return NOTHING
    d, w, groups = difference[counts], weight[counts], factorise(cluster[counts])
    total = w.sum()
    mean = float((w * d).sum() / total)
    sums = groups.sums(np.column_stack([w * (d - mean), w]))
    if groups.n < 2:
        return Gain(mean=mean, se=float("inf"), n_clusters=1.0)
    se = float(np.sqrt(groups.n / (groups.n - 1) * np.sum(sums[:, 0] ** 2)) / total)
    return Gain(mean=mean, se=se, n_clusters=float(total**2 / np.sum(sums[:, 1] ** 2)))


def later_splits(examples: Examples, folds: int = 5) -> Iterator[tuple[Bools, Bools]]:
    """Past and later rows: every round but the first, and all that was known before it was asked.

    With a single round its clusters are dealt into folds, each judged by what the others teach: weaker evidence, as
    they share their day.
    """
    due = examples.rows.due
    rounds = np.unique(due)
    for later in rounds[1:]:
        past = examples.known_on < later
        if past.any():
            yield past, due == later
    if len(rounds) == 1:
        clusters = factorise(examples.rows.cluster)
        fold = np.random.default_rng(0).permutation(clusters.n)[clusters.codes] % folds
        for one in range(min(folds, clusters.n) if clusters.n > 1 else 0):
            yield fold != one, fold == one
