"""The default rule on published trials of real models, each round forecast from what was known before it."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.blf_study import OUT_OF_SAMPLE, TrialAssumptions, read_trial_tables

from foretell.forecasters.combine.calibration import HierarchicalPlatt
from foretell.forecasters.combine.crossfit import rolling
from foretell.forecasters.combine.default import UNFITTED, DefaultMethod
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.combine.rules import ChainedMethod
from foretell.forecasters.combine.shrink import Shrink
from foretell.metrics import Floats, brier_index

pytestmark = pytest.mark.shared_data

A, B = np.datetime64("2025-10-26"), np.datetime64("2025-11-09")
PAPER = ChainedMethod(methods=(Shrink(), HierarchicalPlatt()))
FROZEN = TrialAssumptions(price="freeze")
"""The price in the models' prompts, which was ten days old."""


@cache
def configurations(data: Path, known: TrialAssumptions) -> dict[str, Examples]:
    """Return all filtered configurations that answered all 791 events."""
    trial_tables = read_trial_tables(data / "tables", "ab_", known)
    return {
        name: examples
        for name, examples in trial_tables.items()
        if not np.isnan(examples.rows.raw).any() and "clairvoyant" not in name
    }


@cache
def by_default(data: Path, known: TrialAssumptions) -> dict[str, Floats]:
    """Return the default rule's forecasts for every configuration, each round from the rounds before it."""
    return {name: rolling(DefaultMethod(), examples).p for name, examples in configurations(data, known).items()}


def overall(p: Floats, examples: Examples, weight: Floats) -> Floats:
    """Return the mean of market and data-set index for each row of weights."""
    squared = (p - examples.outcome) ** 2
    market = examples.rows.kind == "market"
    kinds = [weight[:, k] @ squared[k] / weight[:, k].sum(axis=1) for k in (market, ~market)]
    return (brier_index(kinds[0]) + brier_index(kinds[1])) / 2


def gain(p: Floats, base: Floats, examples: Examples) -> tuple[float, float]:
    """Return the difference on round B, and its standard error over resampled questions."""
    now = examples.rows.due == B
    p, base, examples = p[now], base[now], examples.take(now)
    code = np.unique(examples.rows.cluster, return_inverse=True)[1]
    n, rng = code.max() + 1, np.random.default_rng(0)
    draws = np.stack([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(300)]).astype(np.float64)
    weight = np.vstack([np.ones(len(p)), draws[:, code]])
    apart = overall(p, examples, weight) - overall(base, examples, weight)
    return float(apart[0]), float(np.std(apart[1:]))


@pytest.mark.parametrize("known", [OUT_OF_SAMPLE, FROZEN], ids=["due-date price", "frozen price"])
def test_default_rule_is_not_significantly_worse_than_any_raw_mean(shared_data: Path, known: TrialAssumptions):
    examples_by_name = configurations(shared_data, known)
    assert len(examples_by_name) == 35
    for name, examples in examples_by_name.items():
        difference, error = gain(by_default(shared_data, known)[name], examples.rows.raw, examples)
        assert difference > -1.96 * error, name


@pytest.mark.parametrize("known", [OUT_OF_SAMPLE, FROZEN], ids=["due-date price", "frozen price"])
def test_default_rule_on_markets_gains_on_the_price(shared_data: Path, known: TrialAssumptions):
    """On average and for most configurations. The worst lose 0.002 in Brier score.

    Before there is a record the trials count 0.2, so trials that are worse than noise make a price worse: against the
    frozen price, two of the 70 lose beyond noise, single trials without a belief. Seventeen gain beyond noise.
    """
    gains, errors = dict[tuple[str, np.datetime64], float](), dict[tuple[str, np.datetime64], float]()
    for name, examples in configurations(shared_data, known).items():
        unfitted = UNFITTED.probabilities(examples.rows)
        for p, due in ((unfitted, A), (by_default(shared_data, known)[name], B)):
            now = (examples.rows.kind == "market") & ~np.isnan(examples.rows.price) & (examples.rows.due == due)
            of_price = (examples.rows.price - examples.outcome)[now] ** 2
            each = of_price - (p - examples.outcome)[now] ** 2
            gains[name, due] = float(each.mean())
            cluster = np.unique(examples.rows.cluster[now], return_inverse=True)[1]
            errors[name, due] = float(np.linalg.norm(np.bincount(cluster, each - each.mean())) / len(each))
    assert all(np.mean([gain for (_, due), gain in gains.items() if due == day]) > 3e-4 for day in (A, B))
    assert np.mean(np.array([*gains.values()]) > 0) > 2 / 3
    assert min(gains.values()) > -0.0022
    clear = [gains[key] / errors[key] for key in gains if abs(gains[key]) > 1.96 * errors[key]]
    assert sum(z > 0 for z in clear) > 5 * sum(z < 0 for z in clear)


@pytest.mark.parametrize("known", [OUT_OF_SAMPLE, FROZEN], ids=["due-date price", "frozen price"])
def test_default_rule_beats_the_combination_of_the_paper(shared_data: Path, known: TrialAssumptions):
    """Shrinkage and hierarchical Platt given the same past, the same prices and the same base rates."""
    ours = by_default(shared_data, known)
    gains = [
        gain(ours[name], rolling(PAPER, examples).p, examples)[0]
        for name, examples in configurations(shared_data, known).items()
    ]
    assert np.mean(gains) > 1.2
