"""BTF, FutureX, KalshiBench, OpenForesight and TimeSeek, from small files in the layouts of their publishers."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from fakes.published_sets import PUBLISHED_ROWS as ROW
from fakes.published_sets import btf_row, futurex_row, kalshibench_row, numeric_row
from foretell.cli.main import cli
from foretell.data.datasets.futurex import options_of
from foretell.data.datasets.published import moment, passages
from foretell.data.datasets.question_set import MOST_SOURCES, QuestionSet
from foretell.data.datasets.rows import Row
from foretell.forecasters.prompt.prediction_context import stored_context
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.thresholds import thresholds_of
from foretell.runs.question_sets import open_benchmark
from foretell.runs.set_names import find_set

Rows = list[dict[str, Any]]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Rows], Path]:
    """Write rows as JSONL, JSON, CSV or Parquet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))

    def write(name: str, rows: Rows) -> Path:
        path = tmp_path / name
        lines = tmp_path / f"{path.stem}_source.json"
        text = json.dumps(rows)
        if path.suffix in (".parquet", ".csv"):
            lines.write_text(text)
            kind = "parquet" if path.suffix == ".parquet" else "csv, header"
            duckdb.sql(f"copy (select * from read_json('{lines}')) to '{path}' (format {kind})")
            lines.unlink()
        else:
            path.write_text(text if path.suffix == ".json" else "".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def rows_of(name: str, count: int = 10) -> Rows:
    return [ROW[name](place) for place in range(count)]


def opened(path: Path, name: str = "") -> QuestionSet:
    return open_benchmark(f"{name}:{path}" if name else str(path)).questions


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "json", "csv"])
@pytest.mark.parametrize("name", ["btf", "futurex", "kalshibench", "openforesight"])
def test_a_published_file_is_recognised_by_its_columns_in_any_kind_of_table(file, name: str, ending: str) -> None:
    path = file(f"mine.{ending}", rows_of(name))
    assert find_set(str(path)).name == name
    questions = opened(path).questions
    assert len(questions) == 10
    assert {question.source for question in questions} == {name}


@pytest.mark.parametrize("name", ROW)
def test_data_show_and_a_backtest_take_the_file(file, name: str) -> None:
    path = file("mine.jsonl", rows_of(name))
    word = f"timeseek:{path}" if name == "timeseek" else str(path)
    shown = CliRunner().invoke(cli, ["data", "show", word], env={"COLUMNS": "200"})
    assert (shown.exit_code, "10 questions" in shown.output) == (0, True), shown.output
    tested = CliRunner().invoke(cli, ["backtest", word, "-F", "constant", "--out", "p.csv"])
    assert (tested.exit_code, "10 forecasts on 10 questions" in tested.output) == (0, True), tested.output
    assert CliRunner().invoke(cli, ["data", "show", word, "--out", "folder"]).exit_code == 0
    written, read = opened(path, name), opened(Path("folder"))
    assert len(read.questions) == 10
    assert read.references == written.references
    assert read.outcomes() == written.outcomes()


