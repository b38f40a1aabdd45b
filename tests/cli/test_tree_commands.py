"""The commands of `foretell tree`."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foretell.cli.commands import operation_command
from foretell.questions.errors import InputError

tree = operation_command("tree")
whatif = operation_command("tree whatif")

EXAMPLES = Path(__file__).parents[2] / "examples" / "trees"
NVDA, BANK = EXAMPLES / "nvda.json", EXAMPLES / "central_bank.json"


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")


def run(command: Any, *arguments: str | Path) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_show_prints_every_claim_with_its_number():
    out = run(tree, "show", NVDA, "--inputs").stdout
    assert "P0 87.2 % Buying NVIDIA" in out
    assert "      P1.1.3 92.0 %" in out
    assert "P1.3 81.5 %" in out
    assert "(override)" in out
    assert "+0.1260  P0 → P3 → P3.2  (0.3 × 0.42)" in out
    assert out.splitlines()[-1].startswith("+0.0090  P0 → P1 → P1.4 → P1.4.2")


def test_an_unknown_command_is_refused():
    for words in (str(NVDA), "nothing of the kind"):
        result = run(tree, words)
        assert result.exit_code == 2
        assert "No such command" in result.stderr


def test_trees_are_listed_without_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    (tmp_path / "trees").mkdir()
    shutil.copy(BANK, tmp_path / "trees" / "bank.json")
    assert "bank" in run(tree).stdout
    assert run(tree).stdout == run(tree, "list").stdout
    assert json.loads(run(tree, "--json").stdout)["trees"][0]["name"] == "bank"
    assert run(tree, "show", "bank").stdout == run(tree, "show", BANK).stdout


def test_show_lists_all_errors_and_points_into_formulas(tmp_path: Path):
    good = run(tree, "show", BANK)
    assert good.exit_code == 0
    bad = tmp_path / "bad.json"
    text = (
        BANK.read_text()
        .replace("(P1 AND P2) OR (P2 AND P3)", "(P1 AND P2) OR (P2 AND )")
        .replace('"p": 0.7,', '"p": 7,')
    )
    bad.write_text(text)
    result = run(tree, "show", bad)
    assert result.exit_code == 1
    assert "error: node P1.1, p: 7 is outside [0, 1]" in result.stdout
    assert "character 24" in result.stdout
    lines = result.stdout.splitlines()
    caret = next(i for i, line in enumerate(lines) if line.strip() == "^")
    assert lines[caret - 1][lines[caret].index("^")] == ")"
    assert lines[-1] == f"{bad}: 2 errors"
    assert json.loads(run(tree, "show", bad, "--json").stdout)["ok"] is False
    with pytest.raises(InputError, match="and 1 more: foretell tree show lists all"):
        run(tree, "show", bad, "--out", tmp_path / "bad.svg")


def test_a_tree_is_written_in_the_format_of_the_suffix(tmp_path: Path):
    begins = {
        ".pl": "% P1.1",
        ".bif": "network tree {",
        ".dot": "digraph tree {",
        ".md": "# The central bank",
        ".html": "<!doctype html>",
        ".svg": "<svg",
        ".json": "{",
    }
    files = {suffix: tmp_path / f"out{suffix}" for suffix in begins}
    outs = [word for file in files.values() for word in ("--out", file)]
    assert run(tree, "show", BANK, *outs).exit_code == 0
    for suffix, file in files.items():
        assert file.read_text().lower().startswith(begins[suffix].lower()), suffix
    assert json.loads(files[".json"].read_text()) == json.loads(BANK.read_text()), "it can be opened again"
    with pytest.raises(InputError, match="no leaf of this tree has a notebook"):
        run(tree, "show", BANK, "--out", tmp_path / "folder")
    assert "should end in" in run(tree, "show", BANK, "--out", tmp_path / "out.mmd").stderr


def test_a_tree_that_is_not_a_bayes_net_is_refused_unless_scaled(tmp_path: Path):
    out = tmp_path / "out.pl"
    with pytest.raises(InputError, match=r"node P1\.1, link: is not a conditional probability"):
        run(tree, "show", NVDA, "--out", out)
    scaled = run(tree, "show", NVDA, "--out", out, "--scaling", "min-max")
    assert "query(p0)." in out.read_text()
    assert "scaled by min-max: the root was 87.2 %" in scaled.stderr


def test_whatif_prints_old_and_new_of_every_changed_claim():
    out = run(whatif, BANK, "--set", "P2.1=0", "--set", "P3=0.7").stdout
    rows = {line.split()[0]: re.findall(r"\S+ %", line)[:2] for line in out.splitlines()[1:]}
    assert rows == {
        "P0": ["53.8 %", "39.9 %"],
        "P1": ["61.8 %", "56.8 %"],
        "P1.2": ["47.0 %", "30.2 %"],
        "P2": ["51.3 %", "29.9 %"],
        "P2.1": ["40.0 %", "0.0 %"],
        "P3": ["67.5 %", "70.0 %"],
    }


def test_whatif_as_json_with_spread_and_tornado():
    arguments = (BANK, "--set", "P2.1=0", "--sd", "P1.1=0.1", "--tornado", "--json")
    data = json.loads(run(whatif, *arguments).stdout)
    (scenario,) = data["scenarios"]
    assert data["schema"] == "foretell/whatif/1"
    assert scenario["edits"] == [{"edit": "set_p", "id": "P2.1", "p": 0.0}]
    assert {change["id"] for change in scenario["changes"]} == {"P0", "P1", "P1.2", "P2", "P2.1"}
    assert scenario["p"] == pytest.approx(0.3936, abs=1e-4)
    assert data["spread"]["p"] == scenario["p"]
    assert [bar["id"] for bar in data["tornado"]] == ["P1.1"]
    assert data == json.loads(run(whatif, *arguments).stdout)
    stdout = run(whatif, BANK, "--sd", "P1.1=0.1", "--tornado").stdout
    assert "nothing changes" in stdout
    assert "answer 53.8 % ± 3.3 points" in stdout


def test_scenarios_are_saved_and_compared(tmp_path: Path):
    path = tmp_path / "t.json"
    shutil.copy(BANK, path)
    saved = run(whatif, path, "--set", "P1.3=0", "--save", "oil shock")
    assert "Saved 'oil shock'" in saved.stderr
    table = run(whatif, path, "--scenario", "all").stdout
    assert [name in table for name in ("hard landing", "no landing", "second wave", "oil shock")] == [True] * 4
    some = run(whatif, path, "--scenario", "oil shock", "--scenario", "no landing").stdout
    assert "second wave" not in some
    assert json.loads(path.read_text())["scenarios"]["oil shock"] == {"set": {"P1.3": 0.0}}
    assert run(tree, "show", path).exit_code == 0


def test_overrides_are_cleared_and_limits_reported():
    assert "85.1 %" in run(whatif, NVDA, "--set", "P1.3=auto").stdout
    held = run(whatif, NVDA, *(x for id in ("P1.1.1", "P1.1.2", "P1.1.3") for x in ("--set", f"{id}=0")))
    assert "note: P1.1 leaves [0, 1]" in held.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--set", "P9=0.5"), "node P9: is not in the tree"),
        (("--set", "P1=1.5"), "--set P1: must be a probability such as 62% or 0.62, not 1.5; or auto"),
        (("--set", "P1"), "'P1' is not of the form NAME=VALUE"),
        (("--set", "P1=high"), "--set P1: must be a probability such as 62% or 0.62, not high; or auto"),
        (("--scenario", "none"), "no scenario 'none' is saved"),
        (("--save", "x"), "there is nothing to save"),
        (("--sd", "P1=0.1"), "P1 is not an input of the tree"),
    ],
)
def test_invalid_whatif_options_are_refused(arguments: tuple[str, ...], problem: str):
    with pytest.raises(InputError, match=problem):
        run(whatif, BANK, *arguments)
