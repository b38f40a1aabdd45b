"""Studies as files: a page, Markdown, JSON, tables of cells and charts, alone or all in a folder."""

import json
from dataclasses import replace
from math import nan
from pathlib import Path

import pytest

from foretell.metrics import Interval
from foretell.questions.errors import InputError
from foretell.report.charts.svg import figure, rect
from foretell.report.document import write_outputs
from foretell.report.study import StudyChart, StudyColumn, StudyRow, StudyTable
from foretell.report.study_result import StudyResult
from foretell.scoring.verdict import Verdict

INTERVAL = Interval(estimate=0.5, low=nan, high=0.75, se=0.1, n_clusters=9, draws=100)
GAP = Verdict(
    first="a",
    second="b",
    metric="bi",
    first_score=INTERVAL,
    second_score=INTERVAL,
    diff=-0.25,
    se=0.1,
    low=-0.5,
    high=-0.125,
    p=0.02,
    n=30,
    n_clusters=30,
    n_effective=30,
    better="high",
    matters=0.1,
    level=0.95,
    warning="few",
)
STUDY = StudyResult(
    name="made",
    title="Made <up>",
    sentences=("Nothing much.",),
    tables=(
        StudyTable(
            title="One",
            row_header="Who",
            columns=(
                StudyColumn(label="n", decimals=0),
                StudyColumn(label="name", decimals=3, tip="not the line's"),
                StudyColumn(label="Δ"),
                StudyColumn(label="Δ", decimals=2),
                StudyColumn(label="said", numeric=False),
            ),
            rows=(
                StudyRow(name="a", values=(3, INTERVAL, GAP, nan, "yes")),
                StudyRow(name="b", values=(4, None, 1.5, 0.0, None), style="baseline"),
            ),
            caption="A caption.",
        ),
        StudyTable(title="Nothing in it", columns=(), rows=()),
    ),
    charts=(StudyChart(name="box", title="A box", chart=figure(500, 60, "box", rect(1, 2, 3, 4, "f-blue"))),),
    notes=("A note.",),
    settings={"draws": 100, "level": nan, "names": ["x"]},
    how_to_read=("Read it slowly.",),
)


def test_json_has_every_value_and_null_for_missing_numbers():
    data = json.loads(json.dumps(STUDY.to_dict(), allow_nan=False))
    table = data["tables"][0]
    assert table["columns"] == ["n", "name (2)", "Δ", "Δ (2)", "said"]
    first, second = table["rows"]
    assert first["name (2)"]["estimate"] == 0.5
    assert first["name (2)"]["low"] is None
    assert (first["Δ"]["first"], first["Δ"]["diff"], first["Δ (2)"]) == ("a", -0.25, None)
    assert (second["n"], second["said"]) == (4, None)
    assert table["styles"] == ["", "baseline"]
    assert data["charts"] == [{"name": "box", "title": "A box"}]


def test_a_folder_gets_the_page_markdown_json_and_every_chart(tmp_path: Path):
    paths = write_outputs(STUDY, [tmp_path / "out"])
    assert [path.name for path in paths] == ["made.html", "made.md", "made.json", "made.svg"]
    assert all(path.is_file() for path in paths)
    assert "Read it slowly." in paths[0].read_text()
    bare = write_outputs(replace(STUDY, charts=()), [tmp_path / "bare"])
    assert [path.suffix for path in bare] == [".html", ".md", ".json"]


def test_several_charts_are_written_to_several_files(tmp_path: Path):
    two = replace(STUDY, charts=(*STUDY.charts, replace(STUDY.charts[0], name="other")))
    paths = write_outputs(two, [tmp_path / "chart.svg"])
    assert [path.name for path in paths] == ["chart-box.svg", "chart-other.svg"]
    assert write_outputs(STUDY, [tmp_path / "one.svg"]) == [tmp_path / "one.svg"]
    with pytest.raises(InputError, match="this study has no chart"):
        write_outputs(replace(STUDY, charts=()), [tmp_path / "none.svg"])
