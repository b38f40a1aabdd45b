"""Studies on synthetic trials recover known effects, and every number has its interval."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from markupsafe import escape
from rich.console import Console
from tests.studies.made_trials import OF_TABLES, grown, made, write_long

from foretell.forecasters.combine.rows import Examples
from foretell.metrics import Interval, Resampling
from foretell.operations.studies import study as run_study
from foretell.questions.errors import InputError
from foretell.report.document import markdown_study, print_study, study_page
from foretell.report.numbers import value_text
from foretell.report.study import StudyColumn, StudyRow, StudyTable
from foretell.report.study_result import StudyResult
from foretell.scoring.verdict import Verdict
from foretell.studies.inputs import StudyData

QUICK = Resampling(draws=50)
PARTIAL = "pro-high-brave-c1-t1"
"""Return a configuration that answered only a part of the targets."""


def tables() -> dict[str, Examples]:
    """Return two models, each with belief (least noise), no belief, and zero-shot (most noise)."""
    tables: dict[str, Examples] = {}
    for i, model in enumerate(("pro", "kimi-k2.5")):
        for regime, bonus in (("c0", 0.0), ("c1-p1", 0.4)):
            for name, noise in (("none-{}-t0", 4.0), ("brave-{}-t1-nobelief", 2.0), ("brave-{}-t1", 0.8)):
                examples = made(size=24, noise=noise - bonus, method_seed=len(tables) + 1 + 100 * i)
                tables[f"{model}-high-{name.format(regime)}"] = examples
    gappy = tables["pro-high-brave-c0-t1"]
    trials = gappy.rows.trials.copy()
    trials[0, :3] = np.nan
    tables["pro-high-brave-c0-t1"] = replace(gappy, rows=gappy.rows.with_trials(trials))
    half = tables["pro-high-none-c0-t0"]
    tables[PARTIAL] = replace(
        half, rows=half.rows.with_trials(np.where(np.arange(len(half)) < 30, half.rows.trials, np.nan))
    )
    return tables


FACTORS = {
    f"{model}-high-{name}": {"model": model, "price": price, "agent": agent}
    for model in ("pro", "kimi-k2.5")
    for price, regime in (("no", "c0"), ("yes", "c1-p1"))
    for agent, name in (
        ("zero-shot", f"none-{regime}-t0"),
        ("no belief", f"brave-{regime}-t1-nobelief"),
        ("belief", f"brave-{regime}-t1"),
    )
}


def material() -> StudyData:
    return StudyData(tables=tables(), factors=FACTORS, resampling=QUICK)


@pytest.fixture(scope="module")
def studies() -> dict[str, StudyResult]:
    return {name: run_study(name, material()) for name in OF_TABLES}


def gap_of(study: StudyResult, title: str, entry: str, label: str) -> Verdict:
    grid = study.table(title)
    values = next(e.values for e in grid.rows if e.name == entry)
    gap = values[[c.label for c in grid.columns].index(label)]
    assert isinstance(gap, Verdict)
    return gap


@pytest.mark.parametrize("name", OF_TABLES)
def test_every_study_renders_in_every_format(name: str, studies: dict[str, StudyResult]):
    study = studies[name]
    assert study.text.endswith(".")
    assert study.tables
    assert study.charts
    for picture in study.charts:
        ElementTree.fromstring(picture.chart.standalone())
    page = study_page(study)
    ElementTree.fromstring(page.partition("\n")[2])
    text = markdown_study(study)
    for grid in study.tables:
        assert escape(grid.title) in page
        assert all(len(e.values) == len(grid.columns) for e in grid.rows)
        assert len({c.label for c in grid.columns}) == len(grid.columns), "labels are keys in the JSON"
    assert "nan" not in text.lower().replace("finance", "")
    assert json.loads(json.dumps(study.to_dict(), allow_nan=False))["name"] == name
    for width in (60, 100, 200):
        shown = StringIO()
        print_study(study, Console(width=width, file=shown))
        assert max(map(len, shown.getvalue().splitlines())) <= width


@pytest.mark.parametrize("name", OF_TABLES)
def test_the_same_seed_gives_the_same_study(name: str, studies: dict[str, StudyResult]):
    again = run_study(name, material())
    assert again.to_dict() == studies[name].to_dict()


@pytest.mark.parametrize("name", OF_TABLES)
def test_left_out_and_failed_configurations_are_noted(name: str, studies: dict[str, StudyResult]):
    notes = " ".join(studies[name].notes)
    if PARTIAL in studies[name].settings["configurations"]:
        done = studies[name].table("Completion").numbers("done")
        assert done[PARTIAL] < 100 == max(done.values())
        assert f"{PARTIAL}, which" not in notes, "answered only a part of the targets, and stays in"
    else:
        assert PARTIAL in notes
    assert "Trials failed in" in notes
    assert "one cluster" in notes


def test_more_trials_improve_the_score(studies: dict[str, StudyResult]):
    grid = studies["trials"].table("Logit mean of k trials")
    assert {entry.name for entry in grid.rows} == tables().keys()
    for entry in grid.rows:
        curve = [value for value in entry.values if isinstance(value, float)]
        assert len(curve) == 3
        assert curve[0] < curve[-1] or entry.name == PARTIAL, "30 targets are too few to see it"
        assert isinstance(entry.values[3], Verdict)
        assert entry.values[3].diff == pytest.approx(curve[-1] - curve[0])


def test_rules_tuned_in_sample_are_labelled(studies: dict[str, StudyResult]):
    title = "Mean gain over the logit mean of all trials"
    names = [e.name for e in studies["trials"].table(title).rows]
    assert {"shrink · in-sample", "shrink · question out", "shrink · past only", "mean, all trials"} <= set(names)
    flattered = gap_of(studies["trials"], title, "shrink · in-sample", "Δ")
    strict = gap_of(studies["trials"], title, "shrink · question out", "Δ")
    assert flattered.diff >= strict.diff


def test_ablation_recovers_known_effects(studies: dict[str, StudyResult]):
    gain = gap_of(studies["ablation"], "One factor at a time", "agent: zero-shot → belief", "Δ")
    assert gain.diff > 0
    factorial = studies["ablation"].table("Factorial: two factors at a time")
    assert "model × agent" in {row.name for row in factorial.rows}
    shares = studies["ablation"].table("Where the spread between configurations comes from").numbers("% of spread")
    assert max(shares, key=lambda name: shares[name]) == "agent"
    assert f"Left out: {PARTIAL}, which has no factors." in studies["ablation"].notes


def test_variance_shares_add_up(studies: dict[str, StudyResult]):
    grid = studies["variance"].table("Variance components")
    assert sum(e.values[1] for e in grid.rows) == pytest.approx(100)
    anova = studies["variance"].tables[0]
    share = {e.name: e.values[1] for e in anova.rows}
    assert share["question"] > share["method"]
    effects = studies["variance"].table("Effects of the methods, first date of every question")
    for entry in effects.rows:
        exact, iterated, mixed = entry.values[1:4]
        assert exact == pytest.approx(iterated, abs=1e-6)
        assert exact == pytest.approx(mixed, abs=0.2)


def test_few_configurations_are_all_shown_in_detail():
    names = ("pro-high-brave-c0-t1", "pro-high-none-c0-t0")
    few = {name: tables()[name] for name in names}
    study = run_study("trials", StudyData(tables=few, resampling=QUICK), section="number")
    assert [g.title for g in study.tables[1:3]] == [f"{name}: rules and trials" for name in names]


def test_missing_factors_and_too_few_methods_are_refused():
    study_data = StudyData(tables={"bot": made(rounds=1, size=8)}, resampling=QUICK)
    with pytest.raises(InputError, match="the forecasters do not differ in any factor"):
        run_study("ablation", study_data)
    with pytest.raises(InputError, match="at least two"):
        run_study("variance", study_data)
    with pytest.raises(InputError, match="no study is called 'trial'"):
        run_study("trial", study_data)
    with pytest.raises(InputError, match="has no effect together with inputs"):
        run_study("trials", study_data, forecasts="f.csv")
    with pytest.raises(InputError, match="a study chooses its own clusters"):
        run_study("trials", study_data, bootstrap="cluster=day")


def test_single_trial_gives_a_sentence_without_a_gain():
    study = run_study(
        "trials", StudyData(tables={"bot": made(rounds=1, size=8, trials=1)}, resampling=QUICK), section="number"
    )
    assert "only one trial" in study.text


def test_a_report_on_an_overconfident_forecaster(tmp_path: Path):
    examples = grown(made(rounds=5, size=32, noise=0.3), 3.0)
    forecasts, outcomes = write_long({"bot": examples}, tmp_path)
    study = run_study(
        "calibration", forecasts=forecasts, outcomes=outcomes, methods=("platt", "default"), bootstrap="draws=200"
    )
    with pytest.raises(InputError, match="has no effect in section line"):
        run_study("calibration", forecasts=forecasts, methods=("platt",), section="line")
    for protocol in ("in-sample", "question out", "past only"):
        assert gap_of(study, "bot: protocols side by side", "platt", f"Δ {protocol}").diff > 1
    grid = study.table("bot: protocols side by side")
    assert [e.name for e in grid.rows] == [
        "raw (logit mean)",
        "market price",
        "base rate",
        "market price, else base rate",
        "always 0.5",
        "platt",
        "default",
    ]
    labels = [c.label for c in grid.columns]
    assert labels[0] == "BI past only"
    platt = dict(zip(labels, grid.rows[5].values, strict=True))
    raw = dict(zip(labels, grid.rows[0].values, strict=True))
    assert platt["ECE"] < raw["ECE"]
    assert 0 < platt["learnt from"] < len(examples)
    assert study.table("bot: past only, by kind").columns[0].label == "market"
    gain = gap_of(study, "bot: protocols side by side", "platt", "Δ past only")
    assert f"from the past alone: {gain.sentence}" in study.text
    assert (gain.first, gain.second) == ("platt · past only", "raw (logit mean)")


def test_table_refuses_rows_of_another_length():
    with pytest.raises(ValueError, match="2 values for 1 columns"):
        StudyTable(title="t", columns=(StudyColumn(label="a"),), rows=(StudyRow(name="x", values=(1, 2)),))


def test_values_are_formatted_as_text():
    interval = Interval(estimate=-1.0, low=-2.0, high=0.5, se=1.0, n_clusters=3, draws=10)
    assert value_text(interval, 1) == "−1.0 [−2.0, 0.5]"
    assert value_text(interval, 1, brief=True) == "−1.0"
    assert value_text(float("nan"), 1) == "–"
