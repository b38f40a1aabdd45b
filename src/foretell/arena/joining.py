"""From two long tables to one `Table`: check every row, then join on question, target and (if given) due date."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from foretell.arena.intake import Column, Columns, Intake, Source, opened, quoted
from foretell.arena.rules import (
    horizon_rule,
    kind_rule,
    moment_rule,
    outcome_rule,
    text_rule,
    unique_rule,
    unit_rule,
    weight_rule,
)
from foretell.arena.table import Labels, Table, Targets
from foretell.evaluate.arrays import Floats
from foretell.questions.problems import InputError

HORIZON_EDGES = (7, 30, 90, 180, 365, 1095, 1825, 3650)
MOMENTS = ("due", "resolved_on")
UNIT = ("price", "yes_ask", "no_ask")
OWN = {"question", "target", "outcome", "weight", *UNIT}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read the two tables."""

    trials: Literal["mean", "logit-mean", "separate"] = "mean"
    """Several trials of one forecaster on one target: averaged, averaged as log-odds, or kept as forecasters."""
    weights: Literal["equal", "question"] = "equal"
    """Without a weight column: every target counts once, or every question once (its targets 1/m each)."""
    drop_unknown: bool = False
    """Leave out forecasts of targets that the outcomes do not mention, instead of refusing the file."""


def read_table(forecasts: Source, outcomes: Source, reading: Reading | None = None) -> Table:
    """Read, check and join. The first problem raises an `InputError` that names file, row and column."""
    import duckdb

    reading = reading or Reading()
    with (
        duckdb.connect(":memory:") as con,
        opened(outcomes, "outcomes", con) as o,
        opened(forecasts, "forecasts", con) as f,
    ):
        due = _check(f, o)
        _index_targets(o, due)
        _index_forecasts(f, due, reading)
        notes = _notes(f, reading)
        targets = _targets(o, reading)
        rows = f.fetch("select forecaster, idx, p from joined order by forecaster, idx")
        names = con.execute("select name from forecaster_names order by code").fetchall()
    if not len(rows["p"]):
        raise InputError("no forecast meets a resolved target", path=f.name, hint="are the question ids the same?")
    return Table(
        targets=targets,
        forecasters=tuple(name for (name,) in names),
        forecaster=_plain(rows["forecaster"]).astype(np.int64),
        target=_plain(rows["idx"]).astype(np.int64),
        p=_plain(rows["p"]).astype(np.float64),
        notes=notes,
    )


def _check(f: Intake, o: Intake) -> bool:
    """Apply every rule; returns whether the due date is part of the key."""
    f.require("forecaster", "question", "target", "p")
    o.require("question", "target", "outcome")
    for column in ("forecaster", "question", "target"):
        text_rule(f, column)
    for column in ("question", "target"):
        text_rule(o, column)
    unit_rule(f, "p", optional=False)
    outcome_rule(o)
    for column in UNIT:
        if column in o.types:
            unit_rule(o, column, optional=True)
    for column, rule in {"weight": weight_rule, "kind": kind_rule, "horizon": horizon_rule}.items():
        if column in o.types:
            rule(o)
    due = "due" in f.types and "due" in o.types
    key = {"question": o.text("question"), "target": o.text("target")}
    unique_rule(o, key | ({"due": o.text("due")} if "due" in o.types else {}), "target")
    if "due" in o.types and not due:
        _refuse_ambiguous(f, o)
    f_key = {"forecaster": f.text("forecaster"), "question": f.text("question"), "target": f.text("target")}
    f_key |= {c: f.text(c) for c in ("due", "trial") if c in f.types}
    unique_rule(f, f_key, "target")
    return due


def _refuse_ambiguous(f: Intake, o: Intake) -> None:
    query = f"select 1 from {o.table} group by {o.text('question')}, {o.text('target')} having count(*) > 1 limit 1"
    if o.con.execute(query).fetchall():
        raise InputError(
            "the outcomes ask some targets at several due dates, so the forecasts must say which they mean",
            path=f.name,
            column="due",
            hint="add a due column to the forecasts",
        )


def _index_targets(o: Intake, due: bool) -> None:
    moments = {c: moment_rule(o, c) for c in MOMENTS if c in o.types}
    due_key = moments["due"] if due else "''"
    extra = [c for c in o.columns if c not in OWN and c not in moments]
    texts = [f"{o.text(c)} as {quoted(c)}" for c in extra] + [f"{sql} as {quoted(c)}" for c, sql in moments.items()]
    numbers = [f"{o.number(c)} as {quoted(c)}" for c in (*UNIT, "weight") if c in o.types]
    columns = ", ".join(texts + numbers)
    o.con.execute(
        f"""create table resolved as
        select _row, {o.text("question")} as question, {o.text("target")} as target, coalesce({due_key}, '') as due_key,
               {o.number("outcome")} as outcome {"," + columns if columns else ""}
        from {o.table}"""
    )
    o.con.execute(
        """create table target_index as select question, target, due_key,
        case when outcome is null then -1
             else count(outcome) over (order by _row rows unbounded preceding) - 1 end as idx from resolved"""
    )


