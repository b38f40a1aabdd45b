"""Tables of forecasts and outcomes as what combination rules learn from (`Examples`) and apply to (`TrialRows`).

Every forecaster is read over the same targets, its trials kept apart, so that rules can be compared row by row.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from foretell.forecasters.combine.rows import Days, Examples, Strings, TrialRows
from foretell.metrics.arrays import Floats, Ints
from foretell.questions.errors import InputError
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
    text_rules,
    unit_rules,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# Columns read from tables as `TrialRows`: one matrix of trials per forecaster, all over the same targets.


def by_forecaster(facts: ColumnArrays, said: ColumnArrays) -> dict[str, TrialRows]:
    """Rows of every forecaster over all targets, in the order of first appearance; NaN where it said nothing."""
    names, code = np.unique(said["forecaster"].astype(str), return_inverse=True)
    first = np.argsort([int(np.argmax(code == i)) for i in range(len(names))])
    targets = _targets(facts)
    found: dict[str, TrialRows] = {}
    for i in first:
        mine = code == i
        trial = _numbered(said["trial"][mine].astype(str))
        matrix = np.full((int(trial.max()) + 1, len(targets)), np.nan)
        matrix[trial, said["place"][mine]] = said["p"][mine]
        found[str(names[i])] = targets.with_trials(matrix)
    return found


def _numbered(trial: ColumnArray) -> Ints:
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


def _targets(facts: ColumnArrays) -> TrialRows:
    """The targets without anything said about them."""
    question, price = np.ma.getdata(facts["question"]).astype(str), numbers(facts["price"], np.nan)
    kind, cluster = _texts(facts["kind"]), _texts(facts["cluster"])
    return TrialRows(
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


def _texts(column: ColumnArray) -> Strings:
    return np.ma.filled(column.astype(object), "").astype(str)


def numbers(column: ColumnArray, missing: float) -> Floats:
    """A column of numbers with something in place of what is missing."""
    return np.ma.filled(np.ma.asarray(column).astype(np.float64), missing)


def days(column: ColumnArray) -> Days:
    """The calendar days (UTC) of canonical moments."""
    return np.array([str(value)[:10] for value in np.ma.getdata(column)], dtype="M8[D]")


TEXTS = ("source", "subtype", "kind", "cluster")
NUMBERS = ("price", "prior", "horizon", "liquidity", "weight")
DUE_HINT = "a rule is fitted on what was known before a question was asked: add the day it was asked, e.g. 2025-10-26"
RESOLVED_HINT = "an answer may be learnt from only after the day it became known: add that day, e.g. 2025-11-02"
T = TypeVar("T", TrialRows, Examples)


def read_examples(forecasts: TableSource, outcomes: TableSource, *, drop_unknown: bool = False) -> dict[str, Examples]:
    """Every forecaster's trials on the resolved targets, in the order of the outcomes; NaN where it gave no answer.

    The outcomes need `due` and `resolved_on`; source, subtype, kind, price, prior, horizon, liquidity, cluster and
    weight are used where they are there.
    """
    with _connect() as con, open_table(outcomes, "outcomes", con) as o, open_table(forecasts, "forecasts", con) as f:
        _check_targets(o)
        _check_answers(o)
        _check_forecasts(f)
        _index(o, resolved=True)
        facts = o.fetch("select * from facts where place >= 0 order by place")
        if not len(facts["place"]):
            raise InputError("no target has an outcome yet", path=o.name, column="outcome")
        said = _forecast_columns(f, "due" in f.types, drop_unknown=drop_unknown)
    outcome, known_on = np.ma.getdata(facts["outcome"]).astype(np.float64), days(facts["resolved_on"])
    weight = numbers(facts["weight"], 1.0)
    found: dict[str, Examples] = {}
    for name, rows in by_forecaster(facts, said).items():
        found[name] = Examples(rows=rows, outcome=outcome, known_on=known_on, weight=weight)
    return found


def read_rows(
    forecasts: TableSource, facts: TableSource | None = None, *, drop_unknown: bool = False
) -> dict[str, TrialRows]:
    """Every forecaster's trials on all targets, resolved or not, for a rule that is to be applied.

    What tells targets apart (due, source, kind, price, …) is read from `facts`, a table like the outcomes whose
    outcome may be empty or absent; without one, from the columns of the forecasts.
    """
    if facts is None:
        return _rows_alone(forecasts)
    with _connect() as con, open_table(facts, "outcomes", con) as o, open_table(forecasts, "forecasts", con) as f:
        _check_targets(o)
        _check_forecasts(f)
        _index(o, resolved=False)
        said = _forecast_columns(f, "due" in f.types, drop_unknown=drop_unknown)
        found = o.fetch("select * from facts order by place")
    return by_forecaster(found, said)


def _rows_alone(forecasts: TableSource) -> dict[str, TrialRows]:
    with _connect() as con, open_table(forecasts, "forecasts", con) as f:
        _check_targets(f, once=False)
        _check_forecasts(f)
        _index(f, resolved=False, once=True)
        said = _forecast_columns(f, True, drop_unknown=False)
        found = f.fetch("select * from facts order by place")
    return by_forecaster(found, said)


def choose_forecaster(tables: Mapping[str, T], forecaster: str | None) -> tuple[str, T]:
    """The forecaster of that name; without a name, the only one there is."""
    if forecaster is None:
        if len(tables) == 1:
            return next(iter(tables.items()))
        told = ", ".join(list(tables)[:12])
        raise InputError(f"the forecasts are by {len(tables)} forecasters", hint=f"give --forecaster, one of {told}")
    if forecaster not in tables:
        near = get_close_matches(forecaster, tables, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(list(tables)[:12])}"
        raise InputError(f"no forecaster is called {forecaster!r}", hint=hint)
    return forecaster, tables[forecaster]


def answered_rows(examples: T) -> T:
    """Only the targets on which at least one trial gave an answer: what can be fitted on and judged."""
    rows = examples if isinstance(examples, TrialRows) else examples.rows
    return examples.take(~np.isnan(rows.raw))


def _connect() -> "DuckDBPyConnection":
    import duckdb

    return duckdb.connect(":memory:")


def _check_targets(o: InputTable, *, once: bool = True) -> None:
    o.require("question", "target")
    if "due" not in o.types:
        raise InputError("column 'due' is missing", path=o.name, column="due", hint=DUE_HINT)
    rules = [*text_rules(o, "question", "target"), *optional_rules(o), *moment_rules(o, "due")]
    rules.append(
        ColumnRule(column="due", bad=f"{o.text('due')} is null", problem="the value is missing", hint=DUE_HINT)
    )
    if "prior" in o.types:
        rules += unit_rules(o, "prior", optional=True)
    check_rules(o, rules)
    if once:
        refuse_repeats(o, {c: o.text(c) for c in ("question", "target", "due")})


def _check_answers(o: InputTable) -> None:
    o.require("outcome")
    if "resolved_on" not in o.types:
        raise InputError("column 'resolved_on' is missing", path=o.name, column="resolved_on", hint=RESOLVED_HINT)
    undated = f"{o.text('outcome')} is not null and {o.text('resolved_on')} is null"
    dated = ColumnRule(column="resolved_on", bad=undated, problem="the outcome has no date", hint=RESOLVED_HINT)
    check_rules(o, [outcome_rule(o), *moment_rules(o, "resolved_on"), dated])


def _check_forecasts(f: InputTable) -> None:
    f.require("forecaster", "question", "target", "p")
    rules = [*text_rules(f, "forecaster", "question", "target"), *unit_rules(f, "p", optional=False)]
    check_rules(f, [*rules, *(moment_rules(f, "due") if "due" in f.types else ())])
    key = {"forecaster": f.text("forecaster"), "question": f.text("question"), "target": f.text("target")}
    key |= {c: f.text(c) for c in ("due", "trial") if c in f.types}
    refuse_repeats(f, {name: f"coalesce({sql}, '')" for name, sql in key.items()})


def _index(o: InputTable, *, resolved: bool, once: bool = False) -> None:
    """A table `facts` with clean columns and each target's place; −1 for what has no outcome, if one is needed."""
    columns = [f"{o.text(c) if c in o.types else 'null::varchar'} as {quoted(c)}" for c in TEXTS]
    columns += [f"{o.number(c) if c in o.types else 'null::double'} as {quoted(c)}" for c in NUMBERS]
    known = moment_sql(o, "resolved_on") if resolved else "null::varchar"
    columns += [f"{known} as resolved_on", f"{o.number('outcome') if resolved else 'null::double'} as outcome"]
    kept = o.text("outcome") if resolved else "1"
    first = "qualify row_number() over (partition by question, target, due_key order by _row) = 1" if once else ""
    o.con.execute(
        f"""create table asked as
        select _row, {o.text("question")} as question, {o.text("target")} as target, {moment_sql(o, "due")} as due_key,
               {kept} as kept, {", ".join(columns)} from {o.table} {first}"""
    )
    o.con.execute(
        """create table facts as select * exclude (kept), case when kept is null then -1
        else count(kept) over (order by _row rows unbounded preceding) - 1 end as place from asked"""
    )


