"""A lock between processes that the system lets go of when its holder ends, however it ends."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class Taken(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Generator[None]:
    """Hold the lock of this file, waiting for it or raising `Taken`. The file stays, empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        _lock(file, wait=wait)
        yield
    finally:
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, *, wait: bool) -> None:
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    raise Taken from None
            else:
                return
else:
    import fcntl

    def _lock(file: int, *, wait: bool) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken from None
