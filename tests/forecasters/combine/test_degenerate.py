"""Every method on inputs that leave it little or nothing to learn: finite rules, finite probabilities, NaN only where
no trial answered, and the documented ones among them."""

from dataclasses import replace

import numpy as np
import pytest

from foretell.forecasters.combine import (
    BayesShrink,
    Beta,
    ChainedMethod,
    HierarchicalPlatt,
    Isotonic,
    Platt,
    Shrink,
    from_json,
    leave_one_out,
    rolling,
    to_json,
)

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
    "nothing weighs": {"trials": SOME, "outcome": YES_AND_NO, "weight": 0.0},
    "one row": {"trials": [[0.3]], "outcome": [1]},
    "no rows": {"trials": np.empty((5, 0)), "outcome": []},
}


@pytest.fixture(params=CASES)
def case(request, make):
    given = dict(CASES[request.param])
    return make(given.pop("trials"), given.pop("outcome"), **given)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_probabilities_are_finite_where_a_trial_answered_and_the_rule_can_be_written(method, case, make_rows):
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
def test_what_was_held_out_has_no_say(method, world):
    """Turning the outcomes of a question round does not move what a rule fitted without it says of it."""
    examples = world(40, seed=5)
    question = examples.rows.question[0]
    mine = examples.rows.question == question
    turned = replace(examples, outcome=np.where(mine, 1 - examples.outcome, examples.outcome))
    before, after = leave_one_out(method, examples), leave_one_out(method, turned)
    assert after[mine] == pytest.approx(before[mine], abs=1e-8)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_future_has_no_say(method, world):
    """Turning round every outcome that became known on or after a day does not move what was said by then."""
    examples = world(120, seed=6, rounds=6)
    day = np.datetime64("2025-02-16")
    later = examples.known_on >= day
    turned = replace(examples, outcome=np.where(later, 1 - examples.outcome, examples.outcome))
    before, after = rolling(method, examples), rolling(method, turned)
    said = examples.rows.due <= day
    assert said.any()
    assert not said.all()
    assert after.p[said] == pytest.approx(before.p[said], abs=1e-12)
    assert after.past.tolist() == before.past.tolist()
