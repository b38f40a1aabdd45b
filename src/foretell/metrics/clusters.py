"""Clusters of dependent rows: labels become codes, and codes become cluster sums.

Horizons of one question, questions on one series and questions that resolve on one day move together. An error bar that
treats them as independent rows is too short, so every interval and test of the package starts from a `Clusters` value.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, as_weights

FEW_CLUSTERS = 30
"""Below this many clusters a bootstrap interval is known to be too short (Cameron, Gelbach & Miller 2008)."""

DOMINANT_SHARE = 0.2
"""A cluster with more than this share of the rows dominates the result."""


@frozen
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
        return cluster_warning(self.n, float(sizes.max()) / float(sizes.sum()), self.name_of(int(sizes.argmax())))

    def name_of(self, code: int) -> str:
        """Name a cluster in a warning; a number is the code of a label, which means nothing to a reader."""
        return "one cluster" if self.labels.dtype.kind in "iu" else f"cluster {self.labels[code]}"


def cluster_warning(n_clusters: int, largest: float, name: str) -> str | None:
    """Return the warning for this many clusters, of which `name` has the share `largest` of the rows."""
    doubts: list[str] = []
    if n_clusters < FEW_CLUSTERS:
        doubts.append(
            f"only {n_clusters} cluster{'s' * (n_clusters != 1)}: "
            f"intervals from fewer than {FEW_CLUSTERS} tend to be too short"
        )
    if largest > max(DOMINANT_SHARE, 2 / n_clusters):
        doubts.append(f"{name} has {100 * largest:.0f} % of the rows and dominates the result")
    return "; ".join(doubts) or None


def factorise(labels: npt.ArrayLike, name: str = "cluster") -> Clusters:
    """Codes 0..n-1 of one-dimensional labels, numbered by sorted label, so that row order does not matter.

    A missing label (NaN, NaT, None) raises, because rows of unknown cluster are not one cluster.
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
    codes: dict[Hashable, int] = {}
    first = np.fromiter((codes.setdefault(x, len(codes)) for x in array.tolist()), np.int64, len(array))
    if any(x is None or x != x for x in codes):
        raise ValueError(f"{name} has a missing label (None or NaN): give every row one")
    try:
        order: list[Any] = sorted(cast("dict[Any, int]", codes))
    except TypeError as error:
        raise ValueError(f"{name} mixes labels that cannot be ordered: {error}") from error
    rank = np.empty(len(codes), dtype=np.int64)
    rank[[codes[x] for x in order]] = np.arange(len(codes))
    return Clusters(codes=rank[first], n=len(codes), labels=np.array(order, dtype=array.dtype))


def distinct(codes: Ints) -> Ints:
    """Return the codes that occur, in ascending order; for integers several times as fast as `np.unique`."""
    rising = np.sort(codes)
    return rising[np.append(True, rising[1:] != rising[:-1])] if len(rising) else rising


def cross_clusters(first: Clusters, second: Clusters) -> Clusters:
    """Return the cells of two partitions: rows share a cell if they share both clusters."""
    if len(first.codes) != len(second.codes):
        raise ValueError("first and second must have the same number of rows")
    return factorise(first.codes * second.n + second.codes, "cell")


# Cluster sums under resampling: the matrix product behind every bootstrap of the package.
#
# A statistic that is a function of sums over rows can be computed from the sums by cluster: a resample is a vector of
# counts, and its sums are counts @ sums.

MAX_CLUSTERS = 500
"""More clusters than this are merged into this many bundles before resampling, so that draws stay cheap for
long tables; the standard error itself is then known to about 3 %."""


def bundle_clusters(codes: Ints, *, in_order: bool = False) -> Ints:
    """Codes 0.. of at most `MAX_CLUSTERS` bundles of clusters, given the codes 0.. of the clusters.

    Clusters whose codes are in time order are merged with their neighbours (`in_order`), which keeps
    the differences between weeks together. Otherwise they are merged at random: bundles of independent clusters are
    independent, so intervals stay valid, while merging neighbours in a file sorted by source would make them too wide.
    """
    n = int(codes.max()) + 1
    if n <= MAX_CLUSTERS:
        return codes
    if in_order:
        return codes * MAX_CLUSTERS // n
    return (np.random.default_rng(0).permutation(n) % MAX_CLUSTERS)[codes]


