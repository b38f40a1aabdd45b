"""Long tables of forecasts and outcomes, read and checked by DuckDB: one clear line for the first thing wrong."""

import json
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from foretell.questions.problems import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Column = npt.NDArray[Any]
Columns = dict[str, Column]

Source = str | Path | object
"""A CSV, Parquet or JSONL file, a data frame or Arrow table, or a list of dictionaries."""

READERS = {
    ".csv": "read_csv({path}, header=true, all_varchar=true, sample_size=-1, null_padding=false, parallel=true)",
    ".tsv": "read_csv({path}, header=true, all_varchar=true, sample_size=-1, delim='\t')",
    # Depth 1 keeps every value as its own text: a type guessed here would hide a missing time zone.
    ".jsonl": "read_json({path}, format='newline_delimited', maximum_depth=1, sample_size=-1)",
    ".ndjson": "read_json({path}, format='newline_delimited', maximum_depth=1, sample_size=-1)",
    ".parquet": "read_parquet({path}, file_row_number=true)",
}


@dataclass(frozen=True, kw_only=True)
class Intake:
    """A table inside DuckDB, every row with its number in the source, and what to call it in errors."""

    con: "DuckDBPyConnection"
    table: str
    name: str
    types: Mapping[str, str]
    padded: bool = False
    """Text may carry blanks around it, as in hand-written CSV."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The source's own columns."""
        return tuple(c for c in self.types if c != "_row")

    def require(self, *columns: str) -> None:
        """Refuse a table that lacks a column."""
        for column in columns:
            if column not in self.types:
                near = get_close_matches(column, self.columns, n=1)
                found = f"did you mean {near[0]!r}?" if near else f"found: {', '.join(self.columns)}"
                raise InputError(f"column {column!r} is missing", path=self.name, column=column, hint=found)

    def text(self, column: str) -> str:
        """SQL for the column as trimmed text, empty read as NULL."""
        kind, name = self.types[column], quoted(column)
        if kind not in ("JSON", "VARCHAR"):
            return f"{name}::varchar"
        inner = f"{name}->>'$'" if kind == "JSON" else name
        return f"nullif(trim({inner}), '')" if self.padded else f"nullif({inner}, '')"

    def number(self, column: str) -> str:
        """SQL for the column as a number, NULL where it is none."""
        if self.types[column] in ("JSON", "VARCHAR"):
            return f"try_cast({self.text(column)} as double)"
        return f"{quoted(column)}::double"

    def fetch(self, query: str) -> Columns:
        """The result as numpy columns; masked where NULL."""
        return {
            name: np.ma.asarray(column) for name, column in cast(Columns, self.con.execute(query).fetchnumpy()).items()
        }


@contextmanager
def opened(source: Source, name: str, con: "DuckDBPyConnection") -> Generator[Intake]:
    """Load a source into DuckDB as a table with a `_row` column that counts from 1."""
    if isinstance(source, str | Path):
        yield _from_query(_file_query(Path(source)), str(source), name, con)
    elif isinstance(source, Sequence):
        with tempfile.TemporaryDirectory(prefix="foretell-") as folder:
            path = Path(folder) / "rows.jsonl"
            path.write_text("".join(json.dumps(row, default=str) + "\n" for row in _records(source, name)))  # type: ignore[reportUnknownArgumentType]
            yield _from_query(_file_query(path), name, name, con)
    else:
        con.register(f"{name}_frame", source)
        yield _from_query(f"{name}_frame", name, name, con)


def _records(rows: Sequence[Any], name: str) -> Sequence[Mapping[str, Any]]:
    for i, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise InputError(f"expected a dictionary, found {type(row).__name__}", path=name, row=i)
    return rows


def _file_query(path: Path) -> str:
    if not path.exists():
        raise InputError("no such file", path=path)
    suffix = path.suffix if path.suffix != ".gz" else Path(path.stem).suffix
    if suffix not in READERS:
        raise InputError(
            f"cannot read {suffix or 'a file without ending'}", path=path, hint="use .csv, .parquet or .jsonl"
        )
    if path.stat().st_size == 0:
        raise InputError("the file is empty", path=path, hint="it needs a header and at least one row")
    return READERS[suffix].format(path="'" + str(path).replace("'", "''") + "'")


def _from_query(query: str, shown: str, table: str, con: "DuckDBPyConnection") -> Intake:
    import duckdb

    try:
        if query.startswith("read_parquet"):
            # Parquet knows its row numbers and is cheaper to read again than to copy.
            columns = "file_row_number + 1 as _row, * exclude (file_row_number)"
            con.execute(f"create or replace view {table} as select {columns} from {query}")
        else:
            con.execute(f"create or replace table {table} as select row_number() over () as _row, * from {query}")
    except duckdb.Error as error:
        raise InputError(str(error).splitlines()[0], path=shown, hint="is it a well-formed table?") from None
    types = {column: kind for column, kind, *_ in con.execute(f"describe {table}").fetchall()}
    if not con.execute(f"select count(*) from {table}").fetchall()[0][0]:
        raise InputError("the table has no rows", path=shown)
    padded = query.startswith(("read_csv", "read_json"))
    return Intake(con=con, table=table, name=shown, types=types, padded=padded)


def quoted(column: str) -> str:
    """A column name as an SQL identifier."""
    return '"' + column.replace('"', '""') + '"'
