"""Claims of which each implies the next: strikes of one quantity, deadlines of one event, nested claims in general."""

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Bools, Floats, as_probabilities, as_vector, as_weights, group_sums, reject
from foretell.forecasters.combine.coherence.distance import Distance, check_distance
from foretell.forecasters.combine.rows import logit, sigmoid


def rising(
    p: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    level: npt.ArrayLike | None = None,
    distance: Distance = "squared",
) -> Floats:
    """The nearest probabilities that do not fall along the sequence, by pooling adjacent violators (Ayer et al. 1955).

    List the claims from the strongest to the weakest: "above 220" before "above 200", "by March" before "by June".
    `level` gives the order instead, and claims on one level the same probability. Pooled claims get the weighted mean
    of their probabilities (`squared`) or of their log-odds (`log`).

    >>> rising([0.1, 0.5, 0.3, 0.8]).tolist()
    [0.1, 0.4, 0.4, 0.8]
    >>> rising([0.5, 0.2, 0.4], level=[2, 1, 1]).round(3).tolist()
    [0.5, 0.3, 0.3]
    """
    check_distance(distance)
    p = as_probabilities(as_vector(p, "p"))
    weight = as_weights(weight, len(p))
    reject(weight <= 0, weight, "weight", "is not positive")
    levels = np.arange(len(p), dtype=np.float64) if level is None else as_vector(level, "level")
    if len(levels) != len(p):
        raise ValueError(f"level has length {len(levels)}, expected {len(p)}")
    _, place = np.unique(levels, return_inverse=True)
    size = int(place.max()) + 1
    x, total = p if distance == "squared" else logit(p), group_sums(place, weight, size)
    alone = np.bincount(place, minlength=size) == 1
    mean = np.where(alone, group_sums(place, x, size), group_sums(place, weight * x, size) / total)
    pooled, apart = _pooled(mean, total)
    q = pooled if distance == "squared" else sigmoid(pooled)
    # What was not pooled stays exactly as it was, certainty and last digit included.
    return np.where((alone & apart)[place], p, np.clip(q, 0.0, 1.0)[place])


def falling(
    p: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    level: npt.ArrayLike | None = None,
    distance: Distance = "squared",
) -> Floats:
    """The nearest probabilities that do not rise along the sequence: P(X > a) as a goes up.

    >>> falling([0.9, 0.5, 0.7]).round(3).tolist()
    [0.9, 0.6, 0.6]
    """
    p = as_probabilities(as_vector(p, "p"))
    levels = np.arange(len(p)) if level is None else as_vector(level, "level")
    return rising(p, weight, level=-levels, distance=distance)


def _pooled(mean: Floats, weight: Floats) -> tuple[Floats, Bools]:
    """Weighted means of blocks, rising from block to block, one per entry; and which entries are a block alone."""
    means: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for m, w in zip(mean.tolist(), weight.tolist(), strict=True):
        size = 1
        while means and means[-1] > m:
            before, own = weights.pop(), w
            w = before + own
            m = (means.pop() * before + m * own) / w
            size += sizes.pop()
        means.append(m)
        weights.append(w)
        sizes.append(size)
    return np.repeat(means, sizes), np.repeat(np.array(sizes) == 1, sizes)
