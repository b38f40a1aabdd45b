"""Fake providers on a port of this machine: they say what they are told, fail on demand, and count what they bill."""

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from types import TracebackType
from typing import Any, Literal

from foretell.fakes.providers.anthropic import AnthropicFormat
from foretell.fakes.providers.gemini import GeminiFormat
from foretell.fakes.providers.heard import Format, Heard, Said
from foretell.fakes.providers.http import Answered, Asked, Connection
from foretell.fakes.providers.improvise import improvise
from foretell.fakes.providers.openai import OpenAIFormat

Kind = Literal["status", "slow", "cut", "hang_up", "malformed", "empty", "refusal"]
Brain = Callable[[Heard], Said]
FORMATS: tuple[Format, ...] = (OpenAIFormat(), AnthropicFormat(), GeminiFormat())
REMEMBERED = 1000
"""Requests kept for inspection."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong with one request."""

    kind: Kind
    status: int = 500
    wait: float | None = None
    """Seconds for a Retry-After header."""
    seconds: float = 0.0
    """How slow `slow` is."""
    told: str = "a fake failure"


class FakeProviders:
    """All three formats on one port. Use as an async context manager; `url` is then the address without a path.

    Replies come from `say`: a function of the request, or a list used up in order; without it they are improvised.
    """

    def __init__(self, say: Brain | Iterable[Said] | None = None, *, latency: float = 0.0) -> None:
        self._brain = say if callable(say) else improvise if say is None else _in_order(say)
        self._server: asyncio.Server | None = None
        self._faults: deque[Fault] = deque()
        self.latency = latency
        self.url = ""
        self.reset()

    def reset(self) -> None:
        """Forget everything that was counted."""
        self.arrived = 0
        """Requests, failed ones too."""
        self.billed: Counter[str] = Counter()
        """Completions by the hash of what was asked: everything a provider would send a bill for."""
        self.heard: deque[Heard] = deque(maxlen=REMEMBERED)
        self.times: deque[float] = deque(maxlen=100_000)
        """When requests arrived, in seconds of a monotonic clock."""
        self.under_way = 0
        self.peak = 0
        """Most requests under way at once."""
        self._faults.clear()

    def fail(self, fault: Fault, *, times: int = 1) -> None:
        """Let the next requests go wrong."""
        self._faults.extend([fault] * times)

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> None:
        """Listen; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self._answer, self._ended), host, port, backlog=2048)
        self.url = f"http://{host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def __aenter__(self) -> "FakeProviders":
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()

    def stats(self) -> dict[str, Any]:
        """What was counted."""
        counted = {"arrived": self.arrived, "peak": self.peak, "under_way": self.under_way}
        return {**counted, "billed": dict(self.billed), "times": list(self.times)}

    def _ended(self, _delivered: bool) -> None:
        self.under_way -= 1

    def _answer(self, asked: Asked) -> Answered:
        self.under_way += 1
        if asked.path.startswith("/_fake"):
            return self._control(asked)
        self.arrived += 1
        self.times.append(time.monotonic())
        self.peak = max(self.peak, self.under_way)
        spoken = next((one for one in FORMATS if one.owns(asked.path)), None)
        if spoken is None:
            return _json(404, {"error": {"message": f"nothing lives at {asked.path}"}})
        fault = self._faults.popleft() if self._faults else None
        if fault is not None and fault.kind == "status":
            return self._refuse(spoken, fault)
        digest = sha256(asked.path.encode() + b"\n" + asked.body).hexdigest()
        try:
            heard = spoken.hear(asked.path, json.loads(asked.body), digest)
        except (ValueError, KeyError, TypeError) as error:
            return _json(400, spoken.fail(400, f"not understood: {error!r}"))
        self.heard.append(heard)
        return self._complete(spoken, heard, fault)

    def _refuse(self, spoken: Format, fault: Fault) -> Answered:
        headers = {} if fault.wait is None else {"Retry-After": f"{fault.wait:g}"}
        return _json(fault.status, spoken.fail(fault.status, fault.told), headers)

    def _complete(self, spoken: Format, heard: Heard, fault: Fault | None) -> Answered:
        kind = fault.kind if fault else ""
        said = {"empty": Said(), "refusal": Said(text="I cannot help with that.", finish="refusal")}.get(kind)
        body = json.dumps(spoken.say(said or self._brain(heard), heard)).encode()
        self.billed[heard.hash] += 1
        if kind == "malformed":
            body = body[: len(body) // 2]
        cut = {"cut": len(body) // 2, "hang_up": 0}.get(kind)
        slow = fault.seconds if fault and kind == "slow" else 0.0
        return Answered(body=body, after=self.latency + slow, cut=cut)

    def _control(self, asked: Asked) -> Answered:
        """For another process: GET /_fake counts, POST /_fake/reset, POST /_fake/faults with a list of faults."""
        if asked.path == "/_fake/reset":
            self.reset()
            self.under_way = 1
        elif asked.path == "/_fake/faults":
            self._faults.extend(Fault(**fault) for fault in json.loads(asked.body))
        self.under_way -= 1
        found = self.stats() | {"faults": [asdict(fault) for fault in self._faults]}
        self.under_way += 1
        return _json(200, found)


def _json(status: int, value: Any, headers: dict[str, str] | None = None) -> Answered:
    return Answered(status=status, body=json.dumps(value).encode(), headers=headers or {})


def _in_order(lines: Iterable[Said]) -> Brain:
    rest = iter(lines)

    def say(_heard: Heard) -> Said:
        return next(rest, Said(text="the script of this fake is used up"))

    return say
