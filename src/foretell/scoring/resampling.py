"""Metrics and their bootstrap replicates for many forecasters, from one set of resamples per block.

Every metric is a function of column sums, so a forecaster is a table of sums by cluster and all draws of all its
metrics are one matrix product.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Interval, Resampling, summarise
from foretell.metrics.clusters import ResamplingDesign, ResamplingStratum, cluster_warning
from foretell.metrics.metric import Metric, MetricRows
from foretell.questions.errors import InputError
from foretell.scoring.scoreboard import OVERALL
from foretell.scoring.table import ForecastTable, Labels, Targets

# Which targets are scored together, and which of them are resampled together.

MAX_CLUSTERS = 500
"""More clusters than this are merged at random into as many bundles before resampling: bundles of independent
clusters are independent, so intervals stay right, and draws stay cheap however long the table."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """How much stands behind a number."""

    n: int
    questions: int
    n_clusters: int
    warning: str | None = None

    @classmethod
    def of(cls, parts: Sequence["Support"]) -> "Support":
        """What stands behind a number made of several parts."""
        return cls(
            n=sum(part.n for part in parts),
            questions=sum(part.questions for part in parts),
            n_clusters=sum(part.n_clusters for part in parts),
            warning=next((part.warning for part in parts if part.warning), None),
        )


@dataclass(frozen=True, kw_only=True)
class TargetBlock:
    """A group of targets with its resampling design."""

    group: Mapping[str, str]
    rows: Ints
    """Indices of its targets."""
    stratum: ResamplingStratum
    margins: Mapping[str, Ints]
    """The true clusters of the rows as codes 0.., by the column they come from; two where margins are crossed."""
    questions: Ints
    """The askings of the rows as codes 0.. ."""
    stream: int
    """Blocks with different streams are resampled independently."""

    def draw(self, sums: Floats, resampling: Resampling) -> Floats:
        """Sums over resamples; the same seed gives the same resamples for every forecaster."""
        # Single precision halves the time, and its rounding is far below the noise of the draws.
        single = sums.astype(np.float32)
        return self.stratum.draw(single, resampling.draws, resampling.rng(self.stream))  # type: ignore[arg-type]

    @cached_property
    def whole(self) -> Support:
        """What a number of somebody who answered everything rests on."""
        return self.support(np.arange(len(self.rows)))

    def support(self, at: Ints) -> Support:
        """What a number computed from the rows at these places of the block rests on."""
        sizes = {name: np.bincount(codes[at]) for name, codes in self.margins.items()}
        fewest = min(sizes, key=lambda name: np.count_nonzero(sizes[name]))
        n_clusters = int(np.count_nonzero(sizes[fewest]))
        return Support(
            n=len(at),
            questions=int(np.count_nonzero(np.bincount(self.questions[at]))),
            n_clusters=n_clusters,
            warning=cluster_warning(n_clusters, float(sizes[fewest].max() / len(at)), f"of {fewest}"),
        )


@dataclass(frozen=True, kw_only=True)
class TargetLayer:
    """Blocks that together hold every target once, with one table of sums for all of them."""

    blocks: tuple[TargetBlock, ...]

    @cached_property
    def starts(self) -> Ints:
        """Where each block's units begin in the table of sums; one more at the end."""
        return np.cumsum([0, *(block.stratum.units.n for block in self.blocks)])

    @cached_property
    def places(self) -> tuple[Ints, Ints, Ints]:
        """For each target: its block, its place in the block, and its unit in the table of sums."""
        n = sum(len(block.rows) for block in self.blocks)
        block_of, place, unit = (np.empty(n, np.int64) for _ in range(3))
        for i, block in enumerate(self.blocks):
            block_of[block.rows], place[block.rows] = i, np.arange(len(block.rows))
            unit[block.rows] = block.stratum.units.codes + self.starts[i]
        return block_of, place, unit

    @cached_property
    def _membership(self) -> Any:
        """Units × targets, one where a target belongs to a unit."""
        from scipy.sparse import csr_matrix

        unit = self.places[2]
        shape = (int(self.starts[-1]), len(unit))
        return csr_matrix((np.ones(len(unit)), (unit, np.arange(len(unit)))), shape=shape)

    def sums(self, columns: Floats, targets: Ints) -> Floats:
        """Column sums within each unit, for one row per given target."""
        if len(targets) < len(self.places[2]):
            everything = np.zeros((len(self.places[2]), columns.shape[1]))
            everything[targets] = columns
            columns = everything
        return self._membership @ columns

    def supports(self, targets: Ints) -> list[Support | None]:
        """What the numbers of somebody who answered these targets rest on, block by block; None for nothing."""
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
    """The layer of the kinds (one block named overall where there is one kind), and that of `by`, if any."""
    ways = _ways(targets, cluster)
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


