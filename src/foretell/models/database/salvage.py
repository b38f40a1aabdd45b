"""Reads what is left of a damaged SQLite file, row by row and, where its tree is broken, page by page."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from struct import unpack_from

from foretell.models.database.interface import SqlRow
from foretell.models.database.sqlite import open_read_only

MOST_LOOKS = 100_000
"""Limit on searches for single rows in damaged ranges, so that a repair ends."""
MOST_PROBLEMS = 5
MAGIC = b"SQLite format 3\x00"


def file_problems(path: Path) -> tuple[str, ...]:
    """Problems that SQLite reports for a file; empty if it is sound."""
    try:
        with closing(open_read_only(path)) as con:
            found = [row[0] for row in con.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})")]
            found = found if found != ["ok"] else _without_numbers(con) or found
    except sqlite3.DatabaseError as error:
        return (str(error),)
    return () if found == ["ok"] else tuple(" ".join(str(one).split()) for one in found)


def _without_numbers(con: sqlite3.Connection) -> list[str]:
    """Numeric columns that hold something else, which SQLite allows."""
    query = "SELECT 1 FROM \"{}\" WHERE typeof(\"{}\") IN ('text', 'blob') LIMIT 1"
    columns = [(table, column) for table in _tables(con) for column in _numbers(con, table)]
    return [f"no number in {'.'.join(one)}" for one in columns if con.execute(query.format(*one)).fetchone()]


def _numbers(con: sqlite3.Connection, table: str) -> list[str]:
    """The numeric columns of a table."""
    return _columns(con, table, "INTEGER", "REAL")


def _columns(con: sqlite3.Connection, table: str, *kinds: str) -> list[str]:
    return [row[1] for row in con.execute(f'PRAGMA table_info("{table}")') if row[2].upper() in kinds]


def renamed_columns(path: Path, scripts: Iterable[str]) -> tuple[str, ...]:
    """Tables whose columns have other names than in these migrations. Newer columns come last."""
    with closing(open_read_only(path)) as con, closing(sqlite3.connect(":memory:")) as made:
        con.text_factory = _text
        for script in scripts:
            made.executescript(script)
        names = {name: [_names(one, name) for one in (con, made)] for name in _tables(made)}
    return tuple(
        f"{name}: its columns are called otherwise"
        for name, (here, known) in names.items()
        if any(one != other for one, other in zip(here, known, strict=False))
    )


def _names(con: sqlite3.Connection, table: str) -> list[str | bytes]:
    return [row[1] for row in con.execute(f'PRAGMA table_info("{table}")')]


def unreadable_texts(path: Path) -> tuple[str, ...]:
    """Tables of a sound file in which some text cannot be decoded."""
    found: list[str] = []
    with closing(open_read_only(path)) as con:
        for name in _tables(con):
            texts = ", ".join(f'"{column}"' for column in _columns(con, name, "TEXT"))
            try:
                any(False for _ in con.execute(f'SELECT {texts} FROM "{name}"' if texts else "SELECT 1"))
            except sqlite3.OperationalError as error:
                found.append(f"{name}: {str(error)[:60]}")
    return tuple(found)


def _text(data: bytes) -> str | bytes:
    """The decoded text, or the bytes if they cannot be decoded."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def schema_versions(path: Path) -> dict[str, int]:
    """Number of migrations applied, by part; "" is the part the file was made for."""
    with closing(open_read_only(path)) as con:
        versions = {"": con.execute("PRAGMA user_version").fetchone()[0]}
        if con.execute("SELECT 1 FROM sqlite_master WHERE name = 'version' AND type = 'table'").fetchone():
            versions |= dict(con.execute("SELECT part, number FROM version"))
    return versions


@dataclass(kw_only=True)
class Salvage:
    """What was copied into a new file."""

    rows: dict[str, int] = field(default_factory=dict[str, int])
    """Number of rows read, by table."""
    damaged: set[str] = field(default_factory=set[str])
    """Tables of which some or all rows could not be read."""


