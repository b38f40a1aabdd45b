"""Tasks that choose between options with values: built, asked, scored and compared through the public interfaces."""

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from foretell.cli.main import cli
from foretell.operations import calibrate, compare, data_build, score, thresholds
from foretell.operations.requests.data import DataBuildRequest
from foretell.operations.requests.scoring import (
    CalibrateApplyRequest,
    CalibrateFitRequest,
    CompareRequest,
    ScoreRequest,
)
from foretell.questions.errors import InputError
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.question_sets import open_benchmark
from foretell.runs.set_names import find_set

TASKS = [
    {"id": "x1", "question": "X?", "options": {"long": 1.31, "short": 0.69}, "cutoff": "2024-06-01"},
    {"id": "x2", "question": "Y?", "options": {"long": 0.8, "short": 1.2}, "cutoff": "2024-06-01"},
    {"id": "x3", "question": "Who?", "options": {"A": 2.0, "B": 1.0, "C": 0.0}, "cutoff": "2024-06-01"},
]
SAID = {
    "A": {"x1": (0.7, 0.3), "x2": (0.6, 0.4), "x3": (0.2, 0.6, 0.2)},
    "B": {"x1": (0.4, 0.6), "x2": (0.2, 0.8)},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The tasks as `foretell data build options` writes them."""
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps({**task, "resolves": "2025-06-01"}) + "\n" for task in TASKS))
    request = DataBuildRequest.read({"kind": "options", "sources": (str(file),)})
    run_sync(data_build.build(request), event_loop.run).write_folder(tmp_path / "set")
    return tmp_path / "set"


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("options", {"id": "x", "question": "X?", "options": {"long": 1.3, "short": 0.7}, "cutoff": "2024-06-01"}),
        ("claims", {"claim": "The rate was cut in June.", "label": True, "published": "2024-06-07"}),
    ],
)
def test_the_next_step_that_is_printed_works(
    kind: str, line: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    extra = {"resolves": "2025-06-01"} if kind == "options" else {}
    Path("tasks.jsonl").write_text(json.dumps({**line, **extra}) + "\n")
    built = CliRunner().invoke(cli, ["data", "build", kind, "tasks.jsonl", "--out", "my set"])
    assert built.exit_code == 0, built.output
    steps = [
        shlex.split(line.removeprefix("Next: ")) for line in built.stdout.splitlines() if line.startswith("Next: ")
    ]
    assert [step[:2] for step in steps] == [["foretell", "backtest"], ["foretell", "score"]]
    backtest, score = (CliRunner().invoke(cli, step[1:]) for step in steps)
    assert (backtest.exit_code, score.exit_code) == (0, 0), (backtest.output, score.output)
    assert "1 forecast on 1 question" in backtest.stdout
    assert "outside-view" in score.stdout
    assert ("Choice" in score.stdout) == (kind == "options")
    assert f"questions: {shlex.quote('my set')}" in built.stdout
    assert len(open_benchmark("my set").questions.questions) == 1


def rows() -> list[dict[str, object]]:
    labels = {task["id"]: list(task["options"]) for task in TASKS}
    return [
        {"forecaster": name, "question": task, "target": label, "p": p}
        for name, answers in SAID.items()
        for task, probabilities in answers.items()
        for label, p in zip(labels[task], probabilities, strict=True)
    ]


def test_a_built_folder_is_a_question_set_with_its_outcomes_and_payoffs(folder: Path):
    assert find_set(str(folder)).name == "built"
    questions = open_benchmark(str(folder)).questions
    assert len(questions.questions) == 3
    assert {(r.question_id, r.target_id): (r.outcome, r.payoff) for r in questions.resolutions}["x1", "long"] == (
        1,
        1.31,
    )


def test_the_format_of_task_and_claim_files_is_detected(tmp_path: Path):
    tasks, claims = tmp_path / "t.jsonl", tmp_path / "c.jsonl"
    tasks.write_text(json.dumps(TASKS[0]))
    claims.write_text('{"claim": "It holds.", "label": true, "published": "2025-02-01", "split": "test"}')
    assert (find_set(str(tasks)).name, find_set(str(claims)).name) == ("options", "claims")
    assert open_benchmark(str(claims)).questions.questions[0].subtype == "test", "the split is a column of the outcomes"


def test_scores_of_choices_by_hand(folder: Path):
    request = {"forecasts": rows(), "outcomes": folder / "outcomes.csv", "metric": "hard", "bootstrap": "draws=100"}
    result = score.score(ScoreRequest.read(request))
    assert isinstance(result, score.ScoreResult)
    scores = {row.forecaster: {name: m.estimate for name, m in row.metrics.items()} for row in result.board.scores}
    # A chooses long (best), long (worst) and B (half way); every task counts once, whatever its number of options.
    assert scores["A"]["choice"] == pytest.approx(1 / 3)
    assert scores["A"]["hard"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert scores["A"]["soft"] == pytest.approx((0.7 + 0.4 + 0.5) / 3)
    assert scores["A"]["confidence"] == pytest.approx((0.7 + 0.6 + 0.6) / 3)
    assert scores["B"]["choice"] == pytest.approx(1 / 2)
    assert scores["always 0.5"]["choice"] == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3), "tied options share the choice"
    pair = compare.compare(CompareRequest.read({**request, "names": ("A", "B"), "metric": "choice"}))
    assert pair.pairs[0].verdicts[0].diff == pytest.approx(0), "on the two tasks both answered"


def test_a_task_of_which_an_option_was_left_out_is_not_scored(folder: Path):
    some = [row for row in rows() if not (row["question"] == "x3" and row["target"] == "C")]
    result = score.score(
        ScoreRequest.read({"forecasts": some, "outcomes": folder / "outcomes.csv", "bootstrap": "draws=100"})
    )
    assert isinstance(result, score.ScoreResult)
    mine = next(row for row in result.board.scores if row.forecaster == "A")
    assert mine.metrics["choice"].estimate == pytest.approx(1 / 2)


def test_the_choice_metric_needs_payoffs(tmp_path: Path):
    outcomes = [{"question": q, "target": t, "outcome": o} for q, t, o in (("x1", "long", 1), ("x1", "short", 0))]
    forecasts = [row for row in rows() if row["question"] == "x1"]
    with pytest.raises(InputError, match="choice needs options with values"):
        score.score(ScoreRequest.read({"forecasts": forecasts, "outcomes": outcomes, "metric": "choice"}))
    bad = [{**row, "payoff": "much"} for row in outcomes]
    with pytest.raises(InputError, match="column payoff: much is not an amount of money"):
        score.score(ScoreRequest.read({"forecasts": forecasts, "outcomes": bad}))


def test_financial_tasks_list_what_was_discarded(tmp_path: Path):
    days = np.arange("2023-01-01", "2024-06-01", dtype="M8[D]")
    lines = [
        f"{name},{day},{100 + step * i}\n" for name, step in (("UP", 1), ("FLAT", 0)) for i, day in enumerate(days)
    ]
    (tmp_path / "prices.csv").write_text("series,date,value\n" + "".join(lines))
    fields = {"kind": "prices", "cutoffs": ("2024-01-01", "2024-05-20"), "set": {"horizon": "30"}}
    request = DataBuildRequest.read({**fields, "sources": (str(tmp_path / "prices.csv"),)})
    built = run_sync(data_build.build(request), event_loop.run)
    assert (built.to_dict()["questions"], built.to_dict()["outcomes"]) == (1, 2)
    built.write_folder(tmp_path / "set")
    with (tmp_path / "set" / "discarded.csv").open() as file:
        reasons = {(row["series"], row["cutoff"]): row["reason"] for row in csv.DictReader(file)}
    assert reasons == {
        ("FLAT", "2024-01-01"): "options pay the same",
        ("FLAT", "2024-05-20"): "no price at the end",
        ("UP", "2024-05-20"): "no price at the end",
    }
    with pytest.raises(InputError, match="no such file or series"):
        run_sync(data_build.build(DataBuildRequest.read({**fields, "sources": ("nowhere/X",)})), event_loop.run)


CLAIMS = [
    *[("a", 0.8, 1, "validation"), ("b", 0.45, 1, "validation"), ("c", 0.3, 0, "validation")],
    *[("e", 0.4, 1, "test"), ("f", 0.3, 0, "test"), ("g", 0.7, 1, "test"), ("h", 0.42, 0, "test")],
]


def fitted(forecasts: Path, outcomes: Path, **settings: str) -> thresholds.ThresholdResult:
    fields = {"forecasts": forecasts, "outcomes": outcomes, "method": "threshold", "set": settings}
    result = calibrate.fit(CalibrateFitRequest.read(fields))
    assert isinstance(result, thresholds.ThresholdResult)
    return result


def test_a_threshold_is_chosen_on_validation_and_judged_on_test(tmp_path: Path):
    forecasts, outcomes = tmp_path / "f.csv", tmp_path / "o.csv"
    forecasts.write_text("forecaster,question,target,p\n" + "".join(f"m,{q},true,{p}\n" for q, p, _, _ in CLAIMS))
    outcomes.write_text("question,target,outcome,split\n" + "".join(f"{q},true,{o},{s}\n" for q, _, o, s in CLAIMS))
    result = fitted(forecasts, outcomes)
    (threshold,) = result.thresholds
    # Anything between 0.3 and 0.45 is right on all validation rows; on the test rows 0.375 is wrong about h alone.
    assert threshold.report.threshold.value == pytest.approx(0.375)
    assert (threshold.report.score, threshold.report.score_at_half) == pytest.approx((3 / 4, 3 / 4))
    assert (threshold.called_true, threshold.called_false) == pytest.approx((1, 1 / 2))
    assert (threshold.test.only_a, threshold.test.only_b) == (1, 1), "McNemar's table against one half"
    assert result.to_dict()["forecasters"][0]["threshold"] == pytest.approx(0.375)
    assert fitted(forecasts, outcomes, criterion="f1", draws="100").criterion == "f1"
    with pytest.raises(InputError, match=r"--set: threshold has no setting 'criterium' \(did you mean criterion\?\)"):
        fitted(forecasts, outcomes, criterium="f1")
    outcomes.write_text("question,target,outcome\na,true,1\n")
    with pytest.raises(InputError, match="no column that splits validation"):
        fitted(forecasts, outcomes)


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Thresholds of 0.375 for the forecaster m, chosen on a to c and tested on e to h."""
    forecasts, outcomes = tmp_path / "past.csv", tmp_path / "known.csv"
    forecasts.write_text("forecaster,question,target,p\n" + "".join(f"m,{q},true,{p}\n" for q, p, _, _ in CLAIMS))
    outcomes.write_text("question,target,outcome,split\n" + "".join(f"{q},true,{o},{s}\n" for q, _, o, s in CLAIMS))
    result = fitted(forecasts, outcomes)
    (tmp_path / "cut.json").write_text(result.to_json())
    return tmp_path / "cut.json"


def applied(cut: Path, rows: list[tuple[object, ...]], head: str, **more: object) -> thresholds.DecidedForecasts:
    path = cut.parent / "new.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [tuple(head.split()), *rows]) + "\n")
    apply = calibrate.apply(CalibrateApplyRequest.read({"fitted": cut, "forecasts": path, **more}))
    assert isinstance(apply, thresholds.DecidedForecasts)
    return apply


def test_a_threshold_is_applied_to_new_forecasts(cut: Path):
    rows = [("m", "n1", "yes", 0.4), ("m", "n2", "no", 0.3), ("m", "n3", "why", 0.375)]
    result = applied(cut, rows, "forecaster question remark p")
    assert [row["decision"] for row in result.forecasts] == [True, False, False], "a p at the threshold is called False"
    assert [row["remark"] for row in result.forecasts] == ["yes", "no", "why"], "the table stays as it was"
    (summary,) = result.summaries
    assert (summary.called_true, summary.n, summary.at_threshold, summary.scored) == (1, 3, 1, 0)
    assert "1 of 3" in str(result)


def test_applied_thresholds_are_scored_with_ties_counted_half(cut: Path):
    outcomes = cut.parent / "later.csv"
    outcomes.write_text("question,outcome\nn1,1\nn2,0\nn3,1\nn4,\n")
    rows = [("m", "n1", 0.4), ("m", "n2", 0.39), ("m", "n3", 0.375), ("m", "n4", 0.9)]
    (summary,) = applied(cut, rows, "forecaster question p", outcomes=outcomes).summaries
    # n1 is right, n2 wrong, n3 at the threshold counts half for either side, n4 is open.
    assert (summary.called_true, summary.n, summary.scored) == (3, 4, 3)
    assert summary.accuracy == pytest.approx(1.5 / 3)
    assert summary.balanced == pytest.approx((1.5 / 2 + 0) / 2)
    assert summary.f1 == pytest.approx(2 * 1.5 / (2 * 1.5 + 1 + 0.5))


def test_trials_are_combined_before_a_claim_is_called(cut: Path):
    rows = [("m", "n1", 0, 0.2), ("m", "n1", 1, 0.8), ("m", "n2", 0, 0.1)]
    result = applied(cut, rows, "forecaster question trial p")
    assert [row["decision"] for row in result.forecasts] == [True, True, False]
    assert (result.summaries[0].called_true, result.summaries[0].n) == (1, 2)


def test_a_threshold_does_not_judge_what_it_was_chosen_on(cut: Path):
    head = "forecaster question p"
    with pytest.raises(InputError, match="a is among the 3 questions on which they were chosen"):
        applied(cut, [("m", "n1", 0.4), ("m", "a", 0.4)], head)
    assert "1 question of the split" in applied(cut, [("m", "n1", 0.4), ("m", "e", 0.4)], head).warnings[0]
    with pytest.raises(InputError, match="no threshold of 'other'"):
        applied(cut, [("other", "n1", 0.4)], head)


def test_trials_give_a_variance_and_pairs_give_mcnemar(folder: Path):
    trials = [{**row, "trial": 0} for row in rows()]
    trials += [{**row, "trial": 1, "p": 1 - float(str(row["p"]))} for row in rows() if row["question"] == "x1"]
    request = {"forecasts": trials, "outcomes": folder / "outcomes.csv", "bootstrap": "draws=100,interval=symmetric"}
    result = score.score(ScoreRequest.read(request))
    assert isinstance(result, score.ScoreResult)
    assert result.variance == pytest.approx({"A": 0.5, "B": 0.5}), "1 and 0 on the only task with two trials"
    first = result.board.scores[0].metrics["brier"]
    assert (first.low, first.high) == (0, 1), "two tasks leave every score open"
    pair = compare.compare(
        CompareRequest.read({**request, "forecasts": rows(), "names": ("A", "B")} | {"metric": "choice"})
    ).pairs[0]
    assert pair.mcnemar is not None
    assert (pair.mcnemar.n, pair.mcnemar.only_a, pair.mcnemar.only_b) == (2, 1, 1)
