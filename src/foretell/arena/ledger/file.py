"""The ledger's file: lines are added at the end, under a lock, and are on the disk before anybody acts on them."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from foretell.arena.ledger.chain import Verdict, verify
from foretell.arena.ledger.entry import START, Draft, Entry, Head
from foretell.arena.ledger.lock import locked
from foretell.questions.problems import InputError

BLOCK = 64 * 1024


class Ledger:
    """Entries in one file of JSON lines, shared by every process of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, drafts: Sequence[Draft], at: datetime) -> list[Entry]:
        """Seal and write them, all or none, one after the other; they are safe on the disk when this returns.

        A line that a crash left unfinished was never acted upon; it is put aside, into a file beside this one.
        """
        if not drafts:
            return []
        with locked(self._beside("lock")):
            self._mend()
            last = self._last()
            entries = _sealed(drafts, last, at.isoformat(timespec="microseconds"))
            self._write("".join(f"{entry.line()}\n" for entry in entries).encode(), new=last is None)
        return entries

    def entries(self) -> Iterator[Entry]:
        """All of them in order. What cannot be read is an `InputError`: nothing is built on a broken ledger."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield self._read(line, number)

    def head(self) -> Head | None:
        """A note of the last entry."""
        with locked(self._beside("lock")):
            last = self._last()
        return None if last is None else last.head

    def verify(self, noted: Head | None = None) -> Verdict:
        """Check every entry."""
        with locked(self._beside("lock")):
            text = self.path.read_bytes() if self.path.exists() else b""
        return verify(text, noted)

    def sending(self, platform: str) -> AbstractContextManager[None]:
        """Held while sending to a platform, so that two processes do not send the same; raises `Taken`."""
        return locked(self._beside(f"{platform}.lock"), wait=False)

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{ending}")

    def _read(self, line: bytes, number: int | None = None) -> Entry:
        try:
            return Entry.read(line.decode())
        except (ValueError, TypeError) as error:
            hint = "foretell ledger verify tells what happened; keep the file and start a new one"
            raise InputError(f"cannot be read: {error}", path=self.path, row=number, hint=hint) from None

    def _last(self) -> Entry | None:
        """The last finished entry, found from the end."""
        if not self.path.exists():
            return None
        with self.path.open("rb") as file:
            place, tail = file.seek(0, os.SEEK_END), b""
            while place > 0 and tail.count(b"\n") < 2:
                step = min(BLOCK, place)
                place = file.seek(place - step)
                tail = file.read(step) + tail
        lines = tail.split(b"\n")[:-1]
        return self._read(lines[-1]) if lines else None

    def _mend(self) -> None:
        """Put an unfinished last line aside."""
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size == 0 or _ends_well(file.fileno(), size):
                return
            file.seek(0)
            text = file.read()
            whole = text.rfind(b"\n") + 1
            with self._beside("torn").open("ab") as aside:
                aside.write(text[whole:] + b"\n")
            file.truncate(whole)
            os.fsync(file.fileno())

    def _write(self, text: bytes, *, new: bool) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        try:
            while text:
                text = text[os.write(file, text) :]
            os.fsync(file)
        finally:
            os.close(file)
        if new:
            _keep_name(self.path.parent)


def _sealed(drafts: Iterable[Draft], last: Entry | None, at: str) -> list[Entry]:
    entries: list[Entry] = []
    for draft in drafts:
        number, previous = (last.number + 1, last.hash) if last else (1, START)
        last = Entry.sealed(draft, number=number, at=at, previous=previous)
        entries.append(last)
    return entries


def _ends_well(file: int, size: int) -> bool:
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1) == b"\n"


def _keep_name(folder: Path) -> None:
    """A new file's name is on the disk only when its folder is; where folders cannot be synced, they need not be."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
