"""Which column of a table plays which role: columns are recognised by their usual names, or named by the user.

A table whose required columns have their own names is read as it is. Otherwise columns are renamed in a view, a table
with one column for each forecaster is turned into a long one, and a note says how it was read.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from foretell.data.usual_names import USUAL_NAMES, columns_named, plain_name
from foretell.patterns import pattern
from foretell.questions.errors import InputError, InputProblem
from foretell.scoring.role_columns import ColumnNames
from foretell.scoring.table_input import SHOWN_ROWS, InputTable, column_types, quoted
from foretell.scoring.written_values import number_sql, percent_sign_sql

ROLES = (*USUAL_NAMES, "kind", "subtype", "prior", "liquidity", "price_age", "yes_ask", "no_ask", "payoff")
"""Every role that the user can name a column for."""
NOT_FORECASTS = {
    *("row", "index", "unnamed0", "n", "count", "rank", "year", "month", "week", "day", "days", "hours", "age"),
    *("volume", "traders", "forecasters", "volume24h", "liquidity", "daysleft", "daystoresolution", "leadtime"),
    *("kind", "subtype", "prior", "yesask", "noask", "payoff", "excluded", "quarantined", "split", "fold", "seed"),
    *("priceage", "dollars", "seconds"),
}
"""Columns of numbers that are never a forecaster."""
QUANTILE = pattern(r"(q|quantile)_?(0?\.)?\d\d", re.IGNORECASE)
"""Name of a column with one quantile: q10, quantile_0.90."""
ANY_FORECASTER = "forecast"
"""Name of the forecaster of a table that neither has a column for it nor is a file."""


def assign_roles(table: InputTable, needed: Sequence[str], column_names: ColumnNames | None = None) -> InputTable:
    """Return the table with its columns under the names of their roles; `needed` roles must be there.

    Names that the user gave to columns which the table does not have are ignored.
    """
    named = _named_columns(table, column_names or {})
    if not named and all(role in table.types for role in needed):
        return _with_target(table)
    roles, problems = _recognised(table, named)
    wide: tuple[str, ...] = tuple(named.get("p", ())) if len(named.get("p", ())) > 1 else ()
    if "p" in needed and "p" not in roles:
        _refuse_quantile_columns(table)
    if "p" in needed and "p" not in roles and "forecaster" not in roles and not problems:
        wide = wide or _forecaster_columns(table, roles)
    missing = [role for role in needed if role not in roles and role != "forecaster" and not (role == "p" and wide)]
    problems += [_missing(table, role, roles) for role in missing]
    if problems:
        raise InputError.of(problems, path=table.name)
    roles.pop("p" if wide else "", None)
    roles = _without_needless_round(table, roles, wide)
    return _renamed(table, roles, wide, long="p" in needed)


def _refuse_quantile_columns(table: InputTable) -> None:
    """Raise if a table has a column for each quantile, which would be taken for forecasters."""
    columns = [column for column in table.columns if QUANTILE.fullmatch(column)]
    if len(columns) > 1:
        level = columns[0][-2:]
        hint = f"write a row for each, with the columns question, level and value, and level 0.{level} for {columns[0]}"
        raise InputError(f"columns {', '.join(columns)} are quantiles", path=table.name, hint=hint)


def _named_columns(table: InputTable, column_names: ColumnNames) -> dict[str, tuple[str, ...]]:
    """Role → the columns of this table that the user named for it."""
    named_columns: dict[str, tuple[str, ...]] = {}
    by_plain = {plain_name(column): column for column in table.columns}
    for role, value in column_names.items():
        names = (value,) if isinstance(value, str) else tuple(value)
        columns = tuple(by_plain.get(plain_name(name), "") if name not in table.types else name for name in names)
        if all(columns):
            named_columns[role] = columns
    return named_columns


def refuse_unknown_names(column_names: ColumnNames, tables: Iterable[InputTable]) -> None:
    """Raise if the user names a role that does not exist, or a column that no table has."""
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    known = {plain_name(column) for column in columns}
    for role, value in column_names.items():
        if role not in ROLES:
            near = get_close_matches(role, ROLES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"roles are {', '.join(ROLES)}"
            raise InputError(f"{role!r} is not a role of a column", column="--columns", hint=hint)
        names = (value,) if isinstance(value, str) else value
        for name in names:
            if plain_name(name) not in known:
                near = get_close_matches(name, columns, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"columns are {', '.join(columns)}"
                raise InputError(f"there is no column {name!r}", column="--columns", hint=hint)
        if len(names) > 1 and role != "p":
            raise InputError(f"{role} can only be one column", column="--columns")


def _recognised(table: InputTable, named: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, str], list[InputProblem]]:
    """Role → column, and a problem for every role that several columns could play."""
    roles = {role: columns[0] for role, columns in named.items()}
    taken = {column for columns in named.values() for column in columns}
    left = [column for column in table.columns if column not in taken]
    problems: list[InputProblem] = []
    for role, groups in USUAL_NAMES.items():
        if role in roles:
            continue
        if role in table.types and role not in taken:
            roles[role] = role
            continue
        columns = columns_named(left, groups)
        if len(columns) > 1:
            hint = " or ".join(f"--columns {role}={column}" for column in columns)
            both = " and ".join(map(repr, columns))
            problems.append(InputProblem(problem=f"{both} could both be the {WORDS.get(role, role)}", hint=hint))
        if columns:
            roles[role] = columns[0]
    return roles, problems


WORDS = {"p": "probability (p)", "due": "day of asking (due)", "resolved_on": "day of resolution (resolved_on)"}
"""Longer names of roles, for messages."""


def _missing(table: InputTable, role: str, roles: Mapping[str, str]) -> InputProblem:
    left = [column for column in table.columns if column not in roles.values()]
    near = get_close_matches(role, left, n=1)
    meant = f"did you mean {near[0]!r}?" if near else f"columns are {', '.join(table.columns)}"
    hint = f"{meant}; name it with --columns {role}={near[0] if near else 'COLUMN'}"
    if role == "outcome" and "p" in roles:
        hint += ", or give a table of outcomes: --outcomes FILE"
    return InputProblem(problem=f"column {role!r} is missing", column=role, hint=hint)


def _forecaster_columns(table: InputTable, roles: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of a wide table that are a forecaster each: those with only probabilities."""
    left = [
        column
        for column in table.columns
        if column not in roles.values() and plain_name(column) not in NOT_FORECASTS | {""}
    ]
    if not left or "question" not in roles:
        return ()
    parts: list[str] = []
    for column in left:
        text, number = table.text(column), number_sql(table.text(column))
        signs = percent_sign_sql(text)
        parts += [
            f"count({text}), count({number}), min({number}), max({number}), count(*) filter (where {signs})",
            f"count(*) filter (where {number} > 0 and {number} < 1)",
        ]
    counts = table.con.execute(f"select {', '.join(parts)} from {table.table}").fetchall()[0]
    kinds: dict[str, list[str]] = {}
    problems: list[InputProblem] = []
    for place, column in enumerate(left):
        values, numbers, low, high, signs, inside = counts[6 * place : 6 * place + 6]
        # Mostly fractions or percentages: left out as a label, a forecaster would be lost to one slip.
        if values > numbers >= values / 2 and low >= 0 and (signs or (inside and high <= 1)):
            problems.append(_no_number(table, column))
        if values and values == numbers and low >= 0 and high <= PERCENT:
            percent = signs or high > 1
            kinds.setdefault("percent" if percent else "fractions" if inside else "0 and 1 only", []).append(column)
    if problems:
        raise InputError.of(problems, path=table.name)
    if len(kinds) > 1:
        listed = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in kinds.items())
        hint = f"name them with --columns p={','.join(next(iter(kinds.values())))}"
        raise InputError(f"it is unclear which columns are forecasters ({listed})", path=table.name, hint=hint)
    return tuple(next(iter(kinds.values()), ()))


