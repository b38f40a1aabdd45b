"""Metaculus scores of questions with options of which one came true."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.metrics.metric import LOG_FLOOR
from foretell.metrics.scores import metaculus_baseline_options, peer_points
from foretell.report.terminal import TextColumn
from foretell.scoring.table import ForecastTable

SUM_OFF = 0.005
"""How far the probabilities of options may be from one; dates of one question rarely add up to that, by anybody."""


@dataclass(frozen=True, kw_only=True)
class OptionScore:
    """One forecaster on the questions with options of which it answered all."""

    forecaster: str
    n: int
    baseline: Interval
    """100·ln(p·k)/ln k of k options: 0 for even chances, 100 for certainty."""
    peer: Interval
    """100·(ln p − mean ln p of the others)."""


def interval_text(found: Interval) -> str:
    """As scores are printed that may lie on either side of nothing."""
    return f"{found.estimate:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"


OPTION_COLUMNS: Mapping[TextColumn, Callable[[OptionScore], str]] = {
    TextColumn(head="Questions with options", shrink=16): lambda one: one.forecaster,
    TextColumn(head="n", right=True, drop=1): lambda one: str(one.n),
    TextColumn(head="Metaculus baseline", right=True): lambda one: interval_text(one.baseline),
    TextColumn(head="Metaculus peer", right=True): lambda one: interval_text(one.peer),
}


def option_scores(table: ForecastTable, resampling: Resampling) -> tuple[OptionScore, ...]:
    """Baseline and peer scores by forecaster, best first; none where no question has options of which one came true."""
    targets = table.targets
    _, task = np.unique(targets.askings, return_inverse=True)
    size, happened = np.bincount(task), np.bincount(task, targets.outcome)
    tasks = np.flatnonzero((size > 1) & (happened == 1))
    if not len(tasks):
        return ()
    place = _places(task, tasks, int(size[tasks].max()))
    given = [np.where(place >= 0, table.p_of(name)[place], np.nan) for name in table.forecasters]
    whole = np.stack([((~np.isnan(p)) == (place >= 0)).all(axis=1) for p in given])
    adds_up = np.stack([np.abs(np.nansum(p, axis=1) - 1) <= SUM_OFF for p in given])
    kept = whole.any(axis=0) & (adds_up | ~whole).all(axis=0)
    if not kept.any():
        return ()
    place = place[kept]
    true = np.argmax(np.where(place >= 0, targets.outcome[place], 0), axis=1)
    chances = np.stack([_distributions(p[kept], rows[kept]) for p, rows in zip(given, whole, strict=True)])
    answered = whole[:, kept]
    happened = np.take_along_axis(chances, np.broadcast_to(true[None, :, None], (*answered.shape, 1)), axis=2)[:, :, 0]
    peer = peer_points(happened)
    cluster = targets.question.codes[place[:, 0]]
    found = [
        OptionScore(
            forecaster=name,
            n=int(rows.sum()),
            baseline=bootstrap_score(
                metaculus_baseline_options(p[rows], true[rows]), cluster[rows], resampling=resampling
            ),
            peer=bootstrap_score(points[rows], cluster[rows], resampling=resampling),
        )
        for name, p, points, rows in zip(table.forecasters, chances, peer, answered, strict=True)
        if rows.any()
    ]
    return tuple(sorted(found, key=lambda one: -one.baseline.estimate))


def _places(task: Ints, tasks: Ints, width: int) -> Ints:
    """The targets of every task, −1 where it has no more."""
    place = np.full((len(tasks), width), -1, np.int64)
    order = np.argsort(task, kind="stable")
    starts = np.searchsorted(task[order], tasks)
    ends = np.searchsorted(task[order], tasks, side="right")
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        place[row, : end - start] = order[start:end]
    return place


def _distributions(given: Floats, whole: Bools) -> Floats:
    """Probabilities that add up to one and are never nothing; NaN in tasks that were not answered as a whole."""
    chances = np.maximum(given, LOG_FLOOR)
    chances = chances / np.maximum(np.nansum(chances, axis=1, keepdims=True), LOG_FLOOR)
    return np.where(whole[:, None], chances, np.nan)
