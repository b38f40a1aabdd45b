"""The engine behind every leaderboard: sums of columns by unit → resamples → metrics with their intervals.

Every metric is a function of sums (see `metrics.metric`). The caller has rows (from a file, a run or a year of an
arena) and sums the columns of each forecaster by the units to be resampled. The engine draws the units once for all
forecasters and metrics, and computes every metric from the drawn sums. Files and runs come as a `ForecastTable`, cut
into layers and blocks of targets; arenas bring sums by event that they can extend as new results come in
(`scoring.event_sums`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import (
    UNBOUNDED,
    Bounds,
    Interval,
    Resampling,
    expanded_level,
    mean_from_sums,
    reach_out,
    student_margin,
    summarise,
)
from foretell.metrics.clusters import (
    FEW_CLUSTERS,
    ResamplingDesign,
    ResamplingStratum,
    cluster_warning,
    resample_counts,
)
from foretell.metrics.comparison import Comparison, comparison_of
from foretell.metrics.metric import Metric
from foretell.questions.errors import InputError
from foretell.scoring.table import OVERALL, ForecastTable, Labels, Targets, metric_rows

MAX_CLUSTERS = 500
"""More clusters than this are merged into this many bundles before resampling, so that draws stay cheap however long
the table is; the standard error itself is then known to about 3 %."""


def bundle_clusters(codes: Ints, *, in_order: bool = False) -> Ints:
    """Codes 0.. of at most `MAX_CLUSTERS` bundles of clusters, given the codes 0.. of the clusters.

    Clusters whose codes are in time order are merged with their neighbours (`in_order`), which keeps together what
    makes one week harder than another. Otherwise they are merged at random: bundles of independent clusters are
    independent, so intervals stay valid, while merging neighbours in a file sorted by source would make them too wide.
    """
    n = int(codes.max()) + 1
    if n <= MAX_CLUSTERS:
        return codes
    if in_order:
        return codes * MAX_CLUSTERS // n
    return (np.random.default_rng(0).permutation(n) % MAX_CLUSTERS)[codes]


@lru_cache(maxsize=16)
def cached_resample_counts(n: int, resampling: Resampling, stream: int) -> npt.NDArray[np.float32]:
    """How often each of n units occurs in each draw; every table of one report sees the same draws."""
    return resample_counts(n, resampling.draws, resampling.rng(stream)).astype(np.float32)


def resample_units(sums: Floats, resampling: Resampling, stream: int = 0) -> Floats:
    """Sums over resampled units (draws × columns), from the sums of each unit (units × columns)."""
    mean = sums.mean(axis=0)
    # Deviations in single precision: a product of half the time, and what does not vary stays exact.
    gaps = cached_resample_counts(len(sums), resampling, stream) @ (sums - mean).astype(np.float32)
    return gaps + len(sums) * mean


# What stands behind a number, and the number with its draws.


@dataclass(frozen=True, kw_only=True)
class Support:
    """The amount of data behind a number."""

    n: int
    questions: int
    n_clusters: int
    warning: str | None = None

    @classmethod
    def of(cls, parts: Sequence["Support"], variances: Sequence[float]) -> "Support":
        """Combine the support of independent parts of a sum, given the variance of each.

        The sum is only as certain as its least certain parts: Satterthwaite's degrees of freedom (1946), which lie
        between those of the smallest part and their total. If one part has a single cluster, the uncertainty of the sum
        is as unknown as that of the part.
        """
        counts = [part.n_clusters for part in parts]
        n_clusters = sum(counts)
        if min(counts) < 2:
            n_clusters = 1
        elif sum(variances) > 0:
            spread = sum(v**2 / (n - 1) for v, n in zip(variances, counts, strict=True))
            n_clusters = 1 + int(sum(variances) ** 2 / spread)
        uneven = [part.warning for part in parts if part.warning and part.n_clusters >= FEW_CLUSTERS]
        return cls(
            n=sum(part.n for part in parts),
            questions=sum(part.questions for part in parts),
            n_clusters=n_clusters,
            warning="; ".join(filter(None, [cluster_warning(n_clusters, 0.0, ""), *uneven])) or None,
        )


@dataclass(frozen=True, kw_only=True)
class MetricDraws:
    """One statistic of several forecasters on one group: estimates, replicates, and the data behind them."""

    names: tuple[str, ...]
    estimate: Floats
    """The estimates; NaN if the statistic is undefined."""
    replicates: Floats
    """Replicates, draws × forecasters."""
    support: tuple[Support, ...]
    bounds: Bounds = UNBOUNDED

    def intervals(self, resampling: Resampling) -> dict[str, Interval]:
        """Return each defined estimate with its interval."""
        exists = np.flatnonzero(np.isfinite(self.estimate))
        replicates = self.replicates[:, exists]
        if resampling.interval != "percentile" or not np.isfinite(replicates).all():
            return {
                self.names[i]: summarise(
                    float(self.estimate[i]),
                    self.replicates[:, i],
                    resampling,
                    n_clusters=self.support[i].n_clusters,
                    warning=self.support[i].warning,
                    bounds=self.bounds,
                )
                for i in exists
            }
        counts = np.array([self.support[i].n_clusters for i in exists])
        # One cluster resampled is always itself: how far the number could be off is unknown then, not zero.
        replicates = np.where(counts > 1, replicates, np.nan)
        low, high = _percentiles(replicates, counts, resampling)
        se = np.std(replicates, axis=0, ddof=1)
        for k, i in enumerate(exists) if resampling.expanded else ():
            margin = student_margin(se[k], resampling.level, counts[k])
            low[k], high[k] = reach_out(low[k], high[k], self.estimate[i], margin, self.bounds)
        return {
            self.names[i]: Interval(
                estimate=float(self.estimate[i]),
                low=float(low[k]),
                high=float(high[k]),
                se=float(se[k]),
                n_clusters=self.support[i].n_clusters,
                draws=resampling.draws,
                warning=self.support[i].warning,
            )
            for k, i in enumerate(exists)
        }

    def comparisons(self, resampling: Resampling) -> dict[str, Comparison]:
        """Return comparisons with p-values, for statistics that are differences."""
        intervals = self.intervals(resampling)
        return {
            name: comparison_of(intervals[name], self.replicates[:, i], self.support[i].n, resampling)
            for i, name in enumerate(self.names)
            if name in intervals
        }


def _percentiles(replicates: Floats, counts: Ints, resampling: Resampling) -> tuple[Floats, Floats]:
    """Lower and upper bounds of every column, at an expanded level if there are few clusters."""
    low, high = (np.empty(replicates.shape[1]) for _ in range(2))
    for n in np.unique(counts) if resampling.expanded else (None,):
        at = np.flatnonzero(counts == n) if n is not None else np.arange(len(counts))
        tail = (1 - (resampling.level if n is None else expanded_level(resampling.level, int(n)))) / 2
        low[at], high[at] = np.quantile(replicates[:, at], [tail, 1 - tail], axis=0)
    return low, high


def mean_of_draws(parts: Sequence[MetricDraws], shares: Sequence[float] | None = None) -> MetricDraws:
    """Mean of a statistic over groups, for forecasters that answered all of them; equal shares by default."""
    weight = np.asarray(shares or [1.0] * len(parts)) / (sum(shares) if shares else len(parts))
    shared = [name for name in parts[0].names if all(name in part.names for part in parts)]
    places = [[part.names.index(name) for name in shared] for part in parts]
    pairs = list(zip(parts, places, strict=True))
    estimate = np.tensordot(weight, np.stack([part.estimate[at] for part, at in pairs]), axes=1)
    replicates = np.stack([part.replicates[:, at] for part, at in pairs])
    variances = weight[:, None] ** 2 * np.stack([_spread(part) for part in replicates])
    return MetricDraws(
        names=tuple(shared),
        estimate=estimate,
        replicates=np.tensordot(weight, replicates, axes=1),
        support=tuple(
            Support.of([part.support[at[i]] for part, at in pairs], variances[:, i].tolist())
            for i in range(len(shared))
        ),
        bounds=parts[0].bounds,
    )


@dataclass(frozen=True, kw_only=True)
class ResampledSums:
    """Column sums of several forecasters, over all units and over resampled units."""

    names: tuple[str, ...]
    columns: tuple[str, ...]
    total: Floats
    """Sums over all units, forecasters × columns."""
    resampled: Floats
    """Sums over resampled units, draws × forecasters × columns."""
    support: tuple[Support, ...]
    crossed: tuple[Floats, Floats] | None = None
    """If two margins are crossed: the same over resamples of the second margin, and of their cells."""

    def draws_of(self, metric: Metric) -> MetricDraws:
        """Compute one metric of every forecaster, with its replicates."""
        at = [self.columns.index(name) for name in metric.column_names]
        estimate, replicates = metric.from_sums(self.total[:, at]), metric.from_sums(self.resampled[:, :, at])
        if self.crossed is not None:
            second, cells = (metric.from_sums(one[:, :, at]) for one in self.crossed)
            replicates = two_way_replicates(estimate, replicates, second, cells)
        return MetricDraws(
            names=self.names, estimate=estimate, replicates=replicates, support=self.support, bounds=metric.bounds
        )


def two_way_replicates(estimate: Floats, first: Floats, second: Floats, cells: Floats) -> Floats:
    """Replicates whose variance is that of both margins minus that of their cells (Cameron, Gelbach & Miller 2011).

    They are those of the margin that varies more, widened around the estimate and never narrowed.
    """
    spread = [_spread(one) for one in (first, second, cells)]
    wider, most = np.where(spread[0] >= spread[1], first, second), np.maximum(spread[0], spread[1])
    share = np.divide(spread[0] + spread[1] - spread[2], most, out=np.ones_like(most), where=most > 0)
    scale = np.sqrt(np.maximum(1.0, share))
    return estimate + (wider - estimate) * scale


def _spread(replicates: Floats) -> Floats:
    """Variance of every column, ignoring draws without a value; 0 if there are none."""
    known = np.isfinite(replicates)
    n = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, replicates, 0.0).sum(axis=0) / n
    return (np.where(known, replicates - mean, 0.0) ** 2).sum(axis=0) / n


# Sums by unit whose units are already there, such as the events of an arena.


@dataclass(frozen=True, kw_only=True)
class ClusterBundles:
    """Units (events), ordered and bundled for resampling."""

    order: Ints
    """Indices of the units, bundle after bundle."""
    starts: Ints
    cluster: Ints
    """Cluster of every unit, as codes 0.. ."""

    @classmethod
    def of(cls, cluster: Ints) -> "ClusterBundles":
        """Bundle the clusters of units, whose codes must be in time order."""
        codes = np.unique(cluster, return_inverse=True)[1]
        bundle = bundle_clusters(codes, in_order=True)
        order = np.argsort(bundle, kind="stable")
        return cls(order=order, starts=np.searchsorted(bundle[order], np.arange(int(bundle.max()) + 1)), cluster=codes)

    def resample(self, columns: Floats, resampling: Resampling, stream: int = 0) -> Floats:
        """Sums over resampled bundles (draws × columns), from columns × units."""
        sorted_already = bool((np.diff(self.order) == 1).all())
        sums = np.add.reduceat(columns if sorted_already else columns[:, self.order], self.starts, axis=1).T
        return resample_units(sums, resampling, stream)

    def support(self, answered: Bools) -> tuple[Support, ...]:
        """Support of each forecaster's numbers, from forecasters × units; each unit counts as a question."""
        n = int(self.cluster.max()) + 1
        found: list[Support] = []
        for one in answered:
            units, clusters = int(one.sum()), int(np.count_nonzero(np.bincount(self.cluster, one, minlength=n)))
            warning = cluster_warning(clusters, 0.0, "") if clusters else None
            found.append(Support(n=units, questions=units, n_clusters=clusters, warning=warning))
        return tuple(found)

    def means(self, names: Sequence[str], sums: Floats, weights: Floats, resampling: Resampling) -> MetricDraws:
        """Weighted means of lines × units (already weighted), with one row of weights for all lines or one for each."""
        weights = np.broadcast_to(weights, sums.shape)
        drawn = self.resample(np.vstack([sums, weights]), resampling)
        return MetricDraws(
            names=tuple(names),
            estimate=mean_from_sums(np.stack([sums.sum(axis=1), weights.sum(axis=1)], axis=1)),
            replicates=mean_from_sums(np.stack(np.split(drawn, 2, axis=1), axis=2)),
            support=self.support(weights > 0),
        )