PERCENT = 100


def _no_number(table: InputTable, column: str) -> InputProblem:
    """Return the problem of a column that could be a forecaster but for some values."""
    text = table.text(column)
    query = f"select _row from {table.table} where {text} is not null and {number_sql(text)} is null order by 1"
    rows = [row for (row,) in table.con.execute(query).fetchall()]
    return InputProblem(
        problem=f"{table.value(column, rows[0])} is not a number",
        row=table.line(rows[0]),
        column=column,
        hint="leave it empty if there is no forecast, or name the columns of the forecasters with --columns p=A,B",
        count=len(rows),
        more=tuple(map(table.line, rows[1:SHOWN_ROWS])),
    )


def _without_needless_round(table: InputTable, roles: dict[str, str], wide: Sequence[str]) -> dict[str, str]:
    """Leave out a recognised day of asking that differs between the forecasters of one question.

    `due` is part of a target's name. If every forecaster answered on a different day, they would have no target in
    common, so the day is only a label. If one forecaster answered a question several times, the day is needed.
    """
    column = roles.get("due")
    if column in (None, "due") or "question" not in roles:
        return roles
    who = table.text(roles["forecaster"]) if "forecaster" in roles and not wide else "''"
    rest = [table.text(roles[role]) for role in ("question", "target", "trial") if role in roles]
    day = table.text(column)
    varies = f"select 1 from {table.table} group by {rest[0]} having count(distinct {day}) > 1 limit 1"
    needed = f"select 1 from {table.table} group by {', '.join([who, *rest])} having count(distinct {day}) > 1 limit 1"
    if table.con.execute(varies).fetchall() and not table.con.execute(needed).fetchall():
        return {role: other for role, other in roles.items() if role != "due"}
    return roles


