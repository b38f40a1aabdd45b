"""Commands of foretell in processes of their own, forked from one that has imported everything.

They are killed, stopped and woken as any other; only the seconds that a new interpreter takes to import are spent once.
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
    "foretell.operations.shared_runs",
    "foretell.operations.tournament",
    "foretell.operations.tournament_platforms",
    "foretell.operations.tournament_results",
    "foretell.operations.tournament_round",
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
    *("jinja2", "psycopg", "pytest", "rich.progress", "scipy.special", "tarfile", "truststore", "uvloop", "yaml"),
    *("fakes.background", "fakes.billing", "fakes.markets", "fakes.models"),
)
"""What the processes of all tests need between them; what is missing here is only imported later."""


@cache
def forks() -> Any:
    """The server that all of them are forked from, as `multiprocessing` calls it; it starts now."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    # It looks for what it imports where a new interpreter would, not where this one has learnt to.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context


class _Stream:
    """A descriptor that another process is given."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _detached, (reduction.DupFd(self._number),)


def _detached(duplicate: Any) -> int:
    return duplicate.detach()


class ForkedCommand:
    """`foretell` with these arguments, as `subprocess.Popen` would start it: text streams, the same names."""

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
        """`constants` are set in the new process, by module:NAME, such as a pause that a test need not wait for."""
        self.stdout, out = _opened(stdout)
        self.stderr, err = (None, out) if stderr == subprocess.STDOUT else _opened(stderr)
        given = [str(argument) for argument in arguments]
        streams = _Stream(out), _Stream(err)
        self._process = forks().Process(target=_run, args=(given, str(cwd), dict(env), dict(constants or {}), *streams))
        self._process.start()
        self.pid: int = self._process.pid
        self._looking = Lock()
        self._readers: list[Thread] = []
        self._told = ["", ""]
        for number in {out, err}:
            os.close(number)

    @property
    def returncode(self) -> int | None:
        """As a shell has it, below 0 for the signal that ended it; None while it runs."""
        # It can be read from the fork server once: of two threads that look at a time, the second would read 255.
        with self._looking:
            return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it ends."""
        connection.wait([self._process.sentinel], timeout)
        if (ended := self.returncode) is None:
            raise subprocess.TimeoutExpired(["foretell"], timeout or 0)
        return ended

    def send_signal(self, number: int) -> None:
        """To the process alone; nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """With SIGKILL."""
        self._process.kill()

    def terminate(self) -> None:
        """With SIGTERM."""
        self._process.terminate()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it still writes to its pipes until it ends; asked again after too short a time, all of it."""
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
    """A command carried out to its end in a process of its own, and what it wrote."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = ForkedCommand(arguments, cwd=cwd, env=env, **pipes)
    told = process.communicate(timeout)
    return subprocess.CompletedProcess(list(arguments), process.wait(), *told)


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
    """Puts a `foretell` into a folder, for scripts that have it on their PATH: it is carried out by forks as well."""
    launcher = folder / "foretell"
    with TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as server:
        # Not in that folder: the name of a socket may have no more than a hundred characters.
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
    """One command after the other, until nobody can ask any more."""
    with suppress(OSError):
        while True:
            line, _ = server.accept()
            with line:
                told, streams, *_ = socket.recv_fds(line, 1 << 20, 2)
                while piece := line.recv(1 << 20):
                    told += piece
                arguments, cwd, env = json.loads(told)
                process = ForkedCommand(arguments, cwd=cwd, env=env, stdout=streams[0], stderr=streams[1])
                for number in streams:
                    os.close(number)
                line.sendall(str(process.wait()).encode())


def _opened(wanted: int | IO[Any]) -> tuple[IO[str] | None, int]:
    """Our end of a stream, where we read it, and a descriptor of the other one."""
    if wanted == subprocess.PIPE:
        ours, theirs = os.pipe()
        return os.fdopen(ours, encoding="utf-8"), theirs
    if wanted == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_WRONLY)
    return None, os.dup(wanted if isinstance(wanted, int) else wanted.fileno())


def _run(arguments: list[str], cwd: str, env: dict[str, str], constants: dict[str, Any], out: int, err: int) -> None:
    """In the new process: place, environment and streams, then the command as `python -m foretell` has it."""
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
        # The fork ends without what an interpreter does at its end.
        with suppress(BaseException):
            atexit._run_exitfuncs()
