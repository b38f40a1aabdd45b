"""Every entry against every other on what both answered, in the same resamples of events."""

from collections.abc import Sequence

import numpy as np

from foretell.arena.standings.board import Scored
from foretell.arena.standings.drawing import Bundles, intervals_of
from foretell.evaluate.arrays import Floats
from foretell.evaluate.bootstrap import mean_from_sums
from foretell.evaluate.compare import PairwiseMatrix
from foretell.evaluate.significance import Comparison, comparison_of

Pair = tuple[int, int]


def pair_matrix(scored: Scored, of: Sequence[int] | None = None) -> PairwiseMatrix:
    """Brier score of the row minus that of the column, event by event; below 0 the row is better.

    Of all entries, or of those at some places in that order. `n` counts the events both answered, NaN where there is
    none.
    """
    chosen = list(range(len(scored.standings.entries)) if of is None else of)
    size = len(chosen)
    places = [(a, b) for a in range(size) for b in range(a + 1, size)]
    compared = compare_pairs(scored, [(chosen[a], chosen[b]) for a, b in places])
    found = dict(zip(places, compared.values(), strict=True))
    diff, se, low, high = (np.zeros((size, size)) for _ in range(4))
    p, n = np.ones((size, size)), np.zeros((size, size), np.int64)
    np.fill_diagonal(n, (scored.sums.moments[chosen] > 0).sum(axis=1))
    for (a, b), one in found.items():
        diff[a, b], diff[b, a] = one.diff, -one.diff
        low[a, b], high[a, b], low[b, a], high[b, a] = one.low, one.high, -one.high, -one.low
        se[a, b] = se[b, a] = one.se
        p[a, b] = p[b, a] = one.p
        n[a, b] = n[b, a] = one.n
    return PairwiseMatrix(diff=diff, se=se, low=low, high=high, p=p, n=n)


def versus(scored: Scored, reference: str) -> dict[str, Comparison]:
    """Brier score of every other entry minus that of the reference; below 0 the entry is better."""
    names = scored.standings.names
    at = names.index(reference)
    found = compare_pairs(scored, [(i, at) for i in range(len(names)) if i != at])
    return {names[i]: one for (i, _), one in found.items() if one.n}


def compare_pairs(scored: Scored, pairs: Sequence[Pair]) -> dict[Pair, Comparison]:
    """Differences of Brier scores on the markets both answered, events resampled; `n` counts the events."""
    gaps, weights = _differences(scored, pairs)
    bundles = Bundles.of(scored.standings.events.cluster)
    drawn = bundles.drawn(np.vstack([gaps, weights]), scored.resampling)
    draws = mean_from_sums(np.stack([drawn[:, : len(pairs)], drawn[:, len(pairs) :]], axis=2))
    estimate = mean_from_sums(np.stack([gaps.sum(axis=1), weights.sum(axis=1)], axis=1))
    clusters = bundles.present(weights > 0)
    found: dict[Pair, Comparison] = {}
    intervals = intervals_of(estimate, draws, clusters, scored.resampling)
    shared = (weights > 0).sum(axis=1)
    for k, (pair, interval) in enumerate(zip(pairs, intervals, strict=True)):
        if interval is None:
            nan = float("nan")
            found[pair] = Comparison(
                diff=nan, se=nan, low=nan, high=nan, p=nan, p_two_sided=nan, stars="", n=0, n_clusters=0
            )
        else:
            found[pair] = comparison_of(interval, draws[:, k], int(shared[k]))
    return found


def _differences(scored: Scored, pairs: Sequence[Pair]) -> tuple[Floats, Floats]:
    """Pairs × events: the weighted difference on what both answered, and its weight."""
    shape = (len(pairs), len(scored.standings.events))
    gaps, weights = np.empty(shape), np.empty(shape)
    for k, (i, j) in enumerate(pairs):
        gaps[k], weights[k] = scored.moments.difference(i, j)
    return gaps, weights
