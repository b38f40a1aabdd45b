"""A real client and a real server process with fake services."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes.processes import ForkedCommand, run_forked

INHERITED = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")
DOCUMENTS = [
    {
        "url": "https://news.example/old",
        "title": "Council on the harbour bridge",
        "text": "The council discussed the harbour bridge. Members expect a vote in autumn.",
        "published": "2026-06-01",
    },
    {
        "url": "https://news.example/late",
        "title": "Approved: the harbour bridge",
        "text": "The harbour bridge was approved.",
        "published": "2026-09-01",
    },
    {
        "url": "https://news.example/leak",
        "title": "About the harbour bridge",
        "text": "LEAK ME harbour bridge",
        "published": "2026-05-01",
    },
]


@dataclass(frozen=True, kw_only=True)
class ServerHome:
    """A home, a corpus and a directory of files; servers are started in it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def whole_environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        away = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        return {**inherited, **away, "FORETELL_HOME": str(self.folder / "home"), **self.environment}

    def foretell(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return run_forked(arguments, cwd=self.folder, env=self.whole_environment, timeout=60)

    def start(self, *arguments: str | Path, env: dict[str, str]) -> ForkedCommand:
        """Start the command in its own process."""
        return ForkedCommand(arguments, cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    @asynccontextmanager
    async def client(self, *options: str | Path) -> AsyncGenerator[Any]:
        """Yield a client of a new server over standard input and output."""
        from mcp.client.client import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        words = ["-m", "foretell.cli.main", "mcp", *map(str, options)]
        server = StdioServerParameters(command=sys.executable, args=words, env=self.whole_environment)
        with open(self.folder / "stderr.txt", "w", encoding="utf-8") as noise:
            async with Client(stdio_client(server, errlog=noise)) as client:
                yield client

    @asynccontextmanager
    async def http(self, token: str, *options: str | Path) -> AsyncGenerator[str]:
        """Yield the address of a server over HTTP."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {**self.whole_environment, **({"FORETELL_TOKEN": token} if token else {})}
        process = self.start("mcp", "--http", "--port", str(port), *options, env=environment)
        try:
            await asyncio.to_thread(_until_open, port, process)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _until_open(port: int, process: ForkedCommand) -> None:
    for _ in range(300):
        if process.poll() is not None:
            raise AssertionError(process.communicate()[1])
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server never listened")


def parsed(result: Any) -> dict[str, Any]:
    """Return the answer of a successful tool call."""
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def problem(result: Any) -> str:
    """Return the error text of a failed tool call."""
    assert result.is_error, result.content[0].text
    return result.content[0].text
