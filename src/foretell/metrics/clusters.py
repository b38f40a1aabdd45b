"""Clusters of dependent rows: labels become codes, and codes become cluster sums.

Horizons of one question, questions on one series and questions that resolve on one day move together. An error bar that
treats them as independent rows is too short, so every interval and test of the package starts from a `Clusters` value.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Bools, Floats, Ints, as_weights

FEW_CLUSTERS = 30
"""Below this many clusters a bootstrap interval is known to be too short (Cameron, Gelbach & Miller 2008)."""

DOMINANT_SHARE = 0.2
"""A cluster that holds more than this share of the rows dominates the result."""


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
        """Sum each column of `values` (rows × K) within each cluster; the result is n × K."""
        out = np.empty((self.n, values.shape[1]))
        for k in range(values.shape[1]):
            out[:, k] = np.bincount(self.codes, weights=values[:, k], minlength=self.n)
        return out

    @property
    def warning(self) -> str | None:
        """A sentence if the clusters are too few or too unequal for a trustworthy interval, else None."""
        sizes = self.sizes
        return cluster_warning(
            self.n, float(sizes.max()) / float(sizes.sum()), f"cluster {self.labels[int(sizes.argmax())]}"
        )


def cluster_warning(n_clusters: int, largest: float, name: str) -> str | None:
    """Return the warning for this many clusters, of which `name` holds the share `largest` of the rows."""
    doubts: list[str] = []
    if n_clusters < FEW_CLUSTERS:
        doubts.append(
            f"only {n_clusters} cluster{'s' * (n_clusters != 1)}: "
            f"intervals from fewer than {FEW_CLUSTERS} tend to be too short"
        )
    if largest > max(DOMINANT_SHARE, 2 / n_clusters):
        doubts.append(f"{name} holds {100 * largest:.0f} % of the rows and decides much of the result")
    return "; ".join(doubts) or None


def factorise(labels: npt.ArrayLike, name: str = "cluster") -> Clusters:
    """Codes 0..n-1 of one-dimensional labels, numbered by sorted label, so that row order does not matter.

    A missing label (NaN, NaT, None) raises, because rows of unknown cluster are not one big cluster.
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
    """Factorise integers in a short range without sorting: a table of those that occur gives their ranks."""
    shifted = (array - array.dtype.type(low)).astype(np.int64)
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[shifted] = True
    rank = np.cumsum(present) - 1
    labels = np.flatnonzero(present) + low
    return Clusters(codes=rank[shifted], n=len(labels), labels=labels)


def _factorise_objects(array: npt.NDArray[Any], name: str) -> Clusters:
    """Factorise text and mixed labels by hashing, which is many times faster than sorting every row."""
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


def cross_clusters(first: Clusters, second: Clusters) -> Clusters:
    """Return the cells of two partitions: rows share a cell if they share both clusters."""
    if len(first.codes) != len(second.codes):
        raise ValueError("first and second must have the same number of rows")
    return factorise(first.codes * second.n + second.codes, "cell")


# Cluster sums under resampling: the matrix product behind every bootstrap of the package.
#
# A statistic that is a function of sums over rows needs no row again once the rows are summed by cluster: a
# resample is a vector of counts, and its sums are counts @ sums.

DRAW_CHUNK = 1 << 22
"""Number of elements of the largest temporary array (32 MB as float64), so that memory stays flat as draws grow."""


