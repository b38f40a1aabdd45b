"""Tables loaded into DuckDB, and the rules for each column as SQL conditions that find rows which break them."""

import json
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from foretell import plugins
from foretell.data.datasets.rows import (
    begins_with_mark,
    check_lines,
    jsonl_rows,
    read_json,
    refuse_binary,
    text_lines,
    unreadable_table,
)
from foretell.data.files import open_duckdb
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.errors import InputError, InputProblem

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


ColumnArray = npt.NDArray[Any]
ColumnArrays = dict[str, ColumnArray]

TableSource = str | Path | object
"""A CSV, Parquet, JSONL or JSON file, a data frame or Arrow table, a list of dictionaries, a dictionary of columns."""

READERS = {
    # The quotation mark is fixed, because DuckDB's guess treats an unclosed one as part of a value.
    ".csv": "read_csv({path}, header=true, all_varchar=true, sample_size=-1, quote='\"', parallel=true{delimiter})",
    ".tsv": "read_csv({path}, header=true, all_varchar=true, sample_size=-1, quote='\"', delim='\t')",
    ".json": "read_json({path}, format='array', maximum_depth=1, sample_size=-1)",
    # Depth 1 keeps every value as text, because a guessed type would hide a missing time zone.
    ".jsonl": "read_json({path}, format='newline_delimited', maximum_depth=1, sample_size=-1)",
    ".ndjson": "read_json({path}, format='newline_delimited', maximum_depth=1, sample_size=-1)",
    ".parquet": "read_parquet({path}, file_row_number=true)",
}
REPORT = pattern(r'[\[\s]*\{\s*("question":\s*\{|[^{]*"forecast_bot_class_name":)')
"""How a file of reports or benchmarks of forecasting-tools begins."""
JSON_LINES = pattern(r"\.(jsonl|ndjson)(\.gz)?$", re.IGNORECASE)


