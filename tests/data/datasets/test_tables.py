import csv
from pathlib import Path

import duckdb
import pytest

from fakes.forecastbench_rounds import read_rounds
from foretell.data.datasets.forecastbench_tables import QUESTION_COLUMNS, read_question_tables
from foretell.data.datasets.question_set import asked_key
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError

MARKET = {
    "forecast_due_date": "2025-10-26",
    "source": "manifold",
    "question_id": "m1",
    "question": "Will it happen by 2026? ",
    "resolution_criteria": "As on {forecast_due_date}.",
    "market_info_resolution_criteria": "N/A",
    "market_close": "2026-01-01T00:00:00+00:00",
    "source_type": "market",
    "subtype": "market",
    "freeze_value": "0.3",
    "freeze_date": "2025-10-16",
    "price_on_due_date": "0.4",
}
RATE = {
    "forecast_due_date": "2025-10-26",
    "source": "fred",
    "question_id": "DAAA",
    "question": "Up by {resolution_date} since {forecast_due_date}?\n\nSmall print.",
    "background": "Bonds.",
    "url": "https://fred.stlouisfed.org/series/DAAA",
    "source_type": "dataset",
    "subtype": "all",
    "freeze_value": "5.13",
    "freeze_value_explanation": "The yield.",
    "freeze_date": "2025-10-16",
}
ANSWERS = [
    {"source": "manifold", "question_id": "m1", "resolution_date": "2025-12-01", "outcome": "1", "resolved": "true"},
    {"source": "fred", "question_id": "DAAA", "resolution_date": "2025-11-25", "outcome": "0", "resolved": "true"},
    {"source": "fred", "question_id": "DAAA", "resolution_date": "2025-11-02", "outcome": "1", "resolved": "true"},
    {"source": "fred", "question_id": "DAAA", "resolution_date": "2026-04-24", "outcome": "0.5", "resolved": "false"},
]


