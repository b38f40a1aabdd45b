"""Fixtures of the notebook tests: an event loop in its own thread, kernel pools, and canaries on the host."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from foretell.tools.notebook.limits import MIB, KernelLimits
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.sandbox import SandboxUnavailable
from foretell.tools.notebook.sandbox_check import check_sandbox

T = TypeVar("T")
TIGHT = KernelLimits(
    memory=400 * MIB,
    address_space=1_500 * MIB,
    processes=60,
    file_bytes=8 * MIB,
    disk_bytes=24 * MIB,
    disk_entries=2_000,
    tmp_bytes=16 * MIB,
    trial_seconds=10.0,
    grace_seconds=0.5,
    cpu_seconds=60,
)


class Loop:
    """An event loop that runs during all tests, so that kernels can start in advance."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float = 120.0) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(seconds)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def sandboxed(loop: Loop) -> None:
    """Skip a test, with the reason, if notebooks cannot be sandboxed."""
    pytest.importorskip("ipykernel")
    try:
        loop.run(check_sandbox(KernelLimits()))
    except SandboxUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def tight_pool(loop: Loop, sandboxed: None) -> Iterator[KernelPool]:
    """Kernels with low limits."""
    pool = loop.run(KernelPool(warm=2, most=2, limits=TIGHT, preload=()).__aenter__())
    yield pool
    loop.run(pool.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def roomy_pool(loop: Loop, sandboxed: None) -> Iterator[KernelPool]:
    """Kernels within the usual limits and with the usual libraries."""
    pool = loop.run(KernelPool(warm=1, most=3).__aenter__())
    yield pool
    loop.run(pool.__aexit__(None, None, None))


class Canaries:
    """A secret, a server, sockets and a process on the host that notebooks must not reach."""

    def __init__(self, folder: Path, name: str = "host") -> None:
        self.secret = folder / "secret.txt"
        self.secret.write_text("the host's secret", encoding="utf-8")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.tcp.setblocking(False)
        self.port = self.tcp.getsockname()[1]
        self.unix_path = Path(tempfile.mkdtemp()) / "socket"
        self.abstract = f"\0foretell-canary-{name}-{os.getpid()}"
        self.sockets = [self._listening(str(self.unix_path)), self._listening(self.abstract)]
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        self.settings = self._settings()

    @staticmethod
    def _listening(address: str) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(address)
        listening.listen()
        listening.setblocking(False)
        return listening

    @staticmethod
    def _settings() -> str:
        return Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8")

    @property
    def names(self) -> dict[str, str]:
        """Facts about the host that attacks can use, by name."""
        return {
            "port": str(self.port),
            "secret!r": repr(str(self.secret)),
            "unix_path!r": repr(str(self.unix_path)),
            "abstract!r": repr(self.abstract),
            "home!r": repr(str(Path.home())),
            "process": str(self.process.pid),
            "parent": str(os.getpid()),
        }

    def check(self) -> None:
        assert self.secret.read_text(encoding="utf-8") == "the host's secret"
        assert self.process.poll() is None
        assert self._settings() == self.settings
        for listening in (self.tcp, *self.sockets):
            with pytest.raises(BlockingIOError):
                listening.accept()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for listening in (self.tcp, *self.sockets):
            listening.close()
        shutil.rmtree(self.unix_path.parent)


@pytest.fixture(scope="session")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    os.environ["FORETELL_CANARY_KEY"] = "sk-canary"
    host = Canaries(tmp_path_factory.mktemp("host"))
    yield host
    host.close()
    del os.environ["FORETELL_CANARY_KEY"]
