"""Resamples of events: every number of every entry from one product of matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Interval, Resampling, brier_index_from_sums, mean_from_sums, summarise
from foretell.metrics.clusters import cluster_warning, resample_counts
from foretell.metrics.metric import ece_from_sums
from foretell.metrics.returns import sharpe_from_sums
from foretell.scoring.event_sums import CALIBRATION_BINS, COLUMN_INDEX, GAMMAS, SUM_COLUMNS

# The numbers of the leaderboard as functions of sums.


@dataclass(frozen=True, kw_only=True)
class ArenaMetric:
    """One number, how it is written, and which way is better."""

    name: str
    label: str
    meaning: str
    columns: tuple[str, ...]
    """What it is made of; always with the weight of all forecasts."""
    from_sums: Callable[[Floats], Floats]
    """Sums (…, all columns) → numbers (…); NaN where there is nothing to count."""
    low_is_better: bool = False
    decimals: int = 3


_ECE = (*(f"ece{b}" for b in range(CALIBRATION_BINS)), "n")
_SHARPE = ("return0", "square", "priced", "priced_square")
_NO = ("return0", "won_yes", "priced", "yes")


def _at(*names: str) -> list[int]:
    return [COLUMN_INDEX[name] for name in names]


def _mean(column: str, weight: str) -> Callable[[Floats], Floats]:
    places = _at(column, weight)
    return lambda sums: mean_from_sums(sums[..., places])


def _index(sums: Floats) -> Floats:
    return brier_index_from_sums(sums[..., _at("brier", "n")])


def _ece(sums: Floats) -> Floats:
    return ece_from_sums(sums[..., _at(*_ECE)])


def _sharpe(sums: Floats) -> Floats:
    """With the excess x = payoff − 1 over the dollar kept: Σwx and Σwx² from the sums of payoffs and squares."""
    paid, square, weight, weight_square = (sums[..., place] for place in _at(*_SHARPE))
    return sharpe_from_sums(np.stack([weight, paid - weight, square - 2 * paid + weight, weight_square], axis=-1))


def _no_side(sums: Floats) -> Floats:
    paid, won_yes, weight, yes = (sums[..., place] for place in _at(*_NO))
    return mean_from_sums(np.stack([paid - won_yes, weight - yes], axis=-1))


_RISK_NAMES = {0.0: "all in", 0.5: "half way", 1.0: "log wealth"}
ARENA_METRICS: dict[str, ArenaMetric] = {
    one.name: one
    for one in (
        ArenaMetric(
            name="brier",
            label="Brier",
            meaning="mean squared error of the probabilities; 0.25 is always-0.5",
            columns=("brier", "n"),
            from_sums=_mean("brier", "n"),
            low_is_better=True,
        ),
        ArenaMetric(
            name="bi",
            label="BI",
            meaning="Brier index 100·(1 − √Brier); 50 is always-0.5, 100 is perfect",
            columns=("brier", "n"),
            from_sums=_index,
            decimals=1,
        ),
        ArenaMetric(
            name="log",
            label="Log",
            meaning="mean log of the probability given to what happened, never less than 0.001; 0 is perfect",
            columns=("log", "n"),
            from_sums=_mean("log", "n"),
        ),
        ArenaMetric(
            name="ece",
            label="ECE",
            meaning="calibration error: mean gap of forecast and frequency over ten bins; 0 is perfect",
            columns=_ECE,
            from_sums=_ece,
            low_is_better=True,
        ),
        *(
            ArenaMetric(
                name=f"return{gamma:g}",
                label=f"Return γ={gamma:g}",
                meaning="worth of a dollar bet on each market at its asks, "
                f"risk aversion {gamma:g} ({_RISK_NAMES[gamma]}); "
                "1 is break-even",
                columns=("n", f"return{gamma:g}", "priced"),
                from_sums=_mean(f"return{gamma:g}", "priced"),
            )
            for gamma in GAMMAS
        ),
        *(
            ArenaMetric(
                name=f"net{gamma:g}",
                label=f"Net γ={gamma:g}",
                meaning=f"the same with risk aversion {gamma:g} after the platform's fees",
                columns=("n", f"net{gamma:g}", "priced"),
                from_sums=_mean(f"net{gamma:g}", "priced"),
            )
            for gamma in GAMMAS
        ),
        ArenaMetric(
            name="sharpe",
            label="Sharpe",
            meaning="mean over spread of the risk-neutral return above the dollar kept (R_b = 1)",
            columns=("n", *_SHARPE),
            from_sums=_sharpe,
        ),
        ArenaMetric(
            name="yes_side",
            label="Yes bets",
            meaning="what a dollar came to where the risk-neutral bettor bought Yes",
            columns=("n", "won_yes", "yes"),
            from_sums=_mean("won_yes", "yes"),
        ),
        ArenaMetric(
            name="no_side",
            label="No bets",
            meaning="what a dollar came to where the risk-neutral bettor bought No",
            columns=("n", *_NO),
            from_sums=_no_side,
        ),
    )
}
"""By name, in the order of the table."""
MAIN_METRIC = "brier"
"""Ranks the board."""


ARENA_RESAMPLING = Resampling(draws=1000)
Singles = npt.NDArray[np.float32]
MOST_BUNDLES = 300
"""Bundles that are resampled. More would take longer; the standard error itself is then known to 4 %."""


@dataclass(frozen=True, kw_only=True)
class ClusterBundles:
    """Clusters of events in the order and portions in which they are resampled."""

    order: Ints
    """Events, bundle after bundle."""
    starts: Ints
    cluster: Ints
    """Of every event, as codes 0.. ."""

    @classmethod
    def of(cls, cluster: Ints) -> "ClusterBundles":
        """Many clusters are merged into some hundred bundles of neighbours.

        Neighbours were listed at about the same time, so what makes one week harder than another stays together.
        """
        codes = np.unique(cluster, return_inverse=True)[1]
        n = int(codes.max()) + 1
        bundle = codes * MOST_BUNDLES // n if n > MOST_BUNDLES else codes
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
        gaps = cached_resample_counts(len(sums), resampling, stream) @ (sums - mean).astype(np.float32)
        return gaps + len(sums) * mean

    def present(self, answered: Bools) -> Ints:
        """By line of entries × events, in how many clusters anything was answered."""
        n = int(self.cluster.max()) + 1
        return np.array([np.count_nonzero(np.bincount(self.cluster, one, minlength=n)) for one in answered], np.int64)


@lru_cache(maxsize=16)
def cached_resample_counts(n: int, resampling: Resampling, stream: int) -> Singles:
    """How often each of n bundles occurs in each draw; every table of one report sees the same draws."""
    return resample_counts(n, resampling.draws, resampling.rng(stream)).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class ResampledSums:
    """Sums of some events, whole and resampled."""

    total: Floats
    """Entries × columns."""
    resampled: Floats
    """Draws × entries × columns; 0 in columns that were not asked for."""
    clusters: Ints
    """By entry, how many clusters of events stand behind its numbers."""
    resampling: Resampling

    def numbers(self, measure: ArenaMetric) -> tuple[Floats, Floats]:
        """Of every entry, and of every draw."""
        return measure.from_sums(self.total), measure.from_sums(self.resampled)

    def intervals(self, measure: ArenaMetric) -> list[Interval | None]:
        """Of every entry; None where the number does not exist."""
        return intervals_of(*self.numbers(measure), self.clusters, self.resampling)


def resample_sums(
    sums: Floats,
    cluster: Ints,
    resampling: Resampling = ARENA_RESAMPLING,
    *,
    columns: Sequence[str] = SUM_COLUMNS,
    stream: int = 0,
) -> ResampledSums:
    """Resample clusters of events; `sums` is entries × columns × events, `columns` names those of `SUM_COLUMNS`."""
    bundles, places = ClusterBundles.of(cluster), [COLUMN_INDEX[name] for name in columns]
    entries = len(sums)
    found = bundles.drawn(sums.reshape(entries * len(places), -1), resampling, stream)
    resampled = np.zeros((len(found), entries, len(SUM_COLUMNS)))
    resampled[:, :, places] = found.reshape(-1, entries, len(places))
    total = np.zeros((entries, len(SUM_COLUMNS)))
    total[:, places] = sums.sum(axis=2)
    clusters = bundles.present(sums[:, columns.index("n")] > 0)
    return ResampledSums(total=total, resampled=resampled, clusters=clusters, resampling=resampling)


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
        warning = cluster_warning(n, 0.0, "") if n else None
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


def weighted_mean_draws(
    parts: Sequence[ResampledSums], shares: Sequence[float], measure: ArenaMetric
) -> tuple[Floats, Floats]:
    """A number that is a weighted mean of the same number of several groups of events, and its draws."""
    numbers = [part.numbers(measure) for part in parts]
    weights = np.asarray(shares, np.float64) / sum(shares)
    estimate = np.tensordot(weights, np.stack([one for one, _ in numbers]), axes=1)
    draws = np.tensordot(weights, np.stack([one for _, one in numbers]), axes=1)
    return estimate, draws
