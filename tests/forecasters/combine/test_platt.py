"""The line of least log loss against a general optimiser, its offsets, and leaving out against fitting again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine.calibration import FittedPlatt, HierarchicalPlatt, Platt
from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.forecasters.combine.rules import refitted


def test_the_loss_is_the_papers(world):
    from scipy.optimize import minimize

    examples = world(300, seed=1)
    x, y = logit(examples.rows.raw, 1e-4), examples.outcome
    names, code = np.unique(examples.rows.source, return_inverse=True)

    def loss(at):
        z = at[0] * x + at[1] + at[2:][code]
        return np.logaddexp(0, z).sum() - y @ z + 2.5 * (at[2:] ** 2).sum()

    at = minimize(loss, np.r_[1, np.zeros(1 + len(names))], options={"gtol": 1e-7}).x
    found = HierarchicalPlatt(strength=2.5).fit(examples)
    assert (found.slope, found.intercept) == pytest.approx(tuple(at[:2]), abs=1e-4)
    assert [found.offsets[str(name)] for name in names] == pytest.approx(at[2:], abs=1e-4)


def test_a_forecaster_who_doubles_his_log_odds_is_halved(make):
    z = np.repeat(np.linspace(-2, 2, 41), 400)
    outcome = np.random.default_rng(0).random(len(z)) < sigmoid(z)
    found = Platt().fit(make(sigmoid(2 * z), outcome))
    assert found.slope == pytest.approx(0.5, abs=0.02)
    assert found.intercept == pytest.approx(0, abs=0.05)
    assert found.offsets == {}


def test_applied_by_hand(make_rows):
    rule = FittedPlatt(slope=0.5, intercept=0.2, offsets={"fred": -1.0, "fred > all": 0.3}, by=("source", "subtype"))
    rows = make_rows([0.8, 0.8, 0.8], source=["fred", "fred", "new"], subtype=["all", "other", "all"])
    z = 0.5 * np.log(4) + 0.2 + np.array([-0.7, -1.0, 0.0])
    assert rule.probabilities(rows) == pytest.approx(1 / (1 + np.exp(-z)))


def test_an_unseen_source_has_no_offset(world, make_rows):
    found = HierarchicalPlatt().fit(world(200))
    assert found.offsets
    new = found.probabilities(make_rows([0.3], source="never seen"))
    assert new == pytest.approx(sigmoid(found.slope * logit(0.3) + found.intercept))


def test_strong_offsets_vanish_and_leave_the_plain_line(world):
    examples = world(200)
    stiff, plain = HierarchicalPlatt(strength=1e9).fit(examples), Platt().fit(examples)
    assert (stiff.slope, stiff.intercept) == pytest.approx((plain.slope, plain.intercept), abs=1e-5)


def test_offsets_nest(world):
    examples = world(200)
    found = HierarchicalPlatt(by=("source", "subtype")).fit(examples)
    assert "source 0" in found.offsets
    assert "source 0 > all" in found.offsets


def test_a_weight_of_two_is_the_example_twice(make):
    p, y = [0.2, 0.4, 0.7, 0.9], [0, 1, 0, 1]
    weighted = Platt().fit(make(p, y, weight=[2, 1, 1, 2]))
    twice = Platt().fit(make([*p, 0.2, 0.9], [*y, 0, 1]))
    assert (weighted.slope, weighted.intercept) == pytest.approx((twice.slope, twice.intercept), abs=1e-6)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.integers(2, 60), st.sampled_from([(), ("source",), ("source", "subtype")]))
def test_leaving_out_is_fitting_again(world, seed, n, by):
    examples = world(n, seed=seed)
    groups = np.unique(examples.rows.question, return_inverse=True)[1]
    method = Platt(by=by)
    assert method.leave_out(examples, groups) == pytest.approx(refitted(method, examples, groups), abs=1e-7)


def test_where_one_class_is_left_the_rule_is_the_identity(make):
    examples = make([0.2, 0.4, 0.6], [0, 0, 1])
    assert Platt().leave_out(examples, np.arange(3))[2] == pytest.approx(0.6)
    assert Platt().fit(make([0.2, 0.4], [0, 0])).slope == 1


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"by": ("horizon",)}, "by = 'horizon'"),
        ({"strength": 0}, "strength = 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given_, told):
    with pytest.raises(ValueError, match=told):
        HierarchicalPlatt(**given_)
