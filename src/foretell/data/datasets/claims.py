"""Claim sets: statements that a later publication found true or false (the format of Matter-of-Fact)."""

from datetime import timedelta
from pathlib import Path
from typing import Literal, get_args

from foretell.data.datasets.question_set import FileFormat, QuestionSet, QuestionSetBuilder, asked_key
from foretell.data.datasets.rows import first_fields, jsonl_rows
from foretell.questions.as_of import instant
from foretell.questions.errors import known_names
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

Split = Literal["validation", "test"]
FIELDS = ("id", "claim", "label", "published", "category", "split", "background")
TRUE = "true"
"""The only target of a claim."""


def read_claims(path: str | Path, split: Split | None = None) -> QuestionSet:
    """Read claims, one JSON object per line: `claim`, `label` (true/false), `published`, `category`, `split`, `id`.

    The publication itself decides a claim, so a forecaster may use what was known by the end of the day before it. With
    `split`, only that part is returned and the rest is counted. The split is the question's subtype, and so a column of
    every table of outcomes. Several categories are separated by semicolons.
    """
    found, ids = QuestionSetBuilder(), set[str]()
    for row in jsonl_rows(Path(path)):
        row.known_fields(FIELDS)
        published = row.need_moment("published", "the publication day is the cutoff")
        part = row.text("split").lower()
        if part and part not in get_args(Split):
            raise row.problem("split", f"{part!r} is not a split", known_names(part, get_args(Split)))
        question = Question(
            id=row.text("id") or f"claim/{row.number}",
            source="claims",
            subtype=part or "claim",
            text=row.need_text("claim"),
            due=instant(published.date() - timedelta(days=1)),
            targets=(Target(id=TRUE),),
            category=row.text("category"),
            background=row.text("background"),
        )
        if question.id in ids:
            raise row.problem("id", f"claim {question.id} is there twice")
        ids.add(question.id)
        if split is not None and part != split:
            found.counts[f"claims of the {part or 'unnamed'} split left aside"] += 1
            continue
        found.questions[asked_key(question)] = question
        found.resolutions.append(
            Resolution(
                question_id=question.id,
                target_id=TRUE,
                due=question.due,
                outcome=int(row.need_flag("label", "true or false")),
                resolved_at=published,
                provenance=row.path.name,
            )
        )
    return found.build(" ".join(filter(None, [Path(path).stem, split])))


claims = FileFormat(
    read=lambda request: read_claims(request.path),
    recognises=lambda path: first_fields(path) >= {"claim", "published"},
)
"""The data set `claims:FILE`, and any JSONL file whose first line is a claim."""
