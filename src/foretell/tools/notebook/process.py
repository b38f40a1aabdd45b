"""One sandboxed process, from its start to the removal of its directories."""

import asyncio
import json
import os
import secrets
import signal
import stat
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from foretell.questions.file_lock import LockHeld, lock_open_file
from foretell.tools.notebook.limits import MIB, KernelLimits, OutputCaps
from foretell.tools.notebook.sandbox import (
    SOCKET_DIR,
    RunDirectory,
    Sandbox,
    SandboxUnavailable,
    closed_above,
    package_directories,
    seccomp_filter,
    variables,
)
from foretell.tools.notebook.watchdog import SandboxWatchdog, descendants, is_running, kill_tree, resident

# Reading and removing a notebook's directory, whose content is untrusted.

MAX_DEPTH = 8


@contextmanager
def _opened(name: str | Path, flags: int | None = None, *, within: int | None = None) -> Generator[int]:
    """Yield a file descriptor for reading a directory, or what `flags` say, opened without following a symlink."""
    flags = os.O_DIRECTORY if flags is None else flags  # Windows has no such flags.
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=within)
    try:
        yield opened
    finally:
        os.close(opened)


@dataclass(kw_only=True)
class CollectedFiles:
    """Files that a notebook left, by their path in its directory, and those that were skipped, with the reason."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    skipped: dict[str, str] = field(default_factory=dict[str, str])


def collect_files(directory: Path, *, most_files: int = 100, most_bytes: int = 32 * MIB) -> CollectedFiles:
    """Read the regular files of a directory. Links, pipes and sockets are never read, and no name leads outside."""
    collected = CollectedFiles()

    def collect(opened: int, above: str, depth: int) -> None:
        for name in sorted(os.listdir(opened)):
            path = f"{above}{name}".encode("utf-8", "replace").decode()
            if len(collected.skipped) >= most_files:
                return
            try:
                # Non-blocking, because the other end of a pipe may never be opened.
                with _opened(name, os.O_NONBLOCK, within=opened) as entry:
                    if not stat.S_ISDIR(os.fstat(entry).st_mode):
                        collected.files[path] = _content(entry, collected, most_files, most_bytes)
                    elif depth < MAX_DEPTH:
                        collect(entry, f"{path}/", depth + 1)
                    else:
                        collected.skipped[path] = "it lies too deep"
            except OSError as error:
                collected.skipped[path] = f"it cannot be opened as a file ({error.strerror})"
            except ValueError as error:
                collected.skipped[path] = str(error)

    with _opened(directory) as top:
        collect(top, "", 0)
    return collected


def _content(opened: int, collected: CollectedFiles, most_files: int, most_bytes: int) -> bytes:
    """Return the bytes of a regular file; raise `ValueError` with the reason if it has to be skipped."""
    status = os.fstat(opened)
    room = most_bytes - sum(map(len, collected.files.values()))
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not an ordinary file")
    if status.st_nlink != 1:
        raise ValueError("it has more than one name")
    if len(collected.files) >= most_files:
        raise ValueError(f"there are more than {most_files} files")
    if status.st_size > room:
        raise ValueError(f"its {status.st_size:,} bytes are too many")
    with os.fdopen(os.dup(opened), "rb") as stream:
        content = stream.read(room + 1)
    if len(content) > room:
        raise ValueError("it grew while it was read")
    return content


def remove_directory(directory: Path) -> None:
    """Remove a directory and all its content, whatever its depth and permissions, without following symlinks.

    No other process may still be using it. Subdirectories are moved to the top one by one instead of being walked into,
    so that neither path length nor recursion depth matters.
    """
    with _opened(directory) as top:
        os.fchmod(top, 0o700)
        waiting = _emptied(top, top)
        while waiting:
            name = waiting.pop()
            with _opened(name, within=top) as opened:
                waiting += _emptied(opened, top)
            os.rmdir(name, dir_fd=top)
    os.rmdir(directory)


def _emptied(opened: int, top: int) -> list[str]:
    """Remove a directory's files and move its subdirectories to the top; return their new names there."""
    moved: list[str] = []
    for name in os.listdir(opened):
        if not stat.S_ISDIR(os.stat(name, dir_fd=opened, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=opened)
            continue
        os.chmod(name, 0o700, dir_fd=opened)
        moved.append(secrets.token_hex(8))  # An unpredictable name.
        os.rename(name, moved[-1], src_dir_fd=opened, dst_dir_fd=top)
    return moved


STDERR_BYTES = 4_000
"""How many bytes of a process's standard error are kept."""
LONGEST_SOCKET = 103
PREFIX = "foretell-nb-"
PROGRAMS = "/usr/bin:/bin:/usr/sbin:/sbin"
"""PATH for the programs that set up a sandbox; it is not visible inside."""
YOUNG = 60.0
"""Age in seconds below which a directory may not have been locked yet."""
COUNTED_APART = (5, 14)
"""From this Linux version on, processes are counted per user namespace, so that a limit affects the sandbox only."""


class SandboxedProcess:
    """A program that runs in its own directories under a watchdog."""

    def __init__(
        self, process: Process, run: RunDirectory, limits: KernelLimits, *, stderr_fd: int, inside: bool
    ) -> None:
        self.run = run
        self._process = process
        self._inside = inside
        self._watcher = SandboxWatchdog(process.pid, (run.work, run.sockets), limits, self._kill)
        self._watcher.start()
        self._stderr_fd = stderr_fd
        self.stderr_text = ""
        """The end of its standard error output, set once it has ended."""
        self._lock = _locked(run.top)
        self.ended = asyncio.create_task(self._end())
        """A task that is done once the process has ended."""
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, program: Sequence[str], *, sandbox: Sandbox | None, limits: KernelLimits, run: RunDirectory
    ) -> "SandboxedProcess":
        """Start a program in a run's directories, which are removed with it.

        Without a sandbox, the program has all rights of the user.
        """
        inside = sandbox is not None
        filter_fd = None
        if (seccomp := seccomp_filter()) is not None:
            filter_fd, into = os.pipe()
            os.write(into, seccomp)
            os.close(into)
        handed = () if filter_fd is None else (filter_fd,)
        # Read only at the end. A pipe has a small buffer, and a process that fills it blocks.
        read_fd, write_fd = os.pipe()
        os.set_blocking(read_fd, False)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sandbox.command(run, program, filter_fd) if sandbox is not None else program),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=write_fd,
                pass_fds=handed if inside else (),
                env={"PATH": PROGRAMS} if inside else variables(run.work, run.tmp),
                cwd="/" if inside else run.work,
                start_new_session=not inside,
            )
        except BaseException:
            os.close(read_fd)
            remove_directory(run.top)
            raise
        finally:
            for fd in (*handed, write_fd):
                os.close(fd)
        return cls(process, run, limits, stderr_fd=read_fd, inside=inside)

    @property
    def alive(self) -> bool:
        """Whether it is still running."""
        return not self.ended.done()

    @property
    def memory(self) -> int:
        """Bytes of memory in use by all its processes."""
        return sum(map(resident, descendants(self._process.pid, most=1000))) if self.alive else 0

    def reason(self) -> str:
        """Return why it ended, as a message for the author of the program."""
        if self._watcher.breach is not None:
            return f"the sandbox was killed: {self._watcher.breach}"
        return _exit_reason(self._process.returncode)

    async def close(self) -> None:
        """Kill it with everything it started, and remove its directories. Once begun, this cannot be cancelled."""
        self._closing = self._closing or asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        while self.alive:
            self._kill()
            await asyncio.wait([self.ended], timeout=0.2)
            if self.alive and self._process.returncode is None:
                self._process.kill()
        await asyncio.to_thread(remove_directory, self.run.top)
        os.close(self._lock)

    def _kill(self) -> None:
        """Kill the process with everything it started. Also called from the watchdog's thread."""
        if self._process.returncode is not None:
            return
        if self._inside:
            kill_tree(self._process.pid)
        else:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _end(self) -> int:
        """Wait for the process and the others in its namespace, which end shortly after; return its exit code."""
        code = await self._process.wait()
        await asyncio.to_thread(self._watcher.stop)
        for _ in range(500):
            if not any(map(is_running, self._watcher.below)):
                break
            await asyncio.sleep(0.01)
        with suppress(BlockingIOError):
            self.stderr_text = os.read(self._stderr_fd, MIB)[-STDERR_BYTES:].decode("utf-8", "replace")
        os.close(self._stderr_fd)
        return code