def _ways(targets: Targets, cluster: tuple[str, ...]) -> dict[str, Labels]:
    if not cluster:
        cluster = ("cluster",) if "cluster" in targets.groups else ("question",)
    if len(cluster) > 2:
        raise InputError("at most two ways of clustering can be crossed", column=cluster[2])
    return {name: _column(targets, name) for name in cluster}


def _column(targets: Targets, name: str) -> Labels:
    if name in ("question", "target"):
        return targets.question if name == "question" else targets.target
    if name not in targets.groups:
        there = ", ".join(["question", "target", *targets.groups])
        raise InputError(f"the outcomes have no column {name!r}", column=name, hint=f"columns to group by: {there}")
    return targets.groups[name]


def _block(targets: Targets, group: dict[str, str], rows: Ints, ways: dict[str, Labels], stream: int) -> TargetBlock:
    margins = {name: _dense(labels.codes[rows]) for name, labels in ways.items()}
    bundles = [_bundled(codes) for codes in margins.values()]
    design = ResamplingDesign(cluster=bundles[0], crossed=bundles[1] if len(bundles) > 1 else None)
    return TargetBlock(
        group=group,
        rows=rows,
        stratum=design.strata(len(rows))[0],
        margins=margins,
        questions=_dense(_askings(targets)[rows]),
        stream=stream,
    )


def _askings(targets: Targets) -> Ints:
    """One code per question and round: the same market asked again is another question to answer."""
    due = targets.groups.get("due")
    return targets.question.codes if due is None else targets.question.codes * len(due.names) + due.codes


def _dense(codes: Ints) -> Ints:
    return np.unique(codes, return_inverse=True)[1]


def _bundled(codes: Ints) -> Ints:
    n = int(codes.max()) + 1
    return codes if n <= MAX_CLUSTERS else (np.random.default_rng(0).permutation(n) % MAX_CLUSTERS)[codes]


CHUNK = 1 << 23
"""Elements of the largest table of sums held at once (64 MB)."""

Answers = tuple[str, Ints, Floats]
"""A forecaster, the targets it answered, and its probabilities."""


@dataclass(frozen=True, kw_only=True)
class MetricDraws:
    """One statistic of several forecasters on one block: the numbers, their replicates, and what they rest on."""

    names: tuple[str, ...]
    estimate: Floats
    """NaN where the statistic does not exist."""
    replicates: Floats
    """Draws × forecasters."""
    support: tuple[Support, ...]

    def intervals(self, resampling: Resampling) -> dict[str, Interval]:
        """Each number that exists, with its uncertainty."""
        exists = np.flatnonzero(np.isfinite(self.estimate))
        plain = resampling.interval == "percentile" and np.isfinite(self.replicates[:, exists]).all()
        if not plain:
            return {self.names[i]: self._interval(int(i), resampling) for i in exists}
        replicates = self.replicates[:, exists]
        tail = (1 - resampling.level) / 2
        low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
        se = np.std(replicates, axis=0, ddof=1)
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

    def _interval(self, i: int, resampling: Resampling) -> Interval:
        support = self.support[i]
        return summarise(
            float(self.estimate[i]),
            self.replicates[:, i],
            resampling,
            n_clusters=support.n_clusters,
            warning=support.warning,
        )


