"""Checks SQLite files: damaged pages and indexes, unreadable text, checksums, and which version wrote them."""

import sqlite3
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foretell.frozen import frozen
from foretell.models.database.interface import SqlRow
from foretell.models.database.sqlite import open_read_only

MOST_PROBLEMS = 5
_INDEX_PROBLEMS = ("missing from index", "entries in index", "non-unique entry in index")


def file_problems(path: Path) -> tuple[str, ...]:
    """Return the problems that SQLite's integrity check reports for a file; empty if there are none."""
    try:
        with closing(open_read_only(path)) as con:
            problems = [row[0] for row in con.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})")]
    except sqlite3.DatabaseError as error:
        return (str(error),)
    return () if problems == ["ok"] else tuple(" ".join(str(problem).split()) for problem in problems)


def only_indexes(problems: Collection[str]) -> bool:
    """Whether problems concern nothing but indexes, which SQLite can rebuild from the tables.

    >>> only_indexes(["row 3 missing from index event_of_run"]), only_indexes(["Tree 7 page 9: btreeInitPage() 11"])
    (True, False)
    """
    return all(any(words in problem for words in _INDEX_PROBLEMS) for problem in problems)


def rebuild_indexes(path: Path) -> None:
    """Rebuild every index of a file that no process has open."""
    with closing(sqlite3.connect(path)) as con:
        con.execute("REINDEX")
        con.commit()


def renamed_columns(path: Path, scripts: Iterable[str]) -> tuple[str, ...]:
    """Return the tables whose columns have other names than in these migrations. Newer columns come last."""
    with closing(open_read_only(path)) as con, closing(sqlite3.connect(":memory:")) as expected:
        con.text_factory = text_or_bytes
        for script in scripts:
            expected.executescript(script)
        names = {name: [_columns(other, name) for other in (con, expected)] for name in _tables(expected)}
    return tuple(
        f"{name}: its columns have other names"
        for name, (here, known) in names.items()
        if any(column != other for column, other in zip(here, known, strict=False))
    )


def unreadable_values(path: Path, checked: Collection[str], checksummed: Collection[str]) -> tuple[str, ...]:
    """Return the tables of a sound file that hold undecodable text, or text where a number should be.

    The text of `checked` tables is read elsewhere, and the numbers of `checksummed` ones need no check.
    """
    problems: list[str] = []
    with closing(open_read_only(path)) as con:
        for table in _tables(con):
            texts = ", ".join(f'"{column}"' for column in _columns(con, table, "TEXT"))
            try:
                if table not in checked and texts:
                    any(False for _ in con.execute(f'SELECT {texts} FROM "{table}"'))
            except sqlite3.OperationalError as error:
                problems.append(f"{table}: {str(error)[:60]}")
            for column in _columns(con, table, "INTEGER", "REAL") if table not in checksummed else ():
                query = f"SELECT 1 FROM \"{table}\" WHERE typeof(\"{column}\") IN ('text', 'blob') LIMIT 1"
                if con.execute(query).fetchone():
                    problems.append(f"no number in {table}.{column}")
    return tuple(problems)


def text_or_bytes(data: bytes) -> str | bytes:
    """Return the decoded text, or the bytes if they cannot be decoded; a `text_factory` for damaged files."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def schema_versions(path: Path) -> dict[str, int]:
    """Return the number of migrations applied, by part; "" is the part the file was made for."""
    with closing(open_read_only(path)) as con:
        versions = {"": con.execute("PRAGMA user_version").fetchone()[0]}
        if con.execute("SELECT 1 FROM sqlite_master WHERE name = 'version' AND type = 'table'").fetchone():
            versions |= dict(con.execute("SELECT part, number FROM version"))
    return versions


def newest_value(path: Path, table: str, column: str) -> Any:
    """Return the largest value of a column; None if the table is empty."""
    with closing(open_read_only(path)) as con:
        return con.execute(f'SELECT max("{column}") FROM "{table}"').fetchone()[0]


def _tables(con: sqlite3.Connection) -> list[str]:
    """Return the ordinary tables, without SQLite's own and those of search indexes."""
    rows = con.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL").fetchall()
    # In a damaged file a name or a statement may not be text.
    rows = [(name, str(sql).lower()) for name, sql in rows if isinstance(name, str)]
    virtual = [name for name, sql in rows if sql.startswith("create virtual")]
    skipped = ("sqlite_", *(f"{name}_" for name in virtual))
    return [name for name, _ in rows if name not in virtual and not name.startswith(skipped)]


def _columns(con: sqlite3.Connection, table: str, *kinds: str) -> list[str]:
    """Return the columns of a table, or only those of these types."""
    rows = con.execute(f'PRAGMA table_info("{table}")')
    return [row[1] for row in rows if not kinds or str(row[2]).upper() in kinds]


@dataclass(kw_only=True)
class StoredCheck:
    """Which rows of a table match their checksums."""

    wrong: list[SqlRow] = field(default_factory=list[SqlRow])
    """Rows that were changed after they were stored."""
    unverified: int = 0
    """Rows without a checksum."""
    total: int = 0


@frozen
class CheckedTable:
    """A table with a checksum in the last column of every row."""

    file: str
    name: str
    columns: tuple[str, ...]
    fault: Callable[[SqlRow], str]
    """What is wrong with a row; empty if nothing is."""
    rows: str
    """What its rows are called."""
    described: Callable[[SqlRow], str]
    """Returns the description of a row."""

    @property
    def query(self) -> str:
        """Reads every row."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"

    def check(self, rows: Iterable[SqlRow]) -> StoredCheck:
        """Compare rows with their checksums."""
        check = StoredCheck()
        for row in rows:
            check.total += 1
            check.unverified += row[-1] is None
            if self.fault(row):
                check.wrong.append(row)
        return check

    def check_file(self, path: Path) -> StoredCheck:
        """Check all rows of a sound file, which may be older than checksums."""
        with closing(open_read_only(path)) as con:
            con.text_factory = text_or_bytes
            known = [row[1] for row in con.execute(f"PRAGMA table_info({self.name})")]
            if "checksum" in known:
                return self.check(con.execute(self.query))
            count = con.execute(f"SELECT count(*) FROM {self.name}").fetchone()[0] if known else 0
            return StoredCheck(unverified=count, total=count)