def write(path: Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def folder(root: Path, questions: list[dict], answers: list[dict] = ANSWERS) -> Path:
    write(root / "questions.csv", QUESTION_COLUMNS, questions)
    columns = ("forecast_due_date", "source", "question_id", "resolution_date", "outcome", "resolved", "paper_outcome")
    write(root / "resolutions.csv", columns, [{"forecast_due_date": "2025-10-26", **row} for row in answers])
    return root


def test_a_market_question_has_the_price_of_its_due_date(tmp_path: Path) -> None:
    question_set = read_question_tables(folder(tmp_path, [MARKET, RATE]))
    market = question_set.questions[0]
    assert (market.id, market.kind, market.text) == ("manifold/m1", "market", "Will it happen by 2026?")
    assert market.criteria == "As on 2025-10-26."
    assert market.closes_at == instant("2026-01-01")
    (target,) = market.targets
    assert target.id == "yes"
    assert target.snapshot is not None
    assert (target.snapshot.price, target.snapshot.at) == (0.4, instant("2025-10-26"))
    assert question_set.outcomes()["manifold/m1", market.due, "yes"] == 1


@pytest.mark.parametrize("change", [{"price_on_due_date": ""}, {}])
def test_the_freeze_price_is_used_as_a_fallback_or_on_request(tmp_path: Path, change: dict) -> None:
    price = "due" if change else "freeze"
    question_set = read_question_tables(folder(tmp_path, [{**MARKET, **change}]), price=price)
    snapshot = question_set.questions[0].targets[0].snapshot
    assert snapshot is not None
    assert (snapshot.price, snapshot.at) == (0.3, instant("2025-10-16"))


def test_a_dataset_question_asks_about_every_date_of_the_table(tmp_path: Path) -> None:
    question_set = read_question_tables(folder(tmp_path, [RATE]))
    (question,) = question_set.questions
    assert [t.id for t in question.targets] == ["2025-11-02", "2025-11-25", "2026-04-24"]
    assert question.targets[0].label == "Up by 2025-11-02 since 2025-10-26?"
    assert question.last_value is not None
    assert (question.last_value.value, question.last_value.meaning) == (5.13, "The yield.")
    assert question.background == "Bonds.\n\nValue known on 2025-10-16: 5.13. The yield."
    assert question.series is not None
    assert question.series.id == "DAAA"


def test_an_unresolved_row_gives_no_outcome(tmp_path: Path) -> None:
    question_set = read_question_tables(folder(tmp_path, [RATE]))
    assert {r.target_id: r.outcome for r in question_set.resolutions} == {"2025-11-25": 0, "2025-11-02": 1}
    assert question_set.resolutions[0].resolved_at == instant("2025-11-25")
    assert "1 rows not resolved yet: they have a market price, not an outcome" in question_set.notes
    assert "1 outcomes without a question dropped" in question_set.notes


def test_the_outcomes_of_the_paper_are_read_on_request(tmp_path: Path) -> None:
    answers = [{**ANSWERS[1], "paper_outcome": "1"}, ANSWERS[2]]
    question_set = read_question_tables(folder(tmp_path, [RATE], answers), outcomes="paper_outcome")
    assert {r.target_id: r.outcome for r in question_set.resolutions} == {"2025-11-25": 1}


def test_a_dataset_question_without_dates_is_left_out_and_counted(tmp_path: Path) -> None:
    question_set = read_question_tables(folder(tmp_path, [RATE, {**RATE, "question_id": "DBAA"}]))
    assert len(question_set.questions) == 1
    assert "1 data-set questions without a resolution date left out" in question_set.notes


def test_a_number_that_replaces_a_word_is_not_a_value(tmp_path: Path) -> None:
    swimmer = {**RATE, "subtype": "swimming", "freeze_value": "100.0"}
    assert read_question_tables(folder(tmp_path, [swimmer])).questions[0].last_value is None


def test_the_page_address_of_any_round_names_the_series(tmp_path: Path) -> None:
    station = {"source": "dbnomics", "question_id": "meteofrance_TEMPERATURE_celsius.07607.D", "source_type": "dataset"}
    pages = [station["question_id"], "meteofrance/TEMPERATURE/celsius.07607.D"]
    rows = [
        {**RATE, **station, "forecast_due_date": due, "url": f"https://db.nomics.world/{page}"}
        for due, page in zip(("2025-10-26", "2025-11-09"), pages, strict=True)
    ]
    answers = [{**ANSWERS[1], **station, "forecast_due_date": row["forecast_due_date"]} for row in rows]
    for answer in answers:
        del answer["source_type"]
    question_set = read_question_tables(folder(tmp_path, rows, answers))
    assert {q.series.id for q in question_set.questions if q.series} == {pages[1]}


@pytest.mark.parametrize(
    ("change", "column", "problem"),
    [
        ({"source_type": "poll"}, "source_type", "'poll' is neither market nor dataset"),
        ({"freeze_value": "many"}, "freeze_value", "'many' is not a number"),
        ({"freeze_date": "soon"}, "freeze_date", "soon"),
        ({"question": ""}, "question", "is missing"),
        ({"question_id": ""}, "question_id", "is missing"),
    ],
)
def test_a_bad_cell_is_named_by_file_row_and_column(tmp_path: Path, change: dict, column: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        read_question_tables(folder(tmp_path, [MARKET, {**RATE, **change}]))
    assert (error.value.path, error.value.row, error.value.column) == (tmp_path / "questions.csv", 2, column)


def test_a_price_outside_the_unit_interval_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"column price_on_due_date: last_price is 40\.0; expected a number from 0 to 1"
    ):
        read_question_tables(folder(tmp_path, [{**MARKET, "price_on_due_date": "40"}]))


def test_a_missing_column_and_a_missing_file_are_named(tmp_path: Path) -> None:
    folder(tmp_path, [MARKET])
    write(tmp_path / "questions.csv", QUESTION_COLUMNS[:-1], [])
    with pytest.raises(InputError, match=r"questions.csv, column price_on_due_date: is missing"):
        read_question_tables(tmp_path)
    with pytest.raises(InputError, match=r"contains neither ab_resolutions.parquet nor ab_resolutions.csv"):
        read_question_tables(tmp_path, "ab_")


def test_asking_or_resolving_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 2, column question_id: is also asked on the same day in row 1"):
        read_question_tables(folder(tmp_path, [MARKET, MARKET]))
    again = {**ANSWERS[0], "resolution_date": "2025-12-02"}
    with pytest.raises(InputError, match="manifold/m1 is resolved twice for yes"):
        read_question_tables(folder(tmp_path, [MARKET], [ANSWERS[0], again]))


def test_parquet_reads_as_csv_does(tmp_path: Path) -> None:
    plain = read_question_tables(folder(tmp_path, [MARKET, RATE]))
    for name in ("questions", "resolutions"):
        source, target = tmp_path / f"{name}.csv", tmp_path / f"{name}.parquet"
        duckdb.connect().execute(f"copy (select * from '{source}') to '{target}' (format parquet)")
        source.unlink()
    packed = read_question_tables(tmp_path)
    assert packed.questions == plain.questions
    assert packed.outcomes() == plain.outcomes()


@pytest.mark.shared_data
def test_tables_and_published_files_ask_the_same(shared_data: Path) -> None:
    tables = {asked_key(q): q for q in read_question_tables(shared_data / "tables", price="freeze").questions}
    files = read_rounds(shared_data / "forecastbench")
    shared = [(q, tables[asked_key(q)]) for q in files.questions if asked_key(q) in tables]
    assert len(shared) > 3000
    for file, table in shared:
        for name in ("kind", "subtype", "text", "criteria", "series", "closes_at", "last_value", "cluster"):
            assert getattr(table, name) == getattr(file, name), (name, file.id)
        if file.kind == "market":
            assert table.targets == file.targets
        else:
            assert set(table.targets) <= set(file.targets)


@pytest.mark.shared_data
def test_the_samples_of_the_paper_are_complete(shared_data: Path) -> None:
    question_set = read_question_tables(shared_data / "tables", "ab_", outcomes="paper_outcome")
    assert (len(question_set.questions), len(question_set.resolutions), question_set.notes) == (400, 791, ())
