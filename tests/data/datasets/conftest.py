"""A writer of files, and a local web server with scripted failures."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write a file of text or JSON and return its path."""

    def writer(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return writer


@dataclass(kw_only=True)
class Reply:
    """One scripted response."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    claimed_length: int | None = None
    """Content-Length to send if it should be wrong."""


@dataclass
class Site:
    """Scripted responses by path; each is used once, the last one repeatedly."""

    url: str = ""
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def respond(self, path: str, *replies: Reply) -> None:
        self.replies[path] = list(replies)

    def publish(self, path: str, content: Any, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.respond(path, Reply(body=body, headers=headers))

    def count(self, path: str) -> int:
        return sum(seen == path for seen, _ in self.seen)

    def answer(self, path: str, headers: dict[str, str]) -> Reply:
        self.seen.append((path, headers))
        queue = self.replies.get(path, [Reply(status=404, body=b"404: Not Found")])
        reply = queue.pop(0) if len(queue) > 1 else queue[0]
        etag = reply.headers.get("ETag")
        return Reply(status=304, headers=reply.headers) if etag and headers.get("If-None-Match") == etag else reply


@pytest.fixture
def site() -> Iterator[Site]:
    script = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = script.answer(self.path, dict(self.headers))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            length = len(reply.body) if reply.claimed_length is None else reply.claimed_length
            self.send_header("Content-Length", str(length))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield script
    server.shutdown()
    server.server_close()
    thread.join()
