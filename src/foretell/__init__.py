"""Forecast the future, see the reasons, and measure how good the forecasts are."""

# pyright: reportUnsupportedDunderAll=false
from foretell.interface import offer, offered_names

HOMES = {
    "foretell.forecasters.forecaster": "build_forecaster",
    "foretell.forecasters.tree.tree_file": "read_tree write_tree",
    "foretell.inspect_tasks.logs": "read_inspect_log",
    "foretell.operations.ask": "AskResult ask",
    "foretell.operations.audit": "audit",
    "foretell.operations.grid": "GridList GridResult grid",
    "foretell.operations.requests.asking": "AskRequest",
    "foretell.operations.requests.runs": "RunRequest ShowRequest",
    "foretell.operations.requests.trees": "TreeRequest WhatIfRequest",
    "foretell.operations.result": "Result",
    "foretell.operations.run": "ReplayResult RunResult ShowResult replay run show",
    "foretell.operations.run_plan": "RunPlan",
    "foretell.operations.runs": (
        "DeletedRuns ResolveResult RunLabels RunsResult StoppedRun delete_runs edit_run list_runs resolve_run stop_run"
    ),
    "foretell.operations.studies": "study",
    "foretell.operations.submit": "SubmissionFile SubmitResult submit_forecasts",
    "foretell.operations.tournament": "TournamentResult",
    "foretell.operations.tournament_platforms": "enter_tournament",
    "foretell.operations.tournament_results": "TournamentResults tournament_results",
    "foretell.operations.tournament_round": "RoundResult",
    "foretell.operations.tree": "ShownTree TreeResult TreesResult grow_tree list_trees show_tree",
    "foretell.operations.tree_edit": "TreeEditResult TreeLog edit_tree tree_log",
    "foretell.operations.tree_update": "update_tree",
    "foretell.operations.what_if": "ScenarioComparison what_if",
    "foretell.questions": "AsOf Forecast InputError Question Resolution Snapshot Target",
    "foretell.report.arena_report": "score_arena",
    "foretell.runs.backtest": "backtest",
    "foretell.runs.combine": "CombinationSettings combine_trials",
    "foretell.runs.question_sets": "open_benchmark",
    "foretell.scoring.join": "ReadOptions read_table",
    "foretell.scoring.score": "ScoringOptions compare compare_pair score score_table",
}
"""Module → its public names. They are loaded on first use, so importing foretell is cheap."""

__all__ = sorted(offered_names(HOMES))
__getattr__, __dir__ = offer(__name__, HOMES)
