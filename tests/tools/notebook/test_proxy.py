"""The data proxy answers valid requests and survives all others."""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from foretell.questions.as_of import AsOf
from foretell.questions.trace import LeakBlocked, TraceEvent
from foretell.tools.notebook.endpoints import Parameter, check_parameters
from foretell.tools.notebook.proxy import DataProxy, ProxyLimits
from foretell.tools.tool import LeakRefused, Refusal, ToolFailed

CUTOFF = AsOf.day("2025-10-26")


@dataclass
class Echo:
    """Answers with its parameters, or calls a given function."""

    does: Any = None
    seen: list[tuple[dict[str, Any], AsOf]] = field(default_factory=list[tuple[dict[str, Any], AsOf]])

    path = "/echo"
    documentation = "Says it again.\nAt length."
    parameters = (
        Parameter(name="word", meaning="what to say", needed=True),
        Parameter(name="times", meaning="how often", kind="number"),
        Parameter(name="day", meaning="when", kind="date"),
    )

    async def call(self, params: Mapping[str, Any], as_of: AsOf) -> Any:
        self.seen.append((dict(params), as_of))
        return await self.does() if self.does else {"said": params["word"]}


@asynccontextmanager
async def served(
    endpoint: Any = None, as_of: AsOf = CUTOFF, **limits: Any
) -> AsyncGenerator[tuple[DataProxy, Path, list[TraceEvent]]]:
    events: list[TraceEvent] = []
    chosen = {"per_second": 10_000.0, **limits}
    proxy = DataProxy([endpoint or Echo()], as_of, limits=ProxyLimits(**chosen), emit=events.append)
    with tempfile.TemporaryDirectory() as folder:
        path = await proxy.serve(Path(folder))
        try:
            yield proxy, path, events
        finally:
            await proxy.stop()


async def exchange(path: Path, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(data)
        await writer.drain()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def send_request(path: Path, **request: Any) -> Any:
    return json.loads(await exchange(path, json.dumps(request).encode() + b"\n"))


def test_calls_and_documentation_are_answered() -> None:
    echo = Echo()

    async def talk() -> list[Any]:
        async with served(echo) as (proxy, path, _):
            answers = [
                await send_request(path, call="/echo", params={"word": "hi", "times": 2, "day": "2025-01-02"}),
                await send_request(path, doc=None),
                await send_request(path, doc=["/echo"]),
            ]
            return [*answers, proxy.calls, proxy.paths]

    called, overview, doc, calls, paths = asyncio.run(talk())
    assert called == {"result": {"said": "hi"}}
    assert "/echo: Says it again." in overview["result"]
    assert "2025-10-26" in overview["result"]
    assert "word (text, needed): what to say" in doc["result"]
    assert "At length." in doc["result"]
    assert paths == ("/echo",)
    (params, as_of), *_ = echo.seen
    assert params["day"].isoformat() == "2025-01-02"
    assert as_of == CUTOFF
    (fact,) = calls
    assert fact["path"] == "/echo"
    assert fact["params"] == {"word": "hi", "times": "2", "day": "2025-01-02"}
    assert len(fact["digest"]) == 16


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"call": "/nope"}, "there is no '/nope'; paths are: /echo"),
        ({"call": "../../etc/shadow"}, "there is no"),
        ({"call": ["/echo"]}, "there is no"),
        ({"call": None}, "there is no"),
        ({"call": "/echo"}, "needs the parameter 'word'"),
        ({"call": "/echo", "params": []}, "needs the parameter 'word'"),
        ({"call": "/echo", "params": {"word": "x", "as_of": "2030-01-01"}}, "has no parameter 'as_of'"),
        ({"call": "/echo", "params": {"word": {"a": 1}}}, "'word' must be a text"),
        ({"call": "/echo", "params": {"word": ""}}, "'word' must be a text"),
        ({"call": "/echo", "params": {"word": "x" * 2_000}}, "'word' must be a text"),
        ({"call": "/echo", "params": {"word": "x", "times": "two"}}, "'times' must be a number"),
        ({"call": "/echo", "params": {"word": "x", "times": True}}, "'times' must be a number"),
        ({"call": "/echo", "params": {"word": "x", "day": "soon"}}, "'day' must be a date"),
        ({"doc": "all"}, "takes a list of paths"),
        ({"doc": ["/nope"]}, "there is no '/nope'"),
        ({"other": 1}, "this is not a request"),
    ],
)
def test_wrong_requests_get_an_error_message(request_: dict[str, Any], message: str) -> None:
    async def talk() -> Any:
        async with served() as (_, path, _):
            return await send_request(path, **request_)

    assert message in asyncio.run(talk())["error"]


def failing(error: Exception, cause: Exception | None = None) -> Any:
    async def fail() -> None:
        raise error from cause

    return fail


SOURCE = failing(ToolFailed("the series ended in 2027"), OSError("404"))


