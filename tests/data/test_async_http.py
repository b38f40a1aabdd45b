"""The async client over real sockets: patience, limits, redirects, and keys that never show."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable

import httpx2
import pytest

from fakes.faults import busy, cut_off, failing, inject, slow
from foretell.data.http import AsyncHttpClient, HttpLimits, HttpResponse, RequestRate, SourceError
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0, max_bytes=100_000)
CANARY = "sk-canary/7+7"


def served(use: Callable[[PracticeServer, AsyncHttpClient], Awaitable[object]], **options: object) -> PracticeServer:
    """Run something against a server that says ok, and hand the server back."""

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


def test_get_and_post_with_params_headers_and_our_name() -> None:
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
def test_a_busy_or_broken_server_is_asked_again(fault: Callable[[ServerResponse], ServerResponse]) -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        inject(server, *[fault, fault])
        assert (await client.get(f"{server.url}/ok")).status == 200

    assert len(served(use).requests) == 3


def test_after_the_last_attempt_the_reason_is_told_with_the_servers_words() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        inject(server, *[failing(503)] * 3)
        await client.get(f"{server.url}/ok", params={"api_key": CANARY})

    error = failure(use)
    assert error.status == 503
    assert 'the server answered 503 Service Unavailable: {"error": "it broke"}' in str(error)
    assert "api_key=•••" in error.url


def test_an_unbearable_wait_ends_at_once() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        inject(server, *[busy("3600")])
        await client.get(f"{server.url}/ok")

    assert failure(use).status == 429


def test_a_slow_answer_is_given_up_in_total() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        inject(server, *[slow(30.0)])
        await client.get(f"{server.url}/ok")

    assert "longer than 0.05 s" in str(failure(use, limits=HttpLimits(total_seconds=0.05)))


def test_an_answer_too_large_is_refused() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        server.route("GET", "/big", lambda _: ServerResponse(body=b"x" * 100_001))
        await client.get(f"{server.url}/big")

    assert "larger than 100,000 bytes" in str(failure(use))


def test_a_server_that_is_not_there() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        await client.get("http://127.0.0.1:1/", headers={"X-Key": CANARY})

    assert "connect" in str(failure(use)).lower()


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


def test_redirects_leave_their_trail() -> None:
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
def test_redirects_that_lead_nowhere(location: str) -> None:
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
    assert "HTTP Request: GET" in caplog.text
    assert CANARY not in caplog.text
    assert "7%2B7" not in caplog.text


def test_an_error_of_the_connection_hides_keys() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError(f"cannot reach {request.url}")

    async def ask() -> None:
        transport = httpx2.MockTransport(refuse)
        async with AsyncHttpClient(limits=QUICK, transport=transport, secrets=(CANARY,)) as client:
            await client.get("https://example.org/", params={"key": CANARY})

    with pytest.raises(SourceError) as caught:
        asyncio.run(ask())
    shown = "".join(traceback.format_exception(caught.value))
    assert "7%2B7" not in shown
    assert "key=•••" in shown


def test_requests_to_one_host_keep_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def noted(self: RequestRate) -> None:
        waits.append(self.reserve())

    monkeypatch.setattr(RequestRate, "wait", noted)

    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        client.pace(server.url, per_second=0.1)
        inject(server, *[busy()])
        await client.get(f"{server.url}/ok")
        await client.get(f"{server.url}/ok")

    served(use)
    assert [round(wait, -1) for wait in waits] == [0.0, 10.0, 20.0]


def test_a_pace_lets_bursts_through_and_recovers() -> None:
    now = [0.0]
    pace = RequestRate(per_second=1.0, burst=3, clock=lambda: now[0])
    assert [pace.reserve() for _ in range(5)] == [0.0, 0.0, 0.0, 1.0, 2.0]
    now[0] = 100.0
    assert [pace.reserve() for _ in range(4)] == [0.0, 0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="per_second"):
        RequestRate(per_second=0.0)


def test_an_address_that_was_checked_is_the_one_connected_to() -> None:
    async def use(server: PracticeServer, client: AsyncHttpClient) -> None:
        async def admit(url: str) -> str:
            return "127.0.0.1"

        port = server.url.rsplit(":", 1)[1]
        answer = await client.get(f"http://nowhere.invalid:{port}/ok", admit=admit)
        assert answer.hops == (f"http://nowhere.invalid:{port}/ok",)

    assert served(use).requests[0].headers["host"].startswith("nowhere.invalid")
