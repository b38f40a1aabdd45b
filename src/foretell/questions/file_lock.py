"""Locks on files, on Linux, macOS and Windows. A lock ends with the process that holds it."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


class LockHeld(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Generator[None]:
    """Hold the lock of this file, waiting for it or raising `LockHeld`. The empty file remains."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        lock_open_file(file, wait=wait)
        yield
    finally:
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def lock_open_file(file: int, *, wait: bool = True) -> None:
        """Lock a file that is open until it is closed, waiting for it or raising `LockHeld`."""
        # A locked byte cannot be read on Windows, so a byte far beyond the end of the file is locked instead.
        os.lseek(file, 2**31 - 2, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    raise LockHeld from None
            else:
                return

    def remove_locked_file(file: int, path: Path) -> None:
        """Remove a file whose lock this process holds, and close it."""
        os.close(file)
        with suppress(OSError):  # An open file cannot be removed, so a process that has opened it since keeps it.
            os.unlink(path)
else:
    import fcntl

    def lock_open_file(file: int, *, wait: bool = True) -> None:
        """Lock a file that is open until it is closed, waiting for it or raising `LockHeld`."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockHeld from None

    def remove_locked_file(file: int, path: Path) -> None:
        """Remove a file whose lock this process holds, and close it."""
        with suppress(FileNotFoundError):
            os.unlink(path)
        os.close(file)
