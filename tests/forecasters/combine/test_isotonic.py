"""Pool adjacent violators against scikit-learn, and the curve drawn through the blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine.calibration import FittedIsotonic, Isotonic
from foretell.forecasters.combine.rules import refitted

POINTS = st.lists(st.tuples(st.integers(1, 20), st.booleans(), st.floats(0.01, 5)), min_size=2, max_size=40)


@settings(deadline=None, max_examples=60)
@given(POINTS)
def test_agrees_with_scikit_learn(make, points):
    isotonic = pytest.importorskip("sklearn.isotonic")
    x, y, w = np.array(points, float).T
    found = Isotonic().fit(make(x / 21, y, weight=w))
    if len(set(y)) < 2:
        assert found.at == ()
        return
    theirs = isotonic.IsotonicRegression().fit(x, y, sample_weight=w).predict(x)
    margin = 1 / (w.sum() ** 2 / (w**2).sum() + 2)
    levels = np.unique(theirs.round(9))
    assert np.unique(np.round(found.value, 9)) == pytest.approx(
        np.unique(np.clip(levels, margin, 1 - margin)), abs=1e-7
    )
    assert (np.diff(found.at) > 0).all()
    assert (np.diff(found.value) >= 0).all()


def test_by_hand(make):
    found = Isotonic().fit(make(np.array([1, 1, 2, 3, 4]) / 10, [0, 1, 0, 1, 1], weight=[1, 1, 2, 1, 3]))
    assert found.at == pytest.approx((0.15, 0.375))
    assert found.value == pytest.approx((0.25, 1 - 1 / (64 / 16 + 2)))


def test_lines_between_centres_and_level_ends(make_rows):
    rule = FittedIsotonic(at=(0.2, 0.6), value=(0.1, 0.5))
    rows = make_rows([0.05, 0.2, 0.4, 0.6, 0.9, np.nan])
    assert rule.probabilities(rows) == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.5, np.nan], nan_ok=True)


def test_no_block_claims_more_than_the_examples_can_bear(make):
    found = Isotonic().fit(make([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]))
    assert found.at == pytest.approx((0.15, 0.85))
    assert found.value == pytest.approx((1 / 6, 5 / 6))
    light = Isotonic().fit(make([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], weight=1e-3))
    assert light.value == pytest.approx(found.value)


def test_it_follows_what_happened(make):
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    found = Isotonic().fit(make(p, rng.random(20_000) < p**2))
    assert np.interp([0.3, 0.5, 0.8], found.at, found.value) == pytest.approx([0.09, 0.25, 0.64], abs=0.04)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 60), st.booleans())
def test_leaving_out_is_fitting_again(world, seed, n, wrong):
    examples = world(n, seed=seed)
    if wrong:
        examples.outcome[:] = examples.rows.raw < 0.5
    groups = np.unique(examples.rows.question, return_inverse=True)[1]
    again = refitted(Isotonic(), examples, groups)
    assert Isotonic().leave_out(examples, groups) == pytest.approx(again, abs=1e-7)
