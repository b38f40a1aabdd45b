"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.inspect_tasks.logs import read_inspect_log as read_inspect_log
from foretell.inspect_tasks.tasks import answered as answered
from foretell.inspect_tasks.tasks import brier as brier
from foretell.inspect_tasks.tasks import brier_index_stderr as brier_index_stderr
from foretell.inspect_tasks.tasks import clustered_stderr as clustered_stderr
from foretell.inspect_tasks.tasks import estimate_tokens_of as estimate_tokens_of
from foretell.inspect_tasks.tasks import foretell_questions as foretell_questions
from foretell.inspect_tasks.tasks import log_score as log_score
