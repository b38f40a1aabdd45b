"""Proper scores as Inspect scorers. What cannot be read is left out of the mean and counted by `answered`."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer
from inspect_ai.solver import TaskState

from foretell.inspect_tasks.samples import CLUSTER_KEY, outcomes_of, probabilities_in
from foretell.metrics import scores
from foretell.metrics.metric import LOG_FLOOR
from foretell.metrics.scores import brier_index as index_of
from foretell.models.structured_output import UnusableReply

# Metrics of forecasting for Inspect: the Brier index, and standard errors clustered by question.


@metric
def brier_index() -> Metric:
    """100·(1 − √Brier) of all samples together, never a mean of parts; 50 is always saying 0.5, higher is better."""

    def compute(scores: list[SampleScore]) -> float:
        values, _ = _values(scores)
        return float(index_of(float(np.mean(values)))) if len(values) else math.nan

    return compute


@metric
def brier_index_stderr(cluster: str = CLUSTER_KEY) -> Metric:
    """Of the Brier index, by the delta method: 100·se(Brier)/(2·√Brier)."""

    def compute(scores: list[SampleScore]) -> float:
        values, groups = _values(scores, cluster)
        mean = float(np.mean(values)) if len(values) else 0.0
        return 100 * clustered(values, groups) / (2 * math.sqrt(mean)) if mean > 0 else 0.0

    return compute


@metric
def clustered_stderr(cluster: str = CLUSTER_KEY) -> Metric:
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


def _values(scores: list[SampleScore], cluster: str = CLUSTER_KEY) -> tuple[Any, list[str]]:
    """Numbers with their clusters; what could not be scored is left out."""
    rows = [(score.score.as_float(), _cluster(score, cluster)) for score in scores]
    rows = [(value, group) for value, group in rows if math.isfinite(value)]
    return np.array([value for value, _ in rows]), [group for _, group in rows]


def _cluster(score: SampleScore, cluster: str) -> str:
    found = (score.sample_metadata or {}).get(cluster)
    return f"sample {score.sample_id}" if found is None else f"cluster {found}"


P = "p"
"""Where a score keeps the probabilities it read, by target."""
UNREADABLE = "unreadable_answer"


@scorer(metrics=[mean(), clustered_stderr(), brier_index(), brier_index_stderr()])
def brier() -> Scorer:
    """(p − outcome)², the mean over the targets of a sample; lower is better."""
    return _scored(lambda p, o: float(np.mean(scores.brier(p, o))))


@scorer(metrics=[mean(), clustered_stderr()])
def log_score() -> Scorer:
    """The logarithm of the probability given to what happened, at least 0.001; higher is better."""
    return _scored(lambda p, o: float(np.mean(scores.log_score(p, o, floor=LOG_FLOOR))))


@scorer(metrics=[mean()])
def answered() -> Scorer:
    """1 where there is a probability for every target, else 0: the completion rate."""

    async def score(state: TaskState, target: Target) -> Score:
        try:
            p, _ = read(state, target)
        except UnusableReply as problem:
            return Score(value=0.0, explanation=str(problem))
        return Score(value=1.0, answer=_shown(p), metadata={P: p})

    return score


def _scored(rule: Callable[[list[float], list[int]], float]) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        try:
            p, outcomes = read(state, target)
        except UnusableReply as problem:
            return Score.unscored(reason=UNREADABLE, explanation=str(problem))
        chosen = list(outcomes)
        value = rule([p[name] for name in chosen], [outcomes[name] for name in chosen])
        return Score(value=value, answer=_shown(p), metadata={P: p})

    return score


def read(state: TaskState, target: Target) -> tuple[dict[str, float], dict[str, int]]:
    """Probabilities and outcomes of a sample, or `UnusableReply`."""
    outcomes = outcomes_of(target.text)
    p = probabilities_in(state.output.completion, state.metadata)
    missing = outcomes.keys() - p.keys()
    if missing:
        raise UnusableReply(f"no probability for {min(missing)}")
    return p, outcomes


def _shown(p: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in p.items())
