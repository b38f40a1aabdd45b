"""Errors of disks and databases, in words that say what to do."""

import errno
import sqlite3
from pathlib import Path

from foretell.questions.errors import InputError

FULL_HINT = "free some space; foretell doctor shows how much there is"
READ_ONLY_HINT = "what is stored can still be read; set FORETELL_HOME to a folder that can be written to"
DAMAGED_HINT = "foretell doctor --repair rebuilds what can be rebuilt and keeps the damaged file beside it"


class StorageError(InputError):
    """A file or database in the home cannot be used."""


class DiskFull(StorageError):
    """The disk is full; nothing was written."""


class NoRoom(DiskFull):
    """The disk is so full that nothing should be requested; nothing was."""


class DamagedFile(StorageError):
    """A file does not contain what was written to it."""


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# SQLite tells a full disk from other failures only where the system says ENOSPC; a quota or a limit is a failed write.
_FULL_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
_DAMAGED_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# Tables are ours, and so is what is in them: where SQLite misses a column, or text is no UTF-8 or JSON any more, a page
# was damaged that looks sound.
_DAMAGED_WORDS = ("Could not decode to UTF-8", "malformed JSON", "no such column")


def storage_error(error: BaseException, path: str | Path | None = None) -> StorageError | None:
    """The same problem as one line for a person; None where it is not a disk's or a database's.

    >>> print(storage_error(OSError(28, "No space left on device"), "a.db"))
    a.db: the disk is full (free some space; foretell doctor shows how much there is)
    """
    if isinstance(error, StorageError):
        return error
    if isinstance(error, OSError):
        return _from_system(error, path or error.filename)
    if not isinstance(error, sqlite3.DatabaseError):
        return None
    code = getattr(error, "sqlite_errorcode", None) or 0
    if code in _FULL_CODES:
        return DiskFull("the disk is full", path=path, hint=FULL_HINT)
    if code & 0xFF in _DAMAGED_CODES or str(error).startswith(_DAMAGED_WORDS):
        return DamagedFile(f"the file is damaged: {str(error)[:120]}", path=path, hint=DAMAGED_HINT)
    if code & 0xFF == sqlite3.SQLITE_READONLY:
        return StorageError("it cannot be written to", path=path, hint=READ_ONLY_HINT)
    if code & 0xFF == sqlite3.SQLITE_CANTOPEN:
        return StorageError("it cannot be opened or made", path=path, hint="foretell doctor says more")
    if code & 0xFF == sqlite3.SQLITE_IOERR:
        return StorageError(
            f"the disk does not work as it should: {error}", path=path, hint="foretell doctor says more"
        )
    if code & 0xFF == sqlite3.SQLITE_BUSY:
        return StorageError("another process has been writing to it for too long", path=path, hint="try again")
    return None


def _from_system(error: OSError, path: str | Path | None) -> StorageError | None:
    if error.errno in _FULL:
        return DiskFull("the disk is full", path=path, hint=FULL_HINT)
    if error.errno == errno.EROFS:
        return StorageError("it cannot be written to: the file system is read-only", path=path, hint=READ_ONLY_HINT)
    if error.errno in (errno.EACCES, errno.EPERM):
        return StorageError(f"{error.strerror}", path=path, hint="give it to the user who runs this, or name another")
    if error.errno == errno.EIO:
        return StorageError("the disk does not work as it should", path=path, hint="foretell doctor says more")
    return None


def storage_error_in(error: BaseException) -> StorageError | None:
    """The first such problem in an error that may be a group of many."""
    if isinstance(error, BaseExceptionGroup):
        found = (storage_error_in(one) for one in error.exceptions)
        return next((one for one in found if one is not None), None)
    return storage_error(error)
