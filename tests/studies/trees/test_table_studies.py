"""Thresholds, McNemar and consensus, and cost: by hand on small tables, and as whole studies."""

import numpy as np
import pytest
from tests.studies.made_trials import made
from tests.studies.trees.test_runs import QUICK, table

from foretell.operations import study as run_study
from foretell.questions import InputError
from foretell.report import cell_number as num
from foretell.scoring import Verdict
from foretell.studies import ForecastCost, StudyData, read_cost_table, run_accuracy


def test_a_shifted_forecaster_is_helped_by_a_threshold_and_a_sound_one_is_not():
    tables = {"sound": made(size=120), "shifted": made(size=120, shift=1.5, method_seed=2)}
    found = run_study("threshold", StudyData(tables=tables, resampling=QUICK))
    values = {entry.name: entry.values for entry in found.tables[0].rows}
    gains = {name: gain for name, (_, _, _, gain, _, _) in values.items() if isinstance(gain, Verdict)}
    assert gains["shifted"].diff > 3
    assert abs(gains["sound"].diff) < 3
    chosen, at_half, held_out, _, in_sample, n = map(num, values["shifted"])
    assert chosen > 0.6
    assert held_out <= in_sample
    assert in_sample >= at_half
    assert n == len(tables["sound"].outcome)


def test_a_threshold_by_hand():
    """At 0.5 all four are called True, half of them wrongly; anywhere between 0.6 and 0.8 all are right."""
    data = table(np.array([[0.8, 0.9, 0.55, 0.6]]), [1.0, 1.0, 0.0, 0.0])
    found = run_study("threshold", StudyData(tables={"x": data}, resampling=QUICK))
    chosen, at_half, _, _, in_sample, n = map(num, found.tables[0].rows[0].values)
    assert (at_half, in_sample, n) == (50.0, 100.0, 4)
    assert 0.6 <= chosen < 0.8
    same = table(np.array([[0.8, 0.9]]), [1.0, 1.0])
    with pytest.raises(InputError, match="all outcomes are the same"):
        run_study("threshold", StudyData(tables={"x": same}, resampling=QUICK))


def test_mcnemar_and_agreement_by_hand():
    """10 targets, all true: a is right on 8, b on 3, both on 2; 6 against 1 where they differ: p = 2·8/2⁷ = 1/8."""
    a, b = np.full((1, 10), 0.2), np.full((1, 10), 0.2)
    a[0, :8] = 0.9
    b[0, [0, 1, 8]] = 0.9
    tables = {"b": table(b, [1.0] * 10), "a": table(a, [1.0] * 10)}
    found = run_study("consensus", StudyData(tables=tables, resampling=QUICK))
    best, other = found.table("Accuracy").rows
    assert (best.name, best.values[0], other.values[0]) == ("a", 80.0, 30.0)
    assert str(other.values[1]).startswith("−50.0")
    assert other.values[2] == "0.125"
    agreement = found.table("Agreement, % of targets").rows[0].values
    assert agreement == (None, pytest.approx(30.0)), "the same side on 2 right and 1 wrong of 10"
    verdict = other.values[3]
    assert isinstance(verdict, Verdict)
    assert (verdict.first, verdict.second, verdict.diff, verdict.n_clusters) == ("b", "a", pytest.approx(-50.0), 7)
    assert verdict.says == "too few to tell"
    assert "by more than chance than 0 of 1 other method" in found.text
    with pytest.raises(InputError, match="at least two"):
        run_study("consensus", StudyData(tables={"a": tables["a"]}, resampling=QUICK))


def test_single_runs_and_who_lies_on_the_frontier():
    right, wrong = np.full((2, 4), 0.9), np.array([[0.9, 0.9, 0.1, 0.1], [0.9, np.nan, 0.1, 0.9]])
    tables = {name: table(said, [1.0] * 4) for name, said in (("dear", right), ("cheap", wrong), ("worse", wrong))}
    assert np.mean(run_accuracy(tables["cheap"])) == pytest.approx(100 * (1 + 1 + 0 + 0.5) / 4)
    costs = {
        "dear": ForecastCost(dollars=1.0, seconds=1),
        "cheap": ForecastCost(dollars=0.1, seconds=9),
        "worse": ForecastCost(dollars=0.2),
    }
    found = run_study("frontier", StudyData(tables=tables, costs=costs, resampling=QUICK))
    best = {entry.name: entry.values[3:] for entry in found.tables[0].rows}
    assert best["dear"] == (pytest.approx(100.0), "yes", "yes")
    assert best["cheap"] == (pytest.approx(625.0), "yes", "")
    assert best["worse"][1:] == ("", "")
    free = {name: cost for name, cost in costs.items() if name != "worse"}
    without = run_study("frontier", StudyData(tables=tables, costs=free, resampling=QUICK))
    assert "Left out: worse, which has no known cost." in without.notes
    with pytest.raises(InputError, match="no forecaster has a cost"):
        run_study("frontier", StudyData(tables=tables, resampling=QUICK))


def test_tables_beside_the_forecasts_are_read_and_checked():
    assert read_cost_table([{"forecaster": "a", "dollars": "0.5", "seconds": 3}])["a"] == ForecastCost(
        dollars=0.5, seconds=3
    )
    with pytest.raises(InputError, match="not an amount of money"):
        read_cost_table([{"forecaster": "a", "dollars": -1}])
