"""Thoughts as a real process: a run of every kind from a script, started twice, and what cannot work."""

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
def house(build_house: Callable[..., Any]) -> Any:
    made = build_house("http://127.0.0.1:9")
    lines = [json.dumps(line) + "\n" for line in SCRIPT]
    (made.folder / "script.jsonl").write_text("".join(lines), encoding="utf-8")
    return made


def spec(house: Any, **options: Any) -> Path:
    usual = {"grounder": "plain", "depth": 1, "width": 2, "keep": 1, "trees": 2}
    fields = {"forecaster": "thoughts", "options": {**usual, **options}, "models": {"agent": "scripted:script.jsonl"}}
    return house.spec(**fields)


@pytest.mark.parametrize("kind", ["chain", "tree", "graph", "forest"])
def test_a_run_of_thoughts(house: Any, kind: str):
    run = house.run(spec(house, kind=kind))
    found = house.forecasts(run)
    assert {one.forecaster for one in found} == {f"{kind} of thoughts plain"}
    assert {round(one.p["yes"], 9) for one in found} == {0.7}
    assert all("The vote." in one.rationale for one in found)
    assert house.run(spec(house, kind=kind)) == run


def test_trees_and_thoughts_are_run_scored_and_studied_like_any_other(planner: BackgroundModels, build_house: Any):
    house = build_house(planner.url)
    usual: dict[str, Any] = {"questions": {"dataset": "demo", "limit": 4}, "search": []}
    runs: list[str] = []
    plain: dict[str, Any] = {"grounder": "plain"}
    for forecaster, options in (
        ("tree", {**plain, "leaves": 4}),
        ("thoughts", {**plain, "kind": "graph"}),
    ):
        written = house.spec(f"{forecaster}.yaml", **usual, forecaster=forecaster, options=options)
        runs.append(house.run(written, "--out", forecaster))
        told = house.foretell("score", "-f", f"{forecaster}/forecasts.csv", "-o", f"{forecaster}/outcomes.csv")
        assert told.returncode == 0, told.stderr
        assert "Brier" in told.stdout
    told = house.foretell("score", *runs, "--out", "board.html")
    assert told.returncode == 0, told.stderr
    assert "Score and cost" in (house.folder / "board.html").read_text(encoding="utf-8")
    again = house.foretell("backtest", "demo", "-F", f"tree-file:folder=home/trees/{runs[0]}", "--out", "again")
    assert again.returncode == 0, again.stderr
    first, second = (_said(house.folder / name / "forecasts.csv") for name in ("tree", "again"))
    assert second == pytest.approx(first)
    told = house.foretell("study", "tree-noise", runs[0], "--section", "noise", "--bootstrap", "draws=100", "--json")
    assert told.returncode == 0, told.stderr
    noise = json.loads(told.stdout)
    assert noise["sentences"][0].startswith(f"{len(first)} trees: all roots are the same")
    spoilt = {entry["name"]: entry for entry in noise["tables"][0]["rows"]}
    assert list(spoilt) == [f"tree openai:gpt-5-mini, {rule}" for rule in ("as they are", "average", "random")]
    weighted = spoilt["tree openai:gpt-5-mini, random"]
    assert 0 < weighted["0.1"]["estimate"] < weighted["1"]["estimate"] <= 100
    told = house.foretell("backtest", "demo", "-F", "thoughts")
    assert told.returncode == 2
    assert "asks a model" in told.stderr


def _said(path: Path) -> dict[str, float]:
    with path.open(encoding="utf-8") as file:
        return {f"{row['question']} {row['target']} {row['due']}": float(row["p"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kind": "wood"}, "there is no 'wood' of thoughts"),
        ({"leaves": 3}, "the forecaster 'thoughts' has no option 'leaves'"),
        ({"grounder": "oracle"}, "no grounder is called 'oracle'"),
        ({"depth": 0}, "a depth of at least 1"),
        ({"clamp": [0.9, 0.1]}, "do not fit"),
    ],
)
def test_what_cannot_work_is_told_in_one_line(house: Any, options: dict[str, Any], told: str):
    end = house.foretell("run", spec(house, **options).name)
    assert end.returncode == 2
    assert told in " ".join(end.stderr.split())
    assert "Traceback" not in end.stderr