@frozen
class InputTable:
    """A table in DuckDB, with each row's number in the source and the name to use in errors."""

    con: "DuckDBPyConnection"
    table: str
    name: str
    types: Mapping[str, str]
    padded: bool = False
    """Whether text may be surrounded by blanks."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Role → the name of its column in the source, if it differs."""
    readings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Role → how its values were read, such as percent."""
    original: str = ""
    """The table with the values of the source, if they were interpreted."""
    wide: tuple[str, ...] = ()
    """The forecasters of a source with a column for each."""
    assumed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Role that the source has no column for → its value in all rows: the only forecaster, the target yes."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the source."""
        return tuple(c for c in self.types if c not in ("_row", "_column"))

    def value(self, column: str, row: int, place: int = -1) -> str:
        """The value of a row in the source; in a wide table, that of the forecaster at this index."""
        where = f"_row = {row}" + (f" and _column = {place}" if place >= 0 else "")
        query = f"select {quoted(column)}::varchar from {self.original or self.table} where {where}"
        value = self.con.execute(query).fetchall()[0][0]
        return "nothing" if value is None or not str(value).strip() else str(value).strip().strip('"')

    def require(self, *columns: str) -> None:
        """Raise if a column is missing."""
        for column in columns:
            if column not in self.types:
                near = get_close_matches(column, self.columns, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"found: {', '.join(self.columns)}"
                raise InputError(f"column {column!r} is missing", path=self.name, column=column, hint=hint)

    def text(self, column: str) -> str:
        """Return SQL for the column as trimmed text, with empty read as NULL."""
        kind, name = self.types[column], quoted(column)
        if kind not in ("JSON", "VARCHAR"):
            return f"{name}::varchar"
        inner = f"{name}->>'$'" if kind == "JSON" else name
        return f"nullif(trim({inner}), '')" if self.padded else f"nullif({inner}, '')"

    def number(self, column: str) -> str:
        """Return SQL for the column as a number, NULL if it is not one."""
        if self.types[column] in ("JSON", "VARCHAR"):
            return f"try_cast({self.text(column)} as double)"
        return f"{quoted(column)}::double"

    def line(self, row: int) -> int:
        """Return where the user finds a row: its line in a JSONL file, whose blank lines have no row."""
        lines = jsonl_rows(Path(self.name)) if JSON_LINES.search(self.name) else ()
        return next(islice((line.number for line in lines), row - 1, None), row)

    def fetch(self, query: str) -> ColumnArrays:
        """Return the result of a query as numpy columns, masked if NULL."""
        return {
            name: np.ma.asarray(column)
            for name, column in cast(ColumnArrays, self.con.execute(query).fetchnumpy()).items()
        }


@contextmanager
def open_table(source: TableSource, name: str, con: "DuckDBPyConnection") -> Generator[InputTable]:
    """Load a source into DuckDB as a table with a `_row` column that counts from 1."""
    if isinstance(source, str | Path) and (rows := _rows_of_object(Path(source))) is not None:
        try:
            with open_table(rows, name, con) as table:
                yield replace(table, name=str(source))
        except InputError as error:
            error.path = source
            raise
    elif isinstance(source, str | Path):
        with _without_mark(Path(source)) as plain:
            table = _from_query(_file_query(Path(source), plain), Path(source), name, con)
        yield table
    elif isinstance(source, Sequence):
        if not source:
            raise InputError("the table has no rows", path=name)
        with tempfile.TemporaryDirectory(prefix="foretell-") as folder:
            path = Path(folder) / "rows.jsonl"
            path.write_text("".join(json.dumps(row, default=str) + "\n" for row in _records(source, name)))  # type: ignore[reportUnknownArgumentType]
            try:
                table = _from_query(_file_query(path, path), path, name, con)
            except InputError as error:
                error.path = name
                raise
            yield replace(table, name=name)
    elif isinstance(source, Mapping) and all(map(is_column, cast("Mapping[str, Any]", source).values())):
        with open_table(_rows_of_columns(cast("Mapping[str, Any]", source), name), name, con) as table:
            yield table
    elif (rows := _listed(source)) is not None:
        with open_table(rows, name, con) as table:
            yield table
    else:
        try:
            con.register(f"{name}_frame", _with_index(source))
        except Exception:  # DuckDB raises many kinds of exceptions here.
            empty = hasattr(source, "iloc") and not len(getattr(source, "columns", (source,)))
            problem = "the table has no columns" if empty else f"cannot read {type(source).__name__} as a table"
            hint = "use a file, a data frame, an Arrow table, a list of dictionaries or a dictionary of columns"
            raise InputError(problem, path=name, hint=hint) from None
        yield _from_query(f"{name}_frame", Path(name), name, con)


def _listed(source: Any) -> list[Any] | None:
    """Return the rows of an iterator or of a frame of Polars, also a lazy one; None for another source."""
    if isinstance(source, Iterator):
        return list(cast("Iterator[Any]", source))
    source = source.collect() if callable(getattr(source, "collect", None)) else source
    # DuckDB reads Polars only with PyArrow.
    return source.to_dicts() if callable(getattr(source, "to_dicts", None)) else None


def _with_index(source: Any) -> Any:
    """Return a frame of pandas with its named index as columns; other sources as they are."""
    index = getattr(source, "index", None)
    named = [name for name in getattr(index, "names", ()) if name is not None] if hasattr(source, "iloc") else []
    return source.reset_index() if named and not set(named) & set(getattr(source, "columns", named)) else source


def names_a_file(text: str) -> bool:
    """Whether a text names a file or folder, and not a stored run: it exists, or has the suffix of a file.

    >>> names_a_file("results.csv"), names_a_file("autumn"), names_a_file("v1.2")
    (True, False, False)
    """
    return re.fullmatch(r"\.[A-Za-z]\w{1,7}", Path(text).suffix) is not None or Path(text).exists()


def _is_object(path: Path) -> bool:
    return path.suffix == ".json" and path.is_file() and next(text_lines(path), "").lstrip().startswith("{")


LOG_HEAD = 4096
"""Number of characters within which a log of evaluations names its evaluation."""


def _rows_of_object(path: Path) -> list[dict[str, Any]] | None:
    """The rows of a JSON file with one object: a list of rows with fields for all of them, or columns; else None."""
    if not _is_object(path):
        return None
    fields = cast("dict[str, Any]", read_json(path))
    rows_by_name = {name: rows for name, rows in fields.items() if rows and _all(rows, list, dict)}
    if len(rows_by_name) == 1:
        shared = {name: value for name, value in fields.items() if not isinstance(value, list | dict)}
        return [shared | row for row in next(iter(rows_by_name.values()))]
    if fields and all(_all(column, dict, object) for column in fields.values()):  # As pandas writes a data frame.
        index = dict.fromkeys(row for column in fields.values() for row in column)
        return [{name: column.get(row) for name, column in fields.items()} for row in index]
    columns = [column for column in fields.values() if isinstance(column, list)]
    if columns and len(columns) == len(fields) and len({len(column) for column in columns}) == 1:
        return [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)]
    hint = 'write [{"question": …}, …], or an object with one such list'
    raise InputError("is an object without a list of rows", path=path, hint=hint)