def resample_sums(
    names: Sequence[str],
    columns: Sequence[str],
    sums: Floats,
    cluster: Ints,
    *,
    resampling: Resampling,
    stream: int = 0,
) -> ResampledSums:
    """Resample clusters of units; `sums` is forecasters × columns × units and has a column `weight`."""
    bundles = ClusterBundles.of(cluster)
    drawn = bundles.resample(sums.reshape(len(sums) * len(columns), -1), resampling, stream)
    return ResampledSums(
        names=tuple(names),
        columns=tuple(columns),
        total=sums.sum(axis=2),
        resampled=drawn.reshape(-1, len(sums), len(columns)),
        support=bundles.support(sums[:, list(columns).index("weight")] > 0),
    )


# Rows of a table: which targets are scored together, and which of them are resampled together.


@dataclass(frozen=True, kw_only=True)
class TargetBlock:
    """A group of targets with its resampling design."""

    group: Mapping[str, str]
    rows: Ints
    """Indices of the block's targets."""
    stratum: ResamplingStratum
    margins: Mapping[str, Ints]
    """The original clusters of the rows as codes 0.., by the column they come from; two if margins are crossed."""
    questions: Ints
    """The asking (question and round) of each row, as codes 0.. ."""
    stream: int
    """Random stream; blocks with different streams are resampled independently."""

    def draw(self, sums: Floats, resampling: Resampling) -> list[Floats]:
        """Sums over resamples, the same for every forecaster: of clusters, or of both margins and their cells."""
        if self.stratum.margins is None:
            return [resample_units(sums, resampling, self.stream)]
        by_margin = [margin.sums(sums) for margin in self.stratum.margins]
        return [
            resample_units(part, resampling, self.stream + MARGIN_STREAM * way)
            for way, part in enumerate([*by_margin, sums])
        ]

    @cached_property
    def whole(self) -> Support:
        """Support of a number of a forecaster that answered everything."""
        return self.support(np.arange(len(self.rows)))

    def support(self, at: Ints) -> Support:
        """Support of a number computed from the rows at these positions in the block."""
        sizes = {name: np.bincount(codes[at]) for name, codes in self.margins.items()}
        fewest = min(sizes, key=lambda name: np.count_nonzero(sizes[name]))
        n_clusters = int(np.count_nonzero(sizes[fewest]))
        return Support(
            n=len(at),
            questions=int(np.count_nonzero(np.bincount(self.questions[at]))),
            n_clusters=n_clusters,
            warning=cluster_warning(n_clusters, float(sizes[fewest].max() / len(at)), f"one value of {fewest}"),
        )


