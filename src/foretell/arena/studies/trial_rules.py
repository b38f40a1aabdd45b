"""Rules that need no fitting, over trials of which some have failed, and what they score with fewer trials."""

from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.aggregate import extremised, logit_mean, mean, median, trimmed
from foretell.forecasters.combine.rows import Examples

Pool = Callable[[Floats], Floats]
"""K × n probabilities without a gap to n probabilities."""

RULES: Mapping[str, Pool] = {
    "logit mean": logit_mean,
    "mean": mean,
    "median": median,
    "trimmed mean": trimmed,
    "extremised": extremised,
}


def pooled(pool: Pool, trials: Floats) -> Floats:
    """The rule over the trials that gave an answer; NaN where none did.

    >>> pooled(mean, np.array([[0.2, 0.4, np.nan], [0.4, np.nan, np.nan]])).round(2).tolist()
    [0.3, 0.4, nan]
    """
    said = ~np.isnan(trials)
    out = np.full(trials.shape[1], np.nan)
    patterns, code = np.unique(said, axis=1, return_inverse=True)
    for i, pattern in enumerate(patterns.T):
        if pattern.any():
            here = np.flatnonzero(code.ravel() == i)
            out[here] = pool(trials[np.ix_(pattern, here)])
    return out


def expected_brier(pool: Pool, examples: Examples, k: int) -> Floats:
    """Brier score of every target when k of its trials are taken, the exact mean over all choices of k.

    Trials that failed count as taken: what is left of a choice answers, and a choice without any answer is left out.
    """
    trials = examples.rows.trials
    total, count = np.zeros(len(examples)), np.zeros(len(examples))
    for choice in combinations(range(len(trials)), k):
        score = (pooled(pool, trials[list(choice)]) - examples.outcome) ** 2
        count += np.isfinite(score)
        total += np.nan_to_num(score)
    return np.divide(total, count, out=np.full(len(examples), np.nan), where=count > 0)


def endless_brier(examples: Examples) -> Floats:
    """Brier score of the mean of infinitely many trials, estimated without bias from the spread of those there are.

    The mean of k trials has the expected score (μ − o)² + σ²/k, so (p̄ − o)² − s²/K estimates what is left as k grows.
    NaN where fewer than two trials answered. A single target's estimate may be negative; averages may not be read
    without their interval.
    """
    trials = examples.rows.trials
    n = (~np.isnan(trials)).sum(axis=0)
    enough = n > 1
    held = np.where(np.isnan(trials), 0.0, trials)
    average = held.sum(axis=0) / np.maximum(n, 1)
    spread = np.where(np.isnan(trials), 0.0, (trials - average) ** 2).sum(axis=0) / np.maximum(n - 1, 1)
    return np.where(enough, (average - examples.outcome) ** 2 - spread / np.maximum(n, 1), np.nan)
