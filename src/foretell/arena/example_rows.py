"""Columns read from tables as `Rows`: one matrix of trials per forecaster, all over the same targets."""

from collections.abc import Sequence

import numpy as np

from foretell.arena.intake import Column, Columns
from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.rows import Days, Rows, Strings


def by_forecaster(facts: Columns, said: Columns) -> dict[str, Rows]:
    """Rows of every forecaster over all targets, in the order of first appearance; NaN where it said nothing."""
    names, code = np.unique(said["forecaster"].astype(str), return_inverse=True)
    first = np.argsort([int(np.argmax(code == i)) for i in range(len(names))])
    targets = _targets(facts)
    found: dict[str, Rows] = {}
    for i in first:
        mine = code == i
        trial = _numbered(said["trial"][mine].astype(str))
        matrix = np.full((int(trial.max()) + 1, len(targets)), np.nan)
        matrix[trial, said["place"][mine]] = said["p"][mine]
        found[str(names[i])] = targets.with_trials(matrix)
    return found


def _numbered(trial: Column) -> Ints:
    """Each forecast's trial as 0.., in the order of the trials' numbers, or of their names where they have none."""
    names, code = np.unique(trial, return_inverse=True)
    place = np.empty(len(names), np.int64)
    place[np.argsort(_order(names.tolist()), kind="stable")] = np.arange(len(names))
    return place[code]


def _order(names: Sequence[str]) -> list[float]:
    try:
        return [float(name) for name in names]
    except ValueError:
        return [float(i) for i in range(len(names))]


def _targets(facts: Columns) -> Rows:
    """The targets without anything said about them."""
    question, price = np.ma.getdata(facts["question"]).astype(str), numbers(facts["price"], np.nan)
    kind, cluster = _texts(facts["kind"]), _texts(facts["cluster"])
    return Rows(
        trials=np.full((1, len(question)), np.nan),
        question=question,
        due=days(facts["due_key"]),
        target=np.ma.getdata(facts["target"]).astype(str),
        source=_texts(facts["source"]),
        subtype=_texts(facts["subtype"]),
        # Where nobody says, what has a price is a market.
        kind=np.where(kind == "", np.where(np.isnan(price), "dataset", "market"), kind),
        horizon=numbers(facts["horizon"], np.nan),
        price=price,
        prior=numbers(facts["prior"], np.nan),
        liquidity=numbers(facts["liquidity"], np.nan),
        cluster=np.where(cluster == "", question, cluster),
    )


def _texts(column: Column) -> Strings:
    return np.ma.filled(column.astype(object), "").astype(str)


def numbers(column: Column, missing: float) -> Floats:
    """A column of numbers with something in place of what is missing."""
    return np.ma.filled(np.ma.asarray(column).astype(np.float64), missing)


def days(column: Column) -> Days:
    """The calendar days (UTC) of canonical moments."""
    return np.array([str(value)[:10] for value in np.ma.getdata(column)], dtype="M8[D]")
