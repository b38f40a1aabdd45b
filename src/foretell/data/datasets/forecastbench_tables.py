"""ForecastBench rounds as two flat tables, Parquet or CSV: one row per asking, one row per outcome."""

from collections import Counter
from pathlib import Path
from typing import Any, Literal

from foretell.data.datasets.dataset import Dataset, DatasetRequest, FileFormat
from foretell.data.datasets.forecastbench import (
    YES,
    dated_targets,
    filled,
    market_target,
    paragraphs,
    read_outcome,
    series_of,
    stated,
)
from foretell.data.datasets.question_set import OutcomeKey, QuestionSet, QuestionSetBuilder, asked_key, outcome_key
from foretell.data.datasets.rows import Row, open_table
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.question import LastValue, Question, QuestionKind, Target
from foretell.questions.resolution import Resolution

OutcomeColumn = Literal["outcome", "paper_outcome"]
PriceAt = Literal["due", "freeze"]
TableAskingKey = tuple[str, str, str]
"""Source, question id and due date as written in the tables: the key that joins the two."""

ASKING_COLUMNS = ("forecast_due_date", "source", "question_id")
QUESTION_COLUMNS = (
    *ASKING_COLUMNS,
    *("question", "background", "resolution_criteria", "market_info_resolution_criteria"),
    *("market_open", "market_close", "url", "source_type", "subtype"),
    *("freeze_value", "freeze_value_explanation", "freeze_date", "price_on_due_date"),
)
RESOLUTION_COLUMNS = (*ASKING_COLUMNS, "resolution_date", "resolved")
SUFFIXES = (".parquet", ".csv")
KINDS: dict[str, QuestionKind] = {"market": "market", "dataset": "dataset"}
WORDS = frozenset({"swimming", "vaccine"})
"""Templates whose published freeze value is a word; a number in its place is a remnant of that word."""


def read_question_tables(
    folder: str | Path, prefix: str = "", *, outcomes: OutcomeColumn = "outcome", price: PriceAt = "due"
) -> QuestionSet:
    """Read `<prefix>questions` and `<prefix>resolutions` (`.parquet` or `.csv`) of a folder.

    The tables name no resolution date beyond those in `resolutions`, so a data-set question asks about exactly those
    dates, and one without any is left out. Unresolved rows give a target without an outcome. The price of a market
    question is that of the due date if known ("due"), or of the freeze.
    """
    root = Path(folder)
    resolved = _rows(_file(root, f"{prefix}resolutions"), (*RESOLUTION_COLUMNS, outcomes))
    by_asking: dict[TableAskingKey, list[Row]] = {}
    for row in resolved:
        by_asking.setdefault(_asking_key(row), []).append(row)
    rows = _rows(_file(root, f"{prefix}questions"), QUESTION_COLUMNS)
    pages = {row.text("question_id"): row.text("url") for row in rows if row.text("url").count("/") > 4}
    set_builder, places, questions = QuestionSetBuilder(), dict[TableAskingKey, int](), dict[TableAskingKey, Question]()
    for row in rows:
        asking = _asking_key(row)
        if places.setdefault(asking, row.number) != row.number:
            raise row.problem("question_id", f"is also asked on the same day in row {places[asking]}")
        dated = by_asking.get(asking, [])
        if _kind(row) == "dataset" and not dated:
            set_builder.counts["data-set questions without a resolution date left out"] += 1
            continue
        questions[asking] = _question(row, dated, price, pages.get(row.text("question_id"), row.text("url")))
        set_builder.questions[asked_key(questions[asking])] = questions[asking]
    settled: set[OutcomeKey] = set()
    for row in resolved:
        question = questions.get(_asking_key(row))
        if question is None:
            set_builder.counts["outcomes without a question dropped"] += 1
            continue
        resolution = _resolution(row, question, outcomes, set_builder.counts)
        if resolution is None:
            continue
        if outcome_key(resolution) in settled:
            raise row.problem("resolution_date", f"question {question.id} is resolved twice for {resolution.target_id}")
        settled.add(outcome_key(resolution))
        set_builder.resolutions.append(resolution)
    return set_builder.build(f"{root.name}/{prefix}questions")