BROKEN: Mapping[str, tuple[Mapping[int, dict[str, Any]], tuple[str, ...]]] = {
    "btf": (
        {1: {"present_date": "soon"}, 3: {"resolution": 0.4}, 5: {"question": " "}, 6: {"question": ""}},
        (
            "row 2, column present_date: 'soon'",
            "row 4, column resolution: 0.4",
            "row 6, column question: is missing, and",
        ),
    ),
    "futurex": (
        {0: {"level": 7}, 2: {"ground_truth": "['Z']"}, 4: {"end_time": None}, 7: {"ground_truth": "['A"}},
        (
            "row 1, column level: 7",
            "row 3, column ground_truth: 'Z'",
            "row 5, column end_time",
            "row 8, column ground_",
        ),
    ),
    "kalshibench": (
        {2: {"ground_truth": "maybe"}, 4: {"close_time": "2025-13-01T00:00:00Z"}, 9: kalshibench_row(8)},
        ("row 3, column ground_truth: 'maybe'", "row 5, column close_time", "row 10: question 'kalshibench/KXT4-"),
    ),
    "openforesight": (
        {1: {"answer": None}, 2: {"resolution_date": "20 March"}, 5: {"question_title": ["a"]}},
        ("row 2, column answer: is missing", "row 3, column resolution_date", "row 6, column question_title: expected"),
    ),
    "timeseek": (
        {1: {"checkpoint_time": "2026-01-10T00:00:00Z"}, 3: {"market_price": "x"}, 5: {"result": "half"}},
        (
            "row 2, column checkpoint_time: 2026-01-10 is after",
            "row 4, column market_price: 'x'",
            "row 6, column result",
        ),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_all_broken_rows_are_named_together(file, name: str) -> None:
    changes, messages = BROKEN[name]
    rows = [{**row, **changes.get(place, {})} for place, row in enumerate(rows_of(name))]
    path = file("mine.jsonl", rows)
    shown = CliRunner().invoke(cli, ["data", "show", f"{name}:{path}"])
    assert isinstance(shown.exception, InputError)
    for message in (*messages, "mine.jsonl"):
        assert message in str(shown.exception)


def test_what_was_written_after_the_resolution_never_gets_into_a_question(file) -> None:
    for name in ("btf", "kalshibench"):
        question_set = opened(file(f"{name}.jsonl", rows_of(name)))
        material = repr((question_set.questions, question_set.contexts))
        assert "SECRET" not in material
        assert "0.99" not in material
    assert all(target.snapshot is None for question in question_set.questions for target in question.targets)


def test_btf_is_asked_as_of_its_present_date_with_its_research_as_context(file) -> None:
    question_set = opened(file("mine.parquet", rows_of("btf")))
    question = question_set.questions[1]
    assert question.due == instant("2025-10-14T08:14:35.140819Z")
    assert not question.as_of.admits(instant("2025-10-14T09:00:00Z"))
    context = stored_context(question, next(iter(question_set.contexts.values())))
    assert "40 of 90 seats" in context.sources[0].summary
    assert list(question_set.outcomes().values()) == [1, 0, 0, 1, 0, 0, 1, 0, 0, 1]


def test_a_passage_of_the_research_from_after_the_date_is_not_shown(file) -> None:
    late = "The bill passed on 4 December 2025, with 50 votes. " * 20
    early = "The party has 40 of 90 seats. " * 20
    row = btf_row(0) | {"research_summary": f"{early}\n\n{late}"}
    question_set = opened(file("mine.jsonl", [row]))
    (question,) = question_set.questions
    shown = stored_context(question, next(iter(question_set.contexts.values()))).sources
    assert [source.summary for source in shown] == [early.strip()]


def test_a_number_of_btf_3_is_asked_at_its_cutpoints(file) -> None:
    question_set = opened(file("mine.parquet", [numeric_row(0), numeric_row(1) | {"resolution": 5.0}]))
    first, second = question_set.questions
    assert list(thresholds_of(first) or ()) == ["<4.0", "<4.5", "<5.0", "<5.5", "<6.0"]
    outcomes = question_set.outcomes()
    assert [outcomes.get((first.id, first.due, target.id)) for target in first.targets] == [0, 0, 0, 1, 1]
    assert [outcomes.get((second.id, second.due, target.id)) for target in second.targets] == [0, 0, None, 1, 1]
    assert question_set.notes[0].startswith("1 thresholds without an outcome")
    assert "Unit: percent" in first.criteria


def test_kalshibench_is_asked_the_day_before_the_close_without_the_last_price(file) -> None:
    question_set = opened(file("mine.jsonl", rows_of("kalshibench")))
    first, second = question_set.questions[:2]
    assert first.due == instant("2025-11-09")
    assert first.closes_at is None
    assert first.cluster == second.cluster == "kalshibench/KXT0"
    assert first.id != second.id


def test_timeseek_asks_a_market_at_every_checkpoint_with_the_price_of_then(file) -> None:
    question_set = opened(file("mine.csv", rows_of("timeseek")), "timeseek")
    assert len({question.id for question in question_set.questions}) == 2
    question = question_set.questions[6]
    snapshot = question.targets[0].snapshot
    assert snapshot is not None
    assert (snapshot.at, snapshot.price) == (question.due, pytest.approx(0.46))


def test_a_table_without_a_usual_name_says_which_names_are_usual(file) -> None:
    rows = [{"title": "Will it?", "when": "2026-01-01", "result": "yes"}]
    with pytest.raises(InputError, match=r"column due: is missing \(usual names are due, forecast_date"):
        opened(file("mine.jsonl", rows), "timeseek")


def test_openforesight_is_asked_from_its_start_and_its_articles_are_a_context(file) -> None:
    question_set = opened(file("mine.jsonl", rows_of("openforesight")))
    binary, free = question_set.questions[:2]
    assert [target.id for target in binary.targets] == ["yes"]
    assert [target.id for target in free.targets] == ["right"]
    assert free.due == instant("2026-03-01")
    assert "Ada" not in repr(question_set.questions) + repr(question_set.contexts)
    assert question_set.references[1].answers == ("Ada Lovelace",)
    (context,) = question_set.contexts[(free.id, free.due)]
    assert getattr(context, "summary", "") == "A shortlist of two was named."


def test_futurex_options_have_outcomes_and_other_questions_a_reference(file) -> None:
    question_set = opened(file("mine.jsonl", rows_of("futurex")))
    single, several, number = (question_set.questions[place] for place in (0, 3, 6))
    outcomes = question_set.outcomes()
    assert (single.text, single.exclusivity) == ("Who wins match 0", "exactly one")
    assert [(target.id, target.label) for target in single.targets] == [("A", "Alpha"), ("B", "Beta"), ("C", "Gamma")]
    assert [outcomes[(single.id, single.due, target)] for target in "ABC"] == [0, 1, 0]
    assert several.exclusivity == "independent"
    assert [outcomes[(several.id, several.due, target)] for target in "ABC"] == [1, 0, 1]
    assert (number.subtype, number.text) == ("free-form", "How many cases in week 6?")
    assert not [key for key in outcomes if key[0] == number.id]
    reference = next(reference for reference in question_set.references if reference.question_id == number.id)
    assert (reference.answers, reference.spread, reference.level) == (("1,250",), 40.0, 4)
    assert single.due == instant("2026-03-08"), "10 March begins on 9 March in UTC; asked the day before"


def test_an_open_row_of_futurex_is_asked_now(file) -> None:
    row = {key: value for key, value in futurex_row(0).items() if key not in ("ground_truth", "std")}
    path = file("mine.jsonl", [row | {"end_time": "2999-01-01T00:00:00+08:00"}])
    now = instant("2026-10-01T12:00:00Z")
    (question,) = open_benchmark(str(path), live=True, now=now).questions.questions
    assert question.due == now


@pytest.mark.parametrize(
    ("end", "options"),
    [
        (r"\boxed{Yes} or \boxed{No}", ["Yes", "No"]),
        (r"\boxed{Celtic} or \boxed{Rangers}", ["Celtic", "Rangers"]),
        (r"\boxed{A} for a single option or \boxed{B, C, D} for several", []),
        (r"\boxed{YOUR_PREDICTION}", []),
    ],
)
def test_boxed_alternatives_are_options_and_examples_of_the_format_are_not(end: str, options: list[str]) -> None:
    assert list(options_of(f"What happens?\nIMPORTANT: end with {end}")) == options


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-05-03 08:14:35", "2026-05-03T08:14:35Z"),
        ("2026-05-03T08:14:35+02:00", "2026-05-03T06:14:35Z"),
        ("2026-05-03", "2026-05-03"),
        (1_777_777_777, "2026-05-03T03:09:37Z"),
        (1_777_777_777_000, "2026-05-03T03:09:37Z"),
        ("1777777777", "2026-05-03T03:09:37Z"),
        (None, None),
    ],
)
def test_times_are_read_as_publishers_write_them(value: Any, expected: str | None) -> None:
    row = Row(path=Path("x.jsonl"), number=1, fields={"at": value})
    assert moment(row, "at") == (expected and instant(expected))


def test_a_text_too_long_for_a_context_is_cut_at_its_end_and_counted(file) -> None:
    text = "\n\n".join(f"Paragraph {n} " + "says little. " * 60 for n in range(MOST_SOURCES + 3))
    assert all(len(part.summary) <= 900 for part in passages("T", text))
    question_set = opened(file("mine.jsonl", [btf_row(0) | {"research_summary": text}]))
    assert [len(context) for context in question_set.contexts.values()] == [MOST_SOURCES]
    assert question_set.notes == ("1 contexts too long to be shown whole",)