def _all(values: Any, kind: type, of: type) -> bool:
    return isinstance(values, kind) and all(isinstance(value, of) for value in cast("Iterable[Any]", values))


def log_reader(path: Path) -> Callable[[Path], Any] | None:
    """The reader of a log of evaluations, or of a folder of them, with forecasts and outcomes; None for a table."""
    if (
        path.suffix == ".eval"
        or path.is_dir()
        or (_is_object(path) and '"eval"' in "".join(islice(text_lines(path), 9))[:LOG_HEAD])
    ):
        return plugins.load("logs", "inspect")
    if path.suffix in (".json", ".jsonl") and path.is_file() and REPORT.match("".join(islice(text_lines(path), 9))):
        return plugins.load("logs", "forecasting-tools")
    return None


def table_columns(source: TableSource) -> set[str]:
    """Return the names of a table's columns, without reading its rows; none for a log of evaluations."""
    if isinstance(source, str | Path):
        import duckdb

        if Path(source).exists() and log_reader(Path(source)) is not None:
            return set()
        if (rows := _rows_of_object(Path(source))) is not None:
            return set(rows[0])
        with open_duckdb() as con, _without_mark(Path(source)) as plain:
            query = f"describe select * from {_file_query(Path(source), plain)}"
            try:
                return {row[0] for row in con.execute(query).fetchall()}
            except duckdb.Error as error:
                raise unreadable_table(error, Path(source)) from None
    if isinstance(source, Sequence):
        return set(map(str, source[0])) if source and isinstance(source[0], Mapping) else set()
    return set(map(str, source if isinstance(source, Mapping) else getattr(source, "columns", ())))  # type: ignore[reportUnknownArgumentType]


def _records(rows: Sequence[Any], name: str) -> Sequence[Mapping[str, Any]]:
    for i, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise InputError(f"expected a dictionary, found {type(row).__name__}", path=name, row=i)
    return rows


def is_column(values: object) -> bool:
    """Return whether a value is a list, an array or a series: the values of a column."""
    return not isinstance(values, str | bytes | Mapping) and hasattr(values, "__len__") and hasattr(values, "__iter__")


def _rows_of_columns(columns: Mapping[str, Sequence[Any]], name: str) -> Sequence[Mapping[str, Any]]:
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        problem = "columns have different lengths: " + ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise InputError(problem, path=name)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@contextmanager
def _without_mark(path: Path) -> Generator[Path]:
    """The file to read: of JSON lines that begin with a byte order mark, which DuckDB does not skip, a copy without."""
    if not (JSON_LINES.search(path.name) and path.is_file() and begins_with_mark(path)):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="foretell-") as folder:
        plain = Path(folder) / "rows.jsonl"
        with plain.open("w", encoding="utf-8") as file:
            file.writelines(text_lines(path))
        yield plain


def _file_query(path: Path, plain: Path) -> str:
    """SQL that reads a table, after a few checks; `plain` is the file with its content."""
    if not path.exists():
        raise InputError("no such file", path=path)
    suffix = Path(path.stem if path.suffix == ".gz" else path).suffix.lower()
    if suffix not in READERS:
        problem = f"cannot read {suffix or 'a file without ending'}"
        raise InputError(problem, path=path, hint="use .csv, .tsv, .parquet, .jsonl or .json")
    if path.stat().st_size == 0:
        raise InputError("the file is empty", path=path, hint="it needs a header and at least one row")
    if suffix != ".parquet":
        refuse_binary(path)
    if suffix == ".json" and not next(filter(str.strip, text_lines(path)), "").lstrip().startswith("["):
        raise InputError("is neither a list nor an object", path=path, hint='write [{"question": …}, …]')
    delimiter = ""
    if suffix in (".csv", ".tsv"):
        header = next(text_lines(path), "").rstrip("\r\n")
        _refuse_repeated_columns(path, header)
        # A guess from the rows would take decimal commas for delimiters if the header has only semicolons.
        marks = [mark for mark in ",;\t|" if mark in header]
        delimiter = f", delim='{marks[0]}'" if len(marks) == 1 else ""
    return READERS[suffix].format(path="'" + str(plain).replace("'", "''") + "'", delimiter=delimiter)


