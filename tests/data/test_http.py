"""The HTTP client over real sockets and a scripted transport: retries, limits, redirects and hidden keys."""

import asyncio
import logging
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fakes.answers import respond
from fakes.faults import busy, cut_off, failing, inject, slow
from foretell.data.http import AsyncHttpClient, HttpLimits, HttpResponse, SourceError
from foretell.data.service_limits import ServiceAccess
from foretell.outgoing.client import Answer, ConnectionBroke, FunctionTransport, HttpRequest, NotConnected
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response
from foretell.runs.settings import Settings

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0, max_bytes=100_000)
CANARY = "sk-canary/7+7"


def served(use: Callable[[PracticeServer, AsyncHttpClient], Awaitable[object]], **options: object) -> PracticeServer:
    """Run `use` against a server that responds with ok, and return the server."""

    async def run() -> PracticeServer:
        server = PracticeServer()
        server.route("GET", "/ok", lambda _: json_response({"ok": True}))
        server.route("POST", "/ok", lambda request: json_response({"got": request.json()}, 201))
        settings = {"limits": QUICK, "secrets": (CANARY,), **options}
        async with server, AsyncHttpClient(**settings) as client:  # pyright: ignore[reportArgumentType]
            await use(server, client)
        return server

    return asyncio.run(run())


def failure(use: Callable[[PracticeServer, AsyncHttpClient], Awaitable[object]], **options: object) -> SourceError:
    with pytest.raises(SourceError) as caught:
        served(use, **options)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert "7%2B7" not in str(caught.value)
    return caught.value


def test_get_and_post_send_params_headers_and_the_user_agent() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        answer = await client.get(f"{server.url}/ok", params={"q": "ø å"}, headers={"X-Key": "k"})
        assert (answer.status, answer.body, answer.hops) == (
            200,
            b'{"ok": true}',
            (f"{server.url}/ok?q=%C3%B8+%C3%A5",),
        )
        assert (await client.post(f"{server.url}/ok", json={"a": "é"})).status == 201

    get, post = served(use).requests
    assert (get.query["q"], get.headers["x-key"]) == ("ø å", "k")
    assert get.headers["user-agent"].startswith("foretell/")
    assert post.json() == {"a": "é"}


@pytest.mark.parametrize("fault", [busy(), busy("soon"), failing(500), failing(503), cut_off()])
def test_a_busy_or_failing_server_is_retried(fault: Callable[[ServerResponse], ServerResponse]) -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        inject(server, *[fault, fault])
        assert (await client.get(f"{server.url}/ok")).status == 200

    assert len(served(use).requests) == 3


def test_after_the_last_attempt_the_error_quotes_the_server() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        inject(server, *[failing(503)] * 3)
        await client.get(f"{server.url}/ok", params={"api_key": CANARY})

    error = failure(use)
    assert error.status == 503
    assert 'the server answered 503 Service Unavailable: {"error": "it broke"}' in str(error)
    assert "api_key=•••" in error.url


@pytest.mark.parametrize(
    ("fault", "path", "problem"),
    [
        (busy("3600"), "/ok", "429"),
        (slow(30.0), "/ok", "longer than 0.2 s"),
        (lambda good: good, "/big", "larger than 100,000 bytes"),
        (lambda good: good, "http://127.0.0.1:1/", "connect"),
    ],
)
def test_permanent_failures_are_not_retried(fault: Any, path: str, problem: str) -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        server.route("GET", "/big", lambda _: ServerResponse(body=b"x" * 100_001))
        inject(server, fault)
        await client.get(path if path.startswith("http") else f"{server.url}{path}", headers={"X-Key": CANARY})

    limits = replace(QUICK, total_seconds=0.2) if "longer" in problem else QUICK
    assert problem in str(failure(use, limits=limits)).lower()


SENT_AGAIN = [
    *(respond(status) for status in (408, 429, 500, 502, 504)),
    *(respond(429, headers={"Retry-After": wait}) for wait in ("0", "soon")),
    respond(429, headers=dict.fromkeys(("Retry-After", "Date"), "Wed, 21 Oct 2026 07:28:00 GMT")),
    NotConnected("refused"),
    ConnectionBroke("slow"),
]


def scripted(answers: list[Any], limits: HttpLimits = QUICK, **options: Any) -> HttpResponse:
    """Return the client's response to these scripted answers; an exception among them is raised instead."""

    def answer(request: HttpRequest) -> Answer:
        scripted_answer = answers.pop(0)
        if isinstance(scripted_answer, Exception):
            raise scripted_answer
        return scripted_answer

    async def ask() -> HttpResponse:
        async with AsyncHttpClient(limits=limits, transport=FunctionTransport(answer)) as client:
            return await client.get("https://example.org/", **options)

    return asyncio.run(ask())


@pytest.mark.parametrize("first", SENT_AGAIN, ids=str)
def test_every_temporary_failure_is_retried(first: Any) -> None:
    assert scripted([first, respond(200, content=b"ok")]).body == b"ok"


def test_a_response_that_never_ends_times_out() -> None:
    async def drips() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.01)

    with pytest.raises(SourceError, match="longer than"):
        scripted([respond(200, content=drips())], HttpLimits(total_seconds=0.1))


def test_a_slow_machine_changes_nothing_while_time_is_simulated() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        server.latency = 0.3
        assert (await client.get(f"{server.url}/ok")).status == 200

    short = HttpLimits(attempts=1, connect_seconds=0.05, read_seconds=0.05, total_seconds=0.05)
    served(use, limits=short, access=ServiceAccess(simulated=True))
    assert "longer than" in str(failure(use, limits=short))
    assert Settings(home=Path("home"), clock="file:now.txt").access.simulated
    assert not Settings(home=Path("home")).access.simulated


