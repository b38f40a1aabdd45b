"""Two long tables, checked row by row and joined on question, target and, if given, due date.

`read_table` makes them a `ForecastTable` to score; `read_examples` reads the same join for rules that learn.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from difflib import get_close_matches
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from foretell.data.datasets.question_set import EXCLUDED, excluded_note
from foretell.data.files import open_duckdb
from foretell.forecasters.combine.rows import UNKNOWN_DAY, Days, Examples, Strings, TrialRows
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints
from foretell.number_text import plural
from foretell.questions.errors import InputError, InputProblem
from foretell.scoring.columns import assign_roles, refuse_unknown_names, what_was_understood
from foretell.scoring.role_columns import ColumnNames
from foretell.scoring.table import ForecastCost, ForecastTable, Labels, Targets
from foretell.scoring.table_input import (
    SHOWN_ROWS,
    ColumnArray,
    ColumnArrays,
    ColumnRule,
    InputTable,
    TableSource,
    broken_columns,
    broken_rules,
    log_reader,
    open_table,
    optional_rules,
    outcome_rule,
    quoted,
    refuse_repeats,
    repeated,
    text_rules,
    time_rules,
    time_sql,
    unit_rules,
)
from foretell.scoring.written_values import TIME_COLUMNS, read_as_written

PRICE_COLUMNS = ("price", "yes_ask", "no_ask")
FORMERLY_EXCLUDED = "quarantined"
"""The name of the column `excluded` in earlier versions."""
RESERVED_COLUMNS = {"question", "target", "outcome", "weight", "payoff", EXCLUDED, FORMERLY_EXCLUDED, *PRICE_COLUMNS}
"""Columns with a fixed meaning; all others are labels to group by."""
HORIZON_EDGES = (7, 30, 90, 180, 365, 1095, 1825, 3650)
COST_COLUMNS = ("dollars", "seconds")
"""Columns of the forecasts with what a forecast cost."""
TRIAL_MARK = " · trial "
"""Separates forecaster and trial if every trial is a forecaster of its own."""
FLOOR = 1e-9
"""Lower bound on p and 1 − p that keeps the log-odds of a certain trial finite."""


Trials = Literal["mean", "logit-mean", "separate"]
Weights = Literal["equal", "question"]


@frozen
class ReadOptions:
    """Options for reading the two tables."""

    trials: Trials = "mean"
    """How to treat several trials of a forecaster on a target: average, average log-odds, or keep as forecasters."""
    weights: Weights = "equal"
    """Weights if there is no weight column: every target counts once, or every question once (its targets 1/m each)."""
    columns: ColumnNames = field(default_factory=dict[str, str])
    """Role → its column, if the column does not have a usual name: {"forecaster": "model", "p": "prob"}."""

    def __post_init__(self) -> None:
        """Raise InputError for a word that is none of those allowed, and for columns without roles."""
        if not isinstance(self.columns, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError('must be a mapping, such as {"p": "prob"}', column="--columns")
        for name, kind in (("trials", Trials), ("weights", Weights)):
            if (value := getattr(self, name)) not in get_args(kind):
                raise InputError(f"{value!r} is none of {', '.join(get_args(kind))}", column=f"--{name}")


def read_table(
    forecasts: TableSource, outcomes: TableSource | None = None, reading: ReadOptions | None = None
) -> ForecastTable:
    """Return the two tables, read, checked and joined; without `outcomes`, the forecasts have them.

    Raises `InputError` if a table is invalid; the error lists all its problems.
    """
    reading = reading or ReadOptions()
    forecasts, outcomes = log_tables(forecasts, outcomes)
    with open_duckdb() as con, _both_tables(forecasts, outcomes, con, reading.columns) as (f, o):
        f, o = _checked(f, o, _forecast_rules, _outcome_rules)
        refuse_repeats(o, {c: o.text(c) for c in ("question", "target", "due") if c in o.types})
        separate = reading.trials == "separate"
        matched = match_forecasts(f, o, separate=separate)
        costs, notes = _costs(f, separate=separate), _reading_notes(f, o, matched)
        _drop_sources(con)
        targets = _read_targets(o, by_question=reading.weights == "question")
        table = ForecastTable(targets=targets, **_pooled(f, matched, as_odds=reading.trials == "logit-mean"))
    if len(table.p) < int((np.ma.filled(matched["place"], -1) >= 0).sum()):
        notes.append(f"trials of one forecaster are combined by {reading.trials}")
    return replace(table, notes=tuple(notes), costs=costs)


def log_tables(forecasts: TableSource, outcomes: TableSource | None) -> tuple[TableSource, TableSource | None]:
    """The tables inside a log of evaluations, such as Inspect's; other sources stay as they are."""
    if isinstance(forecasts, str | Path) and outcomes is None and (reader := log_reader(Path(forecasts))) is not None:
        log = reader(Path(forecasts))
        return list(log.forecasts), list(log.outcomes)
    return forecasts, outcomes


