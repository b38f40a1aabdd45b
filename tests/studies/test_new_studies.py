"""Ensembles, difficulty, recalibration, conservatism, lead time: trials whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from tests.studies.made_trials import made

from foretell.forecasters.combine import BestSoFar, GreedySelection, PooledWeights, SkillWeights, rolling, side_by_side
from foretell.metrics import Resampling
from foretell.operations import study
from foretell.questions import InputError
from foretell.studies import StudyData

QUICK = Resampling(draws=400)
TABLES = {
    "good": made(rounds=4, noise=0.4, method_seed=1),
    "same": made(rounds=4, noise=0.4, method_seed=2),
    "bad": made(rounds=4, noise=3.0, method_seed=3),
}
DATA = StudyData(tables=TABLES, resampling=QUICK)


def test_an_ensemble_gives_a_bad_member_little_weight():
    found = study("ensemble", DATA)
    weights = found.table("Weights from now on, %")
    assert sum(weights.numbers("weights by skill").values()) == pytest.approx(100)
    assert weights.numbers("weights by skill")["bad"] < weights.numbers("weights by skill")["good"]
    members = weights.numbers("equal weights")
    assert members["bad"] == pytest.approx(100 / len(members))
    assert weights.numbers("pooled")["bad"] < weights.numbers("pooled")["good"]
    assert sum(weights.numbers("pooled").values()) == pytest.approx(100)
    board = found.table("Ensembles, weights from the past alone")
    assert {"the best so far", "pooled", "greedy", "weights by skill"} <= set(board.column(board.columns[0].label))
    assert "5 ensembles were tried" in found.sentences[1]
    with pytest.raises(InputError, match="at least two"):
        study("ensemble", StudyData(tables={"good": TABLES["good"]}))


@pytest.mark.parametrize("kind", [BestSoFar, PooledWeights, SkillWeights, GreedySelection])
def test_later_outcomes_change_no_ensemble(kind: type[BestSoFar] | type[PooledWeights]):
    names, rows = side_by_side({name: one.rows for name, one in TABLES.items()})
    examples = replace(TABLES["good"], rows=rows)
    last = np.unique(examples.rows.due)[-1]
    poisoned = replace(examples, outcome=np.abs(examples.outcome - (examples.known_on >= last)))
    said = [rolling(kind(names=names), one).p for one in (examples, poisoned)]
    assert np.array_equal(said[0], said[1])
    if kind is not BestSoFar:  # The best one may be the best all the same.
        assert kind(names=names).fit(examples) != kind(names=names).fit(poisoned)


def test_difficulty_makes_different_questions_comparable():
    """A forecaster who answers only the harder half looks bad by Brier, and as good as before when adjusted."""
    good = TABLES["good"]
    hard = (good.rows.raw - good.outcome) ** 2 > np.median((TABLES["same"].rows.raw - good.outcome) ** 2)
    half = replace(good, rows=good.rows.with_trials(np.where(hard, good.rows.trials, np.nan)))
    found = study("difficulty", StudyData(tables={**TABLES, "half": half}, resampling=QUICK))
    board = found.table("Adjusted for difficulty")
    brier, adjusted = board.numbers("Brier"), board.numbers("adjusted Brier")
    assert brier["half"] - brier["good"] > 2 * abs(adjusted["half"] - adjusted["good"])
    assert adjusted["bad"] > adjusted["good"]


def test_overconfidence_is_a_slope_below_one():
    rows = TABLES["good"].rows
    bold = rows.trials**2 / (rows.trials**2 + (1 - rows.trials) ** 2)  # twice the log-odds
    tables = {**TABLES, "bold": replace(TABLES["good"], rows=rows.with_trials(bold))}
    found = study("recalibration", StudyData(tables=tables, resampling=QUICK))
    slope = found.tables[0].numbers("slope")
    assert slope["bold"] == pytest.approx(slope["good"] / 2, rel=0.02)
    parts = found.table("What the Brier score is made of")
    for name, brier in parts.numbers("Brier").items():
        values = {label: parts.numbers(label)[name] for label in ("reliability", "resolution", "uncertainty")}
        rest = parts.numbers("within bins")[name]
        total = values["reliability"] - values["resolution"] + values["uncertainty"] + rest
        assert total == pytest.approx(brier)


def test_hedging_is_measured_against_the_price():
    price = TABLES["good"].rows.price
    shy = np.where(np.isfinite(price), 0.5 + (price - 0.5) / 2, TABLES["good"].rows.raw)
    tables = {**TABLES, "shy": replace(TABLES["good"], rows=TABLES["good"].rows.with_trials(shy))}
    found = study("conservatism", StudyData(tables=tables, resampling=QUICK))
    board = found.table("Distance from one half beside the market")
    assert board.numbers("hedged")["shy"] == pytest.approx(1.0)
    assert board.numbers("farther")["shy"] < 0
    assert found.table("Divergence in bits").column("nearest")["good"] in ("same", "shy")


def test_lead_times_hold_every_target():
    (board,) = study("lead-time", DATA).tables
    counts = [board.numbers(column.label)["targets"] for column in board.columns]
    assert sum(counts) == len(TABLES["good"])
