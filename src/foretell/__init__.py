"""Probabilities for the future, the reasons behind them, and proof of how good they are."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foretell.arena.backtest import backtest
    from foretell.arena.joining import Reading, read_table
    from foretell.arena.pairing import compare_pair
    from foretell.arena.scoring import Scoring, score, score_table
    from foretell.questions import AsOf, Forecast, InputError, Question, Resolution, Snapshot, Target

_HOMES = {
    "AsOf": "foretell.questions",
    "Forecast": "foretell.questions",
    "InputError": "foretell.questions",
    "Question": "foretell.questions",
    "Reading": "foretell.arena.joining",
    "Resolution": "foretell.questions",
    "Scoring": "foretell.arena.scoring",
    "Snapshot": "foretell.questions",
    "Target": "foretell.questions",
    "backtest": "foretell.arena.backtest",
    "compare_pair": "foretell.arena.pairing",
    "read_table": "foretell.arena.joining",
    "score": "foretell.arena.scoring",
    "score_table": "foretell.arena.scoring",
}
"""Public name → module. Loaded on first use, so that importing foretell costs nothing."""

__all__ = [
    "AsOf",
    "Forecast",
    "InputError",
    "Question",
    "Reading",
    "Resolution",
    "Scoring",
    "Snapshot",
    "Target",
    "backtest",
    "compare_pair",
    "read_table",
    "score",
    "score_table",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'foretell' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
