"""The leaderboard as rows: who stands where in each group, shared by terminal, HTML and Markdown."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.bootstrap import Interval, brier_index_from_sums, mean_from_sums
from foretell.metrics.clusters import ResamplingDesign
from foretell.metrics.comparison import Comparison, PairwiseMatrix, compare_matrix
from foretell.metrics.metric import METRICS, MetricRows
from foretell.scoring.breakdown import BreakdownMethod
from foretell.scoring.scoreboard import OVERALL, Score, Scoreboard
from foretell.scoring.table import ANCHORS, ForecastTable

# Every forecaster against every other, on the targets both answered.


def comparable(metric: str) -> str:
    """The metric that pairs are compared by: the same, or Brier where it is no function of a mean score.

    >>> comparable("bi"), comparable("log"), comparable("ece")
    ('bi', 'log', 'brier')
    """
    simple = metric == "bi" or (METRICS[metric].per_question is not None and metric != "return")
    return metric if simple else "brier"


def paired_matrix(
    table: ForecastTable, forecasters: Sequence[str], group: Mapping[str, str], method: BreakdownMethod
) -> PairwiseMatrix:
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
    ways = _pair_clusters(table, method.cluster)
    design = ResamplingDesign(
        cluster=ways[0][rows],
        crossed=ways[1][rows] if len(ways) > 1 else None,
        stratum=None if kinds is None else kinds.codes[rows],
        weight=targets.weight[rows],
    )
    statistic = brier_index_from_sums if metric == "bi" else mean_from_sums
    scores = _pointwise(table, forecasters, "brier" if metric == "bi" else metric)
    return compare_matrix(scores[rows], design, statistic=statistic, resampling=method.resampling)


def _pair_clusters(table: ForecastTable, cluster: tuple[str, ...]) -> list[Ints]:
    columns = {**table.targets.groups, "question": table.targets.question, "target": table.targets.target}
    found = [columns[name].codes for name in cluster if name in columns]
    return found or [columns.get("cluster", table.targets.question).codes]


def _pointwise(table: ForecastTable, forecasters: Sequence[str], metric: str) -> Floats:
    """Score of every target by every forecaster, NaN where it did not answer."""
    out = np.full((len(table.targets), len(forecasters)), np.nan)
    score = METRICS[metric].per_question
    if score is None:
        return out
    for j, name in enumerate(forecasters):
        p = table.p_of(name)
        kept = np.flatnonzero(np.isfinite(p))
        if len(kept):
            out[kept, j] = score(MetricRows.of(p[kept], table.targets.outcome[kept]))
    return out


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """One forecaster in one group."""

    place: int | None
    """Rank among forecasters; None for an anchor or where there is no score."""
    score: Score
    difference: Comparison | None
    """Against the reference, in the metric the board is ranked by."""
    anchor: bool
    reference: bool

    @property
    def name(self) -> str:
        """The forecaster."""
        return self.score.forecaster

    def metric(self, name: str) -> Interval | None:
        """A metric of this row, None where it could not be computed."""
        return self.score.metrics.get(name)


@dataclass(frozen=True, kw_only=True)
class LeaderboardSection:
    """One group of the board, best first."""

    group: Mapping[str, str]
    rows: tuple[LeaderboardRow, ...]

    @property
    def title(self) -> str:
        """What the group is called."""
        return group_title(self.group)


def group_title(group: Mapping[str, str]) -> str:
    """A group in words.

    >>> group_title({"kind": "overall"}), group_title({"kind": "market", "source": "infer"})
    ('Overall', 'Market · infer')
    """
    if group.get("kind") == OVERALL and len(group) == 1:
        return "Overall"
    told = " · ".join(value if column in ("kind", "source") else f"{column} {value}" for column, value in group.items())
    return told[:1].upper() + told[1:] if "kind" in group else told or "All"


def leaderboard_sections(board: Scoreboard, anchors: Collection[str] = ANCHORS) -> tuple[LeaderboardSection, ...]:
    """Every group of the board, the overall one first."""
    return tuple(leaderboard_section(board, group, anchors) for group in board.groups())


def leaderboard_section(
    board: Scoreboard, group: Mapping[str, str], anchors: Collection[str] = ANCHORS
) -> LeaderboardSection:
    """One group, best first by the board's metric; rows without a score come last."""
    chosen = sorted((s for s in board.scores if dict(s.group) == dict(group)), key=lambda s: _order(s, board.metric))
    against = {
        d.forecaster: d.comparison
        for d in board.differences
        if dict(d.group) == dict(group) and d.metric == board.metric and d.forecaster != d.reference
    }
    rows: list[LeaderboardRow] = []
    place = 0
    for score in chosen:
        anchor, scored = score.forecaster in anchors, math.isfinite(_value(score, board.metric))
        place += scored and not anchor
        rows.append(
            LeaderboardRow(
                place=place if scored and not anchor else None,
                score=score,
                difference=against.get(score.forecaster),
                anchor=anchor,
                reference=score.forecaster == board.reference,
            )
        )
    return LeaderboardSection(group=group, rows=tuple(rows))


def low_is_better(metric: str) -> bool:
    """Whether small values of the metric are good."""
    return metric in METRICS and METRICS[metric].better == "low"


def shown_metrics(board: Scoreboard) -> tuple[str, ...]:
    """The metrics worth a column: the board's own first, then those any row has, in their usual order."""
    present = {name for score in board.scores for name in score.metrics}
    usual = [name for name in ("brier", "bi", "ms", "log", "ece", "return", "sharpe") if name in present]
    return (board.metric, *(name for name in usual if name != board.metric))


def _value(score: Score, metric: str) -> float:
    found = score.metrics.get(metric)
    return math.nan if found is None else found.estimate


def _order(score: Score, metric: str) -> tuple[bool, float, str]:
    value = _value(score, metric)
    if math.isnan(value):
        return True, 0.0, score.forecaster
    return False, value if low_is_better(metric) else -value, score.forecaster
