"""What each column of the long tables must hold, as SQL conditions that find the rows which do not."""

from collections.abc import Iterator
from dataclasses import dataclass

from foretell.arena.intake import Intake, quoted
from foretell.questions.problems import InputError

BARE_DAY = r"^\d{4}-\d{2}-\d{2}$"
ZONED = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[+-]\d{2}(:?\d{2})?)$"
ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)$"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A condition that no row may meet, and what to tell the person whose row does."""

    column: str
    bad: str
    problem: str
    """May show the offending value as {value}."""
    hint: str


def enforce(table: Intake, rules: list[Rule]) -> None:
    """Check all rules in one pass; the first that is broken raises, naming its first bad row."""
    firsts = ", ".join(f"min(_row) filter (where {rule.bad})" for rule in rules)
    found = table.con.execute(f"select {firsts} from {table.table}").fetchall()[0]
    for rule, row in zip(rules, found, strict=True):
        if row is not None:
            query = f"select {table.text(rule.column)} from {table.table} where _row = {row}"
            value = table.con.execute(query).fetchall()[0][0]
            problem = rule.problem.format(value="nothing" if value is None else value)
            raise InputError(problem, path=table.name, row=row, column=rule.column, hint=rule.hint)


def text_rules(table: Intake, *columns: str) -> Iterator[Rule]:
    """Every row names something."""
    for column in columns:
        bad = f"{table.text(column)} is null"
        yield Rule(column=column, bad=bad, problem="the value is missing", hint="every row needs one")


def unit_rules(table: Intake, column: str, *, optional: bool) -> Iterator[Rule]:
    """A number in [0, 1]; empty only where the column may be unknown."""
    number, present = table.number(column), f"{table.text(column)} is not null and " if optional else ""
    missing, nan = f"{present}{number} is null", f"isnan({number})"
    beyond = f"{number} < 0 or {number} > 1"
    yield Rule(column=column, bad=missing, problem="{value} is not a number", hint="write a decimal such as 0.25")
    yield Rule(column=column, bad=nan, problem="the value is NaN", hint="leave the row out if there is no forecast")
    yield Rule(column=column, bad=beyond, problem="{value} is outside [0, 1]", hint="0.25 means 25 %")


def outcome_rule(table: Intake) -> Rule:
    """0 or 1, or empty for what is known to be unresolved."""
    number, text = table.number("outcome"), table.text("outcome")
    return Rule(
        column="outcome",
        bad=f"{text} is not null and ({number} is null or isnan({number}) or {number} not in (0, 1))",
        problem="{value} is not an outcome",
        hint="write 0 or 1, and leave it empty where the target has not resolved",
    )


def optional_rules(table: Intake) -> Iterator[Rule]:
    """The rules of the outcome columns that need not be there."""
    for column in ("price", "yes_ask", "no_ask"):
        if column in table.types:
            yield from unit_rules(table, column, optional=True)
    if "weight" in table.types:
        number = table.number("weight")
        bad = f"{number} is null or not isfinite({number}) or {number} < 0"
        hint = "weights are finite and not negative"
        yield Rule(column="weight", bad=bad, problem="{value} is not a weight", hint=hint)
    if "kind" in table.types:
        bad = f"coalesce({table.text('kind')}, '') not in ('market', 'dataset')"
        hint = "kinds are market and dataset"
        yield Rule(column="kind", bad=bad, problem="{value} is not a kind of question", hint=hint)
    if "horizon" in table.types:
        bad = f"{table.text('horizon')} is not null and {table.number('horizon')} is null"
        hint = "leave it empty where unknown"
        yield Rule(column="horizon", bad=bad, problem="{value} is not a number of days", hint=hint)


def moment_rules(table: Intake, column: str) -> Iterator[Rule]:
    """Days, or moments that all name the same time zone."""
    kind = table.types[column]
    if kind in ("VARCHAR", "JSON"):
        yield from _written_moment_rules(table, column)
    elif kind not in ("DATE", "TIMESTAMP WITH TIME ZONE"):
        hint = "store days as DATE, moments with a zone"
        yield Rule(column=column, bad="true", problem="{value} has no time zone", hint=hint)


def _written_moment_rules(table: Intake, column: str) -> Iterator[Rule]:
    text = table.text(column)
    bare, zoned = f"regexp_matches({text}, '{BARE_DAY}')", f"regexp_matches({text}, '{ZONED}')"
    a_day, a_moment = f"try_cast({text} as date) is not null", f"try_cast({text} as timestamptz) is not null"
    zone = f"case when {bare} then 'day' else replace(regexp_extract({text}, '{ZONE}', 1), '+00:00', 'Z') end"
    first = f"(select {zone} from {table.table} where {text} is not null order by _row limit 1)"
    yield Rule(
        column=column,
        bad=f"not {bare} and not {zoned} and try_cast({text} as timestamp) is not null",
        problem="{value} has no time zone",
        hint="write a day as 2025-10-26, a moment as 2025-10-26T12:00:00Z",
    )
    yield Rule(
        column=column,
        bad=f"{text} is not null and not (({bare} and {a_day}) or ({zoned} and {a_moment}))",
        problem="{value} is not a date",
        hint="write a day as 2025-10-26",
    )
    yield Rule(
        column=column,
        bad=f"{text} is not null and {zone} <> {first}",
        problem="{value} is in another time zone than the rows above it",
        hint="use one form in the whole column: days, or moments in UTC",
    )


def moment(table: Intake, column: str) -> str:
    """SQL for the column in canonical text: UTC, and a day's first moment written as the day."""
    kind, text = table.types[column], table.text(column)
    if kind == "DATE":
        return text
    if kind not in ("VARCHAR", "JSON"):
        return _canonical(quoted(column))
    return f"case when regexp_matches({text}, '{BARE_DAY}') then {text} else {_canonical(f'{text}::timestamptz')} end"


def _canonical(at: str) -> str:
    utc = f"strftime({at} at time zone 'UTC', '%Y-%m-%dT%H:%M:%SZ')"
    return f"replace({utc}, 'T00:00:00Z', '')"


def refuse_repeats(table: Intake, key: dict[str, str]) -> None:
    """No two rows may be about the same thing; `key` maps shown column names to SQL."""
    parts = ", ".join(key.values())
    query = f"select min(_row), max(_row) from {table.table} group by {parts} having count(*) > 1 order by 1 limit 1"
    for first, again in table.con.execute(query).fetchall():
        raise repeated(table, first, again, key)


def repeated(table: Intake, first: int, again: int, key: dict[str, str]) -> InputError:
    """The error for a row that says again what an earlier one said."""
    hint = f"each ({', '.join(key)}) may appear once"
    return InputError(f"repeats row {first}", path=table.name, row=again, column="target", hint=hint)
