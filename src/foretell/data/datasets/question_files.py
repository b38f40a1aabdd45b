"""Questions in plain fields, as users write them, and tables of their outcomes."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, cast, get_args

from foretell.data.datasets.dataset import FileFormat
from foretell.data.datasets.question_set import AskedKey, QuestionSet, asked_key
from foretell.data.datasets.rows import Row, csv_rows, jsonl_rows, read_json, read_text, record, text_lines
from foretell.questions.codec import from_dict, parse_yaml
from foretell.questions.errors import InputError, WrongValue, known_names
from foretell.questions.question import (
    Exclusivity,
    Question,
    QuestionKind,
    SeriesRef,
    Snapshot,
    Target,
    read_exclusivity,
)
from foretell.questions.resolution import Reference, Resolution

_NAMES = """
    text id due by resolves dates options exclusivity exclusive price price_at source kind subtype category criteria
    background cluster url opens closes series above below
"""
FIELDS = tuple(_NAMES.split())
YES = "yes"
OWN = "own"
"""Source of a question that names none."""


def plain_question(row: Row, asked_at: datetime | None = None) -> Question:
    """Build a question from plain fields; only `text` is always required."""
    text = row.need_text("text")
    hint = "the day as of which the question is asked, e.g. 2026-01-18"
    due = row.get_datetime("due") or asked_at or row.need_datetime("due", hint)
    return row.reading(
        None,
        lambda: Question(
            id=row.text("id") or default_id(text),
            source=row.text("source") or OWN,
            text=text,
            due=due,
            targets=_targets(row, due),
            kind=_kind(row),
            subtype=row.text("subtype"),
            category=row.text("category"),
            criteria=row.text("criteria"),
            background=row.text("background"),
            exclusivity=_exclusivity(row),
            opens_at=row.get_datetime("opens"),
            closes_at=row.get_datetime("closes"),
            cluster=row.text("cluster"),
            url=row.text("url"),
            series=_series(row),
        ),
    )


def default_id(text: str) -> str:
    """Return a readable id that stays the same as long as the text does.

    >>> default_id("Will it rain in Oslo on 1 May?")
    'will-it-rain-in-oslo-on-1-may-...'
    """
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    return f"{words or 'question'}-{sha256(text.encode()).hexdigest()[:6]}"


def _targets(row: Row, due: datetime) -> tuple[Target, ...]:
    """Return one target, one per option, or one per date; a question cannot have both options and dates."""
    options, dates = row.items("options"), row.items("dates")
    by, resolves = row.get_datetime("by"), row.get_datetime("resolves")
    if by is not None and resolves is not None:
        raise row.problem("resolves", "by and resolves mean the same; give one")
    resolves = by or resolves
    if options and dates:
        raise row.problem("dates", "a question has options or dates, not both")
    if dates and resolves is not None:
        raise row.problem("dates", "already says when the question resolves; leave out by and resolves")
    if dates:
        days = row.need_datetimes("dates")
        for early in (day for day in days if day < due):
            raise row.problem("dates", f"{early.date()} is not a date after the due day {due.date()}")
        return tuple(Target(id=day.date().isoformat(), resolves_at=day) for day in days)
    if resolves is not None and resolves < due:
        raise row.problem(
            "by" if row.get("by") else "resolves", f"{resolves.date()} is before {due.date()}, its due day"
        )
    if len(options) == 1:
        raise row.problem("options", "needs two or more options", "leave it out for a yes/no question")
    labels = [str(option) for option in options] or [YES]
    prices = _prices(row, due, labels)
    return tuple(
        Target(id=label, label=label if options else "", resolves_at=resolves, snapshot=prices.get(label))
        for label in labels
    )


def _exclusivity(row: Row) -> Exclusivity:
    """Return the row's exclusivity, or its older form `exclusive`; by default exactly one of several options."""
    text, flag = row.text("exclusivity"), row.flag("exclusive")
    if text and flag is not None:
        raise row.problem("exclusive", "is the older name of exclusivity; give one")
    if text:
        return row.reading("exclusivity", lambda: read_exclusivity(text))
    return read_exclusivity(bool(row.items("options")) if flag is None else flag)


def _prices(row: Row, due: datetime, labels: list[str]) -> dict[str, Snapshot]:
    """Return the market price: one number for a yes/no question, else a number per option."""
    price = row.get("price")
    if price is None:
        return {}
    prices = cast(Mapping[str, Any], price) if isinstance(price, dict) else {YES: price}
    unknown = [label for label in prices if label not in labels]
    if unknown and not isinstance(price, dict):
        raise row.problem("price", "one price does not say which option it belongs to", "write option: price pairs")
    if unknown:
        raise row.problem("price", f"{unknown[0]!r} is not an option", known_names(unknown[0], labels))
    at = row.get_datetime("price_at") or due
    if at > due:
        raise row.problem("price_at", "the price is from after the due time, so it would leak the future")
    values = {label: replace(row, fields={"price": value}).real("price") for label, value in prices.items()}
    return row.reading("price", lambda: {label: Snapshot(at=at, last_price=p) for label, p in values.items()})


