"""What is left in a notebook's directory, read and removed as if an enemy had made it."""

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from foretell.tools.notebook.limits import MIB

MAX_DEPTH = 8


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Files a notebook left, by their path in its directory, and what was not taken along, with the reason."""

    files: dict[str, bytes]
    left: dict[str, str]


def collect(directory: Path, *, most_files: int = 100, most_bytes: int = 32 * MIB) -> Collected:
    """The ordinary files of a directory. Links, pipes and sockets are never opened; no name leads out of it."""
    taking = _Taking(most_files, most_bytes)
    top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        taking.directory(top, "", 0)
    finally:
        os.close(top)
    return Collected(files=taking.files, left=taking.left)


class _Taking:
    def __init__(self, most_files: int, most_bytes: int) -> None:
        self.files: dict[str, bytes] = {}
        self.left: dict[str, str] = {}
        self._most_files = most_files
        self._bytes = most_bytes

    def directory(self, opened: int, above: str, depth: int) -> None:
        for name in sorted(os.listdir(opened)):
            path = f"{above}{name}".encode("utf-8", "replace").decode()
            if len(self.left) >= self._most_files:
                return
            reason = self._entry(opened, name, path, depth)
            if reason is not None:
                self.left[path] = reason

    def _entry(self, parent: int, name: str, path: str, depth: int) -> str | None:
        try:
            # Not blocking: the other end of a pipe may never come.
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        except OSError as error:
            return f"it cannot be opened as a file ({error.strerror})"
        try:
            seen = os.fstat(opened)
            if stat.S_ISDIR(seen.st_mode):
                return self._below(opened, path, depth)
            return self._file(opened, path, seen)
        finally:
            os.close(opened)

    def _below(self, opened: int, path: str, depth: int) -> str | None:
        if depth >= MAX_DEPTH:
            return "it lies too deep"
        self.directory(opened, f"{path}/", depth + 1)
        return None

    def _file(self, opened: int, path: str, seen: os.stat_result) -> str | None:
        if not stat.S_ISREG(seen.st_mode):
            return "it is no ordinary file"
        if seen.st_nlink != 1:
            return "it has more than one name"
        if len(self.files) >= self._most_files:
            return f"there are more than {self._most_files} files"
        if seen.st_size > self._bytes:
            return f"its {seen.st_size:,} bytes are too many"
        with os.fdopen(os.dup(opened), "rb") as stream:
            content = stream.read(self._bytes + 1)
        if len(content) > self._bytes:
            return "it grew while it was read"
        self._bytes -= len(content)
        self.files[path] = content
        return None


def remove(directory: Path) -> None:
    """Remove a directory and everything in it: of any depth, with any rights, and never through a link.

    Nobody else may be at work in it any more. Directories are moved to the top one by one instead of being walked into,
    so that neither the length of a path nor the depth of calls matters.
    """
    top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(top, 0o700)
        waiting = _emptied(top, top)
        while waiting:
            name = waiting.pop()
            opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
            try:
                waiting += _emptied(opened, top)
            finally:
                os.close(opened)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(directory)


def _emptied(opened: int, top: int) -> list[str]:
    """Remove the files of a directory and move its directories to the top; their names there."""
    moved: list[str] = []
    for name in os.listdir(opened):
        if not stat.S_ISDIR(os.stat(name, dir_fd=opened, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=opened)
            continue
        os.chmod(name, 0o700, dir_fd=opened)
        there = secrets.token_hex(8)  # no name that somebody could have taken before
        os.rename(name, there, src_dir_fd=opened, dst_dir_fd=top)
        moved.append(there)
    return moved