def _from_query(query: str, path: Path, table: str, con: "DuckDBPyConnection") -> InputTable:
    import duckdb

    copied, columns = "table", "row_number() over () as _row, *"
    if query.startswith("read_csv"):  # Trimmed once, because every query that trims a long table pays for it.
        columns = r"row_number() over () as _row, trim(columns('((?s).*)')) as '\1'"
    elif query.startswith("read_parquet"):  # It has row numbers, and reading it again is cheaper than copying it.
        copied, columns = "view", "file_row_number + 1 as _row, * exclude (file_row_number)"
    try:
        con.execute(f"create or replace temp {copied} {table} as select {columns} from {query}")
        types = column_types(table, con)
    except duckdb.Error as error:
        raise unreadable_table(error, path) from None
    empty = not con.execute(f"select count(*) from {table}").fetchall()[0][0]
    if query.startswith(("read_csv", "read_json")) and (
        # A broken line turns all lines into a single column; lines with more values than the header end what counts
        # as text before the table.
        empty or len(types) == 2 or (query.startswith("read_csv") and not _has_header(path, types))
    ):
        check_lines(path)
    if empty:
        raise InputError("the table has no rows", path=path)
    if query.startswith("read_json") and path.suffix == ".json" and "json" in types and len(types) == 2:
        hint = 'write [{"question": …}, …]'
        raise InputError("the list does not consist of objects", path=path, row=1, hint=hint)
    return InputTable(con=con, table=table, name=str(path), types=types, padded=query.startswith("read_json"))


LEAST_COLUMNS = 3
"""Number of values from which the first line of a file must be its header, and not a title."""


def _has_header(path: Path, types: Mapping[str, str]) -> bool:
    """Whether the columns are those of the first line, unless that is a title."""
    first = next(text_lines(path), "")
    names = [name.strip().strip('"').strip() for name in max((first.split(mark) for mark in ",;\t|"), key=len)]
    named = list(filter(None, names))
    return len(named) < LEAST_COLUMNS or (len(names) == len(types) - 1 and all(name in types for name in named))


def column_types(table: str, con: "DuckDBPyConnection") -> dict[str, str]:
    """Column → its type in DuckDB."""
    return {column: kind for column, kind, *_ in con.execute(f"describe {table}").fetchall()}


def _refuse_repeated_columns(path: Path, header: str) -> None:
    """Raise if column names are repeated, because DuckDB would rename the second one."""
    names = [name.strip().strip('"') for name in max((header.split(mark) for mark in ",;\t|"), key=len)]
    for name in names:
        if name and names.count(name) > 1:
            raise InputError(f"column {name!r} appears twice", path=path, column=name, hint="remove or rename one")


def quoted(column: str) -> str:
    """Quote a column name as an SQL identifier."""
    return '"' + column.replace('"', '""') + '"'


BARE_DAY = r"^\d{4}-\d{2}-\d{2}$"
ZONED = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[+-]\d{2}(:?\d{2})?)$"
ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)$"


@frozen
class ColumnRule:
    """A condition that no row may meet, and the message for a row that does."""

    column: str
    bad: str
    problem: str
    """Message; {value} is replaced by the offending value."""
    hint: str


SHOWN_ROWS = 3
"""How many rows of one problem a message names."""


def check_rules(table: InputTable, rules: Sequence[ColumnRule]) -> None:
    """Check all rules in one pass; raise one error that lists everything that is wrong."""
    if problems := broken_rules(table, rules):
        raise InputError.of(problems, path=table.name)


