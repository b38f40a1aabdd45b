"""Question sets as Inspect AI tasks, our scores as its scorers, and its logs as forecasts."""

from foretell.interface import offer

HOMES = {
    "foretell.inspect_tasks.logs": "read_inspect_log",
    "foretell.inspect_tasks.tasks": (
        "answered brier brier_index_stderr clustered_stderr estimate_tokens_of foretell_questions log_score"
    ),
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
