"""From a path or an address to a database."""

import sqlite3
from pathlib import Path

from foretell.models.database.interface import Database
from foretell.models.database.sqlite import SqliteDatabase
from foretell.questions.errors import InputError, MissingExtra

SCHEMES = ("postgresql://", "postgres://")


def is_database_url(place: str | Path) -> bool:
    """Whether a place is a server's, and no file.

    >>> is_database_url("postgresql://db/arena"), is_database_url("runs.db")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(SCHEMES)


def open_database(
    place: str | Path, what: str, *, timeout: float = 60.0, durable: bool = True, sessions: int = 6
) -> Database:
    """The SQLite file at a path, made where it is missing, or the PostgreSQL database at an address.

    `sessions` is how many statements a server is asked at once.
    """
    if is_database_url(place):
        try:
            from foretell.models.database.postgres import PostgresDatabase
        except ImportError:
            raise MissingExtra("a PostgreSQL database", "cluster") from None
        return PostgresDatabase(str(place), sessions)
    try:
        return SqliteDatabase(place, timeout=timeout, durable=durable)
    except sqlite3.DatabaseError as error:
        raise InputError(f"this is no {what}: {error}", path=place) from None
