"""The columns of the outcomes table as arrays and labels."""

from itertools import pairwise

import numpy as np

from foretell.arena.intake import Column, Columns, Intake, quoted
from foretell.arena.table import Labels, Targets
from foretell.evaluate.arrays import Floats
from foretell.questions.problems import InputError

HORIZON_EDGES = (7, 30, 90, 180, 365, 1095, 1825, 3650)
UNIT = ("price", "yes_ask", "no_ask")
OWN = {"question", "target", "outcome", "weight", *UNIT}
"""Columns with a meaning of their own; all others are labels to group by."""


def read_targets(o: Intake, *, by_question: bool) -> Targets:
    """The resolved targets; without a weight column each counts once, or each question once if `by_question`."""
    texts = [c for c in o.columns if c not in OWN - {"question", "target"}]
    numbers = [c for c in (*UNIT, "weight") if c in o.types]
    where = "from resolved where outcome is not null order by _row"
    data = o.fetch(f"select outcome {''.join(', ' + quoted(c) for c in numbers)} {where}")
    outcome = _plain(data["outcome"]).astype(np.float64)
    if not len(outcome):
        raise InputError("no target has an outcome yet", path=o.name, column="outcome")
    labels = _labels(o, texts, where)
    question, target = labels.pop("question"), labels.pop("target")
    if "horizon" in labels:
        labels["horizon"] = _horizons(labels["horizon"])
    return Targets(
        outcome=outcome,
        weight=_weights(data, question, by_question=by_question),
        question=question,
        target=target,
        price=_numbers(data, "price", len(outcome)),
        yes_ask=_numbers(data, "yes_ask", len(outcome)),
        no_ask=_numbers(data, "no_ask", len(outcome)),
        groups=labels,
    )


def _labels(o: Intake, columns: list[str], where: str) -> dict[str, Labels]:
    """Text columns as codes; DuckDB's enums number the names in order of first appearance."""
    codes: list[str] = []
    names: dict[str, tuple[str, ...]] = {}
    for i, column in enumerate(columns):
        value = f"coalesce({quoted(column)}, '')"
        query = f"select {value} as name from resolved where outcome is not null group by 1 order by min(_row)"
        names[column] = tuple(name for (name,) in o.con.execute(query).fetchall())
        o.con.execute(f"create type label_{i} as enum ({query})")
        codes.append(f"enum_code({value}::label_{i})::bigint as {quoted(column)}")
    data = o.fetch(f"select {', '.join(codes)} {where}")
    return {column: Labels(codes=_plain(data[column]).astype(np.int64), names=names[column]) for column in columns}


def _weights(data: Columns, question: Labels, *, by_question: bool) -> Floats:
    if "weight" in data:
        return _plain(data["weight"]).astype(np.float64)
    if by_question:
        return 1.0 / np.bincount(question.codes)[question.codes]
    return np.ones(len(question.codes))


def _numbers(data: Columns, column: str, n: int) -> Floats:
    if column not in data:
        return np.full(n, np.nan)
    return np.ma.filled(data[column].astype(np.float64), np.nan)


def _horizons(written: Labels) -> Labels:
    """Exact days where there are few, else the benchmark's usual edges."""
    days = np.array([float(name) if name else np.nan for name in written.names])
    if len(days) <= 12:
        return Labels(codes=written.codes, names=tuple(f"{d:g}" if np.isfinite(d) else "" for d in days))
    names = (f"≤{HORIZON_EDGES[0]}", *(f"{a + 1}–{b}" for a, b in pairwise(HORIZON_EDGES)), f">{HORIZON_EDGES[-1]}", "")
    codes = np.where(np.isfinite(days), np.searchsorted(HORIZON_EDGES, days), len(names) - 1)
    return Labels(codes=codes[written.codes].astype(np.int64), names=names)


def _plain(column: Column) -> Column:
    return np.ma.getdata(column)
