"""Convert the usual spellings of probabilities, outcomes and dates to the canonical form that tables are checked in.

A column is read as a whole: it has one unit, and one order of day and month. Values that cannot be read are left
unchanged, so that the check of the table reports them.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from foretell.frozen import frozen
from foretell.questions.errors import InputProblem
from foretell.scoring.table_input import BARE_DAY, ZONED, InputTable, column_types, quoted

PROBABILITY_COLUMNS = ("p", "price", "yes_ask", "no_ask", "prior")
NUMBER_COLUMNS = ("weight", "payoff", "horizon", "liquidity")
TIME_COLUMNS = ("due", "resolved_on")
YES = ("yes", "y", "true", "t")
NO = ("no", "n", "false", "f")
UNRESOLVED = (
    *("n/a", "na", "#n/a", "null", "none", "nan", "nat", "<na>", "-", "–", "?", "open", "unresolved", "pending", "tbd"),
    *(
        "not resolved",
        "not yet resolved",
        "unknown",
        "cancelled",
        "canceled",
        "annulled",
        "void",
        "voided",
        "ambiguous",
    ),
)
"""Usual spellings of the outcome of a question that is open or was annulled."""
SPACE = r"[\s\x{00a0}\x{202f}]"
SLASHED = r"^\d{1,2}[/-]\d{1,2}[/-]\d{4}\b"
NAIVE = r"^\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"
DAY_FIRST = ("%d/%m/%Y", "%d-%m-%Y")
MONTH_FIRST = ("%m/%d/%Y", "%m-%d-%Y")
OTHER_DATES = (
    *("%Y/%m/%d", "%d.%m.%Y", "%Y%m%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y"),
    *("%d-%b-%Y", "%d. %b %Y", "%d. %B %Y", "%a, %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
)
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", ", %H:%M")
SECONDS, MILLISECONDS = r"^\d{10}(\.\d+)?$", r"^\d{13}(\.0+)?$"


@frozen
class ColumnReading:
    """How a column is read: SQL for its canonical text, and how it was read or why that is unclear."""

    sql: str
    meaning: str = ""
    problem: InputProblem | None = None


def read_as_written(table: InputTable, columns: Collection[str]) -> tuple[InputTable, tuple[InputProblem, ...]]:
    """Return the table with canonical values in these columns, and the problems of columns that are unclear.

    Only columns that failed the check of canonical tables should be given.
    """
    column_readings: dict[str, ColumnReading] = {}
    for column in columns:
        if column in PROBABILITY_COLUMNS:
            column_readings[column] = _probabilities(table, column)
        elif column in NUMBER_COLUMNS:
            column_readings[column] = ColumnReading(sql=_or_text(table, column, number_sql(table.text(column))))
        elif column == "outcome":
            column_readings[column] = _outcomes(table)
        elif column in TIME_COLUMNS:
            column_readings[column] = _times(table, column)
    problems = tuple(
        column_reading.problem for column_reading in column_readings.values() if column_reading.problem is not None
    )
    if not column_readings:
        return table, problems
    changed = ", ".join(f"{reading.sql} as {quoted(column)}" for column, reading in column_readings.items())
    name = f"{table.table}_read"
    table.con.execute(f"create or replace temp table {name} as select * replace ({changed}) from {table.table}")
    meanings = {column: reading.meaning for column, reading in column_readings.items() if reading.meaning}
    readings = {**table.readings, **meanings}
    types = column_types(name, table.con)
    return replace(table, table=name, original=table.original or table.table, types=types, readings=readings), problems


def number_sql(text: str) -> str:
    """SQL for a number with or without a percent sign, with a decimal point or comma; NULL if it is none.

    The percent sign is removed and the number is not divided: see `percent_sign_sql`.
    """
    return f"try_cast(replace(regexp_replace({text}, '{SPACE}*%$', ''), ',', '.') as double)"


def percent_sign_sql(text: str) -> str:
    """SQL for whether a text ends in a percent sign."""
    return f"ends_with({text}, '%')"


def _or_text(table: InputTable, column: str, sql: str) -> str:
    return f"coalesce(({sql})::varchar, {table.text(column)})"


# Probabilities: fractions or percent.

LEAST_PERCENT = 2
"""A column without percent signs whose numbers are all below this is not in percent: 1.2 is more likely an error."""


def _probabilities(table: InputTable, column: str) -> ColumnReading:
    text = table.text(column)
    x, signed = number_sql(text), percent_sign_sql(text)
    query = f"""with u as (select _row, {text} as t, {x} as x, {signed} as signed from {table.table}),
        v as (select * replace (case when isfinite(x) then x end as x) from u)
        select count(x) filter (where signed), count(x) filter (where not signed),
               max(x) filter (where not signed), min(_row) filter (where not signed and x > 0 and x < 1),
               min(_row) filter (where signed and x is not null), min(_row) filter (where not signed and x is not null),
               min(_row) filter (where not signed and x > 1), count(x) filter (where not signed and x > 1),
               count(x) filter (where not signed and x > 100), count(*) filter (where contains(t, ',')),
               count(x) filter (where x < 0) from v"""
    signs, bare, most, inside, signed_row, bare_row, beyond_row, beyond, above, commas, below = table.con.execute(
        query
    ).fetchall()[0]
    problem: InputProblem | None = None
    percent = bool(signs) or (most is not None and most >= LEAST_PERCENT and 2 * above <= beyond)
    if signs and bare:
        other = f"row {table.line(bare_row)} has {table.value(column, bare_row)}"
        problem = _mixed_units(table, column, signed_row, f"is in percent, but {other} without a sign")
    elif beyond and inside is not None:
        percent = False
    if problem is None and beyond and inside is not None and not below:  # Otherwise the check lists all that is wrong.
        other = f"row {table.line(inside)} has {table.value(column, inside)}"
        problem = _mixed_units(table, column, beyond_row, f"is outside [0, 1], but {other}: fractions or percent?")
    factor = f"case when {signed} then 100 else 1 end" if signs else "100" if percent else "1"
    meaning = ", ".join(filter(None, ["percent" if percent else "", "decimal comma" if commas else ""]))
    return ColumnReading(sql=_or_text(table, column, f"{x} / {factor}"), meaning=meaning, problem=problem)


def _mixed_units(table: InputTable, column: str, row: int, problem: str) -> InputProblem:
    hint = "write the whole column as fractions (0.25), or all of it in percent (25 %)"
    where = table.names.get(column, column)
    text = f"{table.value(column, row)} {problem}"
    return InputProblem(problem=text, row=table.line(row), column=where, hint=hint)


# Outcomes: numbers, words, or the option that came true.


def _outcomes(table: InputTable) -> ColumnReading:
    text = table.text("outcome")
    word = rf"trim(regexp_replace(lower({text}), '^(resolved|resolves|resolution)\s*(to|as)?\s*[:=]?\s*', ''))"
    number = f"{number_sql(text)} / case when {percent_sign_sql(text)} then 100 else 1 end"
    by_word = f"{word} in {_listed((*YES, *NO, *UNRESOLVED))}"
    plain = f"""case when {word} in {_listed(YES)} then '1' when {word} in {_listed(NO)} then '0'
        when {word} in {_listed(UNRESOLVED)} then null when {number} between 0 and 1 then ({number})::varchar
        when {word} in ('1', '0') then {word} else {text} end"""
    by_option = "false"
    target = f"lower({table.text('target')})"
    if "target" not in table.assumed:
        # If all rows of a question with several options name the same option, that option came true.
        key = [table.text(column) for column in ("question", "due") if column in table.types]
        over = f"over (partition by {', '.join(key)})"
        several = f"min({target}) {over} <> max({target}) {over} and min({word}) {over} = max({word}) {over}"
        by_option = f"coalesce({several} and bool_or({target} = {word}) {over}, false)"
    query = f"""with v as (select {by_option} as by_option, {by_word} as by_word,
        {number} > 0 and {number} < 1 as fraction from {table.table})
        select bool_or(by_option), bool_or(by_word and not by_option), bool_or(fraction) from v"""
    ways = zip(("the option that came true", "words", "fractions"), table.con.execute(query).fetchall()[0], strict=True)
    return ColumnReading(
        sql=f"case when {by_option} then ({target} = {word})::int::varchar else {plain} end",
        meaning=", ".join(way for way, used in ways if used),
    )


def _listed(words: Sequence[str]) -> str:
    return "(" + ", ".join(f"'{word}'" for word in words) + ")"


# Days and times.


def _times(table: InputTable, column: str) -> ColumnReading:
    kind, text = table.types[column], table.text(column)
    if kind.startswith("TIMESTAMP"):
        # Times in a data frame have no zone. Midnight means the day in any zone.
        return ColumnReading(sql=f"strftime({quoted(column)}, '%Y-%m-%dT%H:%M:%SZ')", meaning="UTC")
    # Trying all formats is slow, and many rows have the same day: each distinct text is read once.
    texts, days = f"{table.table}_{column}_texts", f"{table.table}_{column}_days"
    query = f"select {quoted(column)}, min(_row) as _row from {table.table} group by {quoted(column)}"
    table.con.execute(f"create or replace temp table {texts} as {query}")
    text = f"regexp_replace({text}, '\\s*(UTC|GMT)$', 'Z')"
    slashed = f"regexp_matches({text}, '{SLASHED}')"
    parts = [f"try_cast(regexp_extract({text}, '^(\\d+)[/-](\\d+)', {n}) as int)" for n in (1, 2)]
    query = f"""select count(*) filter (where {slashed}), min(_row) filter (where {slashed}),
        min(_row) filter (where {slashed} and {parts[0]} > 12), min(_row) filter (where {slashed} and {parts[1]} > 12),
        bool_or(regexp_matches({text}, '{NAIVE}') or (contains({text}, ':') and not regexp_matches({text}, '{ZONED}'))),
        bool_or(regexp_matches({text}, '{SECONDS}') or regexp_matches({text}, '{MILLISECONDS}')) from {texts}"""
    count, first, day_first, month_first, naive, epoch = table.con.execute(query).fetchall()[0]
    forms = (*(DAY_FIRST if month_first is None else ()), *(MONTH_FIRST if day_first is None else ()))
    problem = None
    if count and (day_first is None) == (month_first is None):
        problem, forms = _day_or_month(table, column, first, (day_first, month_first)), (*DAY_FIRST, *MONTH_FIRST)
    formats = [f"{date}{time}" for date in (*OTHER_DATES, *forms) for time in TIMES]
    at = f"try_strptime({text}, {list(formats)!r})"
    second, day = "'%Y-%m-%dT%H:%M:%SZ'", "'%Y-%m-%d'"
    sql = f"""case when regexp_matches({text}, '{BARE_DAY}') or regexp_matches({text}, '{ZONED}') then {text}
        when regexp_matches({text}, '{NAIVE}') then strftime(try_cast({text} as timestamp), {second})
        when regexp_matches({text}, '{SECONDS}') then strftime(make_timestamp(
            (try_cast({text} as double) * 1000000)::bigint), {second})
        when regexp_matches({text}, '{MILLISECONDS}') then strftime(make_timestamp(
            (try_cast({text} as double) * 1000)::bigint), {second})
        when contains({text}, ':') then strftime({at}, {second}) else strftime({at}, {day}) end"""
    order = "" if not count else "day/month/year" if month_first is None else "month/day/year"
    meaning = ", ".join(filter(None, [order, "epoch" if epoch else "", "UTC" if naive or epoch else ""]))
    query = f"select {table.text(column)} as written, {_or_text(table, column, sql)} as day from {texts}"
    table.con.execute(f"create or replace temp table {days} as {query}")
    sql = f"(select any_value(day) from {days} where written = {table.text(column)})"
    return ColumnReading(sql=sql, meaning=meaning, problem=problem)


def _day_or_month(table: InputTable, column: str, first: int, rows: tuple[int | None, int | None]) -> InputProblem:
    """Return the problem of a date such as 3/4/2025, in which day and month are ambiguous."""
    problem = "could be day/month or month/day, as could all rows like it"
    if None not in rows:
        first, other = rows[0] or first, rows[1] or first
        problem = f"is day/month, but row {table.line(other)} has {table.value(column, other)}, which is month/day"
    return InputProblem(
        problem=f"{table.value(column, first)} {problem}",
        row=table.line(first),
        column=table.names.get(column, column),
        hint="write days as 2025-10-26",
    )
