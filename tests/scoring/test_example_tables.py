"""Long tables as examples: all forecasters over the same targets, and clear errors for missing columns."""

from pathlib import Path

import numpy as np
import pytest

from foretell.questions.errors import InputError
from foretell.scoring.join import answered_rows, choose_forecaster, read_examples, read_rows

FORECASTS = """forecaster,question,target,due,trial,p
A,q1,yes,2025-01-05,10,0.3
A,q1,yes,2025-01-05,2,0.2
A,q2,yes,2025-01-05,2,0.9
B,q1,yes,2025-02-02,0,0.4
"""
OUTCOMES = """question,target,due,outcome,resolved_on,source,price,prior,horizon
q1,yes,2025-01-05,0,2025-01-09,poly,0.25,,4
q1,yes,2025-02-02,1,2025-02-20,poly,,0.4,
q2,yes,2025-01-05,1,2025-01-12,fred,,0.5,7
q3,yes,2025-01-05,,,fred,,0.5,7
"""


def write_tables(tmp_path: Path, forecasts: str = FORECASTS, outcomes: str = OUTCOMES) -> tuple[Path, Path]:
    f, o = tmp_path / "f.csv", tmp_path / "o.csv"
    f.write_text(forecasts)
    o.write_text(outcomes)
    return f, o


def test_forecasters_are_read_over_the_same_resolved_targets(tmp_path: Path):
    examples = read_examples(*write_tables(tmp_path))
    assert list(examples) == ["A", "B"]
    a, b = examples["A"], examples["B"]
    assert a.outcome.tolist() == b.outcome.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(a.rows.trials, [[0.2, np.nan, 0.9], [0.3, np.nan, np.nan]])
    np.testing.assert_array_equal(b.rows.trials, [[np.nan, 0.4, np.nan]])
    assert a.known_on.astype(str).tolist() == ["2025-01-09", "2025-02-20", "2025-01-12"]
    assert a.rows.asking.tolist() == ["q1@2025-01-05", "q1@2025-02-02", "q2@2025-01-05"]


def test_missing_columns_have_defaults(tmp_path: Path):
    rows = read_examples(*write_tables(tmp_path))["A"].rows
    assert rows.source.tolist() == ["poly", "poly", "fred"]
    assert rows.kind.tolist() == ["market", "dataset", "dataset"], "without a column, what has a price is a market"
    assert rows.cluster.tolist() == ["q1", "q1", "q2"], "the same question asked again is one cluster"
    np.testing.assert_array_equal(rows.anchor, [0.25, 0.4, 0.5])
    np.testing.assert_array_equal(rows.horizon, [4, np.nan, 7])
    assert np.isnan(rows.liquidity).all()


def test_trials_come_in_the_order_of_their_numbers(tmp_path: Path):
    """Trial 2 comes before trial 10."""
    assert read_examples(*write_tables(tmp_path))["A"].rows.trials[:, 0].tolist() == [0.2, 0.3]


def test_times_are_reduced_to_their_day(tmp_path: Path):
    f, o = (text.replace("2025-01-05", "2025-01-05T15:00:00Z").replace("2025-02-02", "2025-02-02T00:00:00Z")
            for text in (FORECASTS, OUTCOMES))  # fmt: skip
    rows = read_examples(*write_tables(tmp_path, f, o))["A"].rows
    assert rows.due.astype(str).tolist() == ["2025-01-05", "2025-02-02", "2025-01-05"]


