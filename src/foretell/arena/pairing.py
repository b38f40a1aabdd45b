"""Two forecasters head to head, with a plan for the next time."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from foretell.arena.intake import Source
from foretell.arena.joining import Reading, read_table
from foretell.arena.scoreboard import Difference, Score
from foretell.arena.scoring import Scoring, score_table
from foretell.arena.table import Table
from foretell.evaluate.power import Pilot, plan_from


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What is known about first − second, group by group, the overall one first."""

    first: str
    second: str
    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]
    level: float
    """Of the intervals."""
    pilot: Pilot | None
    """Spread of their Brier differences, from which to plan the next comparison; None where they never differ."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def compare(
    forecasts: Source,
    outcomes: Source,
    first: str,
    second: str,
    *,
    reading: Reading | None = None,
    **options: Any,
) -> Pair:
    """Whether the first forecaster is better than the second, and by more than noise, on the targets both answered.

    `options` are the fields of `Scoring`, as in `score`.

    >>> rows = [{"forecaster": name, "question": f"q{n}", "target": "yes", "p": p}
    ...         for name, p in (("bold", 0.9), ("shy", 0.6)) for n in range(4)]
    >>> happened = [{"question": f"q{n}", "target": "yes", "outcome": 1} for n in range(4)]
    >>> round(compare(rows, happened, "bold", "shy", metric="brier").differences[0].comparison.diff, 2)
    -0.15
    """
    scoring = replace(Scoring(anchors=False), **options)
    return compare_pair(read_table(forecasts, outcomes, reading), first, second, scoring)


def compare_pair(table: Table, first: str, second: str, scoring: Scoring | None = None) -> Pair:
    """The paired comparison of two forecasters of a table."""
    for name in (first, second):
        table.require(name)
    both = table.only(first, second)
    scoring = replace(scoring or Scoring(), reference=second)
    board = score_table(both, scoring)
    return Pair(
        first=first,
        second=second,
        scores=board.scores,
        differences=board.differences,
        level=scoring.resampling.level,
        pilot=pilot_of(both, first, second),
    )


def pilot_of(table: Table, first: str, second: str) -> Pilot | None:
    """What the pair says about how many questions the next comparison needs."""
    targets = table.targets
    scores = [(table.p_of(name) - targets.outcome) ** 2 for name in (first, second)]
    gap = scores[0] - scores[1]
    cluster = targets.groups.get("cluster", targets.question).codes
    common = np.isfinite(gap)
    if np.ptp(gap[common]) == 0 or len(np.unique(cluster[common])) < 2:
        return None
    return plan_from(scores[0], scores[1], cluster)
