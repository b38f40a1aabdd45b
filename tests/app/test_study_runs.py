"""foretell study trajectories, consistency and reasoning --sheet on a stored run: no model, no network."""

import asyncio
import csv
import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fakes.stored_run import StoredRunBuilder
from foretell.arena.spec import ARENA_PREFIX
from foretell.arena.store import ArenaStore
from foretell.cli.main import cli
from foretell.forecasters.prompt.builder import ContextBuild
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.runs.runner import execute_run, prepare_run
from foretell.runs.settings import load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_mapping
from foretell.runs.store import RunStore, TrialKey

NOW = datetime(2026, 1, 10, tzinfo=UTC)
CUP = Question(
    id="own/cup",
    source="own",
    text="Who wins the cup?",
    due=instant("2026-01-10"),
    targets=(Target(id="red"), Target(id="blue")),
    exclusivity="exactly one",
)
GAS = Question(
    id="own/gas",
    source="own",
    text="Gas price?",
    due=instant("2026-01-10"),
    targets=tuple(Target(id=f"Above 3.{n}0") for n in (1, 2, 3)),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    for name in ("OPENAI_API_KEY", "FORETELL_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["study", *map(str, arguments)])


def data(*arguments: str | Path) -> dict[str, Any]:
    result = run(*arguments, "--bootstrap", "draws=100", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def table(report: dict[str, Any], title: str) -> dict[str, dict[str, Any]]:
    grid = next(grid for grid in report["tables"] if grid["title"] == title)
    return {entry["name"]: entry for entry in grid["rows"]}


def sheet_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def keep(home: Path, builder: StoredRunBuilder) -> str:
    with closing(RunStore(home / "runs.db")) as store:
        return builder.keep(store)


def arena(home: Path, forecasts_by_run: dict[str, list[Forecast]]) -> None:
    """An arena with two events and one entry per name."""
    with closing(RunStore(home / "runs.db")) as store:
        arena_store = ArenaStore(store.database, "mine")
        arena_store.begin("{}", NOW)
        for name, forecasts in forecasts_by_run.items():
            spec = RunSpec(
                questions=QuestionsSpec(dataset=f"{ARENA_PREFIX}mine"), forecaster="context", models={"agent": name}
            )
            store.begin(spec.id, spec.to_json(), NOW.isoformat())
            store.keep_questions(spec.id, [CUP, GAS])
            arena_store.enter(name.partition(":")[2], spec.id, spec.to_json(), NOW)
            for stored in forecasts:
                key = TrialKey(run=spec.id, question=stored.question_id, due=CUP.due.isoformat(), trial=0)
                store.finish_trial(key, stored)
        for question in (CUP, GAS):
            shown = PredictionContext(question=question, as_of=question.as_of)
            arena_store.keep_context(ContextBuild(context=shown, found=0, dropped={}), NOW)


def forecast(question: Question, p: dict[str, float], stated: dict[str, float] | None = None) -> Forecast:
    return Forecast(
        question_id=question.id,
        forecaster="context",
        as_of=question.as_of,
        p=p,
        stated=stated,
        rationale="Because of what was reported.",
        trace=f"context {PredictionContext(question=question, as_of=question.as_of).digest}",
    )


GOOD = [
    forecast(CUP, {"red": 0.6, "blue": 0.4}),
    forecast(GAS, {"Above 3.10": 0.8, "Above 3.20": 0.5, "Above 3.30": 0.1}),
]
BAD = [
    forecast(CUP, {"red": 0.6, "blue": 0.4}, {"red": 0.8, "blue": 0.6}),
    forecast(GAS, {"Above 3.10": 0.5, "Above 3.20": 0.7, "Above 3.30": 0.1}),
]


def test_runs_and_files_are_studied_together(home: Path, tmp_path: Path):
    ids: list[str] = []
    for p in (0.3, 0.6):
        questions = {"dataset": "demo", "limit": 24}
        spec = spec_from_mapping({"questions": questions, "forecaster": "always", "options": {"p": p}})
        prepared = prepare_run(spec)
        asyncio.run(execute_run(prepared, load_settings()))
        ids.append(prepared.spec.id)
    rows = [
        "question,target,due,p",
        *(f"{q.id},{q.targets[0].id},{q.due.date()},0.4" for q in prepared.questions),
    ]
    mine = tmp_path / "mine.csv"
    mine.write_text("\n".join(rows) + "\n")
    report = data("trials", ids[0][:8], ids[1], mine, "--section", "number")
    assert len(report["settings"]["configurations"]) == 3
    alone = data("ablation", *ids)
    assert list(table(alone, "One factor at a time")) == ["p: 0.3 → 0.6"]
    costs = table(data("decisions", *ids), "Claims")
    assert {row["Cost ×1k"] for row in costs.values()} == {0.0}
    assert "no run" in str(run("trials", "nobody").exception)


def test_trajectories_of_two_runs(home: Path):
    first = keep(home, StoredRunBuilder(questions=4, trials=2, failing=1))
    second = keep(home, StoredRunBuilder(questions=3, trials=1, steps=5))
    report = data("trajectories", first, second[:6])
    names = [f"agent openai:made-up ({run[:6]})" for run in (first, second)]
    goes = table(report, "How trials go")
    assert [goes[name]["n"] for name in names] == [8, 3]
    assert goes[names[0]]["completed"]["estimate"] == pytest.approx(7 / 8)
    assert goes[names[1]]["completed"]["low"] < 0.5 < goes[names[1]]["completed"]["high"] == 1
    moves = table(report, "How beliefs move")
    assert moves[names[0]]["n"] <= 8
    assert table(report, "How trials end")["failed"][names[0]] == 1
    assert any("the provider is overloaded" in note for note in report["notes"])
    assert {chart["name"] for chart in report["charts"]} == {
        "cost",
        "beliefs-1",
        "beliefs-2",
        "medians",
        "spans",
        "tools",
    }
    assert report["sentences"][0].startswith("10 of 11 trials ended in a forecast")


def test_trajectories_need_a_run_with_a_trial(home: Path):
    assert "give RUN" in str(run("trajectories").exception)
    with closing(RunStore(home / "runs.db")) as store:
        StoredRunBuilder().begin(store)
    result = run("trajectories", StoredRunBuilder().spec.id)
    assert isinstance(result.exception, InputError)
    assert "no trial yet" in str(result.exception)


@pytest.mark.parametrize("way", ["name", "file"])
def test_consistency_of_an_arena_uses_the_stated_probabilities(home: Path, tmp_path: Path, way: str):
    arena(home, {"openai:good": GOOD, "openai:bad": BAD})
    file = tmp_path / "arena.yaml"
    file.write_text("name: mine\nplatforms: [kalshi]\nentries: {market: market}\n")
    report = data("consistency", "--arena", "mine" if way == "name" else file)
    rows = table(report, "Consistency by forecaster")
    assert rows["good"]["logic"]["estimate"] == 1
    assert rows["bad"]["logic"]["estimate"] == 0.5
    assert rows["bad"]["fall"]["estimate"] == pytest.approx(0.2)
    assert rows["good"]["exactly one"]["estimate"] == 1
    assert rows["bad"]["exactly one"]["estimate"] == 0
    assert rows["bad"]["sum"]["estimate"] == pytest.approx(0.4)
    origins = table(report, "Where the structure comes from")
    assert (origins["declared"]["with outcomes that exclude each other"], origins["wording"]["with chains"]) == (1, 1)


def test_consistency_needs_exactly_one_source(home: Path):
    arena(home, {"openai:good": []})
    assert "give RUN or --arena ARENA" in str(run("consistency").exception)
    assert "give RUN or --arena ARENA" in str(run("consistency", "a", "--arena", "mine").exception)
    assert "there are: mine" in str(run("consistency", "--arena", "yours").exception)
    assert "there are no forecasts yet" in str(run("consistency", "--arena", "mine").exception)
    assert "needs a key" not in str(run("consistency", "--arena", "mine", "--judge", "openai:x").exception)


def test_a_judge_without_a_key_is_refused(home: Path):
    arena(home, {"openai:good": GOOD})
    result = run("consistency", "--arena", "mine", "--judge", "openai:x")
    assert "needs a key: set OPENAI_API_KEY" in str(result.exception)


def test_reasoning_writes_a_sheet_for_raters(home: Path, tmp_path: Path):
    run_id = keep(home, StoredRunBuilder(questions=4, trials=1))
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    for sheet, limit in ((small, "2"), (large, "4")):
        assert run("reasoning", run_id, "--sheet", sheet, "--limit", limit).exit_code == 0
    few, all_of = (sheet_rows(path) for path in (small, large))
    assert len(few) == 2
    assert len(all_of) == 4
    assert {row["item"] for row in few} < {row["item"] for row in all_of}
    assert all("harbour bridge" in row["text"] for row in all_of)
    assert all("Members expect a vote in autumn" in row["text"] for row in all_of)  # The text of its tools.
    assert "there is no judge" in str(run("reasoning", run_id).exception)


def test_entries_of_an_arena_are_judged_by_the_context_they_were_shown(home: Path, tmp_path: Path):
    arena(home, {"openai:good": GOOD})
    with closing(RunStore(home / "runs.db")) as store:
        (row,) = store.runs()
    sheet = tmp_path / "sheet.csv"
    assert run("reasoning", row.id, "--sheet", sheet).exit_code == 0
    rows = sheet_rows(sheet)
    assert len(rows) == 2
    assert all("Because of what was reported" in row["text"] for row in rows)