@dataclass(frozen=True, kw_only=True)
class TargetLayer:
    """Blocks that together hold every target exactly once, with one table of sums for all of them."""

    blocks: tuple[TargetBlock, ...]

    @cached_property
    def starts(self) -> Ints:
        """Index at which each block's units start in the table of sums, plus the total at the end."""
        return np.cumsum([0, *(block.stratum.units.n for block in self.blocks)])

    @cached_property
    def places(self) -> tuple[Ints, Ints, Ints]:
        """For each target: its block, its position in the block, and its unit in the table of sums."""
        n = sum(len(block.rows) for block in self.blocks)
        block_of, place, unit = (np.empty(n, np.int64) for _ in range(3))
        for i, block in enumerate(self.blocks):
            block_of[block.rows], place[block.rows] = i, np.arange(len(block.rows))
            unit[block.rows] = block.stratum.units.codes + self.starts[i]
        return block_of, place, unit

    @cached_property
    def _membership(self) -> Any:
        """Sparse units × targets matrix, 1 if a target belongs to a unit."""
        from scipy.sparse import csr_matrix

        unit = self.places[2]
        shape = (int(self.starts[-1]), len(unit))
        return csr_matrix((np.ones(len(unit)), (unit, np.arange(len(unit)))), shape=shape)

    def sums(self, columns: Floats, targets: Ints) -> Floats:
        """Sum the columns, one row per given target, within each unit."""
        if len(targets) < len(self.places[2]):
            everything = np.zeros((len(self.places[2]), columns.shape[1]))
            everything[targets] = columns
            columns = everything
        return self._membership @ columns

    def supports(self, targets: Ints) -> list[Support | None]:
        """Support per block for a forecaster that answered these targets; None for blocks without any."""
        block_of, place, _ = self.places
        if len(targets) == len(block_of):
            return [block.whole for block in self.blocks]
        mine, at = block_of[targets], place[targets]
        order = np.argsort(mine, kind="stable")
        edges = np.searchsorted(mine[order], np.arange(len(self.blocks) + 1))
        return [
            block.support(at[order[a:b]]) if b > a else None
            for block, a, b in zip(self.blocks, edges, edges[1:], strict=False)
        ]


