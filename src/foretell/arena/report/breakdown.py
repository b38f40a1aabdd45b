"""Scores of forecasters within the groups of a column, with intervals that respect clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from foretell.arena.report.grouping import Grouping, grouping
from foretell.arena.scoreboard import Scoreboard
from foretell.arena.scoring import Scoring, score_table
from foretell.arena.table import Labels, Table
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison

NOT_GROUPS = frozenset({"cluster", "text", "title", "question_text", "url"})
"""Columns that name single questions; a score by them says nothing."""

OWN = "readable group"

QUICK = Resampling(draws=2000)


@dataclass(frozen=True, kw_only=True)
class Method:
    """Which number the pictures show, and how sure they are of it."""

    metric: str = "bi"
    cluster: tuple[str, ...] = ()
    """Columns resampled as wholes; empty means `cluster` if there is one, else `question`."""
    resampling: Resampling = QUICK


BRIER_INDEX = Method()


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """One metric by the groups of one column, for one or several forecasters."""

    column: str
    ordered: bool
    groups: tuple[str, ...]
    n: tuple[int, ...]
    """Targets in each group, answered or not."""
    base_rate: tuple[float, ...]
    """Weighted share of yes in each group; NaN without weight."""
    scores: Mapping[str, tuple[Interval | None, ...]]
    """By forecaster, one entry per group; None where it answered nothing."""
    answered: Mapping[str, tuple[int, ...]]
    """By forecaster, how many of the group's targets stand behind the score."""


def breakdown(table: Table, column: str, forecasters: Sequence[str], method: Method = BRIER_INDEX) -> Breakdown:
    """Score every forecaster in every readable group (see `grouping`) of a column of `table.targets.groups`."""
    by = grouping(column, table.targets.groups[column])
    if not any(len(table.rows_of(name)) for name in forecasters):
        return _breakdown(table, by, forecasters, {})
    board = _scored(table.only(*forecasters), by, method)
    found = {(s.forecaster, s.group.get(OWN)): (s.metrics.get(method.metric), s.n) for s in board.scores}
    return _breakdown(table, by, forecasters, found)


def differences(table: Table, column: str, forecaster: str, reference: str, method: Method = BRIER_INDEX) -> Breakdown:
    """Forecaster minus reference on the targets both answered, in every readable group that has any.

    Both are recomputed on the same resamples; `n` counts shared targets.
    """
    by = grouping(column, table.targets.groups[column])
    board = _scored(table.only(forecaster, reference), by, method, reference)
    found = {(d.forecaster, d.group.get(OWN)): (_interval(d.comparison), d.comparison.n) for d in board.differences}
    return _shared(_breakdown(table, by, [forecaster], found), forecaster)


def overall(table: Table, forecaster: str, method: Method = BRIER_INDEX) -> Interval | None:
    """The metric over all targets (the mean over kinds, or that of the only kind answered), None without any."""
    if not len(table.rows_of(forecaster)):
        return None
    board = score_table(table.only(forecaster), _scoring(method))
    return next((s.metrics[method.metric] for s in board.scores if method.metric in s.metrics), None)


def columns_to_group(table: Table) -> tuple[str, ...]:
    """Columns worth a breakdown: at least two readable groups, and most rows outside the pool of small ones."""
    return tuple(name for name, labels in table.targets.groups.items() if _worth(grouping(name, labels)))


def _worth(by: Grouping) -> bool:
    if by.column in NOT_GROUPS or len(by.names) < 2:
        return False
    return "other" not in by.names or float(np.mean(by.codes == by.names.index("other"))) < 0.7


def _rates(table: Table, by: Grouping) -> tuple[float, ...]:
    weight = np.bincount(by.codes, table.targets.weight, len(by.names))
    yes = np.bincount(by.codes, table.targets.weight * table.targets.outcome, len(by.names))
    return tuple(np.divide(yes, weight, out=np.full(len(weight), np.nan), where=weight > 0).tolist())


def _scoring(method: Method, by: tuple[str, ...] = (), reference: str | None = None) -> Scoring:
    return Scoring(
        by=by,
        metric=method.metric,
        reference=reference,
        cluster=method.cluster,
        anchors=False,
        resampling=method.resampling,
    )


def _scored(table: Table, by: Grouping, method: Method, reference: str | None = None) -> Scoreboard:
    """The board by readable groups, under a column name of our own: they are not those of the table's column."""
    labels = Labels(codes=by.codes, names=tuple(str(i) for i in range(len(by.names))))
    targets = replace(table.targets, groups={**table.targets.groups, OWN: labels})
    return score_table(replace(table, targets=targets), _scoring(method, (OWN,), reference))


def _breakdown(
    table: Table,
    by: Grouping,
    forecasters: Sequence[str],
    found: Mapping[tuple[str, str | None], tuple[Interval | None, int]],
) -> Breakdown:
    places = [str(i) for i in range(len(by.names))]
    none: tuple[Interval | None, int] = (None, 0)
    return Breakdown(
        column=by.column,
        ordered=by.ordered,
        groups=by.names,
        n=tuple(np.bincount(by.codes, minlength=len(by.names)).tolist()),
        base_rate=_rates(table, by),
        scores={name: tuple(found.get((name, place), none)[0] for place in places) for name in forecasters},
        answered={name: tuple(found.get((name, place), none)[1] for place in places) for name in forecasters},
    )


def _shared(found: Breakdown, forecaster: str) -> Breakdown:
    """Only the groups with a difference, counted by what stands behind it."""
    kept = [i for i, interval in enumerate(found.scores[forecaster]) if interval is not None]
    counts = tuple(found.answered[forecaster][i] for i in kept)
    return replace(
        found,
        groups=tuple(found.groups[i] for i in kept),
        n=counts,
        base_rate=tuple(found.base_rate[i] for i in kept),
        scores={forecaster: tuple(found.scores[forecaster][i] for i in kept)},
        answered={forecaster: counts},
    )


def _interval(c: Comparison) -> Interval:
    return Interval(
        estimate=c.diff, low=c.low, high=c.high, se=c.se, n_clusters=c.n_clusters, draws=0, warning=c.warning
    )
