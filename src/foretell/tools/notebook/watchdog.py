"""A thread that watches a sandbox from outside and kills it when its processes together exceed a limit.

The system limits memory and disk only per process or per file. This module sums the usage of all processes several
times a second.
"""

import os
import re
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from mmap import PAGESIZE
from pathlib import Path

from foretell.tools.notebook.limits import MIB, KernelLimits

PERIOD = 0.1
MAX_DEPTH = 64
HIDDEN = 1_000_000
IN_MEMORY = ("/tmp", "/dev/shm")
"""File systems of the sandbox whose bytes the system limits, but not their number of files."""
BLOCK = 512
STREAM_BYTES, MESSAGES_BYTES = 256 * 1024, 3 * MIB
"""Bytes a Unix socket can hold at most: a stream by the default buffer size, a datagram socket ten times that."""
FEW_SOCKETS = 20
"""Number of internet sockets up to which they are not examined; each holds at most a few megabytes."""
HIDDEN_LOOKS = 5
"""Number of checks between counts of files held without a descriptor, which are done twice in a row."""
WRITABLE = (b" /notebook/", b" /wire/")
"""How memory maps name files on the machine's disk that a sandbox can write."""


class SandboxWatchdog(threading.Thread):
    """Watches a process's descendants and some directories, until stopped or until it had to kill."""

    def __init__(self, pid: int, directories: tuple[Path, ...], limits: KernelLimits, kill: Callable[[], None]) -> None:
        super().__init__(name=f"watch sandbox {pid}", daemon=True)
        self._pid = pid
        self._directories = directories
        self._limits = limits
        self._kill = kill
        self._stopped = threading.Event()
        self.below: list[int] = []
        """The ids of the processes seen in the last two checks."""
        self._before: list[int] = []
        self._looks, self._hidden = 0, 0
        self.breach: str | None = None
        """Which limit was exceeded, or None."""

    def run(self) -> None:
        """Check the limits periodically until stopped; kill on the first breach."""
        while not self._stopped.wait(PERIOD):
            self.breach = self._look()
            if self.breach is not None:
                self._kill()
                return

    def stop(self) -> None:
        """Stop watching, because from now on the process id may belong to another process."""
        self._stopped.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join()

    def _look(self) -> str | None:
        pids = descendants(self._pid, most=2 * self._limits.processes)
        if len(pids) > 1:  # Otherwise it is ending, and its children have been reparented.
            self.below, self._before = [*pids, *self._before], pids
        if len(pids) > self._limits.processes:
            return f"it ran more than the {self._limits.processes} processes allowed"
        return self._memory(pids) or self._disk(pids)

    def _memory(self, pids: list[int]) -> str | None:
        used = sum(map(resident, pids))
        if used > self._limits.memory:
            # Pages shared by several processes were counted for each of them; the fair count takes longer.
            used = sum(map(fair_share, pids))
        used += socket_bytes(pids[-1])
        if used <= self._limits.memory:
            return None
        return f"it held {used // MIB:,} MiB of memory, more than the {self._limits.memory // MIB:,} MiB allowed"

    def _disk(self, pids: list[int]) -> str | None:
        places = (f"/proc/{pids[-1]}/root{place}" for place in IN_MEMORY)
        if any(entries_in(place, self._limits.tmp_bytes) > self._limits.disk_entries for place in places):
            return f"it made more than the {self._limits.disk_entries:,} temporary files allowed"
        used = sum(map(unlinked, pids))
        iterable = chain.from_iterable(map(_entries, map(str, self._directories)))
        for entries, (depth, size) in enumerate(iterable, start=1):
            used += size
            if depth == HIDDEN:
                return "it made a directory that cannot be looked into"
            if depth > MAX_DEPTH:
                return f"it nested directories more than {MAX_DEPTH} deep"
            if entries > self._limits.disk_entries:
                return f"it made more than the {self._limits.disk_entries:,} files allowed"
            if used > self._limits.disk_bytes:
                break
        if used <= self._limits.disk_bytes and not self._hides(pids):
            return None
        return f"its files grew beyond the {self._limits.disk_bytes // MIB:,} MiB allowed"

    def _hides(self, pids: list[int]) -> bool:
        """Whether too many files are held without name and descriptor; how large those are cannot be determined."""
        self._looks += 1
        if self._looks % HIDDEN_LOOKS:
            return False
        before, self._hidden = self._hidden, hidden_files(pids)
        return min(before, self._hidden) * self._limits.file_bytes > self._limits.disk_bytes


def kill_tree(pid: int) -> None:
    """Kill a sandbox by its namespace's first process, which takes all others with it; then its parent ends."""
    for child in children(pid):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Whether a process can still do something; a zombie cannot."""
    try:
        return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _read(path: str) -> bytes:
    """Return the content of a file below /proc. Uses plain system calls, because it is called so often."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while part := os.read(opened, 65_536):  # To the end, because a truncated number would be another process.
            content += part
        return content
    finally:
        os.close(opened)