def merged_note(counts: Mapping[str, int], how: str = "at random") -> list[str]:
    """A sentence on the kinds of clusters that are merged before resampling, given the number of each; else none.

    >>> merged_note({"values of question": 2000, "values of day": 90})
    ['Merged at random into 500 clusters for resampling: 2,000 values of question.']
    """
    many = [f"{n:,} {name}" for name, n in counts.items() if n > MAX_CLUSTERS]
    return [f"Merged {how} into {MAX_CLUSTERS} clusters for resampling: {', '.join(many)}."] if many else []


def resample_counts(n: int, draws: int, rng: "np.random.Generator") -> Floats:
    """How often each of n units occurs in each of `draws` resamples of size n (exactly multinomial): draws × n."""
    picked = rng.integers(0, n, size=(draws, n))
    picked += np.arange(draws)[:, None] * n
    return np.bincount(picked.ravel(), minlength=draws * n).reshape(draws, n).astype(np.float64)


def effective_clusters(counts: Sequence[int], variances: Sequence[float]) -> int:
    """Effective number of clusters of a sum of independent parts, given the clusters and the variance of each part.

    The sum is only as certain as its least certain parts: one more than Satterthwaite's degrees of freedom (1946),
    which lie between those of the smallest part and their total. If a part has a single cluster, its uncertainty and
    so that of the sum is unknown, and the result is 1.

    >>> effective_clusters([40], [0.2]), effective_clusters([100, 4], [0.0, 1.0]), effective_clusters([100, 1], [1, 0])
    (40, 4, 1)
    """
    if min(counts) < 2:
        return 1
    spread = sum(variance**2 / (n - 1) for variance, n in zip(variances, counts, strict=True))
    # Rounded, because 39.00000000000001 and 38.99999999999999 degrees of freedom are both 39.
    return 1 + int(round(sum(variances) ** 2 / spread, 9)) if spread > 0 else sum(counts)


LEAST_DAYS = 10
"""With fewer days than this, days are not resampled in addition to the clusters."""


def share_days(cluster: Ints, day: Ints) -> bool:
    """Whether days must be resampled besides clusters, given codes of both: several clusters share a day.

    Events of one day affect all questions that resolve on it, but clusters by question alone would treat them as
    independent. With fewer than ten days, their variation cannot be estimated.
    """
    return number_of_shared_days(cluster, day) >= LEAST_DAYS