def layers_of(targets: Targets, by: tuple[str, ...], cluster: tuple[str, ...]) -> list[TargetLayer]:
    """The layer of kinds (a single block named overall if there is one kind), and the layer of `by`, if any."""
    ways = cluster_columns(targets, cluster)
    kinds = TargetLayer(blocks=tuple(_kinds(targets, ways)))
    if not by or (tuple(by) == ("kind",) and len(kinds.blocks) > 1):  # asked for by name they would be listed twice
        return [kinds]
    return [kinds, TargetLayer(blocks=tuple(_parts(targets, by, ways)))]


def _kinds(targets: Targets, ways: dict[str, Labels]) -> Iterator[TargetBlock]:
    kind = targets.groups.get("kind")
    names = [name for name in kind.names if kind.mask(name).any()] if kind else []
    if kind is None or len(names) < 2:
        yield _block(targets, {"kind": OVERALL}, np.arange(len(targets)), ways, 0)
        return
    for stream, name in enumerate(names):
        yield _block(targets, {"kind": name}, np.flatnonzero(kind.mask(name)), ways, stream)


def _parts(targets: Targets, by: tuple[str, ...], ways: dict[str, Labels]) -> Iterator[TargetBlock]:
    columns = [_column(targets, name) for name in by]
    cells, cell_of = np.unique(np.column_stack([c.codes for c in columns]), axis=0, return_inverse=True)
    for i, cell in enumerate(cells):
        group = {name: c.names[code] or "(none)" for name, c, code in zip(by, columns, cell, strict=True)}
        yield _block(targets, group, np.flatnonzero(cell_of == i), ways, 0)


