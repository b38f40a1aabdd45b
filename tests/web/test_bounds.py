"""What a server holds, waits for and sends is bounded: over real sockets."""

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
from foretell.runs import RunStore, cells_of
from foretell.web import event_watch

HALF = b"GET /api/home HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
get = partial(httpx2.get, timeout=60)
QUESTION = "own/0000"
TOO_LONG = (b"HTTP/1.1 400 ", b"HTTP/1.1 431 ", b"")
"""What is cut off while it arrives, what is refused when it is there, and a line that was closed under the sender."""


@contextmanager
def line(url: str, sent: bytes = b"", *, receive_buffer: int | None = None) -> Generator[socket.socket]:
    """A connection that says only what it is told to."""
    opened = socket.socket()
    if receive_buffer is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    opened.settimeout(30)
    opened.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    with opened:
        opened.sendall(sent)
        yield opened


def until_closed(opened: socket.socket) -> bytes:
    """Everything that comes before the other side hangs up."""
    found = b""
    try:
        while piece := opened.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def asked(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


def test_half_open_requests_are_shed_while_others_are_served(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    with ExitStack() as stack:
        held = [stack.enter_context(line(site.url, HALF if n % 2 else b"")) for n in range(500)]
        for _ in range(5):
            assert get(f"{site.url}/api/home").status_code == 200
        for opened in held:
            answer = until_closed(opened)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"Connection: close" in answer
        assert get(f"{site.url}/api/home").status_code == 200


def test_dripping_bytes_do_not_prolong_a_header(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
    # The second request of a connection has no longer either.
    with line(site.url, asked("/static/foretell.css", "Connection: keep-alive") + HALF) as opened:
        answer = until_closed(opened)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answer


def test_too_many_connections(
    app: FastAPI, serve: Callable[[FastAPI], Any], store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 12)
    site = serve(app)
    run = StoredRunBuilder().begin(store)
    stream = asked(f"/api/runs/{run}/stream")
    with ExitStack() as stack:
        idle = [stack.enter_context(line(site.url, HALF)) for _ in range(12)]
        # Whoever has sent no whole request for longest makes room.
        assert get(f"{site.url}/api/home").status_code == 200
        assert until_closed(idle[0]) == b""
        # Where all are in use, one more is told to come back.
        busy = [stack.enter_context(line(site.url, stream)) for _ in range(12)]
        for opened in busy:
            assert opened.recv(15).startswith(b"HTTP/1.1 200")
        refused = get(f"{site.url}/api/home")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        busy[0].close()
        while get(f"{site.url}/api/home").status_code == 503:
            pass


@pytest.mark.parametrize("length", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_a_body_that_does_not_come_is_not_waited_for(
    site: Any, token: str, monkeypatch: pytest.MonkeyPatch, length: str
) -> None:
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    request = asked(
        "/api/ask", f"Authorization: Bearer {token}", "Content-Type: application/json", length, method="POST"
    )
    with line(site.url, request + (b'{"question"' if "100" in length else b"5\r\n")) as opened:
        answer = until_closed(opened)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body of a request must be here" in answer


@pytest.mark.parametrize(
    "header",
    [
        "Cookie: foretell_session=" + "x" * 40_000,
        "\r\n".join(f"X-{n}: {'y' * 90}" for n in range(400)),
        "X-Long: " + "z" * 100_000,
    ],
    ids=["a cookie", "many headers", "one long header"],
)
def test_headers_are_bounded(site: Any, header: str) -> None:
    with line(site.url) as opened:
        with suppress(OSError):
            opened.sendall(asked("/api/home", "Connection: close", header))
        assert until_closed(opened)[:13] in TOO_LONG
    assert get(f"{site.url}/api/home").status_code == 200


def test_addresses_are_bounded(site: Any) -> None:
    with line(site.url, asked("/runs?filter=" + "a" * 60_000, "Connection: close")) as opened:
        assert until_closed(opened)[:13] in TOO_LONG


def test_nothing_is_read_behind_a_request_of_two_lengths(site: Any) -> None:
    """Whoever stands in between might take what follows for another's request."""
    both = asked("/api/ask", "Content-Length: 6", "Transfer-Encoding: chunked", method="POST")
    with line(site.url, both + b"0\r\n\r\n" + asked("/api/home")) as opened:
        said = until_closed(opened)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1


def test_an_idle_connection_is_closed(
    app: FastAPI, serve: Callable[[FastAPI], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE_SECONDS", 0.2)
    site = serve(app)
    with line(site.url, asked("/static/foretell.css", "Connection: keep-alive")) as opened:
        answer = until_closed(opened)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"408" not in answer
    assert b"uvicorn" not in answer


def test_an_answer_is_bounded(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_REPLY_BYTES", 1_000)
    answer = get(f"{site.url}/openapi.json")
    assert answer.status_code == 413
    assert "the answer is longer than 1,000 bytes" in answer.json()["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def serving_connections(app: FastAPI) -> int:
    found = app.state.serving.connections
    return len(found.busy) + len(found.half_open)


def test_one_who_does_not_read_is_let_go(
    app: FastAPI, site: Any, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    words = RunWords(rationale="word " * 3_000_000)
    made = StoredRunBuilder(questions=1, trials=1, steps=1, words=words)
    run = made.keep(store)
    due = quote(made.asked()[0].due.isoformat())
    path = f"/runs/{run}/raw/rationale?question={QUESTION}&due={due}&trial=0"
    whole = get(site.url + path)
    assert (whole.status_code, len(whole.content) > 10_000_000) == (200, True)
    with line(site.url, asked(path), receive_buffer=4096) as opened:
        assert opened.recv(12) == b"HTTP/1.1 200"
        while serving_connections(app):
            threading.Event().wait(0.05)
        assert len(until_closed(opened)) < len(whole.content)


def test_streams_are_bounded_for_each_client_and_for_all(
    site: Any, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = StoredRunBuilder().begin(store)
    path = f"/api/runs/{run}/stream"
    for limit, message in (("MAX_STREAMS_OF_CLIENT", "of this address"), ("MAX_STREAMS", "come back in a few seconds")):
        with monkeypatch.context() as patched, ExitStack() as stack:
            patched.setattr(event_watch, limit, 3)
            opened = [stack.enter_context(line(site.url, asked(path))) for _ in range(3)]
            for one in opened:
                assert one.recv(12) == b"HTTP/1.1 200"
            refused = get(site.url + path)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert refused.headers["content-type"] == "application/problem+json"
            assert message in refused.json()["detail"]
            assert get(f"{site.url}/api/runs/{run}/events").status_code == 200
            # A place is free again as soon as a listener is gone.
            opened[0].close()
            while True:
                with line(site.url, asked(path)) as again:
                    if again.recv(12) == b"HTTP/1.1 200":
                        break


def test_idle_listeners_share_one_look_at_the_store(
    site: Any, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many listen, the store is looked at once; and news reach all of them, read once."""
    made = StoredRunBuilder(questions=1, trials=1)
    run = made.begin(store)
    (cell,) = cells_of(run, made.asked(), 1)
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
        held = [stack.enter_context(line(site.url, asked(f"/api/runs/{run}/stream"))) for _ in range(60)]
        for opened in held:
            assert opened.recv(12) == b"HTTP/1.1 200"
        with looked:
            looked.wait_for(lambda: looks >= 60 + 5, 30)  # One of each that comes, then those of all.
            looks_before, reads_before = looks, reads
            looked.wait_for(lambda: looks >= looks_before + 10, 30)
            assert looks - looks_before == 10
        assert reads - reads_before <= 10
        made.tell(store, cell.key)
        made.finish(store, cell.key)
        told = [until_end(opened) for opened in held]
    assert len({json.dumps(one) for one in told}) == 1
    assert len(told[0]) == 14


def until_end(opened: socket.socket) -> list[str]:
    """The messages of a stream up to its last."""
    text = b""
    while b"event: end" not in text:
        piece = opened.recv(65536)
        assert piece, text
        text += piece
    return [block for block in text.decode().split("\n") if block.startswith("data: ")]
