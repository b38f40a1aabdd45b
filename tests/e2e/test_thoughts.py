"""Runs of every kind of thoughts in real processes, started twice, and invalid options."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.models import BackgroundModels

PROPOSED = {"thoughts": [{"claim": "The city council votes by 30 September 2026.", "why": "No vote, no approval."}]}
SCRIPT = (
    {"when": "Name one step.", "text": json.dumps({**PROPOSED, "enough": False})},
    {"when": "Name 2 different steps.", "text": json.dumps({**PROPOSED, "enough": True})},
    {"when": "Several lines of thought", "text": json.dumps({"lines": [{"id": "T1.1.1.1", "value": 1}]})},
    {"when": "You examine one claim", "text": json.dumps({"report": "Seen.", "key_factor": "Votes.", "p": 0.6})},
    {"when": "Others have looked into", "text": json.dumps({"report": "So.", "key_factor": "The vote.", "p": 0.7})},
)


@pytest.fixture
def planner() -> Iterator[BackgroundModels]:
    with BackgroundModels(script="foretell.practice.models.scripts:tree_script") as fake:
        yield fake


@pytest.fixture
def workspace(build_workspace: Callable[..., Any]) -> Any:
    built = build_workspace("http://127.0.0.1:9")
    lines = [json.dumps(line) + "\n" for line in SCRIPT]
    (built.folder / "script.jsonl").write_text("".join(lines), encoding="utf-8")
    return built


def spec(workspace: Any, **options: Any) -> Path:
    usual = {"grounder": "plain", "depth": 1, "width": 2, "keep": 1, "trees": 2}
    fields = {"forecaster": "thoughts", "options": {**usual, **options}, "models": {"agent": "scripted:script.jsonl"}}
    return workspace.spec(**fields)


@pytest.mark.parametrize("kind", ["chain", "tree", "graph", "forest"])
def test_run_of_thoughts_completes(workspace: Any, kind: str):
    run = workspace.run(spec(workspace, kind=kind))
    forecasts = workspace.forecasts(run)
    assert {forecast.forecaster for forecast in forecasts} == {f"{kind} of thoughts plain"}
    assert {round(forecast.p["yes"], 9) for forecast in forecasts} == {0.7}
    assert all("The vote." in forecast.rationale for forecast in forecasts)
    assert workspace.run(spec(workspace, kind=kind)) == run


def test_trees_and_thoughts_are_run_scored_and_studied_like_any_other(planner: BackgroundModels, build_workspace: Any):
    workspace = build_workspace(planner.url)
    usual: dict[str, Any] = {"questions": {"dataset": "demo", "limit": 4}, "search": []}
    runs: list[str] = []
    plain: dict[str, Any] = {"grounder": "plain"}
    for forecaster, options in (
        ("tree", {**plain, "leaves": 4}),
        ("thoughts", {**plain, "kind": "graph"}),
    ):
        path = workspace.spec(f"{forecaster}.yaml", **usual, forecaster=forecaster, options=options)
        runs.append(workspace.run(path, "--out", forecaster))
        foretell = workspace.foretell("score", "-f", f"{forecaster}/forecasts.csv", "-o", f"{forecaster}/outcomes.csv")
        assert foretell.returncode == 0, foretell.stderr
        assert "Brier" in foretell.stdout
    foretell = workspace.foretell("score", *runs, "--out", "board.html")
    assert foretell.returncode == 0, foretell.stderr
    assert "Score and cost" in (workspace.folder / "board.html").read_text(encoding="utf-8")
    again = workspace.foretell("backtest", "demo", "-F", f"tree-file:folder=home/trees/{runs[0]}", "--out", "again")
    assert again.returncode == 0, again.stderr
    first, second = (_said(workspace.folder / name / "forecasts.csv") for name in ("tree", "again"))
    assert second == pytest.approx(first)
    foretell = workspace.foretell(
        "study", "tree-noise", runs[0], "--section", "noise", "--bootstrap", "draws=100", "--json"
    )
    assert foretell.returncode == 0, foretell.stderr
    noise = json.loads(foretell.stdout)
    assert noise["sentences"][0].startswith(f"{len(first)} trees: all roots are the same")
    spoilt = {entry["name"]: entry for entry in noise["tables"][0]["rows"]}
    assert list(spoilt) == [f"tree openai:gpt-5-mini, {rule}" for rule in ("as they are", "average", "random")]
    weighted = spoilt["tree openai:gpt-5-mini, random"]
    assert 0 < weighted["0.1"]["estimate"] < weighted["1"]["estimate"] <= 100
    foretell = workspace.foretell("backtest", "demo", "-F", "thoughts")
    assert foretell.returncode == 2
    assert "asks a model" in foretell.stderr


def _said(path: Path) -> dict[str, float]:
    with path.open(encoding="utf-8") as file:
        return {f"{row['question']} {row['target']} {row['due']}": float(row["p"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "wood"}, "there is no 'wood' of thoughts"),
        ({"leaves": 3}, "the forecaster 'thoughts' has no option 'leaves'"),
        ({"grounder": "oracle"}, "no grounder is called 'oracle'"),
        ({"depth": 0}, "a depth of at least 1"),
        ({"clamp": [0.9, 0.1]}, "do not fit"),
    ],
)
def test_invalid_options_are_reported_in_one_line(workspace: Any, options: dict[str, Any], message: str):
    end = workspace.foretell("run", spec(workspace, **options).name)
    assert end.returncode == 2
    assert message in " ".join(end.stderr.split())
    assert "Traceback" not in end.stderr