def cluster_columns(targets: Targets, cluster: tuple[str, ...] = ()) -> dict[str, Labels]:
    """One or two columns whose values are resampled as wholes; by default clusters, and days that they share."""
    if not cluster:
        first = "cluster" if "cluster" in targets.groups else "question"
        day = _shared_days(targets, _column(targets, first))
        cluster = (first, day) if day else (first,)
    if len(cluster) > 2:
        raise InputError("at most two ways of clustering can be crossed", column=cluster[2])
    return {name: _column(targets, name) for name in cluster}


def _shared_days(targets: Targets, cluster: Labels) -> str | None:
    """Find the column of days on which targets of several clusters resolve, or were asked; None if there are too few.

    What happens on one day moves all questions that resolve on it, but clusters by question alone would treat them as
    independent. With fewer than ten days, their variation cannot be estimated.
    """
    for name in ("resolved_on", "due"):
        days = targets.groups.get(name)
        if days is None or not all(days.names[code] for code in np.unique(days.codes)):
            continue
        pairs = np.unique(np.column_stack([days.codes, cluster.codes]), axis=0)
        clusters_of_day, days_of_cluster = np.bincount(pairs[:, 0]), np.bincount(pairs[:, 1])
        whole_days = days_of_cluster.max() == 1 and clusters_of_day.max() == 1
        if np.count_nonzero(clusters_of_day) >= LEAST_DAYS and clusters_of_day.max() > 1 and not whole_days:
            return name
    return None


