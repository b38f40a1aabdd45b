"""Tables of forecasts and outcomes as what combination rules learn from (`Examples`) and apply to (`Rows`).

Every forecaster is read over the same targets, its trials kept apart, so that rules can be compared row by row.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from foretell.arena.example_rows import by_forecaster, days, numbers
from foretell.arena.intake import Columns, Intake, Source, opened, quoted
from foretell.arena.rules import (
    Rule,
    enforce,
    moment,
    moment_rules,
    optional_rules,
    outcome_rule,
    refuse_repeats,
    text_rules,
    unit_rules,
)
from foretell.forecasters.combine.rows import Examples, Rows
from foretell.questions.problems import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TEXTS = ("source", "subtype", "kind", "cluster")
NUMBERS = ("price", "prior", "horizon", "liquidity", "weight")
ASKED = "a rule is fitted on what was known before a question was asked: add the day it was asked, e.g. 2025-10-26"
KNOWN = "an answer may be learnt from only after the day it became known: add that day, e.g. 2025-11-02"
T = TypeVar("T", Rows, Examples)


def read_examples(forecasts: Source, outcomes: Source, *, drop_unknown: bool = False) -> dict[str, Examples]:
    """Every forecaster's trials on the resolved targets, in the order of the outcomes; NaN where it gave no answer.

    The outcomes need `due` and `resolved_on`; source, subtype, kind, price, prior, horizon, liquidity, cluster and
    weight are used where they are there.
    """
    with _connected() as con, opened(outcomes, "outcomes", con) as o, opened(forecasts, "forecasts", con) as f:
        _check_asked(o)
        _check_answers(o)
        _check_said(f)
        _index(o, resolved=True)
        facts = o.fetch("select * from facts where place >= 0 order by place")
        if not len(facts["place"]):
            raise InputError("no target has an outcome yet", path=o.name, column="outcome")
        said = _said(f, "due" in f.types, drop_unknown=drop_unknown)
    outcome, known_on = np.ma.getdata(facts["outcome"]).astype(np.float64), days(facts["resolved_on"])
    weight = numbers(facts["weight"], 1.0)
    found: dict[str, Examples] = {}
    for name, rows in by_forecaster(facts, said).items():
        found[name] = Examples(rows=rows, outcome=outcome, known_on=known_on, weight=weight)
    return found


def read_rows(forecasts: Source, facts: Source | None = None, *, drop_unknown: bool = False) -> dict[str, Rows]:
    """Every forecaster's trials on all targets, resolved or not, for a rule that is to be applied.

    What tells targets apart (due, source, kind, price, …) is read from `facts`, a table like the outcomes whose
    outcome may be empty or absent; without one, from the columns of the forecasts.
    """
    if facts is None:
        return _rows_alone(forecasts)
    with _connected() as con, opened(facts, "outcomes", con) as o, opened(forecasts, "forecasts", con) as f:
        _check_asked(o)
        _check_said(f)
        _index(o, resolved=False)
        said = _said(f, "due" in f.types, drop_unknown=drop_unknown)
        found = o.fetch("select * from facts order by place")
    return by_forecaster(found, said)


def _rows_alone(forecasts: Source) -> dict[str, Rows]:
    with _connected() as con, opened(forecasts, "forecasts", con) as f:
        _check_asked(f, once=False)
        _check_said(f)
        _index(f, resolved=False, once=True)
        said = _said(f, True, drop_unknown=False)
        found = f.fetch("select * from facts order by place")
    return by_forecaster(found, said)


def chosen(tables: Mapping[str, T], forecaster: str | None) -> tuple[str, T]:
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


def answered(examples: T) -> T:
    """Only the targets on which at least one trial gave an answer: what can be fitted on and judged."""
    rows = examples if isinstance(examples, Rows) else examples.rows
    return examples.take(~np.isnan(rows.raw))


def _connected() -> "DuckDBPyConnection":
    import duckdb

    return duckdb.connect(":memory:")


def _check_asked(o: Intake, *, once: bool = True) -> None:
    o.require("question", "target")
    if "due" not in o.types:
        raise InputError("column 'due' is missing", path=o.name, column="due", hint=ASKED)
    rules = [*text_rules(o, "question", "target"), *optional_rules(o), *moment_rules(o, "due")]
    rules.append(Rule(column="due", bad=f"{o.text('due')} is null", problem="the value is missing", hint=ASKED))
    if "prior" in o.types:
        rules += unit_rules(o, "prior", optional=True)
    enforce(o, rules)
    if once:
        refuse_repeats(o, {c: o.text(c) for c in ("question", "target", "due")})


def _check_answers(o: Intake) -> None:
    o.require("outcome")
    if "resolved_on" not in o.types:
        raise InputError("column 'resolved_on' is missing", path=o.name, column="resolved_on", hint=KNOWN)
    undated = f"{o.text('outcome')} is not null and {o.text('resolved_on')} is null"
    dated = Rule(column="resolved_on", bad=undated, problem="the outcome has no date", hint=KNOWN)
    enforce(o, [outcome_rule(o), *moment_rules(o, "resolved_on"), dated])


def _check_said(f: Intake) -> None:
    f.require("forecaster", "question", "target", "p")
    rules = [*text_rules(f, "forecaster", "question", "target"), *unit_rules(f, "p", optional=False)]
    enforce(f, [*rules, *(moment_rules(f, "due") if "due" in f.types else ())])
    key = {"forecaster": f.text("forecaster"), "question": f.text("question"), "target": f.text("target")}
    key |= {c: f.text(c) for c in ("due", "trial") if c in f.types}
    refuse_repeats(f, {name: f"coalesce({sql}, '')" for name, sql in key.items()})


def _index(o: Intake, *, resolved: bool, once: bool = False) -> None:
    """A table `facts` with clean columns and each target's place; −1 for what has no outcome, if one is needed."""
    columns = [f"{o.text(c) if c in o.types else 'null::varchar'} as {quoted(c)}" for c in TEXTS]
    columns += [f"{o.number(c) if c in o.types else 'null::double'} as {quoted(c)}" for c in NUMBERS]
    known = moment(o, "resolved_on") if resolved else "null::varchar"
    columns += [f"{known} as resolved_on", f"{o.number('outcome') if resolved else 'null::double'} as outcome"]
    kept = o.text("outcome") if resolved else "1"
    first = "qualify row_number() over (partition by question, target, due_key order by _row) = 1" if once else ""
    o.con.execute(
        f"""create table asked as
        select _row, {o.text("question")} as question, {o.text("target")} as target, {moment(o, "due")} as due_key,
               {kept} as kept, {", ".join(columns)} from {o.table} {first}"""
    )
    o.con.execute(
        """create table facts as select * exclude (kept), case when kept is null then -1
        else count(kept) over (order by _row rows unbounded preceding) - 1 end as place from asked"""
    )


