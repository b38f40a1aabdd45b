"""A data set: `example_set`, or `example_set:N` for N questions."""

from foretell.data.datasets.dataset import DatasetRequest
from foretell.data.datasets.question_set import QuestionSet
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution


def example_set(request: DatasetRequest) -> QuestionSet:
    """Return questions that all come true."""
    questions = tuple(
        Question(
            id=f"example/{n}", source="example", text=f"Will {n} happen?", due="2025-01-05", targets=(Target(id="yes"),)
        )
        for n in range(int(request.argument or 3))
    )
    outcomes = tuple(Resolution(question_id=q.id, due=q.due, target_id="yes", outcome=1) for q in questions)
    return QuestionSet(name="example", questions=questions, resolutions=outcomes)
