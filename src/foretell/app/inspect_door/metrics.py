"""Metrics of forecasting for Inspect: the Brier index, and standard errors clustered by question."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, metric

from foretell.app.inspect_door.asked import CLUSTER
from foretell.evaluate.proper import brier_index as index_of


@metric
def brier_index() -> Metric:
    """100·(1 − √Brier) of all samples together, never a mean of parts; 50 is always saying 0.5, higher is better."""

    def compute(scores: list[SampleScore]) -> float:
        values, _ = _values(scores)
        return float(index_of(float(np.mean(values)))) if len(values) else math.nan

    return compute


@metric
def brier_index_stderr(cluster: str = CLUSTER) -> Metric:
    """Of the Brier index, by the delta method: 100·se(Brier)/(2·√Brier)."""

    def compute(scores: list[SampleScore]) -> float:
        values, groups = _values(scores, cluster)
        mean = float(np.mean(values)) if len(values) else 0.0
        return 100 * clustered(values, groups) / (2 * math.sqrt(mean)) if mean > 0 else 0.0

    return compute


@metric
def clustered_stderr(cluster: str = CLUSTER) -> Metric:
    """Standard error of the mean where samples of one cluster rise and fall together.

    The cluster is taken from the sample's metadata; a sample without one is a cluster of its own.
    """

    def compute(scores: list[SampleScore]) -> float:
        return clustered(*_values(scores, cluster))

    return compute


def clustered(values: Sequence[float] | Any, groups: Sequence[str]) -> float:
    """√(C/(C−1)·Σ_c(Σ_{i∈c}(x_i − x̄))²)/n, the cluster-robust error of a mean (Liang and Zeger 1986).

    >>> round(clustered([0.0, 0.2, 0.4, 0.6], ["a", "a", "b", "b"]), 4)
    0.2
    """
    x = np.asarray(values, dtype=np.float64)
    _, codes = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    count = int(codes.max()) + 1 if len(x) else 0
    if count < 2:
        return 0.0
    sums = np.bincount(codes, weights=x - x.mean())
    return float(math.sqrt(count / (count - 1) * float(np.sum(sums**2))) / len(x))


def _values(scores: list[SampleScore], cluster: str = CLUSTER) -> tuple[Any, list[str]]:
    """Numbers with their clusters; what could not be scored is left out."""
    rows = [(score.score.as_float(), _cluster(score, cluster)) for score in scores]
    rows = [(value, group) for value, group in rows if math.isfinite(value)]
    return np.array([value for value, _ in rows]), [group for _, group in rows]


def _cluster(score: SampleScore, cluster: str) -> str:
    found = (score.sample_metadata or {}).get(cluster)
    return f"sample {score.sample_id}" if found is None else f"cluster {found}"
