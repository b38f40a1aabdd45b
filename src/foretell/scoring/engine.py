"""The engine behind every leaderboard: sums of columns by unit → resamples → metrics with their intervals.

Every metric is a function of sums (see `metrics.metric`). The caller has rows (from a file, a run or a year of an
arena) and sums the columns of each forecaster by the units to be resampled. The engine draws the units once for all
forecasters and metrics, and computes every metric from the drawn sums. Files and runs are given as a `ForecastTable`,
divided into layers and blocks of targets. Arenas are given as sums by event, which are extended when new results come
in (`scoring.event_sums`).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import (
    MARGIN_STREAM,
    UNBOUNDED,
    Bounds,
    ClusterSupport,
    Interval,
    Resampling,
    expanded_level,
    finite_variance,
    mean_from_sums,
    reach_out,
    resample_units,
    student_margin,
    summarise,
    two_way_replicates,
)
from foretell.metrics.clusters import (
    FEW_CLUSTERS,
    ResamplingDesign,
    ResamplingStratum,
    bundle_clusters,
    cluster_warning,
    distinct,
    effective_clusters,
    factorise,
    merged_note,
)
from foretell.metrics.metric import Metric, SumColumns
from foretell.questions.errors import InputError
from foretell.scoring.baselines import OVERALL
from foretell.scoring.table import ForecastTable, Labels, Targets, metric_rows

# A number with its draws and the amount of data behind it.


@frozen
class Support(ClusterSupport):
    """The amount of data behind a number."""

    n: int
    questions: int

    @classmethod
    def of(cls, parts: Sequence["Support"], variances: Sequence[float]) -> "Support":
        """Combine the support of independent parts of a sum, given the variance of each."""
        effective = effective_clusters([part.n_effective for part in parts], variances)
        uneven = [part.warning for part in parts if part.warning and part.n_effective >= FEW_CLUSTERS]
        return cls(
            n=sum(part.n for part in parts),
            questions=sum(part.questions for part in parts),
            n_clusters=sum(part.n_clusters for part in parts),
            n_effective=effective,
            warning="; ".join(filter(None, [cluster_warning(effective, 0.0, ""), *uneven])) or None,
        )


@frozen
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
                    float(self.estimate[i]), self.replicates[:, i], self.support[i], resampling, self.bounds
                )
                for i in exists
            }
        counts = np.array([self.support[i].n_effective for i in exists])
        # Resampling a single cluster always gives the same number, so the error is unknown, not zero.
        replicates = np.where(counts > 1, replicates, np.nan)
        low, high = _percentiles(replicates, counts, resampling)
        se = np.std(replicates, axis=0, ddof=1)
        for k, i in enumerate(exists):
            margin = student_margin(se[k], resampling.level, counts[k])
            low[k], high[k] = reach_out(low[k], high[k], self.estimate[i], margin, self.bounds)
        # Draws are in single precision: a share of 1 may come out a little larger.
        low, high = np.maximum(low, self.bounds[0]), np.minimum(high, self.bounds[1])
        return {
            self.names[i]: Interval(
                estimate=float(self.estimate[i]),
                low=float(low[k]),
                high=float(high[k]),
                se=float(se[k]),
                n_clusters=self.support[i].n_clusters,
                n_effective=self.support[i].n_effective,
                draws=resampling.draws,
                warning=self.support[i].warning,
            )
            for k, i in enumerate(exists)
        }


def _percentiles(replicates: Floats, counts: Ints, resampling: Resampling) -> tuple[Floats, Floats]:
    """Lower and upper bounds of every column, at an expanded level if there are few clusters."""
    low, high = (np.empty(replicates.shape[1]) for _ in range(2))
    for n in np.unique(counts):
        at = np.flatnonzero(counts == n)
        tail = (1 - expanded_level(resampling.level, int(n))) / 2
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
    variances = weight[:, None] ** 2 * np.stack([finite_variance(part) for part in replicates])
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


@frozen
class ResampledSums:
    """Column sums of several forecasters, over all units and over resampled units."""

    names: tuple[str, ...]
    columns: tuple[str, ...]
    total: Floats
    """Sums over all units, forecasters × columns."""
    ways: tuple[Floats, ...]
    """Sums over resampled units, draws × forecasters × columns; if two ways of clustering are crossed, over resamples
    of each of them and of their combinations."""
    support: tuple[Support, ...]

    def draws_of(self, metric: Metric) -> MetricDraws:
        """Compute one metric of every forecaster, with its replicates."""
        at = _places(self.columns, metric.column_names)
        estimate = metric.from_sums(self.total[:, at])
        drawn = [metric.from_sums(sums[:, :, at]) for sums in self.ways]
        return MetricDraws(
            names=self.names,
            estimate=estimate,
            replicates=drawn[0] if len(drawn) == 1 else two_way_replicates(estimate, *drawn),
            support=self.support,
            bounds=metric.bounds,
        )


def _places(columns: Sequence[str], names: Sequence[str]) -> slice | list[int]:
    """Places of these columns: a slice if they are neighbours, which does not copy the sums."""
    at = [columns.index(name) for name in names]
    return slice(at[0], at[0] + len(at)) if at == list(range(at[0], at[0] + len(at))) else at


# Sums by unit for units that exist already, such as the events of an arena.


@frozen
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
        supports: list[Support] = []
        for row in answered:
            units, clusters = int(row.sum()), int(np.count_nonzero(np.bincount(self.cluster, row, minlength=n)))
            warning = cluster_warning(clusters, 0.0, "") if clusters else None
            supports.append(
                Support(n=units, questions=units, n_clusters=clusters, n_effective=clusters, warning=warning)
            )
        return tuple(supports)

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
    """Resample clusters of units; `sums` is forecasters × columns × units and has a column `weight`.

    As in a table, only the clusters that a forecaster answered are resampled, independently of other forecasters.
    """
    answered = sums[:, list(columns).index("weight")] > 0
    drawn = np.zeros((resampling.draws, len(sums), len(columns)))
    masks: dict[bytes, list[int]] = {}
    for i, units in enumerate(answered):
        masks.setdefault(units.tobytes(), []).append(i)
    for members in masks.values():
        units = answered[members[0]]
        if units.any():
            part = sums[members][:, :, units].reshape(len(members) * len(columns), -1)
            resampled = ClusterBundles.of(cluster[units]).resample(part, resampling, stream)
            drawn[:, members] = resampled.reshape(-1, len(members), len(columns))
    return ResampledSums(
        names=tuple(names),
        columns=tuple(columns),
        total=sums.sum(axis=2),
        ways=(drawn,),
        support=ClusterBundles.of(cluster).support(answered),
    )


# Rows of a table: which targets are scored together, and which of them are resampled together.


@frozen
class TargetBlock:
    """A group of targets with its resampling design."""

    group: Mapping[str, str]
    rows: Ints
    """Indices of the block's targets."""
    stratum: ResamplingStratum
    ways: tuple[str, ...]
    """The columns that the clusters come from."""
    questions: int
    """Number of askings (question and round)."""

    @cached_property
    def support(self) -> Support:
        """Support of a number computed from these targets."""
        n_clusters = self.stratum.n_clusters
        fewest, way = min(zip(self.ways, self.stratum.ways, strict=True), key=lambda pair: pair[1].n)
        largest = float(way.sizes.max() / len(self.rows))
        few = cluster_warning(n_clusters, largest, f"one value of {fewest}")
        return Support(
            n=len(self.rows),
            questions=self.questions,
            n_clusters=n_clusters,
            n_effective=n_clusters,
            warning="; ".join(filter(None, (few, self.stratum.days_warning))) or None,
        )