BAD = {
    "no due": ("o", "target,due,outcome", "target,asked,outcome", "column due: column 'due' is missing"),
    "no resolution day": ("o", "resolved_on", "resolved", "column resolved_on: column 'resolved_on' is missing"),
    "an undated outcome": ("o", "0,2025-01-09", "0,", "row 1, column resolved_on: the outcome has no date"),
    "an undated asking": ("o", "q2,yes,2025-01-05", "q2,yes,", "row 3, column due: the value is missing"),
    "a prior beyond one": ("o", "poly,,0.4", "poly,,1.4", "row 2, column prior: 1.4 is outside [0, 1]"),
    "a target given twice": ("o", "q2,yes,2025-01-05", "q1,yes,2025-01-05", "repeats row 1"),
    "a trial given twice": ("f", "2025-01-05,10,", "2025-01-05,2,", "repeats row 1"),
    "p beyond one": ("f", "2,0.9", "2,1.9", "row 3, column p: 1.9 is outside [0, 1]"),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_examples_are_refused(tmp_path: Path, case: str):
    where, before, after, message = BAD[case]
    changed = {"f": FORECASTS, "o": OUTCOMES}
    changed[where] = changed[where].replace(before, after)
    with pytest.raises(InputError) as error:
        read_examples(*write_tables(tmp_path, changed["f"], changed["o"]))
    assert message in str(error.value)
    assert f"{where}.csv" in str(error.value)


def test_missing_date_columns_are_named(tmp_path: Path):
    with pytest.raises(InputError, match="missing") as error:
        read_examples(*write_tables(tmp_path, outcomes=OUTCOMES.replace("resolved_on", "when")))
    assert "add that day" in str(error.value.hint)


def test_forecasts_without_due_dates_must_be_unambiguous(tmp_path: Path):
    plain = "forecaster,question,target,p\nA,q1,yes,0.3\n"
    with pytest.raises(InputError, match="several due dates"):
        read_examples(*write_tables(tmp_path, plain))
    once = OUTCOMES.replace("q1,yes,2025-02-02,1,2025-02-20,poly,,0.4,\n", "")
    assert read_examples(*write_tables(tmp_path, plain, once))["A"].rows.trials[0, 0] == 0.3


def test_unknown_targets_are_left_out_and_counted(tmp_path: Path):
    notes: list[str] = []
    examples = read_examples(*write_tables(tmp_path, FORECASTS.replace("A,q2,yes", "A,q9,yes")), notes=notes)
    assert notes == ["Left out, because the outcomes do not mention the target: 1 forecast."]
    np.testing.assert_array_equal(examples["A"].rows.trials[0], [0.2, np.nan, np.nan])


def test_examples_without_any_outcome_are_refused(tmp_path: Path):
    o = "question,target,due,outcome,resolved_on\nq1,yes,2025-01-05,,\nq1,yes,2025-02-02,,\nq2,yes,2025-01-05,,\n"
    with pytest.raises(InputError, match="no target has an outcome yet"):
        read_examples(*write_tables(tmp_path, outcomes=o))


def test_rows_can_be_read_without_outcomes(tmp_path: Path):
    f, o = write_tables(tmp_path)
    rows = read_rows(f, o)["A"]
    assert rows.question.tolist() == ["q1", "q1", "q2", "q3"], "open targets are there too"
    assert answered_rows(rows).question.tolist() == ["q1", "q2"]


def test_columns_are_read_from_the_forecasts_without_outcomes(tmp_path: Path):
    f = tmp_path / "f.csv"
    f.write_text(FORECASTS.replace(",p\n", ",p,source\n").replace("0.3\n", "0.3,poly\n").replace("0.2\n", "0.2,poly\n")
                 .replace("0.9\n", "0.9,fred\n").replace("0.4\n", "0.4,poly\n"))  # fmt: skip
    rows = read_rows(f)["A"]
    assert rows.source.tolist() == ["poly", "fred", "poly"]
    assert rows.due.astype(str).tolist() == ["2025-01-05", "2025-01-05", "2025-02-02"]
    f.write_text("forecaster,question,target,p\nA,q1,yes,0.3\n")
    with pytest.raises(InputError, match="due"):
        read_rows(f)


def test_choose_forecaster_needs_a_name_if_there_are_several(tmp_path: Path):
    examples = read_examples(*write_tables(tmp_path))
    assert choose_forecaster(examples, "B")[0] == "B"
    with pytest.raises(InputError, match="2 forecasters"):
        choose_forecaster(examples, None)
    with pytest.raises(InputError, match="no forecaster is called"):
        choose_forecaster(examples, "C")
    assert choose_forecaster({"only": examples["A"]}, None)[0] == "only"
