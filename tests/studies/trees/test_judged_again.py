"""Judged claims are judged again for every noise, by models behind real sockets; repeating the study costs nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fakes.models import BackgroundModels
from fakes.stored_run import run_id_of
from foretell.cli.main import cli
from foretell.studies.leaf_noise import DISTURBANCES, RATIOS

SIZE = 3


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script="foretell.practice.models.scripts:tree_script") as fake:
        yield fake


@pytest.fixture
def run(provider: BackgroundModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A finished run that grew a judged tree for each of three decided questions."""
    provider.reset()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("FORETELL_OPENAI_URL", f"{provider.url}/v1")
    monkeypatch.delenv("FORETELL_DATABASE_URL", raising=False)
    rows = [
        {"claim": f"The council approved bridge {n}.", "label": n % 2 == 0, "published": f"2024-06-0{n + 1}"}
        for n in range(SIZE)
    ]
    Path("claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert foretell("data", "build", "claims", "claims.jsonl", "--out", "set").exit_code == 0
    Path("run.yaml").write_text(
        "questions: set\nforecaster: tree\nmodels: {agent: 'openai:gpt-5-mini'}\n"
        "options: {rule: vanilla, grounder: plain, leaves: 3}\n"
    )
    started = foretell("run", "run.yaml")
    assert started.exit_code == 0, started.output
    return run_id_of("run.yaml")


def foretell(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def study(*arguments: str) -> dict[str, Any]:
    result = foretell("study", "tree-noise", *arguments, "--section", "noise", "--bootstrap", "draws=100", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_judged_claims_are_judged_again_once_for_each_noise(run: str, provider: BackgroundModels):
    without = study(run)
    assert f"{SIZE} roots of {SIZE} are judged: no noise reaches them. --model judges them again." in without["notes"]
    assert without["cost"] is None
    before = set(provider.stats()["billed"])
    asked = study(run, "--model", "openai:gpt-5-mini", "--budget", "5")
    copies = SIZE * len(DISTURBANCES) * len(RATIOS)
    changed = len(set(provider.stats()["billed"]) - before)
    assert SIZE * len(RATIOS) <= changed <= copies, "normal noise changes every copy, the others only some"
    assert any(f"one copy of each tree, noise and ratio: {copies} copies" in note for note in asked["notes"])
    accuracy = next(grid for grid in asked["tables"] if grid["title"] == "Accuracy under reverse noise, %")
    assert len(accuracy["rows"]) == 3, "as they are, average, random"
    billed = provider.stats()["billed"]
    again = study(run, "--model", "openai:gpt-5-mini", "--budget", "5")
    assert provider.stats()["billed"] == billed
    assert again["tables"] == asked["tables"]
