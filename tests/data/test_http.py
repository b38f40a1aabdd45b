"""The client against a scripted transport; the data-set tests use it against a real server."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from foretell.data.http import AsyncHttpClient, HttpLimits, HttpResponse, SourceError

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0)


class Script:
    """Answers in turn; an exception is raised instead of answering."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Client:
    """The asynchronous client, asked once and closed."""

    def __init__(self, script: Script, limits: HttpLimits = QUICK) -> None:
        self._script = script
        self._limits = limits

    def get(self, url: str, **options: Any) -> HttpResponse:
        async def ask() -> HttpResponse:
            transport = httpx2.MockTransport(self._script)
            async with AsyncHttpClient(limits=self._limits, transport=transport) as client:
                return await client.get(url, **options)

        return asyncio.run(ask())


def test_a_good_answer_with_params_headers_and_our_name() -> None:
    script = Script(httpx2.Response(200, content=b"hello", headers={"ETag": "x"}))
    answer = Client(script).get("https://example.org/a", params={"q": "1"}, headers={"X-Key": "k"})
    assert (answer.status, answer.body, answer.headers["etag"]) == (200, b"hello", "x")
    request = script.requests[0]
    assert str(request.url) == "https://example.org/a?q=1"
    assert request.headers["x-key"] == "k"
    assert request.headers["user-agent"].startswith("foretell/")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(status: int) -> None:
    script = Script(httpx2.Response(status), httpx2.Response(200, content=b"ok"))
    assert Client(script).get("https://example.org/").body == b"ok"


@pytest.mark.parametrize("error", [httpx2.ConnectError("refused"), httpx2.ReadTimeout("slow"), httpx2.ReadError("")])
def test_a_broken_connection_is_tried_again(error: Exception) -> None:
    script = Script(error, error, httpx2.Response(200, content=b"ok"))
    assert Client(script).get("https://example.org/").body == b"ok"


def test_after_the_last_attempt_the_reason_is_told() -> None:
    script = Script(*[httpx2.Response(503) for _ in range(3)])
    with pytest.raises(SourceError, match=r"https://example\.org/: the server answered 503") as caught:
        Client(script).get("https://example.org/")
    assert caught.value.status == 503
    assert len(script.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_refusal_is_final(status: int) -> None:
    script = Script(httpx2.Response(status))
    with pytest.raises(SourceError) as caught:
        Client(script).get("https://example.org/")
    assert caught.value.status == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "0"},
        {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"},
        {"Retry-After": "soon"},
    ],
)
def test_the_wait_a_server_asks_for_is_kept(headers: dict[str, str]) -> None:
    script = Script(httpx2.Response(429, headers=headers), httpx2.Response(200, content=b"ok"))
    assert Client(script).get("https://example.org/").body == b"ok"


def test_an_unbearable_wait_ends_at_once() -> None:
    script = Script(httpx2.Response(429, headers={"Retry-After": "3600"}), httpx2.Response(200))
    with pytest.raises(SourceError, match="429"):
        Client(script).get("https://example.org/")
    assert len(script.requests) == 1


def test_an_answer_too_large_is_refused() -> None:
    script = Script(httpx2.Response(200, content=b"x" * 11))
    with pytest.raises(SourceError, match="larger than 10 bytes"):
        Client(script, HttpLimits(max_bytes=10)).get("https://example.org/")


def test_an_answer_that_drips_on_is_cut_off() -> None:
    async def drips() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.01)

    with pytest.raises(SourceError, match="longer than"):
        Client(Script(httpx2.Response(200, content=drips())), HttpLimits(total_seconds=0.1)).get("https://example.org/")


def test_redirects_are_followed_and_endless_ones_are_not() -> None:
    moved = httpx2.Response(302, headers={"Location": "https://example.org/b"})
    assert Client(Script(moved, httpx2.Response(200, content=b"b"))).get("https://example.org/a").body == b"b"
    loop = Script(*[httpx2.Response(302, headers={"Location": "https://example.org/a"}) for _ in range(99)])
    with pytest.raises(SourceError):
        Client(loop).get("https://example.org/a")


def test_progress_is_told_with_the_total() -> None:
    told: list[tuple[int, int | None]] = []
    script = Script(httpx2.Response(200, content=b"hello"))
    Client(script).get("https://example.org/", progress=lambda size, total: told.append((size, total)))
    assert told[-1] == (5, 5)


def test_an_unchanged_page_is_not_an_error() -> None:
    assert Client(Script(httpx2.Response(304))).get("https://example.org/").status == 304
