"""Thresholds by hand and as a section, and facts about forecasters from tables of forecasts."""

import numpy as np
import pytest
from tests.studies.made_trials import made
from tests.studies.trees.test_runs import QUICK, table

from foretell.operations.studies import study as run_study
from foretell.questions.errors import InputError
from foretell.report.study import cell_number as num
from foretell.scoring.forecaster_facts import read_forecaster_facts
from foretell.scoring.table import ForecastCost
from foretell.scoring.verdict import Verdict
from foretell.studies.inputs import StudyData


def test_a_shifted_forecaster_is_helped_by_a_threshold_and_a_sound_one_is_not():
    tables = {"sound": made(size=120), "shifted": made(size=120, shift=1.5, method_seed=2)}
    study = run_study("calibration", StudyData(tables=tables, resampling=QUICK), section="threshold")
    values = {entry.name: entry.values for entry in study.tables[0].rows}
    gains = {name: gain for name, (_, _, _, gain, _, _) in values.items() if isinstance(gain, Verdict)}
    assert gains["shifted"].diff > 3
    assert abs(gains["sound"].diff) < 3
    chosen, at_half, held_out, _, in_sample, n = map(num, values["shifted"])
    assert chosen > 0.6
    assert held_out <= in_sample
    assert in_sample >= at_half
    assert n == len(tables["sound"].outcome)


def test_threshold_matches_hand_computation():
    """At 0.5 all four are called True, half of them wrongly; anywhere between 0.6 and 0.8 all are right."""
    data = table(np.array([[0.8, 0.9, 0.55, 0.6]]), [1.0, 1.0, 0.0, 0.0])
    study = run_study("calibration", StudyData(tables={"x": data}, resampling=QUICK), section="threshold")
    chosen, at_half, _, _, in_sample, n = map(num, study.tables[0].rows[0].values)
    assert (at_half, in_sample, n) == (50.0, 100.0, 4)
    assert 0.6 <= chosen < 0.8
    same = table(np.array([[0.8, 0.9]]), [1.0, 1.0])
    with pytest.raises(InputError, match="all outcomes are the same"):
        run_study("calibration", StudyData(tables={"x": same}, resampling=QUICK), section="threshold")


def rows(forecaster: str, **facts: object) -> list[dict[str, object]]:
    return [{"forecaster": forecaster, "question": question, "p": 0.4, **facts} for question in ("q1", "q2")]


def test_costs_are_columns_of_the_forecasts():
    forecaster_facts = read_forecaster_facts(
        [*rows("a", dollars="0.5", seconds=3), *rows("b", dollars=None, seconds=1)]
    )
    assert forecaster_facts.costs == {"a": ForecastCost(dollars=0.5, seconds=3)}
    with pytest.raises(InputError, match="not an amount of money"):
        read_forecaster_facts(rows("a", dollars=-1))


def test_factors_are_columns_that_describe_a_forecaster():
    table = [*rows("a", rule="linear", size=5), *rows("b", rule="", size=5), *rows("c", rule="average", size=9)]
    varying = [{**row, "note": f"{row['question']}"} for row in table]
    assert read_forecaster_facts(varying).factors == {
        "a": {"rule": "linear", "size": "5"},
        "b": {"size": "5"},
        "c": {"rule": "average", "size": "9"},
    }


def test_a_column_that_only_names_the_forecaster_is_no_factor():
    table = [*rows("a", rule="x", id="1"), *rows("b", rule="x", id="2"), *rows("c", rule="y", id="3")]
    assert read_forecaster_facts(table).factors == {"a": {"rule": "x"}, "b": {"rule": "x"}, "c": {"rule": "y"}}
