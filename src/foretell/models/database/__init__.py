"""Opens a database by path or address."""

import logging
import sqlite3
import time
from pathlib import Path

from foretell.models.database.interface import Database
from foretell.models.database.sqlite import MEMORY, SqliteDatabase
from foretell.questions.errors import DAMAGED_HINT, DamagedFile, InputError, MissingExtra, storage_error

log = logging.getLogger(__name__)
YOUNG = 60.0
"""Seconds for which a new file may stay empty."""
SCHEMES = ("postgresql://", "postgres://")


def is_database_url(place: str | Path) -> bool:
    """Whether a location is the address of a server rather than a file.

    >>> is_database_url("postgresql://db/arena"), is_database_url("runs.db")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(SCHEMES)


def open_database(
    place: str | Path, what: str, *, timeout: float = 60.0, durable: bool = True, sessions: int = 6
) -> Database:
    """Open the SQLite file at a path, creating it if it is missing, or the PostgreSQL database at an address.

    `sessions` is the number of concurrent connections to a server.
    """
    if is_database_url(place):
        try:
            from foretell.models.database.postgres import PostgresDatabase
        except ImportError:
            raise MissingExtra("a PostgreSQL database", "cluster") from None
        return PostgresDatabase(str(place), sessions)
    try:
        if place != MEMORY:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            _warn_if_empty(Path(place))
        return SqliteDatabase(place, timeout=timeout, durable=durable)
    except OSError as error:
        raise storage_error(error, place) or error from None
    except sqlite3.DatabaseError as error:
        problem = storage_error(error, place)
        if isinstance(problem, DamagedFile):
            problem = DamagedFile(f"this is not a {what}, or it is damaged: {error}", path=place, hint=DAMAGED_HINT)
        raise problem or InputError(f"this is not a {what}: {error}", path=place) from None


def _warn_if_empty(path: Path) -> None:
    """Log a warning if a file is empty and not new: it has lost its contents."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if not status.st_size and time.time() - status.st_mtime > YOUNG:
        log.warning("%s was empty and is created again; foretell doctor shows what is missing", path)
