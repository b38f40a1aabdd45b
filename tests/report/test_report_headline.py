import math
from collections.abc import Callable
from dataclasses import replace

from foretell.report import scope
from foretell.report.leaderboard import headline
from foretell.scoring import Scoreboard, Verdict, group_title

Build = Callable[..., Scoreboard]
Judge = Callable[..., Verdict]


def test_a_clear_lead_is_more_than_chance(board: Scoreboard) -> None:
    text = headline(board)
    assert text.startswith("good is better than fair by 2.1 points of Brier index")
    assert "(72.4 and 70.3; 95 % interval 0.4 to 3.9, p = 0.040)" in text
    assert text.endswith("which is more than chance.")


def test_a_lead_within_noise_could_be_chance(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 71.0, "b": 70.0}, lead=build_verdict(-1.0, -3.0, 1.2))
    assert headline(board).startswith(
        "a is ahead of b by 1.0 points of Brier index (71.0 and 70.0; 95 % interval −1.2 to 3.0)"
    )
    assert "could be chance" in headline(board)


def test_low_is_better_reads_the_same_way(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 0.10, "b": 0.112}, lead=build_verdict(0.012, 0.004, 0.020), metric="brier")
    assert headline(board).startswith(
        "a is better than b by 0.012 in Brier score (0.100 and 0.112; 95 % interval 0.004 to 0.020"
    )


def test_the_runner_up_may_be_the_reference(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 72.0, "b": 70.0}, lead=build_verdict(2.0, 1.0, 3.0), reference="b")
    assert headline(board).startswith("a is better than b by 2.0 points")


def test_a_pair_that_was_not_compared_is_not_judged(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 72.0, "b": 70.0, "c": 60.0}, lead=build_verdict(12.0, 9.0, 15.0), reference="c")
    text = headline(board)
    assert text.startswith("a has the best Brier index, 72.0 [70.0, 74.0] on 120 targets.")
    assert "a is better than c by 12.0 points" in text
    assert "b" not in text.replace("Brier", "").replace("both", "").replace("better", "").replace("best", "").split()


def test_a_rank_that_the_shared_targets_contradict(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 72.0, "b": 70.0}, lead=build_verdict(1.5, 0.5, 2.5))
    assert headline(board).startswith("a is worse than b by 1.5 points of Brier index")


def test_too_few_clusters_say_nothing_but_that(build_board: Build, build_verdict: Judge) -> None:
    lead = build_verdict(-2.0, -3.0, -1.0, n_clusters=9, n_effective=9)
    text = headline(build_board({"a": 72.0, "b": 70.0}, lead=lead))
    assert text.startswith("Too few to tell a from b")
    assert "better" not in text
    assert "p " not in text


def test_one_or_none(build_board: Build) -> None:
    told = "Only solo was scored: Brier index 61.0 [59.0, 63.0] on 120 targets."
    assert headline(build_board({"solo": 61.0})) == told
    assert headline(build_board({})) == "Nothing was scored."
    assert headline(build_board({"a": math.nan})) == "No forecaster has a score yet."


def test_a_leading_yardstick_is_remarked(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"crowd price": 75.0, "b": 70.0}, lead=build_verdict(-5.0, -6.0, -4.0))
    assert headline(board).endswith("No forecaster beats this yardstick.")


def test_rows_without_a_score_rank_last_and_anchors_have_no_place(build_board: Build) -> None:
    board = build_board({"x": math.nan, "b": 60.0, "always 0.5": 50.0, "a": 70.0})
    found = board.section({"kind": "overall"})
    assert [(row.name, row.place) for row in found.rows] == [("a", 1), ("b", 2), ("always 0.5", None), ("x", None)]


def test_a_metric_that_is_absent_is_no_error(board: Scoreboard) -> None:
    first = replace(board.scores[0], metrics={})
    found = replace(board, scores=(first, *board.scores[1:])).sections()[0]
    assert found.rows[-1].metric("brier_index") is None
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