def new_run(user: int | None) -> RunDirectory:
    """Create directories that no other user can read, with a path short enough for sockets."""
    for parent in (None, "/tmp"):
        top = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        run = RunDirectory(top=top)
        short = len(os.fsencode(run.sockets / "kernel-5")) <= LONGEST_SOCKET
        if short and (user is None or closed_above(top) is None):
            try:
                run.make(user)
            except OSError as error:
                remove_directory(top)
                raise SandboxUnavailable(
                    f"root cannot change the owner of a directory: {error.strerror}", hint="run as an ordinary user"
                ) from None
            return run
        top.rmdir()
    raise SandboxUnavailable("there is no directory for temporary files with a short path that all users may traverse")


def sweep() -> None:
    """Remove directories whose owner was killed before it could: those that no process holds the lock on."""
    for path in {*Path(tempfile.gettempdir()).glob(f"{PREFIX}*"), *Path("/tmp").glob(f"{PREFIX}*")}:
        with suppress(FileNotFoundError, LockHeld):
            status = path.lstat()
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if ours and time.time() - status.st_mtime > YOUNG:
                lock = _locked(path)
                remove_directory(path)
                os.close(lock)


def _locked(path: Path) -> int:
    """Return a descriptor that holds the lock on a directory; raise `LockHeld` if another process holds it."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        lock_open_file(opened, wait=False)
    except BaseException:
        os.close(opened)
        raise
    return opened


def kernel_program(
    run: RunDirectory, *, limits: KernelLimits, caps: OutputCaps, inside: bool, user: int | None
) -> list[str]:
    """Return the command that starts a kernel; its connection file is in the same directory as its sockets."""
    resources = {
        "AS": limits.address_space,
        "CPU": limits.cpu_seconds,
        "FSIZE": limits.file_bytes,
        "NOFILE": limits.open_files,
        "CORE": 0,
    }
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit())
    if inside and (user is not None or release >= COUNTED_APART):
        resources["NPROC"] = limits.processes
    options: dict[str, Any] = {
        "connection": str((SOCKET_DIR if inside else run.sockets) / "connection.json"),
        "limits": resources,
        "caps": asdict(caps),
        "packages": [str(path) for path in package_directories()],
        "parent": 0 if inside else os.getpid(),
    }
    launcher = module_source("foretell.tools.notebook.kernel_launcher")
    return [sys.executable, "-I", "-B", "-c", launcher, json.dumps(options)]


def module_source(name: str) -> str:
    """Return the source of a module that runs inside a sandbox, where foretell cannot be imported."""
    package, _, module = name.rpartition(".")
    return files(package).joinpath(f"{module}.py").read_text(encoding="utf-8")


def _exit_reason(code: int | None) -> str:
    if code is None:
        return "the kernel is still there but does not answer"
    number = -code if code < 0 else code - 128 if code > 128 else 0
    try:
        name = signal.Signals(number).name if number else ""
    except ValueError:
        name = f"signal {number}"
    if name == "SIGKILL":
        return "the kernel was killed (SIGKILL): by its own code, or because the machine ran out of memory"
    if name == "SIGXCPU":
        return "the kernel used up its CPU time and was killed"
    if name:
        return f"the kernel crashed ({name})"
    return f"the kernel process ended by itself with exit code {code}"
