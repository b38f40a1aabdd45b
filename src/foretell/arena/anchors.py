"""Rows that stand beside every forecaster, so that a score can be read: 0.5, the base rate and the crowd."""

import numpy as np

from foretell.arena.table import Labels, Table, Targets
from foretell.evaluate.arrays import Floats, Ints

ALWAYS_HALF = "always 0.5"
BASE_RATE = "base rate"
CROWD = "crowd price"
ANCHORS = (CROWD, BASE_RATE, ALWAYS_HALF)


def with_anchors(table: Table) -> Table:
    """The table with its anchors added; a forecaster that already has an anchor's name is left alone."""
    half = np.full(len(table.targets), 0.5)
    columns = {ALWAYS_HALF: half, BASE_RATE: base_rate(table.targets), CROWD: table.targets.price}
    new = {name: p for name, p in columns.items() if name not in table.forecasters and np.isfinite(p).any()}
    forecaster, target, p = [table.forecaster], [table.target], [table.p]
    for code, column in enumerate(new.values(), len(table.forecasters)):
        answered = np.flatnonzero(np.isfinite(column))
        forecaster.append(np.full(len(answered), code, np.int64))
        target.append(answered)
        p.append(column[answered])
    return Table(
        targets=table.targets,
        forecasters=table.forecasters + tuple(new),
        forecaster=np.concatenate(forecaster),
        target=np.concatenate(target),
        p=np.concatenate(p),
        notes=table.notes,
    )


def base_rate(targets: Targets) -> Floats:
    """The frequency of yes among other targets of the same source, out of sample.

    With due and resolution dates: only what had resolved before the target's due date. Without them: all targets
    outside the target's own cluster. Either way smoothed by two pseudo-observations at one half.
    """
    groups = targets.groups
    by = groups.get("source") or groups.get("kind") or Labels(codes=np.zeros(len(targets), np.int64), names=("",))
    if "due" in groups and "resolved_on" in groups:
        return _past_rate(targets, by.codes)
    return _rate_elsewhere(targets, by.codes)


def _past_rate(targets: Targets, source: Ints) -> Floats:
    due, known = _days(targets.groups["due"]), _days(targets.groups["resolved_on"])
    out = np.full(len(targets), 0.5)
    for code in np.unique(source):
        rows = np.flatnonzero(source == code)
        order = rows[np.argsort(known[rows], kind="stable")]
        yes = np.concatenate([[0.0], np.cumsum(targets.outcome[order])])
        before = np.searchsorted(known[order], due[rows], side="left")
        out[rows] = (yes[before] + 1) / (before + 2)
    return out


def _days(labels: Labels) -> np.ndarray:
    """Calendar days; an unknown day sorts last, so that it is never taken for the past."""
    unknown = np.datetime64("9999-12-31")
    return np.array([np.datetime64(name[:10], "D") if name else unknown for name in labels.names])[labels.codes]


def _rate_elsewhere(targets: Targets, source: Ints) -> Floats:
    cluster = targets.groups.get("cluster", targets.question).codes
    pair = source * (int(cluster.max()) + 1) + cluster
    _, own = np.unique(pair, return_inverse=True)
    yes, n = np.bincount(source, targets.outcome)[source], np.bincount(source)[source]
    own_yes, own_n = np.bincount(own, targets.outcome)[own], np.bincount(own)[own]
    return (yes - own_yes + 1) / (n - own_n + 2)