NEEDED_COLUMNS = ("forecaster", "question", "p")


@contextmanager
def _both_tables(
    forecasts: TableSource, outcomes: TableSource | None, con: Any, names: ColumnNames, *, answers: bool = True
) -> Generator[tuple[InputTable, InputTable]]:
    """Open both tables with the columns under the names of their roles; without outcomes, the forecasts are both.

    With `answers`, one of the tables must have outcomes.
    """
    with (
        open_table(forecasts, "forecasts", con) as f,
        nullcontext(f) if outcomes is None else open_table(outcomes, "outcomes", con) as o,
    ):
        refuse_unknown_names(names, (f, o))
        if outcomes is None:
            f = assign_roles(f, (*NEEDED_COLUMNS, *(("outcome",) if answers else ())), names)
            yield f, f
        else:
            f = assign_roles(f, NEEDED_COLUMNS, names)
            needed = ("question", "outcome") if answers else ("question",)
            yield f, _for_every_option(f, assign_roles(o, needed, names))


OPTION_OUTCOMES = "outcomes_of_options"
"""Outcomes by question, repeated for each option, so that several have the number of one row."""


def _for_every_option(f: InputTable, o: InputTable) -> InputTable:
    """Repeat outcomes without a target for each option that the forecasts are about."""
    if "target" not in o.assumed or "target" in f.assumed:
        return o
    f.con.execute(
        f"""create temp view {OPTION_OUTCOMES} as with options as (
        select distinct {f.text("question")} as of_question, {f.text("target")} as of_target from {f.table})
        select * exclude (of_question, of_target) replace (coalesce(of_target, 'yes') as target)
        from {o.table} left join options on of_question = {o.text("question")}"""
    )
    return replace(o, table=OPTION_OUTCOMES, assumed={})


Rules = Callable[[InputTable], list[ColumnRule]]


def _checked(f: InputTable, o: InputTable, of_forecasts: Rules, of_outcomes: Rules) -> tuple[InputTable, InputTable]:
    """Check both tables, and interpret columns that are not in canonical form; raise if problems remain."""
    if o is not f:
        return _as_meant(f, of_forecasts), _as_meant(o, of_outcomes)
    o = _outcomes_within(f)
    broken = broken_columns(o, of_outcomes(o)) | broken_columns(f, of_forecasts(f))
    if broken or _two_outcomes(f):
        f = _as_meant(f, lambda table: [*of_outcomes(table), *of_forecasts(table)], {*broken, "outcome"})
        if rows := _two_outcomes(f):
            two_outcomes = InputProblem(
                problem="this target has two different outcomes",
                row=f.line(rows[0]),
                column=f.names.get("outcome", "outcome"),
                hint="give every row of it the same one",
                count=len(rows),
                more=tuple(map(f.line, rows[1:SHOWN_ROWS])),
            )
            raise InputError.of([two_outcomes], path=f.name)
        o = _outcomes_within(f)
    return f, o


def _as_meant(table: InputTable, rules_of: Rules, broken: Collection[str] = ()) -> InputTable:
    """Return the table; columns that break the rules are interpreted first (see `read_as_written`)."""
    columns = broken or broken_columns(table, rules_of(table))
    if not columns:
        return table
    table, unclear = read_as_written(table, [c for c in table.columns if c in columns])
    named = {(problem.column, problem.row) for problem in unclear}
    left = [
        broken_rule
        for broken_rule in broken_rules(table, rules_of(table))
        if (broken_rule.column, broken_rule.row) not in named
    ]
    if problems := list({(problem.column, problem.problem): problem for problem in (*unclear, *left)}.values()):
        raise InputError.of(sorted(problems, key=lambda problem: problem.row or 0), path=table.name)
    return table


def _understood(f: InputTable, o: InputTable) -> list[str]:
    """Return a sentence for each table on how it was read."""
    return [
        note
        for table in ((f,) if o.name == f.name and o.names == f.names else (f, o))
        for note in what_was_understood(table)
    ]


def _reading_notes(f: InputTable, o: InputTable, matched: ColumnArrays, *, resolved: bool = True) -> list[str]:
    """Sentences on how both tables were read, and on what was left out; `resolved` as in `match_forecasts`."""
    excluded, place = _excluded(o) if resolved else 0, matched["place"]
    left_out = {
        "Not scored, because the target has not resolved": int((np.ma.filled(place, 0) < 0).sum()),
        "Left out, because the outcomes do not mention the target": int(np.ma.getmaskarray(place).sum()),
    }
    within = o is f or (o.table == "outcomes" and o.name == f.name)
    unused = [] if within else [column for column in FACTS if column in f.types and column not in o.types]
    return [
        *_understood(f, o),
        *(difference_notes(_differences_within(f)) if within else []),
        *(
            f"Not used: {column} in the table of forecasts, because the table of outcomes is read for it."
            for column in unused
        ),
        *([excluded_note(excluded)] if excluded else []),
        *(f"{why}: {n:,} forecast{'s' * (n != 1)}." for why, n in left_out.items() if n),
    ]