def children(pid: int) -> list[int]:
    """Return the ids of a process's living children, started by it or inherited."""
    pids: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    for thread in threads:
        try:
            pids += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
        except (OSError, ValueError):
            continue
    return pids


def descendants(pid: int, *, most: int) -> list[int]:
    """Return a process and all its descendants; counting stops soon after `most`."""
    pids = [pid]
    for parent in pids:  # grows while it is walked
        if len(pids) > most:
            break
        pids += children(parent)
    return pids


def resident(pid: int) -> int:
    """Return the bytes of memory that a process has in use, including pages shared with others."""
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * PAGESIZE
    except (OSError, IndexError, ValueError):
        return 0


def fair_share(pid: int) -> int:
    """Return the bytes of memory in use, with every shared page divided among its users."""
    try:
        rows = _read(f"/proc/{pid}/smaps_rollup").splitlines()
        return next(int(row.split()[1]) * 1024 for row in rows if row.startswith(b"Pss:"))
    except (OSError, StopIteration, IndexError, ValueError):
        return resident(pid)


def unlinked(pid: int) -> int:
    """Return the bytes of deleted files that a process holds open."""
    sizes: dict[tuple[int, int], int] = {}
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    status = os.stat(entry.path)
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * BLOCK
    except OSError:
        return 0
    return sum(sizes.values())


def hidden_files(pids: list[int]) -> int:
    """Return how many deleted files are mapped, or were sent through a socket and not received.

    Returns `HIDDEN` if there may be any number of them.
    """
    mapped, sent = set[bytes](), 0
    there, open_ = set[bytes](), set[bytes]()
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            for row in _read(f"/proc/{pid}/maps").splitlines():
                if row.endswith(b" (deleted)") and any(place in row for place in WRITABLE):
                    mapped.add(row.split()[4])
            there |= {row.split()[6] for row in _unix_sockets(pid)}
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if (link := os.readlink(f"/proc/{pid}/fd/{name}")).startswith("socket:["):
                        open_.add(link[8:-1].encode())
                        sent += int(_read(f"/proc/{pid}/fdinfo/{name}").partition(b"scm_fds:")[2] or b"0")
    # A socket that is itself in transit may hold any number of them.
    return HIDDEN if sent and there - open_ - {b"0"} else len(mapped) + sent


def _unix_sockets(pid: int) -> list[bytes]:
    """Return the Unix sockets in a process's network namespace; none if that is ours, as before the sandbox is made."""
    if os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        return []
    return _read(f"/proc/{pid}/net/unix").splitlines()[1:]


def socket_bytes(pid: int) -> int:
    """Return the bytes that a sandbox's sockets may hold, including sockets that no process has open any more."""
    total = 0
    with suppress(OSError, ValueError, IndexError):
        for row in (unix_sockets := _unix_sockets(pid)):
            total += STREAM_BYTES if row.split()[4] == b"0001" else MESSAGES_BYTES
        # The number of sockets is cheap to read, but the size of each takes milliseconds.
        used = re.findall(rb"(?:TCP|UDP)6?: inuse (\d+)", _read(f"/proc/{pid}/net/sockstat"))
        for kind in ("tcp", "tcp6", "udp", "udp6") if unix_sockets and sum(map(int, used)) > FEW_SOCKETS else ():
            for row in _read(f"/proc/{pid}/net/{kind}").splitlines()[1:]:
                total += sum(int(queue, 16) for queue in row.split()[4].split(b":"))
    return total


def entries_in(path: str, size: int) -> int:
    """Return how many files a file system of the given size holds; 0 for others, such as the machine's own."""
    try:
        status = os.statvfs(path)
    except OSError:
        return 0
    return status.f_files - status.f_ffree if abs(status.f_blocks * status.f_frsize - size) < PAGESIZE else 0


def _entries(name: str, parent: int | None = None, depth: int = 1) -> Iterator[tuple[int, int]]:
    """Yield depth and bytes of everything below a directory, without ever following a symlink.

    A directory that cannot be opened has the depth `HIDDEN`.
    """
    try:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except PermissionError:
        yield HIDDEN, 0
        return
    except OSError:  # It was removed or replaced.
        return
    try:
        with os.scandir(opened) as entries:
            for entry in entries:
                size = 0
                with suppress(OSError):
                    size = entry.stat(follow_symlinks=False).st_blocks * BLOCK
                yield depth, size
                if entry.is_dir(follow_symlinks=False):
                    yield from _entries(entry.name, opened, depth + 1)
    finally:
        os.close(opened)