def broken_rules(table: InputTable, rules: Sequence[ColumnRule]) -> list[InputProblem]:
    """Every rule that some row breaks, with its rows; a row counts for the first rule of a column that it breaks."""
    if not broken_columns(table, rules):
        return []
    problems: list[InputProblem] = []
    for column in dict.fromkeys(rule.column for rule in rules):
        mine = [rule for rule in rules if rule.column == column]
        cases = " ".join(f"when {rule.bad} then {i}" for i, rule in enumerate(mine))
        # Each forecaster of a wide table has a column of its own.
        place = "_column" if table.wide and column == "p" else "-1"
        query = f"""with v as (select _row, case {cases} end as broken, {place} as place from {table.table})
            select broken, place, count(*), min(_row), list_slice(list(_row order by _row), 2, {SHOWN_ROWS}) from v
            where broken is not null group by broken, place order by min(_row), place"""
        for i, at, count, row, more in table.con.execute(query).fetchall():
            rule, where = mine[i], table.wide[at] if at >= 0 else table.names.get(column, column)
            problems.append(
                InputProblem(
                    problem=rule.problem.format(value=table.value(column, row, at)),
                    row=table.line(row),
                    column=where,
                    hint=rule.hint,
                    count=count,
                    more=tuple(map(table.line, more)),
                )
            )
    return problems


def broken_columns(table: InputTable, rules: Sequence[ColumnRule]) -> set[str]:
    """The columns with a row that breaks a rule."""
    if not rules:
        return set()
    broken = ", ".join(f"bool_or({rule.bad})" for rule in rules)
    flags = table.con.execute(f"select {broken} from {table.table}").fetchall()[0]
    return {rule.column for rule, bad in zip(rules, flags, strict=True) if bad}


def text_rules(table: InputTable, *columns: str) -> Iterator[ColumnRule]:
    """Require a value in every row."""
    for column in columns:
        bad = f"{table.text(column)} is null"
        yield ColumnRule(column=column, bad=bad, problem="the value is missing", hint="every row needs one")


def unit_rules(table: InputTable, column: str, *, optional: bool) -> Iterator[ColumnRule]:
    """Require a number in [0, 1]; it may be empty only if `optional`."""
    number, present = table.number(column), f"{table.text(column)} is not null and " if optional else ""
    missing, nan = f"{present}{number} is null", f"isnan({number})"
    beyond = f"{number} < 0 or {number} > 1"
    if not optional:
        hint = "leave the row out if there is no forecast"
        yield ColumnRule(column=column, bad=f"{table.text(column)} is null", problem="the value is missing", hint=hint)
    yield ColumnRule(column=column, bad=missing, problem="{value} is not a number", hint="write a decimal such as 0.25")
    yield ColumnRule(
        column=column, bad=nan, problem="the value is NaN", hint="leave the row out if there is no forecast"
    )
    yield ColumnRule(column=column, bad=beyond, problem="{value} is outside [0, 1]", hint="0.25 means 25 %")


def outcome_rule(table: InputTable) -> ColumnRule:
    """Require a number in [0, 1], or empty for a target known to be unresolved."""
    number, text = table.number("outcome"), table.text("outcome")
    return ColumnRule(
        column="outcome",
        bad=f"{text} is not null and ({number} is null or isnan({number}) or {number} < 0 or {number} > 1)",
        problem="{value} is not an outcome",
        hint="write 0 or 1, yes or no, or the share that was paid out, and leave it empty where nothing has resolved",
    )


def optional_rules(table: InputTable) -> Iterator[ColumnRule]:
    """Return the rules of the optional outcome columns."""
    for column in ("price", "yes_ask", "no_ask"):
        if column in table.types:
            yield from unit_rules(table, column, optional=True)
    if "payoff" in table.types:
        number = table.number("payoff")
        bad = f"{table.text('payoff')} is not null and ({number} is null or not isfinite({number}))"
        hint = "what one dollar on the option returned; leave it empty where unknown"
        yield ColumnRule(column="payoff", bad=bad, problem="{value} is not an amount of money", hint=hint)
    if "weight" in table.types:
        number = table.number("weight")
        bad = f"{number} is null or not isfinite({number}) or {number} < 0"
        hint = "weights are finite and not negative"
        yield ColumnRule(column="weight", bad=bad, problem="{value} is not a weight", hint=hint)
    if "kind" in table.types:
        bad = f"coalesce({table.text('kind')}, '') not in ('market', 'dataset')"
        hint = "kinds are market and dataset"
        yield ColumnRule(column="kind", bad=bad, problem="{value} is not a kind of question", hint=hint)
    if "horizon" in table.types:
        bad = f"{table.text('horizon')} is not null and {table.number('horizon')} is null"
        hint = "leave it empty where unknown"
        yield ColumnRule(column="horizon", bad=bad, problem="{value} is not a number of days", hint=hint)


