"""Two long tables become one `ForecastTable`: check every row, then join on question, target and due date if given."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from foretell.metrics.arrays import Floats, Ints
from foretell.questions.errors import InputError
from foretell.scoring.table import ForecastTable, Labels, Targets
from foretell.scoring.table_input import (
    ColumnArray,
    ColumnArrays,
    ColumnRule,
    InputTable,
    TableSource,
    check_rules,
    moment_rules,
    moment_sql,
    open_table,
    optional_rules,
    outcome_rule,
    quoted,
    refuse_repeats,
    repeated,
    text_rules,
    unit_rules,
)

# What forecasters cost, for the frontier of score against money.


def read_costs(source: TableSource, forecasters: Sequence[str]) -> dict[str, float]:
    """Dollars per forecast by forecaster, from a table with columns forecaster and dollars."""
    import duckdb

    with duckdb.connect(":memory:") as con, open_table(source, "costs", con) as table:
        table.require("forecaster", "dollars")
        number = table.number("dollars")
        bad = f"{number} is null or not isfinite({number}) or {number} < 0"
        hint = "dollars per forecast, 0 or more"
        check_rules(
            table, [ColumnRule(column="dollars", bad=bad, problem="{value} is not an amount of money", hint=hint)]
        )
        rows = con.execute(f"select {table.text('forecaster')}, {number} from {table.table}").fetchall()
        unknown = [name for name, _ in rows if name not in forecasters]
        if unknown:
            raise InputError(f"no forecaster is called {unknown[0]!r}", path=table.name, column="forecaster")
    return dict(rows)


# Several trials of one forecaster on one target become one probability.

FLOOR = 1e-9
"""Keeps the log-odds of a certain trial finite."""


@dataclass(frozen=True, kw_only=True)
class PooledForecasts:
    """One probability per forecaster and target, in the order of forecasters and targets."""

    forecasters: tuple[str, ...]
    forecaster: Ints
    target: Ints
    p: Floats


def pool_trials(f: InputTable, matched: ColumnArrays, *, as_odds: bool) -> PooledForecasts:
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
    return PooledForecasts(
        forecasters=names,
        forecaster=code[chosen].astype(np.int64),
        target=idx[chosen].astype(np.int64),
        p=p[chosen] if fresh.all() else _mean_of_trials(p[order], np.cumsum(fresh) - 1, as_odds=as_odds),
    )


def _mean_of_trials(p: Floats, group: Ints, *, as_odds: bool) -> Floats:
    if not as_odds:
        return np.bincount(group, p) / np.bincount(group)
    odds = np.log(np.maximum(p, FLOOR) / np.maximum(1 - p, FLOOR))
    return 1 / (1 + np.exp(-np.bincount(group, odds) / np.bincount(group)))


def _refuse_same_trial(f: InputTable, row: ColumnArray, pair: ColumnArray, trial: ColumnArray | None) -> None:
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


# The columns of the outcomes table as arrays and labels.

HORIZON_EDGES = (7, 30, 90, 180, 365, 1095, 1825, 3650)
PRICE_COLUMNS = ("price", "yes_ask", "no_ask")
RESERVED_COLUMNS = {"question", "target", "outcome", "weight", *PRICE_COLUMNS}
"""Columns with a meaning of their own; all others are labels to group by."""


def read_targets(o: InputTable, *, by_question: bool) -> Targets:
    """The resolved targets; without a weight column each counts once, or each question once if `by_question`."""
    texts = [c for c in o.columns if c not in RESERVED_COLUMNS - {"question", "target"}]
    numbers = [c for c in (*PRICE_COLUMNS, "weight") if c in o.types]
    where = "from resolved where outcome is not null order by _row"
    data = o.fetch(f"select outcome {''.join(', ' + quoted(c) for c in numbers)} {where}")
    outcome = _unmasked(data["outcome"]).astype(np.float64)
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


def _labels(o: InputTable, columns: list[str], where: str) -> dict[str, Labels]:
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
    return {column: Labels(codes=_unmasked(data[column]).astype(np.int64), names=names[column]) for column in columns}


def _weights(data: ColumnArrays, question: Labels, *, by_question: bool) -> Floats:
    if "weight" in data:
        return _unmasked(data["weight"]).astype(np.float64)
    if by_question:
        return 1.0 / np.bincount(question.codes)[question.codes]
    return np.ones(len(question.codes))


def _numbers(data: ColumnArrays, column: str, n: int) -> Floats:
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


def _unmasked(column: ColumnArray) -> ColumnArray:
    return np.ma.getdata(column)


MOMENT_COLUMNS = ("due", "resolved_on")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read the two tables."""

    trials: Literal["mean", "logit-mean", "separate"] = "mean"
    """Several trials of one forecaster on one target: averaged, averaged as log-odds, or kept as forecasters."""
    weights: Literal["equal", "question"] = "equal"
    """Without a weight column: every target counts once, or every question once (its targets 1/m each)."""
    drop_unknown: bool = False
    """Leave out forecasts of targets that the outcomes do not mention, instead of refusing the file."""


