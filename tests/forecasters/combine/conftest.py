"""Synthetic rows and examples for the rules of this package."""

from collections.abc import Callable

import numpy as np
import pytest

from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.metrics.transforms import sigmoid

FIRST = np.datetime64("2025-01-05")


def rows_of(trials, **columns) -> TrialRows:
    trials = np.atleast_2d(np.asarray(trials, float))
    n = trials.shape[1]

    def column(name: str, default: object, kind: str) -> np.ndarray:
        return np.broadcast_to(np.asarray(columns.get(name, default), dtype=kind), n).copy()

    question = column("question", [f"q{i}" for i in range(n)], "U40")
    return TrialRows(
        trials=trials,
        question=question,
        due=FIRST + column("day", 0, "m8[D]"),
        target=column("target", "yes", "U20"),
        source=column("source", "fred", "U20"),
        subtype=column("subtype", "all", "U20"),
        kind=column("kind", "dataset", "U20"),
        horizon=column("horizon", np.nan, "f8"),
        price=column("price", np.nan, "f8"),
        prior=column("prior", np.nan, "f8"),
        cluster=question,
    )


def examples_of(trials, outcome, *, after: int = 7, weight: object = 1.0, **columns) -> Examples:
    rows = rows_of(trials, **columns)
    weights = np.broadcast_to(np.asarray(weight, float), len(rows)).copy()
    known_on = rows.due + np.timedelta64(after, "D")
    return Examples(rows=rows, outcome=np.asarray(outcome, float), known_on=known_on, weight=weights)


def world_of(n: int, *, seed: int = 0, sources: int = 3, trials: int = 5, rounds: int = 1) -> Examples:
    """Return synthetic questions with prices, sources with offsets, and noisy trials of an overconfident forecaster.

    About every third question has two rows, so that groups differ from rows.
    """
    rng = np.random.default_rng(seed)
    source = rng.integers(0, sources, n)
    truth = rng.normal(0, 1.2, n)
    stated = 1.6 * truth + rng.normal(0, 0.8, n) + (source - sources / 2) * 0.5
    return examples_of(
        sigmoid(stated + rng.normal(0, 0.6, (trials, n))),
        rng.random(n) < sigmoid(truth),
        question=[f"q{i}" for i in rng.integers(0, max(1, 2 * n // 3), n)],
        target=[f"t{i}" for i in range(n)],
        source=[f"source {s}" for s in source],
        price=np.where(source == 0, sigmoid(truth + rng.normal(0, 0.5, n)), np.nan),
        prior=np.where(source == 1, 0.4, np.nan),
        day=14 * rng.integers(0, rounds, n),
    )


@pytest.fixture(scope="session")
def make_rows() -> Callable[..., TrialRows]:
    return rows_of


@pytest.fixture(scope="session")
def make() -> Callable[..., Examples]:
    """Return a function that makes examples from trials and outcomes, with columns by name."""
    return examples_of


@pytest.fixture(scope="session")
def world() -> Callable[..., Examples]:
    return world_of
