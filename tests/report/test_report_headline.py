import math
from collections.abc import Callable
from dataclasses import replace

from foretell.metrics import Comparison
from foretell.report import scope
from foretell.report.leaderboard import headline
from foretell.scoring import Scoreboard, group_title

Build = Callable[..., Scoreboard]
Compare = Callable[..., Comparison]


def test_a_clear_lead(board: Scoreboard) -> None:
    told = "good leads fair by 2.1 points of Brier index; more than chance (95 % interval [0.4, 3.9])."
    assert headline(board) == told


def test_a_lead_within_noise(build_board: Build, build_comparison: Compare) -> None:
    board = build_board({"a": 71.0, "b": 70.0}, lead=build_comparison(-1.0, -3.0, 1.2))
    told = "a leads b by 1.0 points of Brier index; this could be chance (95 % interval [−1.2, 3.0])."
    assert headline(board) == told


def test_low_is_better_reads_the_same_way(build_board: Build, build_comparison: Compare) -> None:
    lead = build_comparison(0.012, 0.004, 0.020)
    board = build_board({"a": 0.10, "b": 0.112}, lead=lead, metric="brier")
    assert headline(board) == "a leads b by 0.012 in Brier score; more than chance (95 % interval [0.004, 0.020])."


def test_the_runner_up_may_be_the_reference(build_board: Build, build_comparison: Compare) -> None:
    board = build_board({"a": 72.0, "b": 70.0}, lead=build_comparison(2.0, 1.0, 3.0), reference="b")
    assert headline(board).startswith(
        "a leads b by 2.0 points of Brier index; more than chance (95 % interval [1.0, 3.0]"
    )


def test_an_untested_pair_is_called_so_and_the_reference_stands_in(
    build_board: Build, build_comparison: Compare
) -> None:
    board = build_board({"a": 72.0, "b": 70.0, "c": 60.0}, lead=build_comparison(12.0, 9.0, 15.0), reference="c")
    told = headline(board)
    assert "2.0 ahead of b (pair not tested)" in told
    assert "12.0 ahead of the reference c; more than chance (95 % interval [9.0, 15.0])" in told


def test_a_rank_that_the_shared_targets_contradict(build_board: Build, build_comparison: Compare) -> None:
    board = build_board({"a": 72.0, "b": 70.0}, lead=build_comparison(1.5, 0.5, 2.5))
    told = headline(board)
    assert told.startswith("a ranks first, but on the 100 targets both answered b is better by 1.5 points")
    assert "more than chance (95 % interval [0.5, 2.5])" in told


def test_few_clusters_are_said(build_board: Build, build_comparison: Compare) -> None:
    lead = build_comparison(-2.0, -3.0, -1.0, warning="only 9 clusters", n_clusters=9)
    assert "only 9 clusters: take it with care" in headline(build_board({"a": 72.0, "b": 70.0}, lead=lead))


def test_no_interval_no_verdict(build_board: Build, build_comparison: Compare) -> None:
    board = build_board({"a": 72.0, "b": 70.0}, lead=build_comparison(-2.0, math.nan, math.nan))
    assert "too few questions for an interval" in headline(board)


def test_one_or_none(build_board: Build) -> None:
    told = "Only solo was scored: Brier index 61.0 [59.0, 63.0] on 120 targets."
    assert headline(build_board({"solo": 61.0})) == told
    assert headline(build_board({})) == "Nothing was scored."
    assert headline(build_board({"a": math.nan})) == "No forecaster has a score yet."


def test_a_leading_yardstick_is_remarked(build_board: Build, build_comparison: Compare) -> None:
    board = build_board({"crowd price": 75.0, "b": 70.0}, lead=build_comparison(-5.0, -6.0, -4.0))
    assert headline(board).endswith("No forecaster beats this yardstick.")


def test_rows_without_a_score_rank_last_and_anchors_have_no_place(build_board: Build) -> None:
    board = build_board({"x": math.nan, "b": 60.0, "always 0.5": 50.0, "a": 70.0})
    found = board.section({"kind": "overall"})
    assert [(row.name, row.place) for row in found.rows] == [("a", 1), ("b", 2), ("always 0.5", None), ("x", None)]


def test_a_metric_that_is_absent_is_no_error(board: Scoreboard) -> None:
    first = replace(board.scores[0], metrics={})
    found = replace(board, scores=(first, *board.scores[1:])).sections()[0]
    assert found.rows[-1].metric("bi") is None
    assert found.rows[-1].place is None


def test_groups_in_words() -> None:
    assert group_title({"kind": "market"}) == "Market"
    assert group_title({"source": "infer"}) == "infer"
    assert group_title({"horizon": "7"}) == "horizon 7"
    assert group_title({}) == "All"


def test_scope_counts_forecasters_without_yardsticks(board: Scoreboard) -> None:
    assert scope(board.sections()[0], board) == "120 targets of 60 questions, 2 forecasters"
    market = tuple(replace(s, group={"kind": "market"}) for s in board.scores)
    both = replace(board, scores=board.scores + market)
    assert scope(both.sections()[0], both) == "120 targets of 60 questions, 2 forecasters; mean over kinds"
    assert scope(both.sections()[1], both) == "120 targets of 60 questions, 2 forecasters"
