"""Several forecasters side by side, as the trials of one `Rows`."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Literal

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.rows import Rows, Strings, logit, sigmoid

Space = Literal["logit", "probability"]
Names = tuple[str, ...]


def side_by_side(forecasters: Mapping[str, Rows]) -> tuple[Names, Rows]:
    """Names and rows with one trial per forecaster, the logit mean of its own; NaN where it did not answer.

    A target that only some were asked about is there once, with what the first of them knew about it.
    """
    if not forecasters:
        raise ValueError("no forecaster is given: an ensemble needs members")
    everyone = [(rows, _keys(rows)) for rows in forecasters.values()]
    keys, first = np.unique(np.concatenate([own for _, own in everyone]), return_index=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(keys), np.int64)
    place[order] = np.arange(len(keys))
    said = np.full((len(everyone), len(keys)), np.nan)
    for member, (rows, own) in enumerate(everyone):
        said[member, place[_places(keys, own)]] = rows.raw
    joined = _joined([rows for rows, _ in everyone]).take(first[order])
    return tuple(forecasters), joined.with_trials(said)


def in_space(p: Floats, space: Space) -> Floats:
    """Probabilities on the scale on which they are averaged."""
    if space not in ("logit", "probability"):
        raise ValueError(f"space {space!r} is neither logit nor probability")
    return logit(p) if space == "logit" else p


def from_space(x: Floats, space: Space) -> Floats:
    """Back to probabilities."""
    return sigmoid(x) if space == "logit" else x


def weighted(p: Floats, weights: Floats, space: Space) -> Floats:
    """Members × targets averaged with their weights, renormalised on every target over the members present.

    Where those present have no weight at all they count equally; NaN only where nobody is present.

    >>> p = np.array([[0.2, 0.2, np.nan], [0.6, np.nan, np.nan]])
    >>> weighted(p, np.array([0.25, 0.75]), "probability").round(3).tolist()
    [0.5, 0.2, nan]
    """
    present = ~np.isnan(p)
    share = np.where(present, weights[:, None], 0.0)
    weightless = share.sum(axis=0) <= 0
    share = np.where(weightless, present.astype(np.float64), share)
    total = share.sum(axis=0)
    x = np.where(present, in_space(np.where(present, p, 0.5), space), 0.0)
    mean = np.divide((share * x).sum(axis=0), total, out=np.zeros(p.shape[1]), where=total > 0)
    return np.where(total > 0, from_space(mean, space), np.nan)


def check_members(rows: Rows, names: Names) -> Floats:
    """The members' probabilities (members × targets), or a `ValueError` where rows and names do not match."""
    if len(set(names)) != len(names):
        raise ValueError("two members have the same name")
    if len(rows.trials) != len(names):
        raise ValueError(f"rows hold {len(rows.trials)} members, {len(names)} are named")
    return rows.trials


def _keys(rows: Rows) -> Strings:
    keys = np.char.add(np.char.add(rows.asking, "\x1f"), rows.target.astype(str))
    if len(np.unique(keys)) != len(keys):
        raise ValueError("a target appears twice in the rows of one forecaster")
    return keys


def _places(keys: Strings, own: Strings) -> Ints:
    return np.searchsorted(keys, own).astype(np.int64)


def _joined(parts: list[Rows]) -> Rows:
    columns = {f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Rows) if f.name != "trials"}
    return Rows(trials=np.full((1, sum(map(len, parts))), np.nan), **columns)