@frozen
class TargetLayer:
    """Blocks that together contain each of some targets exactly once, with one table of sums for all of them."""

    targets: Ints
    blocks: tuple[TargetBlock, ...]

    @cached_property
    def starts(self) -> Ints:
        """Index at which the units of each block and way of resampling start in the table of sums, and the total."""
        return np.cumsum([0, *(part.n for block in self.blocks for part in block.stratum.drawn)])

    @cached_property
    def _units(self) -> list[Ints]:
        """The unit of each target, for each way of resampling; the number of units if its block has fewer ways."""
        most = max(len(block.stratum.drawn) for block in self.blocks)
        units = [np.full(len(self.targets), self.starts[-1], np.int64) for _ in range(most)]
        starts = iter(self.starts)
        for block in self.blocks:
            place = np.searchsorted(self.targets, block.rows)
            for unit, part in zip(units, block.stratum.drawn, strict=False):
                unit[place] = part.codes + next(starts)
        return units

    def sums(self, columns: Floats) -> Floats:
        """Sum the columns, one row per target, within each unit."""
        n = int(self.starts[-1])
        sums = np.zeros((n, columns.shape[1]))
        for unit in self._units:
            for k, column in enumerate(columns.T):
                sums[:, k] += np.bincount(unit, column, minlength=n + 1)[:n]
        return sums

    def resample(self, sums: Floats, resampling: Resampling) -> Iterator[tuple[TargetBlock, Floats, list[Floats]]]:
        """Yield every block with its sums, and its resampled sums (draws × columns) for each way of resampling it."""
        units = iter(np.split(sums, self.starts[1:-1]))
        for block in self.blocks:
            parts = [next(units) for _ in block.stratum.drawn]
            streams = (block.stratum.stream + MARGIN_STREAM * way for way in range(len(parts)))
            drawn = [resample_units(part, resampling, stream) for part, stream in zip(parts, streams, strict=True)]
            yield block, parts[0].sum(axis=0), drawn


