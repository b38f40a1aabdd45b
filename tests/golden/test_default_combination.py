"""The default rule on real trials of real models, each round forecast from what was known before it."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.blf_study import OUT_OF_SAMPLE, TrialAssumptions, read_trial_tables

from foretell.forecasters.combine import (
    UNTAUGHT,
    ChainedMethod,
    DefaultMethod,
    Examples,
    HierarchicalPlatt,
    Shrink,
    rolling,
)
from foretell.metrics import Floats, brier_index

pytestmark = pytest.mark.shared_data

A, B = np.datetime64("2025-10-26"), np.datetime64("2025-11-09")
PAPER = ChainedMethod(methods=(Shrink(), HierarchicalPlatt()))
FROZEN = TrialAssumptions(price="freeze")
"""The price that was in the models' prompts, ten days old: nothing fresher than what the trials saw."""


@cache
def configurations(data: Path, known: TrialAssumptions) -> dict[str, Examples]:
    """Every configuration that answered all 791 events; the clairvoyant saw the future and is not a forecaster."""
    found = read_trial_tables(data / "tables", "ab_", known)
    return {
        name: examples
        for name, examples in found.items()
        if not np.isnan(examples.rows.raw).any() and "clairvoyant" not in name
    }


@cache
def by_default(data: Path, known: TrialAssumptions) -> dict[str, Floats]:
    """What the default rule makes of every configuration, each round from the rounds before it."""
    return {name: rolling(DefaultMethod(), examples).p for name, examples in configurations(data, known).items()}


def overall(p: Floats, examples: Examples, weight: Floats) -> Floats:
    """Mean of market and data-set index under each line of weights of the rows."""
    squared = (p - examples.outcome) ** 2
    market = examples.rows.kind == "market"
    kinds = [weight[:, k] @ squared[k] / weight[:, k].sum(axis=1) for k in (market, ~market)]
    return (brier_index(kinds[0]) + brier_index(kinds[1])) / 2


def gain(p: Floats, base: Floats, examples: Examples) -> tuple[float, float]:
    """Difference on round B, and its standard error over resampled questions."""
    now = examples.rows.due == B
    p, base, examples = p[now], base[now], examples.take(now)
    code = np.unique(examples.rows.cluster, return_inverse=True)[1]
    n, rng = code.max() + 1, np.random.default_rng(0)
    draws = np.stack([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(300)]).astype(np.float64)
    weight = np.vstack([np.ones(len(p)), draws[:, code]])
    apart = overall(p, examples, weight) - overall(base, examples, weight)
    return float(apart[0]), float(np.std(apart[1:]))


@pytest.mark.parametrize("known", [OUT_OF_SAMPLE, FROZEN], ids=["due-date price", "frozen price"])
def test_it_loses_to_no_raw_mean_by_more_than_noise(shared_data: Path, known: TrialAssumptions):
    found = configurations(shared_data, known)
    assert len(found) == 35
    for name, examples in found.items():
        difference, error = gain(by_default(shared_data, known)[name], examples.rows.raw, examples)
        assert difference > -1.96 * error, name


@pytest.mark.parametrize("known", [OUT_OF_SAMPLE, FROZEN], ids=["due-date price", "frozen price"])
def test_on_markets_it_is_nowhere_below_the_price(shared_data: Path, known: TrialAssumptions):
    for name, examples in configurations(shared_data, known).items():
        untaught = UNTAUGHT.probabilities(examples.rows)
        for p, due in ((untaught, A), (by_default(shared_data, known)[name], B)):
            now = (examples.rows.kind == "market") & ~np.isnan(examples.rows.price) & (examples.rows.due == due)
            of_price = (examples.rows.price - examples.outcome)[now] ** 2
            assert ((p - examples.outcome)[now] ** 2).mean() <= of_price.mean(), (name, due)


@pytest.mark.parametrize("known", [OUT_OF_SAMPLE, FROZEN], ids=["due-date price", "frozen price"])
def test_it_beats_the_papers_combination_by_far_more_than_half_a_point(shared_data: Path, known: TrialAssumptions):
    """Shrinkage and hierarchical Platt given the same past, the same prices and the same base rates."""
    ours = by_default(shared_data, known)
    gains = [
        gain(ours[name], rolling(PAPER, examples).p, examples)[0]
        for name, examples in configurations(shared_data, known).items()
    ]
    assert np.mean(gains) > 1.2
