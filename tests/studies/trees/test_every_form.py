"""Every study of trees renders as a page, as Markdown and for terminals of several widths, reproducibly."""

import io
import json
from xml.etree import ElementTree

import pytest
from rich.console import Console
from tests.studies.made_trials import SIMULATED

from foretell.operations.studies import study as run_study
from foretell.report.document import markdown_study, print_study, study_page
from foretell.report.study_result import StudyResult


def played(name: str) -> StudyResult:
    return run_study(name, worlds=2, bootstrap="draws=100")


@pytest.mark.parametrize("name", sorted(SIMULATED))
def test_every_tree_study_renders_in_every_format_and_is_reproducible(name: str):
    study = played(name)
    assert study.text.endswith(".")
    assert study.tables
    for picture in study.charts:
        ElementTree.fromstring(picture.chart.standalone())
    page = study_page(study)
    ElementTree.fromstring(page.partition("\n")[2])
    text = markdown_study(study)
    for width in (60, 80, 140):
        shown = io.StringIO()
        print_study(study, Console(file=shown, width=width))
        assert max(map(len, shown.getvalue().splitlines())) <= width
    for grid in study.tables:
        assert grid.title in text
        assert len({column.label for column in grid.columns}) == len(grid.columns), "labels are keys in the JSON"
    assert "nan" not in text.lower()
    assert json.loads(json.dumps(study.to_dict(), allow_nan=False))["name"] == name
    assert played(name).to_dict() == study.to_dict()
