"""Footers of pages, and whether a report fits on a screen."""

import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from tests.web.made_arena import fill

from foretell.cli.main import cli
from foretell.operations import score
from foretell.operations.requests.scoring import ScoreRequest
from foretell.runs.store import RunStore

PROGRAM = f"foretell {version('foretell')}"


def footer_of(document: str) -> str:
    (text,) = re.findall(r'<p class="made">(.*?)</p>', document, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "", text)).strip()


def test_a_live_page_names_the_version_and_how_its_numbers_were_resampled(client: TestClient, store: RunStore):
    fill(store)
    assert footer_of(client.get("/").text) == f"{PROGRAM}."
    drawn = rf"{re.escape(PROGRAM)}\. Intervals: seed 0, [\d,]+ draws\."
    for path in ("/arena/made", "/arena/made/entry/sharp", "/compare?arena=made&entry=sharp&entry=shy"):
        assert re.fullmatch(drawn, footer_of(client.get(path).text))


def test_written_pages_name_the_command(made_example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_HOME", str(made_example.home))
    monkeypatch.setattr("foretell.web.site.MAX_PAGES", 60)
    words = ["serve", "--static", str(tmp_path / "site")]
    with ThreadPoolExecutor(1) as aside:  # A browser may run an event loop in this thread.
        result = aside.submit(CliRunner().invoke, cli, words, catch_exceptions=False).result()
    assert result.exit_code == 0, result.output
    page_texts = {path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    pages = {name: footer_of(text) for name, text in page_texts.items() if "/export/" not in name}
    begin = re.compile(rf"Made by {re.escape(PROGRAM)} on [-0-9 :]+ UTC with foretell serve ")
    assert [(name, text) for name, text in pages.items() if not begin.match(text)] == []
    drawn = {name for name, text in pages.items() if "draws" in text}
    assert any(name.startswith("arena/") for name in drawn)
    assert any(re.fullmatch(r"runs/\w+\.html", name) for name in drawn)
    assert "index.html" not in drawn


def test_no_table_of_a_report_scrolls_sideways_at_1280_pixels(open_page: Any):
    rng = np.random.default_rng(1)
    outcome = rng.integers(0, 2, 60)
    names = ("a-model-with-a-long-name-high-search-on-2026-07-01", "another model", "x")
    forecasts = [
        {"forecaster": name, "question": f"q{i}", "target": "yes", "p": float(rng.uniform(0.02, 0.98))}
        for name in names
        for i in range(60)
    ]
    outcomes = [
        {"question": f"q{i}", "target": "yes", "outcome": int(value), "price": 0.4, "source": "ab"[i % 2]}
        for i, value in enumerate(outcome)
    ]
    request = ScoreRequest(forecasts=forecasts, outcomes=outcomes, by=("source",), bootstrap="draws=200", metrics="all")
    result = score.score(request)
    assert isinstance(result, score.ScoreResult)
    page = open_page(viewport={"width": 1280, "height": 900})
    page.set_content(result.to_html())
    wider = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.getAttribute('aria-label'))"
    assert page.locator(".scroll").evaluate_all(wider) == []
    text = page.locator("#ranking").inner_text()
    assert all(heading in text for heading in ("Brier score", "Log score", "Return", "Sharpe"))
