"""Metrics and their bootstrap replicates for many forecasters, from one set of resamples per block.

Every metric is a function of column sums, so a forecaster is a table of sums by cluster and all draws of all its
metrics are one matrix product.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.arena.groups import Block, Layer, Support
from foretell.arena.table import Table
from foretell.evaluate.arrays import Bools, Floats, Ints
from foretell.evaluate.bootstrap import Resampling, summarise
from foretell.evaluate.intervals import Interval
from foretell.evaluate.metric import Metric, Rows

CHUNK = 1 << 23
"""Elements of the largest table of sums held at once (64 MB)."""

Answers = tuple[str, Ints, Floats]
"""A forecaster, the targets it answered, and its probabilities."""


@dataclass(frozen=True, kw_only=True)
class Draws:
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


def mean_of(parts: Sequence[Draws]) -> Draws:
    """The unweighted mean of a statistic over kinds, for the forecasters that answered all of them."""
    shared = [name for name in parts[0].names if all(name in part.names for part in parts)]
    places = [[part.names.index(name) for name in shared] for part in parts]
    return Draws(
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
    table: Table, layers: Sequence[Layer], metrics: Mapping[str, Metric], resampling: Resampling
) -> list[list[dict[str, Draws]]]:
    """Every metric of every forecaster, layer by layer and block by block."""

    def columns(targets: Ints, p: Floats) -> list[Floats]:
        rows = _rows(table, targets, p)
        return [metric.columns(rows) for metric in metrics.values()]

    measure = _Measure(columns=columns, from_sums=[metric.from_sums for metric in metrics.values()])
    answers = [(name, *_answers(table, name)) for name in table.forecasters]
    drawn = _draw(layers, answers, measure, resampling)
    return [[dict(zip(metrics, parts, strict=True)) for parts in blocks] for blocks in drawn]


def draw_differences(
    table: Table, layers: Sequence[Layer], reference: str, metric: Metric, resampling: Resampling
) -> list[list[Draws]]:
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


def _answers(table: Table, forecaster: str, where: Bools | None = None) -> tuple[Ints, Floats]:
    """The targets a forecaster answered (those in the mask) and its probabilities."""
    rows = table.rows_of(forecaster)
    targets = table.target[rows]
    kept = slice(None) if where is None else where[targets]
    return targets[kept], table.p[rows][kept]


def _draw(
    layers: Sequence[Layer], answers: Sequence[Answers], measure: _Measure, resampling: Resampling
) -> list[list[list[Draws]]]:
    """Layer by layer and block by block, the draws of every statistic of the measure."""
    answers = [answer for answer in answers if len(answer[1])]
    if not answers:
        return [[] for _ in layers]
    chunks = [_draw_chunk(layers, chunk, measure, resampling) for chunk in _chunks(answers, layers, measure)]
    names = tuple(name for name, _, _ in answers)
    found: list[list[list[Draws]]] = []
    for at, layer in enumerate(layers):
        supports = [layer.supports(targets) for _, targets, _ in answers]
        pieces = [chunk[at] for chunk in chunks]
        found.append(
            [_joined(names, [s[b] for s in supports], [p[b] for p in pieces]) for b in range(len(layer.blocks))]
        )
    return found


def _joined(
    names: tuple[str, ...], supports: Sequence[Support | None], pieces: Sequence[list[tuple[Floats, Floats]]]
) -> list[Draws]:
    """One block's statistics of all chunks of forecasters, without those who answered nothing in it."""
    present = [i for i, one in enumerate(supports) if one is not None]
    chosen, support = tuple(names[i] for i in present), tuple(one for one in supports if one is not None)
    everyone = len(present) == len(names)
    draws: list[Draws] = []
    for parts in zip(*pieces, strict=True):
        estimate = np.concatenate([part[0] for part in parts])
        replicates = np.concatenate([part[1] for part in parts], axis=1)
        if not everyone:
            estimate, replicates = estimate[present], replicates[:, present]
        draws.append(Draws(names=chosen, estimate=estimate, replicates=replicates, support=support))
    return draws


def _draw_chunk(
    layers: Sequence[Layer], chunk: Sequence[Answers], measure: _Measure, resampling: Resampling
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


def _by_block(layer: Layer, sums: Floats) -> Iterator[tuple[Block, Floats]]:
    for block, a, b in zip(layer.blocks, layer.starts, layer.starts[1:], strict=False):
        yield block, sums[a:b]


def _draw_block(
    block: Block, sums: Floats, edges: Ints, measure: _Measure, resampling: Resampling
) -> list[tuple[Floats, Floats]]:
    resampled = block.draw(sums.reshape(len(sums), -1), resampling).reshape(-1, sums.shape[1], int(edges[-1]))
    total = sums.sum(axis=0)
    return [
        (from_sums(total[:, low:high]), from_sums(resampled[:, :, low:high]))
        for from_sums, low, high in zip(measure.from_sums, edges, edges[1:], strict=False)
    ]


def _chunks(answers: Sequence[Answers], layers: Sequence[Layer], measure: _Measure) -> Iterator[Sequence[Answers]]:
    width = sum(columns.shape[1] for columns in measure.columns(answers[0][1][:1], answers[0][2][:1]))
    step = max(1, CHUNK // (width * sum(int(layer.starts[-1]) for layer in layers)))
    for start in range(0, len(answers), step):
        yield answers[start : start + step]


def _rows(table: Table, targets: Ints, p: Floats) -> Rows:
    known = table.targets
    if not known.priced:
        return Rows(p=p, outcome=known.outcome[targets], weight=known.weight[targets])
    quoted = np.isfinite(known.yes_ask[targets]) & np.isfinite(known.no_ask[targets])
    yes = np.where(quoted, known.yes_ask[targets], known.price[targets])
    no = np.where(quoted, known.no_ask[targets], 1 - known.price[targets])
    return Rows(p=p, outcome=known.outcome[targets], weight=known.weight[targets], yes_price=yes, no_price=no)
