import io
import re
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from rich.console import Console

from foretell.data.datasets.forecastbench import dated_targets
from foretell.metrics import Resampling
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.report.comparison import print_comparison
from foretell.report.leaderboard import headline, markdown_board, print_board
from foretell.report.markup import markdown_text
from foretell.report.run_report import answer_text
from foretell.report.terminal import console
from foretell.scoring.score import PairComparison, ScoringOptions, compare_pair
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ForecastTable

LONG = "provider:a-model-with-a-very-long-name-high-search-on-calibrated"


def printed(board: Scoreboard, width: int, *, colour: bool = False) -> str:
    out = io.StringIO()
    print_board(
        board, Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
    )
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_terminal_shows_the_numbers_in_its_width(board: Scoreboard, width: int) -> None:
    text = printed(board, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "72.4 [70.4, 74.4]" in text
    assert "−2.1*" in text
    assert "ref" in text
    assert "0.123" in text
    assert " ".join(text.split()).startswith(headline(board))
    assert "have not resolved" in text
    assert "…" not in text


def test_wide_terminal_has_more_columns(board: Scoreboard) -> None:
    assert "ECE" in printed(board, 120)
    assert "4.5 pts" in printed(board, 120)
    assert "−2.1* [−3.9, −0.4]" in printed(board, 120)
    assert "ECE" not in printed(board, 80).partition("Not shown")[0]


def test_a_narrow_terminal_names_what_it_leaves_out(board: Scoreboard) -> None:
    narrow, usual, wide = (" ".join(printed(board, width).split()) for width in (50, 80, 150))
    assert "width: intervals." in narrow
    assert "width: intervals of differences" in usual
    assert "lack of width" not in wide


def test_long_names_are_shortened_in_the_middle(build_board: Callable[..., Scoreboard]) -> None:
    text = printed(build_board({LONG: 71.5, LONG + "-2": 70.0}), 80)
    assert "71.5 [69.5, 73.5]" in text
    assert "provider:" in text
    assert "rated-2" in text
    assert all(len(line) <= 80 for line in text.splitlines() if "[bold" not in line)


def test_names_cannot_control_the_terminal(build_board: Callable[..., Scoreboard]) -> None:
    text = printed(build_board({"[bold red]x[/]": 71.0, "\x1b[2Jy": 70.0}), 120)
    assert "[bold red]x[/]" in text
    assert "\x1b" not in text


def test_colour_marks_what_is_significant(board: Scoreboard) -> None:
    assert re.search("\x1b\\[31m *−2\\.1\\*", printed(board, 80, colour=True))


def test_terminal_shows_forty_forecasters_or_none(build_board: Callable[..., Scoreboard]) -> None:
    text = printed(build_board({f"forecaster {i}": 90.0 - i for i in range(40)}), 80)
    assert "forecaster 39" in text
    assert printed(build_board({}), 80).startswith("Nothing was scored.")
    assert "nan" not in printed(build_board({"a": float("nan")}), 80)


def test_markdown_is_a_table_of_equal_rows(board: Scoreboard) -> None:
    text = markdown_board(board)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 5
    cells = [line.replace(r"\|", "").count("|") for line in rows]
    assert len(set(cells)) == 1
    assert r"72.4 \[70.4, 74.4\]" in text
    assert r"−2.1\* \[−3.9, −0.4\]" in text
    assert "*always 0.5*" in text


def test_names_are_escaped_in_markdown(build_board: Callable[..., Scoreboard]) -> None:
    text = markdown_board(build_board({"a|b": 71.0, "<script>": 70.0, "[x](http://e.org)": 60.0}))
    assert r"a\|b" in text
    assert r"\<script\>" in text
    assert r"\[x\](http\://e.org)" in text
    assert markdown_text("two\nlines") == "two lines"


def pair_of(table: ForecastTable, first: str, second: str) -> PairComparison:
    return compare_pair(
        table, first, second, ScoringOptions(by=("source",), baselines=False, resampling=Resampling(draws=300))
    )


def test_a_decided_comparison_shows_the_verdict_by_group(table: ForecastTable) -> None:
    out = io.StringIO()
    print_comparison([pair_of(table, "good", "fair")], Console(file=out, width=80, color_system=None))
    text = out.getvalue()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.startswith("good is better than fair by ")
    assert "more than chance" in text
    assert all(name in text for name in ("Overall", "alpha", "beta", "gamma", "120"))


def test_an_undecided_comparison_says_how_many_questions_are_needed(build_table: Callable[..., ForecastTable]) -> None:
    rng = np.random.default_rng(5)
    outcome = (rng.random(100) < 0.5).astype(float)
    a, b = (np.clip(outcome * 0.4 + 0.3 + rng.normal(0, 0.2, 100), 0, 1) for _ in range(2))
    sentence = pair_of(build_table({"a": a, "b": b}, outcome, source=["s"] * 100), "b", "a").sentence
    assert "could be chance" in sentence
    assert "more independent questions are needed" in sentence


def test_a_comparison_without_shared_targets() -> None:
    pair = PairComparison(first="a", second="b", verdicts=(), resampling=Resampling(), pilot=None)
    out = io.StringIO()
    print_comparison([pair], Console(file=out, width=80))
    assert out.getvalue() == "a and b have no target with an outcome in common.\n"


def test_a_command_in_redirected_output_is_not_wrapped(capsys: pytest.CaptureFixture[str]):
    command = "foretell show 94ea5e --out " + "report/" * 20 + "page.html"
    console().print(command)
    assert capsys.readouterr().out == f"{command}\n"


def test_answers_for_several_dates_name_the_dates_and_not_the_question_again():
    text = "Will the index be above 3 by {resolution_date}?"
    days = [datetime(2026, 2, day, tzinfo=UTC) for day in (1, 8)]
    asked = Question(
        id="q", source="fred", text=text, due="2026-01-18", targets=dated_targets(days, text, "2026-01-18")
    )
    p = {"2026-02-01": 0.6, "2026-02-08": 0.7}
    forecast = Forecast(question_id="q", forecaster="f", as_of=AsOf.day("2026-01-18"), p=p)
    assert answer_text(forecast, asked) == "2026-02-08 70.0 %, 2026-02-01 60.0 %"
