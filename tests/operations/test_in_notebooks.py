"""What a notebook shows of results: their text with the notes, and charts."""

import re
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell import Question
from foretell.types import Context, Settings, StudyResult

ROWS = [
    {"forecaster": name, "question": question, "p": p, "outcome": 1}
    for name, p in (("a", 0.8), ("b", 0.3))
    for question in ("x", "y", "z")
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", network=False)


def html(result: Any) -> str:
    return result._repr_html_()


def test_an_answer_is_shown_with_its_reasons_and_notes_in_words_of_python(settings: Settings) -> None:
    answer = foretell.ask("Will <b>it</b> rain?", price=0.3, settings=settings)
    shown = html(answer)
    assert "<td>yes</td><td>30 %</td>" in shown
    assert f">{answer.rationale}</p>" in shown
    assert ">This is the price you gave: nothing was researched." in shown
    assert not re.search(r"(?<![\w-])--[a-z]", shown)


def test_an_empty_result_says_so(settings: Settings) -> None:
    assert "<pre>You have not run an experiment yet" in html(foretell.grid(settings=settings))
    assert "<pre>No outcome is confirmed yet" in html(foretell.record(settings=settings))


def test_a_run_is_shown_as_a_terminal_shows_it(settings: Settings) -> None:
    done = foretell.run({"questions": {"dataset": "demo", "limit": 2}, "forecaster": "constant"}, settings=settings)
    assert f"<pre>run {done.run}: 2 trials" in html(done)
    assert "2 questions of demo" in html(foretell.list_runs(settings=settings))


def test_a_study_is_a_table_with_charts() -> None:
    done = foretell.study("calibration", forecasts=ROWS, section="line", bootstrap={"draws": 100})
    assert isinstance(done, StudyResult)
    assert repr(done) == str(done)
    assert html(done).count("<svg") >= len(done.charts)
    assert done.text[:40] in html(done)
    assert {"table", "row", "column", "value"} <= set(done.to_pandas().columns)


def test_a_session_shows_a_screen_of_a_long_result() -> None:
    done = foretell.score([ROWS[0] | {"forecaster": f"f{n:02}", "p": n / 100} for n in range(30)])
    lines = str(done).split("\n")
    assert len(lines) > 30
    assert repr(done).split("\n") == [*lines[:23], f"… {len(lines) - 23} more lines: print() shows them"]


def test_a_question_set_is_one_line() -> None:
    benchmark = foretell.open_benchmark("demo")
    assert re.fullmatch(r"<Benchmark demo: \d+ questions, [\d,]+ outcomes>", repr(benchmark))


def test_a_class_with_a_name_may_return_plain_numbers() -> None:
    class Sure:
        name = "sure"

        async def forecast(self, question: Question, context: Context) -> dict[str, float]:
            return {target.id: 0.9 for target in question.targets}

    done = foretell.backtest(Sure(), "demo", limit=1)
    assert [(each.forecaster, set(each.p.values())) for each in done.forecasts] == [("sure", {0.9})]


def test_a_backtest_counts_in_the_singular_and_names_the_question_that_failed() -> None:
    def fails(question: Question) -> float:
        raise LookupError("nothing there")

    done = foretell.backtest(fails, "demo", limit=1)
    reason = f"fails: LookupError: nothing there (question {done.questions[0].id})"
    assert str(done) == f"1 question, 0 forecasts, 1 failure\n{reason}"