def mean_over_kinds(parts: Sequence[MetricDraws]) -> MetricDraws:
    """The unweighted mean of a statistic over kinds, for the forecasters that answered all of them."""
    shared = [name for name in parts[0].names if all(name in part.names for part in parts)]
    places = [[part.names.index(name) for name in shared] for part in parts]
    return MetricDraws(
        names=tuple(shared),
        estimate=np.mean([part.estimate[at] for part, at in zip(parts, places, strict=True)], axis=0),
        replicates=np.mean([part.replicates[:, at] for part, at in zip(parts, places, strict=True)], axis=0),
        support=tuple(
            Support.of([part.support[at[i]] for part, at in zip(parts, places, strict=True)])
            for i in range(len(shared))
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Measure:
    """Statistics that are computed together, each from its own columns of sums."""

    columns: Callable[[Ints, Floats], list[Floats]]
    """From targets and probabilities to one block of columns per statistic."""
    from_sums: Sequence[Callable[[Floats], Floats]]


def draw_metrics(
    table: ForecastTable, layers: Sequence[TargetLayer], metrics: Mapping[str, Metric], resampling: Resampling
) -> list[list[dict[str, MetricDraws]]]:
    """Every metric of every forecaster, layer by layer and block by block."""

    def columns(targets: Ints, p: Floats) -> list[Floats]:
        rows = _rows(table, targets, p)
        return [metric.columns(rows) for metric in metrics.values()]

    measure = _Measure(columns=columns, from_sums=[metric.from_sums for metric in metrics.values()])
    answers = [(name, *_answers(table, name)) for name in table.forecasters]
    drawn = _draw(layers, answers, measure, resampling)
    return [[dict(zip(metrics, parts, strict=True)) for parts in blocks] for blocks in drawn]


def draw_differences(
    table: ForecastTable, layers: Sequence[TargetLayer], reference: str, metric: Metric, resampling: Resampling
) -> list[list[MetricDraws]]:
    """Metric of each forecaster minus that of the reference, on common targets and common resamples."""
    base = table.p_of(reference)

    def columns(targets: Ints, p: Floats) -> list[Floats]:
        return [np.hstack([metric.columns(_rows(table, targets, one)) for one in (p, base[targets])])]

    def difference(sums: Floats) -> Floats:
        half = sums.shape[-1] // 2
        return metric.from_sums(sums[..., :half]) - metric.from_sums(sums[..., half:])

    others = [(name, *_answers(table, name, np.isfinite(base))) for name in table.forecasters if name != reference]
    measure = _Measure(columns=columns, from_sums=[difference])
    return [[parts[0] for parts in blocks] for blocks in _draw(layers, others, measure, resampling)]


def _answers(table: ForecastTable, forecaster: str, where: Bools | None = None) -> tuple[Ints, Floats]:
    """The targets a forecaster answered (those in the mask) and its probabilities."""
    rows = table.rows_of(forecaster)
    targets = table.target[rows]
    kept = slice(None) if where is None else where[targets]
    return targets[kept], table.p[rows][kept]


def _draw(
    layers: Sequence[TargetLayer], answers: Sequence[Answers], measure: _Measure, resampling: Resampling
) -> list[list[list[MetricDraws]]]:
    """Layer by layer and block by block, the draws of every statistic of the measure."""
    answers = [answer for answer in answers if len(answer[1])]
    if not answers:
        return [[] for _ in layers]
    chunks = [_draw_chunk(layers, chunk, measure, resampling) for chunk in _chunks(answers, layers, measure)]
    names = tuple(name for name, _, _ in answers)
    found: list[list[list[MetricDraws]]] = []
    for at, layer in enumerate(layers):
        supports = [layer.supports(targets) for _, targets, _ in answers]
        pieces = [chunk[at] for chunk in chunks]
        found.append(
            [_joined(names, [s[b] for s in supports], [p[b] for p in pieces]) for b in range(len(layer.blocks))]
        )
    return found


def _joined(
    names: tuple[str, ...], supports: Sequence[Support | None], pieces: Sequence[list[tuple[Floats, Floats]]]
) -> list[MetricDraws]:
    """One block's statistics of all chunks of forecasters, without those who answered nothing in it."""
    present = [i for i, one in enumerate(supports) if one is not None]
    chosen, support = tuple(names[i] for i in present), tuple(one for one in supports if one is not None)
    everyone = len(present) == len(names)
    draws: list[MetricDraws] = []
    for parts in zip(*pieces, strict=True):
        estimate = np.concatenate([part[0] for part in parts])
        replicates = np.concatenate([part[1] for part in parts], axis=1)
        if not everyone:
            estimate, replicates = estimate[present], replicates[:, present]
        draws.append(MetricDraws(names=chosen, estimate=estimate, replicates=replicates, support=support))
    return draws


def _draw_chunk(
    layers: Sequence[TargetLayer], chunk: Sequence[Answers], measure: _Measure, resampling: Resampling
) -> list[list[list[tuple[Floats, Floats]]]]:
    """Per layer, block and statistic: estimates (forecasters) and replicates (draws × forecasters)."""
    sums: list[list[Floats]] = [[] for _ in layers]
    edges = np.zeros(1, np.int64)
    for _, targets, p in chunk:
        tables = measure.columns(targets, p)
        edges = np.cumsum([0, *(columns.shape[1] for columns in tables)])
        columns = np.hstack(tables)
        for at, layer in enumerate(layers):
            sums[at].append(layer.sums(columns, targets))
    return [
        [
            _draw_block(block, part, edges, measure, resampling)
            for block, part in _by_block(layer, np.stack(mine, axis=1))
        ]
        for layer, mine in zip(layers, sums, strict=True)
    ]


def _by_block(layer: TargetLayer, sums: Floats) -> Iterator[tuple[TargetBlock, Floats]]:
    for block, a, b in zip(layer.blocks, layer.starts, layer.starts[1:], strict=False):
        yield block, sums[a:b]


def _draw_block(
    block: TargetBlock, sums: Floats, edges: Ints, measure: _Measure, resampling: Resampling
) -> list[tuple[Floats, Floats]]:
    resampled = block.draw(sums.reshape(len(sums), -1), resampling).reshape(-1, sums.shape[1], int(edges[-1]))
    total = sums.sum(axis=0)
    return [
        (from_sums(total[:, low:high]), from_sums(resampled[:, :, low:high]))
        for from_sums, low, high in zip(measure.from_sums, edges, edges[1:], strict=False)
    ]


def _chunks(
    answers: Sequence[Answers], layers: Sequence[TargetLayer], measure: _Measure
) -> Iterator[Sequence[Answers]]:
    width = sum(columns.shape[1] for columns in measure.columns(answers[0][1][:1], answers[0][2][:1]))
    step = max(1, CHUNK // (width * sum(int(layer.starts[-1]) for layer in layers)))
    for start in range(0, len(answers), step):
        yield answers[start : start + step]


def _rows(table: ForecastTable, targets: Ints, p: Floats) -> MetricRows:
    known = table.targets
    if not known.priced:
        return MetricRows(p=p, outcome=known.outcome[targets], weight=known.weight[targets])
    quoted = np.isfinite(known.yes_ask[targets]) & np.isfinite(known.no_ask[targets])
    yes = np.where(quoted, known.yes_ask[targets], known.price[targets])
    no = np.where(quoted, known.no_ask[targets], 1 - known.price[targets])
    return MetricRows(p=p, outcome=known.outcome[targets], weight=known.weight[targets], yes_price=yes, no_price=no)