def layers_of(
    targets: Targets, by: tuple[str, ...] = (), cluster: tuple[str, ...] = (), rows: Ints | None = None
) -> list[TargetLayer]:
    """The layer of kinds (a single block named overall if there is one kind), and the layer of `by`, if any.

    With `rows`, of these targets only; which kinds there are is decided by all.
    """
    rows = np.arange(len(targets)) if rows is None else rows
    kinds = TargetLayer(targets=rows, blocks=tuple(_kinds(targets, cluster, rows)))
    if not by or (tuple(by) == ("kind",) and len(kinds_of(targets)) > 1):  # Kinds would be listed twice.
        return [kinds]
    return [kinds, TargetLayer(targets=rows, blocks=tuple(_parts(targets, by, cluster, rows)))]


def kinds_of(targets: Targets, rows: Ints | None = None) -> list[str]:
    """Return the kinds of the targets in alphabetical order, which fixes their random streams."""
    kind = targets.groups.get("kind")
    codes = () if kind is None else distinct(kind.codes if rows is None else kind.codes[rows])
    return sorted(kind.names[code] for code in codes) if kind else []


def _kinds(targets: Targets, cluster: tuple[str, ...], rows: Ints) -> Iterator[TargetBlock]:
    names = kinds_of(targets)
    if len(names) < 2:
        yield _block(targets, {"kind": OVERALL}, rows, cluster, 0)
        return
    for stream, name in enumerate(names):
        mine = rows[targets.groups["kind"].mask(name)[rows]]
        if len(mine):
            yield _block(targets, {"kind": name}, mine, cluster, stream)


def _parts(targets: Targets, by: tuple[str, ...], cluster: tuple[str, ...], rows: Ints) -> Iterator[TargetBlock]:
    columns = [_column(targets, name) for name in by]
    code = np.zeros(len(rows), np.int64)
    for column in columns:
        code = factorise(code * len(column.names) + column.codes[rows], "group").codes
    order = np.argsort(code, kind="stable")
    for mine in np.split(rows[order], np.flatnonzero(np.diff(code[order])) + 1):
        group = {name: c.names[c.codes[mine[0]]] or "(none)" for name, c in zip(by, columns, strict=True)}
        yield _block(targets, group, mine, cluster, 0)


