"""Model servers for tests: they count what they bill and fail on demand, in this process or in their own."""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self

from fakes.background import Background
from foretell.practice.models.formats import ModelQuery, ProviderFormat, ScriptedReply, format_of
from foretell.practice.models.scripts import tree_script
from foretell.practice.models.server import PracticeModels, Script
from foretell.practice.server import ServerRequest, ServerResponse, json_response

REMEMBERED = 1000
"""Queries kept for inspection."""


@dataclass(frozen=True, kw_only=True)
class ModelFault:
    """A fault for one request."""

    kind: Literal["status", "slow", "cut", "hang_up", "malformed", "empty", "refusal"]
    status: int = 500
    wait: float | None = None
    """Seconds for a Retry-After header."""
    seconds: float = 0.0
    """Delay of `slow`."""
    message: str = "a fake failure"


class FakeModels(PracticeModels):
    """Local sandbox models that count requests and completions, and can make the next requests fail."""

    def __init__(
        self, script: Script | Iterable[ScriptedReply] | None = None, *, latency: float = 0.0, port: int = 0
    ) -> None:
        super().__init__(script, latency=latency, port=port)
        self._faults: deque[ModelFault] = deque()
        self._fault: ModelFault | None = None
        self.reset()

    def reset(self) -> None:
        """Reset all counts."""
        self.arrived = 0
        """Number of requests, including failed ones."""
        self.billed: Counter[str] = Counter()
        """Completions by the hash of the request: everything a provider would bill."""
        self.queries: deque[ModelQuery] = deque(maxlen=REMEMBERED)
        self.times: deque[float] = deque(maxlen=100_000)
        """Arrival times of requests, in seconds of a monotonic clock."""
        self.under_way = 0
        self.peak = 0
        """Maximum number of concurrent requests."""
        self._faults.clear()

    def fail(self, fault: ModelFault, *, times: int = 1) -> None:
        """Make the next requests fail."""
        self._faults.extend([fault] * times)

    def stats(self) -> dict[str, Any]:
        """Return the counts."""
        counted = {"arrived": self.arrived, "peak": self.peak, "under_way": self.under_way}
        return {**counted, "billed": dict(self.billed), "times": list(self.times)}

    def answer(self, request: ServerRequest, send: Callable[[ServerResponse], None]) -> None:
        if request.path.startswith("/_fake"):
            send(self._control(request))
            return
        self.arrived += 1
        self.times.append(time.monotonic())
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)

        def sent(response: ServerResponse) -> None:
            self.under_way -= 1
            send(response)

        super().answer(request, sent)

    def respond(self, request: ServerRequest) -> ServerResponse:
        format = format_of(request.path)
        fault = self._faults.popleft() if self._faults and format is not None else None
        if format is not None and fault is not None and fault.kind == "status":
            headers = {} if fault.wait is None else {"Retry-After": f"{fault.wait:g}"}
            return json_response(format.error(fault.status, fault.message), fault.status, headers)
        self._fault = fault
        return super().respond(request)

    def complete(self, format: ProviderFormat, query: ModelQuery) -> ServerResponse:
        self.queries.append(query)
        kind = self._fault.kind if self._fault else ""
        instead = {
            "empty": ScriptedReply(),
            "refusal": ScriptedReply(text="I cannot help with that.", finish="refusal"),
        }.get(kind)
        body = json.dumps(format.reply(instead or self.script(query), query)).encode()
        self.billed[query.hash] += 1
        if kind == "malformed":
            body = body[: len(body) // 2]
        cut = {"cut": len(body) // 2, "hang_up": 0}.get(kind)
        delay = self._fault.seconds if self._fault and kind == "slow" else 0.0
        return ServerResponse(body=body, headers={"Content-Type": "application/json"}, delay=delay, cut=cut)

    def _control(self, request: ServerRequest) -> ServerResponse:
        """For another process: GET /_fake counts, POST /_fake/reset, POST /_fake/faults with a list of faults."""
        if request.path == "/_fake/reset":
            self.reset()
        elif request.path == "/_fake/faults":
            self._faults.extend(ModelFault(**fault) for fault in request.json())
        return json_response(self.stats() | {"faults": [asdict(fault) for fault in self._faults]})


class FakeDeepResearch(FakeModels):
    """Models of which some do their own research."""

    def __init__(self, script: Script = tree_script, *, states_p: bool = True) -> None:
        super().__init__(script)
        self.research.states_p = states_p

    @property
    def asked(self) -> list[Any]:
        """Bodies of all researches."""
        return self.research.requests

    @property
    def read(self) -> list[str]:
        """Everything the MCP server returned."""
        return self.research.read


def script_named(name: str | None) -> Script | None:
    """Return a function named as module:name."""
    module, _, attribute = (name or ":").partition(":")
    return getattr(import_module(module), attribute) if module else None


class BackgroundModels(Background[FakeModels]):
    """Fake models that answer from a thread, so that a test and the commands it runs can wait for them."""

    def __init__(self, *, latency: float = 0.0, script: str | None = None) -> None:
        """`script` names a function as module:name."""
        super().__init__(lambda: FakeModels(script_named(script), latency=latency))

    def stats(self) -> dict[str, Any]:
        """Return the counts so far."""
        return self.server.stats()

    def reset(self) -> None:
        """Reset the counts."""
        self.server.reset()

    def fail(self, *faults: dict[str, Any]) -> None:
        """Make the next requests fail."""
        for fault in faults:
            self.server.fail(ModelFault(**fault))


class FakeModelProcess:
    """Fake models in their own process on a free port, so that their CPU time is not counted as their client's."""

    def __init__(self, *, latency: float = 0.0, script: str | None = None) -> None:
        """`script` names a function as module:name."""
        command = [sys.executable, "-m", "fakes.models", "--latency", str(latency)]
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [*command, *(["--script", script] if script else [])],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().split()[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def stats(self) -> dict[str, Any]:
        """Return the counts so far."""
        return self._call("/_fake")

    def reset(self) -> None:
        """Reset the counts."""
        self._call("/_fake/reset", b"{}")

    def fail(self, *faults: dict[str, Any]) -> None:
        """Make the next requests fail."""
        self._call("/_fake/faults", json.dumps(faults).encode())

    def _call(self, path: str, data: bytes | None = None) -> dict[str, Any]:
        # Do not use a proxy, because it is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, data=data, timeout=30) as answer:
            return json.load(answer)


async def _serve(options: argparse.Namespace) -> None:
    async with FakeModels(script_named(options.script), latency=options.latency) as models:
        print(f"fake models listen on {models.url}", flush=True)
        stopped = asyncio.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
        await stopped.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fakes.models", description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every reply")
    parser.add_argument("--script", help="module:function from a query to a reply; improvised without")
    work = _serve(parser.parse_args())
    try:
        import uvloop  # pyright: ignore[reportMissingImports] - faster where it is installed
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


if __name__ == "__main__":
    main()
