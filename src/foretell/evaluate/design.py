"""How the rows of a score table hang together: what is resampled, what apart, and with which weight."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Bools, Floats, Ints, as_weights
from foretell.evaluate.clusters import Clusters, caution, cross, factorise
from foretell.evaluate.resample import draw_crossed_sums, draw_sums


@dataclass(frozen=True, kw_only=True)
class Design:
    """Labels and weights of the rows, one entry per row; what is left out is not used."""

    cluster: npt.ArrayLike | None = None
    """Rows that share a label are resampled together; without it every row stands alone."""
    crossed: npt.ArrayLike | None = None
    """A second margin, e.g. the resolution day beside the question: both are resampled (pigeonhole)."""
    stratum: npt.ArrayLike | None = None
    """Kinds (market, dataset) resampled apart; the overall number is the mean of their statistics."""
    weight: npt.ArrayLike | None = None

    def take(self, rows: Bools) -> "Design":
        """The design of the rows where the mask is true."""

        def kept(labels: npt.ArrayLike | None) -> npt.ArrayLike | None:
            return None if labels is None else np.asarray(labels)[rows]

        return Design(
            cluster=kept(self.cluster),
            crossed=kept(self.crossed),
            stratum=kept(self.stratum),
            weight=kept(self.weight),
        )

    def strata(self, n: int) -> "list[Stratum]":
        """The strata of a table of n rows, in the order of their labels.

        >>> [s.label for s in Design(stratum=["m", "d", "m"]).strata(3)]
        ['d', 'm']
        """
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
        """One weight per row, 1 where none was given."""
        return as_weights(self.weight, n)

    def columns(self, scores: Floats) -> Floats:
        """Weighted columns rows × K: (w·score, w) of plain scores (rows,), given columns (rows, K) as they are."""
        if scores.ndim == 1:
            weight = self.weights(len(scores))
            return np.column_stack([weight * scores, weight])
        if scores.ndim != 2:
            raise ValueError(f"scores must be (rows,) or (rows, K), they have shape {scores.shape}")
        if self.weight is not None:
            raise ValueError("weight has no place beside scores of K columns: multiply the columns by it")
        return scores

    def _stratum(self, label: str, rows: Ints, n: int) -> "Stratum":
        labels = np.arange(n) if self.cluster is None else np.asarray(self.cluster)
        clusters = factorise(labels[rows])
        if self.crossed is None:
            return Stratum(label=label, rows=rows, units=clusters)
        second = factorise(np.asarray(self.crossed)[rows], "crossed")
        cells = cross(clusters, second)
        rows_of_cells = Clusters(codes=cells.labels // second.n, n=clusters.n, labels=clusters.labels)
        columns_of_cells = Clusters(codes=cells.labels % second.n, n=second.n, labels=second.labels)
        return Stratum(label=label, rows=rows, units=cells, margins=(rows_of_cells, columns_of_cells))


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """Rows resampled on their own: `units` are the clusters, or the cells when two margins are crossed."""

    label: str
    rows: Ints
    units: Clusters
    margins: tuple[Clusters, Clusters] | None = None
    """The two crossed partitions, of the cells."""

    def draw(self, sums: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Sums over `draws` resamples of this stratum (draws × K) from its unit sums (units × K)."""
        if self.margins is None:
            return draw_sums(sums, draws, rng)
        first, second = self.margins
        return draw_crossed_sums(sums, first.codes, second.codes, draws, rng)

    def n_clusters(self, present: Bools) -> int:
        """Clusters with at least one unit in the mask; with two margins, those of the shorter one."""
        if self.margins is None:
            return int(present.sum())
        return min(len(np.unique(margin.codes[present])) for margin in self.margins)

    def warning(self, present: Bools) -> str | None:
        """What makes an interval from the units in the mask doubtful, or None."""
        if not present.any():
            return "no row answered by both"
        sizes = self.units.sizes * present
        largest, name = 0.0, ""
        for part in self.margins or (self.units,):
            held = np.bincount(part.codes, weights=sizes) if self.margins else sizes
            share = float(held.max() / held.sum())
            if share > largest:
                largest, name = share, part.labels[int(held.argmax())]
        told = caution(self.n_clusters(present), largest, name)
        return f"{self.label}: {told}" if told and self.label else told
