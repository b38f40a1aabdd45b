"""What Inspect finds through the entry point: `inspect eval foretell/questions`."""

from foretell.inspect_tasks.scorers import answered, brier, brier_index, brier_index_stderr, clustered_stderr, log_score
from foretell.inspect_tasks.tasks import foretell_questions

__all__ = [
    "answered",
    "brier",
    "brier_index",
    "brier_index_stderr",
    "clustered_stderr",
    "foretell_questions",
    "log_score",
]
