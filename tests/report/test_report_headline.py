import math
from collections.abc import Callable
from dataclasses import replace

from foretell.report.leaderboard import headline, scope
from foretell.scoring.join import read_table
from foretell.scoring.score import score_table
from foretell.scoring.scoreboard import Scoreboard, group_title
from foretell.scoring.verdict import Verdict

Build = Callable[..., Scoreboard]
Judge = Callable[..., Verdict]


def test_a_clear_lead_is_more_than_chance(board: Scoreboard) -> None:
    text = headline(board)
    assert text.startswith("good is better than fair by 2.1 points of Brier index")
    assert "(72.4 and 70.3; 95 % interval 0.4 to 3.9, p = 0.040)" in text
    assert text.endswith("which is more than chance.")


def test_who_scores_below_always_half_is_named_with_the_verdict() -> None:
    outcomes = [{"question": f"q{n}", "outcome": n % 2} for n in range(60)]
    rows = [
        {"forecaster": name, "question": row["question"], "p": abs(p - row["outcome"])}
        for row in outcomes
        for name, p in (("wrong", 0.8), ("right", 0.2))
    ]
    board = score_table(read_table(rows, outcomes))
    assert board.behind_half == {"wrong": "worse"}
    assert headline(board).endswith("Below always 0.5: wrong (worse).")
    assert "Below" not in headline(
        score_table(read_table([row for row in rows if row["forecaster"] == "right"], outcomes))
    )


def test_a_lead_within_noise_could_be_chance(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 71.0, "b": 70.0}, lead=build_verdict(-1.0, -3.0, 1.2))
    assert headline(board).startswith(
        "a is ahead of b by 1.0 points of Brier index (71.0 and 70.0; 95 % interval −1.2 to 3.0)"
    )
    assert "could be chance" in headline(board)


def test_headline_works_for_metrics_where_low_is_better(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 0.10, "b": 0.112}, lead=build_verdict(0.012, 0.004, 0.020), metric="brier")
    assert headline(board).startswith(
        "a is better than b by 0.012 in Brier score (0.100 and 0.112; 95 % interval 0.004 to 0.020"
    )


def test_the_runner_up_may_be_the_reference(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 72.0, "b": 70.0}, lead=build_verdict(2.0, 1.0, 3.0), reference="b")
    assert headline(board).startswith("a is better than b by 2.0 points")


def test_headline_has_no_verdict_for_a_pair_that_was_not_compared(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 72.0, "b": 70.0, "c": 60.0}, lead=build_verdict(12.0, 9.0, 15.0), reference="c")
    text = headline(board)
    assert text.startswith("a has the best Brier index, 72.0 [70.0, 74.0] on 120 targets.")
    assert "a is better than c by 12.0 points" in text
    assert "b" not in text.replace("Brier", "").replace("both", "").replace("better", "").replace("best", "").split()


def test_headline_uses_the_verdict_on_shared_targets_not_the_rank(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"a": 72.0, "b": 70.0}, lead=build_verdict(1.5, 0.5, 2.5))
    assert headline(board).startswith("a is worse than b by 1.5 points of Brier index")


def test_headline_with_too_few_clusters_says_only_that(build_board: Build, build_verdict: Judge) -> None:
    lead = build_verdict(-2.0, -3.0, -1.0, n_clusters=9, n_effective=9)
    text = headline(build_board({"a": 72.0, "b": 70.0}, lead=lead))
    assert text.startswith("Too few to tell a from b")
    assert "better" not in text
    assert "p " not in text


def test_headline_of_one_or_no_forecaster(build_board: Build) -> None:
    expected = "Only solo was scored: Brier index 61.0 [59.0, 63.0] on 120 targets."
    assert headline(build_board({"solo": 61.0})) == expected
    assert headline(build_board({})) == "Nothing was scored."
    assert headline(build_board({"a": math.nan})) == "No forecaster has a score yet."


def test_headline_says_when_a_baseline_leads(build_board: Build, build_verdict: Judge) -> None:
    board = build_board({"market price": 75.0, "b": 70.0}, lead=build_verdict(-5.0, -6.0, -4.0))
    assert headline(board).endswith("No forecaster beats this baseline.")


def test_rows_without_a_score_rank_last_and_baselines_have_no_rank(build_board: Build) -> None:
    board = build_board({"x": math.nan, "b": 60.0, "always 0.5": 50.0, "a": 70.0})
    section = board.section({"kind": "overall"})
    assert [(row.name, row.place) for row in section.rows] == [("a", 1), ("b", 2), ("always 0.5", None), ("x", None)]


def test_a_missing_metric_is_no_error(board: Scoreboard) -> None:
    first = replace(board.scores[0], metrics={})
    section = replace(board, scores=(first, *board.scores[1:])).sections()[0]
    assert section.rows[-1].metric("brier_index") is None
    assert section.rows[-1].place is None


def test_group_titles() -> None:
    assert group_title({"kind": "market"}) == "Market"
    assert group_title({"source": "infer"}) == "infer"
    assert group_title({"horizon": "7"}) == "horizon 7"
    assert group_title({}) == "All"


def test_scope_does_not_count_baselines(board: Scoreboard) -> None:
    assert scope(board.sections()[0], board) == "120 targets of 60 questions, 2 forecasters"
    market = tuple(replace(s, group={"kind": "market"}) for s in board.scores)
    both = replace(board, scores=board.scores + market)
    assert scope(both.sections()[0], both) == "120 targets of 60 questions, 2 forecasters; mean over kinds"
    assert scope(both.sections()[1], both) == "120 targets of 60 questions, 2 forecasters"


def test_a_leading_baseline_is_compared_with_the_best_forecaster(build_board: Build) -> None:
    text = headline(build_board({"always 0.5": 57.6, "base rate": 55.7, "a": 51.5, "b": 50.0}))
    assert text.startswith("always 0.5 has the best Brier index, 57.6")
    assert "always 0.5 is better than a by 6.1 points" in text
    assert text.endswith("No forecaster beats this baseline.")