def _kind(row: Row) -> QuestionKind:
    text = row.text("kind") or ("dataset" if row.get("series") or row.get("dates") else "market")
    if text not in get_args(QuestionKind):
        raise row.problem("kind", f"{text!r} is not a kind", known_names(text, get_args(QuestionKind)))
    return cast(QuestionKind, text)


def _series(row: Row) -> SeriesRef | None:
    above, below = row.real("above"), row.real("below")
    text = row.text("series")
    if not text:
        if above is not None or below is not None:
            raise row.problem("series", "is missing", "above and below are levels of a series")
        return None
    provider, _, series_id = text.partition("/")
    if not provider or not series_id:
        raise row.problem("series", f"{text!r} does not name a series", "write provider/id, e.g. fred/DGS10")
    if above is not None and below is not None:
        raise row.problem("below", "give above or below, not both")
    comparison = "below" if below is not None else "above"
    return SeriesRef(
        provider=provider, id=series_id, comparison=comparison, threshold=below if above is None else above
    )


# A user's own questions in JSONL, JSON, CSV or YAML. Such a file never contains answers.
#
# Outcomes go into a table of their own with the columns question, target, outcome.

ANSWERS = ("answer", "outcome", "outcomes", "label", "payoff", "resolution", "resolved", "resolved_to", "result")


def read_questions(path: str | Path, *, asked_at: datetime | None = None) -> QuestionSet:
    """Read questions from a `.jsonl`, `.json`, `.csv`, `.yaml` or `.yml` file.

    Rows are either plain (see `plain.FIELDS`) or whole questions as `to_json` writes them. Rows without `due` are asked
    at `asked_at`; without that, they are refused.
    """
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        kinds = ", ".join(sorted(READERS))
        raise InputError(f"{file.suffix or 'no ending'} is not a kind of question file", path=file, hint=kinds)
    seen: dict[AskedKey, int] = {}
    questions: list[Question] = []
    for row in reader(file):
        question = _question(row, asked_at)
        if asked_key(question) in seen:
            first = seen[asked_key(question)]
            raise row.problem("id", f"question {question.id} is already in row {first}", "give each row its own id")
        seen[asked_key(question)] = row.number
        questions.append(question)
    if not questions:
        raise InputError("contains no question", path=file)
    return QuestionSet(name=file.stem, questions=tuple(questions))


def _question(row: Row, asked_at: datetime | None) -> Question:
    for field in ANSWERS:
        if field in row.fields:
            raise row.problem(
                field,
                "a question file must not contain answers",
                "put outcomes into a table with columns question,target,outcome",
            )
    if "targets" not in row.fields and "schema" not in row.fields:
        row.known_fields(FIELDS)
        return plain_question(row, asked_at)
    try:
        unnamed = row.fields.get("source") in (None, "")
        return from_dict({**row.fields, "source": OWN} if unnamed else dict(row.fields), Question)
    except InputError as error:
        raise error.at(path=row.path, row=row.number) from None


def _json_rows(path: Path) -> Iterator[Row]:
    yield from _listed(path, read_json(path))


def _yaml_rows(path: Path) -> Iterator[Row]:
    try:
        value = parse_yaml(read_text(path))
    except InputError as error:
        raise error.at(path=path) from None
    yield from _listed(path, value)


def _listed(path: Path, value: Any) -> Iterator[Row]:
    """Yield the rows of a list, or of the list under `questions`."""
    if isinstance(value, dict) and "questions" in value:
        body = cast(dict[str, Any], value)
        extra = [key for key in body if key != "questions"]
        if extra:
            raise InputError("is not allowed next to the list of questions", path=path, column=str(extra[0]))
        value = body["questions"]
    if not isinstance(value, list):
        raise InputError("expected a list of questions", path=path, hint="a list, or `questions:` with a list")
    for number, item in enumerate(cast(list[Any], value), start=1):
        yield record(path, number, item)


def _csv_rows(path: Path) -> Iterator[Row]:
    """Yield CSV rows with options and dates, which are separated by semicolons, split into lists."""
    for row in csv_rows(path):
        fields = {field.strip(): value for field, value in row.fields.items() if value.strip()}
        for field in ("options", "dates"):
            if field in fields:
                fields[field] = [part.strip() for part in fields[field].split(";") if part.strip()]
        yield replace(row, fields=fields)


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".csv": _csv_rows,
    ".json": _json_rows,
    ".jsonl": jsonl_rows,
    ".yaml": _yaml_rows,
    ".yml": _yaml_rows,
}


