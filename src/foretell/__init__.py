"""Probabilities for the future, the reasons behind them, and proof of how good they are."""

# The names are loaded on first use; `__init__.pyi` declares them.
# pyright: reportUnsupportedDunderAll=false
from importlib import import_module
from typing import Any

_HOMES = {
    "AsOf": "foretell.questions",
    "AskRequest": "foretell.operations.requests",
    "AskResult": "foretell.operations.ask",
    "CombinationSettings": "foretell.runs.combine",
    "Forecast": "foretell.questions",
    "InputError": "foretell.questions",
    "Question": "foretell.questions",
    "ReadOptions": "foretell.scoring.join",
    "ReplayResult": "foretell.operations.run",
    "Resolution": "foretell.questions",
    "RoundResult": "foretell.operations.tournament_round",
    "RunRequest": "foretell.operations.requests",
    "RunResult": "foretell.operations.run",
    "RunsResult": "foretell.operations.runs",
    "ScenarioComparison": "foretell.operations.what_if",
    "ScoringOptions": "foretell.scoring.score",
    "ShowRequest": "foretell.operations.requests",
    "ShowResult": "foretell.operations.run",
    "SignedReport": "foretell.operations.tree",
    "Snapshot": "foretell.questions",
    "Target": "foretell.questions",
    "TournamentResult": "foretell.operations.tournament",
    "TournamentResults": "foretell.operations.tournament_results",
    "TreeDiff": "foretell.operations.tree_edit",
    "TreeEditResult": "foretell.operations.tree_edit",
    "TreeRequest": "foretell.operations.requests",
    "TreeResult": "foretell.operations.tree",
    "TreeVersions": "foretell.operations.tree_edit",
    "WhatIfRequest": "foretell.operations.requests",
    "ask": "foretell.operations.ask",
    "backtest": "foretell.runs.backtest",
    "build_forecaster": "foretell.forecasters.forecaster",
    "combine_trials": "foretell.runs.combine",
    "compare": "foretell.scoring.score",
    "compare_pair": "foretell.scoring.score",
    "diff_trees": "foretell.operations.tree_edit",
    "edit_tree": "foretell.operations.tree_edit",
    "enter_forecastbench": "foretell.operations.tournament_round",
    "enter_metaculus": "foretell.operations.tournament",
    "enter_prophet_arena": "foretell.operations.tournament_arena",
    "expand_leaf": "foretell.operations.tree_research",
    "ground_leaves": "foretell.operations.tree_research",
    "grow_tree": "foretell.operations.tree",
    "list_runs": "foretell.operations.runs",
    "open_benchmark": "foretell.runs.question_sets",
    "read_inspect_log": "foretell.inspect_tasks.logs",
    "read_table": "foretell.scoring.join",
    "read_tree": "foretell.forecasters.tree.tree_file",
    "replay": "foretell.operations.run",
    "report_tree": "foretell.operations.tree",
    "resume_run": "foretell.operations.run",
    "resynthesize_tree": "foretell.operations.tree_research",
    "run": "foretell.operations.run",
    "score": "foretell.scoring.score",
    "score_arena": "foretell.report.arena_report",
    "score_table": "foretell.scoring.score",
    "show": "foretell.operations.run",
    "study": "foretell.operations.studies",
    "tournament_results": "foretell.operations.tournament_results",
    "tree_history": "foretell.operations.tree_edit",
    "what_if": "foretell.operations.what_if",
    "write_tree": "foretell.forecasters.tree.tree_file",
}
"""Public name → module. Loaded on first use, so that importing foretell costs nothing."""

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'foretell' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, for completion, without loading any."""
    return [*globals(), *__all__]
