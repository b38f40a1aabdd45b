"""foretell questions and fetch: files of questions."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result
from foretell.cli.request_options import request_options
from foretell.operations.requests import FetchRequest, QuestionsRequest

if TYPE_CHECKING:
    from foretell.operations.result import Result


@click.command()
@request_options(QuestionsRequest)
@prints_result(".json", ".jsonl", ".csv", ".parquet")
def questions(request: QuestionsRequest) -> "Result":
    """Check a FILE of questions (JSONL, JSON, CSV, YAML) and show what is in it."""
    from foretell.operations.questions import check_questions

    return check_questions(request)


@click.command()
@request_options(FetchRequest)
@prints_result(".jsonl", ".json", default=Path("questions.jsonl"))
def fetch(request: FetchRequest) -> "Result":
    """Write the open questions of PLATFORM to a file, one JSON line each, as they stand now.

    Yes-or-no questions, choices, groups, and questions about a number. Ask them with a spec that says mode: live, then
    submit the run with foretell submit.
    """
    from foretell.operations.questions import fetch

    return fetch(request)
