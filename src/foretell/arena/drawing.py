"""Metrics and their bootstrap replicates for many forecasters, from one set of resamples per block.

Every metric is a function of column sums, so a forecaster is a table of sums by cluster and all draws of all its
metrics are one matrix product.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.arena.groups import Layer, Support
from foretell.arena.table import Table
from foretell.evaluate.arrays import Bools, Floats, Ints
from foretell.evaluate.bootstrap import Resampling, summarise
from foretell.evaluate.intervals import Interval
from foretell.evaluate.metric import Metric, Rows

CHUNK = 1 << 23
"""Elements of the largest table of sums held at once (64 MB)."""


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
    table: Table, layer: Layer, metrics: Mapping[str, Metric], resampling: Resampling
) -> list[dict[str, Draws]]:
    """Every metric of every forecaster, block by block."""

    def columns(targets: Ints, p: Floats) -> list[Floats]:
        rows = _rows(table, targets, p)
        return [metric.columns(rows) for metric in metrics.values()]

    measure = _Measure(columns=columns, from_sums=[metric.from_sums for metric in metrics.values()])
    answers = [(name, *_answers(table, name)) for name in table.forecasters]
    return [dict(zip(metrics, parts, strict=True)) for parts in _draw(layer, answers, measure, resampling)]


def draw_differences(table: Table, layer: Layer, reference: str, metric: Metric, resampling: Resampling) -> list[Draws]:
    """Metric of each forecaster minus that of the reference, on common targets and common resamples."""
    base = table.p_of(reference)

    def columns(targets: Ints, p: Floats) -> list[Floats]:
        return [np.hstack([metric.columns(_rows(table, targets, one)) for one in (p, base[targets])])]

    def difference(sums: Floats) -> Floats:
        half = sums.shape[-1] // 2
        return metric.from_sums(sums[..., :half]) - metric.from_sums(sums[..., half:])

    others = [(name, *_answers(table, name, np.isfinite(base))) for name in table.forecasters if name != reference]
    measure = _Measure(columns=columns, from_sums=[difference])
    return [parts[0] for parts in _draw(layer, others, measure, resampling)]


def _answers(table: Table, forecaster: str, where: Bools | None = None) -> tuple[Ints, Floats]:
    """The targets a forecaster answered (those in the mask) and its probabilities."""
    rows = table.rows_of(forecaster)
    targets = table.target[rows]
    kept = slice(None) if where is None else where[targets]
    return targets[kept], table.p[rows][kept]


def _draw(
    layer: Layer, answers: Sequence[tuple[str, Ints, Floats]], measure: _Measure, resampling: Resampling
) -> list[list[Draws]]:
    """Block by block, the draws of every statistic of the measure."""
    answers = [answer for answer in answers if len(answer[1])]
    if not answers:
        return []
    supports = [layer.supports(targets) for _, targets, _ in answers]
    names = tuple(name for name, _, _ in answers)
    pieces = [list(_draw_chunk(layer, chunk, measure, resampling)) for chunk in _chunks(answers, layer, measure)]
    found: list[list[Draws]] = []
    for b in range(len(layer.blocks)):
        present = [i for i, one in enumerate(supports) if one[b] is not None]
        support = tuple(one for i in present if (one := supports[i][b]) is not None)
        parts: list[Draws] = []
        for k in range(len(measure.from_sums)):
            estimate = np.concatenate([piece[b][k][0] for piece in pieces])[present]
            replicates = np.concatenate([piece[b][k][1] for piece in pieces], axis=1)[:, present]
            chosen = tuple(names[i] for i in present)
            parts.append(Draws(names=chosen, estimate=estimate, replicates=replicates, support=support))
        found.append(parts)
    return found


def _draw_chunk(
    layer: Layer, chunk: Sequence[tuple[str, Ints, Floats]], measure: _Measure, resampling: Resampling
) -> Iterator[list[tuple[Floats, Floats]]]:
    """For each block, the estimates (forecasters) and replicates (draws × forecasters) of each statistic."""
    tables = [measure.columns(targets, p) for _, targets, p in chunk]
    edges = np.cumsum([0, *(columns.shape[1] for columns in tables[0])])
    sums = np.stack(
        [layer.sums(np.hstack(columns), targets) for (_, targets, _), columns in zip(chunk, tables, strict=True)],
        axis=1,
    )
    for block, a, b in zip(layer.blocks, layer.starts, layer.starts[1:], strict=False):
        part = sums[a:b]
        resampled = block.draw(part.reshape(len(part), -1), resampling).reshape(-1, len(chunk), edges[-1])
        total = part.sum(axis=0)
        yield [
            (from_sums(total[:, low:high]), from_sums(resampled[:, :, low:high]))
            for from_sums, low, high in zip(measure.from_sums, edges, edges[1:], strict=False)
        ]


def _chunks(
    answers: Sequence[tuple[str, Ints, Floats]], layer: Layer, measure: _Measure
) -> Iterator[Sequence[tuple[str, Ints, Floats]]]:
    width = sum(columns.shape[1] for columns in measure.columns(answers[0][1][:1], answers[0][2][:1]))
    step = max(1, CHUNK // (width * int(layer.starts[-1])))
    for start in range(0, len(answers), step):
        yield answers[start : start + step]


def _rows(table: Table, targets: Ints, p: Floats) -> Rows:
    known = table.targets
    quoted = np.isfinite(known.yes_ask[targets]) & np.isfinite(known.no_ask[targets])
    yes = np.where(quoted, known.yes_ask[targets], known.price[targets])
    no = np.where(quoted, known.no_ask[targets], 1 - known.price[targets])
    return Rows(p=p, outcome=known.outcome[targets], weight=known.weight[targets], yes_price=yes, no_price=no)