def _with_target(table: InputTable) -> InputTable:
    """Add the target of yes/no questions, if the table does not name it."""
    if "target" in table.types:
        return table
    if near := get_close_matches("target", table.columns, n=1):
        hint = f"did you mean {near[0]!r}?"
        raise InputError("column 'target' is missing", path=table.name, column="target", hint=hint)
    return replace(_viewed(table, f"select *, 'yes' as target from {table.table}", {}), assumed={"target": "yes"})


def _renamed(table: InputTable, roles: Mapping[str, str], wide: Sequence[str], *, long: bool) -> InputTable:
    """The table under the names of its roles, one row per forecast if it is wide."""
    used = {column: role for role, column in roles.items()}
    others = [c for c in table.columns if c not in used and c not in wide and c.casefold() not in {*roles, "p"}]
    columns = ["_row", *(f"{quoted(column)} as {quoted(role)}" for column, role in used.items())]
    columns += [quoted(column) for column in others]
    names = {role: column for role, column in roles.items() if role != column}
    assumed = {} if "target" in roles else {"target": "yes"}
    if long and "forecaster" not in roles and not wide:
        assumed["forecaster"] = _only_forecaster(table)
    columns += [f"{_literal(value)} as {role}" for role, value in assumed.items()]
    if not wide:
        return replace(_viewed(table, f"select {', '.join(columns)} from {table.table}", names), assumed=assumed)
    parts = [
        f"select {', '.join(columns)}, {_literal(column)} as forecaster, {table.text(column)} as p, {i} as _column "
        f"from {table.table} where {table.text(column)} is not null"
        for i, column in enumerate(wide)
    ]
    return replace(_viewed(table, " union all ".join(parts), names), wide=tuple(wide), assumed=assumed)


def _only_forecaster(table: InputTable) -> str:
    """The name of the forecaster of a table without a column for it: that of its file."""
    name = Path(table.name).name.removesuffix(".gz")
    return ANY_FORECASTER if name == "forecasts" else Path(name).stem


def with_forecaster(table: InputTable) -> InputTable:
    """Add the only forecaster, if the table has no column for it."""
    if "forecaster" in table.types:
        return table
    name = _only_forecaster(table)
    viewed = _viewed(table, f"select *, {_literal(name)} as forecaster from {table.table}", {})
    return replace(viewed, assumed={**table.assumed, "forecaster": name})


def _viewed(table: InputTable, query: str, names: Mapping[str, str]) -> InputTable:
    name = f"{table.table}_named"
    table.con.execute(f"create or replace temp view {name} as {query}")
    # DuckDB ignores an alias that differs from the column's name only in case.
    respelled = {column: role for role, column in names.items() if column.casefold() == role}
    types = {respelled.get(column, column): kind for column, kind in column_types(name, table.con).items()}
    return replace(table, table=name, types=types, names=names)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


SHOWN_FORECASTERS = 4


def what_was_understood(table: InputTable) -> tuple[str, ...]:
    """Return a sentence on how the table was read; empty if nothing had to be interpreted."""
    parts = [
        f"{role} = {table.names.get(role, role)}{f' ({reading})' if reading else ''}"
        for role in ("forecaster", "question", "target", "p", "outcome", *ROLES)
        if role in table.names or role in table.readings
        for reading in [table.readings.get(role, "")]
    ]
    readings = [", ".join(dict.fromkeys(parts))] if parts else []
    if table.wide:
        names = ", ".join(table.wide[:SHOWN_FORECASTERS]) + (", …" if len(table.wide) > SHOWN_FORECASTERS else "")
        readings.append(f"a wide table of {len(table.wide)} forecaster{'s' * (len(table.wide) > 1)}: {names}")
    elif "forecaster" in table.assumed:
        readings.append(f"one forecaster, called {table.assumed['forecaster']}")
    if not readings:
        return ()
    count = table.con.execute(f"select count(distinct _row) from {table.table}").fetchall()[0][0]
    where = f" of {Path(table.name).name}" if Path(table.name).suffix else ""
    return (f"Read {count:,} row{'s' * (count != 1)}{where}: {'; '.join(readings)}.",)
