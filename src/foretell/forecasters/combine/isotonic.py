"""Isotonic calibration: the nondecreasing curve nearest to what happened."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.fitted import Training, one_sided
from foretell.forecasters.combine.rows import Examples, Rows


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Neighbouring points pooled until their means rise."""

    centre: Floats
    """Weighted mean of x in each block."""
    mean: Floats
    """Weighted mean of y in each block."""
    weight: Floats


def pool(x: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike = 1.0) -> Blocks:
    """Weighted least squares under the constraint that y rises with x (pool adjacent violators, Ayer et al. 1955).

    Points of equal x are one point. A weight of 0 leaves a point out.

    >>> pool([1, 2, 3, 4], [0, 1, 0, 1]).mean.tolist()
    [0.0, 0.5, 1.0]
    >>> pool([1, 2, 3, 4], [0, 1, 0, 1]).centre.tolist()
    [1.0, 2.5, 4.0]
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    weight = np.broadcast_to(np.asarray(weight, np.float64), x.shape)
    counted = weight > 0
    at, code = np.unique(x[counted], return_inverse=True)
    w = np.bincount(code, weight[counted], len(at))
    total = np.bincount(code, weight[counted] * y[counted], len(at))
    blocks: list[tuple[float, float, float]] = []
    for size, xs, ys in zip(w.tolist(), (w * at).tolist(), total.tolist(), strict=True):
        block = (size, xs, ys)
        while blocks and blocks[-1][2] / blocks[-1][0] >= block[2] / block[0]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    found = np.array(blocks, np.float64).reshape(-1, 3)
    return Blocks(centre=found[:, 1] / found[:, 0], mean=found[:, 2] / found[:, 0], weight=found[:, 0])


@dataclass(frozen=True, kw_only=True)
class FittedIsotonic:
    """Straight lines between block centres, level outside the first and the last; the identity without blocks."""

    at: tuple[float, ...] = ()
    value: tuple[float, ...] = ()
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: Rows) -> Floats:
        """The curve at each row's logit mean; NaN where no trial answered."""
        return np.interp(rows.raw, self.at, self.value) if self.at else rows.raw.copy()


@dataclass(frozen=True, kw_only=True)
class Isotonic:
    """Isotonic regression of the outcome on the logit mean (Zadrozny & Elkan 2002).

    A block without a single YES would claim 0. What n examples can support ends at 1 / (n + 2), n being their effective
    number (Σw)² / Σw², so the curve is kept that far from 0 and 1. Where outcomes are all the same the rule is the
    identity.

    >>> Isotonic().name
    'isotonic'
    """

    @property
    def name(self) -> str:
        """As shown in tables."""
        return "isotonic"

    def fit(self, examples: Examples) -> FittedIsotonic:
        """The curve through the pooled blocks."""
        training = Training.of(examples)
        if one_sided(examples):
            return FittedIsotonic(training=training)
        answered = ~np.isnan(examples.rows.raw)
        at, value = _curve(examples.rows.raw[answered], examples.outcome[answered], examples.weight[answered])
        return FittedIsotonic(at=tuple(at.tolist()), value=tuple(value.tolist()), training=training)

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Each row's probability from the curve fitted without its group."""
        p = examples.rows.raw.copy()
        answered = ~np.isnan(p)
        x, y, w, group = p[answered], examples.outcome[answered], examples.weight[answered], groups[answered]
        found = x.copy()
        for one in np.unique(group):
            out = group == one
            kept = ~out & (w > 0)
            if len(np.unique(y[kept])) > 1:
                found[out] = np.interp(x[out], *_curve(x[kept], y[kept], w[kept]))
        p[answered] = found
        return p


def _curve(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Where the blocks lie and what they say."""
    blocks = pool(x, y, weight)
    margin = 1 / (weight.sum() ** 2 / (weight**2).sum() + 2)
    return blocks.centre, np.clip(blocks.mean, margin, 1 - margin)