def _column(targets: Targets, name: str) -> Labels:
    if name in ("question", "target"):
        return targets.question if name == "question" else targets.target
    if name not in targets.groups:
        there = ", ".join(["question", "target", *targets.groups])
        raise InputError(f"the outcomes have no column {name!r}", column=name, hint=f"columns to group by: {there}")
    return targets.groups[name]


def _block(targets: Targets, group: dict[str, str], rows: Ints, ways: dict[str, Labels], stream: int) -> TargetBlock:
    margins = {name: _dense(labels.codes[rows]) for name, labels in ways.items()}
    bundles = [bundle_clusters(codes) for codes in margins.values()]
    design = ResamplingDesign(cluster=bundles[0], crossed=bundles[1] if len(bundles) > 1 else None)
    return TargetBlock(
        group=group,
        rows=rows,
        stratum=design.strata(len(rows))[0],
        margins=margins,
        questions=_dense(targets.askings[rows]),
        stream=stream,
    )


def _dense(codes: Ints) -> Ints:
    return np.unique(codes, return_inverse=True)[1]


LEAST_DAYS = 10
"""With fewer days than this, days are not resampled in addition to the clusters."""
MARGIN_STREAM = 1 << 16
"""Offset between the streams of the margins of one block, whose draws must be independent."""
CHUNK = 1 << 23
"""Number of elements of the largest table of sums held at once (64 MB)."""

Answers = tuple[str, Ints, tuple[tuple[str, Floats], ...]]
"""A forecaster, the targets it answered, and its probabilities there; in a comparison, also the reference's."""
REFERENCE = "reference "
"""Prefix of the names of columns that hold the reference's sums in a comparison."""


def draw_metrics(
    table: ForecastTable, layers: Sequence[TargetLayer], metrics: Sequence[Metric], resampling: Resampling
) -> list[list[dict[str, MetricDraws]]]:
    """Compute every metric of every forecaster, by layer and block."""
    return _draw(table, layers, [_answers(table, name) for name in table.forecasters], metrics, resampling)


def draw_differences(
    table: ForecastTable, layers: Sequence[TargetLayer], reference: str, metric: Metric, resampling: Resampling
) -> list[list[MetricDraws]]:
    """Metric of each forecaster minus that of the reference, on shared targets and shared resamples."""
    others = [_answers(table, name, reference) for name in table.forecasters if name != reference]
    half = len(metric.column_names)

    def difference(sums: Floats) -> Floats:
        return metric.from_sums(sums[..., :half]) - metric.from_sums(sums[..., half:])

    of_reference = [replace(part, names=tuple(REFERENCE + name for name in part.names)) for part in metric.sums]
    both = replace(metric, sums=(*metric.sums, *of_reference), from_sums=difference, bounds=UNBOUNDED)
    return [[found[metric.name] for found in blocks] for blocks in _draw(table, layers, others, [both], resampling)]


