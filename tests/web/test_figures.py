"""Figures in a real browser: read out by mouse and keyboard, and taken away with one click."""

import csv
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from playwright.sync_api import expect

from foretell.metrics import Interval
from foretell.report import HtmlBlock, StudyColumn, page
from foretell.report import table as made_table
from foretell.report.charts import DatedLines, ForestRow, dated_plot, forest_plot


def report(path: Path) -> str:
    """A report on disk with two figures and a table that is wider than a phone."""
    start = datetime(2026, 9, 1, tzinfo=UTC)
    lines = {f"entry {i}": [(start + timedelta(days=7 * n), i + n / 10) for n in range(6)] for i in range(12)}
    one = Interval(estimate=64, low=62, high=66, se=1, n_clusters=40, draws=100)
    rows = [ForestRow(name=f"entry {i}", interval=one) for i in range(3)]
    columns = [StudyColumn(label=f"A column with a long name, number {n}") for n in range(12)]
    table = made_table("Wide", "", columns, {"=entry": [1.5, *[None] * 11]})
    blocks = [
        HtmlBlock(charts=[dated_plot(DatedLines(title="Score over time", lines=lines, label="BI"))]),
        HtmlBlock(charts=[forest_plot(rows, label="BI")]),
        HtmlBlock(table=table),
    ]
    file = path / "report.html"
    file.write_text(page("Kit", [("all", "All", blocks)]), encoding="utf-8")
    return file.as_uri()


def taken(shown: Any, button: Any, path: Path) -> Path:
    with shown.expect_download() as waiting:
        button.click()
    waiting.value.save_as(path / waiting.value.suggested_filename)
    return path / waiting.value.suggested_filename


def test_what_is_on_screen_is_taken_away_with_one_click(open_page: Callable[..., Any], tmp_path: Path) -> None:
    address = report(tmp_path)
    for width, scheme in ((1440, "dark"), (390, "light")):
        shown = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True)
        shown.goto(address)
        figure = shown.locator("figure").first
        numbers = taken(shown, figure.get_by_role("button", name="CSV"), tmp_path)
        read = list(csv.DictReader(numbers.read_text(encoding="utf-8").splitlines()))
        assert len(read) == 72
        assert read[0] == {"name": "entry 0", "at": "2026-09-01T00:00:00+00:00", "BI": "0"}
        png = taken(shown, figure.get_by_role("button", name="PNG"), tmp_path)
        assert png.read_bytes().startswith(b"\x89PNG")
        drawn = figure.locator("svg:visible").get_attribute("width")
        assert int.from_bytes(png.read_bytes()[16:20], "big") == 2 * int(drawn)
        svg = taken(shown, figure.get_by_role("button", name="SVG"), tmp_path).read_text(encoding="utf-8")
        ElementTree.fromstring(svg)
        assert ("rgb(231, 234, 240)" in svg) == (scheme == "dark"), "its colours are those of the page"
        table = taken(shown, shown.get_by_role("button", name="Save the table as CSV"), tmp_path)
        assert table.read_text(encoding="utf-8").splitlines()[1].startswith("'=entry,1.5,")
        expect(shown.locator(".more-right")).to_be_visible()
        assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_figures_are_read_out_by_mouse_and_keyboard_and_stand_without_a_script(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    address = report(tmp_path)
    shown = open_page(viewport={"width": 1440, "height": 900})
    shown.goto(address)
    figure = shown.locator("figure").first
    figure.focus()
    shown.keyboard.press("ArrowRight")
    said = figure.locator(".read-out")
    expect(said).to_contain_text("entry 3, 1 Sep 2026: 3.0")
    expect(said.locator("span")).to_have_count(12)
    shown.keyboard.press("ArrowRight")
    expect(said).to_contain_text("entry 3, 8 Sep 2026: 3.1")
    shown.keyboard.press("Escape")
    expect(said).to_be_hidden()
    shown.locator("figure").nth(1).locator("svg:visible path:has(title)").first.hover()
    expect(shown.locator("figure").nth(1).locator(".read-out")).to_have_text("entry 0: 64.0 [62.0, 66.0]")
    still = open_page(java_script_enabled=False)
    still.goto(address)
    expect(still.locator("figure svg:visible").first).to_be_visible()
    expect(still.get_by_role("button")).to_have_count(0)
