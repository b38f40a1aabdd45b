"""Probabilities for the future, the reasons behind them, and proof of how good they are."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foretell.app.answers import ask
    from foretell.app.catalog import build_forecaster
    from foretell.app.datasets import open_benchmark
    from foretell.app.inspect_door.logs import read_inspect_log
    from foretell.arena.backtest import backtest
    from foretell.arena.joining import Reading, read_table
    from foretell.arena.pairing import compare, compare_pair
    from foretell.arena.results import Combining, combined
    from foretell.arena.scoring import Scoring, score, score_table
    from foretell.forecasters.tree.files.tree_file import read_tree, write_tree
    from foretell.forecasters.tree.whatif.whatif import what_if
    from foretell.questions import AsOf, Forecast, InputError, Question, Resolution, Snapshot, Target

_HOMES = {
    "AsOf": "foretell.questions",
    "Combining": "foretell.arena.results",
    "Forecast": "foretell.questions",
    "InputError": "foretell.questions",
    "Question": "foretell.questions",
    "Reading": "foretell.arena.joining",
    "Resolution": "foretell.questions",
    "Scoring": "foretell.arena.scoring",
    "Snapshot": "foretell.questions",
    "Target": "foretell.questions",
    "ask": "foretell.app.answers",
    "backtest": "foretell.arena.backtest",
    "build_forecaster": "foretell.app.catalog",
    "combined": "foretell.arena.results",
    "compare": "foretell.arena.pairing",
    "compare_pair": "foretell.arena.pairing",
    "open_benchmark": "foretell.app.datasets",
    "read_inspect_log": "foretell.app.inspect_door.logs",
    "read_table": "foretell.arena.joining",
    "read_tree": "foretell.forecasters.tree.files.tree_file",
    "score": "foretell.arena.scoring",
    "score_table": "foretell.arena.scoring",
    "what_if": "foretell.forecasters.tree.whatif.whatif",
    "write_tree": "foretell.forecasters.tree.files.tree_file",
}
"""Public name → module. Loaded on first use, so that importing foretell costs nothing."""

__all__ = [
    "AsOf",
    "Combining",
    "Forecast",
    "InputError",
    "Question",
    "Reading",
    "Resolution",
    "Scoring",
    "Snapshot",
    "Target",
    "ask",
    "backtest",
    "build_forecaster",
    "combined",
    "compare",
    "compare_pair",
    "open_benchmark",
    "read_inspect_log",
    "read_table",
    "read_tree",
    "score",
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
