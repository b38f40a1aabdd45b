"""The data proxy: it answers a notebook's requests from outside the sandbox, where the keys and the cutoff are kept.

Each connection carries one request: a line of JSON in, one response out. The client is not trusted, so every size,
count and duration is bounded.
"""

import asyncio
import hashlib
import json
import os
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from foretell.frozen import frozen
from foretell.models.rate_limits import MemoryLimits, RateLimit, RateLimiter
from foretell.questions.as_of import AsOf
from foretell.questions.trace import EmitEvent, LeakBlocked, ignore_event
from foretell.tools.notebook.endpoints import (
    Endpoint,
    check_parameters,
    describe_endpoint,
    summarize_endpoints,
)
from foretell.tools.notebook.limits import KIB, MIB
from foretell.tools.tool import LeakRefused, ToolFailed

SOCKET = "data.sock"


@frozen
class ProxyLimits:
    """Limits on the data requests of one notebook."""

    calls: int = 300
    at_once: int = 4
    per_second: float = 20.0
    """Maximum requests per second; faster ones are delayed."""
    request_bytes: int = 64 * KIB
    answer_bytes: int = 8 * MIB
    recorded_bytes: int = 64 * MIB
    """Bytes of requests and responses that are recorded so that the notebook can be rerun."""
    seconds: float = 60.0
    """Timeout of one call, in seconds."""
    connections: int = 16
    """Maximum number of open connections."""
    faults: int = 100
    """Maximum number of faults, such as lines that are not a request; after that nothing more is answered."""
    idle_seconds: float = 10.0
    """Seconds a client may take to send its request or to read the response."""


