import io
import re
from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console

from foretell.metrics import Resampling
from foretell.report import markdown_board, markdown_text, print_board
from foretell.report.comparison import print_comparison
from foretell.report.leaderboard import headline
from foretell.scoring import ForecastTable, PairComparison, Scoreboard, ScoringOptions, compare_pair

LONG = "provider:a-model-with-a-very-long-name-high-search-on-calibrated"


def printed(board: Scoreboard, width: int, *, colour: bool = False) -> str:
    out = io.StringIO()
    print_board(
        board, Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
    )
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_terminal_shows_the_numbers_in_its_width(board: Scoreboard, width: int) -> None:
    told = printed(board, width)
    assert all(len(line) <= width for line in told.splitlines())
    assert "72.4 [70.4, 74.4]" in told
    assert "−2.1*" in told
    assert "ref" in told
    assert "0.123" in told
    assert " ".join(told.split()).startswith(headline(board))
    assert "have not resolved" in told
    assert "…" not in told


def test_wide_terminal_has_more_columns(board: Scoreboard) -> None:
    assert "ECE" in printed(board, 120)
    assert "−2.1* [−3.9, −0.4]" in printed(board, 120)
    assert "ECE" not in printed(board, 80)


def test_long_names_lose_their_middle_not_the_numbers(build_board: Callable[..., Scoreboard]) -> None:
    told = printed(build_board({LONG: 71.5, LONG + "-2": 70.0}), 80)
    assert "71.5 [69.5, 73.5]" in told
    assert "provider:" in told
    assert "rated-2" in told
    assert all(len(line) <= 80 for line in told.splitlines() if "[bold" not in line)


def test_names_cannot_steer_the_terminal(build_board: Callable[..., Scoreboard]) -> None:
    told = printed(build_board({"[bold red]x[/]": 71.0, "\x1b[2Jy": 70.0}), 120)
    assert "[bold red]x[/]" in told
    assert "\x1b" not in told


def test_colour_marks_what_is_significant(board: Scoreboard) -> None:
    assert re.search("\x1b\\[31m *−2\\.1\\*", printed(board, 80, colour=True))


def test_forty_forecasters_and_none(build_board: Callable[..., Scoreboard]) -> None:
    told = printed(build_board({f"forecaster {i}": 90.0 - i for i in range(40)}), 80)
    assert "forecaster 39" in told
    assert printed(build_board({}), 80).startswith("Nothing was scored.")
    assert "nan" not in printed(build_board({"a": float("nan")}), 80)


def test_markdown_is_a_table_of_equal_rows(board: Scoreboard) -> None:
    told = markdown_board(board)
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert len(rows) == 5
    cells = [line.replace(r"\|", "").count("|") for line in rows]
    assert len(set(cells)) == 1
    assert r"72.4 \[70.4, 74.4\]" in told
    assert r"−2.1\* \[−3.9, −0.4\]" in told
    assert "*always 0.5*" in told


def test_markdown_names_are_inert(build_board: Callable[..., Scoreboard]) -> None:
    told = markdown_board(build_board({"a|b": 71.0, "<script>": 70.0, "[x](http://e.org)": 60.0}))
    assert r"a\|b" in told
    assert r"\<script\>" in told
    assert r"\[x\](http\://e.org)" in told
    assert markdown_text("two\nlines") == "two lines"


def pair_of(table: ForecastTable, first: str, second: str) -> PairComparison:
    return compare_pair(
        table, first, second, ScoringOptions(by=("source",), anchors=False, resampling=Resampling(draws=300))
    )


def test_a_head_to_head_says_who_wins_and_where(table: ForecastTable) -> None:
    out = io.StringIO()
    print_comparison([pair_of(table, "good", "fair")], Console(file=out, width=80, color_system=None))
    told = out.getvalue()
    assert all(len(line) <= 80 for line in told.splitlines())
    assert told.startswith("good is better than fair by ")
    assert "more than chance" in told
    assert all(name in told for name in ("Overall", "alpha", "beta", "gamma", "120"))


def test_an_open_head_to_head_says_what_it_would_take(build_table: Callable[..., ForecastTable]) -> None:
    rng = np.random.default_rng(5)
    outcome = (rng.random(100) < 0.5).astype(float)
    a, b = (np.clip(outcome * 0.4 + 0.3 + rng.normal(0, 0.2, 100), 0, 1) for _ in range(2))
    told = pair_of(build_table({"a": a, "b": b}, outcome, source=["s"] * 100), "b", "a").sentence
    assert "could be chance" in told
    assert "more independent questions are needed" in told


def test_a_head_to_head_without_shared_targets() -> None:
    pair = PairComparison(first="a", second="b", verdicts=(), resampling=Resampling(), pilot=None)
    out = io.StringIO()
    print_comparison([pair], Console(file=out, width=80))
    assert out.getvalue() == "a and b have no target with an outcome in common.\n"
