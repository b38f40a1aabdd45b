"""Atomic writes, a lock that ends with its holder, and a shared DuckDB."""

import atexit
import os
import secrets
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BINARY = getattr(os, "O_BINARY", 0)
"""Prevents the conversion of line endings on some systems."""


class LockHeld(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Generator[None]:
    """Hold the lock of this file, waiting for it or raising `LockHeld`. The empty file remains."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_CREAT | os.O_RDWR | BINARY, 0o600)
    try:
        lock_open_file(file, wait=wait)
        yield
    finally:
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def lock_open_file(file: int, *, wait: bool = True) -> None:
        """Lock a file that is open until it is closed, waiting for it or raising `LockHeld`."""
        # Nobody can read a byte that is locked there: one far behind the end stands for the file.
        os.lseek(file, 2**31 - 2, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    raise LockHeld from None
            else:
                return
else:
    import fcntl

    def lock_open_file(file: int, *, wait: bool = True) -> None:
        """Lock a file that is open until it is closed, waiting for it or raising `LockHeld`."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockHeld from None

# Files that appear whole or not at all, whatever happens while they are written.


def write_atomically(path: Path, body: bytes, *, private: bool = False) -> None:
    """Write to a temporary file in the same directory and move it into place, so that no reader sees half a file.

    Who may read it is what the user's umask says; a private file, which may hold a key, is for its owner alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}"
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def open_duckdb() -> "DuckDBPyConnection":
    """A connection with its own temporary tables. All share one database, because starting another takes 30 ms."""
    return _duckdb(os.getpid()).cursor()


@cache
def _duckdb(process: int) -> "DuckDBPyConnection":
    import duckdb

    # A file that was written anew under the same name must not be read from memory.
    database = duckdb.connect(":memory:", config={"enable_external_file_cache": False})
    # While anything holds it when the interpreter ends, the library prints pages about leaks.
    atexit.register(_duckdb.cache_clear)
    return database
