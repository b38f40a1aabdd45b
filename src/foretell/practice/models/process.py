"""A fake provider in a process of its own, so that its work is not counted as its client's."""

import json
import subprocess
import sys
import urllib.request
from types import TracebackType
from typing import Any


class PracticeModelProcess:
    """Starts `python -m foretell.practice.models` on a free port and stops it at the end."""

    def __init__(self, *, latency: float = 0.0, brain: str | None = None) -> None:
        """`brain` names a function as module:name."""
        command = [sys.executable, "-m", "foretell.practice.models", "--port", "0", "--latency", str(latency)]
        self._process = subprocess.Popen([*command, *(["--brain", brain] if brain else [])], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().split()[-1]

    def __enter__(self) -> "PracticeModelProcess":
        """It is already listening."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def stats(self) -> dict[str, Any]:
        """What it counted so far."""
        return self._call("/_fake")

    def reset(self) -> None:
        """Let it start counting anew."""
        self._call("/_fake/reset", b"{}")

    def fail(self, *faults: dict[str, Any]) -> None:
        """Let the next requests go wrong."""
        self._call("/_fake/faults", json.dumps(faults).encode())

    def _call(self, path: str, data: bytes | None = None) -> dict[str, Any]:
        # Not through a proxy: it is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, data=data, timeout=30) as answer:
            return json.load(answer)
