"""Commands of foretell in their own processes, forked from one that has imported everything.

They can be killed, stopped and resumed like any process, but imports take time only once.
"""

import atexit
import json
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from multiprocessing import connection, forkserver, reduction
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import IO, Any

import pytest

IMPORTED = (
    "foretell.cli.main",
    "foretell.cli.commands",
    "foretell.cli.serve",
    "foretell.operations.ask",
    "foretell.operations.arena",
    "foretell.operations.grid",
    "foretell.runs.shared_runs",
    "foretell.operations.tournament",
    "foretell.tournaments.question_visit",
    "foretell.operations.tournament_results",
    "foretell.tournaments.round_visit",
    "foretell.arena.stages",
    "foretell.runs.worker",
    "foretell.runs.outcomes",
    "foretell.models.database.postgres",
    "foretell.mcp.server",
    "foretell.web.app",
    *(f"foretell.models.providers.{name}" for name in ("chat", "gemini", "llama_cpp", "messages", "responses")),
    *(f"foretell.models.providers.{name}" for name in ("function", "scripted", "services")),
    *(f"foretell.data.search.{name}" for name in ("news", "web")),
    *(f"foretell.data.markets.{name}" for name in ("kalshi", "manifold", "polymarket")),
    *(f"foretell.data.series.{name}" for name in ("acled", "dbnomics", "fred", "local", "wikipedia")),
    *("aiohttp", "anyio._backends._asyncio", "dbos", "genai_prices.data", "h2.connection", "httpcore2", "httpx2"),
    *("jinja2", "psycopg", "pytest", "rich.progress", "tarfile", "truststore", "uvloop", "yaml"),
    *("fakes.background", "fakes.billing", "fakes.markets", "fakes.models"),
)
"""Modules that the processes of all tests need; others are imported later."""


@cache
def forks() -> Any:
    """Start and return the fork server of `multiprocessing` that all of them are forked from."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    # It uses the import path of a new interpreter, not that of this one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context


class _Stream:
    """A file descriptor that is passed to another process."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _detached, (reduction.DupFd(self._number),)


def _detached(duplicate: Any) -> int:
    return duplicate.detach()


class ForkedCommand:
    """`foretell` with these arguments, with the interface of `subprocess.Popen` and text streams."""

    def __init__(
        self,
        arguments: Iterable[str | Path],
        *,
        cwd: str | Path,
        env: Mapping[str, str],
        stdout: int | IO[Any] = subprocess.DEVNULL,
        stderr: int | IO[Any] = subprocess.DEVNULL,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        """`constants` are set in the new process, by module:NAME, for example to shorten a pause."""
        self.stdout, out = _opened(stdout)
        self.stderr, err = (None, out) if stderr == subprocess.STDOUT else _opened(stderr)
        words = [str(argument) for argument in arguments]
        streams = _Stream(out), _Stream(err)
        self._process = forks().Process(target=_run, args=(words, str(cwd), dict(env), dict(constants or {}), *streams))
        self._process.start()
        self.pid: int = self._process.pid
        self._looking = Lock()
        self._readers: list[Thread] = []
        self._told = ["", ""]
        for number in {out, err}:
            os.close(number)

    @property
    def returncode(self) -> int | None:
        """Return the exit code, below 0 for the signal that ended it; None while it runs."""
        # The fork server returns it only once; a second thread that reads at the same time would get 255.
        with self._looking:
            return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code, as `poll` returns it."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends."""
        connection.wait([self._process.sentinel], timeout)
        if (ended := self.returncode) is None:
            raise subprocess.TimeoutExpired(["foretell"], timeout or 0)
        return ended

    def send_signal(self, number: int) -> None:
        """Send a signal to the process only; do nothing if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._process.kill()

    def terminate(self) -> None:
        """End it with SIGTERM."""
        self._process.terminate()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return what it writes to its pipes until it ends; after a timeout, the next call returns all of it."""
        if not self._readers:
            streams = enumerate((self.stdout, self.stderr))
            self._readers = [Thread(target=self._read, args=(n, s), daemon=True) for n, s in streams if s]
            for reader in self._readers:
                reader.start()
        self.wait(timeout)
        for reader in self._readers:
            reader.join()
        return self._told[0], self._told[1]

    def _read(self, place: int, stream: IO[str]) -> None:
        with stream:
            self._told[place] = stream.read()


def run_forked(
    arguments: Iterable[str | Path], *, cwd: str | Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command in its own process to the end, and return what it wrote."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = ForkedCommand(arguments, cwd=cwd, env=env, **pipes)
    communicate = process.communicate(timeout)
    return subprocess.CompletedProcess(list(arguments), process.wait(), *communicate)


LAUNCHER = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    socket.send_fds(line, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [1, 2])
    line.shutdown(socket.SHUT_WR)
    sys.exit(int(line.recv(16)))
"""


@contextmanager
def forked_on_path(folder: Path) -> Generator[None]:
    """Put a `foretell` command into a folder, for scripts with the folder on their PATH; it also runs in forks."""
    launcher = folder / "foretell"
    with TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as server:
        # Not in that folder, because the path of a socket is limited to about a hundred characters.
        address = f"{short}/forks"
        launcher.write_text(LAUNCHER.format(python=sys.executable, address=address), encoding="utf-8")
        launcher.chmod(0o755)
        server.bind(address)
        server.listen()
        serving = Thread(target=_serve, args=(server,), daemon=True)
        serving.start()
        yield
        server.shutdown(socket.SHUT_RDWR)
        serving.join()


def _serve(server: socket.socket) -> None:
    """Run one command after the other, until the socket is closed."""
    with suppress(OSError):
        while True:
            line, _ = server.accept()
            with line:
                message, streams, *_ = socket.recv_fds(line, 1 << 20, 2)
                while piece := line.recv(1 << 20):
                    message += piece
                arguments, cwd, env = json.loads(message)
                process = ForkedCommand(arguments, cwd=cwd, env=env, stdout=streams[0], stderr=streams[1])
                for number in streams:
                    os.close(number)
                line.sendall(str(process.wait()).encode())


def _opened(stream: int | IO[Any]) -> tuple[IO[str] | None, int]:
    """Return our end of a stream, if we read it, and a descriptor of the other end."""
    if stream == subprocess.PIPE:
        ours, theirs = os.pipe()
        return os.fdopen(ours, encoding="utf-8"), theirs
    if stream == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_WRONLY)
    return None, os.dup(stream if isinstance(stream, int) else stream.fileno())


def _run(arguments: list[str], cwd: str, env: dict[str, str], constants: dict[str, Any], out: int, err: int) -> None:
    """Set folder, environment and streams in the new process, then run the command as `python -m foretell` does."""
    for name, value in constants.items():
        module, _, constant = name.partition(":")
        setattr(import_module(module), constant, value)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for number, stream in ((out, 1), (err, 2)):
        os.dup2(number, stream)
    for number in {out, err}:
        os.close(number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", buffering=1) for number in (1, 2))
    sys.argv = ["foretell", *arguments]
    from foretell.cli.main import main

    try:
        main()
    finally:
        # Forks end without the cleanup of an interpreter.
        with suppress(BaseException):
            atexit._run_exitfuncs()