def _said(f: Intake, dated: bool, *, drop_unknown: bool) -> Columns:
    """Every forecast with its forecaster, its trial and the place of its target."""
    if not dated:
        _refuse_ambiguous(f)
    trial = f"coalesce({f.text('trial')}, '')" if "trial" in f.types else "''"
    f.con.execute(
        f"""create table said as select _row, {f.text("forecaster")} as forecaster, {f.text("question")} as question,
        {f.text("target")} as target, {trial} as trial, {f.number("p")} as p
        {f", {moment(f, 'due')} as due_key" if dated else ""} from {f.table}"""
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


def _refuse_ambiguous(f: Intake) -> None:
    query = "select 1 from facts group by question, target having count(*) > 1 limit 1"
    if f.con.execute(query).fetchall():
        problem = "the outcomes ask some targets on several days, so the forecasts must say which they mean"
        raise InputError(problem, path=f.name, column="due", hint="add a due column to the forecasts")


def _unknown(f: Intake, row: int) -> InputError:
    question, target = f.con.execute(f"select question, target from said where _row = {row}").fetchall()[0]
    return InputError(
        f"unknown target: the outcomes have no row for question {question!r}, target {target!r}",
        path=f.name,
        row=row,
        column="target",
        hint="add one (with an empty outcome if it is open), or pass --drop-unknown",
    )
