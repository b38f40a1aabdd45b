"""Chains of rules: fitting in turn, and leaving groups out of all stages."""

import numpy as np
import pytest

from foretell.forecasters.combine.calibration import Beta, HierarchicalPlatt, Platt
from foretell.forecasters.combine.rules import ChainedMethod, refitted, with_rule_applied
from foretell.forecasters.combine.shrink import BayesShrink, Shrink


def test_each_stage_is_fitted_on_the_output_of_the_one_before(world):
    examples = world(120)
    fitted = ChainedMethod(methods=(Shrink(), Platt())).fit(examples)
    shrink = Shrink().fit(examples)
    platt = Platt().fit(with_rule_applied(shrink, examples))
    assert fitted.stages == (shrink, platt)
    by_hand = platt.probabilities(with_rule_applied(shrink, examples).rows)
    assert fitted.probabilities(examples.rows) == pytest.approx(by_hand)
    assert fitted.training.n == 120


def test_chain_without_stages_is_the_logit_mean(world):
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
def test_leave_out_equals_refitting_without_the_group(world, methods):
    examples = world(60, seed=2)
    groups = np.unique(examples.rows.question, return_inverse=True)[1]
    chain = ChainedMethod(methods=methods)
    assert chain.leave_out(examples, groups) == pytest.approx(refitted(chain, examples, groups), abs=1e-7)
