"""Open pages whose server is killed, suspended or restarted, whose computer sleeps, and whose token changes."""

import os
import signal
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.web.test_example import COLOURS, SERIOUS, THEMES

from fakes.models import BackgroundModels
from fakes.processes import ForkedCommand
from fakes.stored_run import StoredRunBuilder
from foretell.data.corpus import Corpus, CorpusDocument
from foretell.questions.as_of import instant
from foretell.runs.store import RunStore, trials_of

BRAIN = "foretell.practice.models.scripts:agent_script"
TOKEN, OTHER_TOKEN = "test-token-0123456789-canary", "other-token-0123456789-canary"
NO_CONTACT, CONTACT = "No contact since", "Contact again since"
UNREACHABLE = ("ERR_CONNECTION", "ERR_TIMED_OUT", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE", "status of 401")
"""What the browser itself writes to the console when a server does not answer."""


class ServerProcess:
    """`foretell serve` in its own process, which can be killed and started again at the same address."""

    def __init__(self, home: Path, model_url: str) -> None:
        self._home, self._model_url, self._port = home, model_url, 0
        self.start()

    def start(self, token: str = TOKEN) -> None:
        environment = {**os.environ, "FORETELL_HOME": str(self._home), "PYTHONUNBUFFERED": "1"}
        environment |= {"OPENAI_API_KEY": "sk-made-up", "FORETELL_OPENAI_URL": f"{self._model_url}/v1"}
        words = ["serve", "--port", str(self._port), "--token", token]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = ForkedCommand(words, cwd=self._home, env=environment, **pipes)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[-1].partition("/login")[0]
        self.login = f"{self.url}/login?token={token}"
        self._port = int(self.url.rpartition(":")[2])

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(30)


def accessibility_problems(page: Any) -> list[str]:
    """Return serious problems of a page as it is now, at two widths in both themes."""
    problems: list[str] = []
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            found = page.evaluate(SERIOUS, [] if theme == THEMES[0] else COLOURS)
            problems += [f"at {width} in {theme}: {problem}" for problem in found]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            problems.append(f"scrolls sideways at {width}")
    return problems


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script=BRAIN, latency=0.8) as fake:
        yield fake


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    corpus = Corpus(home / "corpus.db")
    words = "The council discussed the harbour bridge and expects a vote in autumn."
    day = instant("2026-06-01")
    corpus.add(
        [CorpusDocument(url="https://news.example/old", title="Council on the bridge", text=words, published=day)]
    )
    corpus.close()
    return home


@pytest.fixture
def server(home: Path, provider: BackgroundModels, page: Any) -> Iterator[ServerProcess]:
    """Yield a server; `page` closes later than it would answer, which only the console notices."""
    server = ServerProcess(home, provider.url)
    yield server
    page.context.close()
    server.kill()


def ask(page: Any, server: ServerProcess) -> str:
    """Start the research of a question, show its page, and return its address."""
    page.goto(server.login)
    wish = {"question": "Will the harbour bridge be approved?", "model": "openai:searcher-9", "search": ["local"]}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    begun = page.request.post(f"{server.url}/api/ask", data=wish, headers=headers).json()
    address = f"{server.url}/runs/{begun['run']}/questions/{quote(begun['question'], safe='')}"
    page.goto(address)
    return address


def test_killed_server_stops_the_page_and_the_restarted_one_continues(
    page: Any, server: ServerProcess, watched: Any
) -> None:
    watched.allowed += UNREACHABLE
    address = ask(page, server)
    second = page.context.new_page()
    second.goto(address)
    expect(page.locator("#lanes")).to_contain_text("Asking openai:searcher-9 for its first estimate")
    clock = page.locator("#now [data-since] strong").first
    started = clock.inner_text()
    expect(clock).not_to_have_text(started)
    server.kill()
    for tab in (page, second):
        expect(tab.locator("#contact")).to_contain_text(NO_CONTACT)
    stood = clock.inner_text()
    page.wait_for_timeout(2500)
    assert clock.inner_text() == stood
    stop = page.get_by_role("button", name="Stop and use what there is")
    expect(stop).to_have_attribute("aria-disabled", "true")
    # Neither an order nor a link leads to the browser's page for errors, with the mouse or the keyboard.
    stop.focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Arenas").click()
    assert page.url == address
    assert accessibility_problems(second) == []
    server.start()
    for tab in (page, second):
        expect(tab.locator("#contact")).to_contain_text(CONTACT)
        expect(tab.locator("#standing")).to_contain_text("Its process stopped unexpectedly.")
        expect(tab.locator("#lanes")).to_contain_text("cut off")
    assert accessibility_problems(second) == []
    page.get_by_role("button", name="Continue").click()
    for tab in (page, second):
        expect(tab.locator("#combination")).to_contain_text("From trials to the answer")
    assert page.url.partition("?")[0] == address


