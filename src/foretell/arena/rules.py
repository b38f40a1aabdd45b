"""What each column of the long tables must hold."""

from foretell.arena.intake import Intake, quoted
from foretell.questions.problems import InputError

BARE_DAY = r"^\d{4}-\d{2}-\d{2}$"
ZONED = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[+-]\d{2}(:?\d{2})?)$"
ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)$"


def text_rule(table: Intake, column: str) -> None:
    """Every row names something."""
    table.refuse(column, f"{table.text(column)} is null", "the value is missing", "every row needs one")


def unit_rule(table: Intake, column: str, *, optional: bool) -> None:
    """A number in [0, 1]; empty only where the column may be unknown."""
    number, text = table.number(column), table.text(column)
    missing = f"{text} is not null and " if optional else ""
    table.refuse(column, f"{missing}{number} is null", "{value} is not a number", "write a decimal such as 0.25")
    table.refuse(column, f"isnan({number})", "the value is NaN", "leave the row out if there is no forecast")
    table.refuse(column, f"{number} < 0 or {number} > 1", "{value} is outside [0, 1]", "0.25 means 25 %")


def outcome_rule(table: Intake) -> None:
    """0 or 1, or empty for what is known to be unresolved."""
    number, text = table.number("outcome"), table.text("outcome")
    hint = "write 0 or 1, and leave it empty where the target has not resolved"
    bad = f"{text} is not null and ({number} is null or isnan({number}) or {number} not in (0, 1))"
    table.refuse("outcome", bad, "{value} is not an outcome", hint)


def weight_rule(table: Intake) -> None:
    """A finite number that is not negative."""
    number = table.number("weight")
    bad = f"{number} is null or not isfinite({number}) or {number} < 0"
    table.refuse("weight", bad, "{value} is not a weight", "weights are finite and not negative")


def horizon_rule(table: Intake) -> None:
    """A number of days, or empty."""
    bad = f"{table.text('horizon')} is not null and {table.number('horizon')} is null"
    table.refuse("horizon", bad, "{value} is not a number of days", "leave it empty where unknown")


def kind_rule(table: Intake) -> None:
    """Market or dataset: the overall score is the mean of the two."""
    bad = f"coalesce({table.text('kind')}, '') not in ('market', 'dataset')"
    table.refuse("kind", bad, "{value} is not a kind of question", "kinds are market and dataset")


def moment_rule(table: Intake, column: str) -> str:
    """Days, or moments that all name the same time zone. Returns SQL for the column in canonical text."""
    kind = table.types[column]
    if kind == "DATE":
        return f"{table.text(column)}"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return _canonical(quoted(column))
    if kind not in ("VARCHAR", "JSON"):
        table.refuse(column, "true", "{value} has no time zone", "store days as DATE, moments with a zone")
    return _written_moment(table, column)


def _written_moment(table: Intake, column: str) -> str:
    text = table.text(column)
    bare, zoned = f"regexp_matches({text}, '{BARE_DAY}')", f"regexp_matches({text}, '{ZONED}')"
    a_day, a_moment = f"try_cast({text} as date) is not null", f"try_cast({text} as timestamptz) is not null"
    valid = f"(({bare} and {a_day}) or ({zoned} and {a_moment}))"
    naive = f"(not {bare} and not {zoned} and try_cast({text} as timestamp) is not null)"
    table.refuse(
        column, naive, "{value} has no time zone", "write a day as 2025-10-26, a moment as 2025-10-26T12:00:00Z"
    )
    table.refuse(column, f"not {valid}", "{value} is not a date", "write a day as 2025-10-26")
    zone = f"case when {bare} then 'day' else replace(regexp_extract({text}, '{ZONE}', 1), '+00:00', 'Z') end"
    first = f"(select {zone} from {table.table} where {text} is not null order by _row limit 1)"
    table.refuse(
        column,
        f"{text} is not null and {zone} <> {first}",
        "{value} is in another time zone than the rows above it",
        "use one form in the whole column: days, or moments in UTC",
    )
    return f"case when {bare} then {text} else {_canonical(f'try_cast({text} as timestamptz)')} end"


def _canonical(moment: str) -> str:
    """SQL for a moment in UTC, where a day's first moment is written as the day: both name the same instant."""
    utc = f"strftime({moment} at time zone 'UTC', '%Y-%m-%dT%H:%M:%SZ')"
    return f"replace({utc}, 'T00:00:00Z', '')"


def unique_rule(table: Intake, key: dict[str, str], column: str) -> None:
    """No two rows say the same thing twice; `key` maps shown column names to SQL."""
    parts = ", ".join(key.values())
    query = f"select min(_row), max(_row) from {table.table} group by {parts} having count(*) > 1 order by 1 limit 1"
    for first, again in table.con.execute(query).fetchall():
        raise InputError(
            f"repeats row {first}",
            path=table.name,
            row=again,
            column=column,
            hint=f"each ({', '.join(key)}) may appear once",
        )
