"""Resamples of events: every number of every entry from one product of matrices."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from foretell.arena.standings.measures import Measure
from foretell.arena.standings.sums import AT, COLUMNS
from foretell.evaluate.arrays import Bools, Floats, Ints
from foretell.evaluate.bootstrap import Resampling, summarise
from foretell.evaluate.clusters import caution
from foretell.evaluate.intervals import Interval
from foretell.evaluate.resample import resample_counts

DRAWS = Resampling(draws=1000)
Singles = npt.NDArray[np.float32]
MOST = 300
"""Bundles that are resampled. More would take longer; the standard error itself is then known to 4 %."""


@dataclass(frozen=True, kw_only=True)
class Bundles:
    """Clusters of events in the order and portions in which they are resampled."""

    order: Ints
    """Events, bundle after bundle."""
    starts: Ints
    cluster: Ints
    """Of every event, as codes 0.. ."""

    @classmethod
    def of(cls, cluster: Ints) -> "Bundles":
        """Many clusters are merged into some hundred bundles of neighbours.

        Neighbours were listed at about the same time, so what makes one week harder than another stays together.
        """
        codes = np.unique(cluster, return_inverse=True)[1]
        n = int(codes.max()) + 1
        bundle = codes * MOST // n if n > MOST else codes
        order = np.argsort(bundle, kind="stable")
        return cls(order=order, starts=np.searchsorted(bundle[order], np.arange(int(bundle.max()) + 1)), cluster=codes)

    def sums(self, columns: Floats) -> Floats:
        """Bundles × columns out of columns × events."""
        sorted_already = bool((np.diff(self.order) == 1).all())
        return np.add.reduceat(columns if sorted_already else columns[:, self.order], self.starts, axis=1).T

    def drawn(self, columns: Floats, resampling: Resampling, stream: int = 0) -> Floats:
        """Draws × columns: sums of the columns over resampled bundles."""
        sums = self.sums(columns)
        mean = sums.mean(axis=0)
        # Deviations in single precision: a product of half the time, and what does not vary stays exact.
        gaps = counts_of(len(sums), resampling, stream) @ (sums - mean).astype(np.float32)
        return gaps + len(sums) * mean

    def present(self, answered: Bools) -> Ints:
        """By line of entries × events, in how many clusters anything was answered."""
        n = int(self.cluster.max()) + 1
        return np.array([np.count_nonzero(np.bincount(self.cluster, one, minlength=n)) for one in answered], np.int64)


@lru_cache(maxsize=16)
def counts_of(n: int, resampling: Resampling, stream: int) -> Singles:
    """How often each of n bundles occurs in each draw; every table of one report sees the same draws."""
    return resample_counts(n, resampling.draws, resampling.rng(stream)).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Sums of some events, whole and resampled."""

    total: Floats
    """Entries × columns."""
    resampled: Floats
    """Draws × entries × columns; 0 in columns that were not asked for."""
    clusters: Ints
    """By entry, how many clusters of events stand behind its numbers."""
    resampling: Resampling

    def numbers(self, measure: Measure) -> tuple[Floats, Floats]:
        """Of every entry, and of every draw."""
        return measure.from_sums(self.total), measure.from_sums(self.resampled)

    def intervals(self, measure: Measure) -> list[Interval | None]:
        """Of every entry; None where the number does not exist."""
        return intervals_of(*self.numbers(measure), self.clusters, self.resampling)


def draw(
    sums: Floats,
    cluster: Ints,
    resampling: Resampling = DRAWS,
    *,
    columns: Sequence[str] = COLUMNS,
    stream: int = 0,
) -> Drawn:
    """Resample clusters of events; `sums` is entries × columns × events, `columns` says which of `COLUMNS` they are."""
    bundles, places = Bundles.of(cluster), [AT[name] for name in columns]
    entries = len(sums)
    found = bundles.drawn(sums.reshape(entries * len(places), -1), resampling, stream)
    resampled = np.zeros((len(found), entries, len(COLUMNS)))
    resampled[:, :, places] = found.reshape(-1, entries, len(places))
    total = np.zeros((entries, len(COLUMNS)))
    total[:, places] = sums.sum(axis=2)
    clusters = bundles.present(sums[:, columns.index("n")] > 0)
    return Drawn(total=total, resampled=resampled, clusters=clusters, resampling=resampling)


def intervals_of(estimate: Floats, draws: Floats, clusters: Ints, resampling: Resampling) -> list[Interval | None]:
    """Numbers with their uncertainty from draws × numbers; None where one does not exist."""
    plain = resampling.interval == "percentile"
    whole = np.isfinite(draws).sum(axis=0) == (len(draws) if plain else -1)
    tail = (1 - resampling.level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0) if plain else (estimate, estimate)
    se = np.std(draws, axis=0, ddof=1)
    found: list[Interval | None] = []
    for i, number in enumerate(estimate.tolist()):
        if not np.isfinite(number):
            found.append(None)
            continue
        n = int(clusters[i])
        warning = caution(n, 0.0, "") if n else None
        if not whole[i]:
            found.append(summarise(number, draws[:, i], resampling, n_clusters=n, warning=warning))
            continue
        found.append(
            Interval(
                estimate=number,
                low=float(low[i]),
                high=float(high[i]),
                se=float(se[i]),
                n_clusters=n,
                draws=resampling.draws,
                warning=warning,
            )
        )
    return found


def weighed(parts: Sequence[Drawn], shares: Sequence[float], measure: Measure) -> tuple[Floats, Floats]:
    """A number that is a weighted mean of the same number of several groups of events, and its draws."""
    numbers = [part.numbers(measure) for part in parts]
    weights = np.asarray(shares, np.float64) / sum(shares)
    estimate = np.tensordot(weights, np.stack([one for one, _ in numbers]), axes=1)
    draws = np.tensordot(weights, np.stack([one for _, one in numbers]), axes=1)
    return estimate, draws
