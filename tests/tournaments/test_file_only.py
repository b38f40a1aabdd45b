"""`foretell submit --to forecastbench --out`: from a run in the store to a file, without sending anything."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import foretell
from fakes.processes import run_forked
from foretell.cli.commands import operation_command
from foretell.data.datasets.forecastbench import read_submission
from foretell.data.datasets.forecastbench_download import read_pulled
from foretell.data.files import DownloadCache
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore, trials_of
from foretell.types import SubmissionFile

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
    run_spec = RunSpec(**{"questions": QuestionsSpec(dataset="forecastbench", rounds=days), "trials": 2} | spec)
    store = RunStore(home / "runs.db")
    store.begin(run_spec.id, run_spec.to_json(), "2025-10-26T00:00:00+00:00")
    cache = DownloadCache(home / "forecastbench")
    questions: list[Question] = [q for day in days for q in read_pulled(cache, day).questions]
    for trial in trials_of(run_spec.id, questions, run_spec.trials):
        common = {"question_id": trial.question.id, "forecaster": "full", "as_of": trial.question.as_of}
        p = {target.id: 0.2 + 0.2 * trial.trial for target in trial.question.targets}
        answer = (
            Failure(**common, error="no luck", trial=trial.trial)
            if trial.question.id in without
            else Forecast(**common, p=p, trial=trial.trial, rationale=f"trial {trial.trial}")
        )
        store.finish_trial(trial.key, answer)
    store.close()
    return run_spec.id


TEAM = ("--set", "tournament.organization=Ex.ample", "--set", "tournament.entry=full")


def submit_to_file(run: str, *more: str, to: str = "forecastbench", out: str = "out.json") -> Result:
    return CliRunner().invoke(submit, [run, "--to", to, *TEAM, "--out", out, *more])


def refusal(result: Result) -> str:
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def test_trials_are_combined_by_the_rule_of_the_run_and_read_back(home: Path):
    run = ran(home, combine="mean")
    path = Path("sent/mine.json")
    result = submit_to_file(run[:6], "--set", "tournament.reasoning=true", out=str(path))
    assert result.exit_code == 0, result.output
    assert f"Wrote {path}" in result.output
    assert "market forecasts: 20 of 20" in result.output
    submission = read_submission(path)
    assert submission.forecaster == "Ex.ample:full"
    assert len(submission.forecasts) == 22
    assert {round(p, 9) for forecast in submission.forecasts for p in forecast.p.values()} == {0.3}
    assert {forecast.rationale.rsplit("\n", 1)[-1] for forecast in submission.forecasts} <= {"trial 0", "trial 1"}
    for other in (ran(home, combine="logit-mean"), run):
        result = submit_to_file(other, *(() if other != run else ("--set", "combine=logit-mean")))
        assert result.exit_code == 0, result.output
        plain = read_submission("out.json")
        assert round(plain.forecasts[0].p["yes"], 4) == 0.2899
    assert plain.forecasts[0].rationale == ""


def test_insufficient_coverage_is_rejected_and_nothing_is_written(home: Path):
    run = ran(home, without=("manifold/m3", "manifold/m7"))
    message = refusal(submit_to_file(run, out="sent/mine.json"))
    assert "market forecasts: 18 of 20 (90.0 %); missing: manifold/m3, manifold/m7" in message
    assert "dataset" not in message
    assert not Path("sent").exists()
    result = submit_to_file(run, "--set", "tournament.incomplete=true", out="sent/mine.json")
    assert result.exit_code == 0, result.output
    assert "missing: manifold/m3, manifold/m7" in result.output
    assert len(read_submission("sent/mine.json").forecasts) == 20


def test_small_gaps_are_accepted_and_reported(home: Path):
    result = submit_to_file(ran(home, without=("manifold/m3",)))
    assert result.exit_code == 0, result.output
    assert "market forecasts: 19 of 20 (95.0 %); missing: manifold/m3" in result.output


def test_one_of_several_rounds_must_be_named(home: Path):
    run = ran(home, (DUE, NEXT))
    assert "forecasts are for 2 days: 2025-10-26, 2025-11-09 (name one with --to forecastbench:DATE)" in refusal(
        submit_to_file(run)
    )
    assert "there is no forecast for 2030-01-01 (they are for 2025-10-26, 2025-11-09)" in refusal(
        submit_to_file(run, to="forecastbench:2030-01-01")
    )
    result = submit_to_file(run, to=f"forecastbench:{NEXT}")
    assert result.exit_code == 0, result.output
    body = json.loads(Path("out.json").read_text())
    assert body["question_set"] == "2025-11-09-llm.json"
    assert len(body["forecasts"]) == 24


def test_unsuitable_runs_are_rejected(home: Path):
    assert "not a round of forecastbench" in refusal(submit_to_file(ran(home, questions=QuestionsSpec(dataset="demo"))))
    assert "had no leakage filter" in refusal(submit_to_file(ran(home, leakage_filter=False)))
    assert "no run is named 'zzz'" in refusal(submit_to_file("zzz"))
    store = RunStore(home / "runs.db")
    empty = RunSpec(questions=QuestionsSpec(dataset="forecastbench"), seed=9)
    store.begin(empty.id, empty.to_json(), "2025-10-26")
    store.close()
    assert "no answers yet" in refusal(submit_to_file(empty.id))


def test_changed_question_set_is_rejected(home: Path):
    run = ran(home)
    (home / "forecastbench" / "question_sets" / f"{DUE}-llm.json").write_text("{}")
    assert "is not what was downloaded (run foretell data pull again)" in refusal(submit_to_file(run))


def test_spec_leads_to_a_file_in_real_processes(home: Path):
    Path("run.yaml").write_text(
        f"questions: {{dataset: forecastbench, rounds: ['{DUE}']}}\nforecaster: 'always:p=0.4'\n", encoding="utf-8"
    )
    here: dict[str, Any] = {"cwd": Path.cwd(), "env": os.environ, "timeout": 120}
    ran_it = run_forked(["run", "run.yaml"], **here)
    assert ran_it.returncode == 0, ran_it.stderr
    run = ran_it.stdout.split()[1].rstrip(":")
    sent = run_forked(["submit", run, "--to", "forecastbench", *TEAM, "--out", "out.json"], **here)
    assert sent.returncode == 0, sent.stderr
    submission = read_submission("out.json")
    assert {p for forecast in submission.forecasts for p in forecast.p.values()} == {0.4}


def test_python_writes_the_same_file_as_the_command(home: Path):
    run = ran(home)
    assert submit_to_file(run).exit_code == 0
    team = {"tournament.organization": "Ex.ample", "tournament.entry": "full"}
    result = foretell.submit_forecasts(run, to="forecastbench", set=team, out="by_python.json")
    assert isinstance(result, SubmissionFile)
    assert Path("by_python.json").read_bytes() == Path("out.json").read_bytes()
    assert result.notes[0].startswith("market forecasts: 20 of 20")


def test_out_records_nothing_and_rejects_options_of_sending(home: Path):
    run = ran(home)
    assert submit_to_file(run).exit_code == 0
    assert not (home / "ledger.jsonl").exists()
    assert "--yes: has no effect with --out" in refusal(submit_to_file(run, "--yes"))
    assert "--set tournament.bucket: has no effect with --out" in refusal(
        submit_to_file(run, "--set", "tournament.bucket=gs://b/f")
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
def test_unknown_key_suggests_a_similar_one(home: Path, change: str, problem: str):
    assert problem in refusal(submit_to_file(ran(home), "--set", change))