def test_suspended_server_is_noticed_and_the_page_goes_on_by_itself(
    page: Any, server: ServerProcess, watched: Any
) -> None:
    watched.allowed += UNREACHABLE
    ask(page, server)
    tree = page.context.new_page()
    tree.goto(f"{server.url}/ask")
    # Text that was typed stays, and is not sent.
    tree.get_by_label("Question", exact=True).fill("Will it rain?")
    server.send(signal.SIGSTOP)
    try:
        for tab in (page, tree):
            expect(tab.locator("#contact")).to_contain_text(NO_CONTACT)
        tree.get_by_label("Question", exact=True).press("Control+Home")
        tree.get_by_role("button", name="Research it").press("Enter")
        again = tree.get_by_role("button", name="Try now")
        again.focus()
        tree.keyboard.press("Enter")
    finally:
        server.send(signal.SIGCONT)
    for tab in (page, tree):
        expect(tab.locator("#contact")).to_contain_text(CONTACT)
    expect(tree.get_by_label("Question", exact=True)).to_have_value("Will it rain?")
    expect(page.locator("#combination")).to_contain_text("From trials to the answer")


def test_changed_token_asks_to_log_in_and_keeps_reading(page: Any, server: ServerProcess, watched: Any) -> None:
    watched.allowed += UNREACHABLE
    ask(page, server)
    server.kill()
    expect(page.locator("#contact")).to_contain_text(NO_CONTACT)
    server.start(OTHER_TOKEN)
    expect(page.locator("#contact")).to_contain_text("log in to go on")
    expect(page.locator("#contact").get_by_role("link", name="Log in")).to_have_attribute("href", "/login")
    expect(page.locator("#standing")).to_contain_text("Its process stopped unexpectedly.")
    other = page.context.new_page()
    other.goto(server.login)
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#contact")).to_have_count(0)
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#combination")).to_contain_text("From trials to the answer")


def test_page_of_a_computer_that_slept_shows_the_present_state(page: Any, site: Any, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    page.clock.install()
    page.goto(f"{site.url}/runs/{run}")
    page.get_by_text("0 of 1 trial done").wait_for()
    page.evaluate(
        """() => {
            window.said = [];
            new MutationObserver(() => window.said.push(document.getElementById('contact')?.textContent ?? ''))
                .observe(document.getElementById('main'), { childList: true, subtree: true, characterData: true });
        }"""
    )
    page.clock.fast_forward("01:00:00")
    for words in (NO_CONTACT, CONTACT):  # On a busy machine the banner may be gone before anybody looks at it.
        page.wait_for_function("words => window.said.some(text => text.includes(words))", arg=words)
    (trial,) = trials_of(run, builder.asked(), 1)
    builder.tell(store, trial.key)
    page.get_by_text("Finished: 1 forecast, 0 failures.").wait_for()


def test_many_windows_follow_a_run_and_leave_connections(page: Any, site: Any, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    tabs = [page, *(page.context.new_page() for _ in range(7))]
    for tab in tabs:
        tab.goto(f"{site.url}/runs/{run}")
        tab.get_by_text("0 of 1 trial done").wait_for()
    (trial,) = trials_of(run, builder.asked(), 1)
    builder.tell(store, trial.key)
    for tab in tabs:
        tab.get_by_text("Finished: 1 forecast, 0 failures.").wait_for()
        assert not tab.locator("#contact").count()


def test_slow_line_is_no_lost_contact(page: Any, site: Any, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    slow = {"offline": False, "latency": 600, "downloadThroughput": 30_000, "uploadThroughput": 15_000}
    line.send("Network.emulateNetworkConditions", slow)
    page.goto(f"{site.url}/runs/{run}")
    page.get_by_text("0 of 1 trial done").wait_for()
    page.wait_for_timeout(7000)
    assert not page.locator("#contact").count()
    (trial,) = trials_of(run, builder.asked(), 1)
    builder.tell(store, trial.key)
    page.get_by_text("Finished: 1 forecast, 0 failures.").wait_for()
    assert not page.locator("#contact").count()
