"""Fake providers on a port of this machine: they say what they are told, fail on demand, and count what they bill."""

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from types import TracebackType
from typing import Any, Literal, cast

from foretell.practice.models.formats import (
    AnthropicFormat,
    GeminiFormat,
    ModelQuery,
    OpenAIFormat,
    ProviderFormat,
    ScriptedCall,
    ScriptedReply,
)

# Just enough HTTP/1.1 to be a provider, fast enough that the fake is never what a benchmark measures.


@dataclass(frozen=True, kw_only=True)
class ModelHttpRequest:
    """A request, read to its end."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class ModelHttpResponse:
    """What to send back, and how badly."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    after: float = 0.0
    """Seconds to wait before the first byte."""
    cut: int | None = None
    """Send only so many bytes of the body, then hang up; 0 hangs up without a word."""


class ModelHttpConnection(asyncio.Protocol):
    """One client; requests on a connection are answered one after the other."""

    def __init__(self, answer: Callable[[ModelHttpRequest], ModelHttpResponse], done: Callable[[bool], None]) -> None:
        """`done` hears of every answer whether the client was still there to get it."""
        self._answer = answer
        self._done = done
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of asyncio's.

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        self._buffer += data
        while (asked := self._next()) is not None:
            answered = self._answer(asked)
            if answered.after > 0:
                asyncio.get_running_loop().call_later(answered.after, self._send, answered)
            else:
                self._send(answered)

    def _next(self) -> ModelHttpRequest | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        size = end + 4 + int(headers.get("content-length", "0"))
        if len(self._buffer) < size:
            return None
        method, path, _ = lines[0].split(" ", 2)
        body = bytes(self._buffer[end + 4 : size])
        del self._buffer[:size]
        return ModelHttpRequest(method=method, path=path, headers=headers, body=body)

    def _send(self, answered: ModelHttpResponse) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            self._done(False)
            return
        body = answered.body if answered.cut is None else answered.body[: answered.cut]
        if answered.cut != 0:
            head = [f"HTTP/1.1 {answered.status} Fake", "Content-Type: application/json"]
            head += [f"Content-Length: {len(answered.body)}"]
            head += [f"{name}: {value}" for name, value in answered.headers.items()]
            transport.write("\r\n".join([*head, "", ""]).encode("latin-1") + body)
        if answered.cut is not None:
            transport.close()
        self._done(True)


# What a fake says when nobody told it what to say: something that fits, the same every time.


def improvise(heard: ModelQuery) -> ScriptedReply:
    """Call the tool that is forced, or the first on offer; else JSON for the schema; else a sentence."""
    number = int(heard.hash[:8], 16) / 0xFFFFFFFF
    if heard.force or heard.tools:
        tool = next((tool for tool in heard.tools if tool.name == heard.force), heard.tools[0])
        return ScriptedReply(calls=(ScriptedCall(name=tool.name, arguments=example(tool.schema, number)),))
    if heard.schema is not None:
        return ScriptedReply(text=json.dumps(example(heard.schema, number)))
    return ScriptedReply(text=f"You said: {heard.last[:200]}")


def example(schema: Mapping[str, Any], number: float, *, root: Mapping[str, Any] | None = None) -> Any:
    """A value that fits a JSON schema; numbers are `number` put into their range.

    >>> example({"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}, 0.25)
    {'p': 0.25}
    """
    root = schema if root is None else root
    if "$ref" in schema:
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found[step]
        return example(found, number, root=root)
    for fixed in ("const", "default"):
        if schema.get(fixed) is not None:
            return schema[fixed]
    if schema.get("enum"):
        return schema["enum"][0]
    choices = schema.get("anyOf") or schema.get("oneOf")
    return example(choices[0], number, root=root) if choices else _of_type(schema, number, root)


def _of_type(schema: Mapping[str, Any], number: float, root: Mapping[str, Any]) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else str(kind).lower():
        case "object":
            parts: Mapping[str, Any] = schema.get("properties", {})
            return {name: example(part, number, root=root) for name, part in parts.items()}
        case "array":
            return [example(schema.get("items") or {}, number, root=root)] * max(1, schema.get("minItems", 1))
        case "number":
            return round(_within(schema, number), 6)
        case "integer":
            return int(_within(schema, number * 100))
        case "boolean":
            return number > 0.5
        case "null":
            return None
        case _:
            return "made up".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength", 100)]