def test_progress_is_reported_with_the_total_and_status_304_is_not_an_error() -> None:
    reported: list[tuple[int, int | None]] = []
    answer = respond(200, content=b"hello")
    scripted([answer], progress=lambda size, total: reported.append((size, total)))
    assert reported[-1] == (5, 5)
    assert scripted([respond(304)]).status == 304


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_final_and_never_echoes_the_key(status: int) -> None:
    def echo(request: ServerRequest) -> ServerResponse:
        return json_response({"detail": f"bad key {request.headers['x-key']}"}, status)

    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        server.route("GET", "/echo", echo)
        await client.get(f"{server.url}/echo", headers={"X-Key": CANARY})

    error = failure(use)
    assert error.status == status
    assert "bad key •••" in str(error)


def test_redirects_are_recorded_as_hops() -> None:
    answers: list[HttpResponse] = []

    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        server.route("GET", "/a", lambda _: ServerResponse(status=302, headers={"Location": "/b"}))
        server.route("GET", "/b", lambda _: ServerResponse(status=301, headers={"Location": f"{server.url}/ok"}))
        answers.append(await client.get(f"{server.url}/a"))
        answers.append(await client.get(f"{server.url}/a", follow_redirects=False))

    served(use)
    assert [hop.rsplit("/", 1)[1] for hop in answers[0].hops] == ["a", "b", "ok"]
    assert (answers[1].status, answers[1].headers["location"]) == (302, "/b")


@pytest.mark.parametrize("location", ["/loop", "ftp://example.org/", ""])
def test_invalid_redirects_raise(location: str) -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        headers = {"Location": location} if location else {}
        server.route("GET", "/loop", lambda _: ServerResponse(status=302, headers=headers))
        await client.get(f"{server.url}/loop")

    assert "redirect" in str(failure(use))


def test_a_key_does_not_follow_a_redirect_to_another_site() -> None:
    async def run() -> ServerRequest:
        here, there = PracticeServer(), PracticeServer()
        there.route("GET", "/ok", lambda _: json_response({}))
        async with here, there, AsyncHttpClient(limits=QUICK) as client:
            here.route("GET", "/away", lambda _: ServerResponse(status=302, headers={"Location": f"{there.url}/ok"}))
            await client.get(f"{here.url}/away", headers={"X-Api-Key": CANARY, "User-Agent": "mine"})
        return there.requests[0]

    request = asyncio.run(run())
    assert "x-api-key" not in request.headers
    assert request.headers["user-agent"] == "mine"


def test_keys_are_hidden_in_logs_and_hops(caplog: pytest.LogCaptureFixture) -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        answer = await client.get(f"{server.url}/ok", params={"api_key": CANARY})
        assert answer.hops == (f"{server.url}/ok?api_key=•••",)

    with caplog.at_level(logging.DEBUG):
        server = served(use)
    assert server.requests[0].query["api_key"] == CANARY
    assert f"GET {server.url}/ok?api_key=•••: 200" in caplog.text
    assert CANARY not in caplog.text
    assert "7%2B7" not in caplog.text


def test_connection_errors_hide_keys() -> None:
    def refuse(request: HttpRequest) -> Answer:
        raise NotConnected(f"cannot reach {request.url}")

    async def ask() -> None:
        transport = FunctionTransport(refuse)
        async with AsyncHttpClient(limits=QUICK, transport=transport, secrets=(CANARY,)) as client:
            await client.get("https://example.org/", params={"key": CANARY})

    with pytest.raises(SourceError) as caught:
        asyncio.run(ask())
    shown = "".join(traceback.format_exception(caught.value))
    assert "7%2B7" not in shown
    assert "key=•••" in shown


def test_requests_to_one_host_keep_its_rate_limit() -> None:
    times: list[float] = []

    def note(request: ServerRequest) -> ServerResponse:
        times.append(time.monotonic())
        return json_response({}) if len(times) != 2 else busy()(json_response({}))

    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        server.route("GET", "/noted", note)
        client.limit_rate(server.url, per_second=5.0)
        for _ in range(3):
            await client.get(f"{server.url}/noted")
        client.limit_rate(server.url, per_second=5.0, burst=3)
        await asyncio.gather(*(client.get(f"{server.url}/noted") for _ in range(8)))
        with pytest.raises(ValueError, match="per_second"):
            client.limit_rate(server.url, per_second=0.0)

    served(use)
    # A request that was refused and sent again counts too. A busy machine may record an arrival slightly late.
    assert len(times) == 12
    assert all(later - earlier >= 0.14 for earlier, later in pairwise(times[:4]))
    assert all(later - earlier >= 0.54 for earlier, later in zip(times[4:], times[7:], strict=False))


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        async def admit(url: str) -> str:
            return "127.0.0.1"

        port = server.url.rsplit(":", 1)[1]
        answer = await client.get(f"http://nowhere.invalid:{port}/ok", admit=admit)
        assert answer.hops == (f"http://nowhere.invalid:{port}/ok",)

    assert served(use).requests[0].headers["host"].startswith("nowhere.invalid")


def test_a_body_in_an_encoding_that_was_not_requested_is_refused() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        inject(server, lambda good: replace(good, headers={**good.headers, "Content-Encoding": "br-2"}))
        with pytest.raises(SourceError, match="compressed with br-2, which was not requested"):
            await client.get(f"{server.url}/ok")

    served(use)