def resampling_design(
    targets: Targets, cluster: tuple[str, ...], rows: Ints, stratum: Labels | None = None, *, stream: int = 0
) -> ResamplingDesign:
    """The design of some targets: clusters by the one or two columns named, or by default clusters and shared days.

    Scores, differences and plans of the same targets have the same design.
    """
    labels = [_ranks(targets, name, rows) for name in _ways(targets, cluster)]
    days = {} if cluster else {name: _ranks(targets, name, rows) for name in DAY_COLUMNS if name in targets.groups}
    return ResamplingDesign(
        cluster=labels[0],
        crossed=labels[1] if len(labels) > 1 else None,
        days=days,
        stratum=None if stratum is None else np.asarray(stratum.names)[stratum.codes[rows]],
        stream=stream,
    )


DAY_COLUMNS = ("resolved_on", "due")
"""Columns of the days on which targets of several clusters resolve, or were asked."""


def _ways(targets: Targets, cluster: tuple[str, ...]) -> tuple[str, ...]:
    """The columns whose values are resampled as a whole, besides shared days."""
    if len(cluster) > 2:
        raise InputError("at most two ways of clustering can be crossed", column=cluster[2])
    return cluster or ("cluster" if "cluster" in targets.groups else "question",)


def _ranks(targets: Targets, name: str, rows: Ints) -> Ints:
    """Codes of a column's values in alphabetical order; of times, those of their days, −1 where there is none."""
    column = _column(targets, name)
    if name not in DAY_COLUMNS:
        return column.ranks[column.codes[rows]]
    days = np.array([time[:10] for time in column.names])
    ranks = np.unique(days, return_inverse=True)[1].astype(np.int64)
    return np.where(days == "", -1, ranks)[column.codes[rows]]


