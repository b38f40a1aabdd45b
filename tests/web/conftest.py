"""A server on a free port, and a real Chromium in which nothing may go wrong unnoticed."""

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

from foretell.data import server_config
from foretell.runs import RunStore, Settings
from foretell.web import create_app

FAILED = pytest.StashKey[bool]()
PATIENCE = 60_000
"""Milliseconds for a page to become what is expected, on a machine that is busy with other things."""
TALLEST = 12_000
"""Pixels of a page that is kept as a picture from top to bottom."""
TOKEN = "test-token-0123456789-canary"
SHELL, BROWSER = "/usr/bin/chromium-headless-shell", "/usr/bin/chromium"
CHROMIUM = os.environ.get("FORETELL_CHROMIUM") or (SHELL if Path(SHELL).exists() else BROWSER)
"""The shell is the same browser without windows: a new page takes it a quarter of the processor time."""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture
def token() -> str:
    """What spending needs here."""
    return TOKEN


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home of its own, without any key."""
    return Settings(home=tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[RunStore]:
    """The store that the pages read: tests put runs into it."""
    opened = RunStore(settings.store)
    yield opened
    opened.close()


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    """The application over that home."""
    return create_app(settings, token=TOKEN)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """Requests without a network, from somebody who knows no token."""
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as made:
        yield made


@dataclass(frozen=True, kw_only=True)
class Site:
    """A server that listens."""

    url: str
    login: str


@pytest.fixture
def serve() -> Iterator[Callable[[FastAPI], Site]]:
    """Starts applications in threads; all of them end with the test."""
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
    """The application over the test's home, listening."""
    return serve(app)


@pytest.fixture(scope="session")
def _launched() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """One browser for all tests of a worker, and the event loop that it keeps in this thread."""
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
    """The browser, for the tests of a module; between modules its loop stands still, so that others can run theirs."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    browser, loop = _launched
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@dataclass
class Watched:
    """What a page did besides being shown."""

    console: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)
    """Parts of console messages that a test expects, such as that of a page that is not found."""

    def check(self) -> None:
        """Nothing went wrong and nothing was asked of anybody else."""
        assert not self.left, f"requests left this machine: {self.left}"
        bad = [told for told in self.console if not any(part in told for part in self.allowed)]
        assert not bad, f"the console says: {bad}"


@pytest.fixture
def watched() -> Watched:
    """For tests that must allow a message."""
    return Watched()


@pytest.fixture
def open_page(
    chromium: Any, watched: Watched, serve: object, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Any]]:
    """Opens pages in a fresh profile; fails the test for console errors and for requests that leave localhost.

    Asks for `serve` so that pages are closed before their server goes away.
    """
    contexts: list[Any] = []

    def opened(**options: Any) -> Any:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on(
            "console", lambda told: watched.console.append(told.text) if told.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: watched.console.append(str(error)))
        page.on("request", lambda asked: None if _local(asked.url) else watched.left.append(asked.url))
        return page

    yield opened
    for n, context in enumerate(contexts):
        if request.node.stash.get(FAILED, False):
            _keep(context, f"{request.node.name}-{n}")
        context.close()
    watched.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """What failed is pictured as it stood."""
    item.stash[FAILED] = item.stash.get(FAILED, False) or call.excinfo is not None
    return (yield)


def _local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:", "about:", "file:"))


def _keep(context: Any, name: str) -> None:
    folder = os.environ.get("FORETELL_SCREENSHOTS")
    if folder:
        for page in context.pages:
            safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
            # A page of ten megabytes is a picture that no browser draws.
            whole = page.evaluate("document.documentElement.scrollHeight") < TALLEST
            page.screenshot(path=str(Path(folder) / f"{safe}.png"), full_page=whole)


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    """A page in a window of the usual size."""
    return open_page(viewport={"width": 1280, "height": 900})


@pytest.fixture
def phone(open_page: Callable[..., Any]) -> Any:
    """A page on a phone."""
    return open_page(viewport={"width": 375, "height": 740}, device_scale_factor=2, is_mobile=True, has_touch=True)
