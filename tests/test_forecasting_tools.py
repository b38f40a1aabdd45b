"""forecasting-tools: its files are scored, and in an environment that has it, its bot runs a foretell forecaster.

FORETELL_FORECASTING_TOOLS is the Python of an environment with forecasting-tools and what foretell needs.
"""

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell.forecasting_tools import forecast_bot, read_reports
from foretell.questions.errors import InputError

BOT = """
import asyncio, sys
from forecasting_tools import BinaryQuestion, BinaryReport, ForecastReport, MultipleChoiceQuestion
from foretell.forecasting_tools import forecast_bot, read_reports


def careful(question):
    return {target.id: 0.75 / (3 ** n) for n, target in enumerate(question.targets)}


rain = BinaryQuestion(question_text="Will it rain?", id_of_question=7, id_of_post=70, resolution_string="yes",
    page_url="https://q.example/70", community_prediction_at_access_time=0.6)
who = MultipleChoiceQuestion(question_text="Who wins?", id_of_question=8, id_of_post=80, options=["Red", "Blue"],
    page_url="https://q.example/80", resolution_string="Blue")
bot = forecast_bot(careful)
reports = asyncio.run(bot.forecast_questions([rain, who]))
assert reports[0].prediction == 0.75, reports[0].prediction
assert [one.probability for one in reports[1].prediction.predicted_options] == [0.75, 0.25]
ForecastReport.save_object_list_to_file_path(reports, sys.argv[1])
"""


def report(question: int, prediction: Any, resolution: str | None, **more: Any) -> dict[str, Any]:
    asked = {"question_text": "?", "id_of_question": question, "id_of_post": question, "resolution_string": resolution}
    return {"question": asked | more, "explanation": "# Summary", "prediction": prediction}


RAIN = report(1, 0.8, "yes", community_prediction_at_access_time=0.6)
WHO = report(2, {"predicted_options": [{"option_name": n, "probability": 0.5} for n in ("Red", "Blue")]}, "Blue")
OPEN, NUMBER, ANNULLED = report(3, 0.5, None), report(4, {"declared_percentiles": []}, "7"), report(5, 0.5, "annulled")


def test_reports_are_scored_like_any_table(tmp_path: Path) -> None:
    path = tmp_path / "bot.json"
    path.write_text(json.dumps([RAIN, WHO, OPEN, NUMBER, ANNULLED], indent=2), encoding="utf-8")
    board = foretell.score(path, metrics="brier")
    (bot,) = (score for score in board.scores if score.forecaster == "bot")
    assert bot.metrics["brier"].estimate == pytest.approx((0.04 + 0.25 + 0.25) / 3)
    read = read_reports(path, name="mine")
    assert {row["forecaster"] for row in read.forecasts} == {"mine"}
    assert [row["question"] for row in read.failures] == ["3", "4", "5"]
    assert read.outcomes[0]["price"] == 0.6


def test_benchmarks_are_compared_by_name(tmp_path: Path) -> None:
    benchmarks = [
        {"explicit_name": None, "forecast_bot_class_name": name, "forecast_reports": [report(1, p, "yes")]}
        for name, p in (("Good", 0.9), ("Bad", 0.2))
    ]
    path = tmp_path / "benchmarks.jsonl"
    path.write_text("".join(f"{json.dumps(benchmark)}\n" for benchmark in benchmarks), encoding="utf-8")
    scores = {score.forecaster: score.metrics["brier"].estimate for score in foretell.score(path).scores}
    assert scores["Good"] == pytest.approx(0.01)
    assert scores["Bad"] == pytest.approx(0.64)


def test_a_file_without_a_resolved_question_says_so(tmp_path: Path) -> None:
    path = tmp_path / "open.json"
    path.write_text(json.dumps([OPEN]), encoding="utf-8")
    with pytest.raises(InputError, match=r"open\.json: no report can be scored: the question is not resolved"):
        foretell.score(path)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (RAIN | {"question": {}}, r"entry 2 .*question_text"),
        (RAIN | {"question": {"question_text": "?", "resolution_string": ["yes"]}}, r"entry 2 .*resolution_string"),
        ({"question": {"question_text": "?"}}, r"entry 2 .*prediction"),
        (5, r"entry 2 "),
    ],
)
def test_a_broken_report_is_named(tmp_path: Path, entry: Any, problem: str) -> None:
    path = tmp_path / "bot.json"
    path.write_text(json.dumps([RAIN, entry]), encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        read_reports(path)


def test_options_without_a_probability_are_among_the_failures(tmp_path: Path) -> None:
    path = tmp_path / "bot.json"
    path.write_text(json.dumps([RAIN, report(6, {"predicted_options": [{"a": 1}]}, "Red")]), encoding="utf-8")
    assert [row["question"] for row in read_reports(path).failures] == ["6"]


def test_the_bot_says_what_is_missing() -> None:
    if find_spec("forecasting_tools") is not None:
        pytest.skip("forecasting-tools is installed here")
    with pytest.raises(InputError, match="forecasting-tools is not installed"):
        forecast_bot(lambda question: 0.5)


def test_a_forecaster_runs_as_a_bot_whose_reports_are_read(tmp_path: Path) -> None:
    python = os.environ.get("FORETELL_FORECASTING_TOOLS")
    if python is None:
        pytest.skip("FORETELL_FORECASTING_TOOLS names no Python that has forecasting-tools")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FORETELL_HOME": str(tmp_path)}
    source = str(Path(foretell.__file__).parents[1])
    done = subprocess.run(
        [python, "-c", BOT, "reports.json"],
        env=environment | {"PYTHONPATH": source},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    read = read_reports(tmp_path / "reports.json")
    assert [(row["question"], row["target"], row["p"]) for row in read.forecasts] == [
        ("7", "yes", 0.75),
        ("8", "Red", 0.75),
        ("8", "Blue", 0.25),
    ]
    assert [row["outcome"] for row in read.outcomes] == [1, 0, 1]
