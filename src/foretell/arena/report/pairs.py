"""Every forecaster against every other, on the targets both answered."""

from collections.abc import Mapping, Sequence

import numpy as np

from foretell.arena.report.breakdown import Method
from foretell.arena.scoreboard import OVERALL
from foretell.arena.table import Table
from foretell.evaluate.arrays import Floats, Ints
from foretell.evaluate.bootstrap import brier_index_from_sums, mean_from_sums
from foretell.evaluate.compare import PairwiseMatrix, compare_matrix
from foretell.evaluate.design import Design
from foretell.evaluate.metric import METRICS, Rows


def comparable(metric: str) -> str:
    """The metric that pairs are compared by: the same, or Brier where it is no function of a mean score.

    >>> comparable("bi"), comparable("log"), comparable("ece")
    ('bi', 'log', 'brier')
    """
    simple = metric == "bi" or (METRICS[metric].per_question is not None and metric != "return")
    return metric if simple else "brier"


def paired_matrix(table: Table, forecasters: Sequence[str], group: Mapping[str, str], method: Method) -> PairwiseMatrix:
    """All paired differences of `comparable(method.metric)` within a group of the board.

    The overall group of several kinds is the mean over kinds, each resampled apart.
    """
    targets, metric = table.targets, comparable(method.metric)
    rows = np.ones(len(targets), dtype=np.bool_)
    whole = group.get("kind") == OVERALL
    for column, name in group.items():
        if column in targets.groups and not (column == "kind" and whole):
            rows &= targets.groups[column].mask(name)
    kinds = targets.groups.get("kind") if whole else None
    ways = _ways(table, method.cluster)
    design = Design(
        cluster=ways[0][rows],
        crossed=ways[1][rows] if len(ways) > 1 else None,
        stratum=None if kinds is None else kinds.codes[rows],
        weight=targets.weight[rows],
    )
    statistic = brier_index_from_sums if metric == "bi" else mean_from_sums
    scores = _pointwise(table, forecasters, "brier" if metric == "bi" else metric)
    return compare_matrix(scores[rows], design, statistic=statistic, resampling=method.resampling)


def _ways(table: Table, cluster: tuple[str, ...]) -> list[Ints]:
    columns = {**table.targets.groups, "question": table.targets.question, "target": table.targets.target}
    found = [columns[name].codes for name in cluster if name in columns]
    return found or [columns.get("cluster", table.targets.question).codes]


def _pointwise(table: Table, forecasters: Sequence[str], metric: str) -> Floats:
    """Score of every target by every forecaster, NaN where it did not answer."""
    out = np.full((len(table.targets), len(forecasters)), np.nan)
    score = METRICS[metric].per_question
    if score is None:
        return out
    for j, name in enumerate(forecasters):
        p = table.p_of(name)
        kept = np.flatnonzero(np.isfinite(p))
        if len(kept):
            out[kept, j] = score(Rows.of(p[kept], table.targets.outcome[kept]))
    return out