def _forecast_columns(f: InputTable, dated: bool, *, drop_unknown: bool) -> ColumnArrays:
    """Every forecast with its forecaster, its trial and the place of its target."""
    if not dated:
        _refuse_ambiguous(f)
    trial = f"coalesce({f.text('trial')}, '')" if "trial" in f.types else "''"
    f.con.execute(
        f"""create table said as select _row, {f.text("forecaster")} as forecaster, {f.text("question")} as question,
        {f.text("target")} as target, {trial} as trial, {f.number("p")} as p
        {f", {moment_sql(f, 'due')} as due_key" if dated else ""} from {f.table}"""
    )
    key = "question, target, due_key" if dated else "question, target"
    found = f.fetch(
        f"""select s._row, s.forecaster, s.trial, s.p, a.place::int as place
        from said s left join facts a using ({key}) order by s._row"""
    )
    unknown = np.ma.getmaskarray(found["place"])
    if unknown.any() and not drop_unknown:
        raise _unknown(f, int(found["_row"][unknown].min()))
    kept = np.ma.filled(found["place"], -1) >= 0
    if not kept.any():
        raise InputError("no forecast meets a target of the outcomes", path=f.name, hint="are the ids the same?")
    return {name: np.ma.getdata(column)[kept] for name, column in found.items()}


def _refuse_ambiguous(f: InputTable) -> None:
    query = "select 1 from facts group by question, target having count(*) > 1 limit 1"
    if f.con.execute(query).fetchall():
        problem = "the outcomes ask some targets on several days, so the forecasts must say which they mean"
        raise InputError(problem, path=f.name, column="due", hint="add a due column to the forecasts")


def _unknown(f: InputTable, row: int) -> InputError:
    question, target = f.con.execute(f"select question, target from said where _row = {row}").fetchall()[0]
    return InputError(
        f"unknown target: the outcomes have no row for question {question!r}, target {target!r}",
        path=f.name,
        row=row,
        column="target",
        hint="add one (with an empty outcome if it is open), or pass --drop-unknown",
    )
