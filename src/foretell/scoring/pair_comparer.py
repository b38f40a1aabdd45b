"""Compares pairs of forecasters of a table on the targets that both answered; the answer is a `Verdict`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Resampling
from foretell.metrics.clusters import ResamplingDesign
from foretell.metrics.comparison import compare_pairs
from foretell.metrics.metric import Metric
from foretell.scoring.engine import kinds_of, resampling_design
from foretell.scoring.table import ForecastTable, metric_rows
from foretell.scoring.verdict import Verdict


@frozen
class PairComparer:
    """Compares pairs of forecasters of a table by one metric.

    A verdict depends on the two forecasters and the targets both answered, not on other forecasters in the table.
    """

    table: ForecastTable
    metric: Metric
    cluster: tuple[str, ...] = ()
    """Columns whose values are resampled as a whole; see `ScoringOptions.cluster`."""
    resampling: Resampling = DEFAULT_RESAMPLING
    matters: float | None = None
    """The smallest difference that matters; None takes the metric's own."""

    def verdicts(
        self, pairs: Sequence[tuple[str, str]], group: Mapping[str, str] | None = None, rows: Ints | None = None
    ) -> list[Verdict]:
        """Return the verdicts on pairs that share a target, on the targets at `rows` or on all, named `group`.

        Several kinds of questions count equally, each resampled separately.
        """
        verdicts = dict[tuple[str, str], Verdict]()
        for common, members in self._shared(pairs, rows):
            names = list(dict.fromkeys(name for pair in members for name in pair))
            columns = np.stack([self._columns(name, common) for name in names], axis=1)
            # A target without a score, such as one without a price, is no cluster that the uncertainty rests on.
            scored = columns.any(axis=(1, 2))
            kinds = [kinds_of(self.table.targets, targets) for targets in (common, common[scored])]
            if not scored.any() or kinds[0] != kinds[1]:
                continue  # As on a board, there is no mean over kinds if one of them has no score.
            common, columns = common[scored], columns[scored]
            places = {(names.index(a), names.index(b)): (a, b) for a, b in members}
            compared = compare_pairs(
                columns,
                list(places),
                self._design(common, group or {}),
                statistic=self.metric.from_sums,
                resampling=self.resampling,
                bounds=self.metric.bounds,
            )
            for place, comparison in compared.items():
                pair = places[place]
                if not math.isnan(comparison.diff):
                    level = self.resampling.level
                    verdict = Verdict.of(comparison, pair, self.metric, level=level, matters=self.matters)
                    one_sided = bool(np.ptp(self.table.targets.outcome[common]) == 0)
                    verdicts[pair] = replace(verdict, group=group or {}, one_sided=one_sided)
        return [verdicts[pair] for pair in pairs if pair in verdicts]

    def _shared(
        self, pairs: Sequence[tuple[str, str]], rows: Ints | None
    ) -> Iterator[tuple[Ints, list[tuple[str, str]]]]:
        """Yield pairs that share the same targets together, with these targets."""
        shared: dict[bytes, list[tuple[str, str]]] = {}
        # Indices of answered targets, not a row of all targets for every forecaster: most may be unanswered.
        wanted = np.zeros(len(self.table.targets), np.bool_)
        wanted[slice(None) if rows is None else rows] = True
        answered = {name: self.table.answered(name) for name in dict.fromkeys(name for pair in pairs for name in pair)}
        for first, second in pairs:
            both = np.zeros_like(wanted)
            both[answered[second]] = wanted[answered[second]]
            common = answered[first][both[answered[first]]]
            if len(common):
                shared.setdefault(common.tobytes(), []).append((first, second))
        for key, members in shared.items():
            yield np.frombuffer(key, np.int64), members

    def _columns(self, name: str, targets: Ints) -> Floats:
        rows = metric_rows(self.table, targets, self.table.p_of(name)[targets], name, (self.metric.needs,))
        return self.metric.columns(rows)

    def _design(self, targets: Ints, group: Mapping[str, str]) -> ResamplingDesign:
        known = self.table.targets
        stratum = known.groups["kind"] if len(kinds_of(known, targets)) > 1 else None
        # The score of a kind is resampled in the stream of the kind.
        kinds = {name: stream for stream, name in enumerate(kinds_of(known))} if tuple(group) == ("kind",) else {}
        return resampling_design(known, self.cluster, targets, stratum, stream=kinds.get(group.get("kind", ""), 0))
