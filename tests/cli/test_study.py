"""`foretell study`: list studies, run them on own and published tables, write every format."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.blf_study import TrialAssumptions, convert
from click.testing import CliRunner, Result
from tests.studies.made_trials import grown, made, write_long

from foretell.cli.main import cli
from foretell.plugins import names
from foretell.questions.errors import InputError
from foretell.scoring.forecaster_facts import read_forecaster_facts

EXAMPLES = Path(__file__).parents[2] / "examples" / "trees"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["study", *map(str, arguments)])


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    return write_long({"x": made(rounds=2, size=12), "y": made(rounds=2, size=12, method_seed=5)}, tmp_path)


def test_without_a_name_the_studies_are_listed():
    result = run()
    assert result.exit_code == 0
    assert all(name in result.output for name in names("studies"))


QUICK = ("--bootstrap", "draws=100")


@pytest.mark.parametrize("name", ["trials", "calibration", "ensemble", "variance"])
def test_studies_run_on_own_tables(name: str, tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    out = tmp_path / "out"
    result = run(name, "-f", f, "-o", o, *QUICK, "--out", out)
    assert result.exit_code == 0, result.output
    file_names = {path.name for path in out.iterdir()}
    assert {f"{name}.html", f"{name}.md", f"{name}.json"} <= file_names
    assert any(path.endswith(".svg") for path in file_names)
    assert json.loads((out / f"{name}.json").read_text())["settings"]["seed"] == 0


def test_a_study_is_written_as_page_json_markdown_and_tables(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    page = tmp_path / "t.html"
    result = run("trials", f, "-o", o, "--section", "number", *QUICK, "--out", page, "--json")
    assert json.loads(result.stdout)["settings"]["configurations"] == ["x", "y"]
    assert page.read_text().startswith("<!DOCTYPE html>")
    text, csv_file, parquet = tmp_path / "t.md", tmp_path / "t.csv", tmp_path / "t.parquet"
    outs = [part for path in (text, csv_file, parquet) for part in ("--out", path)]
    assert run("trials", f, "-o", o, *QUICK, *outs).exit_code == 0
    assert text.read_text().startswith("## The gain from several trials")
    assert csv_file.read_text().startswith("table,row,column,value,low,high,text")
    assert parquet.read_bytes().startswith(b"PAR1")
    assert "should end in" in run("trials", f, "-o", o, "--out", "t.pdf").output


def test_files_are_arguments_and_several_are_read_together(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    head, *lines = f.read_text().splitlines(keepends=True)
    parts = {name: tmp_path / f"{name}.csv" for name in ("x", "y")}
    for name, path in parts.items():
        path.write_text(head + "".join(line for line in lines if line.startswith(f"{name},")))
    whole = run("trials", f, "-o", o, "--section", "stability", *QUICK, "--json")
    split = run("trials", *parts.values(), "-o", o, "--section", "stability", *QUICK, "--json")
    assert json.loads(split.stdout)["tables"] == json.loads(whole.stdout)["tables"]


def test_columns_of_the_forecasts_are_factors_and_costs(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    head, *lines = f.read_text().splitlines()
    facts = {"x": "with,0.1,3", "y": "without,0.4,5"}
    rows = [f"{head},tools,dollars,seconds", *(f"{line},{facts[line[0]]}" for line in lines)]
    file = tmp_path / "described.csv"
    file.write_text("\n".join(rows) + "\n")
    report = json.loads(run("ablation", file, "-o", o, *QUICK, "--json").stdout)
    changes = next(table for table in report["tables"] if table["title"] == "One factor at a time")
    assert [row["name"] for row in changes["rows"]] == ["tools: with → without"]
    assert any(
        note.startswith("Section factorial was left out: no two factors are crossed") for note in report["notes"]
    )
    costs = json.loads(run("decisions", file, "-o", o, *QUICK, "--json").stdout)["tables"][0]["rows"]
    assert {row["name"]: row["Cost ×1k"] for row in costs} == {"x": pytest.approx(100), "y": pytest.approx(400)}


def test_calibration_shows_what_every_protocol_gains_and_writes_a_page(tmp_path: Path):
    f, o = write_long({"bot": grown(made(rounds=4, size=24), 2.0)}, tmp_path)
    page, data = tmp_path / "r.html", tmp_path / "r.json"
    arguments = ("calibration", f, "-o", o, "--section", "gain", "--method", "default", "--method", "platt")
    result = run(*arguments, *QUICK, "--out", page, "--out", data)
    assert result.exit_code == 0, result.output
    assert "calibrated from the past alone" in result.output.replace("\n", " ")
    ElementTree.fromstring(page.read_text().partition("\n")[2])
    report = json.loads(data.read_text())
    grid = report["tables"][0]
    gains = [label for label in grid["columns"] if label.startswith("Δ")]
    assert gains == ["Δ past only", "Δ question out", "Δ event out", "Δ in-sample"]
    platt = next(row for row in grid["rows"] if row["name"] == "platt")
    assert platt["Δ in-sample"]["diff"] >= platt["Δ past only"]["diff"]
    assert {"low", "high", "n", "n_clusters"} <= set(platt["Δ past only"])
    assert json.loads(run(*arguments, *QUICK, "--json").stdout)["tables"] == report["tables"], "JSON alone is printed"


def test_the_same_seed_gives_the_same_bytes(tables: tuple[Path, Path]):
    f, o = tables
    arguments = ("trials", "-f", f, "-o", o, "--section", "number", "--json")
    first, second = (run(*arguments, *QUICK).stdout for _ in range(2))
    other = run(*arguments, "--bootstrap", "draws=100,seed=7").stdout
    assert first == second != other


def test_an_unknown_name_and_missing_forecasts_are_refused(tables: tuple[Path, Path]):
    f, o = tables
    result = run("trails", "-f", f, "-o", o)
    assert isinstance(result.exception, InputError)
    assert "did you mean 'trials'" in str(result.exception)
    assert "Invalid value for '--section': 'numbers'" in run("trials", "-f", f, "--section", "numbers").output


def test_the_study_of_trees_needs_no_data(tmp_path: Path):
    result = run("tree-noise", "--worlds", "3", *QUICK, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "tree-noise.json").read_text())
    assert report["settings"]["seed"] == 0
    assert "Coverage of the error bar" in {table["title"] for table in report["tables"]}
    assert (tmp_path / "tree-noise.html").read_text().startswith("<!DOCTYPE html>")


def test_folders_of_trees_are_arguments():
    result = run("tree-noise", EXAMPLES, *QUICK)
    assert "2 trees" in result.output
    assert "Section error-bars was left out" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("trials", "-f", "f.csv", "--grid", "g.yaml"), "a study takes a grid, or runs and files"),
        (("trials", "g.csv", "-f", "f.csv"), "g.csv is given in addition to --forecasts"),
        (("trials",), "a study needs forecasts"),
        (("trials", "-f", "f.csv"), "f.csv: no such file"),
        (("tree-nose",), "did you mean 'tree-noise'"),
        (("tree-noise", EXAMPLES, "--worlds", "3"), "--worlds: has no effect on given trees"),
        (("tree-noise", EXAMPLES, "--section", "error-bars"), "the truth of given trees is not known"),
        (("calibration", "-f", "f.csv", "--method", "plat"), "did you mean 'platt'"),
        (("trials", "-f", "f.csv", "--bootstrap", "cluster=source"), "a study chooses its own clusters"),
    ],
)
def test_conflicting_options_are_refused(arguments: tuple[str | Path, ...], problem: str):
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert problem in str(result.exception)


def test_a_study_has_only_options_that_it_uses():
    result = run("trials", "--worlds", "3")
    assert result.exit_code == 2
    assert "No such option" in result.output


@pytest.mark.shared_data
def test_published_tables_after_conversion(shared_data: Path, tmp_path: Path):
    known = TrialAssumptions(outcome="paper_outcome")
    forecasts, outcomes = convert(shared_data / "tables", tmp_path, known=known)
    result = run("trials", forecasts, "-o", outcomes, "--section", "number", *QUICK, "--json")
    assert result.exit_code == 0, result.output
    curves = {row["name"]: row for row in json.loads(result.stdout)["tables"][0]["rows"]}
    assert curves["pro-high-brave-c0-t1"]["k=5"] == pytest.approx(69.67, abs=0.01)
    factors = read_forecaster_facts(forecasts).factors
    assert factors["pro-high-brave-c0-t1"]["shows_price"] == "no"
