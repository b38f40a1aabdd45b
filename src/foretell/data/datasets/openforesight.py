"""OpenForesight: questions from news articles that are answered in a few words (Chandak et al. 2025, 2512.25070).

A question is asked as of its start. The articles that were retrieved for it stand in `prompt`, behind a line that
announces them, and become its stored context.
"""

import re

from foretell.data.datasets.free_form import FREE_FORM, HOW_TO_ANSWER, RIGHT_TARGET
from foretell.data.datasets.published import (
    PublishedSetBuilder,
    day_before,
    moment,
    need_moment,
    published_format,
)
from foretell.data.datasets.question_files import YES, default_id
from foretell.data.datasets.rows import Row
from foretell.patterns import pattern
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Reference

SOURCE = "openforesight"
COLUMNS = frozenset({"question_title", "answer", "answer_type", "resolution_date"})
_ARTICLES = pattern(
    r"^Relevant passage[sd]* (?:retrieved )?from (?:retrieved )?news articles:\s*(.+?)(?=^\s*Think step by step|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def _add(row: Row, set_builder: PublishedSetBuilder) -> None:
    """Read a question with its right answer; if that is yes or no, it has an outcome."""
    text, answer = row.need_text("question_title"), row.need_text("answer")
    resolves, start = need_moment(row, "resolution_date"), moment(row, "question_start_date")
    binary = answer.casefold() in ("yes", "no")
    expected = f"Expected kind of answer: {row.text('answer_type')}" if row.text("answer_type") else ""
    criteria = (
        [row.text("resolution_criteria")] if binary else [row.text("resolution_criteria"), expected, HOW_TO_ANSWER]
    )
    question = row.reading(
        None,
        lambda: Question(
            id=f"{SOURCE}/{row.text('qid') or row.text('question_id') or default_id(text)}",
            source=SOURCE,
            text=text,
            due=min(filter(None, (start, day_before(resolves)))),
            targets=(Target(id=YES, resolves_at=resolves) if binary else RIGHT_TARGET,),
            subtype="" if binary else FREE_FORM,
            criteria="\n\n".join(filter(None, criteria)),
            background=row.text("background"),
        ),
    )
    set_builder.add(row, question, {YES: int(answer.casefold() == "yes")} if binary else {}, resolves)
    set_builder.references.append(Reference(question_id=question.id, answers=(answer,)))
    if found := _ARTICLES.search(row.text("prompt")):
        set_builder.add_sources(question, "Retrieved articles", found[1])


openforesight = published_format(COLUMNS, _add)
"""The data set `openforesight:FILE`, and any file with its columns."""
