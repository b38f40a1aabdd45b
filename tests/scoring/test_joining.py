"""Every invalid table raises an error that names file, row and column."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import pytest

from foretell.questions.errors import InputError
from foretell.scoring.join import ReadOptions, read_examples, read_table
from foretell.scoring.table_input import table_columns

FORECASTS = "forecaster,question,target,p\nA,q1,yes,0.2\nA,q2,yes,0.9\nB,q1,yes,0.4\n"
OUTCOMES = "question,target,outcome\nq1,yes,0\nq2,yes,1\nq3,yes,\n"


def write_tables(tmp_path: Path, forecasts: str = FORECASTS, outcomes: str = OUTCOMES) -> tuple[Path, Path]:
    f, o = tmp_path / "f.csv", tmp_path / "o.csv"
    f.write_text(forecasts)
    o.write_text(outcomes)
    return f, o


def test_two_valid_tables_are_joined(tmp_path: Path):
    table = read_table(*write_tables(tmp_path))
    assert table.forecasters == ("A", "B")
    assert table.targets.outcome.tolist() == [0, 1]
    assert table.p_of("A").tolist() == [0.2, 0.9]
    np.testing.assert_array_equal(table.p_of("B"), [0.4, np.nan])


def test_the_cost_of_an_answer_is_that_of_its_trials_once_for_all_targets_and_rounds_are_apart(tmp_path: Path):
    """(0.10 + 0.20) dollars in the first round and 0.50 in the second; 1 + 2 and 6 seconds."""
    forecasts = (
        "forecaster,question,target,due,trial,p,dollars,seconds\n"
        "A,q1,x,2026-01-01,0,0.2,0.1,1\nA,q1,y,2026-01-01,0,0.3,0.1,1\n"
        "A,q1,x,2026-01-01,1,0.4,0.2,2\nA,q1,y,2026-01-01,1,0.5,0.2,2\n"
        "A,q1,x,2026-02-01,0,0.6,0.5,6\n"
    )
    outcomes = "question,target,due,outcome\nq1,x,2026-01-01,0\nq1,y,2026-01-01,1\nq1,x,2026-02-01,1\n"
    cost = read_table(*write_tables(tmp_path, forecasts, outcomes)).costs["A"]
    assert (cost.dollars, cost.seconds) == pytest.approx((0.4, 4.5))


def test_few_horizons_are_exact_days_and_many_are_the_usual_ranges(tmp_path: Path):
    few, many = ["7", "30.0", ""], [*map(str, range(1, 11)), "30", "31", "3651", ""]
    for days, groups in (
        (few, ["7", "30", ""]),
        (many, [*["≤7"] * 7, *["8–30"] * 4, "31–90", ">3650", ""]),
    ):
        asked = [f"q{i},yes" for i in range(len(days))]
        forecasts = "".join(f"A,{key},0.2\n" for key in asked)
        outcomes = "".join(f"{key},0,{horizon}\n" for key, horizon in zip(asked, days, strict=True))
        tables = write_tables(
            tmp_path, "forecaster,question,target,p\n" + forecasts, "question,target,outcome,horizon\n" + outcomes
        )
        horizons = read_table(*tables).targets.groups["horizon"]
        assert [horizons.names[code] for code in horizons.codes] == groups


def test_concurrent_reads_do_not_mix_and_changed_files_are_read_again(tmp_path: Path):
    """All reads share one DuckDB database."""
    for n in range(8):
        folder = tmp_path / str(n)
        folder.mkdir()
        write_tables(folder, forecasts=FORECASTS.replace("0.9", f"0.{n}"))
    with ThreadPoolExecutor(4) as threads:
        tables = list(threads.map(lambda n: read_table(*paths_in(tmp_path / str(n))), range(8)))
    assert [table.p_of("A").tolist() for table in tables] == [[0.2, n / 10] for n in range(8)]
    parquet = tmp_path / "f.parquet"
    for n in (3, 4):
        duckdb.read_csv(str(tmp_path / str(n) / "f.csv"), all_varchar=True).write_parquet(str(parquet))
        assert read_table(parquet, tmp_path / "0" / "o.csv").p_of("A").tolist() == [0.2, n / 10]


def paths_in(folder: Path) -> tuple[Path, Path]:
    return folder / "f.csv", folder / "o.csv"


BAD_FORECASTS = {
    "outside": ("A,q1,yes,0.2", "A,q1,yes,1.2", "row 1, column p: 1.2 is outside [0, 1]"),
    "negative": ("A,q2,yes,0.9", "A,q2,yes,-0.1", "row 2, column p"),
    "nan": ("A,q1,yes,0.2", "A,q1,yes,NaN", "row 1, column p: the value is NaN"),
    "empty p": ("A,q1,yes,0.2", "A,q1,yes,", "row 1, column p"),
    "text p": ("A,q1,yes,0.2", "A,q1,yes,maybe", "maybe is not a number"),
    "duplicate": ("B,q1,yes,0.4", "A,q1,yes,0.4", "row 3, column target: repeats row 1"),
    "missing column": ("forecaster,question,target,p", "forecaster,question,target,guess", "column 'p' is missing"),
    "too many values": ("A,q2,yes,0.9", "A,q2,yes,0.9,7", "row 2: the row has 5 values and the header 4"),
    "no name": ("B,q1,yes,0.4", ",q1,yes,0.4", "row 3, column forecaster"),
}


@pytest.mark.parametrize("case", BAD_FORECASTS)
def test_invalid_forecasts_name_file_row_and_column(tmp_path: Path, case: str):
    before, after, message = BAD_FORECASTS[case]
    with pytest.raises(InputError) as error:
        read_table(*write_tables(tmp_path, forecasts=FORECASTS.replace(before, after)))
    assert message in str(error.value)
    assert "f.csv" in str(error.value)
    assert "\n" not in str(error.value)


BAD_OUTCOMES = {
    "beyond": ("q1,yes,0", "q1,yes,1.5", "row 1, column outcome: 1.5 is not an outcome"),
    "word": ("q2,yes,1", "q2,yes,won", "row 2, column outcome"),
    "percent": ("q2,yes,1", "q2,yes,37", "row 2, column outcome"),
    "duplicate": ("q3,yes,", "q1,yes,1", "row 3, column target: repeats row 1"),
    "missing column": ("question,target,outcome", "question,target,end", "column 'outcome' is missing"),
}


@pytest.mark.parametrize("case", BAD_OUTCOMES)
def test_invalid_outcomes_name_file_row_and_column(tmp_path: Path, case: str):
    before, after, message = BAD_OUTCOMES[case]
    with pytest.raises(InputError) as error:
        read_table(*write_tables(tmp_path, outcomes=OUTCOMES.replace(before, after)))
    assert message in str(error.value)
    assert "o.csv" in str(error.value)


BAD_DATES = {
    "one zone and none": (
        ["2025-10-26T12:00:00+02:00", "2025-10-26T12:00:00"],
        "row 2, column resolved_on: 2025-10-26T12:00:00 is in another time zone",
    ),
    "other zone": (["2025-10-26T12:00:00Z", "2025-10-26T12:00:00+02:00"], "row 2, column resolved_on"),
    "day and moment": (["2025-10-26", "2025-10-26T12:00:00Z"], "row 2, column resolved_on"),
    "no date": (["2025-10-26", "26 October"], "row 2, column resolved_on: 26 October is not a date"),
    "no such day": (["2025-02-30", "2025-10-26"], "row 1, column resolved_on"),
}


@pytest.mark.parametrize("case", BAD_DATES)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_invalid_dates_name_their_row(tmp_path: Path, case: str, ending: str):
    days, message = BAD_DATES[case]
    rows = [{"question": f"q{i}", "target": "yes", "outcome": i % 2, "resolved_on": d} for i, d in enumerate(days, 1)]
    o = tmp_path / f"dated.{ending}"
    if ending == "csv":
        o.write_text(
            "question,target,outcome,resolved_on\n" + "".join(",".join(map(str, r.values())) + "\n" for r in rows)
        )
    else:
        o.write_text("".join(json.dumps(r) + "\n" for r in rows))
    f, _ = write_tables(tmp_path)
    with pytest.raises(InputError) as error:
        read_table(f, o)
    assert message in str(error.value)


def test_an_unknown_day_may_be_empty(tmp_path: Path):
    outcomes = "question,target,outcome,resolved_on,price\nq1,yes,0,,\nq2,yes,1,2025-01-02,0.4\n"
    table = read_table(*write_tables(tmp_path, outcomes=outcomes))
    assert table.targets.groups["resolved_on"].names == ("", "2025-01-02")
    np.testing.assert_array_equal(table.targets.price, [np.nan, 0.4])


@pytest.mark.parametrize("content", ["", "forecaster,question,target,p\n"])
def test_empty_files_are_refused(tmp_path: Path, content: str):
    with pytest.raises(InputError, match=r"empty|no rows"):
        read_table(*write_tables(tmp_path, forecasts=content))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"forecaster": "A", "question": "q2", "target": "yes", "p": }', "is not JSON: Expecting value"),
        ('{"forecaster": "A", "question": "q2"', "is not JSON: Expecting ',' delimiter"),
        ("[1, 2]", r"expected an object with fields, found '\[1, 2\]'"),
    ],
)
def test_a_broken_line_of_jsonl_is_named(tmp_path: Path, line: str, problem: str):
    good = [json.dumps({"forecaster": "A", "question": f"q{n}", "target": "yes", "p": 0.5}) for n in range(40_000)]
    path = tmp_path / "f.jsonl"
    path.write_text("\n".join([*good[:31_999], line, *good[32_000:]]))
    with pytest.raises(InputError, match=rf"f.jsonl, row 32000: {problem}"):
        read_table(path, write_tables(tmp_path)[1])


def test_missing_files_and_unknown_suffixes_are_refused(tmp_path: Path):
    f, o = write_tables(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "nothing.csv", o)
    f.rename(tmp_path / "f.xlsx")
    with pytest.raises(InputError, match="cannot read"):
        read_table(tmp_path / "f.xlsx", o)


def test_scoring_nothing_raises(tmp_path: Path):
    with pytest.raises(InputError, match="no forecast belongs to"):
        read_table(*write_tables(tmp_path, forecasts="forecaster,question,target,p\nA,q3,yes,0.5\n"))


def test_unresolved_targets_are_counted_and_not_scored(tmp_path: Path):
    table = read_table(*write_tables(tmp_path, forecasts=FORECASTS + "B,q3,yes,0.5\n"))
    assert len(table.p) == 3
    assert any("has not resolved: 1 forecast." in note for note in table.notes)


def test_examples_are_read_with_the_same_notes_as_scores(tmp_path: Path):
    f, o = write_tables(tmp_path, forecasts="model,id,prob\nA,q1,20%\nA,q2,90%\nA,q3,50%\nA,q9,10%\n")
    notes: list[str] = []
    read_examples(f, o, dated=False, notes=notes)
    assert notes == list(read_table(f, o).notes)
    assert len(notes) == 3


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_json_lines_may_begin_with_a_byte_order_mark(tmp_path: Path, ending: str):
    rows = [{"forecaster": "A", "question": f"q{i}", "p": 0.2, "outcome": i % 2} for i in range(3)]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode("utf-8-sig")
    path = tmp_path / f"f{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert len(read_table(path).p) == 3
    assert table_columns(path) == {"forecaster", "question", "p", "outcome"}


def test_due_separates_rounds_and_is_required_if_ambiguous(tmp_path: Path):
    outcomes = "question,target,due,outcome\nq1,yes,2025-10-26,0\nq1,yes,2025-11-09,1\n"
    forecasts = "forecaster,question,target,due,p\nA,q1,yes,2025-11-09T00:00:00Z,0.7\n"
    table = read_table(*write_tables(tmp_path, forecasts, outcomes))
    np.testing.assert_array_equal(table.p_of("A"), [np.nan, 0.7])
    with pytest.raises(InputError, match="add a due column"):
        read_table(*write_tables(tmp_path, "forecaster,question,target,p\nA,q1,yes,0.7\n", outcomes))


def test_trials_are_pooled_as_the_option_says(tmp_path: Path):
    forecasts = "forecaster,question,target,trial,p\nA,q1,yes,1,0.1\nA,q1,yes,2,0.5\n"
    files = write_tables(tmp_path, forecasts)
    assert read_table(*files).p.tolist() == [0.3]
    assert read_table(*files, ReadOptions(trials="logit-mean")).p.tolist() == pytest.approx([0.25])
    assert read_table(*files, ReadOptions(trials="separate")).forecasters == ("A · trial 1", "A · trial 2")


def test_same_table_from_csv_parquet_jsonl_frames_and_records(tmp_path: Path):
    pandas = pytest.importorskip("pandas")
    f, o = write_tables(tmp_path)
    frame, outcomes = pandas.read_csv(f), pandas.read_csv(o)
    duckdb.sql("copy frame to '" + str(tmp_path / "f.parquet") + "'")
    frame.to_json(tmp_path / "f.jsonl", orient="records", lines=True)
    expected = read_table(f, o).p.tolist()
    for source in (tmp_path / "f.parquet", tmp_path / "f.jsonl", frame, frame.to_dict("records")):
        assert read_table(source, outcomes).p.tolist() == expected


def test_question_weights_count_each_question_once(tmp_path: Path):
    outcomes = "question,target,outcome\nq1,a,0\nq1,b,1\nq2,yes,1\n"
    forecasts = "forecaster,question,target,p\nA,q1,a,0.5\nA,q1,b,0.5\nA,q2,yes,0.5\n"
    table = read_table(*write_tables(tmp_path, forecasts, outcomes), ReadOptions(weights="question"))
    assert table.targets.weight.tolist() == [0.5, 0.5, 1.0]


def test_rules_refuse_to_learn_from_shares_and_name_the_rows():
    rows = [
        {"forecaster": "a", "question": f"q{i}", "p": 0.4, "outcome": outcome}
        | {"due": "2026-01-01", "resolved_on": "2026-02-01"}
        for i, outcome in enumerate((0, 0.37, 1, 0.5))
    ]
    with pytest.raises(InputError, match=r"row 2, column outcome: 0.37 is a share of a yes, and 1 more row: 4"):
        read_examples(rows)
    assert read_table(rows).targets.outcome.tolist() == [0, 0.37, 1, 0.5]
