"""Inspect AI: question sets as tasks, proper scores as scorers, and logs as tables of forecasts."""

from foretell.interface import offer

HOMES = {
    "foretell.inspect_tasks.logs": "read_inspect_log",
    "foretell.inspect_tasks.tasks": (
        "answered brier brier_index_stderr clustered_stderr estimate_tokens_of foretell_questions log_score"
    ),
}
"""Module → its public names."""

__getattr__, __dir__ = offer(__name__, HOMES)
