"""What the readers of published question sets share: checked rows, times as publishers write them, passages of a text.

These sets keep the answer in the row of the question. A reader takes the fields of the question by name and leaves
everything else, so that explanations and forecasts of the publisher never get into a question.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path

from foretell.data.datasets.dataset import FileFormat
from foretell.data.datasets.question_set import MOST_SOURCES, ContextSource, QuestionSet, QuestionSetBuilder, asked_key
from foretell.data.datasets.rows import Row, columns_of, table_rows
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError, InputProblem
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

MOST_ROWS_NAMED = 5
"""Number of further rows with the same problem that a message names."""
PASSAGE = 850
"""Characters of a passage, so that a context shows it whole."""
_EPOCH_MILLISECONDS = 1e11
"""Numbers above this are times in milliseconds; in seconds they would lie beyond the year 5000."""


class PublishedSetBuilder(QuestionSetBuilder):
    """A question set under construction whose rows each become one question, with its outcomes and sources."""

    def add_sources(self, question: Question, title: str, text: str) -> None:
        """Add a long text as the context of a question. What a context cannot show is left out and counted."""
        parts = passages(title, text)
        self.contexts[asked_key(question)] = parts[:MOST_SOURCES]
        self.counts["contexts too long to be shown whole"] += len(parts) > MOST_SOURCES

    def add(self, row: Row, question: Question, outcomes: dict[str, int | None], resolved: datetime | None) -> None:
        """Add a question with the outcomes of its targets; the same asking twice raises."""
        if asked_key(question) in self.questions:
            raise row.problem(None, f"question {question.id!r} is asked twice on {question.due.date()}")
        self.questions[asked_key(question)] = question
        self.resolutions += [
            Resolution(
                question_id=question.id,
                target_id=target,
                due=question.due,
                outcome=outcome,
                resolved_at=resolved,
                provenance=row.path.name,
            )
            for target, outcome in outcomes.items()
        ]


def published_format(columns: frozenset[str], add: Callable[[Row, PublishedSetBuilder], None]) -> FileFormat:
    """Return the format of files with these columns, whose rows `add` reads one by one."""
    return FileFormat(
        read=lambda request: read_published(request.path, add), recognises=lambda path: columns_of(path) >= columns
    )


def read_published(path: Path, add: Callable[[Row, PublishedSetBuilder], None]) -> QuestionSet:
    """Read every row of a file into a question set. All rows are read before the problems of all of them are raised."""
    set_builder, problems = PublishedSetBuilder(), list[InputProblem]()
    for row in table_rows(path):
        try:
            add(row, set_builder)
        except InputError as error:
            problems.append(InputProblem(problem=error.problem, row=row.number, column=error.column, hint=error.hint))
    if problems:
        raise InputError.of(_merged(problems), path=path)
    if not set_builder.questions:
        left_out = "; ".join(f"{count} {reason}" for reason, count in set_builder.counts.items())
        raise InputError("contains no question", path=path, hint=left_out or None)
    return set_builder.build(path.stem)


def _merged(problems: list[InputProblem]) -> list[InputProblem]:
    """Return each problem once, with the rows that have it."""
    merged: dict[tuple[str, str | None], InputProblem] = {}
    for problem in problems:
        key = problem.problem, problem.column
        if (known := merged.get(key)) is None:
            merged[key] = problem
        else:
            rows = (*known.more, problem.row or 0)[:MOST_ROWS_NAMED]
            merged[key] = replace(known, count=known.count + 1, more=rows)
    return list(merged.values())


def moment(row: Row, field: str, zone: tzinfo = UTC) -> datetime | None:
    """Return a field as a time in UTC; None if it is absent. Times without a zone are those of `zone`.

    Publishers write times as text, as times of Parquet, or as seconds or milliseconds since 1970.
    """
    value = row.get(field)
    if isinstance(value, str):
        value = _number_or_text(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        seconds = value / 1000 if abs(value) > _EPOCH_MILLISECONDS else value
        return row.reading(field, lambda: datetime.fromtimestamp(seconds, UTC))
    if isinstance(value, str) and len(value) > len("2025-10-26"):
        text = value
        value = row.reading(field, lambda: _time(text))
    if isinstance(value, datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=zone)
    elif isinstance(value, str) or (isinstance(value, date) and not isinstance(value, datetime)):
        day = instant(value) if not isinstance(value, str) else replace(row, fields={field: value}).get_datetime(field)
        value = None if day is None else day.replace(tzinfo=zone)
    return replace(row, fields={field: value}).get_datetime(field)


def _number_or_text(text: str) -> str | float:
    return float(text) if re.fullmatch(r"\d{10}(\.\d+)?|\d{13}", text) else text


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a date or time such as 2025-10-26T12:00:00Z") from None


def need_moment(row: Row, field: str, zone: tzinfo = UTC) -> datetime:
    """Return a required time."""
    value = moment(row, field, zone)
    if value is None:
        raise row.problem(field, "is missing")
    return value


def day_before(end: datetime) -> datetime:
    """Return the day before an end, as of which a question is asked whose set does not say when.

    >>> day_before(instant("2026-03-19T10:00:00Z")).date().isoformat()
    '2026-03-18'
    """
    return instant(end.date() - timedelta(days=1))


def passages(title: str, text: str) -> tuple[ContextSource, ...]:
    r"""Return a long text as sources of whole paragraphs, each short enough to be shown and judged by itself.

    >>> [source.summary for source in passages("Notes", "One.\n\nTwo.")]
    ['One.\n\nTwo.']
    """
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        for piece in _pieces(paragraph.strip()):
            if parts and len(parts[-1]) + len(piece) + 2 <= PASSAGE:
                parts[-1] += f"\n\n{piece}"
            elif piece:
                parts.append(piece)
    return tuple(
        ContextSource(title=f"{title} {place}" if len(parts) > 1 else title, url="", summary=part, rank=place)
        for place, part in enumerate(parts, start=1)
    )


def _pieces(paragraph: str) -> list[str]:
    """Split a paragraph that is too long behind its sentences."""
    pieces: list[str] = [""]
    for sentence in re.split(r"(?<=[.!?])\s+", paragraph):
        if pieces[-1] and len(pieces[-1]) + len(sentence) + 1 > PASSAGE:
            pieces.append("")
        pieces[-1] = f"{pieces[-1]} {sentence}".strip()
    return pieces