def _answers(table: ForecastTable, forecaster: str, reference: str | None = None) -> Answers:
    """The targets a forecaster answered (with a reference: that both answered), and the probabilities there."""
    rows = table.rows_of(forecaster)
    targets, p = table.target[rows], table.p[rows]
    if reference is None:
        return forecaster, targets, ((forecaster, p),)
    base = table.p_of(reference)[targets]
    both = np.isfinite(base)
    return forecaster, targets[both], ((forecaster, p[both]), (reference, base[both]))


def _draw(
    table: ForecastTable,
    layers: Sequence[TargetLayer],
    answers: Sequence[Answers],
    metrics: Sequence[Metric],
    resampling: Resampling,
) -> list[list[dict[str, MetricDraws]]]:
    """Compute the draws of every metric by layer and block, for forecasters that answered something there."""
    answers = [answer for answer in answers if len(answer[1])]
    if not answers:
        return [[] for _ in layers]
    parts = tuple({part.names: part for one in metrics for part in one.sums}.values())
    columns, needs = tuple(name for part in parts for name in part.names), frozenset(one.needs for one in metrics)
    step = max(1, CHUNK // (len(columns) * sum(int(layer.starts[-1]) for layer in layers)))
    found = [[{one.name: list[MetricDraws]() for one in metrics} for _ in layer.blocks] for layer in layers]
    for start in range(0, len(answers), step):
        chunk = answers[start : start + step]
        sums: list[list[Floats]] = [[] for _ in layers]
        for _, targets, given in chunk:
            rows = [metric_rows(table, targets, p, who, needs) for who, p in given]
            numbers = np.column_stack([part.of(rows[part.names[0].startswith(REFERENCE)]) for part in parts])
            for layer, mine in zip(layers, sums, strict=True):
                mine.append(layer.sums(numbers, targets))
        for layer, mine, blocks in zip(layers, sums, found, strict=True):
            drawn = _draw_layer(layer, chunk, np.stack(mine, axis=1), columns, resampling)
            for block, resampled in zip(blocks, drawn, strict=True):
                for one in metrics:
                    block[one.name].append(resampled.draws_of(one))
    return [[{name: _join_draws(draws) for name, draws in block.items()} for block in blocks] for blocks in found]


def _join_draws(parts: Sequence[MetricDraws]) -> MetricDraws:
    """Join the draws of several chunks of forecasters."""
    if len(parts) == 1:
        return parts[0]
    return MetricDraws(
        names=tuple(name for part in parts for name in part.names),
        estimate=np.concatenate([part.estimate for part in parts]),
        replicates=np.concatenate([part.replicates for part in parts], axis=1),
        support=tuple(one for part in parts for one in part.support),
        bounds=parts[0].bounds,
    )


def _draw_layer(
    layer: TargetLayer, answers: Sequence[Answers], sums: Floats, columns: tuple[str, ...], resampling: Resampling
) -> Iterator[ResampledSums]:
    """Yield, per block, the sums of forecasters with answers there; `sums` is units × forecasters × columns."""
    supports = [layer.supports(targets) for _, targets, _ in answers]
    for b, block in enumerate(layer.blocks):
        present = {i: found for i, one in enumerate(supports) if (found := one[b]) is not None}
        part = sums[layer.starts[b] : layer.starts[b + 1]]
        part = part if len(present) == len(answers) else part[:, list(present)]
        drawn = [one.reshape(len(one), *part.shape[1:]) for one in block.draw(part.reshape(len(part), -1), resampling)]
        yield ResampledSums(
            names=tuple(answers[i][0] for i in present),
            columns=columns,
            total=part.sum(axis=0),
            resampled=drawn[0],
            support=tuple(present.values()),
            crossed=(drawn[1], drawn[2]) if len(drawn) > 1 else None,
        )
