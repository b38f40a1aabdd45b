"""Which rows belong together: labels become codes, codes become cluster sums.

Horizons of one question, questions on one series and questions that resolve on one day move together.
An error bar that takes them for independent rows is too short, so every interval and test of the package
starts from a `Clusters` value.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, Ints

FEW = 30
"""Below this many clusters a bootstrap interval is known to be too short (Cameron, Gelbach & Miller 2008)."""

DOMINANT = 0.2
"""A cluster that holds more than this share of the rows decides the result alone."""


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """A partition of rows: `codes[i]` in 0..n-1 is the cluster of row i, `labels[code]` its name."""

    codes: Ints
    n: int
    labels: npt.NDArray[Any]

    @property
    def sizes(self) -> Ints:
        """Number of rows in each cluster."""
        return np.bincount(self.codes, minlength=self.n).astype(np.int64)

    def sums(self, values: Floats) -> Floats:
        """Sum of each column of `values` (rows × K) within each cluster: an array n × K.

        >>> factorise(["a", "b", "a"]).sums(np.array([[1.0], [2.0], [3.0]])).tolist()
        [[4.0], [2.0]]
        """
        out = np.empty((self.n, values.shape[1]))
        for k in range(values.shape[1]):
            out[:, k] = np.bincount(self.codes, weights=values[:, k], minlength=self.n)
        return out

    @property
    def warning(self) -> str | None:
        """A sentence when the clusters are too few or too unequal for a trustworthy interval, else None."""
        sizes = self.sizes
        return caution(self.n, float(sizes.max()) / float(sizes.sum()), self.labels[int(sizes.argmax())])


def caution(n_clusters: int, largest: float, name: object) -> str | None:
    """The warning for that many clusters, of which `name` holds the share `largest` of the rows.

    >>> caution(12, 0.4, "2025-11-01")
    'only 12 clusters: intervals from fewer than 30 tend to be too short; cluster 2025-11-01 holds 40% of ...'
    >>> caution(300, 0.01, "q7") is None
    True
    """
    told: list[str] = []
    if n_clusters < FEW:
        told.append(
            f"only {n_clusters} cluster{'s' * (n_clusters != 1)}: intervals from fewer than {FEW} tend to be too short"
        )
    if largest > max(DOMINANT, 2 / n_clusters):
        told.append(f"cluster {name} holds {largest:.0%} of the rows and decides much of the result")
    return "; ".join(told) or None


def factorise(labels: npt.ArrayLike, name: str = "cluster") -> Clusters:
    """Codes 0..n-1 of one-dimensional labels, numbered by sorted label, so row order does not matter.

    A missing label (NaN, NaT, None) raises: rows of unknown cluster are not one big cluster.

    >>> factorise(["b", "a", "b"]).codes.tolist()
    [1, 0, 1]
    """
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be a non-empty one-dimensional array, it has shape {array.shape}")
    if array.dtype.kind in "OUST":
        return _factorise_objects(array, name)
    if (array.dtype.kind == "f" and np.isnan(array).any()) or (array.dtype.kind in "mM" and np.isnat(array).any()):
        raise ValueError(f"{name} has a missing label (NaN): give every row one")
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        if high - low < 4 * len(array) + 1000:
            return _factorise_dense(array, low, high)
    unique, codes = np.unique(array, return_inverse=True)
    return Clusters(codes=codes.astype(np.int64), n=len(unique), labels=unique)


def _factorise_dense(array: npt.NDArray[Any], low: int, high: int) -> Clusters:
    """Integers in a short range need no sort: a table of those that occur gives their ranks."""
    shifted = (array - array.dtype.type(low)).astype(np.int64)
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[shifted] = True
    rank = np.cumsum(present) - 1
    labels = np.flatnonzero(present) + low
    return Clusters(codes=rank[shifted], n=len(labels), labels=labels)


def _factorise_objects(array: npt.NDArray[Any], name: str) -> Clusters:
    """Text and mixed labels by hashing, many times faster than sorting every row."""
    seen: dict[Hashable, int] = {}
    first = np.fromiter((seen.setdefault(x, len(seen)) for x in array.tolist()), np.int64, len(array))
    if any(x is None or x != x for x in seen):
        raise ValueError(f"{name} has a missing label (None or NaN): give every row one")
    try:
        order: list[Any] = sorted(cast("dict[Any, int]", seen))
    except TypeError as error:
        raise ValueError(f"{name} mixes labels that cannot be ordered: {error}") from error
    rank = np.empty(len(seen), dtype=np.int64)
    rank[[seen[x] for x in order]] = np.arange(len(seen))
    return Clusters(codes=rank[first], n=len(seen), labels=np.array(order, dtype=array.dtype))


def connect(*labels: npt.ArrayLike) -> Clusters:
    """Rows that share any label, directly or through other rows, form one cluster.

    These are the connected components of the graph whose nodes are labels and whose edges are rows, e.g.
    `connect(question, series)` joins all questions asked about one series, in any round.

    >>> connect(["q1", "q1", "q2", "q3"], ["s1", "s2", "s2", "s3"]).codes.tolist()
    [0, 0, 0, 1]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if not labels:
        raise ValueError("connect needs at least one array of labels")
    parts = [factorise(part, f"labels[{i}]") for i, part in enumerate(labels)]
    rows = len(parts[0].codes)
    if any(len(part.codes) != rows for part in parts):
        raise ValueError("all label arrays must have the same length")
    offsets = np.cumsum([0, *(part.n for part in parts)])
    head = np.concatenate([parts[0].codes for _ in parts[1:]] or [parts[0].codes])
    tail = np.concatenate([part.codes + offsets[i] for i, part in enumerate(parts[1:], start=1)] or [parts[0].codes])
    nodes = int(offsets[-1])
    graph = coo_matrix((np.ones(len(head), dtype=np.int8), (head, tail)), shape=(nodes, nodes))
    _, component = connected_components(graph, directed=False)
    return factorise(np.asarray(component, dtype=np.int64)[parts[0].codes])


def cross(first: Clusters, second: Clusters) -> Clusters:
    """The cells of two partitions: rows share a cell when they share both clusters.

    >>> cross(factorise([0, 0, 1]), factorise([5, 5, 5])).codes.tolist()
    [0, 0, 1]
    """
    if len(first.codes) != len(second.codes):
        raise ValueError("first and second must have the same number of rows")
    return factorise(first.codes * second.n + second.codes, "cell")