def _costs(f: InputTable, *, separate: bool) -> dict[str, ForecastCost]:
    """The mean cost of a forecaster's answer to a question, from the columns dollars and seconds of the forecasts.

    Every row of a forecast has the cost of the whole forecast; those of several trials add up if trials are combined.
    """
    known = [column for column in COST_COLUMNS if column in f.types]
    if not known:
        return {}
    trial = f"coalesce({f.text('trial')}, '')" if "trial" in f.types else "''"
    name = (
        f"{f.text('forecaster')} || '{TRIAL_MARK}' || {trial}"
        if separate and "trial" in f.types
        else f.text("forecaster")
    )
    due = f.text("due") if "due" in f.types else "''"
    each = ", ".join(f"max({f.number(column)}) as {column}" for column in known)
    added, mean = (", ".join(f"{what}({column}) as {column}" for column in known) for what in ("sum", "avg"))
    rows = f.con.execute(
        f"""with forecast as (select {name} as name, {f.text("question")} as question, {due} as due, {trial} as trial,
            {each} from {f.table} group by 1, 2, 3, 4),
        answer as (select name, question, due, {added} from forecast group by 1, 2, 3)
        select name, {mean} from answer group by 1"""
    ).fetchall()
    costs = (
        (row[0], {column: value for column, value in zip(known, row[1:], strict=True) if value is not None})
        for row in rows
    )
    return {name: ForecastCost(**cost) for name, cost in costs if cost}


def forecasters_in(source: TableSource, names: ColumnNames | None = None) -> tuple[str, ...]:
    """Return the forecasters of a table or log of forecasts, without checking its other columns."""
    source, _ = log_tables(source, None)
    with open_duckdb() as con, open_table(source, "forecasts", con) as raw:
        table = assign_roles(raw, NEEDED_COLUMNS, names)
        query = f"select {table.text('forecaster')} as name from {table.table} group by 1 order by min(_row)"
        return tuple(name for (name,) in con.execute(query).fetchall() if name is not None)


def _outcome_key(f: InputTable) -> list[str]:
    return [c for c in ("question", "target", "due") if c in f.types]


def _two_outcomes(f: InputTable) -> list[int]:
    """The first row of every target that has two different outcomes."""
    key = ", ".join(map(quoted, _outcome_key(f)))
    query = f"""select min(_row) from {f.table} group by {key} having count(distinct {f.text("outcome")}) > 1"""
    return [row for (row,) in f.con.execute(f"{query} order by 1").fetchall()]


FACTS = ("outcome", *PRICE_COLUMNS, "weight", "payoff")
"""Numbers of a target, which are the same in all rows about it."""


@frozen
class Difference:
    """Two values of one fact of a target in the rows about it, of which one is used."""

    column: str
    question: str
    target: str
    used: float
    other: float


def difference_notes(differences: Sequence[Difference]) -> list[str]:
    """Name for each column the first target whose rows differ in it.

    >>> difference_notes([Difference(column="price", question="q1", target="yes", used=0.4, other=0.9)])
    ['Rows about one target differ in price: q1 has 0.4, which is used, and 0.9.']
    """
    by_column: dict[str, list[Difference]] = {}
    for difference in differences:
        by_column.setdefault(difference.column, []).append(difference)
    notes: list[str] = []
    for column, cases in by_column.items():
        case, more = cases[0], len(cases) - 1
        name = case.question if case.target in ("", "yes") else f"{case.question} ({case.target})"
        others = f"; so do those about {plural(more, 'more target', 'more targets')}" if more else ""
        notes.append(
            f"Rows about one target differ in {column}: {name} has {case.used:g}, which is used, "
            f"and {case.other:g}{others}."
        )
    return notes


def _differences_within(f: InputTable) -> list[Difference]:
    """Return the targets of a table of forecasts whose rows have different facts."""
    target = f.text("target") if "target" in f.types else "'yes'"
    key = ", ".join(map(quoted, _outcome_key(f)))
    found: list[Difference] = []
    for column in (name for name in FACTS if name in f.types):
        number = f.number(column)
        query = f"""with facts as (select *, {number} as _fact from {f.table} where {number} is not null)
            select arg_min({f.text("question")}, _row), arg_min({target}, _row), arg_min(_fact, _row),
                arg_max(_fact, abs(_fact - _first))
            from (select *, first_value(_fact) over (partition by {key} order by _row) as _first from facts)
            group by {key} having count(distinct _fact) > 1 order by min(_row)"""
        rows = f.con.execute(query).fetchall()
        found += [Difference(column=column, question=q, target=t, used=x, other=y) for q, t, x, y in rows]
    return found


