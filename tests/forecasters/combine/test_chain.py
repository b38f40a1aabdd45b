"""Rules in a row, fitted in turn, and left out together."""

import numpy as np
import pytest

from foretell.forecasters.combine import (
    BayesShrink,
    Beta,
    ChainedMethod,
    HierarchicalPlatt,
    Platt,
    Shrink,
    refitted,
    with_rule_applied,
)


def test_each_stage_is_fitted_on_what_the_one_before_said(world):
    examples = world(120)
    found = ChainedMethod(methods=(Shrink(), Platt())).fit(examples)
    shrink = Shrink().fit(examples)
    platt = Platt().fit(with_rule_applied(shrink, examples))
    assert found.stages == (shrink, platt)
    by_hand = platt.probabilities(with_rule_applied(shrink, examples).rows)
    assert found.probabilities(examples.rows) == pytest.approx(by_hand)
    assert found.training.n == 120


def test_no_stage_is_the_logit_mean(world):
    examples = world(20)
    assert ChainedMethod(methods=()).fit(examples).probabilities(examples.rows) == pytest.approx(examples.rows.raw)
    assert ChainedMethod(methods=()).name == "raw"


@pytest.mark.parametrize(
    "methods",
    [
        (Shrink(), HierarchicalPlatt()),
        (BayesShrink(), Platt()),
        (Shrink(), Platt(), Beta()),
        (Platt(),),
    ],
)
def test_leaving_out_is_fitting_again(world, methods):
    examples = world(60, seed=2)
    groups = np.unique(examples.rows.question, return_inverse=True)[1]
    chain = ChainedMethod(methods=methods)
    assert chain.leave_out(examples, groups) == pytest.approx(refitted(chain, examples, groups), abs=1e-7)
