"""Studies that were kept."""

from typing import Any

from fastapi.testclient import TestClient
from playwright.sync_api import expect

from foretell.metrics import Interval
from foretell.operations import save_study
from foretell.report import StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.report.charts import TornadoRow, tornado_plot
from foretell.runs import Settings

RANGE = Interval(estimate=0.25, low=0.2, high=0.3, se=0.02, n_clusters=40, draws=100)
STUDY = StudyResult(
    name="trials",
    title="What another trial brings",
    sentences=("Little after three <script>.",),
    tables=(
        StudyTable(
            title="Score",
            columns=(StudyColumn(label="Brier", decimals=3),),
            rows=(StudyRow(name="a", values=(RANGE,)),),
        ),
    ),
    charts=(
        StudyChart(name="bars", title="Bars", chart=tornado_plot([TornadoRow(name="x", at_low=0.1, at_high=0.9)], 0.5)),
    ),
)


def test_a_kept_study_has_a_page(settings: Settings, site: Any, page: Any):
    save_study(settings, STUDY)
    page.goto(f"{site.url}/studies")
    page.get_by_role("link", name="trials", exact=True).click()
    expect(page.locator(".lead")).to_have_text("Little after three <script>.", use_inner_text=True)
    expect(page.locator("table").first).to_contain_text("0.250 [0.200, 0.300]", use_inner_text=True)
    expect(page.locator("svg.ft:visible")).to_have_count(1)


def test_what_was_not_kept(client: TestClient):
    listed = client.get("/api/studies").json()["studies"]
    assert {"name", "asks", "kept", "command"} == set(listed[0])
    assert not any(one["kept"] for one in listed)
    assert client.get("/api/studies/trials").status_code == 404
    assert client.get("/studies/..%2f..%2fetc").status_code == 404