class DataProxy:
    """Serves the endpoints to one notebook as of one cutoff. Close it with the notebook."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        as_of: AsOf,
        *,
        limits: ProxyLimits | None = None,
        emit: EmitEvent = ignore_event,
    ) -> None:
        self._endpoints = {endpoint.path: endpoint for endpoint in endpoints}
        self._as_of = as_of
        self._limits = limits or ProxyLimits()
        self._emit = emit
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(self._limits.at_once)
        self._limiter = RateLimiter(MemoryLimits(), longest=self._limits.seconds)
        self._rate = [(RateLimit(most=1, seconds=1 / self._limits.per_second, held=False), 1.0)]
        self._asked = 0
        self._faults = 0
        self.calls: list[dict[str, Any]] = []
        """Every data request so far, in the order of the responses, as recorded with the cell that made it."""
        self.exchanges: list[dict[str, Any]] = []
        """Every request with its response, so that the notebook can be rerun without the proxy."""
        self._recorded = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that can be called."""
        return tuple(self._endpoints)

    async def serve(self, directory: Path, user: int | None = None) -> Path:
        """Listen on a socket in a directory, owned by `user` if given; return the socket's path."""
        await self.stop()
        path = directory / SOCKET
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._accept, path=path, limit=self._limits.request_bytes)
        if user is not None:
            os.chown(path, user, user)
        return path

    async def stop(self) -> None:
        """Stop listening and cancel the calls in flight."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        if len(self._open) >= self._limits.connections:
            self._fault()
            writer.transport.abort()
            return
        task = asyncio.create_task(self._talk(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _talk(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                line = await reader.readline()
            writer.write(await self._answer(line))
            async with asyncio.timeout(self._limits.idle_seconds):
                writer.close()
                await writer.wait_closed()
        except (OSError, ValueError, TimeoutError):  # a line too long is a ValueError
            self._fault()
        finally:
            writer.transport.abort()

    def _fault(self) -> None:
        """Count a fault; after too many, stop listening, so that a flood costs nothing more."""
        self._faults += 1
        if self._faults >= self._limits.faults and self._server is not None:
            self._server.close()

    async def _answer(self, line: bytes) -> bytes:
        await self._limiter.take("notebook", self._rate)
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        fields = cast("dict[str, Any]", request) if isinstance(request, dict) else {}
        try:
            if "doc" in fields:
                answer = b'{"result": %b}' % json.dumps(self._doc(fields["doc"])).encode()
            elif "call" in fields:
                answer = b'{"result": %b}' % await self._call(fields["call"], fields.get("params"))
            else:
                self._fault()
                raise ToolFailed("this is not a request")
        except ToolFailed as refusal:
            answer = json.dumps({"error": str(refusal)}).encode()
        self._recorded += len(line) + len(answer)
        if fields and self._recorded <= self._limits.recorded_bytes:
            self.exchanges.append({"request": fields, "answer": json.loads(answer)})
        return answer

    def _doc(self, paths: Any) -> str:
        if paths is None:
            lines = map(summarize_endpoints, self._endpoints.values())
            cutoff = f"Data as known at {self._as_of}. Ask with CALL_API(path, params)."
            return "\n".join([cutoff, *lines]) if self._endpoints else "There is no data to ask for."
        if not isinstance(paths, list):
            raise ToolFailed("retrieve_api_doc takes a list of paths")
        return "\n\n".join(describe_endpoint(self._endpoint(path)) for path in cast("list[Any]", paths)[:50])

    def _endpoint(self, path: Any) -> Endpoint:
        endpoint = self._endpoints.get(path) if isinstance(path, str) else None
        if endpoint is None:
            raise ToolFailed(f"there is no {str(path)[:100]!r}; paths are: {', '.join(self._endpoints) or 'none'}")
        return endpoint

    async def _call(self, path: Any, params: Any) -> bytes:
        """Return an endpoint's result as JSON or raise `ToolFailed`; both are recorded in `calls`."""
        endpoint = self._endpoint(path)
        fields = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        self._asked += 1
        if self._asked > self._limits.calls:
            raise ToolFailed(f"this notebook has made the {self._limits.calls} calls it may make")
        data, error = b"", ""
        try:
            data = await self._data(endpoint, fields)
        except TimeoutError:
            error = f"no answer within {self._limits.seconds:g} s"
        except ToolFailed as failure:
            error = self._failure(failure, endpoint)
        except Exception as broken:  # Errors of plugins are logged, and the notebook continues.
            self._emit(LeakBlocked(layer="data", reason=f"{endpoint.path} broke: {broken!r}"))
            error = "this source is broken"
        noted: dict[str, Any] = {"path": endpoint.path}
        if fields:
            noted["params"] = {str(name)[:100]: str(value)[:300] for name, value in list(fields.items())[:20]}
        if error:
            noted["error"] = error
        else:  # The digest shows later whether the data was the same.
            noted |= {"bytes": len(data), "digest": hashlib.sha256(data).hexdigest()[:16]}
        self.calls.append(noted)
        if error:
            raise ToolFailed(f"{endpoint.path}: {error}")
        return data

    async def _data(self, endpoint: Endpoint, params: Mapping[str, Any]) -> bytes:
        parsed = check_parameters(endpoint, params)
        async with self._turn, asyncio.timeout(self._limits.seconds):
            data = json.dumps(await endpoint.call(parsed, self._as_of)).encode()
        if len(data) > self._limits.answer_bytes:
            raise ToolFailed(f"the answer would be {len(data):,} bytes; ask for less at a time")
        return data

    def _failure(self, failure: ToolFailed, endpoint: Endpoint) -> str:
        """Return the message for a failure. In a backtest the cause is withheld, because it can reveal later events."""
        if isinstance(failure, LeakRefused):
            self._emit(LeakBlocked(layer=failure.refusal.layer, reason=failure.refusal.reason, title=endpoint.path))
            return str(failure)
        if self._as_of.mode == "live" or failure.__cause__ is None:
            return str(failure)
        self._emit(
            LeakBlocked(layer="data", reason=f"the cause of the failure is withheld: {failure}", title=endpoint.path)
        )
        return f"nothing could be admitted as of {self._as_of.at.date()}"
