"""Take the pictures of the docs: the pages of the example home in a real Chromium, and figures saved from them.

    make pictures

They are made anew by CI before the docs are built, so that a page and its picture cannot part.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FOLDER, DRAWN = IMAGES / "pages", IMAGES / "figures"
CHROMIUM = os.environ.get("FORETELL_CHROMIUM", "/usr/bin/chromium")
WIDTH, HEIGHT = 1280, 860
CLICKS: dict[str, tuple[str, ...]] = {
    "home": ("/",),
    "ask": ("/ask",),
    "runs": ("/runs",),
    "run": ("/runs", "main table a[href^='/runs/']"),
    "question": ("/runs", "main a:has-text('agent')", "main a[href*='/questions/'], main table a[href^='/runs/']"),
    "tree": ("/trees", "main a[href^='/trees/view/']"),
    "arena": ("/arena", "main a[href^='/arena/']"),
    "event": ("/arena", "main a[href^='/arena/']", "a[href*='view=events']", "main a[href*='/event/']"),
}
"""Picture → the page it begins at, and what is clicked from there."""
FIGURES: dict[str, tuple[str, str]] = {
    "scores": ("runs", "a:has-text('runs on demo') ; figure.chart"),
    "calibration": ("runs", "main a:has-text('auto: the best') ; figure.chart.square"),
    "belief": ("question", "#paths figure.chart"),
    "over_time": ("arena", "section:has(#over-time) figure.chart"),
    "categories": ("arena", "section:has(#by-category) figure.chart"),
    "everybody": ("event", "section:has(#said) figure.chart"),
}
"""Figure → the picture whose page it is on, or one click from there, and where: saved as a visitor saves it."""


@contextmanager
def example_site() -> Iterator[str]:
    """The link that opens the example home, served by the command that users type."""
    command = [sys.executable, "-m", "foretell", "demo", "--open"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "BROWSER": "true"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        for line in server.stdout or ():
            if match := re.search(r"http://127\.0\.0\.1:\d+/login\S+", line):
                yield match[0]
                return
        raise SystemExit(f"the example could not be served (exit status {server.wait()})")
    finally:
        server.terminate()
        server.wait(10)


def go(page: Any, start: str, clicks: Sequence[str]) -> None:
    """Open a page and click on from there."""
    page.goto(urljoin(page.url, start))
    for place in clicks:
        before = page.url
        page.locator(place).first.click()
        page.wait_for_url(lambda url, before=before: url != before)
    page.wait_for_load_state()


def take(page: Any, name: str) -> None:
    """One picture of what fills a window."""
    start, *clicks = CLICKS[name]
    go(page, start, clicks)
    page.screenshot(path=str(FOLDER / f"{name}.png"))


def draw(page: Any, name: str) -> None:
    """One figure as SVG, by the button below it."""
    of, places = FIGURES[name]
    (start, *clicks), (*more, place) = CLICKS[of], places.split(" ; ")
    go(page, start, [*clicks, *more])
    with page.expect_download() as saved:
        page.locator(place).first.get_by_role("button", name="Save the figure as SVG").click()
    saved.value.save_as(DRAWN / f"{name}.svg")


def main() -> None:
    """All pictures and figures, or those that are named."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    DRAWN.mkdir(parents=True, exist_ok=True)
    with example_site() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(link)
        for name in sys.argv[1:] or [*CLICKS, *FIGURES]:
            (take if name in CLICKS else draw)(page, name)
        browser.close()


if __name__ == "__main__":
    main()
