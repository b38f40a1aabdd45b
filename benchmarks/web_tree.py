"""The page of a tree with 1,000 claims in a real Chromium: time from an edit to the next repaint, compared with 50 ms.

Needs the extras `web` and `dev`, and a Chromium (FORETELL_CHROMIUM, else /usr/bin/chromium).
"""

import os
import random
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import sync_playwright

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.tree_file import write_tree
from foretell.runs.settings import Settings
from foretell.web.app import create_app
from what_if import make

BUDGET = 50.0
EDITS = 60
CHROMIUM = os.environ.get("FORETELL_CHROMIUM", "/usr/bin/chromium")
EDIT = """([id, p]) => new Promise((done) => {
  const box = document.querySelector(`[data-exact="${id}"]`);
  const start = performance.now();
  box.value = p;
  box.dispatchEvent(new Event('input'));
  requestAnimationFrame(() => { const late = new MessageChannel();
    late.port1.onmessage = () => done(performance.now() - start); late.port2.postMessage(0); });
})"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "trees").mkdir()
        write_tree(home / "trees" / "big.json", evaluated(make(random.Random(0), 0)))
        server, url = serve(home)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{url}/trees/view/big")
            page.locator("#tools").wait_for()
            for shape in ("folded graph", "open outline"):
                if shape == "open outline":
                    page.locator("#outline").click()
                    page.locator("#all").click()
                show(shape, edits(page))
            browser.close()
        server.should_exit = True


def serve(home: Path) -> tuple[uvicorn.Server, str]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    app = create_app(Settings(home=home))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return server, f"http://127.0.0.1:{listening.getsockname()[1]}"


def edits(page: Any) -> list[float]:
    rng = random.Random(1)
    ids = page.eval_on_selector_all("[data-exact]", "boxes => boxes.map(box => box.dataset.exact)")
    return sorted(page.evaluate(EDIT, [rng.choice(ids), f"{rng.random():.3f}"]) for _ in range(EDITS))


def show(shape: str, took: list[float]) -> None:
    middle, high = statistics.median(took), took[int(0.95 * len(took))]
    print(f"edit to repaint, 1,000 claims, {shape}: median {middle / BUDGET:.2f}, 95 % {high / BUDGET:.2f} of 50 ms")


if __name__ == "__main__":
    main()
