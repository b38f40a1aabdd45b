"""The leaderboard as rows: who stands where in each group, shared by terminal, HTML and Markdown."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from foretell.arena.anchors import ANCHORS
from foretell.arena.scoreboard import OVERALL, Score, Scoreboard
from foretell.evaluate.intervals import Interval
from foretell.evaluate.metric import METRICS
from foretell.evaluate.significance import Comparison


@dataclass(frozen=True, kw_only=True)
class Standing:
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
class Ranking:
    """One group of the board, best first."""

    group: Mapping[str, str]
    rows: tuple[Standing, ...]

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


def rankings(board: Scoreboard, anchors: Collection[str] = ANCHORS) -> tuple[Ranking, ...]:
    """Every group of the board, the overall one first."""
    return tuple(ranking(board, group, anchors) for group in board.groups())


def ranking(board: Scoreboard, group: Mapping[str, str], anchors: Collection[str] = ANCHORS) -> Ranking:
    """One group, best first by the board's metric; rows without a score come last."""
    chosen = sorted((s for s in board.scores if dict(s.group) == dict(group)), key=lambda s: _order(s, board.metric))
    against = {
        d.forecaster: d.comparison
        for d in board.differences
        if dict(d.group) == dict(group) and d.metric == board.metric and d.forecaster != d.reference
    }
    rows: list[Standing] = []
    place = 0
    for score in chosen:
        anchor, scored = score.forecaster in anchors, math.isfinite(_value(score, board.metric))
        place += scored and not anchor
        rows.append(
            Standing(
                place=place if scored and not anchor else None,
                score=score,
                difference=against.get(score.forecaster),
                anchor=anchor,
                reference=score.forecaster == board.reference,
            )
        )
    return Ranking(group=group, rows=tuple(rows))


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
