"""Rules in a row, fitted in turn, and left out together."""

import numpy as np
import pytest

from foretell.forecasters.combine.bayes_shrink import BayesShrink
from foretell.forecasters.combine.beta import Beta
from foretell.forecasters.combine.chain import Chain, said_by
from foretell.forecasters.combine.left_out import refitted
from foretell.forecasters.combine.platt import HierarchicalPlatt, Platt
from foretell.forecasters.combine.shrink import Shrink


def test_each_stage_is_fitted_on_what_the_one_before_said(world):
    examples = world(120)
    found = Chain(methods=(Shrink(), Platt())).fit(examples)
    shrink = Shrink().fit(examples)
    platt = Platt().fit(said_by(shrink, examples))
    assert found.stages == (shrink, platt)
    by_hand = platt.probabilities(said_by(shrink, examples).rows)
    assert found.probabilities(examples.rows) == pytest.approx(by_hand)
    assert found.training.n == 120


def test_no_stage_is_the_logit_mean(world):
    examples = world(20)
    assert Chain(methods=()).fit(examples).probabilities(examples.rows) == pytest.approx(examples.rows.raw)
    assert Chain(methods=()).name == "raw"


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
    chain = Chain(methods=methods)
    assert chain.leave_out(examples, groups) == pytest.approx(refitted(chain, examples, groups), abs=1e-7)
