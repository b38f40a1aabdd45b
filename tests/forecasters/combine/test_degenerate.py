"""Every method on degenerate training data: finite rules and probabilities, and NaN only where no trial answered."""

from dataclasses import replace

import numpy as np
import pytest

from foretell.forecasters.combine.calibration import Beta, HierarchicalPlatt, Isotonic, Platt
from foretell.forecasters.combine.crossfit import leave_one_out, rolling
from foretell.forecasters.combine.rules import ChainedMethod
from foretell.forecasters.combine.saving import from_json, to_json
from foretell.forecasters.combine.shrink import BayesShrink, Shrink

METHODS = {
    method.name: method
    for method in (
        Platt(),
        HierarchicalPlatt(),
        HierarchicalPlatt(by=("source", "subtype")),
        Isotonic(),
        Beta(),
        Shrink(),
        BayesShrink(),
        ChainedMethod(methods=()),
        ChainedMethod(methods=(Shrink(), HierarchicalPlatt())),
        ChainedMethod(methods=(BayesShrink(), Isotonic())),
    )
}
CALIBRATIONS = ["platt", "platt by source", "isotonic", "beta"]
SOME = np.random.default_rng(0).random((5, 12)).round(2)
YES_AND_NO = np.arange(12) % 2
CASES = {
    "all trials equal": {"trials": np.full((5, 12), 0.3), "outcome": YES_AND_NO},
    "all certain": {"trials": np.tile(YES_AND_NO, (5, 1)), "outcome": YES_AND_NO},
    "all certain and wrong": {"trials": np.tile(1 - YES_AND_NO, (5, 1)), "outcome": YES_AND_NO},
    "all no": {"trials": SOME, "outcome": np.zeros(12)},
    "all yes": {"trials": SOME, "outcome": np.ones(12)},
    "separable": {"trials": np.linspace(0.1, 0.9, 12), "outcome": np.arange(12) > 5},
    "a source each": {"trials": SOME, "outcome": YES_AND_NO, "source": [f"s{i}" for i in range(12)]},
    "one question": {"trials": SOME, "outcome": YES_AND_NO, "question": "q"},
    "anchors at 0 and 1": {"trials": SOME, "outcome": YES_AND_NO, "price": YES_AND_NO},
    "one trial": {"trials": SOME[:1], "outcome": YES_AND_NO},
    "some trials failed": {"trials": np.where(SOME < 0.5, np.nan, SOME), "outcome": YES_AND_NO},
    "all trials failed": {"trials": np.full((5, 12), np.nan), "outcome": YES_AND_NO},
    "all weights zero": {"trials": SOME, "outcome": YES_AND_NO, "weight": 0.0},
    "one row": {"trials": [[0.3]], "outcome": [1]},
    "no rows": {"trials": np.empty((5, 0)), "outcome": []},
}


@pytest.fixture(params=CASES)
def case(request, make):
    fields = dict(CASES[request.param])
    return make(fields.pop("trials"), fields.pop("outcome"), **fields)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_probabilities_are_finite_where_a_trial_answered_and_rules_can_be_saved(method, case, make_rows):
    fitted = method.fit(case)
    for rows in (case.rows, make_rows([0.0, 0.3, 1.0], source="unseen", price=[np.nan, 0.0, 1.0])):
        p = fitted.probabilities(rows)
        answered = ~np.isnan(rows.raw)
        assert np.isfinite(p[answered]).all()
        assert ((p[answered] >= 0) & (p[answered] <= 1)).all()
        assert np.isnan(p[~answered]).all()
    answered = ~np.isnan(case.rows.raw)
    for p in (leave_one_out(method, case), leave_one_out(method, case, by="event"), rolling(method, case).p):
        assert np.isfinite(p[answered]).all()
        assert np.isnan(p[~answered]).all()
    assert from_json(to_json(fitted)) == fitted


@pytest.mark.parametrize("name", CALIBRATIONS)
@pytest.mark.parametrize("outcome", [[], [0, 0, 0], [1, 1, 1]])
def test_calibration_without_both_outcomes_is_the_identity(name, outcome, make, make_rows):
    fitted = METHODS[name].fit(make([[0.1, 0.5, 0.9][: len(outcome)]], outcome))
    rows = make_rows([0.01, 0.4, 0.999])
    assert fitted.probabilities(rows) == pytest.approx(rows.raw, abs=1e-9)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_outcomes_of_a_left_out_question_do_not_change_its_forecasts(method, world):
    """Flipping the outcomes of a question does not change its probabilities from a rule fitted without it."""
    examples = world(40, seed=5)
    question = examples.rows.question[0]
    mine = examples.rows.question == question
    flipped = replace(examples, outcome=np.where(mine, 1 - examples.outcome, examples.outcome))
    before, after = leave_one_out(method, examples), leave_one_out(method, flipped)
    assert after[mine] == pytest.approx(before[mine], abs=1e-8)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_later_outcomes_do_not_change_rolling_forecasts(method, world):
    """Flipping all outcomes that became known on or after a day does not change forecasts up to that day."""
    examples = world(120, seed=6, rounds=6)
    day = np.datetime64("2025-02-16")
    later = examples.known_on >= day
    flipped = replace(examples, outcome=np.where(later, 1 - examples.outcome, examples.outcome))
    before, after = rolling(method, examples), rolling(method, flipped)
    earlier = examples.rows.due <= day
    assert earlier.any()
    assert not earlier.all()
    assert after.p[earlier] == pytest.approx(before.p[earlier], abs=1e-12)
    assert after.past.tolist() == before.past.tolist()
