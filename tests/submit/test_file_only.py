"""`foretell submit --to forecastbench --out`: from a run in the store to a file, without sending anything."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import foretell
from fakes.processes import run_forked
from foretell.cli import operation_command
from foretell.data import DownloadCache
from foretell.data.datasets import read_pulled, read_submission
from foretell.questions import Failure, Forecast, InputError, Question
from foretell.runs import QuestionsSpec, RunSpec, RunStore, cells_of

submit = operation_command("submit")

DUE = "2025-10-26"
NEXT = "2025-11-09"


def question_set(day: str, *, markets: int = 20, datasets: int = 2) -> bytes:
    rows: list[dict[str, Any]] = [
        {"id": f"m{n}", "source": "manifold", "question": "Will it?", "resolution_dates": "N/A"} for n in range(markets)
    ]
    rows += [
        {"id": f"S{n}", "source": "fred", "question": "Up?", "resolution_dates": ["2025-12-01", "2026-12-01"]}
        for n in range(datasets)
    ]
    return json.dumps({"forecast_due_date": day, "question_set": f"{day}-llm.json", "questions": rows}).encode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two pulled rounds."""
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    cache = DownloadCache(tmp_path / "home" / "forecastbench")
    for day in (DUE, NEXT):
        cache.put(f"question_sets/{day}-llm.json", question_set(day), url="https://example.org")
    return tmp_path / "home"


def ran(home: Path, days: tuple[str, ...] = (DUE,), *, without: tuple[str, ...] = (), **spec: Any) -> str:
    """A run in the store: two trials, 0.2 and 0.4, on every question but some, which failed."""
    told = RunSpec(**{"questions": QuestionsSpec(dataset="forecastbench", rounds=days), "trials": 2} | spec)
    store = RunStore(home / "runs.db")
    store.begin(told.id, told.to_json(), "2025-10-26T00:00:00+00:00")
    cache = DownloadCache(home / "forecastbench")
    questions: list[Question] = [q for day in days for q in read_pulled(cache, day).questions]
    for cell in cells_of(told.id, questions, told.trials):
        common = {"question_id": cell.question.id, "forecaster": "full", "as_of": cell.question.as_of}
        p = {target.id: 0.2 + 0.2 * cell.trial for target in cell.question.targets}
        answer = (
            Failure(**common, error="no luck", trial=cell.trial)
            if cell.question.id in without
            else Forecast(**common, p=p, trial=cell.trial, rationale=f"trial {cell.trial}")
        )
        store.finish_cell(cell.key, answer)
    store.close()
    return told.id


TEAM = ("--set", "tournament.organization=Ex.ample", "--set", "tournament.entry=full")


def written(run: str, *more: str, to: str = "forecastbench", out: str = "out.json") -> Result:
    return CliRunner().invoke(submit, [run, "--to", to, *TEAM, "--out", out, *more])


def refusal(result: Result) -> str:
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def test_trials_are_combined_by_the_rule_of_the_run_and_read_back(home: Path):
    run = ran(home, combine="mean")
    path = Path("sent/mine.json")
    result = written(run[:6], "--set", "tournament.reasoning=true", out=str(path))
    assert result.exit_code == 0, result.output
    assert f"Wrote {path}" in result.output
    assert "market forecasts: 20 of 20" in result.output
    found = read_submission(path)
    assert found.forecaster == "Ex.ample:full"
    assert len(found.forecasts) == 22
    assert {round(p, 9) for one in found.forecasts for p in one.p.values()} == {0.3}
    assert {one.rationale.rsplit("\n", 1)[-1] for one in found.forecasts} <= {"trial 0", "trial 1"}
    for other in (ran(home, combine="logit-mean"), run):
        result = written(other, *(() if other != run else ("--set", "combine=logit-mean")))
        assert result.exit_code == 0, result.output
        plain = read_submission("out.json")
        assert round(plain.forecasts[0].p["yes"], 4) == 0.2899
    assert plain.forecasts[0].rationale == ""


def test_too_little_is_refused_and_nothing_is_written(home: Path):
    run = ran(home, without=("manifold/m3", "manifold/m7"))
    told = refusal(written(run, out="sent/mine.json"))
    assert "market forecasts: 18 of 20 (90.0 %); missing: manifold/m3, manifold/m7" in told
    assert "dataset" not in told
    assert not Path("sent").exists()
    result = written(run, "--set", "tournament.incomplete=true", out="sent/mine.json")
    assert result.exit_code == 0, result.output
    assert "missing: manifold/m3, manifold/m7" in result.output
    assert len(read_submission("sent/mine.json").forecasts) == 20