def known_groups(targets: Targets, by: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns to group by that the table has, and those it does not; raises if it has none of them."""
    known = tuple(name for name in by if name in targets.groups or name in ("question", "target"))
    if by and not known:
        _column(targets, by[0])
    return known, tuple(name for name in by if name not in known)


def _column(targets: Targets, name: str) -> Labels:
    if name in ("question", "target"):
        return targets.question if name == "question" else targets.target
    if name not in targets.groups:
        columns = ", ".join(["question", "target", *targets.groups])
        raise InputError(f"the outcomes have no column {name!r}", column=name, hint=f"columns to group by: {columns}")
    return targets.groups[name]


def _block(
    targets: Targets, group: Mapping[str, str], rows: Ints, cluster: tuple[str, ...], stream: int
) -> TargetBlock:
    stratum = resampling_design(targets, cluster, rows, stream=stream).strata(len(rows))[0]
    return TargetBlock(
        group=group,
        rows=rows,
        stratum=stratum,
        ways=(*_ways(targets, cluster), *([stratum.day] if stratum.day else [])),
        questions=len(distinct(targets.askings[rows])),
    )


def merged_notes(layer: TargetLayer) -> list[str]:
    """A sentence on the clusters of a layer that are merged before resampling, if any."""
    counts: dict[str, int] = {}
    for block in layer.blocks:
        kind = f" ({block.group['kind']})" if len(layer.blocks) > 1 else ""
        for name, n in zip((*block.ways, " × ".join(block.ways)), block.stratum.counts, strict=False):
            counts[f"values of {name}{kind}"] = n
    return merged_note(counts)


CHUNK = 1 << 23
"""Number of elements of the largest table of sums or draws held at once (64 MB)."""

GroupDraws = tuple[Mapping[str, str], dict[str, MetricDraws]]
"""A group, with the draws of every metric of some forecasters in it."""


def draw_metrics(
    table: ForecastTable,
    layers: Sequence[TargetLayer],
    metrics: Sequence[Metric],
    resampling: Resampling,
    cluster: tuple[str, ...] = (),
) -> Iterator[GroupDraws]:
    """Compute every metric of every forecaster in every group in which it answered something.

    A few forecasters are drawn at a time, so that memory does not grow with their number: a group is yielded once for
    each such set. Only the clusters that a forecaster answered are resampled, so its interval does not depend on other
    forecasters.
    """
    everything, kinds = len(table.targets), len(kinds_of(table.targets, distinct(table.target)))
    for targets, names in _by_answers(table).items():
        rows = np.frombuffer(targets, np.int64)
        part = layers if len(rows) == everything else _restricted(table, layers, cluster, rows)
        for layer in part:
            for chunk in _chunks(layer, names, metrics, resampling):
                by_kind: list[dict[str, MetricDraws]] = []
                for block, drawn in _draw_layer(table, layer, chunk, metrics, resampling):
                    draws = {metric.name: drawn.draws_of(metric) for metric in metrics}
                    if kinds > 1 and layer is part[0]:
                        by_kind.append(draws)
                    yield block.group, draws
                # Overall is the unweighted mean over kinds, for forecasters that answered all of them.
                if by_kind and len(by_kind) == kinds:
                    yield (
                        {"kind": OVERALL},
                        {metric.name: mean_of_draws([draws[metric.name] for draws in by_kind]) for metric in metrics},
                    )


def _by_answers(table: ForecastTable) -> dict[bytes, list[str]]:
    """Forecasters by the sorted indices of the targets that they answered."""
    answers: dict[bytes, list[str]] = {}
    for name in table.forecasters:
        if len(targets := table.answered(name)):
            answers.setdefault(targets.tobytes(), []).append(name)
    return answers


def _restricted(
    table: ForecastTable, layers: Sequence[TargetLayer], cluster: tuple[str, ...], rows: Ints
) -> list[TargetLayer]:
    by = tuple(layers[1].blocks[0].group) if len(layers) > 1 else ()
    return layers_of(table.targets, by, cluster, rows)


def _sums_of(metrics: Sequence[Metric]) -> tuple[SumColumns, ...]:
    """The sums that the metrics are computed from, each once."""
    return tuple({part.names: part for metric in metrics for part in metric.sums}.values())


def _chunks(
    layer: TargetLayer, names: Sequence[str], metrics: Sequence[Metric], resampling: Resampling
) -> Iterator[tuple[str, ...]]:
    """Forecasters that are drawn together: their sums by unit and the draws of a block have at most CHUNK elements."""
    columns = sum(len(part.names) for part in _sums_of(metrics))
    drawn = resampling.draws * max(len(block.stratum.drawn) for block in layer.blocks)
    step = max(1, CHUNK // (columns * max(int(layer.starts[-1]), drawn)))
    for start in range(0, len(names), step):
        yield tuple(names[start : start + step])


def _draw_layer(
    table: ForecastTable,
    layer: TargetLayer,
    names: tuple[str, ...],
    metrics: Sequence[Metric],
    resampling: Resampling,
) -> Iterator[tuple[TargetBlock, ResampledSums]]:
    """Yield, per block, the sums of forecasters that answered exactly the targets of a layer."""
    parts = _sums_of(metrics)
    columns = tuple(name for part in parts for name in part.names)
    needs = frozenset(metric.needs for metric in metrics)
    shape, sums = (len(names), len(columns)), list[Floats]()
    for name in names:
        rows = metric_rows(table, layer.targets, table.p_of(name)[layer.targets], name, needs)
        # One kind of sum at a time: the columns of all of them take more memory than the table itself.
        sums += [layer.sums(part.of(rows).reshape(len(layer.targets), -1)) for part in parts]
    for block, total, drawn in layer.resample(np.hstack(sums), resampling):
        resampled = ResampledSums(
            names=names,
            columns=columns,
            total=total.reshape(shape),
            ways=tuple(way.reshape(-1, *shape) for way in drawn),
            support=(block.support,) * len(names),
        )
        yield block, resampled
