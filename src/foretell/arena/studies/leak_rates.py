"""Shares with honest intervals, and the table of kept and dropped against clean and leak."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.evaluate.clusters import caution, factorise
from foretell.evaluate.reliability import wilson_interval

Decision = Literal["kept", "dropped"]
Word = Literal["clean", "leak", "undecided"]
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How many of how many, with two 95 % intervals: rows taken as independent, and whole questions."""

    count: int
    n: int
    share: float
    """NaN where there is nothing to count."""
    low: float
    high: float
    """Wilson (1927), as if every row stood alone."""
    cluster_low: float
    cluster_high: float
    """Wilson on the effective number of rows: what belongs to one question counts together."""
    n_clusters: int
    warning: str | None = None


def rate(hits: Sequence[bool], clusters: Sequence[str]) -> Rate:
    """The share of hits, its Wilson interval, and one that knows which rows belong together.

    The second is Wilson's on n_eff = n / max(1, deff) · (z / t)², with deff = v / (p(1 − p)/n) from the linearised
    variance v = C/(C−1) · Σ_c (x_c − p·m_c)² / n² over C clusters, and t of C − 1 degrees of freedom (Korn & Graubard
    1998). Where no row or every row hits there is no variance to see: then n_eff = C, the most careful choice.

    >>> found = rate([True] + [False] * 9, ["a"] * 2 + ["b"] * 2 + ["c"] * 2 + ["d"] * 2 + ["e"] * 2)
    >>> found.count, round(found.low, 3), round(found.high, 3), round(found.cluster_high, 3)
    (1, 0.018, 0.404, 0.559)
    """
    if not hits:
        return empty_rate()
    x = np.asarray(hits, dtype=np.float64)
    groups = factorise(list(clusters))
    p = float(x.mean())
    low, high = wilson_interval([p], [len(x)], LEVEL)
    sums = groups.sums(np.column_stack([x, np.ones(len(x))]))
    around = wilson_interval([p], [effective_count(sums)], LEVEL)
    largest = int(groups.sizes.argmax())
    return Rate(
        count=int(x.sum()),
        n=len(x),
        share=p,
        low=float(low[0]),
        high=float(high[0]),
        cluster_low=float(around[0][0]),
        cluster_high=float(around[1][0]),
        n_clusters=groups.n,
        warning=caution(groups.n, float(groups.sizes[largest]) / len(x), groups.labels[largest]),
    )


def empty_rate() -> Rate:
    """Nothing was counted, so anything is possible."""
    return Rate(count=0, n=0, share=np.nan, low=0.0, high=1.0, cluster_low=0.0, cluster_high=1.0, n_clusters=0)


def effective_count(sums: Floats) -> float:
    """How many independent rows the hits and rows by cluster (clusters × 2) are worth, between 1 and n at most.

    >>> effective_count(np.array([[0.0, 4.0], [0.0, 6.0]]))
    2.0
    """
    from scipy.special import ndtri, stdtrit

    count = len(sums)
    hits, n = float(sums[:, 0].sum()), float(sums[:, 1].sum())
    p = hits / n
    if count < 2 or p in (0.0, 1.0):
        return float(min(count, n))
    variance = count / (count - 1) * float(np.sum((sums[:, 0] - p * sums[:, 1]) ** 2)) / n**2
    design = max(1.0, variance / (p * (1 - p) / n))
    tail = (1 + LEVEL) / 2
    return max(1.0, n / design * float(ndtri(tail) / stdtrit(count - 1, tail)) ** 2)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Verdicts counted. What could not be decided is never counted as clean."""

    clean: int = 0
    leak: int = 0
    undecided: int = 0

    @property
    def n(self) -> int:
        """All of them."""
        return self.clean + self.leak + self.undecided


def tally(words: Iterable[Word]) -> Tally:
    """Count verdicts.

    >>> tally(["clean", "leak", "clean"])
    Tally(clean=2, leak=1, undecided=0)
    """
    found = list(words)
    return Tally(clean=found.count("clean"), leak=found.count("leak"), undecided=found.count("undecided"))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One text: what the fence did with it, what the auditor says, and the question it belongs to."""

    decision: Decision
    word: Word
    cluster: str


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """What the fence did against what the auditor says."""

    kept: Tally
    dropped: Tally
    undetected: Rate
    """Leaks among the texts that were kept and could be decided."""
    undetected_at_most: float
    """The same share if everything undecided were a leak."""
    recall: Rate
    """Leaks that were dropped, among all leaks."""
    false_drops: Rate
    """Clean texts that were dropped, among all clean texts."""


def matrix(judged: Sequence[Judged]) -> Matrix:
    """Counts and rates of judged texts.

    >>> found = matrix([Judged(decision="kept", word="leak", cluster="q")])
    >>> found.undetected.share, found.recall.share
    (1.0, 0.0)
    """
    kept = tally(one.word for one in judged if one.decision == "kept")
    return Matrix(
        kept=kept,
        dropped=tally(one.word for one in judged if one.decision == "dropped"),
        undetected=_rate([one for one in judged if one.decision == "kept" and one.word != "undecided"], word="leak"),
        undetected_at_most=(kept.leak + kept.undecided) / kept.n if kept.n else np.nan,
        recall=_rate([one for one in judged if one.word == "leak"], decision="dropped"),
        false_drops=_rate([one for one in judged if one.word == "clean"], decision="dropped"),
    )


def _rate(rows: Sequence[Judged], **hit: str) -> Rate:
    hits = [all(getattr(one, name) == value for name, value in hit.items()) for one in rows]
    return rate(hits, [one.cluster for one in rows])
