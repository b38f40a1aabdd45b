"""Claim sets: statements that a publication later found true or false (the shape of Matter-of-Fact)."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Literal, cast, get_args

from foretell.data.datasets.dataset import FileFormat
from foretell.data.datasets.question_set import QuestionSet, count_notes
from foretell.data.datasets.rows import Row, hint_for, jsonl_rows
from foretell.questions.as_of import instant
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

Split = Literal["validation", "test"]
FIELDS = ("id", "claim", "label", "published", "category", "split", "background")
TRUE = "true"
"""The only target of a claim."""


def read_claims(path: str | Path, split: Split | None = None) -> QuestionSet:
    """Read claims, one JSON object a line: `claim`, `label` (true/false), `published`, `category`, `split`, `id`.

    What decides a claim is the publication itself, so a forecaster may know what was known by the evening of the day
    before it. With `split`, only that part is returned and the rest is counted.
    """
    counts: Counter[str] = Counter()
    questions: list[Question] = []
    resolutions: list[Resolution] = []
    seen: set[str] = set()
    for row in jsonl_rows(Path(path)):
        row.known_fields(FIELDS)
        question, part = _question(row), _split(row)
        if question.id in seen:
            raise row.problem("id", f"claim {question.id} is there twice")
        seen.add(question.id)
        if split is not None and part != split:
            counts[f"claims of the {part or 'unnamed'} split left aside"] += 1
            continue
        questions.append(question)
        resolutions.append(_resolution(row, question))
    name = " ".join(filter(None, [Path(path).stem, split]))
    return QuestionSet(name=name, questions=tuple(questions), resolutions=tuple(resolutions), notes=count_notes(counts))


def _question(row: Row) -> Question:
    published = row.moment("published")
    if published is None:
        raise row.problem("published", "is missing", "the publication day is the cutoff")
    return Question(
        id=row.text("id") or f"claim/{row.number}",
        source="claims",
        subtype="claim",
        text=row.text("claim") or row.need("claim"),
        due=instant(published.date() - timedelta(days=1)),
        targets=(Target(id=TRUE),),
        category=row.text("category"),
        background=row.text("background"),
    )


def _split(row: Row) -> Split | None:
    told = row.text("split").lower()
    if told and told not in get_args(Split):
        raise row.problem("split", f"{told!r} is not a split", hint_for([], get_args(Split)))
    return cast(Split, told) if told else None


def _resolution(row: Row, question: Question) -> Resolution:
    label = row.flag("label")
    if label is None:
        raise row.problem("label", "is missing", "true or false")
    return Resolution(
        question_id=question.id,
        target_id=TRUE,
        due=question.due,
        outcome=int(label),
        resolved_at=row.moment("published"),
        provenance=row.path.name,
    )


claims = FileFormat(read=lambda request: read_claims(request.path))
"""The data set `claims:FILE`."""
