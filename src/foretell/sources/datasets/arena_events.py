"""Prophet Arena event sets in the shape its SDK downloads: `events.jsonl`, one event with several windows a line."""

from collections import Counter
from pathlib import Path
from typing import Any, cast

from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.questions.snapshot import Snapshot
from foretell.sources.datasets.prophet_arena import SOURCE, context_sources
from foretell.sources.datasets.question_set import Asked, ContextSource, QuestionSet, asked, tally
from foretell.sources.datasets.row import Row, jsonl_rows

ANSWERS: dict[Any, int | None] = {
    **{yes: 1 for yes in ("yes", "true", "1", "1.0")},
    **{no: 0 for no in ("no", "false", "0", "0.0")},
    **{none: None for none in ("void", "unresolved", "none", "")},
}


def read_events_jsonl(path: str | Path) -> QuestionSet:
    """Read an event set: every window of an event is one asking, at the moment its crowd and articles were taken.

    Here the file itself says whether exactly one outcome comes true. Void outcomes have no outcome and are counted.
    """
    counts: Counter[str] = Counter()
    questions: list[Question] = []
    resolutions: list[Resolution] = []
    contexts: dict[Asked, tuple[ContextSource, ...]] = {}
    for line in jsonl_rows(Path(path)):
        row = Row(path=line.path, number=line.number, fields=line.fields, name=f"event {line.need('slug')}")
        answers = _answers(row, counts)
        windows = row.items("windows")
        counts["events without a window dropped"] += not windows
        for item in windows:
            window = _part(row, "windows", item)
            question = _question(row, window, tuple(answers))
            if asked(question) in contexts:
                raise row.problem("windows", f"{question.due.isoformat()} is asked twice")
            questions.append(question)
            resolutions += _resolutions(question, answers, row.path.name)
            contexts[asked(question)] = context_sources(row, window.items("context"))
    return QuestionSet(
        name="prophet arena",
        questions=tuple(questions),
        resolutions=tuple(resolutions),
        notes=tally(counts),
        contexts=contexts,
    )


def _answers(row: Row, counts: Counter[str]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for item in row.items("outcomes"):
        part = _part(row, "outcomes", item)
        name, told = str(part.need("name")), part.text("resolution").lower()
        if told not in ANSWERS:
            raise part.problem("outcomes", f"resolution {told!r} of {name!r} is not yes, no or void")
        found[name] = ANSWERS[told]
        counts["outcomes void or unresolved"] += found[name] is None
    if not found:
        raise row.problem("outcomes", "is missing")
    return found


def _question(row: Row, window: Row, names: tuple[str, ...]) -> Question:
    at = window.moment("taken_at")
    if at is None:
        raise window.problem("windows", "a window has no taken_at")
    crowd = _crowd(window)
    return row.reading(
        "windows",
        lambda: Question(
            id=f"{SOURCE}/{row.text('slug')}",
            source=SOURCE,
            text=row.text("title") or row.need("title"),
            due=at,
            targets=tuple(
                Target(id=name, label=name, snapshot=Snapshot(at=at, last_price=crowd[name]) if name in crowd else None)
                for name in names
            ),
            category=row.text("category"),
            criteria=row.text("criteria"),
            exclusive=bool(row.flag("mutually_exclusive")),
            closes_at=row.moment("close_at"),
        ),
    )


def _crowd(window: Row) -> dict[str, float]:
    value = window.get("crowd")
    if value is None:
        return {}
    prices = _part(window, "crowd", value)
    return {name: p for name in prices.fields if (p := prices.real(name)) is not None}


def _resolutions(question: Question, answers: dict[str, int | None], provenance: str) -> list[Resolution]:
    return [
        Resolution(question_id=question.id, target_id=name, due=question.due, outcome=answer, provenance=provenance)
        for name, answer in answers.items()
    ]


def _part(row: Row, field: str, value: Any) -> Row:
    if not isinstance(value, dict):
        raise row.problem(field, f"expected an object, found {str(value)[:40]!r}")
    return Row(path=row.path, number=row.number, fields=cast(dict[str, Any], value), name=row.name)
