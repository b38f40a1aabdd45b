"""A server on a free port, and a real Chromium whose errors fail the test."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install 'foretell[web]'")
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from foretell.data.connections import server_config
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.web.app import create_app

FAILED = pytest.StashKey[bool]()
PATIENCE = 60_000
"""Milliseconds until a page must show what is expected, on a busy machine."""
TALLEST = 12_000
"""Maximum height in pixels of a page that is saved as one picture."""
TOKEN = "test-token-0123456789-canary"
SHELL, BROWSER = "/usr/bin/chromium-headless-shell", "/usr/bin/chromium"
CHROMIUM = os.environ.get("FORETELL_CHROMIUM") or (SHELL if Path(SHELL).exists() else BROWSER)
"""The headless shell is the same browser, but a new page takes a quarter of the CPU time."""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture
def token() -> str:
    """Return the token that is needed to spend."""
    return TOKEN


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return the settings of a temporary home without any key."""
    return Settings(home=tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[RunStore]:
    """Yield the store that the pages read; tests put runs into it."""
    opened = RunStore(settings.store)
    yield opened
    opened.close()


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    """Return the application for that home."""
    return create_app(settings, token=TOKEN)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """Yield a client without network and token."""
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


@dataclass(frozen=True, kw_only=True)
class Site:
    """A server that listens."""

    url: str
    login: str


@pytest.fixture
def serve() -> Iterator[Callable[[FastAPI], Site]]:
    """Yield a function that starts applications in threads; all of them end with the test."""
    running: list[tuple[uvicorn.Server, threading.Thread, socket.socket]] = []

    def start(app: FastAPI) -> Site:
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(
            server_config(app, app.state.serving.connections, log_level="error", timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        running.append((server, thread, listening))
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        return Site(url=url, login=f"{url}/login?token={TOKEN}")

    yield start
    for server, thread, listening in running:
        server.should_exit = True
        thread.join(10)
        listening.close()


@pytest.fixture
def site(app: FastAPI, serve: Callable[[FastAPI], Site]) -> Site:
    """Return the application for the test's home, listening on a port."""
    return serve(app)


@pytest.fixture(scope="session")
def _launched() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """Yield one browser for all tests of a worker, and the event loop that it runs in this thread."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no Chromium at {CHROMIUM}: install it or set FORETELL_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        loop = asyncio.get_running_loop()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture(scope="module")
def chromium(_launched: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """Yield the browser for the tests of a module; its loop is paused between modules."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    browser, loop = _launched
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@pytest.fixture(autouse=True)
def _no_loop_of_a_browser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pause the browser's loop in a test that opens no page, so that it can run its own in any order of the tests."""
    loop = None if "chromium" in request.fixturenames else asyncio._get_running_loop()
    if loop is not None:
        asyncio._set_running_loop(None)
    yield
    if loop is not None:
        asyncio._set_running_loop(loop)


@dataclass
class Watched:
    """Console messages and requests of a page."""

    console: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)
    """Parts of console messages that a test expects, for example of a missing page."""

    def check(self) -> None:
        """Check that there were no errors and no requests to other machines."""
        assert not self.left, f"requests left this machine: {self.left}"
        bad = [message for message in self.console if not any(part in message for part in self.allowed)]
        assert not bad, f"the console says: {bad}"


@pytest.fixture
def watched() -> Watched:
    """Yield the record of the page, for tests that must allow a message."""
    return Watched()


@pytest.fixture
def open_page(
    chromium: Any, watched: Watched, serve: object, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Any]]:
    """Yield a function that opens pages in a fresh profile; console errors and remote requests fail the test.

    Depends on `serve` so that pages are closed before their server stops.
    """
    contexts: list[Any] = []

    def opened(**options: Any) -> Any:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on(
            "console",
            lambda message: watched.console.append(message.text) if message.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: watched.console.append(str(error)))
        page.on("request", lambda request: None if _local(request.url) else watched.left.append(request.url))
        return page

    yield opened
    for n, context in enumerate(contexts):
        if request.node.stash.get(FAILED, False):
            _keep(context, f"{request.node.name}-{n}")
        context.close()
    watched.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Save a picture of the page if the test failed."""
    item.stash[FAILED] = item.stash.get(FAILED, False) or call.excinfo is not None
    return (yield)


def _local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:", "about:", "file:"))


def _keep(context: Any, name: str) -> None:
    folder = os.environ.get("FORETELL_SCREENSHOTS")
    if folder:
        for page in context.pages:
            safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
            # No browser draws a picture of a page of ten megabytes.
            whole = page.evaluate("document.documentElement.scrollHeight") < TALLEST
            page.screenshot(path=str(Path(folder) / f"{safe}.png"), full_page=whole)


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    """Yield a page in a window of the usual size."""
    return open_page(viewport={"width": 1280, "height": 900})


@pytest.fixture
def phone(open_page: Callable[..., Any]) -> Any:
    """Yield a page on a phone."""
    return open_page(viewport={"width": 375, "height": 740}, device_scale_factor=2, is_mobile=True, has_touch=True)
