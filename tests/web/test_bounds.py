"""Memory, waiting times and response sizes of a server are bounded: over real sockets."""

import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from fastapi import FastAPI

from fakes.stored_run import RunWords, StoredRunBuilder
from foretell.data import connections
from foretell.runs.store import RunStore, trials_of
from foretell.web import event_watch

HALF = b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
get = partial(httpx2.get, timeout=60)
QUESTION = "own/0000"
TOO_LONG = (b"HTTP/1.1 400 ", b"HTTP/1.1 431 ", b"")
"""Responses to a body that is too large: cut off while it arrives, refused afterwards, or a closed connection."""


@contextmanager
def line(url: str, sent: bytes = b"", *, receive_buffer: int | None = None) -> Generator[socket.socket]:
    """Open a connection and send these bytes."""
    opened = socket.socket()
    if receive_buffer is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    opened.settimeout(30)
    opened.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    with opened:
        opened.sendall(sent)
        yield opened


def until_closed(opened: socket.socket) -> bytes:
    """Return everything received before the other side closes the connection."""
    received = b""
    try:
        while piece := opened.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def request_bytes(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


def test_half_open_requests_are_dropped_while_others_are_served(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    with ExitStack() as stack:
        held = [stack.enter_context(line(site.url, HALF if n % 2 else b"")) for n in range(500)]
        for _ in range(5):
            assert get(f"{site.url}/api/runs").status_code == 200
        for opened in held:
            answer = until_closed(opened)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"Connection: close" in answer
        assert get(f"{site.url}/api/runs").status_code == 200


def test_slow_bytes_do_not_extend_the_header_timeout(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.6)
    with line(site.url, HALF) as opened:
        over = threading.Event()

        def drip() -> None:
            while not over.wait(0.05):
                try:
                    opened.sendall(b"x")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert b" 408 " in until_closed(opened)
        over.set()
        dripping.join()
    # The second request of a connection has the same time limit.
    with line(site.url, request_bytes("/static/foretell.css", "Connection: keep-alive") + HALF) as opened:
        answer = until_closed(opened)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answer


def test_connections_are_limited(
    app: FastAPI, serve: Callable[[FastAPI], Any], store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 12)
    site = serve(app)
    run = StoredRunBuilder().begin(store)
    stream = request_bytes(f"/api/runs/{run}/stream")
    with ExitStack() as stack:
        idle = [stack.enter_context(line(site.url, HALF)) for _ in range(12)]
        # The connection without a complete request for the longest time is closed.
        assert get(f"{site.url}/api/runs").status_code == 200
        assert until_closed(idle[0]) == b""
        # If all connections are in use, a new one is refused.
        busy = [stack.enter_context(line(site.url, stream)) for _ in range(12)]
        for opened in busy:
            assert opened.recv(15).startswith(b"HTTP/1.1 200")
        refused = get(f"{site.url}/api/runs")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        busy[0].close()
        while get(f"{site.url}/api/runs").status_code == 503:
            pass


@pytest.mark.parametrize("length", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_missing_body_times_out(site: Any, token: str, monkeypatch: pytest.MonkeyPatch, length: str) -> None:
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    request = request_bytes(
        "/api/ask", f"Authorization: Bearer {token}", "Content-Type: application/json", length, method="POST"
    )
    with line(site.url, request + (b'{"question"' if "100" in length else b"5\r\n")) as opened:
        answer = until_closed(opened)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body of a request must arrive" in answer


@pytest.mark.parametrize(
    "header",
    [
        "Cookie: foretell_session=" + "x" * 40_000,
        "\r\n".join(f"X-{n}: {'y' * 90}" for n in range(400)),
        "X-Long: " + "z" * 100_000,
    ],
    ids=["a cookie", "many headers", "one long header"],
)
def test_header_size_is_limited(site: Any, header: str) -> None:
    with line(site.url) as opened:
        with suppress(OSError):
            opened.sendall(request_bytes("/api/runs", "Connection: close", header))
        assert until_closed(opened)[:13] in TOO_LONG
    assert get(f"{site.url}/api/runs").status_code == 200


def test_address_length_is_limited(site: Any) -> None:
    with line(site.url, request_bytes("/runs?filter=" + "a" * 60_000, "Connection: close")) as opened:
        assert until_closed(opened)[:13] in TOO_LONG


def test_connection_is_closed_after_a_request_with_two_lengths(site: Any) -> None:
    """A proxy might read the rest as another client's request."""
    both = request_bytes("/api/ask", "Content-Length: 6", "Transfer-Encoding: chunked", method="POST")
    with line(site.url, both + b"0\r\n\r\n" + request_bytes("/api/runs")) as opened:
        reply = until_closed(opened)
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"HTTP/1.1 ") == 1


def test_an_idle_connection_is_closed(
    app: FastAPI, serve: Callable[[FastAPI], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE_SECONDS", 0.2)
    site = serve(app)
    with line(site.url, request_bytes("/static/foretell.css", "Connection: keep-alive")) as opened:
        answer = until_closed(opened)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"408" not in answer
    assert b"uvicorn" not in answer


def test_response_size_is_limited(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_REPLY_BYTES", 1_000)
    answer = get(f"{site.url}/openapi.json")
    assert answer.status_code == 413
    assert "the answer is longer than 1,000 bytes" in answer.json()["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def serving_connections(app: FastAPI) -> int:
    connections = app.state.serving.connections
    return len(connections.busy) + len(connections.half_open)


def test_client_that_does_not_read_is_disconnected(
    app: FastAPI, site: Any, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    words = RunWords(rationale="word " * 2_100_000)
    builder = StoredRunBuilder(questions=1, trials=1, steps=1, words=words)
    run = builder.keep(store)
    due = quote(builder.asked()[0].due.isoformat())
    path = f"/api/runs/{run}/questions/{QUESTION}?due={due}"
    whole = get(site.url + path)
    assert (whole.status_code, len(whole.content) > 10_000_000) == (200, True)
    with line(site.url, request_bytes(path), receive_buffer=4096) as opened:
        assert opened.recv(12) == b"HTTP/1.1 200"
        while serving_connections(app):
            threading.Event().wait(0.05)
        assert len(until_closed(opened)) < len(whole.content)


def test_streams_are_limited_per_client_and_in_total(
    site: Any, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = StoredRunBuilder().begin(store)
    path = f"/api/runs/{run}/stream"
    for limit, message in (("MAX_STREAMS_OF_CLIENT", "of this address"), ("MAX_STREAMS", "try again in a few seconds")):
        with monkeypatch.context() as patched, ExitStack() as stack:
            patched.setattr(event_watch, limit, 3)
            opened = [stack.enter_context(line(site.url, request_bytes(path))) for _ in range(3)]
            for stream in opened:
                assert stream.recv(12) == b"HTTP/1.1 200"
            refused = get(site.url + path)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert refused.headers["content-type"] == "application/problem+json"
            assert message in refused.json()["detail"]
            assert get(f"{site.url}/api/runs/{run}/events").status_code == 200
            # A new stream is possible as soon as a listener has left.
            opened[0].close()
            while True:
                with line(site.url, request_bytes(path)) as again:
                    if again.recv(12) == b"HTTP/1.1 200":
                        break


def test_idle_listeners_share_one_poll_of_the_store(
    site: Any, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is polled once for all listeners, and new events are read once and reach all of them."""
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    (trial,) = trials_of(run, builder.asked(), 1)
    looks, reads = 0, 0
    look, piece = event_watch.EventWatch.look, RunStore.run
    looked = threading.Condition()

    def counted_look(self: Any, *arguments: Any) -> Any:
        nonlocal looks
        with looked:
            looks += 1
            looked.notify_all()
        return look(self, *arguments)

    def counted_run(self: Any, *arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        return piece(self, *arguments)

    monkeypatch.setattr(event_watch.EventWatch, "look", counted_look)
    monkeypatch.setattr(RunStore, "run", counted_run)
    monkeypatch.setattr(event_watch, "LOOK_SECONDS", 0.05)
    with ExitStack() as stack:
        held = [stack.enter_context(line(site.url, request_bytes(f"/api/runs/{run}/stream"))) for _ in range(60)]
        for opened in held:
            assert opened.recv(12) == b"HTTP/1.1 200"
        with looked:
            looked.wait_for(lambda: looks >= 60 + 5, 30)  # Read one message of each, then all messages of all.
            looks_before, reads_before = looks, reads
            looked.wait_for(lambda: looks >= looks_before + 10, 30)
            assert looks - looks_before == 10
        assert reads - reads_before <= 10
        builder.tell(store, trial.key)
        builder.finish(store, trial.key)
        until_ends = [until_end(opened) for opened in held]
    assert len({json.dumps(messages) for messages in until_ends}) == 1
    assert len(until_ends[0]) == 14


def until_end(opened: socket.socket) -> list[str]:
    """Return the messages about the run up to the last of a stream."""
    text = b""
    while b"event: end" not in text:
        piece = opened.recv(65536)
        assert piece, text
        text += piece
    # Heartbeats state the time.
    return [message for message in text.decode().split("\n\n") if "data: " in message and "heartbeat" not in message]
