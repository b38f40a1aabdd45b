"""Several trials of one forecaster on one target become one probability."""

from dataclasses import dataclass

import numpy as np

from foretell.arena.intake import Column, Columns, Intake
from foretell.arena.rules import repeated
from foretell.evaluate.arrays import Floats, Ints
from foretell.questions.problems import InputError

FLOOR = 1e-9
"""Keeps the log-odds of a certain trial finite."""


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """One probability per forecaster and target, in the order of forecasters and targets."""

    forecasters: tuple[str, ...]
    forecaster: Ints
    target: Ints
    p: Floats


def pool_trials(f: Intake, matched: Columns, *, as_odds: bool) -> Pooled:
    """The forecasts of resolved targets, several trials averaged as probabilities or as log-odds."""
    names = tuple(name for (name,) in f.con.execute("select name from names order by code").fetchall())
    keep = np.ma.filled(matched["idx"], -1) >= 0
    if not keep.any():
        raise InputError("no forecast meets a resolved target", path=f.name, hint="are the question ids the same?")
    code, idx, p, row = (np.ma.getdata(matched[c])[keep] for c in ("code", "idx", "p", "_row"))
    pair = code.astype(np.int64) * (int(idx.max()) + 1) + idx
    order = np.argsort(pair, kind="stable")
    fresh = np.concatenate([[True], np.diff(pair[order]) > 0])
    if not fresh.all():
        trial = np.ma.filled(matched["trial"], "")[keep][order] if "trial" in matched else None
        _refuse_same_trial(f, row[order], np.cumsum(fresh), trial)
    chosen = order[fresh]
    return Pooled(
        forecasters=names,
        forecaster=code[chosen].astype(np.int64),
        target=idx[chosen].astype(np.int64),
        p=p[chosen] if fresh.all() else _mean(p[order], np.cumsum(fresh) - 1, as_odds=as_odds),
    )


def _mean(p: Floats, group: Ints, *, as_odds: bool) -> Floats:
    if not as_odds:
        return np.bincount(group, p) / np.bincount(group)
    odds = np.log(np.maximum(p, FLOOR) / np.maximum(1 - p, FLOOR))
    return 1 / (1 + np.exp(-np.bincount(group, odds) / np.bincount(group)))


def _refuse_same_trial(f: Intake, row: Column, pair: Column, trial: Column | None) -> None:
    """Several forecasts of one target by one forecaster must be told apart by their trials."""
    seen: dict[tuple[int, str], int] = {}
    repeats: list[tuple[int, int]] = []
    several = np.isin(pair, np.flatnonzero(np.bincount(pair) > 1))
    for i in np.flatnonzero(several):
        key = (int(pair[i]), "" if trial is None else str(trial[i]))
        if key in seen:
            repeats.append((min(seen[key], int(row[i])), max(seen[key], int(row[i]))))
        seen.setdefault(key, int(row[i]))
    if repeats:
        key = {c: c for c in ("forecaster", "question", "target", "due", "trial") if c in f.types}
        raise repeated(f, *min(repeats, key=lambda rows: rows[1]), key)