questions = FileFormat(
    read=lambda request: read_questions(request.path, asked_at=request.now), recognises=lambda path: path.is_file()
)
"""The data set `questions:FILE`, and any file that no other format recognises."""

# Tables of outcomes.

ONLY_TARGET = "yes"
"""Target of a row that names none."""
OUTCOME_READERS = {".csv": csv_rows, ".jsonl": jsonl_rows}


def read_outcomes(file: Path) -> tuple[Resolution, ...]:
    """Read the outcomes of a table with the columns question, target, outcome and, if needed, due."""
    if not file.exists():
        raise InputError("no such file", path=file)
    reader = OUTCOME_READERS.get(file.suffix.lower())
    if reader is None:
        raise InputError("is not a table of outcomes", path=file, hint="use .csv or .jsonl")
    return tuple(map(_resolution, reader(file)))


def _resolution(row: Row) -> Resolution:
    outcome = row.real("outcome")
    if outcome not in (0, 1, None):
        raise row.problem("outcome", f"{outcome:g} is neither 0 nor 1")
    try:
        return Resolution(
            question_id=str(row.need("question")),
            target_id=row.text("target") or ONLY_TARGET,
            outcome=None if outcome is None else int(outcome),
            due=row.text("due") or None,
        )
    except WrongValue as error:
        raise row.problem(error.field, error.problem) from None


# A folder that `foretell data build` wrote: questions.jsonl, outcomes.csv and, if there are contexts, contexts.jsonl.

QUESTIONS, OUTCOMES, CONTEXTS = "questions.jsonl", "outcomes.csv", "contexts.jsonl"
REFERENCES = "references.jsonl"
"""The right answers of questions that are answered in words, if there are any."""


def read_built_set(folder: str | Path) -> QuestionSet:
    """Read the questions of a folder with their known outcomes, including payoffs, and with their contexts."""
    root = Path(folder)
    question_set = read_questions(root / QUESTIONS)
    table = root / OUTCOMES
    asked: dict[tuple[str, date], Question] = {
        **{(question.id, question.due.date()): question for question in question_set.questions},
        # Tables state times in full seconds.
        **{(question.id, question.due.replace(microsecond=0)): question for question in question_set.questions},
    }
    known = (
        [built_resolution for row in csv_rows(table) if (built_resolution := _built_resolution(row, asked))]
        if table.is_file()
        else []
    )
    contexts = _built_contexts(root / CONTEXTS, {asked_key(question) for question in question_set.questions})
    return QuestionSet(
        name=root.name,
        questions=question_set.questions,
        resolutions=tuple(known),
        contexts=contexts,
        references=_built_references(root / REFERENCES),
    )


def _built_references(file: Path) -> tuple[Reference, ...]:
    references: list[Reference] = []
    for row in jsonl_rows(file) if file.is_file() else ():
        try:
            references.append(from_dict(dict(row.fields), Reference))
        except InputError as error:
            raise error.at(path=file, row=row.number) from None
    return tuple(references)


def _built_contexts(file: Path, asked: set[AskedKey]) -> dict[AskedKey, str]:
    """Return the contexts of a file as they are written in it, by asking."""
    contexts: dict[AskedKey, str] = {}
    if not file.is_file():
        return contexts
    for row, line in zip(jsonl_rows(file), filter(str.strip, text_lines(file)), strict=True):
        question = row.part("question", row.need("question"))
        key = (question.need_text("id"), question.need_datetime("due"))
        if key not in asked or key in contexts:
            problem = "has two contexts" if key in contexts else f"is not asked at {key[1].isoformat()} in {QUESTIONS}"
            raise row.problem("question", f"{key[0]!r} {problem}")
        contexts[key] = line.strip()
    return contexts


def _built_resolution(row: Row, questions: dict[tuple[str, date], Question]) -> Resolution | None:
    due = row.need_datetime("due", "the day the question was asked")
    id = row.need_text("question")
    question = questions.get((id, due)) or questions.get((id, due.date()))
    if question is None:
        raise row.problem("question", f"{row.text('question')!r} is not asked on {due.date()} in {QUESTIONS}")
    target, outcome = row.need_text("target"), row.flag("outcome")
    if target not in {known.id for known in question.targets}:
        raise row.problem("target", f"{target!r} is not a target of {question.id}")
    if outcome is None:
        return None
    return Resolution(
        question_id=question.id,
        target_id=target,
        due=question.due,
        outcome=int(outcome),
        payoff=row.real("payoff"),
        resolved_at=row.get_datetime("resolved_on"),
        provenance=row.path.name,
    )


built = FileFormat(
    read=lambda request: read_built_set(request.path),
    recognises=lambda path: path.is_dir() and (path / QUESTIONS).is_file(),
)
"""The data set `built:FOLDER`, and any folder with such a file."""
