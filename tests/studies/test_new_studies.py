"""Sections of studies on trials whose truth is known: ensembles, difficulty, the calibration line, hedging."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.studies.made_trials import made

from foretell import score
from foretell.forecasters.combine.crossfit import rolling
from foretell.forecasters.combine.ensemble import (
    BestSoFar,
    GreedySelection,
    PooledWeights,
    SkillWeights,
    side_by_side,
)
from foretell.forecasters.combine.rows import Examples
from foretell.metrics import Resampling
from foretell.operations.studies import study
from foretell.questions.errors import InputError
from foretell.scoring.verdict import Verdict, corrected
from foretell.studies.configurations import best_config, study_configs
from foretell.studies.inputs import StudyData

QUICK = Resampling(draws=400)
TABLES = {
    "good": made(rounds=4, noise=0.4, method_seed=1),
    "same": made(rounds=4, noise=0.4, method_seed=2),
    "bad": made(rounds=4, noise=3.0, method_seed=3),
}
DATA = StudyData(tables=TABLES, resampling=QUICK)


def test_ensemble_gives_a_bad_member_little_weight():
    result = study("ensemble", DATA, section="ensembles")
    weights = result.table("Weights from now on, %")
    assert sum(weights.numbers("weights by skill").values()) == pytest.approx(100)
    assert weights.numbers("weights by skill")["bad"] < weights.numbers("weights by skill")["good"]
    members = weights.numbers("equal weights")
    assert members["bad"] == pytest.approx(100 / len(members))
    assert weights.numbers("pooled")["bad"] < weights.numbers("pooled")["good"]
    assert sum(weights.numbers("pooled").values()) == pytest.approx(100)
    board = result.table("Ensembles, weights from the past alone")
    assert {"the best so far", "pooled", "greedy", "weights by skill"} <= set(board.column(board.columns[0].label))
    verdicts = [
        verdict
        for verdict in board.column("Δ").values()
        if isinstance(verdict, Verdict) and verdict.first in {c.label for c in weights.columns}
    ]
    assert len(verdicts) == 5
    assert result.sentences[1].startswith("Better by more than chance, corrected for the number of ensembles tried: ")
    assert result.sentences[1].endswith(f"{sum(verdict.survives for verdict in corrected(verdicts))} of 5.")
    with pytest.raises(InputError, match="at least two"):
        study("ensemble", StudyData(tables={"good": TABLES["good"]}))


@pytest.mark.parametrize("kind", [BestSoFar, PooledWeights, SkillWeights, GreedySelection])
def test_later_outcomes_do_not_change_ensembles(kind: type[BestSoFar] | type[PooledWeights]):
    names, rows = side_by_side({name: examples.rows for name, examples in TABLES.items()})
    examples = replace(TABLES["good"], rows=rows)
    last = np.unique(examples.rows.due)[-1]
    poisoned = replace(examples, outcome=np.abs(examples.outcome - (examples.known_on >= last)))
    forecasts = [rolling(kind(names=names), some).p for some in (examples, poisoned)]
    assert np.array_equal(forecasts[0], forecasts[1])
    if kind is not BestSoFar:  # The best member may stay the same.
        assert kind(names=names).fit(examples) != kind(names=names).fit(poisoned)


def test_difficulty_makes_different_questions_comparable():
    """A forecaster that answers only the harder half looks worse by Brier, but not after adjustment."""
    good = TABLES["good"]
    hard = (good.rows.raw - good.outcome) ** 2 > np.median((TABLES["same"].rows.raw - good.outcome) ** 2)
    half = replace(good, rows=good.rows.with_trials(np.where(hard, good.rows.trials, np.nan)))
    result = study("variance", StudyData(tables={**TABLES, "half": half}, resampling=QUICK), section="difficulty")
    board = result.table("Adjusted for difficulty")
    brier, adjusted = board.numbers("Brier"), board.numbers("adjusted Brier")
    assert brier["half"] - brier["good"] > 2 * abs(adjusted["half"] - adjusted["good"])
    assert adjusted["bad"] > adjusted["good"]
    verdicts = {name: verdict for name, verdict in board.column("Δ best").items() if isinstance(verdict, Verdict)}
    assert verdicts["bad"].says == "worse"
    assert {verdicts[name].says for name in verdicts if name != "bad"} <= {
        "could be chance",
        "no difference that matters",
    }
    assert "1 of 3 others are worse by more than chance" in result.text


def test_overconfidence_is_a_slope_below_one():
    rows = TABLES["good"].rows
    bold = rows.trials**2 / (rows.trials**2 + (1 - rows.trials) ** 2)  # twice the log-odds
    tables = {**TABLES, "bold": replace(TABLES["good"], rows=rows.with_trials(bold))}
    result = study("calibration", StudyData(tables=tables, resampling=QUICK), section="line")
    slope = result.tables[0].numbers("slope")
    assert slope["bold"] == pytest.approx(slope["good"] / 2, rel=0.02)
    parts = result.table("What the Brier score is made of")
    for name, brier in parts.numbers("Brier").items():
        values = {label: parts.numbers(label)[name] for label in ("reliability", "resolution", "uncertainty")}
        rest = parts.numbers("within bins")[name]
        total = values["reliability"] - values["resolution"] + values["uncertainty"] + rest
        assert total == pytest.approx(brier)


def test_hedging_is_measured_against_the_price():
    price = TABLES["good"].rows.price
    shy = np.where(np.isfinite(price), 0.5 + (price - 0.5) / 2, TABLES["good"].rows.raw)
    tables = {**TABLES, "shy": replace(TABLES["good"], rows=TABLES["good"].rows.with_trials(shy))}
    result = study("calibration", StudyData(tables=tables, resampling=QUICK), section="hedging")
    board = result.table("Distance from one half beside the market")
    assert board.numbers("hedged")["shy"] == pytest.approx(1.0)
    assert board.numbers("farther")["shy"] < 0
    apart = study("ensemble", StudyData(tables=tables, resampling=QUICK), section="divergence")
    assert apart.table("Divergence in bits").column("nearest")["good"] in ("same", "shy")


SECTIONS = [
    ("trials", "number"),
    ("trials", "rules"),
    ("trials", "stability"),
    ("calibration", "line"),
    ("calibration", "threshold"),
    ("calibration", "hedging"),
    ("ensemble", "ensembles"),
    ("ensemble", "divergence"),
    ("variance", "anova"),
    ("variance", "effects"),
    ("variance", "difficulty"),
    ("decisions", "methods"),
]
UNDATED = [section for section in SECTIONS if section[1] not in ("rules", "ensembles", "hedging")]
"""Sections that need neither dates nor prices."""


def partly(examples: Examples, answered: np.ndarray) -> Examples:
    return replace(examples, rows=examples.rows.with_trials(np.where(answered, examples.rows.trials, np.nan)))


@pytest.mark.parametrize(("name", "section"), SECTIONS)
def test_incomplete_forecasters_are_not_left_out(name: str, section: str):
    n = len(TABLES["good"])
    tables = {
        "first": partly(TABLES["good"], np.arange(n) < 0.7 * n),
        "last": partly(TABLES["bad"], np.arange(n) >= 0.3 * n),
        "silent": partly(TABLES["same"], np.zeros(n, bool)),
    }
    result = study(name, StudyData(tables=tables, resampling=QUICK), section=section)
    assert result.settings["configurations"] == ["first", "last"]
    done = result.table("Completion").numbers("done")
    assert done == pytest.approx({name: 100 * np.isfinite(tables[name].rows.raw).mean() for name in ("first", "last")})
    assert "silent, which answered nothing" in " ".join(result.notes)


@pytest.mark.parametrize("section", ["anova", "effects", "difficulty"])
def test_forecasters_that_share_no_question_are_left_out_by_name(section: str):
    n = len(TABLES["good"])
    half = {
        key: replace(examples, rows=replace(examples.rows, price=np.full(n, np.nan)))
        for key, examples in TABLES.items()
    }
    apart = {**half, "bad": partly(half["bad"], np.arange(n) < n // 2)}
    apart = {
        key: examples if key == "bad" else partly(examples, np.arange(n) >= n // 2) for key, examples in apart.items()
    }
    result = study("variance", StudyData(tables=apart, resampling=QUICK), section=section)
    assert "bad, which shares no question with the others" in " ".join(result.notes)
    with pytest.raises(InputError, match="no two forecasters"):
        study(
            "variance",
            StudyData(tables={key: apart[key] for key in ("good", "bad")}, resampling=QUICK),
            section=section,
        )


def test_one_forecaster_alone_is_not_compared():
    with pytest.raises(InputError, match="divergence needs at least two"):
        study("ensemble", StudyData(tables={"good": TABLES["good"]}, resampling=QUICK), section="divergence")


def test_answering_only_easy_questions_does_not_make_a_forecaster_best():
    easy = np.abs(TABLES["same"].rows.raw - TABLES["same"].outcome)
    tables = {"good": TABLES["good"], "picky": partly(TABLES["bad"], easy <= np.quantile(easy, 0.3))}
    brier = {name: np.nanmean((examples.rows.raw - examples.outcome) ** 2) for name, examples in tables.items()}
    assert brier["picky"] < brier["good"]
    assert best_config(tables) == "good"
    assert best_config({name: TABLES[name] for name in ("bad", "good")}) == "good"


def undated_tables(folder: Path) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    lines = [f"{who},q{i},{rng.uniform(0.05, 0.95):.3f}" for who in ("a", "b") for i in range(20) if i != 3]
    (folder / "f.csv").write_text("forecaster,question,p\n" + "\n".join(lines) + "\n")
    (folder / "o.csv").write_text("question,outcome\n" + "".join(f"q{i},{i % 2}\n" for i in range(20)))
    return {"forecasts": folder / "f.csv", "outcomes": folder / "o.csv"}


@pytest.mark.parametrize(("name", "section"), UNDATED)
def test_sections_that_learn_nothing_need_no_dates(name: str, section: str, tmp_path: Path):
    result = study(name, **undated_tables(tmp_path), bootstrap="draws=100", section=section)
    assert result.settings["configurations"] == ["a", "b"]


def test_sections_that_the_input_does_not_allow_are_left_out_with_the_reason(tmp_path: Path):
    tables = undated_tables(tmp_path)
    result = study("trials", **tables, bootstrap="draws=100")
    notes = " ".join(result.notes)
    assert "Section rules was left out: `outcomes`: some outcomes have no due or resolved_on" in notes
    assert {"Logit mean of k trials", "Stability"} <= {table.title for table in result.tables}
    with pytest.raises(InputError, match="no due or resolved_on"):
        study("trials", **tables, bootstrap="draws=100", section="rules")
    undated = study("calibration", **tables, bootstrap="draws=100")
    assert any("nothing is fitted on the past alone" in note for note in undated.notes)
    assert any(note.startswith("Section hedging was left out: no question has a price") for note in undated.notes)


def test_unknown_targets_are_left_out_with_a_note(tmp_path: Path):
    tables = undated_tables(tmp_path)
    with tables["forecasts"].open("a") as file:
        file.write("a,q99,0.5\n")
    result = study("trials", **tables, bootstrap="draws=100", section="number")
    assert "Left out, because the outcomes do not mention the target: 1 forecast." in result.notes


def test_studies_use_the_same_weights_as_boards(tmp_path: Path):
    """A column of weights counts equally in the accuracy and the Brier score of a board and of studies."""
    rng = np.random.default_rng(1)
    rows = [("a", f"q{i}", float(rng.choice([0.2, 0.5, 0.9]))) for i in range(24)]
    lines = "".join(f"{who},{question},{p}\n" for who, question, p in rows)
    (tmp_path / "f.csv").write_text(f"forecaster,question,p\n{lines}")
    weighed = "".join(f"q{i},{i % 2},{0 if i == 5 else 1 + i % 4}\n" for i in range(24))
    (tmp_path / "o.csv").write_text(f"question,outcome,weight\n{weighed}")
    tables = {"forecasts": tmp_path / "f.csv", "outcomes": tmp_path / "o.csv"}
    board = score(**tables, metrics=("accuracy",), baselines=False).scores[0].metrics
    accuracy = 100 * board["accuracy"].estimate
    for name, section, title, label in (
        ("decisions", "methods", "Claims", "Accu."),
        ("trials", "stability", "Stability", "accuracy"),
        ("calibration", "threshold", "Accuracy, %", "at 0.5"),
    ):
        result = study(name, **tables, bootstrap="draws=100", section=section)
        assert result.table(title).numbers(label)["a"] == pytest.approx(accuracy)
    line = study("calibration", **tables, bootstrap="draws=100", section="line")
    parts = line.table("What the Brier score is made of")
    assert parts.numbers("Brier")["a"] == pytest.approx(board["brier"].estimate)


def test_forecasters_that_saw_the_future_are_left_out():
    names = ("agent", "agent+unfiltered", "pro-c0-t0-clairvoyant")
    data = StudyData(tables={name: made(method_seed=seed) for seed, name in enumerate(names)})
    assert list(study_configs(data)) == ["agent"]