def read_table(
    forecasts: TableSource, outcomes: TableSource | None = None, reading: ReadOptions | None = None
) -> ForecastTable:
    """Read, check and join. The first problem raises an `InputError` that names file, row and column.

    Without a table of outcomes, the forecasts must carry a column `outcome`, and columns such as price or source.
    """
    import duckdb

    reading = reading or ReadOptions()
    with (
        duckdb.connect(":memory:") as con,
        open_table(forecasts, "forecasts", con) as f,
        nullcontext(_outcomes_within(f)) if outcomes is None else open_table(outcomes, "outcomes", con) as o,
    ):
        _check_outcomes(o)
        _check_forecasts(f)
        rounds = "due" in f.types and "due" in o.types
        if not rounds and "due" in o.types:
            _refuse_ambiguous(f, o)
        _index_targets(o, rounds)
        matched = _match(f, rounds, reading)
        targets = read_targets(o, by_question=reading.weights == "question")
        pooled = pool_trials(f, matched, as_odds=reading.trials == "logit-mean")
        notes = _notes(matched, len(pooled.p), reading)
    return ForecastTable(
        targets=targets,
        forecasters=pooled.forecasters,
        forecaster=pooled.forecaster,
        target=pooled.target,
        p=pooled.p,
        notes=notes,
    )


def _outcomes_within(f: InputTable) -> InputTable:
    """The outcomes that stand beside the forecasts, every target once."""
    f.require("question", "target", "outcome")
    columns = [c for c in f.columns if c not in ("forecaster", "p", "trial")]
    key = ", ".join(quoted(c) for c in ("question", "target", "due") if c in f.types)
    others = ", ".join(f"any_value({quoted(c)}) as {quoted(c)}" for c in columns if quoted(c) not in key.split(", "))
    query = f"""select min(_row) from {f.table} group by {key} having count(distinct {f.text("outcome")}) > 1"""
    for (row,) in f.con.execute(f"{query} order by 1 limit 1").fetchall():
        problem = "this target has two different outcomes"
        raise InputError(problem, path=f.name, row=row, column="outcome", hint="give every row of it the same one")
    f.con.execute(f"create table outcomes as select min(_row) as _row, {key}, {others} from {f.table} group by {key}")
    return replace(f, table="outcomes", types={"_row": "BIGINT", **{c: f.types[c] for c in columns}})


def _check_outcomes(o: InputTable) -> None:
    o.require("question", "target", "outcome")
    moments = [c for c in MOMENT_COLUMNS if c in o.types]
    rules = [*text_rules(o, "question", "target"), outcome_rule(o), *optional_rules(o)]
    check_rules(o, [*rules, *(rule for c in moments for rule in moment_rules(o, c))])
    refuse_repeats(o, {c: o.text(c) for c in ("question", "target", "due") if c in o.types})


def _check_forecasts(f: InputTable) -> None:
    f.require("forecaster", "question", "target", "p")
    rules = [*text_rules(f, "forecaster", "question", "target"), *unit_rules(f, "p", optional=False)]
    check_rules(f, [*rules, *(moment_rules(f, "due") if "due" in f.types else ())])