def _question(row: Row, dated: list[Row], price: PriceAt, page: str) -> Question:
    """Return a question of the same form as `forecastbench` reads from the published files."""
    kind, source, id, due = _kind(row), row.text("source"), row.text("question_id"), row.text("forecast_due_date")
    text = row.need_text("question")
    last = _last_value(row, due) if kind == "dataset" else None
    # The last value known at the freeze, with its date.
    known = "" if last is None else f"Value known on {last.at.date().isoformat()}: {last.value:g}. {last.meaning}"
    criteria = (stated(row, "resolution_criteria"), stated(row, "market_info_resolution_criteria"))
    return row.reading(
        "question",
        lambda: Question(
            id=f"{source}/{id}",
            source=source,
            kind=kind,
            subtype=row.text("subtype"),
            text=filled(text, due=due),
            due=row.need_datetime("forecast_due_date"),
            targets=dated_targets(sorted(outcome.need_datetime("resolution_date") for outcome in dated), text, due)
            if kind == "dataset"
            else (_market(row, price),),
            criteria=filled(paragraphs(*criteria), due=due),
            background=paragraphs(filled(stated(row, "background"), due=due), known.strip()),
            last_value=last,
            opens_at=row.get_datetime("market_open"),
            closes_at=row.get_datetime("market_close"),
            url=row.text("url"),
            series=None if kind == "market" else series_of(source, id, page, text, last.value if last else None),
        ),
    )


def _market(row: Row, price: PriceAt) -> Target:
    """Return the only target of a market question, with the market price, if any."""
    if price == "freeze" or row.real("price_on_due_date") is None:
        return market_target(row, "freeze_value", row.get_datetime("freeze_date"))
    return market_target(row, "price_on_due_date", row.get_datetime("forecast_due_date"))


def _last_value(row: Row, due: str) -> LastValue | None:
    at, value = row.get_datetime("freeze_date"), row.real("freeze_value")
    if at is None or value is None or row.text("subtype") in WORDS:
        return None
    return LastValue(value=value, at=at, meaning=filled(stated(row, "freeze_value_explanation"), due=due))


def _resolution(row: Row, question: Question, column: OutcomeColumn, counts: Counter[str]) -> Resolution | None:
    outcome = read_outcome(row, column, counts)
    if outcome is None:
        return None
    day = row.need_datetime("resolution_date").date()
    return Resolution(
        question_id=question.id,
        target_id=YES if question.kind == "market" else day.isoformat(),
        due=question.due,
        outcome=outcome,
        resolved_at=instant(day),
        provenance=row.path.name,
    )


def _file(root: Path, stem: str) -> Path:
    files = [root / f"{stem}{suffix}" for suffix in SUFFIXES if (root / f"{stem}{suffix}").is_file()]
    if not files:
        raise InputError(f"contains neither {stem}.parquet nor {stem}.csv", path=root)
    return files[0]


def _rows(path: Path, needed: tuple[str, ...]) -> list[Row]:
    """Return the required columns of a table; a CSV file's cells stay text until a column's type is known."""
    with open_table(path, needed) as (con, table, _):
        records = con.execute(f"select {', '.join(needed)} from {table}").fetchall()
    return [
        Row(path=path, number=number, fields=dict(zip(needed, _plain(record), strict=True)))
        for number, record in enumerate(records, start=1)
    ]


def _plain(record: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace NaN, as which a Parquet file may store missing numbers, with None."""
    return tuple(None if isinstance(value, float) and value != value else value for value in record)


def _asking_key(row: Row) -> TableAskingKey:
    source, id, due = (str(row.need(column)) for column in ("source", "question_id", "forecast_due_date"))
    return source, id, due[:10]


def _kind(row: Row) -> QuestionKind:
    kind = KINDS.get(row.text("source_type"))
    if kind is None:
        raise row.problem("source_type", f"{row.text('source_type')!r} is neither market nor dataset")
    return kind


def _open(request: DatasetRequest) -> Dataset:
    return Dataset.rounds_of(read_question_tables(request.path), request.rounds, path=request.path)


tables = FileFormat(read=_open, recognises=lambda path: path.is_dir())
"""The data set `tables:FOLDER`, and any folder."""
