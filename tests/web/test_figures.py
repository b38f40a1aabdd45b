"""Figures in a real browser: values on hover and focus, and downloads with one click."""

import csv
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from playwright.sync_api import expect

from foretell.metrics import Interval
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.charts.timelines import DatedLines, dated_plot
from foretell.report.html import HtmlBlock, page
from foretell.report.study import StudyColumn
from foretell.report.study import table as made_table


def report(path: Path) -> str:
    """Write a report with two figures and a table that is wider than a phone."""
    start = datetime(2026, 9, 1, tzinfo=UTC)
    lines = {f"entry {i}": [(start + timedelta(days=7 * n), i + n / 10) for n in range(6)] for i in range(12)}
    interval = Interval(estimate=64, low=62, high=66, se=1, n_clusters=40, draws=100)
    rows = [ForestRow(name=f"entry {i}", interval=interval) for i in range(3)]
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


def downloaded(page: Any, button: Any, path: Path) -> Path:
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(path / waiting.value.suggested_filename)
    return path / waiting.value.suggested_filename


def test_figures_and_tables_are_saved_with_one_click(open_page: Callable[..., Any], tmp_path: Path) -> None:
    address = report(tmp_path)
    for width, scheme in ((1440, "dark"), (390, "light")):
        page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True)
        page.goto(address)
        figure = page.locator("figure").first
        numbers = downloaded(page, figure.get_by_role("button", name="CSV"), tmp_path)
        read = list(csv.DictReader(numbers.read_text(encoding="utf-8").splitlines()))
        assert len(read) == 72
        assert read[0] == {"name": "entry 0", "at": "2026-09-01T00:00:00+00:00", "BI": "0"}
        png = downloaded(page, figure.get_by_role("button", name="PNG"), tmp_path)
        assert png.read_bytes().startswith(b"\x89PNG")
        drawn = figure.locator("svg:visible").get_attribute("width")
        assert int.from_bytes(png.read_bytes()[16:20], "big") == 2 * int(drawn)
        svg = downloaded(page, figure.get_by_role("button", name="SVG"), tmp_path).read_text(encoding="utf-8")
        ElementTree.fromstring(svg)
        assert ("rgb(231, 234, 240)" in svg) == (scheme == "dark"), "its colours are those of the page"
        table = downloaded(page, page.get_by_role("button", name="Save the table as CSV"), tmp_path)
        assert table.read_text(encoding="utf-8").splitlines()[1].startswith("'=entry,1.5,")
        expect(page.locator(".more-right")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_figures_show_values_on_hover_and_focus_and_work_without_script(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    address = report(tmp_path)
    page = open_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    figure = page.locator("figure").first
    figure.focus()
    page.keyboard.press("ArrowRight")
    read_out = figure.locator(".read-out")
    expect(read_out).to_contain_text("entry 3, 1 Sep 2026: 3.0")
    expect(read_out.locator("span")).to_have_count(12)
    page.keyboard.press("ArrowRight")
    expect(read_out).to_contain_text("entry 3, 8 Sep 2026: 3.1")
    page.keyboard.press("Escape")
    expect(read_out).to_be_hidden()
    page.locator("figure").nth(1).locator("svg:visible path:has(title)").first.hover()
    expect(page.locator("figure").nth(1).locator(".read-out")).to_have_text("entry 0: 64.0 [62.0, 66.0]")
    still = open_page(java_script_enabled=False)
    still.goto(address)
    expect(still.locator("figure svg:visible").first).to_be_visible()
    expect(still.get_by_role("button")).to_have_count(0)
