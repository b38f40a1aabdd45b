"""What Inspect finds through the entry point: `inspect eval foretell/questions`."""

from foretell.app.inspect_door.metrics import brier_index, brier_index_stderr, clustered_stderr
from foretell.app.inspect_door.scorers import answered, brier, log_score
from foretell.app.inspect_door.tasks import foretell_questions

__all__ = [
    "answered",
    "brier",
    "brier_index",
    "brier_index_stderr",
    "clustered_stderr",
    "foretell_questions",
    "log_score",
]