def _within(schema: Mapping[str, Any], number: float) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", min(0, number)))
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(number, low)))
    return low + (high - low) * number if "minimum" in schema and "maximum" in schema else min(max(number, low), high)


ProviderKind = Literal["status", "slow", "cut", "hang_up", "malformed", "empty", "refusal"]
Script = Callable[[ModelQuery], ScriptedReply]
FORMATS: tuple[ProviderFormat, ...] = (OpenAIFormat(), AnthropicFormat(), GeminiFormat())
REMEMBERED = 1000
"""Requests kept for inspection."""


@dataclass(frozen=True, kw_only=True)
class ModelFault:
    """What goes wrong with one request."""

    kind: ProviderKind
    status: int = 500
    wait: float | None = None
    """Seconds for a Retry-After header."""
    seconds: float = 0.0
    """How slow `slow` is."""
    told: str = "a fake failure"


class PracticeModels:
    """All three formats on one port. Use as an async context manager; `url` is then the address without a path.

    Replies come from `say`: a function of the request, or a list used up in order; without it they are improvised.
    """

    def __init__(self, say: Script | Iterable[ScriptedReply] | None = None, *, latency: float = 0.0) -> None:
        self._brain = say if callable(say) else improvise if say is None else _in_order(say)
        self._server: asyncio.Server | None = None
        self._faults: deque[ModelFault] = deque()
        self.latency = latency
        self.url = ""
        self.reset()

    def reset(self) -> None:
        """Forget everything that was counted."""
        self.arrived = 0
        """Requests, failed ones too."""
        self.billed: Counter[str] = Counter()
        """Completions by the hash of what was asked: everything a provider would send a bill for."""
        self.heard: deque[ModelQuery] = deque(maxlen=REMEMBERED)
        self.times: deque[float] = deque(maxlen=100_000)
        """When requests arrived, in seconds of a monotonic clock."""
        self.under_way = 0
        self.peak = 0
        """Most requests under way at once."""
        self._faults.clear()

    def fail(self, fault: ModelFault, *, times: int = 1) -> None:
        """Let the next requests go wrong."""
        self._faults.extend([fault] * times)

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> None:
        """Listen; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: ModelHttpConnection(self._answer, self._ended), host, port, backlog=2048
        )
        self.url = f"http://{host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def __aenter__(self) -> "PracticeModels":
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

    def _answer(self, asked: ModelHttpRequest) -> ModelHttpResponse:
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

    def _refuse(self, spoken: ProviderFormat, fault: ModelFault) -> ModelHttpResponse:
        headers = {} if fault.wait is None else {"Retry-After": f"{fault.wait:g}"}
        return _json(fault.status, spoken.fail(fault.status, fault.told), headers)

    def _complete(self, spoken: ProviderFormat, heard: ModelQuery, fault: ModelFault | None) -> ModelHttpResponse:
        kind = fault.kind if fault else ""
        said = {
            "empty": ScriptedReply(),
            "refusal": ScriptedReply(text="I cannot help with that.", finish="refusal"),
        }.get(kind)
        body = json.dumps(spoken.say(said or self._brain(heard), heard)).encode()
        self.billed[heard.hash] += 1
        if kind == "malformed":
            body = body[: len(body) // 2]
        cut = {"cut": len(body) // 2, "hang_up": 0}.get(kind)
        slow = fault.seconds if fault and kind == "slow" else 0.0
        return ModelHttpResponse(body=body, after=self.latency + slow, cut=cut)

    def _control(self, asked: ModelHttpRequest) -> ModelHttpResponse:
        """For another process: GET /_fake counts, POST /_fake/reset, POST /_fake/faults with a list of faults."""
        if asked.path == "/_fake/reset":
            self.reset()
            self.under_way = 1
        elif asked.path == "/_fake/faults":
            self._faults.extend(ModelFault(**fault) for fault in json.loads(asked.body))
        self.under_way -= 1
        found = self.stats() | {"faults": [asdict(fault) for fault in self._faults]}
        self.under_way += 1
        return _json(200, found)


def _json(status: int, value: Any, headers: dict[str, str] | None = None) -> ModelHttpResponse:
    return ModelHttpResponse(status=status, body=json.dumps(value).encode(), headers=headers or {})


def _in_order(lines: Iterable[ScriptedReply]) -> Script:
    rest = iter(lines)

    def say(_heard: ModelQuery) -> ScriptedReply:
        return next(rest, ScriptedReply(text="the script of this fake is used up"))

    return say
