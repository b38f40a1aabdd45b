"""Time until a page is painted, compared with a plain static page in the same Chromium, in turns.

    python benchmarks/pages.py [ROUNDS]

Between every two pages, a bare HTML file from Python's own web server is loaded, so that other work on the machine
slows all pages equally. Prints the median time to the first contentful paint and to the largest one, their ratios to
the first paint of the bare page, and the size of each page with its style and script: in total, and without data
(table rows and figures). Targets: a first paint of at most 3 times the plain page's, at most 150 kB without data, and
boards and comparisons that the server answers within 5 times a run's page.
"""

import asyncio
import http.server
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from fakes.stored_run import StoredRunBuilder
from foretell.arena.listing import event_titles
from foretell.arena.store import ArenaStore
from foretell.operations.example import AGENT_RUN, ARENA, ExampleSize, make_example
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.web.app import create_app
from standing.made_record import fill

CHROMIUM = os.environ.get("FORETELL_CHROMIUM", "/usr/bin/chromium")
MISSING = "/runs/none"
PLAIN_NAME = "plain static page"
PLAIN = "<!DOCTYPE html><html lang=en><title>plain</title><h1>A plain page</h1><p>Nothing else.</p></html>"
TIMES = """() => new Promise(done => {
  const told = () => { const [nav] = performance.getEntriesByType('navigation');
    const [paint] = performance.getEntriesByName('first-contentful-paint');
    let largest = 0;
    new PerformanceObserver(list => { largest = list.getEntries().at(-1).startTime; })
      .observe({ type: 'largest-contentful-paint', buffered: true });
    if (!paint || !nav.loadEventEnd) return setTimeout(told, 10);
    const all = [nav, ...performance.getEntriesByType('resource')];
    const data = [...document.querySelectorAll('tbody, svg.ft')];
    const outer = data.filter(one => !one.parentElement.closest('tbody, svg.ft'));
    const size = outer.reduce((sum, one) => sum + one.outerHTML.length, 0);
    const weight = all.reduce((sum, one) => sum + one.transferSize, 0);
    const server = nav.responseStart - nav.requestStart;
    setTimeout(() => done([paint.startTime, largest, weight, weight - size, server]), 30); };
  told(); })"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print no log."""


def _plain(folder: Path) -> str:
    (folder / "index.html").write_text(PLAIN, encoding="utf-8")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    return _process(server.serve_forever, server.server_address[1]) + "/"


def _process(serve: Callable[[], Any], port: int) -> str:
    """Return the address of a server in its own process, where nothing here slows it down."""
    multiprocessing.get_context("fork").Process(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{port}"


def _served(home: Path) -> tuple[str, dict[str, str]]:
    """Return the example home, with a long run added."""
    asyncio.run(make_example(home, ExampleSize(questions=40, days=4)))
    store = RunStore(home / "runs.db")
    large = StoredRunBuilder(questions=500, trials=5, steps=2).keep(store)
    fill(store)
    agent = next(row.id for row in store.runs() if row.name == AGENT_RUN)
    event = quote(next(iter(event_titles(ArenaStore(store.database, ARENA)))), safe="")
    scored = [row.id for row in store.runs() if row.spec.get("questions", {}).get("dataset") == "demo"]
    store.close()
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    pages = {
        "home": "/",
        "ask": "/ask",
        "find": "/runs?find=rate",
        "runs": "/runs",
        "run of 4 questions": f"/runs/{agent}",
        "run of 500 questions x 5": f"/runs/{large}",
        "question, 3 trials": f"/runs/{agent}/questions/norland-rate",
        "trees": "/trees",
        "tree": "/trees/view/grid_batteries",
        "a claim": "/trees/claim/P1/grid_batteries",
        "versions of a tree": "/trees/history/grid_batteries",
        "arenas": "/arena",
        "arena": f"/arena/{ARENA}",
        "events of an arena": f"/arena/{ARENA}?view=events",
        "event": f"/arena/{ARENA}/event/{event}",
        "entry": f"/arena/{ARENA}/entry/hasty%20reader",
        "entries of an arena compared": f"/compare?arena={ARENA}&entry=outside%20view&entry=hasty%20reader",
        "runs compared": f"/compare?run={scored[0]}&run={scored[1]}",
        "runs on one board": "/compare?" + "&".join(f"run={run}" for run in scored),
        "compare": "/compare",
        "record": "/record",
        "watched question": "/record/made-90",
        "set-up": "/setup",
        "not found": MISSING,
    }

    def serve() -> None:
        config = uvicorn.Config(create_app(Settings(home=home)), log_level="error", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])

    return _process(serve, listening.getsockname()[1]), pages


def _seen(browser: Browser, url: str) -> list[float]:
    """Make a first visit, with an empty cache."""
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(url)
    if answer is None or answer.ok == url.endswith(MISSING):
        raise RuntimeError(f"{url} is not the page to be measured: {answer and answer.status}")
    evaluate = page.evaluate(TIMES)
    context.close()
    return evaluate


def main(rounds: int) -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        plain = _plain(Path(folder))
        base, pages = _served(Path(folder) / "home")
        playwright = stack.enter_context(sync_playwright())  # It leaves a running event loop in this thread.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        urls = {PLAIN_NAME: plain, **{name: base + path for name, path in pages.items()}}
        for url in urls.values():
            _seen(browser, url)
        times: dict[str, list[list[float]]] = {name: [] for name in urls}
        for _ in range(rounds):
            for place, (name, url) in enumerate(urls.items()):
                times[name].append(_seen(browser, url))
                if place % 2:
                    times[PLAIN_NAME].append(_seen(browser, plain))
        browser.close()
    middle = {
        name: [statistics.median(numbers) for numbers in zip(*visits, strict=True)] for name, visits in times.items()
    }
    unit, run = middle[PLAIN_NAME][0], middle["run of 500 questions x 5"]
    print(
        f"{'page':28} {'first paint':>12} {'ratio':>6} {'largest':>10} {'ratio':>6} {'weight':>9} {'no data':>9} "
        f"{'server':>8} {'of a run':>8}   ({rounds} rounds)"
    )
    for name, (paint, largest, weight, bare, server) in middle.items():
        print(
            f"{name:28} {paint:9.0f} ms {paint / unit:6.2f} {largest:7.0f} ms {largest / unit:6.2f} "
            f"{weight / 1000:6.1f} kB {bare / 1000:6.1f} kB {server:5.0f} ms {server / run[-1]:8.2f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
