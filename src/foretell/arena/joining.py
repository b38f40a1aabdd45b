"""From two long tables to one `Table`: check every row, then join on question, target and (if given) due date."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from foretell.arena.intake import Columns, Intake, Source, opened, quoted
from foretell.arena.pooling import pool_trials
from foretell.arena.rules import (
    enforce,
    moment,
    moment_rules,
    optional_rules,
    outcome_rule,
    refuse_repeats,
    text_rules,
    unit_rules,
)
from foretell.arena.table import Table
from foretell.arena.targets import OWN, UNIT, read_targets
from foretell.questions.problems import InputError

MOMENTS = ("due", "resolved_on")


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
    return Table(
        targets=targets,
        forecasters=pooled.forecasters,
        forecaster=pooled.forecaster,
        target=pooled.target,
        p=pooled.p,
        notes=notes,
    )


def _check_outcomes(o: Intake) -> None:
    o.require("question", "target", "outcome")
    moments = [c for c in MOMENTS if c in o.types]
    rules = [*text_rules(o, "question", "target"), outcome_rule(o), *optional_rules(o)]
    enforce(o, [*rules, *(rule for c in moments for rule in moment_rules(o, c))])
    refuse_repeats(o, {c: o.text(c) for c in ("question", "target", "due") if c in o.types})


def _check_forecasts(f: Intake) -> None:
    f.require("forecaster", "question", "target", "p")
    rules = [*text_rules(f, "forecaster", "question", "target"), *unit_rules(f, "p", optional=False)]
    enforce(f, [*rules, *(moment_rules(f, "due") if "due" in f.types else ())])


def _refuse_ambiguous(f: Intake, o: Intake) -> None:
    query = f"select 1 from {o.table} group by {o.text('question')}, {o.text('target')} having count(*) > 1 limit 1"
    if o.con.execute(query).fetchall():
        raise InputError(
            "the outcomes ask some targets at several due dates, so the forecasts must say which they mean",
            path=f.name,
            column="due",
            hint="add a due column to the forecasts",
        )


def _index_targets(o: Intake, rounds: bool) -> None:
    """A table `resolved` with clean columns and, for every target, its place among the resolved ones (or −1)."""
    moments = {c: moment(o, c) for c in MOMENTS if c in o.types}
    extra = [c for c in o.columns if c not in OWN and c not in moments]
    columns = [f"{o.text(c)} as {quoted(c)}" for c in extra] + [f"{sql} as {quoted(c)}" for c, sql in moments.items()]
    columns += [f"{o.number(c)} as {quoted(c)}" for c in (*UNIT, "weight") if c in o.types]
    o.con.execute(
        f"""create table resolved as
        select _row, {o.text("question")} as question, {o.text("target")} as target,
               {f"coalesce({moments['due']}, '')" if rounds else "''"} as due_key, {o.number("outcome")} as outcome,
               {"".join(column + ", " for column in columns)}
               case when {o.text("outcome")} is null then -1
                    else count({o.number("outcome")}) over (order by _row rows unbounded preceding) - 1 end as idx
        from {o.table}"""
    )


def _match(f: Intake, rounds: bool, reading: Reading) -> Columns:
    """Every forecast with the code of its forecaster and the place of its target (NULL where unknown)."""
    name = f.text("forecaster")
    if reading.trials == "separate" and "trial" in f.types:
        name = f"{name} || ' · trial ' || coalesce({f.text('trial')}, '')"
    due = f"coalesce({moment(f, 'due')}, '')" if rounds else "''"
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


def _unknown_target(f: Intake, row: int) -> InputError:
    query = f"select {f.text('question')}, {f.text('target')} from {f.table} where _row = {row}"
    question, target = f.con.execute(query).fetchall()[0]
    return InputError(
        f"unknown target: the outcomes have no row for question {question!r}, target {target!r}",
        path=f.name,
        row=row,
        column="target",
        hint="give unresolved targets a row with an empty outcome, or drop such forecasts with --drop-unknown",
    )


def _notes(matched: Columns, kept: int, reading: Reading) -> tuple[str, ...]:
    idx = matched["idx"]
    unknown = int(np.ma.getmaskarray(idx).sum())
    open_ = int((np.ma.filled(idx, 0) < 0).sum())
    notes = [f"{open_} forecasts of targets that have not resolved are not scored"] if open_ else []
    notes += [f"{unknown} forecasts of targets that the outcomes do not mention are left out"] if unknown else []
    if kept < len(idx) - unknown - open_:
        notes.append(f"trials of one forecaster are combined by {reading.trials}")
    return tuple(notes)