def time_rules(table: InputTable, column: str) -> Iterator[ColumnRule]:
    """Require days, or times that all name the same time zone."""
    kind = table.types[column]
    if kind in ("VARCHAR", "JSON"):
        yield from _text_time_rules(table, column)
    elif kind not in ("DATE", "TIMESTAMP WITH TIME ZONE"):
        hint = "store days as DATE, and times with a time zone"
        yield ColumnRule(column=column, bad="true", problem="{value} has no time zone", hint=hint)


def _text_time_rules(table: InputTable, column: str) -> Iterator[ColumnRule]:
    text = table.text(column)
    bare, zoned = f"regexp_matches({text}, '{BARE_DAY}')", f"regexp_matches({text}, '{ZONED}')"
    a_day, a_time = f"try_cast({text} as date) is not null", f"try_cast({text} as timestamptz) is not null"
    zone = f"case when {bare} then 'day' else replace(regexp_extract({text}, '{ZONE}', 1), '+00:00', 'Z') end"
    first = f"(select {zone} from {table.table} where {text} is not null order by _row limit 1)"
    yield ColumnRule(
        column=column,
        bad=f"not {bare} and not {zoned} and try_cast({text} as timestamp) is not null",
        problem="{value} has no time zone",
        hint="write a day as 2025-10-26, a time as 2025-10-26T12:00:00Z",
    )
    yield ColumnRule(
        column=column,
        bad=f"{text} is not null and not (({bare} and {a_day}) or ({zoned} and {a_time}))",
        problem="{value} is not a date",
        hint="write a day as 2025-10-26",
    )
    yield ColumnRule(
        column=column,
        bad=f"{text} is not null and {zone} <> {first}",
        problem="{value} is in another time zone than the rows above it",
        hint="use one form in the whole column: days, or times in UTC",
    )


def time_sql(table: InputTable, column: str) -> str:
    """Return SQL for the column in canonical text: UTC, with midnight written as the day."""
    kind, text = table.types[column], table.text(column)
    if kind == "DATE":
        return text
    if kind not in ("VARCHAR", "JSON"):
        return _canonical(quoted(column))
    return f"case when regexp_matches({text}, '{BARE_DAY}') then {text} else {_canonical(f'{text}::timestamptz')} end"


def _canonical(at: str) -> str:
    utc = f"strftime({at} at time zone 'UTC', '%Y-%m-%dT%H:%M:%SZ')"
    return f"replace({utc}, 'T00:00:00Z', '')"


def refuse_repeats(table: InputTable, key: dict[str, str]) -> None:
    """Raise if two rows are about the same thing; `key` maps roles to SQL."""
    parts = ", ".join(key.values())
    if table.con.execute(f"select 1 from {table.table} group by {parts} having count(*) > 1 limit 1").fetchall():
        query = f"""select min(_row) over (partition by {parts}) as first, _row from {table.table}
            qualify row_number() over (partition by {parts} order by _row) > 1 order by _row"""
        raise repeated(table, table.con.execute(query).fetchall(), list(key))


def repeated(table: InputTable, rows: Sequence[tuple[int, int]], key: Sequence[str]) -> InputError:
    """Return the error for rows that repeat an earlier one: pairs of the earlier row and the repetition."""
    (first, again), *others = rows
    named = [role for role in key if role not in table.assumed]
    hint = f"each ({', '.join(table.names.get(role, role) for role in named)}) may appear once"
    absent = {"forecaster": "the forecaster", "target": "the option of a question", "trial": "repeated trials"}
    unnamed = [role for role in key if role in table.assumed]
    for role in (*unnamed, *(["trial"] if "forecaster" in key and "trial" not in key else [])):
        hint += f"; if a column names {absent[role]}, name it with --columns {role}=COLUMN"
    where = "target" if "target" in named else "question"
    input_problem = InputProblem(
        problem=f"repeats row {table.line(first)}",
        row=table.line(again),
        column=table.names.get(where, where),
        hint=hint,
        count=len(rows),
        more=tuple(table.line(row) for _, row in others[: SHOWN_ROWS - 1]),
    )
    return InputError.of([input_problem], path=table.name)