@pytest.mark.parametrize(
    ("does", "as_of", "message", "noted"),
    [
        (failing(ToolFailed("ask otherwise")), CUTOFF, "/echo: ask otherwise", 0),
        (SOURCE, CUTOFF, "/echo: nothing could be admitted as of 2025-10-26", 1),
        (SOURCE, AsOf.day("2025-10-26", mode="live"), "/echo: the series ended in 2027", 0),
        (failing(LeakRefused("closed", Refusal(layer="data", reason="later"))), CUTOFF, "/echo: closed", 1),
        (failing(KeyError("secret-key")), CUTOFF, "/echo: this source is broken", 1),
    ],
)
def test_failures(does: Any, as_of: AsOf, message: str, noted: int) -> None:
    async def talk() -> tuple[Any, list[TraceEvent], str]:
        async with served(Echo(does=does), as_of) as (proxy, path, events):
            return await send_request(path, call="/echo", params={"word": "x"}), events, proxy.calls[-1]["error"]

    answer, events, error = asyncio.run(talk())
    assert answer == {"error": message}
    assert message.endswith(error)
    assert len([event for event in events if isinstance(event, LeakBlocked)]) == noted


def test_slow_sources_large_answers_and_too_many_calls_fail() -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    async def large() -> str:
        return "x" * 100_000

    async def odd() -> object:
        return object()

    async def talk() -> list[Any]:
        answers: list[Any] = []
        for does in (slow, large, odd):
            async with served(Echo(does=does), seconds=0.05, answer_bytes=1_000) as (_, path, _):
                answers.append(await send_request(path, call="/echo", params={"word": "x"}))
        async with served(calls=2) as (_, path, _):
            answers += [await send_request(path, call="/echo", params={"word": "x"}) for _ in range(3)]
        return answers

    slow_one, large_one, odd_one, *rest = asyncio.run(talk())
    assert "no answer within 0.05 s" in slow_one["error"]
    assert "100,002 bytes; ask for less" in large_one["error"]
    assert "broken" in odd_one["error"]
    assert rest[1] == {"result": {"said": "x"}}
    assert "has made the 2 calls" in rest[2]["error"]


@pytest.mark.parametrize(
    "rubbish",
    [b"\n", b"{}\n", b"[1]\n", b"\xff\xfe\n", b'{"call": ' + b"[" * 50_000 + b"\n", b"GET / HTTP/1.1\r\n", b"nul\0l\n"],
)
def test_invalid_requests_get_an_error_and_do_no_harm(rubbish: bytes) -> None:
    async def talk() -> tuple[bytes, Any]:
        async with served() as (_, path, _):
            return await exchange(path, rubbish), await send_request(path, call="/echo", params={"word": "on"})

    answer, after = asyncio.run(talk())
    assert json.loads(answer) == {"error": "this is not a request"}
    assert after == {"result": {"said": "on"}}


def test_endless_line_is_cut_off() -> None:
    async def talk() -> tuple[bytes, Any]:
        async with served(request_bytes=1_000) as (_, path, _):
            return await exchange(path, b"x" * 1_000_000), await send_request(path, call="/echo", params={"word": "on"})

    answer, after = asyncio.run(talk())
    assert answer == b""
    assert after == {"result": {"said": "on"}}


def test_silent_connections_are_closed() -> None:
    async def talk() -> tuple[list[bytes], Any]:
        async with served(connections=2, idle_seconds=0.1) as (_, path, _):
            silent = await asyncio.gather(*(exchange(path, b"") for _ in range(4)))
            return silent, await send_request(path, call="/echo", params={"word": "on"})

    silent, after = asyncio.run(talk())
    assert silent == [b""] * 4
    assert after == {"result": {"said": "on"}}


def test_too_many_faults_stop_the_proxy() -> None:
    async def talk() -> DataProxy:
        async with served(faults=5) as (proxy, path, _):
            for _ in range(5):
                await exchange(path, b"rubbish\n")
            with pytest.raises((ConnectionError, FileNotFoundError)):  # Newer Pythons remove the socket.
                await exchange(path, b"rubbish\n")
            return proxy

    asyncio.run(talk())


def test_requests_are_rate_limited() -> None:
    async def talk() -> Any:
        async with served(per_second=0.01) as (_, path, _):
            first = await send_request(path, doc=None)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(send_request(path, doc=None), 0.2)
            return first

    assert "result" in asyncio.run(talk())


def test_proxy_can_serve_again_in_another_directory() -> None:
    async def talk() -> list[Any]:
        async with served() as (proxy, path, _):
            first = await send_request(path, call="/echo", params={"word": "a"})
            again = await proxy.serve(path.parent)
            return [first, await send_request(again, call="/echo", params={"word": "b"}), len(proxy.calls)]

    assert asyncio.run(talk()) == [{"result": {"said": "a"}}, {"result": {"said": "b"}}, 2]


def test_omitted_parameters_are_not_passed() -> None:
    assert check_parameters(Echo(), {"word": "x", "times": None}) == {"word": "x"}
