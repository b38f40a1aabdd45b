"""Inspect AI runs our questions, scores them as foretell does, and its logs are read as our tables."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed: pip install 'foretell[inspect]'")

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore, Score, stderr

from foretell import score
from foretell.cli.commands import operation_command
from foretell.inspect_tasks.logs import QUESTION_KEY, question_in, read_inspect_log
from foretell.inspect_tasks.tasks import (
    answered,
    brier,
    brier_index_stderr,
    clustered_stderr,
    estimate_tokens_of,
    foretell_questions,
    log_score,
)
from foretell.metrics import brier_index
from foretell.questions.errors import InputError
from foretell.runs.question_sets import open_benchmark

# Inspect leaves its streams to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

ROWS = [
    {"id": "own/1", "text": "Will it rain in Oslo?", "due": "2026-01-05", "by": "2026-01-10", "outcome": 1},
    {"id": "own/2", "text": "Will it rain in Rome?", "due": "2026-01-05", "by": "2026-01-10", "outcome": 0},
    {"id": "own/2", "text": "Will it rain in Rome?", "due": "2026-02-05", "by": "2026-02-10", "outcome": 0},
    {"id": "own/3", "text": "Will it rain in Bonn?", "due": "2026-01-05", "by": "2026-01-10"},
    {"id": "own/4", "text": "Will it rain in Cork?", "due": "2026-01-05", "by": "2026-01-10", "outcome": 1},
]
SAID = {"Oslo": 0.8, "Rome": 0.3}


@pytest.fixture
def questions(tmp_path: Path) -> dict[str, str]:
    """Write questions and their outcomes."""
    questions_rows = [{name: value for name, value in row.items() if name != "outcome"} for row in ROWS]
    outcome_rows = [
        {"question": row["id"], "due": row["due"], "outcome": row["outcome"]} for row in ROWS if "outcome" in row
    ]
    paths = {"dataset": tmp_path / "questions.jsonl", "outcomes": tmp_path / "outcomes.jsonl"}
    for path, rows in zip(paths.values(), (questions_rows, outcome_rows), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {name: str(path) for name, path in paths.items()}


def says(words: Callable[[str], str]) -> Any:
    """A mock model whose answer depends on what it is asked."""

    def answer(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", words(messages[-1].text))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=answer)


def forecaster(prompt: str) -> str:
    place = next((name for name in SAID if name in prompt), None)
    return json.dumps({"rationale": "r", "probabilities": {"yes": SAID[place]}}) if place else "I cannot say."


def run(task: Any, model: Any, folder: Path, **options: Any) -> EvalLog:
    (log,) = eval(task, model=model, log_dir=str(folder / "logs"), display="none", **options)
    assert log.status == "success", log.error
    return log


def metrics(log: EvalLog) -> dict[str, dict[str, float]]:
    assert log.results is not None
    return {score.name: {name: metric.value for name, metric in score.metrics.items()} for score in log.results.scores}


def test_the_questions_of_a_set_are_asked_as_of_their_dates(questions: dict[str, str]):
    task = foretell_questions(**questions)
    samples = list(task.dataset)
    assert [sample.id for sample in samples] == [
        "own/1@2026-01-05",
        "own/2@2026-01-05",
        "own/2@2026-02-05",
        "own/4@2026-01-05",
    ]
    for sample in samples:
        words = "\n".join(message.text for message in sample.input if not isinstance(message, str))
        assert "outcome" not in json.loads(sample.metadata[QUESTION_KEY])
        assert sample.target not in words
        assert "It is 2026-0" in words
    assert samples[1].metadata["question"] == samples[2].metadata["question"] == "own/2"
    assert len(foretell_questions(**questions, limit=2).dataset) == 2


def test_scores_equal_foretell_score_and_errors_are_clustered_by_question(questions: dict[str, str], tmp_path: Path):
    log = run(foretell_questions(**questions), says(forecaster), tmp_path, epochs=2)
    scores = metrics(log)
    values = [0.04, 0.09, 0.09]
    assert scores["brier"]["mean"] == pytest.approx(np.mean(values))
    assert scores["brier"]["brier_index"] == pytest.approx(brier_index(float(np.mean(values))))
    # Deviations by question: −1/30 for the first, twice 1/60 for the second.
    error = np.sqrt(2 / 1 * 2 * (1 / 30) ** 2) / 3
    assert scores["brier"]["clustered_stderr"] == pytest.approx(error)
    mean = float(np.mean(values))
    assert scores["brier"]["brier_index_stderr"] == pytest.approx(100 * error / (2 * np.sqrt(mean)))
    assert scores["log_score"]["mean"] == pytest.approx((np.log(0.8) + 2 * np.log(0.7)) / 3)
    assert scores["answered"]["mean"] == pytest.approx(0.75)


def test_logs_become_tables_that_score_the_same(questions: dict[str, str], tmp_path: Path):
    log = run(foretell_questions(**questions), says(forecaster), tmp_path, epochs=2)
    tables = read_inspect_log(log.location)
    assert len(tables.forecasts) == 6
    assert {row["trial"] for row in tables.forecasts} == {0, 1}
    assert [row["question"] for row in tables.failures] == ["own/4@2026-01-05"] * 2
    board = score(tables.forecasts, tables.outcomes, baselines=False)
    (own,) = board.scores
    assert own.forecaster == "mockllm/model"
    assert own.metrics["brier"].estimate == pytest.approx(metrics(log)["brier"]["mean"])
    assert own.metrics["log"].estimate == pytest.approx(metrics(log)["log_score"]["mean"])
    path = str(log.location)
    assert score(path, baselines=False).rows() == board.rows()
    shown = CliRunner().invoke(operation_command("score"), [path, "--json"])
    assert shown.exit_code == 0, shown.exception
    assert json.loads(shown.stdout)["scores"][0]["metrics"]["brier"]["estimate"] == own.metrics["brier"].estimate
    folder = CliRunner().invoke(operation_command("score"), [str(tmp_path / "logs"), "--json"])
    assert json.loads(folder.stdout)["scores"] == json.loads(shown.stdout)["scores"], "a folder of logs"

    read_inspect_log(tmp_path / "logs", name="me").write(tmp_path / "out")
    again = score(tmp_path / "out" / "forecasts.csv", tmp_path / "out" / "outcomes.csv", baselines=False)
    assert again.scores[0].forecaster == "me"
    assert again.scores[0].metrics["brier"].estimate == pytest.approx(own.metrics["brier"].estimate)


def test_sources_that_come_with_a_set_are_shown():
    events = Path(__file__).parents[2] / "examples" / "grids" / "prophet_events.jsonl"
    sample = foretell_questions(str(events), view="both").dataset[0]
    (context, *_) = open_benchmark(str(events)).questions.contexts.values()
    assert all(article.summary in sample.input[1].text for article in context)
    with pytest.raises(InputError, match="the view 'sources' cannot be shown: there is no source"):
        foretell_questions("demo", view="sources")


def test_several_targets_are_one_sample(tmp_path: Path):
    task = foretell_questions("demo", limit=3)
    many = {target.id for sample in task.dataset for target in question_in(sample.metadata).targets}

    def words(_asked: str) -> str:
        return "```json\n" + json.dumps({"probabilities": dict.fromkeys(sorted(many), "40 %")}) + "\n```"

    log = run(task, says(words), tmp_path)
    rows = read_inspect_log(log.location)
    expected = np.mean([(0.4 - o) ** 2 for sample in task.dataset for o in json.loads(sample.target).values()])
    assert metrics(log)["brier"]["mean"] == pytest.approx(expected)
    assert {row["p"] for row in rows.forecasts} == {0.4}
    assert {row["kind"] for row in rows.outcomes} == {"dataset"}


def test_log_and_foretell_score_agree_for_several_kinds_and_epochs(tmp_path: Path):
    """Questions of both kinds with different numbers of targets, answered differently in every epoch."""
    questions_file, known = tmp_path / "questions.jsonl", tmp_path / "outcomes.jsonl"
    rng, dates = np.random.default_rng(0), ["2026-02-01", "2026-03-01", "2026-04-01"]
    rows: list[dict[str, Any]] = [{"id": f"own/{n}", "text": f"Case {n}?", "due": "2026-01-05"} for n in range(12)]
    for n, row in enumerate(rows):
        row |= {"dates": dates[: 2 + n % 2]} if n % 3 else {"by": "2026-02-01"}
    happened = [
        {"question": row["id"], "target": target, "outcome": int(rng.integers(2))}
        for row in rows
        for target in row.get("dates", ["yes"])
    ]
    for path, lines in ((questions_file, rows), (known, happened)):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    task = foretell_questions(str(questions_file), outcomes=str(known))
    assert {len(json.loads(sample.target)) for sample in task.dataset} == {1, 2, 3}

    def words(_asked: str) -> str:
        if rng.random() < 0.1:
            return "I cannot say."
        return json.dumps({"probabilities": {name: round(float(rng.uniform()), 3) for name in (*dates, "yes")}})

    log = run(task, says(words), tmp_path, epochs=3)
    tables, scores = read_inspect_log(log.location), metrics(log)
    assert {row["kind"] for row in tables.outcomes} == {"market", "dataset"}
    board = score(tables.forecasts, tables.outcomes, baselines=False)
    own = next(score for score in board.scores if score.group == {"kind": "overall"})
    assert own.metrics["brier"].estimate == pytest.approx(scores["brier"]["mean"], abs=1e-12)
    assert own.metrics["brier_index"].estimate == pytest.approx(scores["brier"]["brier_index"], abs=1e-9)
    assert own.metrics["log"].estimate == pytest.approx(scores["log_score"]["mean"], abs=1e-12)


def test_scorers_work_on_tasks_of_other_packages(tmp_path: Path):
    samples = [
        Sample(id="a", input="Will A happen?", target="yes"),
        Sample(id="b", input="Will B happen?", target="No"),
        Sample(id="c", input="Name the capital of France.", target="Paris"),
    ]
    task = Task(dataset=MemoryDataset(samples), scorer=[brier(), log_score(), answered()])
    log = run(task, says(lambda prompt: "Thinking.\nProbability: 20%" if "B" in prompt else '{"p": 0.9}'), tmp_path)
    scores = metrics(log)
    assert scores["brier"]["mean"] == pytest.approx((0.01 + 0.04) / 2)
    assert scores["answered"]["mean"] == pytest.approx(2 / 3)
    rows = read_inspect_log(log.location)
    assert [(row["question"], row["p"]) for row in rows.forecasts] == [("a", 0.9), ("b", 0.2)]
    assert "neither yes nor no" in rows.failures[0]["error"]


def test_clustered_error_equals_that_of_inspect():
    rng = np.random.default_rng(0)
    scores = [
        SampleScore(score=Score(value=float(rng.uniform())), sample_id=n, sample_metadata={"question": f"q{n % 7}"})
        for n in range(40)
    ]
    assert clustered_stderr()(scores) == pytest.approx(stderr(cluster="question")(scores))
    alone = [score.model_copy(update={"sample_metadata": None}) for score in scores]
    assert clustered_stderr()(alone) == pytest.approx(stderr()(alone))
    assert brier_index_stderr()(scores[:1]) == 0.0


@pytest.mark.parametrize(
    ("content", "words"), [("", "Inspect log"), ('{"version": 2}', "Inspect log"), ("[]", "Inspect log")]
)
def test_file_that_is_not_a_log_is_named_in_the_error(tmp_path: Path, content: str, words: str):
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_inspect_log(path)
    with pytest.raises(InputError, match="no such file"):
        read_inspect_log(tmp_path / "nothing.eval")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no log"):
        read_inspect_log(tmp_path / "empty")


def test_inspect_eval_command_works_without_a_network(tmp_path: Path):
    """`inspect eval foretell/questions`, found by the entry point of the installed package."""
    announced = tmp_path / "announced-0.dist-info"
    announced.mkdir()
    (announced / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 0\n", encoding="utf-8")
    points = "[inspect_ai]\nforetell = foretell.inspect_tasks.tasks\n"
    (announced / "entry_points.txt").write_text(points, encoding="utf-8")
    closed = dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    command = [str(Path(sys.executable).with_name("inspect")), "eval", "foretell/questions", "--model", "mockllm/model"]
    result = subprocess.run(
        [*command, "-T", "limit=2", "--log-dir", str(tmp_path / "logs"), "--display", "plain"],
        env={**os.environ, **closed, "PYTHONPATH": paths, "TIKTOKEN_CACHE_DIR": str(tmp_path / "no vocabulary")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert result.returncode == 0, result.stderr + result.stdout
    (path,) = (tmp_path / "logs").iterdir()
    log = read_eval_log(str(path))
    assert (log.status, log.eval.task_registry_name) == ("success", "foretell/questions")
    assert [scorer.name for scorer in log.eval.scorers or ()] == ["brier", "log_score", "answered"]
    # The mock model gives no number, so nothing is scored and the failure is reported.
    assert metrics(log)["answered"]["mean"] == 0
    used = log.stats.model_usage["mockllm/model"]
    assert used.input_tokens > 200
    with pytest.raises(InputError, match="no sample contains a forecast"):
        read_inspect_log(log.location)


def test_input_error_is_one_line_of_the_command(tmp_path: Path):
    wanted = str(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="is neither a file"):
        foretell_questions(wanted)
    with click.Context(click.Command("eval")), pytest.raises(click.ClickException, match="is neither a file") as raises:
        foretell_questions(wanted)
    assert "\n" not in raises.value.message


def test_model_with_its_own_token_count_is_unchanged():
    model = get_model("mockllm/model")
    estimate_tokens_of(model)
    assert asyncio.run(model.api.count_text_tokens("Will it rain in Oslo?")) == 6

    class Counting(type(model.api)):
        async def count_text_tokens(self, text: str) -> int:
            return 42

    model.api = Counting("model")
    estimate_tokens_of(model)
    assert asyncio.run(model.api.count_text_tokens("Will it rain in Oslo?")) == 42