def _refuse_ambiguous(f: InputTable, o: InputTable) -> None:
    query = f"select 1 from {o.table} group by {o.text('question')}, {o.text('target')} having count(*) > 1 limit 1"
    if o.con.execute(query).fetchall():
        raise InputError(
            "the outcomes ask some targets at several due dates, so the forecasts must say which they mean",
            path=f.name,
            column="due",
            hint="add a due column to the forecasts",
        )


def _index_targets(o: InputTable, rounds: bool) -> None:
    """A table `resolved` with clean columns and, for every target, its place among the resolved ones (or −1)."""
    moments = {c: moment_sql(o, c) for c in MOMENT_COLUMNS if c in o.types}
    extra = [c for c in o.columns if c not in RESERVED_COLUMNS and c not in moments]
    columns = [f"{o.text(c)} as {quoted(c)}" for c in extra] + [f"{sql} as {quoted(c)}" for c, sql in moments.items()]
    columns += [f"{o.number(c)} as {quoted(c)}" for c in (*PRICE_COLUMNS, "weight") if c in o.types]
    o.con.execute(
        f"""create table resolved as
        select _row, {o.text("question")} as question, {o.text("target")} as target,
               {f"coalesce({moments['due']}, '')" if rounds else "''"} as due_key, {o.number("outcome")} as outcome,
               {"".join(column + ", " for column in columns)}
               case when {o.text("outcome")} is null then -1
                    else count({o.number("outcome")}) over (order by _row rows unbounded preceding) - 1 end as idx
        from {o.table}"""
    )


def _match(f: InputTable, rounds: bool, reading: ReadOptions) -> ColumnArrays:
    """Every forecast with the code of its forecaster and the place of its target (NULL where unknown)."""
    name = f.text("forecaster")
    if reading.trials == "separate" and "trial" in f.types:
        name = f"{name} || ' · trial ' || coalesce({f.text('trial')}, '')"
    due = f"coalesce({moment_sql(f, 'due')}, '')" if rounds else "''"
    f.con.execute(
        f"create table names as select {name} as name, row_number() over (order by min(_row)) - 1 as code "
        f"from {f.table} group by 1"
    )
    trial = f.text("trial") if "trial" in f.types else "''"
    keyed = f"""select _row, {name} as name, {f.text("question")} as question, {f.text("target")} as target,
        {due} as due_key, {f.number("p")} as p, {trial} as trial from {f.table}"""
    matched = f.fetch(
        f"""select k._row, n.code::int as code, r.idx::int as idx, k.p {", k.trial" if "trial" in f.types else ""}
        from ({keyed}) k join names n using (name) left join resolved r using (question, target, due_key)"""
    )
    unknown = np.ma.getmaskarray(matched["idx"])
    if unknown.any() and not reading.drop_unknown:
        raise _unknown_target(f, int(matched["_row"][unknown].min()))
    return matched


def _unknown_target(f: InputTable, row: int) -> InputError:
    query = f"select {f.text('question')}, {f.text('target')} from {f.table} where _row = {row}"
    question, target = f.con.execute(query).fetchall()[0]
    return InputError(
        f"unknown target: the outcomes have no row for question {question!r}, target {target!r}",
        path=f.name,
        row=row,
        column="target",
        hint="give unresolved targets a row with an empty outcome, or drop such forecasts with --drop-unknown",
    )


def _notes(matched: ColumnArrays, kept: int, reading: ReadOptions) -> tuple[str, ...]:
    idx = matched["idx"]
    unknown = int(np.ma.getmaskarray(idx).sum())
    open_ = int((np.ma.filled(idx, 0) < 0).sum())
    notes = [f"{open_} forecasts of targets that have not resolved are not scored"] if open_ else []
    notes += [f"{unknown} forecasts of targets that the outcomes do not mention are left out"] if unknown else []
    if kept < len(idx) - unknown - open_:
        notes.append(f"trials of one forecaster are combined by {reading.trials}")
    return tuple(notes)
