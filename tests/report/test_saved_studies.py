"""Studies kept for the web app: whole folders, replaced by name, opened as they were."""

import json
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.studies.made_trials import SIMULATED

from foretell.cli import cli
from foretell.metrics import Interval
from foretell.operations import open_study, save_study, saved_studies
from foretell.questions import InputError
from foretell.report import (
    StudyChart,
    StudyColumn,
    StudyResult,
    StudyRow,
    StudyTable,
    chart_titles,
    markdown_study,
    study_from_dict,
    study_page,
)
from foretell.report.charts import figure, rect
from foretell.runs import Settings, load_settings
from foretell.scoring import Verdict

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
                StudyRow(name="b", values=(4, None, 1.5, 0.0, None), style="anchor"),
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


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.mark.usefixtures("fixed_clock")
def test_a_study_survives_json():
    data = json.loads(json.dumps(STUDY.to_dict(), allow_nan=False))
    read = study_from_dict(data)
    assert read.to_dict() == {**STUDY.to_dict(), "charts": []}
    first, second = read.tables[0].rows
    interval = first.values[1]
    assert isinstance(interval, Interval)
    assert isnan(interval.low)
    assert (interval.estimate, interval.draws, interval.warning) == (0.5, 100, None)
    assert first.values[2] == GAP
    assert second.style == "anchor"
    assert second.values[4] is None
    assert [column.label for column in read.tables[0].columns] == ["n", "name", "Δ", "Δ", "said"]
    assert read.tables[0].columns == STUDY.tables[0].columns
    assert markdown_study(read) == markdown_study(STUDY)


def test_studies_written_before_columns_had_looks():
    data = json.loads(json.dumps(STUDY.to_dict()))
    for grid in data["tables"]:
        for later in ("formats", "styles", "row_header"):
            del grid[later]
    del data["how_to_read"]
    read = study_from_dict(data)
    assert read.tables[0].columns[2].label == "Δ"
    assert read.tables[0].rows[0].values[2] == GAP


@pytest.mark.parametrize(
    "spoilt",
    [
        {"schema": "other"},
        {"tables": None},
        {"tables": [{"title": "x"}]},
        {"notes": 3},
        {"settings": None, "tables": [1]},
    ],
)
def test_what_is_no_study_is_refused(spoilt: dict[str, object]):
    with pytest.raises(InputError, match="study"):
        study_from_dict({**STUDY.to_dict(), **spoilt})


@pytest.mark.usefixtures("fixed_clock")
def test_files_of_the_first_schema_are_read():
    new = STUDY.to_dict()
    old = {
        "schema": "foretell/study/1",
        **{key: new[key] for key in ("name", "title", "notes")},
        "finding": STUDY.text,
        "grids": [
            {
                **{key: table[key] for key in ("title", "caption", "columns", "styles")},
                "head": table["row_header"],
                "looks": table["formats"],
                "entries": table["rows"],
            }
            for table in new["tables"]
        ],
        "pictures": new["charts"],
        "settings": {"draws": 100, "dollars": 0.5, "calls": 3, "passed": True},
        "advice": new["how_to_read"],
    }
    read = study_from_dict(json.loads(json.dumps(old)))
    assert markdown_study(read) == markdown_study(STUDY)
    assert (read.sentences, read.how_to_read, read.passed) == (STUDY.sentences, STUDY.how_to_read, True)
    assert read.cost is not None
    assert (read.cost.dollars, read.cost.calls) == (0.5, 3)
    assert chart_titles(old) == {"box": "A box"}


@pytest.mark.usefixtures("fixed_clock")
def test_kept_and_opened(settings: Settings):
    assert saved_studies(settings) == []
    folder = save_study(settings, STUDY)
    assert folder == settings.home / "studies" / "made"
    assert sorted(path.name for path in folder.iterdir()) == ["box.svg", "study.json"]
    found, pictures = open_study(settings, "made")
    assert pictures == {"box": folder / "box.svg"}
    assert found.charts == STUDY.charts
    assert study_page(found) == study_page(replace(study_from_dict(STUDY.to_dict()), charts=STUDY.charts))
    assert "Read it slowly." in study_page(found)


def test_a_later_one_replaces_the_former_whole(settings: Settings):
    save_study(settings, STUDY)
    save_study(settings, replace(STUDY, title="Later", charts=()))
    save_study(settings, replace(STUDY, name="another"))
    assert saved_studies(settings) == ["another", "made"]
    found, pictures = open_study(settings, "made")
    assert (found.title, pictures) == ("Later", {})
    assert sorted(path.name for path in (settings.home / "studies").iterdir()) == ["another", "made"]


def test_a_study_that_cannot_be_kept_leaves_the_former_alone(settings: Settings):
    save_study(settings, STUDY)
    bad = replace(STUDY, charts=(replace(STUDY.charts[0], name="../box"),))
    with pytest.raises(InputError, match="cannot name a file"):
        save_study(settings, bad)
    assert open_study(settings, "made")[0].charts == STUDY.charts
    assert [path.name for path in (settings.home / "studies").iterdir()] == ["made"]


@pytest.mark.parametrize("name", ["", "..", "../made", "none", ".new-x"])
def test_names_that_are_not_kept(settings: Settings, name: str):
    save_study(settings, STUDY)
    with pytest.raises(InputError, match="there are: made"):
        open_study(settings, name)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "foretell/study/1"}', '{"pictures": [{}]}'])
def test_a_damaged_file_is_named(settings: Settings, text: str):
    (save_study(settings, STUDY) / "study.json").write_text(text)
    with pytest.raises(InputError, match=r"study\.json"):
        open_study(settings, "made")


@pytest.mark.parametrize("name", sorted(SIMULATED))
def test_studies_are_kept_from_the_command_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    result = CliRunner().invoke(cli, ["study", name, "--worlds", "2", "--draws", "100", "--keep", "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    found, pictures = open_study(load_settings(), name)
    assert found.to_dict() == json.loads(result.stdout)
    assert set(pictures) == {picture.name for picture in found.charts}
