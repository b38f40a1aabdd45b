import math
from dataclasses import asdict

import numpy as np
import pytest

from foretell.metrics import (
    PowerTarget,
    design_effect,
    paired_power,
    plan_from_pilot,
    questions_needed,
)


@pytest.mark.parametrize("effect", [0.05, 0.2, 0.8])
@pytest.mark.parametrize("aim", [PowerTarget(), PowerTarget(power=0.9, alpha=0.01), PowerTarget(two_sided=False)])
def test_agrees_with_statsmodels(effect, aim):
    solve = pytest.importorskip("statsmodels.stats.power").tt_solve_power
    n = solve(
        effect_size=effect,
        alpha=aim.alpha,
        power=aim.power,
        alternative="two-sided" if aim.two_sided else "larger",
    )
    assert questions_needed(effect, 1.0, aim) == math.ceil(n)
    assert paired_power(effect, 1.0, float(n), aim) == pytest.approx(aim.power, abs=1e-6)


def test_large_samples_follow_the_normal_formula():
    assert questions_needed(0.01, 0.1) == pytest.approx(((1.959964 + 0.841621) * 10) ** 2, rel=0.01)


def test_the_sign_of_a_gain_does_not_matter_and_two_questions_are_the_minimum():
    assert questions_needed(-0.02, 0.15) == questions_needed(0.02, 0.15)
    assert questions_needed(100.0, 0.1) == 2


def test_clusters_increase_the_number_of_questions_needed():
    assert design_effect(0.0, 10) == 1.0
    assert design_effect(1.0, 10) == 10.0
    assert design_effect(0.1, 5, cv=1.0) == pytest.approx(1.9)
    assert questions_needed(0.02, 0.15, inflation=2.0) == pytest.approx(2 * questions_needed(0.02, 0.15), abs=1)


def test_power_matches_a_simulation():
    n = questions_needed(0.5, 1.0)
    d = np.random.default_rng(0).normal(0.5, 1.0, (4000, n))
    t = d.mean(axis=1) / (d.std(axis=1, ddof=1) / np.sqrt(n))
    assert np.mean(np.abs(t) > 2.0345) == pytest.approx(0.81, abs=0.02)


def test_pilot_measures_spread_and_clustering():
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(2000), 4)
    shared = rng.normal(0, 0.1, 2000)[cluster]
    a = rng.random(8000)
    pilot = plan_from_pilot(a, a + 0.01 + shared + rng.normal(0, 0.1, 8000), cluster)
    assert pilot.gain == pytest.approx(-0.01, abs=0.01)
    assert pilot.sd == pytest.approx(np.sqrt(0.02), rel=0.03)
    assert pilot.icc == pytest.approx(0.5, abs=0.03)
    assert pilot.inflation == pytest.approx(design_effect(0.5, 4), rel=0.05)
    assert pilot.questions_needed(0.02) == pytest.approx(2.5 * questions_needed(0.02, pilot.sd), rel=0.05)
    assert pilot.questions_needed() == pilot.questions_needed(pilot.gain)


GAINS = np.array([1.0, 2.0, 4.0, 5.5, 6.0, 2.5, -1.0])
CLUSTERS, CROSSED = np.array([0, 0, 1, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 1, 0, 1])


def variance_of_mean(groups):
    """C/(C−1)·Σ_c(Σ_{i∈c} d_i − d̄)²/n², by a loop over clusters."""
    totals = [np.sum(GAINS[groups == name] - GAINS.mean()) for name in set(groups)]
    return len(totals) / (len(totals) - 1) * sum(total**2 for total in totals) / len(GAINS) ** 2


def test_intraclass_correlation_is_that_of_an_analysis_of_variance():
    parts = [GAINS[:2], GAINS[2:5], GAINS[5:]]
    between = sum(len(part) * (part.mean() - GAINS.mean()) ** 2 for part in parts) / 2
    within = sum(np.sum((part - part.mean()) ** 2) for part in parts) / 4
    typical = (7 - (2**2 + 3**2 + 2**2) / 7) / 2
    pilot = plan_from_pilot(GAINS, np.zeros(7), CLUSTERS)
    assert pilot.icc == pytest.approx((between - within) / (between + (typical - 1) * within))
    assert (pilot.n, pilot.n_clusters, pilot.gain) == (7, 3, pytest.approx(GAINS.mean()))
    assert pilot.sd == pytest.approx(GAINS.std(ddof=1))


def test_inflation_is_the_measured_variance_over_that_of_independent_rows():
    plain = GAINS.var(ddof=1) / 7
    assert plan_from_pilot(GAINS, np.zeros(7), CLUSTERS).inflation == pytest.approx(variance_of_mean(CLUSTERS) / plain)
    one, other, both = (variance_of_mean(groups) for groups in (CLUSTERS, CROSSED, CLUSTERS * 10 + CROSSED))
    crossed = plan_from_pilot(GAINS, np.zeros(7), CLUSTERS, CROSSED)
    assert crossed.inflation == pytest.approx(max(one, other, one + other - both) / plain)
    assert crossed.n_clusters == 2


def test_differences_between_strata_are_no_spread():
    stratum = np.array([0, 0, 0, 0, 1, 1, 1])
    centred = GAINS - np.array([GAINS[stratum == name].mean() for name in stratum])
    pilot = plan_from_pilot(GAINS, np.zeros(7), stratum=stratum)
    assert pilot.sd == pytest.approx(np.sqrt(np.sum(centred**2) / (7 - 2)))
    assert pilot.gain == pytest.approx(GAINS.mean())


def test_pilot_without_clusters_has_no_inflation():
    rng = np.random.default_rng(0)
    a, b = rng.random(50), rng.random(50)
    pilot = plan_from_pilot(a, b)
    assert pilot.inflation == pytest.approx(1.0)
    assert pilot.icc == 0.0
    missing = np.concatenate([a, [np.nan]])
    with_missing = plan_from_pilot(missing, np.append(b, 0.5))
    assert asdict(with_missing) == pytest.approx(asdict(pilot), rel=0, abs=0, nan_ok=True)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: questions_needed(0.0, 1.0), "gain"),
        (lambda: questions_needed(0.1, 0.0), "sd"),
        (lambda: paired_power(0.1, 1.0, 1), "n must"),
        (lambda: PowerTarget(power=0.01), "alpha"),
        (lambda: plan_from_pilot([1.0, 2.0], [0.0, 1.0]), "constant"),
        (lambda: plan_from_pilot([1.0, 2.0], [0.0, 3.0], ["a", "a"]), "two clusters"),
    ],
)
def test_invalid_input_raises(call, match):
    with pytest.raises(ValueError, match=match):
        call()
