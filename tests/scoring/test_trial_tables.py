"""Published trials as examples, from small tables written here and from the real ones."""

import csv
from pathlib import Path

import numpy as np
import pytest
from benchmarks.blf_study import AS_PUBLISHED, TrialAssumptions, read_trial_tables

from foretell.metrics import brier_index, mean_brier
from foretell.questions.errors import InputError

QUESTIONS = """forecast_due_date,source,question_id,question,background,resolution_criteria,\
market_info_resolution_criteria,market_open,market_close,url,source_type,subtype,freeze_value,\
freeze_value_explanation,freeze_date,price_on_due_date
2025-10-26,polymarket,m1,Will it?,,,,,2025-12-31T00:00:00+00:00,,market,market,0.3,,2025-10-16,0.4
2025-10-26,fred,D1,Will it rise by {resolution_date}?,,,,,,,dataset,all,4.1,,2025-10-16,
2025-10-26,polymarket,m2,Will it not?,,,,,,,market,market,0.6,,2025-10-16,
"""
RESOLUTIONS = """question_id,source,resolution_date,outcome,resolved,forecast_due_date,horizon_days,paper_outcome
m1,polymarket,2025-11-20,1,true,2025-10-26,25,1
D1,fred,2025-11-02,0,true,2025-10-26,7,1
D1,fred,2025-11-25,1,true,2025-10-26,30,1
m2,polymarket,2026-01-31,0.2,false,2025-10-26,97,
"""
TRIALS = """config,forecast_due_date,source,question_id,resolution_date,trial,probability
x,2025-10-26,polymarket,m1,,0,0.7
x,2025-10-26,polymarket,m1,,1,0.6
x,2025-10-26,fred,D1,2025-11-02,0,0.2
x,2025-10-26,fred,D1,2025-11-25,1,0.3
x,2025-10-26,polymarket,m2,,0,0.5
y,2025-10-26,polymarket,m1,,1,0.1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("questions", QUESTIONS), ("resolutions", RESOLUTIONS), ("trials", TRIALS)):
        (tmp_path / f"ab_{name}.csv").write_text(text)
    return tmp_path


def test_configurations_share_targets_and_failed_trials_are_nan(folder: Path):
    trial_tables = read_trial_tables(folder)
    x, y = trial_tables["x"].rows, trial_tables["y"].rows
    assert x.question.tolist() == y.question.tolist() == ["polymarket/m1", "fred/D1", "fred/D1"]
    np.testing.assert_array_equal(x.trials, [[0.7, 0.2, np.nan], [0.6, np.nan, 0.3]])
    np.testing.assert_array_equal(y.trials, [[0.1, np.nan, np.nan]])
    assert trial_tables["x"].known_on.astype(str).tolist() == ["2025-11-20", "2025-11-02", "2025-11-25"]


def test_market_horizon_is_the_planned_close(folder: Path):
    """Its horizon is the planned close, 66 days ahead, not the 25 days after which it resolved."""
    assert read_trial_tables(folder)["x"].rows.horizon.tolist() == [66, 7, 30]


def test_past_only_data_differ_from_the_published_data(folder: Path):
    honest, paper = read_trial_tables(folder)["x"], read_trial_tables(folder, known=AS_PUBLISHED)["x"]
    assert honest.rows.price[0] == 0.4
    assert paper.rows.price[0] == 0.3
    assert honest.outcome.tolist() == [1, 0, 1]
    assert paper.outcome.tolist() == [1, 1, 1]
    assert paper.rows.prior[1] == 0.42, "Table 7: FRED"
    assert np.isnan(honest.rows.prior).all(), "nothing had resolved before the questions were asked"


def test_past_rates_come_from_all_rounds_of_the_folder(folder: Path):
    earlier = [QUESTIONS.splitlines()[0]]
    lines = [RESOLUTIONS.splitlines()[0]]
    for i in range(20):
        earlier.append(f"2025-08-03,fred,E{i},Will it rise?,,,,,,,dataset,all,4.1,,2025-07-24,")
        lines.append(f"E{i},fred,2025-08-{10 + i % 5},{int(i > 2)},true,2025-08-03,7,")
    (folder / "questions.csv").write_text("\n".join(earlier) + "\n")
    (folder / "resolutions.csv").write_text("\n".join(lines) + "\n")
    prior = read_trial_tables(folder)["x"].rows.prior
    assert 0.55 < prior[1] < 0.85, "17 of 20, drawn toward one half"
    assert np.isnan(prior[0])


def test_missing_tables_and_trials_are_errors(folder: Path, tmp_path: Path):
    with pytest.raises(InputError, match="contains neither"):
        read_trial_tables(folder, "zz_")
    rows = list(csv.reader(TRIALS.splitlines()))
    (folder / "ab_trials.csv").write_text("\n".join(",".join(r[:5]) for r in rows) + "\n")
    with pytest.raises(InputError, match="'trial' is missing"):
        read_trial_tables(folder)
    (folder / "ab_trials.csv").unlink()
    with pytest.raises(InputError, match="no such file"):
        read_trial_tables(folder)


@pytest.mark.shared_data
def test_published_tables_match_published_scores(shared_data: Path):
    trial_tables = read_trial_tables(shared_data / "tables", known=AS_PUBLISHED)
    assert len(trial_tables) == 42
    some = trial_tables["pro-high-brave-c1-p1-t1"]
    assert len(some) == 791
    assert len(np.unique(some.rows.asking)) == 400
    market = some.rows.kind == "market"
    assert len(np.unique(some.rows.question[market])) == 175, "25 of the 200 were asked in both rounds"
    market_index = brier_index(mean_brier(some.rows.price[market], some.outcome[market]))
    prior = brier_index(mean_brier(some.rows.prior[~market], some.outcome[~market]))
    assert (market_index, prior) == pytest.approx((81.48, 58.23), abs=0.01)


@pytest.mark.shared_data
def test_past_only_priors_are_weaker_than_those_of_the_paper(shared_data: Path):
    some = read_trial_tables(shared_data / "tables", known=TrialAssumptions(outcome="paper_outcome"))[
        "pro-high-brave-c1-p1-t1"
    ]
    data = some.rows.kind == "dataset"
    assert brier_index(mean_brier(some.rows.prior[data], some.outcome[data])) == pytest.approx(57.6, abs=0.3)