def number_of_shared_days(cluster: Ints, day: Ints) -> int:
    """The number of days, given codes of clusters and days; 0 if every day belongs to a single cluster."""
    width = int(cluster.max(initial=0)) + 1
    clusters_of_day = np.bincount(distinct(day * width + cluster) // width)
    return int(np.count_nonzero(clusters_of_day)) if int(clusters_of_day.max()) > 1 else 0


# How the rows of a score table depend on each other: clusters, strata and weights.


@frozen
class ResamplingDesign:
    """Labels and weights of the rows, one entry per row; fields left out are not used."""

    cluster: npt.ArrayLike | None = None
    """Rows that share a label are resampled together; without it, every row is its own cluster."""
    crossed: npt.ArrayLike | None = None
    """A second way of clustering, e.g. by the resolution day besides the question; the variances of both are added and
    that of their cells is subtracted (Cameron, Gelbach & Miller 2011)."""
    days: Mapping[str, Ints] = field(default_factory=dict[str, Ints])
    """Codes of days by name, −1 where a day is unknown. Without `crossed`, each stratum is crossed with the first of
    them that its clusters share (see `share_days`)."""
    stratum: npt.ArrayLike | None = None
    """Kinds (market, dataset) that are resampled separately; the overall number is the mean of their statistics."""
    weight: npt.ArrayLike | None = None
    in_order: bool = False
    """Whether clusters are in time order, so that too many of them are merged with their neighbours."""
    stream: int = 0
    """Random stream of the first stratum. The same clusters in the same stream have the same resamples."""

    def take(self, rows: Bools) -> "ResamplingDesign":
        """Return the design of the rows for which the mask is true."""
        columns = {name: np.asarray(labels)[rows] for name, labels in self._columns() if labels is not None}
        return replace(self, **columns, days={name: codes[rows] for name, codes in self.days.items()})

    def strata(self, n: int) -> "list[ResamplingStratum]":
        """Return the strata of a table of n rows, in the order of their labels."""
        self.check(n)
        if self.stratum is None:
            return [self._stratum("", np.arange(n), n, self.stream)]
        kinds = factorise(self.stratum, "stratum")
        return [
            self._stratum(str(label), np.flatnonzero(kinds.codes == code), n, self.stream + code)
            for code, label in enumerate(kinds.labels)
        ]

    def check(self, n: int) -> None:
        """Raise unless every array given has one entry for each of n rows."""
        for name, labels in (*self._columns(), *self.days.items()):
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
            raise ValueError("weight cannot be used with scores of K columns: multiply the columns by it")
        return scores

    def _columns(self) -> Iterator[tuple[str, npt.ArrayLike | None]]:
        for name in ("cluster", "crossed", "stratum", "weight"):
            yield name, getattr(self, name)

    def _stratum(self, label: str, rows: Ints, n: int, stream: int) -> "ResamplingStratum":
        labels = np.arange(n) if self.cluster is None else np.asarray(self.cluster)
        first = factorise(labels[rows])
        ways, days = [first], {} if self.crossed is not None else self._shared_days(first.codes, rows)
        day = next((name for name, shared in days.items() if shared >= LEAST_DAYS), "")
        if self.crossed is not None:
            ways.append(factorise(np.asarray(self.crossed)[rows], "crossed"))
        elif day:
            ways.append(factorise(self.days[day][rows], day))
        drawn, counts = [bundle_clusters(way.codes, in_order=self.in_order) for way in ways], [way.n for way in ways]
        if len(ways) > 1:
            cells = cross_clusters(*ways)
            drawn.append(bundle_clusters(cells.codes))
            counts.append(cells.n)
        return ResamplingStratum(
            label=label,
            rows=rows,
            ways=tuple(ways),
            drawn=tuple(map(factorise, drawn)),
            counts=tuple(counts),
            day=day,
            few_days=None if day else next(((n, name) for name, n in days.items() if n > 1), None),
            stream=stream,
        )

    def _shared_days(self, cluster: Ints, rows: Ints) -> dict[str, int]:
        """The number of days that the clusters of some rows share, by name."""
        known = {name: codes[rows] for name, codes in self.days.items() if (codes[rows] >= 0).all()}
        return {name: number_of_shared_days(cluster, codes) for name, codes in known.items()}


@frozen
class ResamplingStratum:
    """Rows that are resampled separately."""

    label: str
    rows: Ints
    ways: tuple[Clusters, ...]
    """The clusters of the rows; two partitions if two ways of clustering are crossed."""
    drawn: tuple[Clusters, ...]
    """What is resampled: the clusters, merged if they are many; of two ways, each of them and their cells."""
    counts: tuple[int, ...]
    """Number of clusters of each partition of `drawn` before they were merged."""
    day: str = ""
    """The name of the days that the clusters share, if they are the second way."""
    few_days: tuple[int, str] | None = None
    """The number and name of days that the clusters share, if these are too few to be the second way."""
    stream: int = 0
    """Random stream; strata with different streams are resampled independently."""

    def take(self, columns: Floats) -> Floats:
        """Return the stratum's rows of a table, which is not copied if they are all of it."""
        return columns if len(self.rows) == len(columns) else columns[self.rows]

    @property
    def n_clusters(self) -> int:
        """Number of clusters; of two ways, that of the way with fewer."""
        return min(way.n for way in self.ways)

    @property
    def days_warning(self) -> str | None:
        """A warning if clusters share days whose differences the intervals do not contain, else None."""
        if self.few_days is None:
            return None
        n, name = self.few_days
        return f"clusters share {n} days ({name}), too few to tell how much the days differ, so intervals leave it out"

    @property
    def warning(self) -> str | None:
        """A warning if an interval from these rows is doubtful, else None."""
        shares = [(float(way.sizes.max() / len(self.rows)), way) for way in self.ways]
        largest, way = max(shares, key=lambda pair: pair[0])
        few = cluster_warning(self.n_clusters, largest, way.name_of(int(way.sizes.argmax())))
        message = "; ".join(filter(None, (few, self.days_warning))) or None
        return f"{self.label}: {message}" if message and self.label else message