def copy_readable_rows(damaged: Path, sound: sqlite3.Connection) -> Salvage:
    """Copy every readable row into a file that has its tables; missing tables are created like the old ones.

    Args:
        damaged: The file to read.
        sound: The file to write.
    """
    result = Salvage()
    try:
        con = open_read_only(damaged)
    except sqlite3.DatabaseError:
        result.damaged = set(_tables(sound))
        return result
    with closing(con):
        con.text_factory = _text
        ours = _tables(sound)
        for name, sql in _tables(con).items():
            if name not in ours:
                try:
                    sound.execute(sql)
                except sqlite3.DatabaseError:
                    result.damaged.add(name)
                    continue
            columns = _names(sound, name)
            # By their places: columns are only ever added behind the others, and their names may be damaged too.
            both = columns[: len(_names(con, name))]
            shared, marks = ", ".join(f'"{one}"' for one in both), ", ".join("?" for _ in both)
            numbers = [both.index(one) for one in _numbers(sound, name) if one in both]
            texts = [both.index(one) for one in _columns(sound, name, "TEXT") if one in both]
            # SQLite takes a row without its key where that is a text.
            keys = [row[0] for row in sound.execute(f'PRAGMA table_info("{name}")') if row[5] and row[0] < len(both)]
            insert = f'INSERT OR IGNORE INTO "{name}" ({shared}) VALUES ({marks})'
            whole, result.rows[name] = True, 0
            for row in _read_table(con, name, without_rowid="without rowid" in ours.get(name, sql).lower()):
                if (
                    row is None
                    or any(isinstance(row[at], str | bytes) for at in numbers)
                    or any(isinstance(row[at], bytes) for at in texts)
                    or any(row[at] is None for at in keys)
                ):
                    whole = False
                else:
                    with suppress(sqlite3.IntegrityError):
                        result.rows[name] += sound.execute(insert, row).rowcount
            if not whole:
                result.damaged.add(name)
    return result


def _tables(con: sqlite3.Connection) -> dict[str, str]:
    """Ordinary tables by name with their SQL, without SQLite's own and those of search indexes."""
    try:
        rows = con.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL").fetchall()
    except sqlite3.DatabaseError:
        return {}
    # In a damaged file a name or a statement may be no text.
    rows = [(name, str(sql)) for name, sql in rows if isinstance(name, str)]
    virtual = tuple(f"{name}_" for name, sql in rows if sql.lower().startswith("create virtual"))
    skipped = ("sqlite_", *virtual)
    return {
        name: sql for name, sql in rows if not name.startswith(skipped) and not sql.lower().startswith("create virtual")
    }


def _read_table(con: sqlite3.Connection, table: str, *, without_rowid: bool) -> Iterator[SqlRow | None]:
    """Every readable row, and None once if some could not be read."""
    columns = con.execute(f'PRAGMA table_info("{table}")').fetchall()
    names = ", ".join(f"c{place}" for place in range(len(columns)))  # Their own may be damaged.
    if without_rowid:
        # From both ends: what lies behind a damaged page is reached from the other side.
        keys = sorted((row[5], row[0]) for row in columns if row[5])
        for way in ("asc", "desc"):
            order = ", ".join(f"c{place} {way}" for _, place in keys)
            try:
                yield from con.execute(f'WITH t({names}) AS (SELECT * FROM "{table}") SELECT * FROM t ORDER BY {order}')
                return
            except sqlite3.DatabaseError:
                yield None
        return
    looks = 0
    ends = _ends(con, table)
    if ends is None:
        yield None
        return
    rows = f'SELECT rowid, * FROM "{table}" NOT INDEXED WHERE rowid >= ? AND rowid <= ? ORDER BY rowid'
    query = f"WITH t(n, {names}) AS ({rows}) SELECT * FROM t ORDER BY n"
    spans = [ends]
    while spans and looks < MOST_LOOKS:
        low, high = spans.pop()
        looks += 1
        try:
            for number, *row in con.execute(query, (low, high)):
                yield tuple(row)
                low = number + 1
        except sqlite3.DatabaseError:
            yield None
            if low < high:
                middle = (low + high) // 2
                spans += [(middle + 1, high), (low, middle)]