def test_a_few_gaps_pass_and_are_told(home: Path):
    result = written(ran(home, without=("manifold/m3",)))
    assert result.exit_code == 0, result.output
    assert "market forecasts: 19 of 20 (95.0 %); missing: manifold/m3" in result.output


def test_of_several_rounds_one_must_be_named(home: Path):
    run = ran(home, (DUE, NEXT))
    assert "forecasts are for 2 days: 2025-10-26, 2025-11-09 (name one with --to forecastbench:DATE)" in refusal(
        written(run)
    )
    assert "there is no forecast for 2030-01-01 (they are for 2025-10-26, 2025-11-09)" in refusal(
        written(run, to="forecastbench:2030-01-01")
    )
    result = written(run, to=f"forecastbench:{NEXT}")
    assert result.exit_code == 0, result.output
    body = json.loads(Path("out.json").read_text())
    assert body["question_set"] == "2025-11-09-llm.json"
    assert len(body["forecasts"]) == 24


def test_runs_that_are_no_submission_are_refused(home: Path):
    assert "not a round of forecastbench" in refusal(written(ran(home, questions=QuestionsSpec(dataset="demo"))))
    assert "clairvoyant" in refusal(written(ran(home, clairvoyant=True)))
    assert "no run is named 'zzz'" in refusal(written("zzz"))
    store = RunStore(home / "runs.db")
    empty = RunSpec(questions=QuestionsSpec(dataset="forecastbench"), seed=9)
    store.begin(empty.id, empty.to_json(), "2025-10-26")
    store.close()
    assert "no answers yet" in refusal(written(empty.id))


def test_a_question_set_that_is_not_whole_any_more_is_refused(home: Path):
    run = ran(home)
    (home / "forecastbench" / "question_sets" / f"{DUE}-llm.json").write_text("{}")
    assert "is not what was downloaded (run foretell data pull again)" in refusal(written(run))


def test_from_a_spec_to_a_file_in_real_processes(home: Path):
    Path("run.yaml").write_text(
        f"questions: {{dataset: forecastbench, rounds: ['{DUE}']}}\nforecaster: 'always:p=0.4'\n", encoding="utf-8"
    )
    here: dict[str, Any] = {"cwd": Path.cwd(), "env": os.environ, "timeout": 120}
    ran_it = run_forked(["run", "run.yaml"], **here)
    assert ran_it.returncode == 0, ran_it.stderr
    run = ran_it.stdout.split()[1].rstrip(":")
    sent = run_forked(["submit", run, "--to", "forecastbench", *TEAM, "--out", "out.json"], **here)
    assert sent.returncode == 0, sent.stderr
    found = read_submission("out.json")
    assert {p for one in found.forecasts for p in one.p.values()} == {0.4}


def test_python_writes_the_same_file_as_the_command(home: Path):
    run = ran(home)
    assert written(run).exit_code == 0
    team = {"tournament.organization": "Ex.ample", "tournament.entry": "full"}
    result = foretell.submit_forecasts(run, to="forecastbench", set=team, out="by_python.json")
    assert isinstance(result, foretell.SubmissionFile)
    assert Path("by_python.json").read_bytes() == Path("out.json").read_bytes()
    assert result.notes[0].startswith("market forecasts: 20 of 20")


def test_nothing_is_recorded_as_sent_and_options_of_sending_are_refused(home: Path):
    run = ran(home)
    assert written(run).exit_code == 0
    assert not (home / "ledger.jsonl").exists()
    assert "--yes: has no effect with --out" in refusal(written(run, "--yes"))
    assert "--set tournament.bucket: has no effect with --out" in refusal(
        written(run, "--set", "tournament.bucket=gs://b/f")
    )
    assert "--out: has no effect without --to forecastbench" in refusal(
        CliRunner().invoke(submit, [run, "--to", "metaculus", "--out", "out.json"])
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            "tournament.organisation=Us",
            "tournament.organisation: there is no such setting (did you mean tournament.organization",
        ),
        ("tournament.agent=me", "tournament.agent: is a setting of prophet-arena, not of forecastbench"),
        ("tournament.file_number=4", "tournament.file_number: must be at most 3, not 4"),
        ("tournament.overwrite=true", "tournament.overwrite: has no effect here"),
        ("combin=mean", "--set combin: there is no such setting (did you mean combine?)"),
        ("tournament=Us", "--set tournament: is a section (write tournament.KEY=VALUE)"),
    ],
)
def test_a_wrong_key_is_answered_with_the_right_one(home: Path, change: str, problem: str):
    assert problem in refusal(written(ran(home), "--set", change))