def draw_sums(sums: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Column sums of `draws` resamples, with replacement, of the rows of `sums` (clusters × K): draws × K.

    Each resample takes as many clusters as there are (Efron 1979; clusters as in Davison & Hinkley 1997, 3.8).
    """
    out = np.empty((draws, sums.shape[1]))
    for part in _chunks(draws, len(sums)):
        out[part] = resample_counts(len(sums), part.stop - part.start, rng).astype(sums.dtype, copy=False) @ sums
    return out


def draw_crossed_sums(cells: Floats, first: Ints, second: Ints, draws: int, rng: np.random.Generator) -> Floats:
    """Column sums of `draws` pigeonhole resamples of a two-way table of cells (cells × K): draws × K.

    Both margins are resampled independently and a cell counts (draws of its row) × (draws of its column)
    times. This is mildly conservative for sums of two-way random effects (Owen 2007).

    `first[i]` and `second[i]` are the codes 0.. of the margins of cell i.
    """
    rows, columns = int(first.max()) + 1, int(second.max()) + 1
    out = np.empty((draws, cells.shape[1]))
    for part in _chunks(draws, max(len(cells), rows, columns)):
        size = part.stop - part.start
        by_row = resample_counts(rows, size, rng)
        by_column = resample_counts(columns, size, rng)
        out[part] = (by_row[:, first] * by_column[:, second]) @ cells
    return out


def resample_counts(n: int, draws: int, rng: np.random.Generator) -> Floats:
    """How often each of n units occurs in each of `draws` resamples of size n (exactly multinomial): draws × n."""
    picked = rng.integers(0, n, size=(draws, n))
    picked += np.arange(draws)[:, None] * n
    return np.bincount(picked.ravel(), minlength=draws * n).reshape(draws, n).astype(np.float64)


def _chunks(draws: int, width: int) -> Iterator[slice]:
    step = max(1, DRAW_CHUNK // width)
    for start in range(0, draws, step):
        yield slice(start, min(draws, start + step))


# How the rows of a score table hang together: what is resampled, what apart, and with which weight.


@dataclass(frozen=True, kw_only=True)
class ResamplingDesign:
    """Labels and weights of the rows, one entry per row; fields left out are not used."""

    cluster: npt.ArrayLike | None = None
    """Rows that share a label are resampled together; without it, every row is its own cluster."""
    crossed: npt.ArrayLike | None = None
    """A second margin, e.g. the resolution day besides the question: both are resampled (pigeonhole)."""
    stratum: npt.ArrayLike | None = None
    """Kinds (market, dataset) that are resampled separately; the overall number is the mean of their statistics."""
    weight: npt.ArrayLike | None = None

    def take(self, rows: Bools) -> "ResamplingDesign":
        """Return the design of the rows for which the mask is true."""

        def kept(labels: npt.ArrayLike | None) -> npt.ArrayLike | None:
            return None if labels is None else np.asarray(labels)[rows]

        return ResamplingDesign(
            cluster=kept(self.cluster),
            crossed=kept(self.crossed),
            stratum=kept(self.stratum),
            weight=kept(self.weight),
        )

    def strata(self, n: int) -> "list[ResamplingStratum]":
        """Return the strata of a table of n rows, in the order of their labels."""
        self.check(n)
        if self.stratum is None:
            return [self._stratum("", np.arange(n), n)]
        kinds = factorise(self.stratum, "stratum")
        return [
            self._stratum(str(label), np.flatnonzero(kinds.codes == code), n) for code, label in enumerate(kinds.labels)
        ]

    def check(self, n: int) -> None:
        """Raise unless every array given has one entry for each of n rows."""
        for name, labels in vars(self).items():
            if labels is not None and np.shape(labels)[:1] != (n,):
                raise ValueError(f"{name} has shape {np.shape(labels)}, expected ({n},)")

    def weights(self, n: int) -> Floats:
        """Return one weight per row, 1 if none was given."""
        return as_weights(self.weight, n)

    def columns(self, scores: Floats) -> Floats:
        """Weighted columns rows × K: (w·score, w) for plain scores (rows,); given columns (rows, K) unchanged."""
        if scores.ndim == 1:
            weight = self.weights(len(scores))
            return np.column_stack([weight * scores, weight])
        if scores.ndim != 2:
            raise ValueError(f"scores must be (rows,) or (rows, K), they have shape {scores.shape}")
        if self.weight is not None:
            raise ValueError("weight has no place beside scores of K columns: multiply the columns by it")
        return scores

    def _stratum(self, label: str, rows: Ints, n: int) -> "ResamplingStratum":
        labels = np.arange(n) if self.cluster is None else np.asarray(self.cluster)
        clusters = factorise(labels[rows])
        if self.crossed is None:
            return ResamplingStratum(label=label, rows=rows, units=clusters)
        second = factorise(np.asarray(self.crossed)[rows], "crossed")
        cells = cross_clusters(clusters, second)
        rows_of_cells = Clusters(codes=cells.labels // second.n, n=clusters.n, labels=clusters.labels)
        columns_of_cells = Clusters(codes=cells.labels % second.n, n=second.n, labels=second.labels)
        return ResamplingStratum(label=label, rows=rows, units=cells, margins=(rows_of_cells, columns_of_cells))


@dataclass(frozen=True, kw_only=True)
class ResamplingStratum:
    """Rows that are resampled separately: `units` are the clusters, or the cells if two margins are crossed."""

    label: str
    rows: Ints
    units: Clusters
    margins: tuple[Clusters, Clusters] | None = None
    """The two crossed partitions of the cells."""

    def draw(self, sums: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Sums over `draws` resamples of this stratum (draws × K) from its unit sums (units × K)."""
        if self.margins is None:
            return draw_sums(sums, draws, rng)
        first, second = self.margins
        return draw_crossed_sums(sums, first.codes, second.codes, draws, rng)

    def n_clusters(self, present: Bools) -> int:
        """Number of clusters with at least one unit in the mask; with two margins, that of the margin with fewer."""
        if self.margins is None:
            return int(present.sum())
        return min(len(np.unique(margin.codes[present])) for margin in self.margins)

    def warning(self, present: Bools) -> str | None:
        """Return a warning if an interval from the units in the mask is doubtful, else None."""
        if not present.any():
            return "no row answered by both"
        sizes = self.units.sizes * present
        largest, name = 0.0, ""
        for part in self.margins or (self.units,):
            held = np.bincount(part.codes, weights=sizes) if self.margins else sizes
            share = float(held.max() / held.sum())
            if share > largest:
                largest, name = share, part.labels[int(held.argmax())]
        message = cluster_warning(self.n_clusters(present), largest, f"cluster {name}")
        return f"{self.label}: {message}" if message and self.label else message