def _ends(con: sqlite3.Connection, table: str) -> tuple[int, int] | None:
    ends: list[int] = []
    for way in ("asc", "desc"):
        try:
            row = con.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid {way} LIMIT 1').fetchone()
            ends.append(row[0] if row else 0)
        except sqlite3.DatabaseError:
            ends.append(1 if way == "asc" else MOST_LOOKS)
    return None if not any(ends) else (ends[0], ends[1])


# Page by page, for a file whose first page or tree is gone: https://www.sqlite.org/fileformat2.html


def rows_on_pages(path: Path, is_row: Callable[[SqlRow], bool]) -> Iterator[SqlRow]:
    """Rows of ordinary tables found on any page of a file or its log.

    Args:
        path: The damaged file.
        is_row: Decides whether a row is one of those wanted.
    """
    pages, size = _pages(path)
    for page in pages.values():
        for start in (100 if page[:16] == MAGIC else 0,):
            if page[start] != 0x0D or len(page) < size:
                continue
            cells = min(unpack_from(">H", page, start + 3)[0], (size - start - 8) // 2)
            for at in unpack_from(f">{cells}H", page, start + 8):
                try:
                    row = _row(pages, size, page, at)
                except (IndexError, KeyError, ValueError, OverflowError, UnicodeDecodeError):
                    continue
                if is_row(row):
                    yield row


def _pages(path: Path) -> tuple[dict[int, bytes], int]:
    """All pages by number, replaced by those in the log, and the page size."""
    content = path.read_bytes()
    size = unpack_from(">H", content, 16)[0] if content[:16] == MAGIC else 4096
    size = 65536 if size == 1 else size if size in (512, 1024, 2048, 4096, 8192, 16384, 32768) else 4096
    pages = {1 + at // size: content[at : at + size] for at in range(0, len(content), size)}
    with suppress(FileNotFoundError):
        log = Path(f"{path}-wal").read_bytes()
        for at in range(32, len(log) - size - 23, size + 24):
            pages[unpack_from(">I", log, at)[0]] = log[at + 24 : at + 24 + size]
    return pages, size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Decode a variable-length integer and return it with the position after it."""
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9


def _row(pages: dict[int, bytes], size: int, page: bytes, at: int) -> SqlRow:
    length, at = _number(page, at)
    _, at = _number(page, at)
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    here = least + (length - least) % (size - 4)
    here = length if length <= most else here if here <= most else least
    payload = page[at : at + here]
    if here < length:
        following = unpack_from(">I", page, at + here)[0]
        seen: set[int] = set()
        while following and len(payload) < length and following not in seen:
            seen.add(following)
            payload += pages[following][4 : 4 + length - len(payload)]
            following = unpack_from(">I", pages[following], 0)[0]
    if len(payload) < length:
        raise ValueError("a part of it is missing")
    return _values(payload)


def _values(payload: bytes) -> SqlRow:
    end, at = _number(payload, 0)
    body, values = end, list[object]()
    while at < end:
        kind, at = _number(payload, at)
        length = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind] if kind < 10 else (kind - 12) // 2
        part = payload[body : body + length]
        if len(part) < length or kind in (10, 11):
            raise ValueError("a value is cut off")
        body += length
        if kind == 0:
            values.append(None)
        elif kind == 7:
            values.append(unpack_from(">d", part)[0])
        elif kind < 10:
            values.append(kind - 8 if kind > 7 else int.from_bytes(part, "big", signed=True))
        else:
            values.append(part.decode() if kind % 2 else part)
    return tuple(values)
