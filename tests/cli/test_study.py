"""foretell study as a user runs it: list, run on own tables and on published ones, write every form."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.studies.made_trials import SIMULATED, made, write_long

from foretell.cli import cli
from foretell.plugins import names
from foretell.questions import InputError

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


@pytest.mark.parametrize("name", ["trials", "aggregation", "calibration", "variance"])
def test_own_tables(name: str, tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    out = tmp_path / "out"
    result = run(name, "-f", f, "-o", o, "--draws", "100", "--out", out)
    assert result.exit_code == 0, result.output
    written = {path.name for path in out.iterdir()}
    assert {f"{name}.html", f"{name}.md", f"{name}.json"} <= written
    assert any(path.endswith(".svg") for path in written)
    assert json.loads((out / f"{name}.json").read_text())["settings"]["seed"] == 0


def test_one_page_json_and_markdown(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    page = tmp_path / "t.html"
    result = run("trials", "-f", f, "-o", o, "--config", "y", "--draws", "100", "--out", page, "--json")
    assert json.loads(result.stdout)["settings"]["configurations"] == ["y"]
    assert page.read_text().startswith("<!DOCTYPE html>")
    text, cells, parquet = tmp_path / "t.md", tmp_path / "t.csv", tmp_path / "t.parquet"
    outs = [part for path in (text, cells, parquet) for part in ("--out", path)]
    assert run("trials", "-f", f, "-o", o, "--draws", "100", *outs).exit_code == 0
    assert text.read_text().startswith("## What another trial brings")
    assert cells.read_text().startswith("table,row,column,value,low,high,text")
    assert parquet.read_bytes().startswith(b"PAR1")
    assert "the new spelling is --out FILE.md" in run("trials", "-f", f, "-o", o, "--markdown").output


def test_two_forecasters_side_by_side_are_a_command_of_their_own(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    page = tmp_path / "pair.html"
    arguments = ["x", "y", "-f", f, "-o", o, "--by", "source", "--draws", "100", "--json", "--out", page]
    result = CliRunner().invoke(cli, ["compare", *map(str, arguments)])
    found = json.loads(result.stdout)
    assert (found["first"], found["second"]) == ("x", "y")
    assert [one["group"].get("source") for one in found["verdicts"]][-4:] == ["poly", "fred", "mani", "acled"]
    written = page.read_text()
    assert "<h1>x and y</h1>" in written
    assert found["verdicts"][0]["sentence"] in written
    assert "Where they differ" in written
    for gone in ("comparison", "coverage"):
        assert isinstance(run(gone, "-f", f, "-o", o).exception, InputError)


def test_the_same_seed_the_same_bytes(tables: tuple[Path, Path]):
    f, o = tables
    first, second = (run("trials", "-f", f, "-o", o, "--draws", "100", "--json").stdout for _ in range(2))
    other = run("trials", "-f", f, "-o", o, "--draws", "100", "--seed", "7", "--json").stdout
    assert first == second != other


def test_a_name_that_is_none_and_no_trials(tables: tuple[Path, Path]):
    f, o = tables
    result = run("trails", "-f", f, "-o", o)
    assert isinstance(result.exception, InputError)
    assert "did you mean 'trials'" in str(result.exception)
    result = run("trials")
    assert isinstance(result.exception, InputError)
    assert "--data" in str(result.exception)
    result = run("trials", "-f", f, "-o", o, "--config", "z")
    assert "no configuration is called 'z'" in str(result.exception)


def test_studies_of_trees_are_listed_and_need_no_data():
    listed = run("tree").output
    assert all(name in listed for name in SIMULATED)
    assert "calibration" not in listed


@pytest.mark.parametrize("name", sorted(SIMULATED))
def test_every_study_of_trees_plays_in_a_made_up_world(name: str, tmp_path: Path):
    words = name.replace("tree-", "tree ").split() if name.startswith("tree-") else ["tree", name]
    result = run(*words, "--worlds", "3", "--draws", "100", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["name"] == name
    assert written["settings"]["seed"] == 0
    assert (tmp_path / f"{name}.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("name", ["stability", "threshold", "consensus"])
def test_studies_of_trees_on_own_tables(name: str, tables: tuple[Path, Path]):
    f, o = tables
    result = run(name, "-f", f, "-o", o, "--draws", "100", "--json")
    assert json.loads(result.stdout)["settings"]["configurations"] == ["x", "y"]


def test_costs_come_from_a_table_beside_the_forecasts(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    costs = tmp_path / "costs.csv"
    costs.write_text("forecaster,dollars,seconds\nx,0.1,3\ny,0.4,5\n")
    result = run("frontier", "-f", f, "-o", o, "--costs", costs, "--draws", "100", "--json")
    found = {entry["name"]: entry["dollars"] for entry in json.loads(result.stdout)["tables"][0]["rows"]}
    assert found == {"x": 0.1, "y": 0.4}
    costs.write_text("forecaster,dollars\nz,0.1\n")
    assert "no forecaster is called 'z'" in str(run("frontier", "-f", f, "-o", o, "--costs", costs).exception)


def test_tree_files():
    result = run("tree", "noise", "--trees", EXAMPLES, "--draws", "100")
    assert "2 trees" in result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("trials", "-f", "f.csv", "--data", EXAMPLES), "takes data from one source"),
        (("stability",), "needs trials"),
        (("stability", "-f", "f.csv"), "f.csv: no such file"),
        (("tree", "nose"), "did you mean 'tree-noise'"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: tuple[str | Path, ...], told: str):
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert told in str(result.exception)


@pytest.mark.parametrize("arguments", [("stability", "--worlds", "3"), ("trials", "--worlds", "3")])
def test_a_study_offers_only_options_that_it_uses(arguments: tuple[str | Path, ...]):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "No such option" in result.output


@pytest.mark.shared_data
def test_published_tables(shared_data: Path, tmp_path: Path):
    config = "pro-high-brave-c0-t1"
    data = shared_data / "tables"
    result = run("trials", "--data", data, "--config", config, "--draws", "100", "--paper-outcomes", "--json")
    assert result.exit_code == 0, result.output
    curve = json.loads(result.stdout)["tables"][0]["rows"][0]
    assert curve["name"] == config
    assert curve["k=5"] == pytest.approx(69.67, abs=0.01)