def _index_forecasts(f: Intake, due: bool, reading: Reading) -> None:
    due_sql = f"coalesce({moment_rule(f, 'due')}, '')" if due else "''"
    if "due" in f.types and not due:
        moment_rule(f, "due")
    name = f.text("forecaster")
    if reading.trials == "separate" and "trial" in f.types:
        name = f"{name} || ' · trial ' || coalesce({f.text('trial')}, '')"
    f.con.execute(
        f"""create table keyed as select _row, {name} as name, {f.text("question")} as question,
        {f.text("target")} as target, {due_sql} as due_key, {f.number("p")} as p from {f.table}"""
    )
    f.con.execute(
        "create table matched as select k._row, k.name, k.p, t.idx from keyed k left join target_index t "
        "using (question, target, due_key)"
    )
    if not reading.drop_unknown:
        for row, question, target in f.con.execute(
            "select m._row, k.question, k.target from matched m join keyed k using (_row) "
            "where m.idx is null order by 1 limit 1"
        ).fetchall():
            raise InputError(
                f"unknown target: the outcomes have no row for question {question!r}, target {target!r}",
                path=f.name,
                row=row,
                column="target",
                hint="give unresolved targets a row with an empty outcome, or drop such forecasts with --drop-unknown",
            )
    f.con.execute(
        "create table forecaster_names as select name, row_number() over (order by min(_row)) - 1 as code "
        "from matched group by name"
    )
    odds = "ln(greatest(p, 1e-9) / greatest(1 - p, 1e-9))"
    pooled = f"1 / (1 + exp(-avg({odds})))" if reading.trials == "logit-mean" else "avg(p)"
    f.con.execute(
        f"""create table joined as select n.code as forecaster, m.idx, {pooled} as p
        from matched m join forecaster_names n using (name) where m.idx >= 0 group by all"""
    )


def _notes(f: Intake, reading: Reading) -> tuple[str, ...]:
    open_, unknown = f.con.execute(
        "select count(*) filter (where idx = -1), count(*) filter (where idx is null) from matched"
    ).fetchall()[0]
    notes = [f"{open_} forecasts of targets that have not resolved are not scored"] if open_ else []
    notes += [f"{unknown} forecasts of targets that the outcomes do not mention are left out"] if unknown else []
    if "trial" in f.types and reading.trials != "separate":
        notes.append(f"trials of one forecaster are combined by {reading.trials}")
    return tuple(notes)


def _targets(o: Intake, reading: Reading) -> Targets:
    data = o.fetch("select * exclude (_row) from resolved where outcome is not null order by _row")
    outcome = _plain(data["outcome"]).astype(np.float64)
    if not len(outcome):
        raise InputError("no target has an outcome yet", path=o.name, column="outcome")
    question = _labels(data["question"])
    groups = {c: _labels(data[c]) for c in data if c not in OWN | {"due_key", "horizon"}}
    if "horizon" in data:
        groups["horizon"] = _horizon_labels(data["horizon"])
    weight = _weights(data, question, reading)
    return Targets(
        outcome=outcome,
        weight=weight,
        question=question,
        target=_labels(data["target"]),
        price=_numbers(data, "price", len(outcome)),
        yes_ask=_numbers(data, "yes_ask", len(outcome)),
        no_ask=_numbers(data, "no_ask", len(outcome)),
        groups=groups,
    )


def _weights(data: Columns, question: Labels, reading: Reading) -> Floats:
    if "weight" in data:
        return _plain(data["weight"]).astype(np.float64)
    if reading.weights == "question":
        return 1.0 / np.bincount(question.codes)[question.codes]
    return np.ones(len(question.codes))


def _numbers(data: Columns, column: str, n: int) -> Floats:
    if column not in data:
        return np.full(n, np.nan)
    return np.ma.filled(data[column].astype(np.float64), np.nan)


def _labels(column: Column) -> Labels:
    text = np.ma.filled(column.astype(object), "") if np.ma.isMaskedArray(column) else column
    codes = dict[str, int]()
    coded = np.fromiter((codes.setdefault(value or "", len(codes)) for value in text), np.int64, len(text))
    return Labels(codes=coded, names=tuple(codes))


def _horizon_labels(column: Column) -> Labels:
    """Exact days where there are few, else the benchmark's usual edges."""
    text = np.ma.filled(column.astype(object), "")
    days = np.array([float(v) if v else np.nan for v in text])
    distinct = np.unique(days[np.isfinite(days)])
    if len(distinct) <= 12:
        return _labels(np.array([f"{d:g}" if np.isfinite(d) else "" for d in days], dtype=object))
    names = (f"≤{HORIZON_EDGES[0]}", *(f"{a + 1}–{b}" for a, b in pairwise(HORIZON_EDGES)))
    names += (f">{HORIZON_EDGES[-1]}", "")
    codes = np.where(np.isfinite(days), np.searchsorted(HORIZON_EDGES, days), len(names) - 1)
    return Labels(codes=codes.astype(np.int64), names=names)


def _plain(column: Column) -> Column:
    return np.ma.getdata(column)
