"""Tables of forecasts and outcomes as what combination rules learn from (`Examples`) and apply to (`TrialRows`).

Every forecaster is read over the same targets, its trials kept apart, so that rules can be compared row by row.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from typing import TypeVar

import numpy as np

from foretell.forecasters.combine.rows import Days, Examples, Strings, TrialRows
from foretell.metrics.arrays import Floats, Ints
from foretell.questions.errors import InputError
from foretell.scoring.join import check_forecasts, forecaster_names, match_forecasts, on_known_targets
from foretell.scoring.table_input import (
    ColumnArray,
    ColumnArrays,
    ColumnRule,
    InputTable,
    TableSource,
    check_rules,
    moment_rules,
    open_table,
    optional_rules,
    outcome_rule,
    quoted,
    refuse_repeats,
    text_rules,
    unit_rules,
)

TEXTS = ("source", "subtype", "kind", "cluster", "resolved_on", "category")
NUMBERS = ("price", "prior", "horizon", "liquidity", "weight", "outcome", "payoff")
DUE_HINT = "a rule is fitted on what was known before a question was asked: add the day it was asked, e.g. 2025-10-26"
RESOLVED_HINT = "an answer may be learnt from only after the day it became known: add that day, e.g. 2025-11-02"
T = TypeVar("T", TrialRows, Examples)


def read_examples(forecasts: TableSource, outcomes: TableSource, *, drop_unknown: bool = False) -> dict[str, Examples]:
    """Every forecaster's trials on the resolved targets, in the order of the outcomes; NaN where it gave no answer.

    The outcomes need `due` and `resolved_on`; source, subtype, kind, price, prior, horizon, liquidity, cluster and
    weight are used where they are there.
    """
    with _opened(forecasts, outcomes) as (f, o):
        _check_answers(o)
        matched = match_forecasts(f, o, drop_unknown=drop_unknown)
        facts = _facts(o)
        if not len(facts["question"]):
            raise InputError("no target has an outcome yet", path=o.name, column="outcome")
        found = _by_forecaster(f, facts, matched)
    outcome, known_on = _numbers(facts["outcome"]), _days(facts["resolved_on"])
    weight = np.nan_to_num(_numbers(facts["weight"]), nan=1.0)
    payoff, category = _numbers(facts["payoff"]), _texts(facts["category"])
    return {
        name: Examples(rows=rows, outcome=outcome, known_on=known_on, weight=weight, payoff=payoff, category=category)
        for name, rows in found.items()
    }


def read_rows(
    forecasts: TableSource, facts: TableSource | None = None, *, drop_unknown: bool = False
) -> dict[str, TrialRows]:
    """Every forecaster's trials on all targets, resolved or not, for a rule that is to be applied.

    What tells targets apart (due, source, kind, price, …) is read from `facts`, a table like the outcomes whose
    outcome may be empty or absent; without one, from the columns of the forecasts.
    """
    with _opened(forecasts, facts) as (f, o):
        matched = match_forecasts(f, o, drop_unknown=drop_unknown, resolved=False, once=facts is None)
        return _by_forecaster(f, _facts(o), matched)


def choose_forecaster(tables: Mapping[str, T], forecaster: str | None) -> tuple[str, T]:
    """The forecaster of that name; without a name, the only one there is."""
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
    """Only the targets on which at least one trial gave an answer: what can be fitted on and judged."""
    rows = examples if isinstance(examples, TrialRows) else examples.rows
    return examples.take(~np.isnan(rows.raw))


@contextmanager
def _opened(forecasts: TableSource, targets: TableSource | None) -> Generator[tuple[InputTable, InputTable]]:
    """Both tables, checked; without one of targets the forecasts are both."""
    import duckdb

    with (
        duckdb.connect(":memory:") as con,
        open_table(forecasts, "forecasts", con) as f,
        nullcontext(f) if targets is None else open_table(targets, "outcomes", con) as o,
    ):
        o.require("question", "target")
        if "due" not in o.types:
            raise InputError("column 'due' is missing", path=o.name, column="due", hint=DUE_HINT)
        rules = [*text_rules(o, "question", "target"), *optional_rules(o), *moment_rules(o, "due")]
        undated = f"{o.text('due')} is null"
        rules.append(ColumnRule(column="due", bad=undated, problem="the value is missing", hint=DUE_HINT))
        if "prior" in o.types:
            rules += unit_rules(o, "prior", optional=True)
        check_rules(o, rules)
        if targets is not None:
            refuse_repeats(o, {c: o.text(c) for c in ("question", "target", "due")})
        check_forecasts(f)
        key = [c for c in ("forecaster", "question", "target", "due", "trial") if c in f.types]
        refuse_repeats(f, {c: f"coalesce({f.text(c)}, '')" for c in key})
        yield f, o


def _check_answers(o: InputTable) -> None:
    o.require("outcome")
    if "resolved_on" not in o.types:
        raise InputError("column 'resolved_on' is missing", path=o.name, column="resolved_on", hint=RESOLVED_HINT)
    undated = f"{o.text('outcome')} is not null and {o.text('resolved_on')} is null"
    dated = ColumnRule(column="resolved_on", bad=undated, problem="the outcome has no date", hint=RESOLVED_HINT)
    check_rules(o, [outcome_rule(o), *moment_rules(o, "resolved_on"), dated])


def _facts(o: InputTable) -> ColumnArrays:
    """What is known about the targets that have a place, in their order; a column that is not there is all empty."""
    there = {*o.types, "outcome"}
    columns = [quoted(c) if c in there else f"null::varchar as {quoted(c)}" for c in TEXTS]
    columns += [
        f"try_cast({quoted(c)} as double) as {quoted(c)}" if c in there else f"null::double as {c}" for c in NUMBERS
    ]
    return o.fetch(f"select question, target, due, {', '.join(columns)} from targets where _place >= 0 order by _place")


def _by_forecaster(f: InputTable, facts: ColumnArrays, matched: ColumnArrays) -> dict[str, TrialRows]:
    """Rows of every forecaster over all targets, in the order of first appearance; NaN where it gave no answer."""
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
        # Where nobody says, what has a price is a market.
        kind=np.where(kind == "", np.where(np.isnan(price), "dataset", "market"), kind),
        horizon=_numbers(facts["horizon"]),
        price=price,
        prior=_numbers(facts["prior"]),
        liquidity=_numbers(facts["liquidity"]),
        cluster=np.where(cluster == "", question, cluster),
    )
    found: dict[str, TrialRows] = {}
    for code, name in enumerate(forecaster_names(f)):
        mine = answers["code"] == code
        if mine.any():
            trial = _numbered(answers["trial"][mine].astype(str)) if "trial" in answers else np.zeros(mine.sum(), int)
            matrix = np.full((int(trial.max()) + 1, len(targets)), np.nan)
            matrix[trial, answers["place"][mine]] = answers["p"][mine]
            found[name] = targets.with_trials(matrix)
    return found


def _numbered(trial: Strings) -> Ints:
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


def _texts(column: ColumnArray) -> Strings:
    return np.ma.filled(column.astype(object), "").astype(str)


def _numbers(column: ColumnArray) -> Floats:
    return np.ma.filled(np.ma.asarray(column).astype(np.float64), np.nan)


def _days(column: ColumnArray) -> Days:
    """The calendar days (UTC) of canonical moments."""
    return np.array([str(value)[:10] for value in np.ma.getdata(column)], dtype="M8[D]")
