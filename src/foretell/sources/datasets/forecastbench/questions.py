"""Question sets: what is asked in a round, with the crowd's price at the freeze, and no answer."""

from collections import Counter
from math import isfinite
from pathlib import Path
from typing import Any

from foretell.questions.question import Kind, LastValue, Question, Target
from foretell.questions.snapshot import Snapshot
from foretell.sources.datasets.forecastbench.document import Document, identity, read_document
from foretell.sources.datasets.forecastbench.templates import NOT_APPLICABLE, filled, series_of, subtype_of
from foretell.sources.datasets.question_set import QuestionSet, tally
from foretell.sources.datasets.row import Row

YES = "yes"
"""The only target of a market question."""


def read_question_set(path: str | Path) -> QuestionSet:
    """Read `<due>-llm.json`. Combination questions (a list as id) are dropped and counted, as the leaderboard does."""
    document = read_document(Path(path), "questions")
    counts: Counter[str] = Counter()
    found: dict[str, Question] = {}
    for row in document.rows:
        named = identity(row)
        if named is None:
            counts["combination questions dropped"] += 1
            continue
        question = _question(document, *named)
        if question.id not in found:
            found[question.id] = question
        elif found[question.id] == question:
            counts["repeated questions dropped"] += 1
        else:
            raise named[1].problem("id", "is asked twice in this file with different content")
    return QuestionSet(name=f"forecastbench {document.day}", questions=tuple(found.values()), notes=tally(counts))


def _question(document: Document, question_id: str, row: Row) -> Question:
    kind: Kind = "dataset" if isinstance(row.get("resolution_dates"), list) else "market"
    text = _text(row, "question") or row.need("question")
    source, url = row.text("source"), _text(row, "url")
    return row.reading(
        "question",
        lambda: Question(
            id=question_id,
            source=source,
            kind=kind,
            subtype=subtype_of(source, kind, text),
            text=filled(text, due=document.day),
            due=document.due,
            targets=_horizons(document, row, text) if kind == "dataset" else (_market(row),),
            criteria=_criteria(document, row),
            background=_background(document, row, kind),
            last_value=None if kind == "market" else _last_value(document, row),
            opens_at=_moment(row, "market_info_open_datetime"),
            closes_at=_moment(row, "market_info_close_datetime"),
            url=url,
            series=series_of(source, row.text("id"), url),
        ),
    )


def _horizons(document: Document, row: Row, text: str) -> tuple[Target, ...]:
    """One target per resolution date; the label is the question's first paragraph with that date in it."""
    return tuple(_horizon(document, row, text.split("\n\n")[0], day) for day in row.items("resolution_dates"))


def _horizon(document: Document, row: Row, text: str, day: Any) -> Target:
    moment = Row(path=row.path, number=row.number, fields={"resolution_dates": day}, name=row.name).moment(
        "resolution_dates"
    )
    if moment is None:
        raise row.problem("resolution_dates", "holds an empty date")
    iso = moment.date().isoformat()
    return Target(id=iso, label=filled(text, due=document.day, resolution=iso), resolves_at=moment)


def _market(row: Row) -> Target:
    """The one target of a market question with the crowd's price at the freeze; when it ends nobody knows."""
    price = None if _text(row, "freeze_datetime_value") == "" else row.real("freeze_datetime_value")
    at = _moment(row, "freeze_datetime")
    if price is None or at is None:
        return Target(id=YES)
    return Target(id=YES, snapshot=row.reading("freeze_datetime_value", lambda: Snapshot(at=at, last_price=price)))


def _criteria(document: Document, row: Row) -> str:
    parts = (_text(row, "resolution_criteria"), _text(row, "market_info_resolution_criteria"))
    return filled("\n\n".join(filter(None, parts)), due=document.day)


def _background(document: Document, row: Row, kind: Kind) -> str:
    """The published background; for data-set questions also the last value known at the freeze, with its date."""
    background = filled(_text(row, "background"), due=document.day)
    value, at = _text(row, "freeze_datetime_value"), _moment(row, "freeze_datetime")
    if kind == "market" or not value or at is None:
        return background
    meaning = filled(_text(row, "freeze_datetime_value_explanation"), due=document.day)
    known = " ".join(filter(None, [f"Value known on {at.date().isoformat()}: {value}.", meaning]))
    return "\n\n".join(filter(None, [background, known]))


def _last_value(document: Document, row: Row) -> LastValue | None:
    """The value at the freeze as a number; some sources freeze a word, which stays in the background alone."""
    at = _moment(row, "freeze_datetime")
    try:
        value = float(_text(row, "freeze_datetime_value"))
    except ValueError:
        return None
    if at is None or not isfinite(value):
        return None
    return LastValue(
        value=value, at=at, meaning=filled(_text(row, "freeze_datetime_value_explanation"), due=document.day)
    )


def _text(row: Row, field: str) -> str:
    text = row.text(field)
    return "" if text == NOT_APPLICABLE else text


def _moment(row: Row, field: str) -> Any:
    return None if _text(row, field) == "" else row.moment(field)