def _outcomes_within(f: InputTable) -> InputTable:
    """Extract the outcomes from the table of forecasts, with every target once."""
    key = _outcome_key(f)
    columns = [c for c in f.columns if c not in ("forecaster", "p", "trial", *COST_COLUMNS)]
    # The first value, which does not depend on the number of processors.
    others = ", ".join(f"arg_min({quoted(c)}, _row) as {quoted(c)}" for c in columns if c not in key)
    keys = ", ".join(map(quoted, key))
    f.con.execute(
        f"create or replace temp table outcomes as "
        f"select min(_row) as _row, {keys}, {others} from {f.table} group by {keys}"
    )
    types = {"_row": "BIGINT", **{c: f.types[c] for c in columns}}
    return replace(f, table="outcomes", types=types, original="", wide=())


def _outcome_rules(o: InputTable) -> list[ColumnRule]:
    times = [c for c in TIME_COLUMNS if c in o.types]
    rules = [*text_rules(o, "question", "target"), outcome_rule(o), *optional_rules(o)]
    return [*rules, *(rule for c in times for rule in time_rules(o, c))]


def _forecast_rules(f: InputTable) -> list[ColumnRule]:
    """Every row names a forecaster, a question and a target, and has a probability."""
    rules = [*text_rules(f, "forecaster", "question", "target"), *unit_rules(f, "p", optional=False)]
    for column in COST_COLUMNS:
        if column in f.types:
            number = f.number(column)
            bad = f"{f.text(column)} is not null and ({number} is null or not isfinite({number}) or {number} < 0)"
            hint = f"{column} of a forecast, 0 or more"
            rules.append(ColumnRule(column=column, bad=bad, problem="{value} is not a cost", hint=hint))
    return [*rules, *(time_rules(f, "due") if "due" in f.types else ())]


