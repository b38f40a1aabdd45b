"""One process in a sandbox, from its start to the last trace of it."""

import asyncio
import fcntl
import itertools
import json
import os
import signal
import stat
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from foretell.tools.notebook.directories import remove
from foretell.tools.notebook.limits import MIB, Caps, Limits
from foretell.tools.notebook.sandbox import (
    WIRE,
    RunDirectory,
    Sandbox,
    SandboxUnavailable,
    package_directories,
    variables,
)
from foretell.tools.notebook.seccomp import seccomp_filter
from foretell.tools.notebook.spare_user import closed_above
from foretell.tools.notebook.watch import Watcher, descendants, is_running, resident, slay

SAID = 4_000
"""Bytes kept of what a process says on its standard error."""
LONGEST_SOCKET = 103
PREFIX = "foretell-nb-"
PROGRAMS = "/usr/bin:/bin:/usr/sbin:/sbin"
"""Where the programs are that lead into a sandbox; inside nothing is left of this."""
YOUNG = 60.0
"""Seconds in which a directory may not be locked yet."""
COUNTED_APART = (5, 14)
"""Since this Linux version processes are counted per user namespace, so that a limit concerns the sandbox only."""


class Confined:
    """A program that runs in its own directories, watched."""

    def __init__(self, process: Process, run: RunDirectory, limits: Limits, *, ear: int, inside: bool) -> None:
        self.run = run
        self._process = process
        self._inside = inside
        self._watcher = Watcher(process.pid, (run.work, run.wire), limits, self._kill)
        self._watcher.start()
        self._ear = ear
        self._said = ""
        self._lock = _locked(run.top)
        self.ended = asyncio.create_task(self._end())
        """Done once the process is gone."""
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, program: Sequence[str], *, sandbox: Sandbox | None, limits: Limits, run: RunDirectory
    ) -> "Confined":
        """Start a program in the directories of a run, which are removed with it. Without a sandbox: be careful."""
        filter_fd = _pipe_with(seccomp_filter())
        kept = () if filter_fd is None else (filter_fd,)
        inside = sandbox is not None
        # Nobody listens before the end: a pipe holds a few words, and whoever goes on and on is left waiting.
        ear, mouth = os.pipe()
        os.set_blocking(ear, False)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sandbox.command(run, program, filter_fd) if sandbox is not None else program),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=mouth,
                pass_fds=kept if inside else (),
                env={"PATH": PROGRAMS} if inside else variables(run.work, run.tmp),
                cwd="/" if inside else run.work,
                start_new_session=not inside,
            )
        except BaseException:
            os.close(ear)
            remove(run.top)
            raise
        finally:
            for fd in (*kept, mouth):
                os.close(fd)
        return cls(process, run, limits, ear=ear, inside=inside)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return not self.ended.done()

    @property
    def memory(self) -> int:
        """Bytes all its processes have in use now."""
        return sum(map(resident, descendants(self._process.pid, most=1000))) if self.alive else 0

    @property
    def last_words(self) -> str:
        """The end of what it said on standard error, once it has ended."""
        return self._said

    def reason(self) -> str:
        """Why it ended, in words for whoever wrote the program."""
        if self._watcher.breach is not None:
            return f"the sandbox was killed: {self._watcher.breach}"
        return _told(self._process.returncode)

    async def close(self) -> None:
        """Kill it with everything it started, and remove its directories. This is seen through once begun."""
        self._closing = self._closing or asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for patience in itertools.repeat(0.2):
            if not self.alive:
                break
            self._kill()
            await asyncio.wait([self.ended], timeout=patience)
            if self.alive and self._process.returncode is None:
                self._process.kill()
        await asyncio.to_thread(remove, self.run.top)
        os.close(self._lock)

    def _kill(self) -> None:
        """Also called from the watcher's thread."""
        if self._process.returncode is not None:
            return
        if self._inside:
            slay(self._process.pid)
        else:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _end(self) -> int:
        """Wait for the process, and for those in its namespace, which die a moment after it."""
        code = await self._process.wait()
        await asyncio.to_thread(self._watcher.stop)
        for _ in range(500):
            if not any(map(is_running, self._watcher.below)):
                break
            await asyncio.sleep(0.01)
        with suppress(BlockingIOError):
            self._said = os.read(self._ear, MIB)[-SAID:].decode("utf-8", "replace")
        os.close(self._ear)
        return code


def new_run(user: int | None) -> RunDirectory:
    """Fresh directories that nobody else on the machine can look into, with a path short enough for sockets."""
    for parent in (None, "/tmp"):
        top = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        run = RunDirectory(top=top)
        short = len(os.fsencode(run.wire / "kernel-5")) <= LONGEST_SOCKET
        if short and (user is None or closed_above(top) is None):
            try:
                run.make(user)
            except OSError as error:
                remove(top)
                raise SandboxUnavailable(
                    f"root cannot give a directory to another user: {error.strerror}", hint="be an ordinary user"
                ) from None
            return run
        top.rmdir()
    raise SandboxUnavailable("there is no place for temporary files with a short path that anybody may pass")


def sweep() -> None:
    """Remove directories whose owner was killed before it could do so itself: nobody holds the lock on them."""
    for path in {*Path(tempfile.gettempdir()).glob(f"{PREFIX}*"), *Path("/tmp").glob(f"{PREFIX}*")}:
        with suppress(FileNotFoundError, BlockingIOError):
            seen = path.lstat()
            ours = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid()
            if ours and time.time() - seen.st_mtime > YOUNG:
                lock = _locked(path)
                remove(path)
                os.close(lock)


def _locked(path: Path) -> int:
    """A descriptor that holds the lock on a directory; `BlockingIOError` where another process does."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(opened)
        raise
    return opened


def kernel_program(run: RunDirectory, *, limits: Limits, caps: Caps, inside: bool, user: int | None) -> list[str]:
    """The command that becomes a kernel; its connection file lies with its sockets."""
    wire = WIRE if inside else run.wire
    options: dict[str, Any] = {
        "connection": str(wire / "connection.json"),
        "limits": _resources(limits, inside=inside, user=user),
        "caps": asdict(caps),
        "packages": [str(path) for path in package_directories()],
        "parent": 0 if inside else os.getpid(),
    }
    source = files("foretell.tools.notebook").joinpath("launch.py").read_text(encoding="utf-8")
    return [sys.executable, "-I", "-B", "-c", source, json.dumps(options)]


def _resources(limits: Limits, *, inside: bool, user: int | None) -> dict[str, int]:
    """Limits that the system keeps, by their names there."""
    found = {
        "AS": limits.address_space,
        "CPU": limits.cpu_seconds,
        "FSIZE": limits.file_bytes,
        "NOFILE": limits.open_files,
        "CORE": 0,
    }
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit())
    if inside and (user is not None or release >= COUNTED_APART):
        found["NPROC"] = limits.processes
    return found


def _pipe_with(data: bytes | None) -> int | None:
    """A descriptor from which a short text can be read."""
    if data is None:
        return None
    out, into = os.pipe()
    os.write(into, data)
    os.close(into)
    return out


def _told(code: int | None) -> str:
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
