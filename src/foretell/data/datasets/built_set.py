"""A folder that `foretell data build` wrote: questions.jsonl with outcomes.csv beside it."""

from datetime import date
from pathlib import Path

from foretell.data.datasets.dataset import FileFormat
from foretell.data.datasets.question_files import read_questions
from foretell.data.datasets.question_set import QuestionSet
from foretell.data.datasets.rows import Row, csv_rows
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

QUESTIONS, OUTCOMES = "questions.jsonl", "outcomes.csv"


def read_built_set(folder: str | Path) -> QuestionSet:
    """The questions of a folder with what is known of their outcomes, payoffs included."""
    root = Path(folder)
    asked = read_questions(root / QUESTIONS)
    table = root / OUTCOMES
    by_day: dict[tuple[str, date], Question] = {(one.id, one.due.date()): one for one in asked.questions}
    known = [found for row in csv_rows(table) if (found := _resolution(row, by_day))] if table.is_file() else []
    return QuestionSet(name=root.name, questions=asked.questions, resolutions=tuple(known))


def _resolution(row: Row, asked: dict[tuple[str, date], Question]) -> Resolution | None:
    due = row.need_moment("due", "the day the question was asked")
    question = asked.get((row.need_text("question"), due.date()))
    if question is None:
        raise row.problem("question", f"{row.text('question')!r} is not asked on {due.date()} in {QUESTIONS}")
    target, outcome = row.need_text("target"), row.flag("outcome")
    if target not in {one.id for one in question.targets}:
        raise row.problem("target", f"{target!r} is no target of {question.id}")
    if outcome is None:
        return None
    return Resolution(
        question_id=question.id,
        target_id=target,
        due=question.due,
        outcome=int(outcome),
        payoff=row.real("payoff"),
        resolved_at=row.moment("resolved_on"),
        provenance=row.path.name,
    )


built = FileFormat(
    read=lambda request: read_built_set(request.path),
    recognises=lambda path: path.is_dir() and (path / QUESTIONS).is_file(),
)
"""The data set `built:FOLDER`, and any folder with such a file."""
