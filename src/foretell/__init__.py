"""Probabilities for the future, the reasons behind them, and proof of how good they are."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foretell.forecasters.forecaster import build_forecaster
    from foretell.forecasters.tree.tree_file import read_tree, write_tree
    from foretell.forecasters.tree.what_if import what_if
    from foretell.inspect_tasks.logs import read_inspect_log
    from foretell.operations.ask import ask
    from foretell.questions.as_of import AsOf
    from foretell.questions.errors import InputError
    from foretell.questions.forecast import Forecast
    from foretell.questions.question import Question, Snapshot, Target
    from foretell.questions.resolution import Resolution
    from foretell.report.arena_report import score_arena
    from foretell.runs.backtest import backtest
    from foretell.runs.combine import CombinationSettings, combine_trials
    from foretell.runs.question_sets import open_benchmark
    from foretell.scoring.join import ReadOptions, read_table
    from foretell.scoring.score import ScoringOptions, compare, compare_pair, score, score_table

_HOMES = {
    "AsOf": "foretell.questions",
    "CombinationSettings": "foretell.runs.combine",
    "Forecast": "foretell.questions",
    "InputError": "foretell.questions",
    "Question": "foretell.questions",
    "ReadOptions": "foretell.scoring.join",
    "Resolution": "foretell.questions",
    "ScoringOptions": "foretell.scoring.score",
    "Snapshot": "foretell.questions",
    "Target": "foretell.questions",
    "ask": "foretell.operations.ask",
    "backtest": "foretell.runs.backtest",
    "build_forecaster": "foretell.forecasters.forecaster",
    "combine_trials": "foretell.runs.combine",
    "compare": "foretell.scoring.score",
    "compare_pair": "foretell.scoring.score",
    "open_benchmark": "foretell.runs.question_sets",
    "read_inspect_log": "foretell.inspect_tasks.logs",
    "read_table": "foretell.scoring.join",
    "read_tree": "foretell.forecasters.tree.tree_file",
    "score": "foretell.scoring.score",
    "score_arena": "foretell.report.arena_report",
    "score_table": "foretell.scoring.score",
    "what_if": "foretell.forecasters.tree.what_if",
    "write_tree": "foretell.forecasters.tree.tree_file",
}
"""Public name → module. Loaded on first use, so that importing foretell costs nothing."""

__all__ = [
    "AsOf",
    "CombinationSettings",
    "Forecast",
    "InputError",
    "Question",
    "ReadOptions",
    "Resolution",
    "ScoringOptions",
    "Snapshot",
    "Target",
    "ask",
    "backtest",
    "build_forecaster",
    "combine_trials",
    "compare",
    "compare_pair",
    "open_benchmark",
    "read_inspect_log",
    "read_table",
    "read_tree",
    "score",
    "score_arena",
    "score_table",
    "what_if",
    "write_tree",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'foretell' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, for completion, without loading any."""
    return [*globals(), *__all__]
