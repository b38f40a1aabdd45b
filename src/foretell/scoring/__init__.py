"""Turns tables of forecasts and outcomes into leaderboards and comparisons."""

from foretell.interface import offer

HOMES = {
    "foretell.scoring.arena_leaderboard": (
        "ARENA_METRICS ArenaLeaderboardRow MAIN_METRIC ScoredArena arena_leaderboard_groups divergence "
        "entry_verdicts leading_verdicts past_rate rebalanced_scores verdicts_against with_arena_anchors"
    ),
    "foretell.scoring.arena_table": (
        "ArenaEntry ArenaOutcomes ArenaTable arena_as_table arena_frame "
        "arena_table_from_prophet_arena moment_arrays seconds_of"
    ),
    "foretell.scoring.arena_view": "ArenaLeaderboard lead_time_curve",
    "foretell.scoring.breakdown": "Breakdown representativeness standardised_difference verdict_matrix",
    "foretell.scoring.join": "ReadOptions answered_rows choose_forecaster read_examples read_rows read_table",
    "foretell.scoring.long_tables": (
        "RunScores StoredScores failure_rows final_forecasts forecast_rows outcome_rows questions_of_runs score_run "
        "write_backtest write_rows"
    ),
    "foretell.scoring.score": "PairComparison ScoringOptions compare_pair score_table",
    "foretell.scoring.scoreboard": "Score Scoreboard group_title rows_as_html rows_as_text",
    "foretell.scoring.table": "ALWAYS_HALF ANCHORS BASE_RATE CROWD ForecastTable Labels OVERALL Targets base_rate",
    "foretell.scoring.table_input": "TableSource check_rules open_table text_rules",
    "foretell.scoring.verdict": "PairComparer Verdict corrected",
}
"""Maps each module to the names that other packages import from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
