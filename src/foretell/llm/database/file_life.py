"""Signs of life on one machine: a locked file, which the system unlocks when its process ends, however it ends."""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class FileLife:
    """Holds a lock on a small file beside the database for as long as this process has it open.

    No clock and no heartbeat: whoever can lock the file of another knows that the other is gone, and removes it.
    Where there are no such locks, or no file, nobody else is ever seen alive.
    """

    def __init__(self, database: str) -> None:
        self._database = database
        self.id = _new_id()
        self._file: int | None = None
        if fcntl is not None and database != ":memory:":
            while (held := self._hold()) is None:
                self.id = _new_id()
            self._file = held
            self._sweep()

    def alive(self, id: int) -> bool:
        """Whether somebody holds the lock of that id."""
        return id == self.id or self._locked(self._path(id))

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of them that are not."""
        return {id for id in ids if not self.alive(id)}

    def close(self) -> None:
        """Take the sign away."""
        if self._file is not None:
            with suppress(FileNotFoundError):
                os.unlink(self._path(self.id))
            os.close(self._file)
            self._file = None

    def _path(self, id: int) -> Path:
        return Path(f"{self._database}-alive-{id:016x}")

    def _hold(self) -> int | None:
        """The locked file; None where another process swept it away before it was locked."""
        if fcntl is None:
            return None
        path = self._path(self.id)
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(file)):
                return file
        os.close(file)
        return None

    def _locked(self, path: Path) -> bool:
        if fcntl is None:
            return False
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        else:
            with suppress(FileNotFoundError):
                os.unlink(path)
            return False
        finally:
            os.close(file)

    def _sweep(self) -> None:
        """Remove what killed processes left behind."""
        own = Path(self._database)
        for path in list(own.parent.iterdir()):
            if path.name.startswith(f"{own.name}-alive-") and path != self._path(self.id):
                self._locked(path)


def _new_id() -> int:
    return secrets.randbits(62) + 1