def table_rows(
    source: TableSource, name: str, names: ColumnNames | None = None, *, forecasts: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a table of forecasts or outcomes with canonical columns and values, and notes on how it was read.

    Values are text, and None if they are empty; errors use the given name.
    """
    try:
        with open_duckdb() as con, open_table(source, "given", con) as raw:
            table = assign_roles(
                replace(raw, name=name), NEEDED_COLUMNS if forecasts else ("question", "outcome"), names
            )
            answers = "outcome" in table.types
            table = _as_meant(
                table,
                lambda t: [*(_outcome_rules(t) if answers else ()), *(_forecast_rules(t) if forecasts else ())],
            )
            columns = [c for c in table.columns if c not in table.assumed]
            values = ", ".join(time_sql(table, c) if c in TIME_COLUMNS else table.text(c) for c in columns)
            rows = con.execute(f"select {values} from {table.table} order by _row").fetchall()
            assumed = {role: value for role, value in table.assumed.items() if role == "forecaster"}
            return [assumed | dict(zip(columns, row, strict=True)) for row in rows], list(what_was_understood(table))
    except InputError as error:
        error.path = name
        raise


# The join itself.


def match_forecasts(
    f: InputTable,
    o: InputTable,
    *,
    separate: bool = False,
    resolved: bool = True,
    once: bool = False,
) -> ColumnArrays:
    """Match every forecast to its forecaster's code and its target's index; −1 is open, masked is unknown.

    Leaves two tables behind: `targets`, with clean columns and every target's index, and `names` of forecasters.

    Args:
        f: The forecasts.
        o: The targets with their outcomes.
        separate: Whether every trial is a forecaster of its own.
        resolved: Whether only targets with an outcome have an index.
        once: Whether to take a target with several rows in `o` from the first.
    """
    rounds = "due" in f.types and "due" in o.types
    _index_targets(o, rounds=rounds, resolved=resolved, once=once)
    query = "select 1 from targets group by question, target having count(*) > 1 limit 1"
    if not rounds and "due" in o.types and o.con.execute(query).fetchall():
        problem = "some targets have outcomes at several due dates, so the forecasts need a due date"
        raise InputError(problem, path=f.name, column="due", hint="add a due column to the forecasts")
    name, trial = f.text("forecaster"), f"coalesce({f.text('trial')}, '')" if "trial" in f.types else "''"
    place = ", min(_column)" if f.wide else ""
    if separate and "trial" in f.types:
        name = f"{name} || '{TRIAL_MARK}' || {trial}"
    f.con.execute(
        f"create temp table names as select {name} as name, row_number() over (order by min(_row){place}) - 1 as code "
        f"from {f.table} group by 1"
    )
    keyed = f"""select _row, {name} as name, {f.text("question")} as question, {f.text("target")} as target,
        {f"coalesce({time_sql(f, 'due')}, '')" if rounds else "''"} as _due, {f.number("p")} as p,
        {trial} as trial from {f.table}"""
    return f.fetch(
        f"""select k._row, n.code::int as code, t._place::int as place, k.p {", k.trial" if "trial" in f.types else ""}
        from ({keyed}) k join names n using (name) left join targets t using (question, target, _due)"""
    )


def _drop_sources(con: Any) -> None:
    """Drop all tables but those that `match_forecasts` leaves, because a long file takes much memory."""
    query = "select table_name from duckdb_tables() where temporary and table_name not in ('targets', 'names')"
    for (name,) in con.execute(query).fetchall():
        con.execute(f"drop table {quoted(name)}")


def _index_targets(o: InputTable, *, rounds: bool, resolved: bool, once: bool) -> None:
    times = {c: time_sql(o, c) for c in TIME_COLUMNS if c in o.types}
    extra = [c for c in o.columns if c not in RESERVED_COLUMNS and c not in times]
    columns = [f"{o.text(c)} as {quoted(c)}" for c in extra] + [f"{sql} as {quoted(c)}" for c, sql in times.items()]
    columns += [f"{o.number(c)} as {quoted(c)}" for c in (*PRICE_COLUMNS, "weight", "payoff") if c in o.types]
    outcome = o.number("outcome") if "outcome" in o.types else "null::double"
    if _excluded_column(o):
        outcome = f"case when {_is_excluded(o)} then null else {outcome} end"
    columns.append(f"{outcome} as outcome")
    counted = outcome if resolved else "1"
    order = "_row, target" if o.table.startswith(OPTION_OUTCOMES) else "_row"
    first = "qualify row_number() over (partition by question, target, _due order by _row) = 1" if once else ""
    o.con.execute(
        f"""create temp table targets as with clean as (
        select _row, {o.text("question")} as question, {o.text("target")} as target,
               {f"coalesce({times['due']}, '')" if rounds else "''"} as _due,
               {counted} as _counted, {", ".join(columns)} from {o.table} {first})
        select * exclude (_counted), case when _counted is null then -1
               else count(_counted) over (order by {order} rows unbounded preceding) - 1 end as _place from clean"""
    )


def _excluded_column(o: InputTable) -> str:
    """Return the column that marks excluded outcomes, which earlier versions called quarantined; empty if none does."""
    return next((name for name in (EXCLUDED, FORMERLY_EXCLUDED) if name in o.types), "")


def _is_excluded(o: InputTable) -> str:
    return f"coalesce({o.text(_excluded_column(o))}, '') not in ('', '0', '0.0', 'false', 'False')"


def _excluded(o: InputTable) -> int:
    """Number of questions that the outcomes mark as left out."""
    if not _excluded_column(o):
        return 0
    due = o.text("due") if "due" in o.types else "''"
    query = f"select count(distinct ({o.text('question')}, {due})) from {o.table} where {_is_excluded(o)}"
    return int(o.con.execute(query).fetchall()[0][0])


def on_known_targets(f: InputTable, matched: ColumnArrays) -> ColumnArrays:
    """Return the matched forecasts whose target has an index, as plain arrays."""
    known = np.ma.filled(matched["place"], -1) >= 0
    if not known.any():
        raise InputError("no forecast belongs to a resolved target", path=f.name, hint="are the question ids the same?")
    return {name: np.ma.getdata(column)[known] for name, column in matched.items()}


# Several trials of one forecaster on one target become one probability.


def _pooled(f: InputTable, matched: ColumnArrays, *, as_odds: bool) -> dict[str, Any]:
    """One probability per forecaster and resolved target, in order; trials are averaged, as log-odds if `as_odds`."""
    targets = on_known_targets(f, matched)
    code, place, p, row = (targets[c] for c in ("code", "place", "p", "_row"))
    pair = code.astype(np.int64) * (int(place.max()) + 1) + place
    order = np.argsort(pair, kind="stable")
    first = np.concatenate([[True], np.diff(pair[order]) > 0])
    pooled, group = p[order], np.cumsum(first) - 1
    if not first.all():
        _refuse_same_trial(f, row[order], group, targets["trial"][order] if "trial" in targets else None)
        pooled = pool_trials(pooled, group, as_odds=as_odds)
    chosen = order[first]
    return {
        "forecasters": forecaster_names(f),
        "forecaster": code[chosen].astype(np.int64),
        "target": place[chosen].astype(np.int64),
        "p": pooled,
    }


def pool_trials(p: Floats, group: Ints, *, as_odds: bool) -> Floats:
    """One probability per group of trials: their mean, or the mean of their log-odds."""
    x = np.log(np.maximum(p, FLOOR) / np.maximum(1 - p, FLOOR)) if as_odds else p
    mean = np.bincount(group, x) / np.bincount(group)
    return 1 / (1 + np.exp(-mean)) if as_odds else mean


def forecaster_names(f: InputTable) -> tuple[str, ...]:
    """Return the forecasters of a join in the order of their codes."""
    return tuple(name for (name,) in f.con.execute("select name from names order by code").fetchall())


def _refuse_same_trial(f: InputTable, row: ColumnArray, pair: ColumnArray, trial: ColumnArray | None) -> None:
    """Raise if several forecasts of one target by one forecaster have the same trial."""
    seen: dict[tuple[int, str], int] = {}
    repeats: list[tuple[int, int]] = []
    several = np.isin(pair, np.flatnonzero(np.bincount(pair) > 1))
    for i in np.flatnonzero(several):
        key = (int(pair[i]), "" if trial is None else str(trial[i]))
        if key in seen:
            repeats.append((min(seen[key], int(row[i])), max(seen[key], int(row[i]))))
        seen.setdefault(key, int(row[i]))
    if repeats:
        key = [c for c in ("forecaster", "question", "target", "due", "trial") if c in f.types]
        raise repeated(f, sorted(repeats, key=lambda rows: rows[1]), key)


# The columns of the outcomes table as arrays and labels.


def _read_targets(o: InputTable, *, by_question: bool) -> Targets:
    """Read the resolved targets; without a weight column each counts once, or each question once if `by_question`."""
    texts = [c for c in o.columns if c not in RESERVED_COLUMNS - {"question", "target"}]
    numbers = [c for c in (*PRICE_COLUMNS, "weight", "payoff") if c in o.types]
    where = "from targets where outcome is not null order by _place"
    data = o.fetch(f"select outcome {''.join(', ' + quoted(c) for c in numbers)} {where}")
    n = len(data["outcome"])
    if not n:
        raise InputError("no target has an outcome yet", path=o.name, column="outcome")
    known = {c: np.ma.filled(column.astype(np.float64), np.nan) for c, column in data.items()}
    labels = _labels(o, texts, where)
    question, target = labels.pop("question"), labels.pop("target")
    horizon = None
    if "horizon" in labels:
        horizon = _days_of(labels["horizon"])[labels["horizon"].codes]
        labels["horizon"] = _horizons(labels["horizon"])
    none = np.full(n, np.nan)
    weight = 1.0 / np.bincount(question.codes)[question.codes] if by_question else np.ones(n)
    return Targets(
        outcome=known["outcome"],
        weight=known.get("weight", weight),
        question=question,
        target=target,
        price=known.get("price", none),
        yes_ask=known.get("yes_ask", none),
        no_ask=known.get("no_ask", none),
        payoff=known.get("payoff"),
        horizon=horizon,
        groups=labels,
    )


def _labels(o: InputTable, columns: list[str], where: str) -> dict[str, Labels]:
    """Encode text columns as codes; DuckDB's enums number the names in order of first appearance."""
    codes: list[str] = []
    names: dict[str, tuple[str, ...]] = {}
    for i, column in enumerate(columns):
        value = f"coalesce({quoted(column)}, '')"
        query = f"select {value} as name from targets where outcome is not null group by 1 order by min(_row)"
        o.con.execute(f"create temp type label_{i} as enum ({query})")
        listed = o.fetch(f"select unnest(enum_range(null::label_{i})) as name")["name"]
        names[column] = tuple(map(str, np.ma.getdata(listed)))
        codes.append(f"enum_code({value}::label_{i})::bigint as {quoted(column)}")
    data = o.fetch(f"select {', '.join(codes)} {where}")
    return {
        column: Labels(codes=np.ma.getdata(data[column]).astype(np.int64), names=names[column]) for column in columns
    }


def _days_of(horizons: Labels) -> Floats:
    return np.array([float(name) if name else np.nan for name in horizons.names])


def _horizons(horizons: Labels) -> Labels:
    """Label horizons by exact days if there are few, else by the benchmark's usual bins."""
    days = _days_of(horizons)
    if len(days) <= 12:
        return Labels(codes=horizons.codes, names=tuple(f"{d:g}" if np.isfinite(d) else "" for d in days))
    names = (f"≤{HORIZON_EDGES[0]}", *(f"{a + 1}–{b}" for a, b in pairwise(HORIZON_EDGES)), f">{HORIZON_EDGES[-1]}", "")
    codes = np.where(np.isfinite(days), np.searchsorted(HORIZON_EDGES, days), len(names) - 1)
    return Labels(codes=codes[horizons.codes].astype(np.int64), names=names)


# Tables of forecasts and outcomes as what combination rules learn from (`Examples`) and apply to (`TrialRows`).
#
# Every forecaster is read over the same targets, its trials kept apart, so that rules can be compared row by row.


TEXTS = ("source", "subtype", "kind", "cluster", "resolved_on", "category")
NUMBERS = ("price", "price_age", "prior", "horizon", "liquidity", "weight", "outcome", "payoff")
DUE_HINT = "a rule is fitted on what was known before a question was asked: add the day it was asked, e.g. 2025-10-26"
RESOLVED_HINT = "an answer may be learnt from only after the day it became known: add that day, e.g. 2025-11-02"
T = TypeVar("T", TrialRows, Examples)


def read_examples(
    forecasts: TableSource,
    outcomes: TableSource | None = None,
    *,
    columns: ColumnNames | None = None,
    dated: bool = True,
    notes: list[str] | None = None,
) -> dict[str, Examples]:
    """Every forecaster's trials on the resolved targets, in the order of the outcomes; NaN if it gave no answer.

    Sentences on how the tables were read, and on forecasts that are left out, are added to `notes`.

    The outcomes need `due` and `resolved_on`, unless `dated` is False (see `Examples.dated`). Source, subtype, kind,
    price, price_age, prior, horizon, liquidity, cluster and weight are used if present.
    """
    forecasts, outcomes = log_tables(forecasts, outcomes)
    with _opened(forecasts, outcomes, columns, answers=True, dated=dated) as (f, o):
        matched = match_forecasts(f, o)
        if notes is not None:
            notes += _reading_notes(f, o, matched)
        facts = _facts(o)
        if not len(facts["question"]):
            raise InputError("no target has an outcome yet", path=o.name, column="outcome")
        forecaster = _by_forecaster(f, facts, matched)
    outcome, known_on = _numbers(facts["outcome"]), _days(facts["resolved_on"])
    known_on = np.where(np.isnat(known_on), UNKNOWN_DAY, known_on)
    weight = np.nan_to_num(_numbers(facts["weight"]), nan=1.0)
    payoff, category = _numbers(facts["payoff"]), _texts(facts["category"])
    return {
        name: Examples(rows=rows, outcome=outcome, known_on=known_on, weight=weight, payoff=payoff, category=category)
        for name, rows in forecaster.items()
    }


def read_rows(
    forecasts: TableSource,
    facts: TableSource | None = None,
    *,
    columns: ColumnNames | None = None,
    notes: list[str] | None = None,
) -> dict[str, TrialRows]:
    """Every forecaster's trials on all targets, resolved or not, to apply a rule to them.

    Sentences on how the tables were read, and on forecasts that are left out, are added to `notes`.

    The attributes of targets (due, source, kind, price, …) are read from `facts`, a table like the outcomes whose
    outcome may be empty or absent; without it, from the columns of the forecasts.
    """
    with _opened(forecasts, facts, columns) as (f, o):
        matched = match_forecasts(f, o, resolved=False, once=facts is None)
        if notes is not None:
            notes += _reading_notes(f, o, matched, resolved=False)
        return _by_forecaster(f, _facts(o), matched)


def choose_forecaster(tables: Mapping[str, T], forecaster: str | None) -> tuple[str, T]:
    """Return the forecaster of that name; without a name, the only one."""
    if forecaster is None:
        if len(tables) == 1:
            return next(iter(tables.items()))
        names = ", ".join(list(tables)[:12])
        raise InputError(f"the forecasts are by {len(tables)} forecasters", hint=f"give --forecaster, one of {names}")
    if forecaster not in tables:
        near = get_close_matches(forecaster, tables, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(list(tables)[:12])}"
        raise InputError(f"no forecaster is called {forecaster!r}", hint=hint)
    return forecaster, tables[forecaster]


def answered_rows(examples: T) -> T:
    """Return only the targets that at least one trial answered: those that can be fitted on and scored."""
    rows = examples if isinstance(examples, TrialRows) else examples.rows
    return examples.take(~np.isnan(rows.raw))


@contextmanager
def _opened(
    forecasts: TableSource,
    targets: TableSource | None,
    names: ColumnNames | None,
    *,
    answers: bool = False,
    dated: bool = True,
) -> Generator[tuple[InputTable, InputTable]]:
    """Open and check both tables; without a table of targets, the forecasts serve as both."""
    with open_duckdb() as con, _both_tables(forecasts, targets, con, names or {}, answers=answers) as (f, o):
        hints = {"due": DUE_HINT} | ({"resolved_on": RESOLVED_HINT} if answers else {})
        missing = [
            InputProblem(problem=f"column {column!r} is missing", column=column, hint=hint)
            for column, hint in hints.items()
            if dated and column not in o.types
        ]
        if missing:
            raise InputError.of(missing, path=o.name)
        rules = partial(_example_rules, answers=answers, dated=dated)
        if targets is None and not answers:
            f = o = _as_meant(f, lambda table: [*rules(table), *_forecast_rules(table)])
        else:
            f, o = _checked(f, o, _forecast_rules, rules)
        if targets is not None:
            refuse_repeats(o, {c: o.text(c) for c in ("question", "target", "due") if c in o.types})
        key = [c for c in ("forecaster", "question", "target", "due", "trial") if c in f.types]
        refuse_repeats(f, {c: f"coalesce({f.text(c)}, '')" for c in key})
        yield f, o


def _example_rules(o: InputTable, *, answers: bool, dated: bool) -> list[ColumnRule]:
    """Rules of a table of targets that a combination rule is fitted on or applied to."""
    rules = [*text_rules(o, "question", "target"), *optional_rules(o)]
    rules += [rule for c in TIME_COLUMNS if c in o.types for rule in time_rules(o, c)]
    if "prior" in o.types:
        rules += unit_rules(o, "prior", optional=True)
    if answers:
        share = f"{o.number('outcome')} > 0 and {o.number('outcome')} < 1"
        hint = "rules and studies learn from 0 and 1 only: leave the outcome empty where a share was paid out"
        rules += [
            outcome_rule(o),
            ColumnRule(column="outcome", bad=share, problem="{value} is a share of a yes", hint=hint),
        ]
    if dated:
        undated = f"{o.text('due')} is null"
        rules.append(ColumnRule(column="due", bad=undated, problem="the value is missing", hint=DUE_HINT))
    if dated and answers:
        undated = f"{o.text('outcome')} is not null and {o.text('resolved_on')} is null"
        known = ColumnRule(column="resolved_on", bad=undated, problem="the outcome has no date", hint=RESOLVED_HINT)
        rules.append(known)
    return rules


def _facts(o: InputTable) -> ColumnArrays:
    """Columns of the targets that have an index, in order; a column that does not exist is all null."""
    present = {*o.types, "outcome"}
    columns = [quoted(c) if c in present else f"null::varchar as {quoted(c)}" for c in TEXTS]
    columns += [
        f"try_cast({quoted(c)} as double) as {quoted(c)}" if c in present else f"null::double as {c}" for c in NUMBERS
    ]
    due = "due" if "due" in present else "null::varchar as due"
    return o.fetch(
        f"select question, target, {due}, {', '.join(columns)} from targets where _place >= 0 order by _place"
    )


def _by_forecaster(f: InputTable, facts: ColumnArrays, matched: ColumnArrays) -> dict[str, TrialRows]:
    """Rows of every forecaster over all targets, in the order of first appearance; NaN if it gave no answer."""
    answers = on_known_targets(f, matched)
    question, price = _texts(facts["question"]), _numbers(facts["price"])
    kind, cluster = _texts(facts["kind"]), _texts(facts["cluster"])
    targets = TrialRows(
        trials=np.full((1, len(question)), np.nan),
        question=question,
        due=_days(facts["due"]),
        target=_texts(facts["target"]),
        source=_texts(facts["source"]),
        subtype=_texts(facts["subtype"]),
        # Without a kind, a target with a price is a market.
        kind=np.where(kind == "", np.where(np.isnan(price), "dataset", "market"), kind),
        horizon=_numbers(facts["horizon"]),
        price=price,
        prior=_numbers(facts["prior"]),
        liquidity=_numbers(facts["liquidity"]),
        price_age=_numbers(facts["price_age"]),
        cluster=np.where(cluster == "", question, cluster),
    )
    trial_rows: dict[str, TrialRows] = {}
    for code, name in enumerate(forecaster_names(f)):
        mine = answers["code"] == code
        if mine.any():
            trial = _numbered(answers["trial"][mine].astype(str)) if "trial" in answers else np.zeros(mine.sum(), int)
            matrix = np.full((int(trial.max()) + 1, len(targets)), np.nan)
            matrix[trial, answers["place"][mine]] = answers["p"][mine]
            trial_rows[name] = targets.with_trials(matrix)
    return trial_rows


def _numbered(trial: Strings) -> Ints:
    """Number each forecast's trial from 0, in the order of the trials' numbers, or of their names if not numeric."""
    names, code = np.unique(trial, return_inverse=True)
    place = np.empty(len(names), np.int64)
    place[np.argsort(_order(names.tolist()), kind="stable")] = np.arange(len(names))
    return place[code]


def _order(names: Sequence[str]) -> list[float]:
    try:
        return [float(name) for name in names]
    except ValueError:
        return [float(i) for i in range(len(names))]


def _texts(column: ColumnArray) -> Strings:
    return np.ma.filled(column.astype(object), "").astype(str)


def _numbers(column: ColumnArray) -> Floats:
    return np.ma.filled(np.ma.asarray(column).astype(np.float64), np.nan)


def _days(column: ColumnArray) -> Days:
    """Calendar days (UTC) of times in canonical text; NaT where there is none."""
    return np.array([str(value)[:10] for value in np.ma.filled(column.astype(object), "NaT")], dtype="M8[D]")
